//! How far each stream was seen to be. One that is not as far any more went back: a server that lost its power, or whose storage was
//! restored, has the stream and not the end of it, though it had acknowledged that.
//!
//! A process that publishes finds that out by the answer to its next message, and says so beside all later ones: whoever only reads
//! may look when as much was published anew as was lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of how far streams are.
#[derive(Debug, Default)]
pub(super) struct Reached(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The highest sequence of each stream that is known of, by the stream's name.
    streams: HashMap<String, u64>,
    /// How often what stood there held no longer: what began before says nothing of what stands there now.
    losses: u64,
    /// The epoch in which this process publishes; 0 is none.
    epoch: u64,
    /// How many ends this process found lost in that epoch.
    lost_ends: u64,
    /// The newest epoch of a publisher who told of lost ends, and of how many.
    told: (u64, u64),
}

/// How far a stream is to be for whatever began at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    least: u64,
    losses: u64,
}

/// How far a stream was found to be.
#[derive(Debug)]
pub(super) struct StreamPosition {
    pub(super) stream: String,
    pub(super) mark: Mark,
    pub(super) sequence: u64,
}

impl Mark {
    /// A message that is sent now will be beyond.
    pub(super) fn beyond(self) -> Self {
        Self { least: self.least + 1, ..self }
    }
}

impl State {
    fn is_back(&self, found: &StreamPosition) -> bool {
        found.mark.losses == self.losses && found.sequence < found.mark.least
    }

    fn take_down(&mut self, found: &StreamPosition) {
        if found.mark.losses == self.losses {
            let reached = self.streams.entry(found.stream.clone()).or_default();
            *reached = found.sequence.max(*reached);
        }
    }
}

impl Reached {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a stream is at least; at 0 nothing is known of it.
    pub(super) fn mark(&self, stream: &str) -> Mark {
        let state = self.state();
        Mark { least: state.streams.get(stream).copied().unwrap_or_default(), losses: state.losses }
    }

    /// Whether a stream went back since what found it there began, which nobody was told yet. Else it is taken down how far it is.
    pub(super) fn went_back(&self, found: &StreamPosition) -> bool {
        let mut state = self.state();
        let is_back = state.is_back(found);
        if !is_back {
            state.take_down(found);
        }
        is_back
    }

