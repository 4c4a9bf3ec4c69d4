//! One report on its way out, under its idempotency key.

use std::sync::Arc;

use crate::{Digest, EntityId, Hasher, Report};

/// One report on its way out.
#[derive(Debug, Clone)]
pub struct Shipment {
    /// The report.
    pub report: Report,
    /// 64 hexadecimal digits, see [`Shipment::new`].
    pub idempotency_key: Arc<str>,
    /// How often the object's shard had changed hands when this was sent: a receiver that honours it refuses the
    /// reports of an owner that another has followed. `None` where no shard changes hands.
    pub epoch: Option<u64>,
}

impl Shipment {
    /// Gives a report its idempotency key: the same for a retry of the same content, another for anything else, also
    /// for a return to an earlier content.
    ///
    /// What happens once has a key that depends neither on content nor on what was acknowledged before, so that it
    /// is the same in every telling: the end of a life ([`Report::ends`]), whether its last state was watched or
    /// nothing but its record tells of it, that of the ledger's id, the sink and the uid; a fact that the newest state
    /// does not show any more ([`Report::fact`]), that of these and the fact's id. What may be back under its uid, as
    /// whatever left a selector, ends once in each stay: the key of such an end is that of these, the stay's id and the
    /// counter, which stands still while the end alone is sent. Every other key is as [`idempotency_key`] says.
    #[must_use]
    pub fn new(report: Report, ledger: &str, sink: &str, counter: u64) -> Self {
        let uid = &report.uid;
        let key = match (report.ends, report.fact) {
            (true, None) => key_of(&[ledger, sink, uid, "end"]),
            (true, Some(Digest(stay))) => {
                key_of(&[ledger, sink, uid, "end", &format!("{stay:016x}"), &counter.to_string()])
            }
            (false, Some(Digest(fact))) => key_of(&[ledger, sink, uid, "fact", &format!("{fact:016x}")]),
            (false, None) => idempotency_key(ledger, sink, uid, report.entity, counter, report.content),
        };
        Self { report, idempotency_key: key.into(), epoch: None }
    }

    /// The same, sent by the owner of this epoch.
    #[must_use]
    pub fn with_epoch(self, epoch: Option<u64>) -> Self {
        Self { epoch, ..self }
    }

    /// The id of the span that its sending is in the event's trace: the same for a retry of the same content, and
    /// never 0.
    #[must_use]
    pub fn span(&self) -> u64 {
        let digits = self.idempotency_key.get(..16);
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default().max(1)
    }
}

/// The idempotency key of a report of a state, 64 hexadecimal digits: SHA-256 of the ledger's id, the sink,
/// the uid, the entity, how many of its reports were acknowledged before, and the content digest.
#[must_use]
pub fn idempotency_key(
    ledger: &str,
    sink: &str,
    uid: &str,
    EntityId(entity): EntityId,
    counter: u64,
    Digest(content): Digest,
) -> String {
    key_of(&[ledger, sink, uid, &format!("{entity:016x}"), &counter.to_string(), &format!("{content:016x}")])
}

fn key_of(parts: &[&str]) -> String {
    let mut hasher = Hasher::default();
    parts.iter().for_each(|part| hasher.write(part.as_bytes()));
    hasher.hex()
}
