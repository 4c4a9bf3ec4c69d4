//! What a person asks of a shard, or whoever compares it with the cluster.

use pipeline_core::{Key, Parked, Record, Step, Timestamp, Uid, Version};
use tokio::sync::oneshot;

use super::Shard;
use crate::lane::{Input, Standing};
use pipeline_observe::top::Ranking;

/// What is asked of a shard.
pub(crate) enum Command {
    /// Read the key again; if `true`, report all of it, whatever was acknowledged.
    Replay(Key, bool),
    /// Read the key again, of which the receiver holds this life: where nothing is remembered of it, and it is not there, report that
    /// the life is over.
    ReplayHeld(Key, Uid),
    /// Read again what is held and of which nothing was acknowledged.
    ReadHeld,
    /// Tell what is known of a key.
    Explain(Key, oneshot::Sender<Explained>),
    /// Give up a parked key; answers whether it was parked.
    Discard(Key, oneshot::Sender<bool>),
    /// List what is parked.
    Parked(oneshot::Sender<Vec<(Key, Parked)>>),
    /// Tell what kept the shard busy: so many of each list.
    Top(usize, oneshot::Sender<Ranking>),
}

/// What a shard knows of one object.
#[derive(Debug, Clone)]
pub struct Explained {
    /// Which shard.
    pub shard: u32,
    /// What its lane holds of it; `None` when it is not busy.
    pub standing: Option<Standing>,
    /// How it was refused for good, if it was.
    pub parked: Option<Parked>,
    /// What was acknowledged.
    pub record: Option<Record>,
    /// What happened last, oldest first.
    pub moments: Vec<Moment>,
}

/// One step that an event took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Which state.
    pub version: Version,
    /// W3C trace id of the event's life.
    pub trace: u128,
    /// What happened.
    pub step: Step,
}

impl Shard {
    /// Does what is asked. Whoever asked may be gone by the time of the answer.
    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Replay(key, whole) => {
                if whole {
                    let doubted = |mut record: Record| {
                        record.doubt();
                        record
                    };
                    self.shared.ledger.update(&key, |record| record.map(doubted));
                }
                self.replay(key);
            }
            Command::ReplayHeld(key, uid) => {
                // Remembered as what was sent and not answered: all that is done for such an object, also by the next process, is done for
                // this one until its end is acknowledged.
                let held = |known: Option<Record>| {
                    known.or_else(|| {
                        let mut held = Record::new(uid);
                        held.doubt();
                        Some(held)
                    })
                };
                self.shared.ledger.update(&key, held);
                self.replay(key);
            }
            Command::ReadHeld => {
                for key in self.lane.held(self.shared.now()) {
                    if self.shared.ledger.get(&key).is_none() {
                        self.step(Input::Replay { key, uid: None });
                    }
                }
            }
            Command::Explain(key, answer) => {
                let explained = Explained {
                    shard: self.number,
                    standing: self.lane.standing(&key, self.shared.now()),
                    parked: self.lane.how_parked(&key).cloned(),
                    record: self.shared.ledger.get(&key),
                    moments: self.history.of(&key),
                };
                let _ = answer.send(explained);
            }
            Command::Discard(key, answer) => {
                let was = self.lane.how_parked(&key).is_some();
                self.step(Input::Discard { key });
                let _ = answer.send(was);
            }
            Command::Parked(answer) => {
                let list = self.lane.parked().map(|(key, parked)| (key.clone(), parked.clone()));
                let _ = answer.send(list.collect());
            }
            Command::Top(limit, answer) => {
                let _ = answer.send(self.top.ranking(limit, self.shared.now()));
            }
        }
    }

    fn replay(&mut self, key: Key) {
        let uid = self.shared.ledger.get(&key).map(|record| record.uid);
        self.step(Input::Replay { key, uid });
    }
}
