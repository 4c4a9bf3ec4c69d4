//! `Lease` objects of `coordination.k8s.io/v1`, and what of them is ours.
//!
//! A shard's object is `<name>-shard-<number>`, with its number and epoch as annotations (`leaseTransitions` has too few
//! bits), and whoever was refused shards says which in one of its own; a replica's is `<name>-replica-<what of the replica's name an object's name can hold>`. The holder says who it
//! is, exactly. Both carry the label `gitops-runtime/leases: <name>`, by which they are listed.

use std::time::Duration;

use pipeline_core::Timestamp;
use pipeline_core::leases::{Lease, LeaseError, Presence, Replica};
use serde_json::{Value, json};

const SHARD: &str = "gitops-runtime/shard";
const EPOCH: &str = "gitops-runtime/epoch";
const REFUSED: &str = "gitops-runtime/refused";
pub(super) const LABEL: &str = "gitops-runtime/leases";
/// The most of a replica's name that stands in that of its object: an object's has 253 characters at most.
const REPLICA: usize = 150;

/// What all objects of one deployment have in common.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) ttl: Duration,
}

/// An object of ours, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) at: At,
    pub(super) record: Record,
}

/// Which write of which life of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    pub(super) uid: String,
    pub(super) version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Lease(Lease),
    /// With the shards that it was refused; `None`: nobody can tell whose.
    Member(Option<(Replica, Vec<u32>)>),
}

impl Names {
    pub(super) fn selector(&self) -> String {
        format!("{LABEL}={}", self.name)
    }

    pub(super) fn shard(&self, shard: u32) -> String {
        format!("{}-shard-{shard}", self.name)
    }

    /// Processes' names end in what no two have in common, so it is the end that is kept.
    pub(super) fn replica(&self, replica: &Replica) -> String {
        let plain = |byte: u8| match byte {
            byte if byte.is_ascii_alphanumeric() => byte.to_ascii_lowercase(),
            _ => b'-',
        };
        let skip = replica.as_str().len().saturating_sub(REPLICA);
        let tail: String = replica.as_str().bytes().skip(skip).map(plain).map(char::from).collect();
        // A name ends in a letter or digit.
        let end = if tail.ends_with('-') { "0" } else { "" };
        format!("{}-replica-{tail}{end}", self.name)
    }

    /// The object of a shard; `at`: the one that it is to replace.
    pub(super) fn lease(&self, lease: &Lease, at: Option<&At>) -> Value {
        let annotations = json!({SHARD: lease.shard.to_string(), EPOCH: lease.epoch.to_string()});
        let holder = lease.owner.as_ref().map_or("", Replica::as_str);
        self.object(&self.shard(lease.shard), &annotations, (holder, lease.until), at)
    }

    /// The object of a replica.
    pub(super) fn presence(&self, presence: &Presence, at: Option<&At>) -> Value {
        let name = self.replica(&presence.replica);
        let refused: Vec<String> = presence.refused.iter().map(u32::to_string).collect();
        let annotations = if refused.is_empty() { json!({}) } else { json!({REFUSED: refused.join(",")}) };
        self.object(&name, &annotations, (presence.replica.as_str(), presence.until), at)
    }

    fn object(
        &self,
        name: &str,
        annotations: &Value,
        (holder, until): (&str, Timestamp),
        at: Option<&At>,
    ) -> Value {
        let mut metadata = json!({
            "annotations": annotations,
            "labels": {LABEL: self.name, "app.kubernetes.io/name": "gitops-runtime"},
            "name": name,
            "namespace": self.namespace,
        });
        if let Some(at) = at {
            metadata["resourceVersion"] = at.version.to_string().into();
            metadata["uid"] = at.uid.as_str().into();
        }
        let renewed = until.checked_sub(self.ttl).unwrap_or(until);
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": self.ttl.as_secs().max(1),
                // The type takes six digits, always.
                "renewTime": format!("{renewed:.6}"),
            }
        })
    }

    /// Reads an object; `None`: it is not one of ours, or has no identity. A record that cannot be read is one of which
    /// nobody can tell who wrote it.
    pub(super) fn read(&self, object: &Value) -> Option<Object> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str()?.to_owned();
        if metadata["labels"][LABEL].as_str() != Some(&self.name) {
            return None;
        }
        let version = metadata["resourceVersion"].as_str()?.parse().ok()?;
        let at = At { uid: metadata["uid"].as_str()?.to_owned(), version };
        let record = match name.strip_prefix(&self.name)?.split_at_checked("-shard-".len()) {
            Some(("-shard-", shard)) => {
                // A number has one way to be written.
                let shard = shard.parse().ok().filter(|shard| self.shard(*shard) == name)?;
                let lease = read_lease(object).ok().filter(|lease| lease.shard == shard);
                Record::Lease(lease.unwrap_or_else(|| Lease::unknown(shard)))
            }
            _ => {
                let holder = object["spec"]["holderIdentity"].as_str().unwrap_or_default();
                let refused = metadata["annotations"][REFUSED].as_str().unwrap_or_default();
                let refused = refused.split(',').filter_map(|shard| shard.parse().ok()).collect();
                Record::Member(Replica::new(holder).ok().map(|replica| (replica, refused)))
            }
        };
        Some(Object { name, at, record })
    }
}

