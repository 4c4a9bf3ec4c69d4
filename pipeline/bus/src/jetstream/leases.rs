//! Leases in a bucket of the bus.
//!
//! takes: what the driver of ownership asks - gives: [`Store`]
//! calls: the bucket `leases`: `lease.<shard>`, which never goes by itself, and `member.<replica>`, which does when it is not
//! renewed - fails: with [`LeaseWrite::Failed`]; a bucket that is gone is made anew
//!
//! A server may lose its storage while requests are on their way, and the client sends over the next connection what waited
//! for it. So nothing is ever claimed on the strength of there being no record: the sequences of a bucket that is made anew
//! are others than those before, but "none" is the same in each. Where there is no record, one is written first that says so
//! ([`Lease::unknown`]), and a claim replaces that very one.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use pipeline_ownership::{Lease, LeaseWrite, Presence, Replica, Shown, Store};
use tokio::sync::mpsc;

use super::bucket::{Bucket, Change, Entry, Expect, LEASES, PutError, Watched};
use super::{BusError, Difference, JetStream};

const LEASE: &str = "lease.";
const MEMBER: &str = "member.";
/// Within this time all presences must have been read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The store of leases on the bus.
#[derive(Debug)]
pub struct LeaseBucket {
    bucket: Bucket,
    shards: NonZeroU32,
    ttl: Duration,
    /// What was said since it last went well.
    failed: AtomicBool,
    unreadable: AtomicBool,
}

impl JetStream {
    /// The leases of `shards` shards; presences of replicas go after `ttl`, in whole seconds. Nothing is asked of the server.
    #[must_use]
    pub fn leases(&self, shards: NonZeroU32, ttl: Duration) -> LeaseBucket {
        let (failed, unreadable) = (AtomicBool::default(), AtomicBool::default());
        LeaseBucket { bucket: self.bucket(LEASES), shards, ttl, failed, unreadable }
    }

    /// Which replicas say that they were refused shards, of those that are there.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses; a bucket that is absent holds nobody.
    pub async fn refusals(&self) -> Result<Vec<Difference>, BusError> {
        let entries = match self.bucket(LEASES).load(&[format!("{MEMBER}>")], None, PATIENCE).await {
            Err(BusError::Gone { .. }) => return Ok(Vec::new()),
            entries => entries?,
        };
        let told = entries.iter().filter_map(|entry| match Record::of(&entry.key)? {
            Record::Member(replica) => refused(&replica, &entry.value, entry.sequence),
            Record::Lease(_) => None,
        });
        let difference = |shown| match shown {
            Shown::Refused { replica, shards, .. } => {
                let shards: Vec<String> = shards.iter().map(u32::to_string).collect();
                let is = format!("refused shard {}", shards.join(" and "));
                Some(Difference { what: format!("replica {replica}"), is, should: "refused none".to_owned() })
            }
            _ => None,
        };
        Ok(told.filter_map(difference).collect())
    }
}

impl Store for LeaseBucket {
    async fn write(&self, lease: &Lease, expected: Option<u64>) -> LeaseWrite {
        let written = match expected {
            Some(sequence) => self.replace(lease, sequence).await,
            None => {
                let current = self.fill(lease.shard).await;
                current.map(|current| LeaseWrite::Refused { current: Some(current) })
            }
        };
        self.said(written).unwrap_or(LeaseWrite::Failed)
    }

    async fn announce(&self, presence: &Presence) {
        let key = format!("{MEMBER}{}", presence.replica);
        let written = self.bucket.put_for(&key, presence.encode().into(), self.ttl).await;
        self.said(written.map_err(bus));
    }

    async fn leave(&self, replica: &Replica) {
        let removed = self.bucket.remove(&format!("{MEMBER}{replica}"), Expect::Anything).await;
        self.said(removed.map_err(bus));
    }

    async fn watch(&self, out: mpsc::Sender<Shown>) {
        self.ensure().await;
        let mut watch = self.bucket.watch(&[format!("{LEASE}*"), format!("{MEMBER}>")]);
        let mut is_watched = false;
        loop {
            let told = tokio::select! {
                told = watch.next() => told,
                () = out.closed() => return,
            };
            let shown = match told {
                Watched::Listed { entries, .. } => {
                    is_watched = true;
                    self.listed(entries).await
                }
                Watched::Changed(change) => self.changed(change),
                Watched::Interrupted | Watched::Gone => {
                    std::mem::take(&mut is_watched).then_some(Shown::Unwatched).into_iter().collect()
                }
            };
            for shown in shown {
                if out.send(shown).await.is_err() {
                    return;
                }
            }
            if !is_watched {
                self.ensure().await;
            }
        }
    }
}

impl LeaseBucket {
    async fn replace(&self, lease: &Lease, sequence: u64) -> Result<LeaseWrite, BusError> {
        let key = key(lease.shard);
        match self.bucket.put(&key, lease.encode().into(), Expect::Last(sequence)).await {
            Ok(revision) => Ok(LeaseWrite::Granted { revision }),
            Err(PutError::Conflict) => {
                let current = self.bucket.get(&key).await?;
                Ok(LeaseWrite::Refused {
                    current: current.map(|(value, at)| (self.read(lease.shard, &value), at)),
                })
            }
            Err(PutError::Bus(error)) => Err(error),
        }
    }

