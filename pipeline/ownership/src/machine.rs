//! The state machine of one replica.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::input::{Action, Input, LeaseTerm, Purpose, Refusal, Request, StopHow, Write};
use super::mine::{HeldLease, Mine, Pending, Work};
use super::view::{Record, View};
use super::{Config, LeaseWrite, Replica, Shown, place_allowed};

/// What one replica owns, and what it does about that: a pure state machine.
///
/// Times are those of one monotonic clock, from any beginning. It must go on while the process is paused, and it is no
/// harm if it goes on while the machine sleeps.
#[derive(Debug, Clone)]
pub struct Ownership {
    config: Config,
    me: Replica,
    view: View,
    shards: Vec<Mine>,
    /// Shards that this replica may not claim, and since when.
    refused: BTreeMap<u32, Duration>,
    requests: u64,
    announced: Option<Duration>,
    stopping: bool,
    now: Duration,
}

impl Ownership {
    /// A replica that owns nothing yet, and knows nothing.
    #[must_use]
    pub fn new(config: Config, me: Replica) -> Self {
        Self {
            view: View::new(&config),
            shards: vec![Mine::No(Duration::ZERO); config.shards.get() as usize],
            config,
            me,
            refused: BTreeMap::new(),
            requests: 0,
            announced: None,
            stopping: false,
            now: Duration::ZERO,
        }
    }

    /// Takes in what happened, and says what is to be done, in this order.
    ///
    /// A lease is counted from `now`, not from when the write that is asked for here goes out: to do what is said late is
    /// safe.
    pub fn step(&mut self, input: Input, now: Duration) -> Vec<Action> {
        self.now = self.now.max(now);
        let mut actions = Vec::new();
        // What has ended is not told to end.
        match input {
            Input::Drained { shard, epoch } => self.drained(shard, epoch),
            Input::Refused { shard, epoch, why } => {
                self.drained(shard, epoch);
                self.refused(shard, why);
            }
            _ => {}
        }
        self.lapse(&mut actions);
        self.take(input, &mut actions);
        self.forgive();
        self.announce(&mut actions);
        self.bring_about(&mut actions);
        actions
    }

    /// How long `shard` is owned, if it is; see [`LeaseTerm::may_send`].
    #[must_use]
    pub fn term(&self, shard: u32) -> Option<LeaseTerm> {
        match self.shards.get(shard as usize)? {
            Mine::HeldLease(held) if matches!(held.work, Work::Running | Work::Draining(_)) => {
                Some(held.term)
            }
            _ => None,
        }
    }

    /// Whether a report of `shard` that takes `post_timeout` at most may be sent; asked with the time of asking, however
    /// long ago the last step was. Whoever sends asks a [`crate::Fence`], which the driver keeps up to date.
    #[cfg(test)]
    pub(crate) fn may_send(&self, shard: u32, now: Duration, post_timeout: Duration) -> bool {
        self.term(shard).is_some_and(|term| term.may_send(now, post_timeout))
    }

    /// The shards that are owned, in order.
    #[must_use]
    pub fn owned(&self) -> Vec<u32> {
        (0..self.config.shards.get()).filter(|shard| self.term(*shard).is_some()).collect()
    }

    /// The replicas that are there, as far as is known, with this one.
    #[must_use]
    pub fn members(&self) -> BTreeSet<Replica> {
        let mut members = self.view.members(self.now);
        if self.stopping {
            members.remove(&self.me);
        } else {
            members.insert(self.me.clone());
        }
        members
    }

