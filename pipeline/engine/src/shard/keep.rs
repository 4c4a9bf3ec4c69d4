//! What a shard keeps beside acknowledgements, so that it outlives the process.

use std::time::Duration;

use pipeline_core::{Key, Pending, Record};

use super::journal::Journal;
use super::{RecoveredWork, Shard};
use crate::lane::{Input, Lane};
use pipeline_ledger::Ledger;

/// What is due within this time is written together.
const TOGETHER: Duration = Duration::from_millis(10);

/// What a shard keeps, of what, and where, at one moment.
pub(crate) struct Keeping<'a> {
    pub(crate) journal: &'a mut Journal,
    pub(crate) lane: &'a Lane,
    pub(crate) ledger: &'a Ledger,
    /// Since the engine started.
    pub(crate) now: Duration,
}

impl Keeping<'_> {
    /// Something happened to `key`; `refused` is whether it has just been refused for good.
    pub(crate) fn touched(&mut self, key: &Key, refused: bool) {
        if refused || self.journal.is_parked(key) {
            let how = self.lane.how_parked(key).cloned();
            if self.journal.parked(key, how.is_some(), refused) {
                self.ledger.park(key, how);
            }
        }
        // Of most events nothing is left by now: they brought nothing new.
        if (self.lane.may_be_pending(key) || self.journal.knows(key)) && self.journal.touched(key, self.now) {
            self.look(key);
        }
    }

    /// Writes what has been waiting long enough.
    pub(crate) fn due(&mut self) {
        while let Some(key) = self.journal.next(self.now) {
            self.look(&key);
        }
    }

    /// Writes everything that waits.
    pub(crate) fn all(&mut self) {
        for key in self.journal.all() {
            self.look(&key);
        }
    }

    fn look(&mut self, key: &Key) {
        let ledger = self.ledger;
        let pending = self.lane.pending(key).and_then(|pending| untold(pending, ledger.get(key)));
        self.journal.look(key, pending, self.now, |pending| ledger.journal(key, pending));
    }
}

impl Shard {
    /// Goes on with what an earlier process left.
    pub(super) fn restore(&mut self, left: RecoveredWork) {
        for (key, parked) in left.parked {
            self.journal.parked(&key, true, false);
            self.step(Input::Park { key, parked });
        }
        for (key, pending) in left.pending {
            self.journal.restored(&key, &pending);
            let awaited = left.goes_on && self.shared.ledger.done_before(key.kind()).is_some();
            self.step(Input::Restore { key, pending, awaited });
        }
        for (key, uid) in left.unfinished {
            self.step(Input::Replay { key, uid: Some(uid) });
        }
    }

    /// Something happened to `key`.
    pub(super) fn touched(&mut self, key: &Key) {
        let refused = self.refused.take_if(|refused| refused == key).is_some();
        self.keeping().touched(key, refused);
        self.rests(key);
    }

    /// Writes what has been waiting long enough.
    pub(super) fn keep(&mut self) {
        self.keeping().due();
    }

    /// Writes everything that waits.
    pub(super) fn keep_all(&mut self) {
        self.keeping().all();
    }

    fn keeping(&mut self) -> Keeping<'_> {
        let now = self.shared.now();
        Keeping { journal: &mut self.journal, lane: &self.lane, ledger: &self.shared.ledger, now }
    }
}

/// What remains of `pending` without the end that was told last: nearly every object shows the end of its last
/// operation, and a restart takes all of them in at once.
fn untold(mut pending: Pending, known: Option<Record>) -> Option<Pending> {
    if let Some(known) = known {
        pending.facts.retain(|(uid, _, end)| *uid != known.uid || !known.reported_last(end));
    }
    pending.if_any()
}

/// When what is `due` is written: a little later at most, so that what is due one after the other wakes its shard once.
pub(super) fn together(due: Duration) -> Duration {
    let passed = due.as_nanos() % TOGETHER.as_nanos();
    due + TOGETHER - Duration::from_nanos(u64::try_from(passed).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pipeline_core::{Digest, Fact, Uid, Version};

    use super::*;

    fn fact(uid: &str, second: u64) -> (Uid, Version, Fact) {
        (uid.into(), Version(second), Fact { id: Digest(second), body: Bytes::new() })
    }

    fn known(told: Digest) -> Option<Record> {
        Some(Record { fact: told, ..Record::new("b".into()) })
    }

    #[test]
    fn what_is_due_within_ten_milliseconds_is_written_at_one_time_and_never_before_it_is_due() {
        let (at, micros) = (Duration::from_millis, Duration::from_micros);
        for (due, written) in [
            (Duration::ZERO, at(10)),
            (micros(1), at(10)),
            (micros(9_999), at(10)),
            (at(10), at(20)),
            (micros(3_600_004_321), at(3_600_010)),
        ] {
            assert_eq!(together(due), written, "{due:?}");
        }
    }

    #[test]
    fn the_end_that_was_told_last_is_not_kept_until_its_delivery_is_settled() {
        let all = [fact("a", 1), fact("b", 2), fact("b", 3), fact("b", 4)];
        let pending = |facts: &[_], gone: &[_]| Pending { facts: facts.to_vec(), gone: gone.to_vec() };
        let second = all[2].2.id;
        let left = untold(pending(&all, &[]), known(second)).unwrap();
        let but_it = [all[0].clone(), all[1].clone(), all[3].clone()];
        assert_eq!(left, pending(&but_it, &[]), "of another life, earlier, or later");
        assert_eq!(untold(pending(&all[2..3], &[]), known(second)), None);
        let gone = [("a".into(), Version(1))];
        assert_eq!(untold(pending(&all[2..3], &gone), known(second)), Some(pending(&[], &gone)));
        for other in [None, known(Digest::NONE), known(all[0].2.id)] {
            assert_eq!(untold(pending(&all, &[]), other), Some(pending(&all, &[])));
        }
    }
}