    /// What there is of a shard; where there is nothing, that is written down.
    async fn fill(&self, shard: u32) -> Result<(Lease, u64), BusError> {
        let (key, unknown) = (key(shard), Lease::unknown(shard));
        match self.bucket.put(&key, unknown.encode().into(), Expect::Last(0)).await {
            Ok(sequence) => return Ok((unknown, sequence)),
            Err(PutError::Conflict) => {}
            Err(PutError::Bus(error)) => return Err(error),
        }
        if let Some((value, sequence)) = self.bucket.get(&key).await? {
            return Ok((self.read(shard, &value), sequence));
        }
        // Somebody removed it, and the mark of that stands there. Whom this write may overtake loses the lease, and
        // everybody waits for as long as it would have lived.
        let written = self.bucket.put(&key, unknown.encode().into(), Expect::Anything).await;
        written.map(|sequence| (unknown, sequence)).map_err(bus)
    }

    /// Makes the bucket where it is absent, and says what differs where it is there.
    async fn ensure(&self) {
        match self.bucket.ensure().await {
            Ok(found) => {
                for made in &found.created {
                    tracing::info!(made, "the bus held no leases: they begin anew");
                }
                for difference in &found.differences {
                    tracing::warn!(%difference, "the leases on the bus are not kept as they should be");
                }
            }
            Err(error) => {
                self.said::<()>(Err(error));
            }
        }
    }

    async fn listed(&self, entries: Vec<Entry>) -> Vec<Shown> {
        let (mut leases, mut members, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        for Entry { key, value, sequence } in entries {
            match Record::of(&key) {
                Some(Record::Lease(shard)) => leases.push((self.read(shard, &value), sequence)),
                Some(Record::Member(replica)) => {
                    shown.extend(refused(&replica, &value, sequence));
                    members.push((replica, sequence));
                }
                None => {}
            }
        }
        for shard in 0..self.shards.get() {
            if leases.iter().any(|(lease, _)| lease.shard == shard) {
                continue;
            }
            match self.fill(shard).await {
                Ok(filled) => leases.push(filled),
                // The next list, or a claim that is refused, tries again.
                Err(error) => {
                    self.said::<()>(Err(error));
                    break;
                }
            }
        }
        shown.push(Shown::Listed { leases, members });
        shown
    }

    fn changed(&self, change: Change) -> Vec<Shown> {
        let Change { key, value, sequence: revision } = change;
        let Some(record) = Record::of(&key) else { return Vec::new() };
        match (record, value) {
            (Record::Lease(shard), Some(value)) => {
                vec![Shown::Lease { lease: self.read(shard, &value), revision }]
            }
            (Record::Lease(shard), None) => vec![Shown::LeaseGone { shard }],
            (Record::Member(replica), Some(value)) => {
                let refused = refused(&replica, &value, revision);
                refused.into_iter().chain([Shown::Member { replica, revision }]).collect()
            }
            (Record::Member(replica), None) => vec![Shown::MemberGone { replica }],
        }
    }

    /// What cannot be read, or is of another shard, counts as somebody's of whom nothing is known.
    fn read(&self, shard: u32, value: &Bytes) -> Lease {
        match Lease::decode(value) {
            Ok(lease) if lease.shard == shard => return lease,
            Ok(_) => self.cannot_read(shard, None),
            Err(error) => self.cannot_read(shard, Some(&error)),
        }
        Lease::unknown(shard)
    }

    fn cannot_read(&self, shard: u32, error: Option<&(dyn std::error::Error + 'static)>) {
        if !self.unreadable.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                shard,
                error,
                "a lease on the bus cannot be read: it is replaced unless it is renewed"
            );
        }
    }

    /// Says a failure, once until something goes well; that the bus is away is said by its connection.
    fn said<T>(&self, result: Result<T, BusError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.failed.store(false, Ordering::Relaxed);
                Some(value)
            }
            Err(BusError::Away | BusError::NoAnswer | BusError::Gone { .. }) => None,
            Err(error) => {
                if !self.failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(error = &error as &dyn std::error::Error, "the bus does not keep leases");
                }
                None
            }
        }
    }
}

/// What a presence says of refused shards; nothing where it cannot be read, since being there is all that counts.
fn refused(replica: &Replica, value: &Bytes, revision: u64) -> Option<Shown> {
    let Presence { replica: told, refused: shards, .. } = Presence::decode(value).ok()?;
    let is_told = told == *replica && !shards.is_empty();
    is_told.then_some(Shown::Refused { replica: told, shards, revision })
}

/// What a key is of.
enum Record {
    Lease(u32),
    Member(Replica),
}

impl Record {
    fn of(key: &str) -> Option<Self> {
        match (key.strip_prefix(LEASE), key.strip_prefix(MEMBER)) {
            // A number has one way to be written: `lease.07` is nobody's.
            (Some(shard), _) => {
                shard.parse().ok().filter(|shard: &u32| self::key(*shard) == key).map(Self::Lease)
            }
            (_, Some(name)) => Replica::new(name).ok().map(Self::Member),
            _ => None,
        }
    }
}

fn key(shard: u32) -> String {
    format!("{LEASE}{shard}")
}

/// Where anything may stand there, there is no conflict.
fn bus(error: PutError) -> BusError {
    match error {
        PutError::Bus(error) => error,
        PutError::Conflict => BusError::NoAnswer,
    }
}
