//! The keys of the bucket, and what stands under them beside values.

use pipeline_core::{Key, Pending, Remembered};
use serde::{Deserialize, Serialize};

use super::super::stored;
use super::super::tables::{Bytes, RowId, Table};
use pipeline_bus::jetstream::Entry;
use pipeline_bus::{SubjectError, escape, plain, token};

/// The format of a claim, and of all that stands beside it: a version that cannot read some record of a shard does not
/// claim it.
pub(super) const FORMAT: u32 = 2;

/// The keys of one sink.
pub(super) struct Names {
    sink: String,
}

/// Who may write a shard, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) format: u32,
    /// Of its owner's lease.
    pub(super) epoch: u64,
    /// Under which its reports are counted; without one its rows are not to be used, and are to be removed.
    pub(super) ledger: Option<String>,
    /// How objects are divided.
    pub(super) sharding: String,
}

/// What stands under a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Claim,
    Intents,
    Recent,
    Row(RowId),
}

impl Names {
    pub(super) fn new(sink: &str) -> Result<Self, SubjectError> {
        Ok(Self { sink: token(sink)? })
    }

    pub(super) fn claim(&self, shard: u32) -> String {
        format!("claim.{}.{shard}", self.sink)
    }

    pub(super) fn intents(&self, shard: u32) -> String {
        format!("intents.{}.{shard}", self.sink)
    }

    pub(super) fn recent(&self, shard: u32) -> String {
        format!("recent.{}.{shard}", self.sink)
    }

    pub(super) fn row(&self, shard: u32, (table, key): &RowId) -> String {
        let (namespace, name) = (escape(key.namespace()), escape(key.name()));
        let row = format!("{}.{}.{shard}.{namespace}.{name}", table.name(), self.sink);
        if key.kind().is_empty() { row } else { format!("{row}.{}", escape(key.kind())) }
    }

    /// What matches the records of one shard.
    pub(super) fn records(&self, shard: u32) -> String {
        format!("{}.{}.{shard}.>", Table::Records.name(), self.sink)
    }

    /// What a record in the bucket tells; nothing, where it is damaged or nobody of us wrote it.
    pub(super) fn remembered(&self, entry: &Entry) -> Option<Remembered> {
        let Place::Row(row_id) = self.parse(&entry.key)?.1 else { return None };
        let (uid, version) = stored::incarnation(&unseal(&row_id, &entry.value)?).ok()?;
        Some((row_id.1, uid, version))
    }

    /// What matches everything of one shard, its claim included.
    pub(super) fn shard(&self, shard: u32) -> Vec<String> {
        // How far kinds are done with is noted where one process alone watches.
        let tables = Table::ALL.into_iter().filter(|table| *table != Table::Done);
        let rows = tables.map(|table| format!("{}.{}.{shard}.>", table.name(), self.sink));
        rows.chain([self.claim(shard), self.intents(shard), self.recent(shard)]).collect()
    }

    /// The shard of a key, and what stands under it; `None` when nobody of us wrote it.
    pub(super) fn parse(&self, key: &str) -> Option<(u32, Place)> {
        let mut parts = key.split('.');
        let (first, sink, shard) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let place = match first {
            "claim" => Place::Claim,
            "intents" => Place::Intents,
            "recent" => Place::Recent,
            first => {
                let table = Table::ALL.into_iter().find(|table| table.name() == first)?;
                let (namespace, name) = (plain(parts.next()?)?, plain(parts.next()?)?);
                let kind = parts.next().map_or(Some(String::new()), plain)?;
                Place::Row((table, Key::of_kind(&kind, &namespace, &name).ok()?))
            }
        };
        (sink == self.sink && parts.next().is_none()).then_some((shard, place))
    }
}