    /// Takes down how far streams are; gives those that went back, once. Where something was made anew, a stream is as it was that
    /// `same` says so of.
    pub(super) fn heed<'a>(
        &self,
        all: &'a [StreamPosition],
        same: Option<&dyn Fn(&str) -> bool>,
    ) -> Vec<&'a str> {
        let (mut state, made_anew) = (self.state(), same.is_some());
        let is_same = |stream: &str| same.is_none_or(|same| same(stream));
        let back = all.iter().filter(|found| state.is_back(found)).map(|found| found.stream.as_str());
        let mut back: Vec<&str> = back.filter(|stream| is_same(stream)).collect();
        back.sort_unstable();
        back.dedup();
        state.streams.retain(|stream, _| !made_anew && !back.contains(&stream.as_str()));
        all.iter().for_each(|found| state.take_down(found));
        if !back.is_empty() {
            state.lost_ends += 1;
            state.told = state.told.max((state.epoch, state.lost_ends));
        }
        if made_anew || !back.is_empty() {
            state.losses += 1;
        }
        back
    }

    /// This process publishes in an epoch from now on, and begins with all there is.
    pub(super) fn publishes_in(&self, epoch: u64) {
        let mut state = self.state();
        (state.epoch, state.lost_ends) = (epoch, 0);
        state.told = state.told.max((epoch, 0));
    }

    /// What is said beside what this process publishes: how many ends it found lost.
    pub(super) fn lost_ends(&self) -> u64 {
        self.state().lost_ends
    }

    /// A message says how many ends its publisher had found lost. Gives whether that is news.
    pub(super) fn hear(&self, stream: &str, sequence: u64, (epoch, lost_ends): (u64, u64)) -> bool {
        let mut state = self.state();
        if lost_ends == 0 || (epoch, lost_ends) <= state.told {
            return false;
        }
        state.told = (epoch, lost_ends);
        state.streams.insert(stream.to_owned(), sequence);
        state.losses += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(stream: &str, mark: Mark, sequence: u64) -> StreamPosition {
        StreamPosition { stream: stream.to_owned(), mark, sequence }
    }

    /// A publish that was answered.
    fn answered(reached: &Reached, mark: Mark, sequence: u64) -> bool {
        reached.went_back(&found("a", mark, sequence))
    }

    #[test]
    fn a_stream_goes_back_once_however_many_answers_say_so() {
        let reached = Reached::default();
        let together = reached.mark("a").beyond();
        for sequence in [3, 1, 2, 9] {
            assert!(!answered(&reached, together, sequence), "they come in any order");
        }
        assert_eq!((reached.mark("a").least, reached.mark("b").least), (9, 0));
        let before = reached.mark("a").beyond();
        assert!(!answered(&reached, before, 10));
        let before = reached.mark("a").beyond();
        assert!(answered(&reached, before, 7));
        let all = [found("a", before, 7), found("a", reached.mark("a"), 8), found("b", reached.mark("b"), 1)];
        assert_eq!(reached.heed(&all, None), ["a"]);
        assert_eq!(reached.mark("a").least, 8);
        assert!(!answered(&reached, before, 8), "it was sent before that was known");
        assert!(!answered(&reached, before, 11), "and may be of the stream as it was");
        assert_eq!(reached.mark("a").least, 8);
        assert!(reached.heed(&all, None).is_empty(), "it is told once");
        assert!(!answered(&reached, reached.mark("a").beyond(), 9));
    }

    #[test]
    fn a_look_finds_a_stream_as_far_as_it_was_or_back() {
        let reached = Reached::default();
        assert!(reached.heed(&[found("a", reached.mark("a"), 0)], None).is_empty());
        assert!(reached.heed(&[found("a", reached.mark("a"), 4)], None).is_empty());
        assert!(reached.heed(&[found("a", reached.mark("a"), 4)], None).is_empty());
        assert_eq!(reached.heed(&[found("a", reached.mark("a"), 0)], None), ["a"]);
    }

    #[test]
    fn streams_that_were_made_anew_are_others() {
        let reached = Reached::default();
        answered(&reached, reached.mark("a").beyond(), 9);
        let before = reached.mark("a").beyond();
        assert!(reached.heed(&[], Some(&(|_: &str| false))).is_empty());
        assert!(!answered(&reached, before, 10), "a late answer says nothing of them");
        assert!(!answered(&reached, reached.mark("a").beyond(), 1));
        assert_eq!(reached.lost_ends(), 0);
    }

    #[test]
    fn a_stream_that_lost_its_end_with_a_durable_beside_it_has_lost_it_all_the_same() {
        let reached = Reached::default();
        answered(&reached, reached.mark("a").beyond(), 9);
        let all = [found("a", reached.mark("a"), 3)];
        assert_eq!(reached.heed(&all, Some(&(|stream: &str| stream == "a"))), ["a"]);
        assert_eq!(reached.lost_ends(), 1);
    }

    #[test]
    fn each_end_that_a_publisher_found_lost_is_news_once_and_to_itself_none() {
        let (one, other) = (Reached::default(), Reached::default());
        let lose = |reached: &Reached| {
            answered(reached, reached.mark("a").beyond(), 9);
            assert_eq!(reached.heed(&[found("a", reached.mark("a"), 1)], None), ["a"]);
        };
        for reached in [&one, &other] {
            lose(reached);
            lose(reached);
        }
        one.publishes_in(7);
        assert_eq!(one.lost_ends(), 0, "who begins to publish begins with all there is");
        for lost_ends in 1..=2 {
            lose(&one);
            assert_eq!(one.lost_ends(), lost_ends);
            let before = other.mark("a").beyond();
            let told = || [&one, &other].map(|of| of.hear("a", 5, (7, lost_ends)));
            assert_eq!((told(), told()), ([false, true], [false, false]));
            assert_eq!(other.mark("a").least, 5);
            assert!(!answered(&other, before, 1), "it is known");
        }
        assert!(!other.hear("a", 6, (7, 1)), "it comes late");
        assert!(!other.hear("a", 6, (8, 0)), "another publisher found none");
        assert!(other.hear("a", 6, (8, 1)));
        other.publishes_in(9);
        assert!(!other.hear("a", 6, (8, 2)), "who publishes began later");
    }
}
