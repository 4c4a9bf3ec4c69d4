//! Tells the receiver at intervals, in short, what was acknowledged, and says when it holds something else.
//!
//! takes: the ledger's digest of each owned shard - gives: a log line when an answer changes - calls:
//! [`Sink::digest`](pipeline_core::Sink::digest), one shard after the other, within a bounded time - fails: never for anybody else; a receiver that
//! does not answer is said once, and asked again at the next interval; one that refuses the question less and less often
//!
//! A report that the receiver has and whose acknowledgement the ledger has not noted yet makes a difference for a
//! moment, and one whose answer was lost makes one until its entity is reported again. So "something else" counts only
//! when nothing of the shard was queued, waiting, in flight or to be read again, nothing of it is in doubt, and its
//! digest did not move meanwhile; and it is believed, and said, when it counted two times in a row. A shard that is
//! never at rest is never accused; `gitops-runtime verify` compares one object after the other, and waits for
//! each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{
    Backoff, CircuitState, Compared, DigestOutcome, Key, ShardDigest, Shutdown, StageError, Timestamp,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::run::{Config, Handle};
use crate::shard::Shared;
use pipeline_ledger::AckedDigest;

/// A receiver answers for one shard within this time.
const ASK: Duration = Duration::from_secs(10);
/// A receiver that refuses the question is asked again no later: one that answers once more hears, by that, that a reporter lives
/// of which nothing changes, before it takes it for dead.
const REFUSED: Duration = Duration::from_secs(600);
/// So often in a row "something else" must count to be believed.
const BELIEVED: u32 = 2;

/// Why nothing was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failed {
    /// The receiver did not answer, or may answer the same question later.
    Away,
    /// It does not take such a question.
    Refused,
}

/// What was said last of one shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Opinion {
    /// What was believed last.
    believed: Option<bool>,
    /// How often in a row "something else" counted.
    doubts: u32,
}

impl Opinion {
    /// Takes an answer; gives whether the receiver holds the same, when that is news.
    fn hear(&mut self, told: DigestOutcome) -> Option<bool> {
        let same = match told {
            DigestOutcome::Unsettled | DigestOutcome::Unknown | DigestOutcome::Failed => return None,
            DigestOutcome::Equal => true,
            DigestOutcome::Differs => false,
        };
        self.doubts = if same { 0 } else { self.doubts.saturating_add(1) };
        if !same && self.doubts < BELIEVED {
            return None;
        }
        (self.believed.replace(same) != Some(same)).then_some(same)
    }
}

