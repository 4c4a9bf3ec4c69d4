//! The identity of one life of an object, and its short form.

use std::sync::Arc;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// `metadata.uid`: the identity of one life of an object.
pub type Uid = Arc<str>;

/// The 16 bytes of a uid that is a UUID, in the one spelling that [`of_uuid`] gives back: as API servers give them.
#[must_use]
pub fn to_uuid(uid: &str) -> Option<[u8; 16]> {
    let uuid = Uuid::try_parse(uid).ok()?;
    let mut text = [0; Hyphenated::LENGTH];
    (*uuid.hyphenated().encode_lower(&mut text) == *uid).then(|| uuid.into_bytes())
}

/// The uid that has these bytes.
#[must_use]
pub fn of_uuid(bytes: [u8; 16]) -> Uid {
    let mut text = [0; Hyphenated::LENGTH];
    Uid::from(&*Uuid::from_bytes(bytes).hyphenated().encode_lower(&mut text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_uuid_comes_back(bytes in any::<[u8; 16]>()) {
            let uid = of_uuid(bytes);
            prop_assert_eq!(uid.len(), 36);
            prop_assert_eq!(to_uuid(&uid), Some(bytes));
        }

        #[test]
        fn what_has_a_short_form_is_what_it_stands_for(uid in "[0-9a-fA-F-]{0,40}|.{0,40}") {
            if let Some(bytes) = to_uuid(&uid) {
                prop_assert_eq!(&*of_uuid(bytes), uid.as_str());
            }
        }
    }

    #[test]
    fn other_spellings_have_no_short_form() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(to_uuid(uid), Some(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128.to_be_bytes()));
        for other in [&uid.to_uppercase(), &uid.replace('-', ""), &format!("{{{uid}}}"), "", "u1"] {
            assert_eq!(to_uuid(other), None, "{other}");
        }
    }
}