impl Claim {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }

    pub(super) fn bytes(&self) -> bytes::Bytes {
        // Numbers and texts alone: there is no reason to fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

/// A value as it stands in the bucket.
fn seal(key: &Key, bytes: &[u8]) -> bytes::Bytes {
    stored::seal(key.as_str(), bytes).into()
}

/// A row as it stands in a bucket where a value may have `room` bytes, and whether something was left out.
///
/// A record of very many resources is larger. It stands there without them: a message is taken whole or not at all, and
/// what waited for it would wait for ever, with everything that was acknowledged beside it. What was left out is
/// reported again by whoever takes the shard over, as [`pipeline_core::Record::without_listed`] says. Of what is journaled the
/// oldest facts are left out, where a server takes less than it usually does: this process alone has them. Parked entries
/// are bounded far below.
pub(super) fn fitting((table, key): &RowId, bytes: &[u8], room: usize) -> (bytes::Bytes, bool) {
    let whole = seal(key, bytes);
    if whole.len() <= room {
        return (whole, false);
    }
    match table {
        Table::Records => {}
        Table::Journal => return (journaled(key, bytes, room).unwrap_or(whole), false),
        Table::Parked | Table::Done => return (whole, false),
    }
    match stored::record(bytes) {
        Ok(record) => (seal(key, &stored::encode(&record.without_listed())), true),
        Err(_) => (whole, false),
    }
}

/// What is journaled of a key without as many of its oldest facts as have no room; `None` when it is damaged.
fn journaled(key: &Key, bytes: &[u8], room: usize) -> Option<bytes::Bytes> {
    let mut pending: Pending = stored::decode(bytes).ok()?;
    loop {
        let sealed = seal(key, &stored::encode(&pending));
        if sealed.len() <= room || pending.facts.is_empty() {
            return Some(sealed);
        }
        pending.facts.remove(0);
    }
}

/// The value of what stands in the bucket; `None` when it is damaged.
pub(super) fn unseal((table, key): &RowId, value: &[u8]) -> Option<Bytes> {
    stored::unseal_row(*table, key.as_str(), value).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Digest, Fact, Version};

    use super::*;

    #[test]
    fn keys_are_read_back_and_nothing_else_is() {
        let names = Names::new("a sink.1").unwrap();
        let row_id = (Table::Journal, Key::new("n.s", "shop_ä").unwrap());
        let row = names.row(7, &row_id);
        assert_eq!(row, "journal.a=20sink=2E1.7.n=2Es.shop_=C3=A4");
        assert_eq!(names.parse(&row), Some((7, Place::Row(row_id))));
        let of_cluster = (Table::Records, Key::of_kind("nodes", "", "one").unwrap());
        let row_of_cluster = names.row(7, &of_cluster);
        assert_eq!(row_of_cluster, "records.a=20sink=2E1.7.=.one.nodes");
        assert_eq!(names.parse(&row_of_cluster), Some((7, Place::Row(of_cluster))));
        assert_eq!(names.claim(7), "claim.a=20sink=2E1.7");
        assert_eq!(names.parse(&names.claim(7)), Some((7, Place::Claim)));
        assert_eq!(names.parse(&names.intents(31)), Some((31, Place::Intents)));
        assert_eq!(names.parse(&names.recent(0)), Some((0, Place::Recent)));
        assert_eq!(Names::new("b").unwrap().parse(&row), None);
        for foreign in [
            "",
            "a",
            "claim.b",
            "claim.b.x",
            "claim.b.1.c",
            "rows.b.1.c.d",
            "records.b.1.c",
            "records.b.1.c.d.e.f",
        ] {
            assert_eq!(Names::new("b").unwrap().parse(foreign), None, "{foreign}");
        }
        let shard =
            ["records.b.1.>", "journal.b.1.>", "parked.b.1.>", "claim.b.1", "intents.b.1", "recent.b.1"];
        assert_eq!(Names::new("b").unwrap().shard(1), shard);
    }

    #[test]
    fn of_what_is_journaled_the_newest_facts_stand_where_not_all_have_room() {
        let fact = |n: u64| Fact { id: Digest(n), body: vec![b'x'; 1_000].into() };
        let facts = (0..10).map(|n| ("u".into(), Version(n), fact(n))).collect();
        let pending = Pending { facts, gone: vec![("t".into(), Version(1))] };
        let row_id = (Table::Journal, Key::new("ns", "shop").unwrap());
        let (sealed, _) = fitting(&row_id, &stored::encode(&pending), 5_500);
        let some: Pending = stored::decode(&unseal(&row_id, &sealed).unwrap()).unwrap();
        assert!(sealed.len() <= 5_500 && some.facts.len() >= 2, "{} facts", some.facts.len());
        assert!(pending.facts.ends_with(&some.facts));
        assert_eq!(some.gone, pending.gone);
    }

    #[test]
    fn a_claim_is_json() {
        let claim = Claim { format: 1, epoch: 9, ledger: Some("id".into()), sharding: "jump:32".into() };
        let text = r#"{"format":1,"epoch":9,"ledger":"id","sharding":"jump:32"}"#;
        assert_eq!(claim.bytes(), text.as_bytes());
        assert_eq!(Claim::read(text.as_bytes()), Some(claim));
        assert_eq!(Claim::read(b"garbage"), None);
    }
}
