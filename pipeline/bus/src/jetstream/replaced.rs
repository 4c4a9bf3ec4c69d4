//! How many states were replaced by newer ones before a consumer saw them.
//!
//! The sequences of a stream do not tell it: between two messages of one shard stand those of all others. So each publisher
//! numbers what it publishes of a source and shard, and says beside the number how many of those before it never came to
//! be stored (refused, duplicates). A consumer compares that with what it received. It is a figure for a metric: exact
//! where answers come before the next message is sent, and too high for a while where they come later; a publish without
//! an answer counts as stored, and messages before the first of a publisher are not counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::HeaderMap;

use crate::Subject;

/// The header that holds it: `<publisher>.<number>.<void>`.
pub(super) const ORDINAL: &str = "ordinal";

/// Publishers, sources and shards that a consumer follows at a time; beyond that it begins anew.
const MAX_FOLLOWED: usize = 4_096;

/// The numbers of one publisher.
#[derive(Debug)]
pub(super) struct Numbers {
    publisher: u64,
    of: Mutex<HashMap<(String, u32), Count>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    number: u64,
    void: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { publisher: fastrand::u64(..), of: Mutex::default() }
    }
}

/// The number of one message.
#[derive(Debug)]
pub(super) struct Numbered {
    numbers: Arc<Numbers>,
    at: (String, u32),
    count: Count,
}

impl Numbered {
    pub(super) fn next(numbers: &Arc<Numbers>, source: &str, shard: u32) -> Self {
        let at = (source.to_owned(), shard);
        let mut of = numbers.of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of.entry(at.clone()).or_default();
        count.number += 1;
        let count = *count;
        drop(of);
        Self { numbers: Arc::clone(numbers), at, count }
    }

    /// It was not stored.
    pub(super) fn void(self) {
        let mut of = self.numbers.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of.get_mut(&self.at) {
            count.void += 1;
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:x}.{}.{}", self.numbers.publisher, self.count.number, self.count.void)
    }
}

/// What one consumer received.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    of: HashMap<(u64, String, u32), Received>,
}

#[derive(Debug)]
struct Received {
    /// Messages stored before the first that was received.
    before: u64,
    messages: u64,
    told: u64,
}

impl Replaced {
    /// How many more messages are known to have been replaced, now that this one was received for the first time.
    pub(super) fn news(&mut self, subject: &Subject, headers: Option<&HeaderMap>) -> u64 {
        let ordinal = headers.and_then(|headers| headers.get(ORDINAL));
        let Some((publisher, stored)) = ordinal.and_then(|text| parse(text.as_str())) else { return 0 };
        if self.of.len() >= MAX_FOLLOWED {
            self.of.clear();
        }
        let of = self.of.entry((publisher, subject.source.clone(), subject.shard));
        let of = of.or_insert_with(|| Received { before: stored.saturating_sub(1), messages: 0, told: 0 });
        of.messages += 1;
        let missing = stored.saturating_sub(of.before).saturating_sub(of.messages);
        let news = missing.saturating_sub(of.told);
        of.told += news;
        news
    }
}

/// The publisher, and how many messages it had stored with this one.
fn parse(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.splitn(3, '.');
    let (publisher, number, void) = (parts.next()?, parts.next()?, parts.next()?);
    let stored = number.parse::<u64>().ok()?.checked_sub(void.parse().ok()?)?;
    Some((u64::from_str_radix(publisher, 16).ok()?, stored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slot;

    fn subject(shard: u32) -> Subject {
        let source = "applications".to_owned();
        Subject { source, shard, uid: "u".into(), slot: Slot::State, about: None }
    }

    fn header(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ORDINAL, text);
        headers
    }

    #[test]
    fn what_is_missing_between_two_messages_was_replaced() {
        let numbers = Arc::new(Numbers::default());
        let mut seen = Replaced::default();
        let mut receive =
            |numbered: &Numbered, shard| seen.news(&subject(shard), Some(&header(&numbered.text())));
        let next = |shard| Numbered::next(&numbers, "applications", shard);
        next(0);
        assert_eq!(receive(&next(0), 0), 0, "what was before the first is not counted");
        assert_eq!(receive(&next(0), 0), 0);
        next(0);
        next(0);
        assert_eq!(receive(&next(1), 1), 0, "each shard has numbers of its own");
        assert_eq!(receive(&next(0), 0), 2);
        assert_eq!(receive(&next(0), 0), 0, "each is told once");
        next(0).void();
        assert_eq!(receive(&next(0), 0), 0, "what was refused was not replaced");
    }

    #[test]
    fn an_answer_that_comes_late_is_made_good() {
        let numbers = Arc::new(Numbers::default());
        let mut seen = Replaced::default();
        let mut receive = |numbered: &Numbered| seen.news(&subject(0), Some(&header(&numbered.text())));
        let next = || Numbered::next(&numbers, "applications", 0);
        receive(&next());
        let refused = next();
        assert_eq!(receive(&next()), 1, "it looks replaced");
        refused.void();
        next();
        assert_eq!(receive(&next()), 0, "the one that was replaced takes its place");
        next();
        assert_eq!(receive(&next()), 1);
    }

    #[test]
    fn any_header_is_a_number_or_nothing() {
        let mut seen = Replaced::default();
        assert_eq!(seen.news(&subject(0), None), 0);
        for text in
            ["", "1", "1.2", "x.2.0", "1.x.0", "1.2.3", "1.99999999999999999999.0", "1.2.0.9", "-1.2.0"]
        {
            assert_eq!(seen.news(&subject(0), Some(&header(text))), 0, "{text}");
        }
        assert!(seen.of.is_empty(), "none of them is a number");
        assert_eq!(seen.news(&subject(0), Some(&header("1.1.0"))), 0);
        assert_eq!(seen.news(&subject(0), Some(&header("1.18446744073709551615.0"))), u64::MAX - 2);
        for publisher in 0..u64::try_from(MAX_FOLLOWED).unwrap() * 2 {
            seen.news(&subject(0), Some(&header(&format!("{publisher:x}.1.0"))));
            assert!(seen.of.len() <= MAX_FOLLOWED);
        }
    }
}
