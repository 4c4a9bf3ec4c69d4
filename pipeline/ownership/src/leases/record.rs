//! The records of a store of leases: one for each shard, and one for each replica that is there.
//!
//! In a JetStream bucket a record is the value of a key, in JSON:
//! ```json
//! {"version": 1, "shard": 3, "epoch": 1790000012, "owner": "event-reporter-1.9f31c0", "until": "2026-11-22T04:00:10Z"}
//! {"version": 1, "replica": "event-reporter-1.9f31c0", "until": "2026-11-22T04:00:10Z", "refused": [7]}
//! ```

use pipeline_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Replica;

/// The most bytes of a record; a longer one is not ours.
pub const RECORD_BYTES: usize = 1024;
/// Refused shards that a presence tells of at most, so that it stays within [`RECORD_BYTES`].
pub const REFUSED: usize = 48;
/// The form that is written, and the newest that is read.
const VERSION: u32 = 1;

/// Who owns a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// The shard, from 0.
    pub shard: u32,
    /// Rises with every owner.
    pub epoch: u64,
    /// The owner; `None`: the last one gave it back.
    #[serde(deserialize_with = "Option::deserialize")]
    pub owner: Option<Replica>,
    /// When it ends by the owner's wall clock. For people: nobody decides by it, clocks differ.
    pub until: Timestamp,
}

/// That a replica is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// The replica.
    pub replica: Replica,
    /// When it counts as gone, by its own wall clock. For people, as [`Lease::until`].
    pub until: Timestamp,
    /// Shards that it was refused, and that others are to take, at most [`REFUSED`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<u32>,
}

/// A record that cannot be read. What it holds is not repeated.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It is too long.
    #[error("read a record of a lease: it has {0} bytes, more than {RECORD_BYTES}")]
    Long(usize),
    /// It is no JSON, or not of this form.
    #[error("read a record of a lease: it is not of the form of version {VERSION}")]
    Form,
    /// A newer program wrote it.
    #[error("read a record of a lease: it is of version {0}, and {VERSION} is the newest known here")]
    Newer(u32),
}

#[derive(Serialize)]
struct Written<'a, T> {
    version: u32,
    #[serde(flatten)]
    record: &'a T,
}

impl Lease {
    /// The record of a shard of which it cannot be told who owns it: there is none yet, or what there is cannot be read. It
    /// counts as that of somebody who is not there: it is respected for as long as a lease lives, and then replaced.
    #[must_use]
    pub fn unknown(shard: u32) -> Self {
        Self { shard, epoch: 0, owner: Some(Replica::unknown()), until: Timestamp::UNIX_EPOCH }
    }

    /// The value of its key: JSON.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// [`LeaseError`] when it is no lease that is known here.
    pub fn decode(bytes: &[u8]) -> Result<Self, LeaseError> {
        decode(bytes)
    }
}

impl Presence {
    /// The value of its key: JSON.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// [`LeaseError`] when it is nobody's presence.
    pub fn decode(bytes: &[u8]) -> Result<Self, LeaseError> {
        decode(bytes)
    }
}

#[expect(clippy::expect_used, reason = "names, numbers and times are JSON whatever they are")]
fn encode(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(&Written { version: VERSION, record }).expect("names, numbers and times")
}

fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, LeaseError> {
    if bytes.len() > RECORD_BYTES {
        return Err(LeaseError::Long(bytes.len()));
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(bytes) else { return Err(LeaseError::Form) };
    let version = fields.remove("version").and_then(|version| version.as_u64());
    match version.and_then(|version| u32::try_from(version).ok()) {
        // A newer form may have more fields, or others: it is told apart first.
        Some(newer) if newer > VERSION => Err(LeaseError::Newer(newer)),
        Some(VERSION) => serde_json::from_value(Value::Object(fields)).map_err(|_| LeaseError::Form),
        _ => Err(LeaseError::Form),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lease(owner: Option<&str>) -> Lease {
        Lease {
            shard: 3,
            epoch: 1_790_000_012,
            owner: owner.map(|name| Replica::new(name).unwrap()),
            until: "2026-11-22T04:00:10Z".parse().unwrap(),
        }
    }

    #[test]
    fn records_are_written_as_documented_and_read_again() {
        let owned = lease(Some("event-reporter-1.9f31c0"));
        let text = r#"{"version":1,"shard":3,"epoch":1790000012,"owner":"event-reporter-1.9f31c0","until":"2026-11-22T04:00:10Z"}"#;
        assert_eq!(String::from_utf8(owned.encode()).unwrap(), text);
        assert_eq!(Lease::decode(text.as_bytes()).unwrap(), owned);
        let free = lease(None);
        assert_eq!(Lease::decode(&free.encode()).unwrap(), free);
        let presence =
            Presence { replica: Replica::new("a.1").unwrap(), until: free.until, refused: Vec::new() };
        let text = r#"{"version":1,"replica":"a.1","until":"2026-11-22T04:00:10Z"}"#;
        assert_eq!(String::from_utf8(presence.encode()).unwrap(), text);
        assert_eq!(Presence::decode(text.as_bytes()).unwrap(), presence);
        let refused = Presence { refused: vec![0, 7], ..presence };
        let text = r#"{"version":1,"replica":"a.1","until":"2026-11-22T04:00:10Z","refused":[0,7]}"#;
        assert_eq!(String::from_utf8(refused.encode()).unwrap(), text);
        assert_eq!(Presence::decode(text.as_bytes()).unwrap(), refused);
        let longest = Presence {
            replica: Replica::new(&"x".repeat(253)).unwrap(),
            until: Timestamp::MAX,
            refused: vec![u32::MAX; REFUSED],
        };
        assert_eq!(Presence::decode(&longest.encode()).unwrap(), longest);
        let longest = Lease {
            shard: u32::MAX,
            epoch: u64::MAX,
            owner: Some(Replica::new(&"x".repeat(253)).unwrap()),
            until: Timestamp::MAX,
        };
        assert_eq!(Lease::decode(&longest.encode()).unwrap(), longest);
    }

    #[test]
    fn nobody_can_tell_who_owns_what_is_unknown() {
        let unknown = Lease::unknown(7);
        assert!(unknown.epoch == 0 && unknown.owner.is_some());
        assert_eq!(Lease::decode(&unknown.encode()).unwrap(), unknown);
    }

    #[test]
    fn what_is_no_record_is_refused_and_not_repeated() {
        let form = "read a record of a lease: it is not of the form of version 1";
        let whole = r#"{"version":1,"shard":3,"epoch":1,"owner":null,"until":"2026-11-22T04:00:10Z"}"#;
        assert!(Lease::decode(whole.as_bytes()).is_ok());
        for broken in [
            whole.replace("3", "-3"),
            whole.replace("3", "4294967296"),
            whole.replace("\"epoch\":1", "\"epoch\":\"1\""),
            whole.replace("\"epoch\":1,", ""),
            whole.replace("\"owner\":null,", ""),
            whole.replace("null", "\"a secret of somebody\""),
            whole.replace("null", "\"\""),
            whole.replace("2026-11-22T04:00:10Z", "yesterday"),
            whole.replace("\"version\":1", "\"version\":0"),
            whole.replace("\"version\":1", "\"version\":\"1\""),
            whole.replace("\"version\":1,", ""),
            whole.replace("}", ",\"more\":1}"),
            whole.replace("}", ""),
            format!("[{whole}]"),
            "null".to_owned(),
            String::new(),
            "\u{0}".to_owned(),
        ] {
            assert_eq!(Lease::decode(broken.as_bytes()).unwrap_err().to_string(), form, "{broken}");
            assert_eq!(Presence::decode(broken.as_bytes()).unwrap_err().to_string(), form, "{broken}");
        }
        assert_eq!(Lease::decode(&[0xff, 0xfe]).unwrap_err().to_string(), form);
        assert_eq!(Presence::decode(whole.as_bytes()).unwrap_err().to_string(), form);
        let newer = r#"{"version":2,"something":"else"}"#;
        assert_eq!(
            Lease::decode(newer.as_bytes()).unwrap_err().to_string(),
            "read a record of a lease: it is of version 2, and 1 is the newest known here"
        );
        assert_eq!(
            Lease::decode(&[b' '; 1025]).unwrap_err().to_string(),
            "read a record of a lease: it has 1025 bytes, more than 1024"
        );
    }

    proptest! {
        #[test]
        fn garbage_is_refused_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Lease::decode(&bytes).is_err());
            prop_assert!(Presence::decode(&bytes).is_err());
        }

        #[test]
        fn a_record_that_was_cut_is_refused(at in 0_usize..100) {
            let bytes = lease(Some("a")).encode();
            prop_assert!(Lease::decode(&bytes[..at.min(bytes.len() - 1)]).is_err());
        }
    }
}
