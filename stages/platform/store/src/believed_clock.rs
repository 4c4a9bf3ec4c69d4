//! A wall clock that is believed for as long as it goes on as time does.

use std::time::{Duration, Instant};

use crate::report::Millis;

/// So far a clock may run ahead of what is known and be believed.
const MARGIN: Duration = Duration::from_secs(60 * 60);
/// One that is further ahead is believed once it has gone on as time does for so long. What is wrong is mostly put right before: a
/// machine asks others for the time soon after it starts.
const STEADY: Duration = Duration::from_secs(60 * 60);

/// What a wall clock said, and when that was.
#[derive(Debug, Clone, Copy)]
struct Reading {
    wall: Millis,
    at: Instant,
}

impl Reading {
    /// How far a later one is ahead of what it should say; negative: behind.
    fn ahead(self, later: Self) -> Millis {
        let passed = later.at.saturating_duration_since(self.at);
        later.wall.saturating_sub(self.wall).saturating_sub(millis(passed))
    }
}

/// A wall clock, looked at now and then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BelievedClock {
    believed: Reading,
    /// What it said last where it is ahead of that, and since when it says so.
    doubted: Option<(Reading, Instant)>,
}

/// What is thought of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is this time.
    Believed(Millis),
    /// It has jumped ahead by so much, as is seen now.
    Jumped(Duration),
    /// It has not gone on for long enough since it jumped.
    Doubted,
}

impl BelievedClock {
    /// One of which a moment is known that is over, such as the newest of what was kept.
    pub(crate) const fn new(wall: Millis, at: Instant) -> Self {
        Self { believed: Reading { wall, at }, doubted: None }
    }

    /// What is thought of it when it says that time.
    pub(crate) fn look(&mut self, wall: Millis, at: Instant) -> Look {
        let (now, margin) = (Reading { wall, at }, millis(MARGIN));
        let ahead = self.believed.ahead(now);
        if ahead > margin {
            let goes_on = self.doubted.filter(|(last, _)| last.ahead(now).abs() <= margin);
            let since = goes_on.map_or(at, |(_, since)| since);
            self.doubted = Some((now, since));
            if goes_on.is_none() {
                return Look::Jumped(Duration::from_millis(ahead.unsigned_abs()));
            }
            if at.saturating_duration_since(since) < STEADY {
                return Look::Doubted;
            }
        }
        *self = Self { believed: now, doubted: None };
        Look::Believed(wall)
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Millis = 60_000;
    const DAY: Millis = 1_440 * MINUTE;

    #[test]
    fn a_clock_that_jumps_ahead_is_believed_once_it_has_stayed_there() {
        let begin = Instant::now();
        let mut clock = BelievedClock::new(DAY, begin);
        // What it says at a minute: so many minutes, and so many days too many.
        let mut look = |minute: i64, days: i64| {
            let at = begin + Duration::from_secs(60 * minute.unsigned_abs());
            let wall = DAY + minute * MINUTE + days * DAY;
            match clock.look(wall, at) {
                Look::Believed(now) => {
                    assert_eq!(now, wall);
                    "believed"
                }
                Look::Jumped(_) => "jumped",
                Look::Doubted => "doubted",
            }
        };
        let all = [(1, 0), (2, 29), (3, 0), (4, 29), (5, 29), (63, 29), (64, 29), (65, 29)];
        let told = all.map(|(minute, days)| look(minute, days));
        let expected =
            ["believed", "jumped", "believed", "jumped", "doubted", "doubted", "believed", "believed"];
        assert_eq!(told, expected);
        // One that does not stay where it is begins anew.
        let all = [(70, 40), (71, 40), (120, 50), (131, 50), (179, 50), (180, 50), (181, 29)];
        let told = all.map(|(minute, days)| look(minute, days));
        let expected = ["jumped", "doubted", "jumped", "doubted", "doubted", "believed", "believed"];
        assert_eq!(told, expected);
    }

    #[test]
    fn how_far_it_is_ahead_is_told_once() {
        let begin = Instant::now();
        let mut clock = BelievedClock::new(DAY, begin);
        let later = begin + Duration::from_secs(60);
        assert_eq!(clock.look(3 * DAY + MINUTE, later), Look::Jumped(Duration::from_secs(2 * 86_400)));
        assert_eq!(clock.look(3 * DAY + MINUTE, later), Look::Doubted);
    }
}
