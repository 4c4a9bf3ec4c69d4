//! How far each stream was seen to be. One that is not as far any more went back: a server that lost its power, or whose storage was
//! restored, has the stream and not the end of it, though it had acknowledged that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The highest sequence of each stream that is known of, by the stream's name.
#[derive(Debug, Default)]
pub(super) struct Reached(Mutex<HashMap<String, u64>>);

impl Reached {
    fn all(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a stream is at least; 0 where nothing is known of it.
    pub(super) fn of(&self, stream: &str) -> u64 {
        self.all().get(stream).copied().unwrap_or_default()
    }

    /// A stream is at `now`, and was to be beyond `before`. Gives whether it went back; that is told once.
    pub(super) fn went_back(&self, stream: &str, before: u64, now: u64) -> bool {
        let mut all = self.all();
        let reached = all.entry(stream.to_owned()).or_default();
        let went_back = (1..=before).contains(&now) && *reached >= before;
        *reached = if went_back { now } else { now.max(*reached) };
        went_back
    }

    /// Forgets all: the streams are others.
    pub(super) fn clear(&self) {
        self.all().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_back_once_however_many_answers_say_so() {
        let reached = Reached::default();
        for now in [3, 1, 2, 9] {
            assert!(!reached.went_back("a", 0, now), "answers to what was sent together come in any order");
        }
        assert_eq!((reached.of("a"), reached.of("b")), (9, 0));
        assert!(!reached.went_back("a", 9, 10) && !reached.went_back("b", 0, 1));
        assert!(reached.went_back("a", 10, 7));
        assert!(!reached.went_back("a", 10, 8), "it was sent before that was known");
        assert!(!reached.went_back("a", 8, 9));
        reached.clear();
        assert!(!reached.went_back("a", 9, 1), "it is another stream");
    }
}