/// Reads what [`Names::lease`] writes.
fn read_lease(object: &Value) -> Result<Lease, LeaseError> {
    let (annotations, spec) = (&object["metadata"]["annotations"], &object["spec"]);
    let read = || {
        let owner = match spec["holderIdentity"].as_str().unwrap_or_default() {
            "" => None,
            name => Some(Replica::new(name).ok()?),
        };
        let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
        let ttl = Duration::from_secs(spec["leaseDurationSeconds"].as_u64()?);
        Some(Lease {
            shard: annotations[SHARD].as_str()?.parse().ok()?,
            epoch: annotations[EPOCH].as_str()?.parse().ok()?,
            owner,
            until: renewed.checked_add(ttl).ok()?,
        })
    };
    read().ok_or(LeaseError::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            namespace: "argocd".to_owned(),
            name: "event-reporter".to_owned(),
            ttl: Duration::from_secs(10),
        }
    }

    fn lease(owner: Option<&str>) -> Lease {
        Lease {
            shard: 3,
            epoch: 1_790_000_012,
            owner: owner.map(|name| Replica::new(name).unwrap()),
            until: "2026-11-22T04:00:10Z".parse().unwrap(),
        }
    }

    /// As the API server gives back what it took.
    fn stored(mut object: Value) -> Value {
        object["metadata"]["uid"] = "u-1".into();
        object["metadata"]["resourceVersion"] = "471".into();
        object
    }

    #[test]
    fn a_lease_is_written_as_documented_and_read_again() {
        let owned = lease(Some("event-reporter-1.9f31c0"));
        let object = names().lease(&owned, None);
        assert_eq!(
            object,
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "annotations": {"gitops-runtime/shard": "3", "gitops-runtime/epoch": "1790000012"},
                    "labels": {"gitops-runtime/leases": "event-reporter", "app.kubernetes.io/name": "gitops-runtime"},
                    "name": "event-reporter-shard-3",
                    "namespace": "argocd",
                },
                "spec": {
                    "holderIdentity": "event-reporter-1.9f31c0",
                    "leaseDurationSeconds": 10,
                    "renewTime": "2026-11-22T04:00:00.000000Z",
                }
            })
        );
        let at = At { uid: "u-1".to_owned(), version: 471 };
        for lease in [owned, lease(None)] {
            let read = names().read(&stored(names().lease(&lease, None))).unwrap();
            let name = "event-reporter-shard-3".to_owned();
            assert_eq!(read, Object { name, at: at.clone(), record: Record::Lease(lease) });
        }
        let replaced = names().lease(&lease(None), Some(&at));
        assert_eq!(
            (&replaced["metadata"]["uid"], &replaced["metadata"]["resourceVersion"]),
            (&json!("u-1"), &json!("471"))
        );
    }

    #[test]
    fn a_lease_that_cannot_be_read_is_somebodys_of_whom_nothing_is_known() {
        let object = stored(names().lease(&lease(Some("one.1")), None));
        for (path, wrong) in [
            ("/metadata/annotations/gitops-runtime~1shard", json!("three")),
            ("/metadata/annotations/gitops-runtime~1shard", json!("4")),
            ("/metadata/annotations/gitops-runtime~1epoch", json!(7)),
            ("/metadata/annotations", json!(null)),
            ("/spec/holderIdentity", json!("a b")),
            ("/spec/renewTime", json!("yesterday")),
            ("/spec/leaseDurationSeconds", json!(-1)),
            ("/spec/leaseDurationSeconds", json!(u64::MAX)),
            ("/spec", json!([])),
        ] {
            let mut broken = object.clone();
            *broken.pointer_mut(path).unwrap() = wrong;
            let read = names().read(&broken).unwrap();
            assert_eq!(read.record, Record::Lease(Lease::unknown(3)), "{path}");
            assert_eq!(read.at.version, 471);
        }
    }

    #[test]
    fn what_is_not_ours_is_not_read() {
        let object = stored(names().lease(&lease(Some("one.1")), None));
        for (path, wrong) in [
            ("/metadata/labels/gitops-runtime~1leases", json!("another")),
            ("/metadata/labels", json!(null)),
            ("/metadata/name", json!("event-reporter-shard-three")),
            ("/metadata/name", json!("event-reporter-shard-03")),
            ("/metadata/name", json!("another-shard-3")),
            ("/metadata/uid", json!(null)),
            ("/metadata/resourceVersion", json!("many")),
        ] {
            let mut broken = object.clone();
            *broken.pointer_mut(path).unwrap() = wrong;
            assert_eq!(names().read(&broken), None, "{path}");
        }
        assert_eq!(names().read(&json!([])), None);
    }

    #[test]
    fn a_replica_has_an_object_of_its_own_whatever_it_is_called() {
        for (replica, name) in [
            ("event-reporter-2.9f31c0", "event-reporter-replica-event-reporter-2-9f31c0"),
            ("My_Host.A1", "event-reporter-replica-my-host-a1"),
            ("host_", "event-reporter-replica-host-0"),
        ] {
            for refused in [vec![], vec![0, 31]] {
                let replica = Replica::new(replica).unwrap();
                let presence = Presence { replica, until: lease(None).until, refused };
                let object = stored(names().presence(&presence, None));
                assert_eq!(object["metadata"]["name"], name);
                let read = names().read(&object).unwrap();
                assert_eq!(read.record, Record::Member(Some((presence.replica, presence.refused))));
            }
        }
        let longest = Replica::new(&format!("{}-end", "x".repeat(249))).unwrap();
        let name = names().replica(&longest);
        assert!(name.len() < 253 && name.ends_with("x-end"), "{name}");
    }
}
