//! Names of runtimes, and the id beside a name that is not of the form that tunnels and addresses have.
//!
//! A new runtime is called by lower-case letters and digits. The incumbent said so and never enforced it, so that an adopter's may be
//! called anything that a label of Kubernetes holds, since its chart writes the name into one. Such a runtime keeps its name, and gets
//! an id beside that is of the form: made of the name alone, so that a chart which knows no platform yet makes the same.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::error::StoreError;

/// Characters of a name, and of an id, at most.
const LONGEST: usize = 38;
/// Characters of a label of Kubernetes at most.
const LABEL: usize = 63;
/// Of the digest of a name so many digits end its id: in what is before them other names may be alike.
const DIGITS: usize = 10;

/// Whether a new runtime may be called so: lower-case letters and digits, a letter first, at most 38.
#[must_use]
pub fn is_new_runtime_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= LONGEST
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The same, with why not.
pub(crate) fn check(name: &str) -> Result<(), StoreError> {
    if is_new_runtime_name(name) { Ok(()) } else { Err(StoreError::Name(name.to_owned())) }
}

/// Whether a runtime that is there already may be called so.
pub(crate) fn check_adopted(name: &str) -> Result<(), StoreError> {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let well = name.len() <= LABEL
        && name.starts_with(ends)
        && name.ends_with(ends)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if well { Ok(()) } else { Err(StoreError::AdoptedName(name.to_owned())) }
}

/// What a runtime is told by where its name may not stand, as in the host of its tunnel: the name itself where it is of the form;
/// else its letters and digits, and the beginning of its digest.
#[must_use]
pub fn runtime_id(name: &str) -> Cow<'_, str> {
    if is_new_runtime_name(name) {
        return name.into();
    }
    let lower = name.to_ascii_lowercase();
    let kept = lower.chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    // It begins with a letter.
    let begin = if lower.starts_with(|c: char| c.is_ascii_lowercase()) { "" } else { "r" };
    let mut id: String = begin.chars().chain(kept).take(LONGEST - DIGITS).collect();
    let digest = Sha256::digest(name.as_bytes());
    id.push_str(&hex::encode(&digest[..DIGITS / 2]));
    id.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_form_is_its_own_id_and_any_other_has_one_beside() {
        for (name, id) in [
            ("prod", "prod"),
            ("a1", "a1"),
            ("prod-eu", "prodeu3312b6955a"),
            ("prod.eu", "prodeu2740657d7b"),
            ("Prod", "prod5f56359ef1"),
            ("1st", "r1ste01ddf6594"),
        ] {
            assert_eq!(runtime_id(name), id);
        }
        let (long, longer) = ("a".repeat(38), "a".repeat(63));
        assert_eq!(runtime_id(&long), long);
        assert!(runtime_id(&longer).starts_with(&"a".repeat(28)) && runtime_id(&longer).len() == 38);
    }

    #[test]
    fn every_name_that_is_taken_has_an_id_that_a_new_runtime_might_be_called_by() {
        for name in ["prod", "prod-eu", "Prod_EU.2", "7", "9-a", &"A".repeat(63), "x--y"] {
            assert!(check_adopted(name).is_ok() && is_new_runtime_name(&runtime_id(name)), "{name}");
        }
    }

    #[test]
    fn what_no_label_of_kubernetes_holds_is_no_name_of_an_adopter_either() {
        for name in ["", "-a", "a-", "a b", "a/b", "\u{e9}", ".", &"a".repeat(64)] {
            let said = format!(
                "'{name}' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins and ends with one of \
                 the first two, and has at most 63"
            );
            assert_eq!(check_adopted(name).unwrap_err().to_string(), said);
        }
    }
}
