//! A wall clock that is believed for as long as it goes on as time does.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::report::Millis;

/// So far a clock may run ahead of what is known and be believed.
const MARGIN: Duration = Duration::from_secs(60 * 60);
/// One that is further ahead is believed once it has gone on as time does for so long, in however many processes. What is wrong is
/// mostly put right before: a machine asks others for the time soon after it starts.
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

/// A moment that clocks say is over, and are not believed yet: what one process leaves to the next.
///
/// The next one may run on another node, by another clock, and nobody knows for how long none ran. What it takes over counts for that
/// moment alone, and only where its own clock says as well that this is over: a clock that is right refutes one that was ahead of it,
/// and one that is further ahead lends the steadiness of the former to nothing that it alone says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoubtedMoment {
    /// In milliseconds since 1970.
    moment: Millis,
    /// For how many milliseconds clocks went on as time does while they said so.
    steady: u64,
}

/// A clock that is ahead of what is believed.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// What it said last.
    last: Reading,
    /// So far behind that is the moment that is in doubt: it is that of a process before.
    behind: Millis,
    /// For so long it has gone on as time does.
    steady: Duration,
}

impl Doubt {
    /// By the first reading that is ahead.
    fn begun(now: Reading, former: Option<DoubtedMoment>) -> Self {
        let says_so = |former: &DoubtedMoment| now.wall >= former.moment.saturating_sub(millis(MARGIN));
        former.filter(says_so).map_or(Self { last: now, behind: 0, steady: Duration::ZERO }, |former| Self {
            last: now,
            behind: now.wall.saturating_sub(former.moment).max(0),
            steady: Duration::from_millis(former.steady),
        })
    }

    /// With what it says now; `None`: it did not go on as time does.
    fn goes_on(self, now: Reading) -> Option<Self> {
        let passed = now.at.saturating_duration_since(self.last.at);
        let is_steady = self.last.ahead(now).abs() <= millis(MARGIN);
        is_steady.then(|| Self { last: now, steady: self.steady.saturating_add(passed), ..self })
    }

    fn moment(self) -> Millis {
        self.last.wall.saturating_sub(self.behind)
    }
}

/// A wall clock, looked at now and then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BelievedClock {
    believed: Reading,
    doubted: Option<Doubt>,
    /// What a process before left in doubt, until this clock is looked at.
    former: Option<DoubtedMoment>,
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
    pub(crate) const fn new(wall: Millis, at: Instant, former: Option<DoubtedMoment>) -> Self {
        Self { believed: Reading { wall, at }, doubted: None, former }
    }

    /// What is thought of it when it says that time.
    pub(crate) fn look(&mut self, wall: Millis, at: Instant) -> Look {
        let now = Reading { wall, at };
        let (ahead, former) = (self.believed.ahead(now), self.former.take());
        if ahead <= millis(MARGIN) {
            *self = Self::new(wall, at, None);
            return Look::Believed(wall);
        }
        let Some(doubt) = self.doubted.and_then(|doubt| doubt.goes_on(now)) else {
            self.doubted = Some(Doubt::begun(now, former));
            return Look::Jumped(Duration::from_millis(ahead.unsigned_abs()));
        };
        if doubt.steady < STEADY {
            self.doubted = Some(doubt);
            return Look::Doubted;
        }
        *self = Self::new(doubt.moment(), at, None);
        Look::Believed(doubt.moment())
    }

    /// What is in doubt since the last look, for the next process; `None`: it is believed, or nobody has looked yet.
    pub(crate) fn doubted(&self) -> Option<DoubtedMoment> {
        let of = |doubt: Doubt| DoubtedMoment {
            moment: doubt.moment(),
            steady: u64::try_from(doubt.steady.as_millis()).unwrap_or(u64::MAX),
        };
        self.doubted.map(of)
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
        let mut clock = BelievedClock::new(DAY, begin, None);
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
        let mut clock = BelievedClock::new(DAY, begin, None);
        let later = begin + Duration::from_secs(60);
        assert_eq!(clock.look(3 * DAY + MINUTE, later), Look::Jumped(Duration::from_secs(2 * 86_400)));
        assert_eq!(clock.look(3 * DAY + MINUTE, later), Look::Doubted);
    }

    /// A process that is told what the one before left: its clock is so many days ahead, looked at in these minutes of its own.
    fn run(former: Option<DoubtedMoment>, days: i64, minutes: &[i64]) -> (Vec<Look>, Option<DoubtedMoment>) {
        let begin = Instant::now();
        let mut clock = BelievedClock::new(DAY, begin, former);
        let look = |minute: &i64| {
            let at = begin + Duration::from_secs(60 * minute.unsigned_abs());
            clock.look((1 + days) * DAY + minute * MINUTE, at)
        };
        (minutes.iter().map(look).collect(), clock.doubted())
    }

    #[test]
    fn processes_that_all_end_soon_come_to_believe_a_clock_that_they_agree_on() {
        let jumped = |days: u64| Look::Jumped(Duration::from_secs(days * 86_400));
        let (told, left) = run(None, 30, &[0, 25]);
        assert_eq!(told, [jumped(30), Look::Doubted]);
        assert_eq!(left, Some(DoubtedMoment { moment: 31 * DAY + 25 * MINUTE, steady: 25 * 60_000 }));
        // Of a clock that goes on where the former stopped nothing else is asked.
        let (told, left) = run(left, 30, &[0, 25]);
        assert_eq!((told, left.unwrap().steady), (vec![jumped(30), Look::Doubted], 50 * 60_000));
        let (told, left) = run(left, 30, &[0, 9, 10]);
        let now = 31 * DAY + 10 * MINUTE;
        assert_eq!((told, left), (vec![jumped(30), Look::Doubted, Look::Believed(now)], None));
    }

    #[test]
    fn a_clock_further_ahead_confirms_the_moment_that_was_in_doubt_and_is_in_doubt_itself() {
        let (_, left) = run(None, 30, &[0, 50]);
        let (told, left) = run(left, 300, &[0, 5, 10, 11]);
        let over = 31 * DAY + 60 * MINUTE;
        assert_eq!((&told[1], &told[2]), (&Look::Doubted, &Look::Believed(over)));
        assert!(matches!(told[3], Look::Jumped(_)), "{told:?}");
        assert_eq!(left, Some(DoubtedMoment { moment: 301 * DAY + 11 * MINUTE, steady: 0 }));
    }

    #[test]
    fn a_clock_that_is_behind_what_was_in_doubt_refutes_it() {
        let (_, left) = run(None, 30, &[0, 59]);
        let (told, right) = run(left, 0, &[1]);
        assert_eq!((told, right), (vec![Look::Believed(DAY + MINUTE)], None));
        // Also where it is in doubt itself.
        let (told, left) = run(left, 2, &[0, 59]);
        assert_eq!(told[1], Look::Doubted);
        assert_eq!(left, Some(DoubtedMoment { moment: 3 * DAY + 59 * MINUTE, steady: 59 * 60_000 }));
    }
}