    /// Whether everything has been listed, and is watched since.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.view.is_listed()
    }

    /// Who owned a shard last, and in which epoch, as far as is known: whether the lease still lives is not asked.
    #[must_use]
    pub fn last_owner(&self, shard: u32) -> Option<(Replica, u64)> {
        self.view.last_owner(shard)
    }

    /// Whether somebody has `shard`, as far as is known.
    #[must_use]
    pub fn is_owned(&self, shard: u32) -> bool {
        self.view.is_listed() && self.view.owner(shard, self.now).is_some()
    }

    /// The shards that this replica was refused, and that it does not try again for now, in order.
    #[must_use]
    pub fn refusals(&self) -> Vec<u32> {
        self.refused.keys().copied().collect()
    }

    /// Whether the process was told to end, and owns nothing any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stopping && self.shards.iter().all(|mine| matches!(mine, Mine::No(_)))
    }

    /// Gives up every lease that has ended.
    fn lapse(&mut self, actions: &mut Vec<Action>) {
        for shard in 0..self.config.shards.get() {
            let Mine::HeldLease(held) = self.shards[shard as usize] else { continue };
            if self.now >= held.term.until {
                self.lose(shard, held, actions);
            }
        }
    }

    fn lose(&mut self, shard: u32, held: HeldLease, actions: &mut Vec<Action>) {
        let epoch = held.term.epoch;
        if matches!(held.work, Work::Running | Work::Draining(_)) {
            actions.push(Action::Stop { shard, epoch, how: StopHow::Now });
        }
        self.shards[shard as usize] = match held.work {
            Work::Drained => Mine::No(self.now),
            _ => Mine::Lost { epoch },
        };
    }

    fn take(&mut self, input: Input, actions: &mut Vec<Action>) {
        let now = self.now;
        match input {
            Input::Shown(Shown::Listed { leases, members }) => {
                self.view.list(leases, members, now);
                for shard in 0..self.config.shards.get() {
                    self.compare(shard, actions);
                }
            }
            Input::Shown(Shown::Unwatched) => self.view.unwatched(),
            Input::Shown(Shown::Lease { lease, revision }) => {
                let shard = lease.shard;
                self.view.lease(lease, revision, now);
                self.compare(shard, actions);
            }
            Input::Shown(Shown::LeaseGone { shard }) => {
                self.view.current(shard, None, now);
                self.compare(shard, actions);
            }
            Input::Shown(Shown::Member { replica, revision }) => self.view.beat(replica, revision, now),
            Input::Shown(Shown::Refused { replica, shards, revision }) => {
                self.view.refused(replica, shards, revision);
            }
            Input::Shown(Shown::MemberGone { replica }) => self.view.left(&replica),
            Input::Answered { request, shard, answer } => self.answered(request, shard, answer, actions),
            Input::Drained { .. } | Input::Refused { .. } | Input::Tick => {}
            Input::Stop => {
                if !self.stopping {
                    self.stopping = true;
                    // The others need not wait to know who is to have the shards.
                    actions.push(Action::Leave);
                }
            }
        }
    }

    /// Holds what is believed to be owned against the record that was seen.
    fn compare(&mut self, shard: u32, actions: &mut Vec<Action>) {
        let Some(Mine::HeldLease(mut held)) = self.shards.get(shard as usize).copied() else { return };
        match self.view.record(shard) {
            Some(record) if record.owner.as_ref() == Some(&self.me) && record.epoch == held.term.epoch => {
                // A renewal whose answer is late, or lost: the time it gives is that of the next one.
                held.revision = held.revision.max(record.revision);
                self.shards[shard as usize] = Mine::HeldLease(held);
            }
            // What was seen before this lease began.
            Some(record) if record.revision < held.revision => {}
            _ => self.lose(shard, held, actions),
        }
    }

    fn answered(&mut self, request: Request, shard: u32, answer: LeaseWrite, actions: &mut Vec<Action>) {
        match self.shards.get(shard as usize).copied() {
            Some(Mine::Acquiring(pending, epoch)) if pending.request == request => {
                self.answered_claim(shard, pending, epoch, answer, actions);
            }
            Some(Mine::HeldLease(HeldLease { pending: Some(pending), .. })) if pending.request == request => {
                self.answered_holder(shard, pending, answer, actions);
            }
            // The answer to a write that was given up.
            _ => {}
        }
    }

    /// Takes the answer to the write that claims a shard.
    fn answered_claim(
        &mut self,
        shard: u32,
        pending: Pending,
        epoch: u64,
        answer: LeaseWrite,
        actions: &mut Vec<Action>,
    ) {
        let now = self.now;
        self.shards[shard as usize] = Mine::No(now + self.config.tick);
        match answer {
            LeaseWrite::Granted { revision } => self.acquired(shard, pending, epoch, revision, actions),
            LeaseWrite::Refused { current } => {
                self.shards[shard as usize] = Mine::No(now);
                let current = current.map(|(lease, revision)| Record::of(lease, revision));
                self.view.current(shard, current, now);
            }
            LeaseWrite::Failed => {}
        }
    }

    /// Takes the answer to the write that renews a held lease, or gives it back.
    fn answered_holder(
        &mut self,
        shard: u32,
        pending: Pending,
        answer: LeaseWrite,
        actions: &mut Vec<Action>,
    ) {
        let now = self.now;
        let Some(Mine::HeldLease(mut held)) = self.shards.get(shard as usize).copied() else { return };
        held.pending = None;
        let epoch = held.term.epoch;
        match answer {
            LeaseWrite::Granted { revision } if pending.purpose == Purpose::Release => {
                self.shards[shard as usize] = Mine::No(now);
                self.view.current(shard, Some(Record { epoch, owner: None, revision }), now);
            }
            LeaseWrite::Granted { revision } => {
                held.revision = held.revision.max(revision);
                held.term.until = pending.sent + self.config.ttl;
                // What has drained meanwhile is given back at once.
                let drained = held.work == Work::Drained;
                held.next_write = if drained { now } else { pending.sent + self.config.renew };
                self.shards[shard as usize] = Mine::HeldLease(held);
                let owner = Some(self.me.clone());
                self.view.current(shard, Some(Record { epoch, owner, revision: held.revision }), now);
            }
            LeaseWrite::Refused { current } => {
                let current = current.map(|(lease, revision)| Record::of(lease, revision));
                let moved = current.as_ref().is_some_and(|current| current.revision != held.revision);
                held.next_write = if moved { now } else { now + self.config.tick };
                if let Some(current) = &current {
                    held.revision = current.revision;
                }
                self.shards[shard as usize] = Mine::HeldLease(held);
                self.view.current(shard, current, now);
                self.compare(shard, actions);
            }
            LeaseWrite::Failed => {
                held.next_write = now + self.config.tick;
                self.shards[shard as usize] = Mine::HeldLease(held);
            }
        }
    }

    fn acquired(
        &mut self,
        shard: u32,
        pending: Pending,
        epoch: u64,
        revision: u64,
        actions: &mut Vec<Action>,
    ) {
        self.view.current(shard, Some(Record { epoch, owner: Some(self.me.clone()), revision }), self.now);
        let term = LeaseTerm { epoch, until: pending.sent + self.config.ttl };
        if self.now >= term.until {
            return;
        }
        // Nothing is begun that would have to end at once.
        let work = if self.stopping { Work::Drained } else { Work::Running };
        if work == Work::Running {
            actions.push(Action::Start { shard, epoch });
        }
        let next_write = if self.stopping { self.now } else { pending.sent + self.config.renew };
        self.shards[shard as usize] =
            Mine::HeldLease(HeldLease { revision, term, work, pending: None, next_write });
    }

    fn drained(&mut self, shard: u32, epoch: u64) {
        let Some(mine) = self.shards.get_mut(shard as usize) else { return };
        match mine {
            Mine::HeldLease(held) if held.term.epoch == epoch => {
                held.work = Work::Drained;
                // A renewal that is under way is answered first.
                held.next_write = self.now;
            }
            Mine::Lost { epoch: lost } if *lost == epoch => *mine = Mine::No(self.now),
            _ => {}
        }
    }

    fn refused(&mut self, shard: u32, why: Refusal) {
        match why {
            Refusal::Epoch(found) => self.view.note_epoch(shard, found),
            Refusal::Foreign => {
                self.refused.insert(shard, self.now);
                // The others are to know before the lease is free.
                self.announced = None;
            }
        }
    }

    /// Forgets refusals that are long ago, of shards that nobody else can have either.
    fn forgive(&mut self) {
        let (now, again, before) = (self.now, self.config.again, self.refused.len());
        let view = &self.view;
        self.refused.retain(|shard, since| now < *since + again || view.owner(*shard, now).is_some());
        if self.refused.len() < before {
            self.announced = None;
        }
    }

    fn announce(&mut self, actions: &mut Vec<Action>) {
        let is_due = self.announced.is_none_or(|at| at + self.config.renew <= self.now);
        if !self.stopping && is_due {
            self.announced = Some(self.now);
            actions.push(Action::Announce);
        }
    }

    /// Renews, hands over, gives back and claims.
    fn bring_about(&mut self, actions: &mut Vec<Action>) {
        let members = self.members();
        let target: Vec<bool> = {
            let held = |shard: u32| match self.shards.get(shard as usize) {
                Some(Mine::HeldLease(held)) if held.work == Work::Running => Some(&self.me),
                Some(Mine::HeldLease(_)) => None,
                _ => self.view.owner(shard, self.now).filter(|owner| **owner != self.me),
            };
            let refuses = |replica: &Replica, shard: u32| match *replica == self.me {
                true => self.refused.contains_key(&shard),
                false => self.view.refuses(replica, shard),
            };
            let placed = place_allowed(self.config.shards, &members, held, refuses);
            let mine =
                |(shard, owner): (u32, &Replica)| *owner == self.me && !self.refused.contains_key(&shard);
            (0..).zip(placed).map(mine).collect()
        };
        for shard in 0..self.config.shards.get() {
            let is_mine = target.get(shard as usize).copied().unwrap_or(false);
            match self.shards[shard as usize] {
                Mine::No(not_before) if is_mine && self.now >= not_before && self.view.is_listed() => {
                    self.claim(shard, actions);
                }
                Mine::Acquiring(pending, _) if self.now >= pending.sent + self.config.answer => {
                    self.shards[shard as usize] = Mine::No(self.now);
                }
                Mine::HeldLease(held) => self.hold(shard, held, is_mine, actions),
                Mine::No(_) | Mine::Acquiring(..) | Mine::Lost { .. } => {}
            }
        }
    }

    fn claim(&mut self, shard: u32, actions: &mut Vec<Action>) {
        if !self.view.is_free(shard, &self.me, self.now) {
            return;
        }
        let (epoch, expected) =
            (self.view.next_epoch(shard, self.now), self.view.record(shard).map(|record| record.revision));
        self.view.note_epoch(shard, epoch);
        let owner = Some(self.me.clone());
        let pending = self.write(shard, Purpose::Acquire, epoch, owner, expected, actions);
        self.shards[shard as usize] = Mine::Acquiring(pending, epoch);
    }

    fn hold(&mut self, shard: u32, mut held: HeldLease, is_mine: bool, actions: &mut Vec<Action>) {
        let (now, epoch) = (self.now, held.term.epoch);
        match held.work {
            Work::Running if !is_mine => {
                held.work = Work::Draining(now);
                actions.push(Action::Stop { shard, epoch, how: StopHow::Drain });
            }
            Work::Draining(since) if now >= since + self.config.drain => {
                held.work = Work::Ending;
                actions.push(Action::Stop { shard, epoch, how: StopHow::Now });
            }
            _ => {}
        }
        if held.pending.is_some_and(|pending| now >= pending.sent + self.config.answer) {
            held.pending = None;
            held.next_write = now;
        }
        let (purpose, owner) = match held.work {
            Work::Running | Work::Draining(_) => (Some(Purpose::Renew), Some(self.me.clone())),
            Work::Drained => (Some(Purpose::Release), None),
            Work::Ending => (None, None),
        };
        if let (Some(purpose), None, true) = (purpose, held.pending, now >= held.next_write) {
            held.pending = Some(self.write(shard, purpose, epoch, owner, Some(held.revision), actions));
        }
        self.shards[shard as usize] = Mine::HeldLease(held);
    }

    fn write(
        &mut self,
        shard: u32,
        purpose: Purpose,
        epoch: u64,
        owner: Option<Replica>,
        expected: Option<u64>,
        actions: &mut Vec<Action>,
    ) -> Pending {
        self.requests += 1;
        let request = Request::new(self.requests);
        actions.push(Action::Write(Write { request, purpose, shard, epoch, owner, expected }));
        Pending { request, purpose, sent: self.now }
    }
}
