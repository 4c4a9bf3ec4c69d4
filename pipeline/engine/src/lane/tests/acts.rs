//! What may happen to the model's world, and the lanes it happens to.

use proptest::prelude::*;

use super::*;
use crate::limit::RateLimit;

/// One thing that happens in the world or around the lane; numbers choose among what is there.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// An object changes, is created, or ends an operation.
    Change {
        key: usize,
        ends: bool,
    },
    Delete {
        key: usize,
    },
    /// The watch delivers its next event.
    Deliver,
    /// The watch repeats an old event.
    Repeat {
        which: usize,
    },
    Turn {
        which: usize,
        how: How,
    },
    Read {
        which: usize,
        how: u8,
    },
    Replay {
        key: usize,
    },
    Pass {
        millis: u64,
    },
    Pause,
    Resume,
    Probe,
    /// What must outlive the process is written down.
    Journal {
        key: usize,
    },
    /// The process is killed, and another one lists everything.
    Crash,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    Acked,
    Incomplete,
    Filtered,
    Retry(Blame),
    Reject,
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let key = 0..3_usize;
    let how = prop_oneof![
        5 => Just(How::Acked),
        1 => Just(How::Incomplete),
        1 => Just(How::Filtered),
        2 => Just(How::Retry(Blame::Sink)),
        1 => Just(How::Retry(Blame::Enrich)),
        1 => Just(How::Reject),
    ];
    prop_oneof![
        8 => (key.clone(), any::<bool>()).prop_map(|(key, ends)| Act::Change { key, ends }),
        2 => key.clone().prop_map(|key| Act::Delete { key }),
        12 => Just(Act::Deliver),
        1 => any::<usize>().prop_map(|which| Act::Repeat { which }),
        8 => (any::<usize>(), how).prop_map(|(which, how)| Act::Turn { which, how }),
        6 => (any::<usize>(), any::<u8>()).prop_map(|(which, how)| Act::Read { which, how }),
        1 => key.clone().prop_map(|key| Act::Replay { key }),
        4 => key.prop_map(|key| Act::Journal { key }),
        1 => Just(Act::Crash),
        3 => (0..90_000_u64).prop_map(|millis| Act::Pass { millis }),
        1 => Just(Act::Pause),
        2 => Just(Act::Resume),
        1 => Just(Act::Probe),
    ]
}

pub(super) fn config() -> impl Strategy<Value = Config> {
    let bytes =
        prop_oneof![Just(u64::MAX), (0..6_u64).prop_map(|events| events * state("k0", 1).size() as u64)];
    let limit = prop_oneof![3 => Just(None), 1 => Just(Some(Duration::from_secs(20)))];
    (0..5_usize, 1..4_usize, 1..4_u64, 1..3_u64, bytes, limit).prop_map(
        |(queue_events, queue_events_per_key, concurrency, reads, queue_bytes, window)| Config {
            queue_events,
            queue_events_per_key,
            concurrency,
            reads,
            queue_bytes,
            rate_limit: window.map(|window| RateLimit {
                events: NonZeroU32::new(2).unwrap(),
                window,
                learning: false,
            }),
            ..Config::default()
        },
    )
}