/// Asks about every owned shard each `every`, until `stop`.
pub(crate) async fn watch(
    shared: Arc<Shared>,
    config: Config,
    handle: Handle,
    every: Duration,
    stop: Shutdown,
) {
    let every = every.max(Duration::from_millis(1));
    let mut tick = interval_at(Instant::now() + every, every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut opinions = BTreeMap::new();
    let backoff = Backoff { min: every, max: REFUSED.max(every) };
    let (mut failed, mut refusals, mut again) = (None, 0, Instant::now());
    loop {
        let round = async {
            tick.tick().await;
            // A receiver that takes no reports is not bothered with questions.
            if Instant::now() >= again && matches!(handle.status().circuit, CircuitState::Closed) {
                failed = round(&shared, &config, &handle, &mut opinions, failed.is_some()).await;
                refusals = if failed == Some(Failed::Refused) { refusals + 1 } else { 0 };
                if refusals > 0 {
                    again = Instant::now() + backoff.wait(refusals, None, fastrand::u64(..));
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = round => {}
        }
    }
}

/// Asks about every owned shard once; gives why that failed, if it did. When it fails for one, or the receiver says that it does not
/// compare, the others are left for the next time.
async fn round(
    shared: &Shared,
    config: &Config,
    handle: &Handle,
    opinions: &mut BTreeMap<u32, Opinion>,
    had_failed: bool,
) -> Option<Failed> {
    for (shard, _) in handle.status().shards {
        let asked = ask(shared, config, handle, shard).await;
        shared.metrics.digest(*asked.as_ref().unwrap_or(&DigestOutcome::Failed));
        match asked {
            Ok(DigestOutcome::Unknown) => break,
            Ok(told) => match opinions.entry(shard).or_default().hear(told) {
                Some(true) => tracing::info!(shard, "the receiver holds the same"),
                Some(false) => tracing::warn!(
                    shard,
                    "the receiver holds something else than what it acknowledged: run `gitops-runtime verify`"
                ),
                None => {}
            },
            Err(error) => {
                let is_refused = matches!(error, Some(StageError::Reject { .. }));
                let error = error.as_ref().map(|error| error as &dyn std::error::Error);
                if had_failed {
                    tracing::debug!(shard, error, "cannot hand over a digest");
                } else {
                    tracing::warn!(shard, error, "cannot hand over a digest");
                }
                return Some(if is_refused { Failed::Refused } else { Failed::Away });
            }
        }
    }
    if had_failed {
        tracing::info!("digests are handed over again");
    }
    None
}

/// Asks about one shard. An error of nothing is a time-out.
async fn ask(
    shared: &Shared,
    config: &Config,
    handle: &Handle,
    shard: u32,
) -> Result<DigestOutcome, Option<StageError>> {
    let calm = is_calm(handle, shard);
    let before = acknowledged(shared, config, shard).await;
    let digest = ShardDigest {
        ledger: shared.ledger.id_of_shard(shard).to_string(),
        shard,
        shards: config.sharding.shards().get(),
        objects: before.objects,
        entities: before.entities,
        digest: before.digest,
        at: Timestamp::now(),
    };
    let compared = match timeout(ASK, shared.sink.digest(&digest)).await {
        Ok(answer) => answer.map_err(Some)?,
        Err(_) => return Err(None),
    };
    Ok(match compared {
        Compared::Equal => DigestOutcome::Equal,
        Compared::Unknown => DigestOutcome::Unknown,
        Compared::Differs => {
            let moved = acknowledged(shared, config, shard).await != before;
            let calm = calm && !moved && is_calm(handle, shard) && !is_in_doubt(shared, config, shard).await;
            if calm { DigestOutcome::Differs } else { DigestOutcome::Unsettled }
        }
    })
}

/// Whether of anything in the shard it is not known what the receiver holds.
async fn is_in_doubt(shared: &Shared, config: &Config, shard: u32) -> bool {
    let (ledger, sharding) = (shared.ledger.clone(), config.sharding);
    if ledger.status().in_doubt == 0 {
        return false;
    }
    let look = move || {
        let mut here = ledger.known().into_iter().filter(|(key, _)| sharding.place(key) == shard);
        here.any(|(key, _)| ledger.get(&key).is_some_and(|record| record.is_in_doubt()))
    };
    // Without an answer nobody is accused.
    tokio::task::spawn_blocking(look).await.unwrap_or(true)
}

async fn acknowledged(shared: &Shared, config: &Config, shard: u32) -> AckedDigest {
    let (ledger, sharding) = (shared.ledger.clone(), config.sharding);
    let place = move |key: &Key| (sharding.place(key) == shard).then_some(shard);
    // The first time it digests every entity.
    let digests = tokio::task::spawn_blocking(move || ledger.digests(place)).await.unwrap_or_default();
    digests.get(&shard).copied().unwrap_or_default()
}

/// Nothing of the shard is under way, by what it told last.
fn is_calm(handle: &Handle, shard: u32) -> bool {
    let shards = handle.status().shards;
    shards.iter().any(|(number, counts)| *number == shard && counts.held() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_believed_the_second_time_and_said_once() {
        let mut opinion = Opinion::default();
        let told: Vec<_> = [
            DigestOutcome::Unknown,
            DigestOutcome::Differs,
            DigestOutcome::Unsettled,
            DigestOutcome::Differs,
            DigestOutcome::Differs,
            DigestOutcome::Equal,
            DigestOutcome::Equal,
            DigestOutcome::Differs,
            DigestOutcome::Equal,
            DigestOutcome::Differs,
            DigestOutcome::Failed,
            DigestOutcome::Differs,
        ]
        .map(|told| opinion.hear(told))
        .into();
        let (same, other) = (Some(true), Some(false));
        assert_eq!(
            told,
            [None, None, None, other, None, same, None, None, None, None, None, other],
            "a difference that passes is not one"
        );
    }

    #[test]
    fn a_receiver_that_holds_the_same_is_said_once() {
        let mut opinion = Opinion::default();
        assert_eq!(
            [DigestOutcome::Equal, DigestOutcome::Equal].map(|told| opinion.hear(told)),
            [Some(true), None]
        );
    }
}
