//! A wall clock that is believed for as long as it goes on as time does.

use std::time::{Duration, Instant};

use crate::report::Millis;

/// So far a clock may run ahead between two looks and be believed.
const MARGIN: Duration = Duration::from_secs(60 * 60);

/// What a wall clock said last, and when that was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BelievedClock {
    wall: Millis,
    at: Instant,
}

impl BelievedClock {
    pub(crate) const fn new(wall: Millis, at: Instant) -> Self {
        Self { wall, at }
    }

    /// What the clock says, or `None` where it jumped ahead since the last look. One that stays there is believed from the next look
    /// on: a clock that was put right did so, and one that is wrong for a minute does not.
    pub(crate) fn look(&mut self, wall: Millis, at: Instant) -> Option<Millis> {
        let passed = at.saturating_duration_since(self.at).saturating_add(MARGIN);
        let latest = self.wall.saturating_add(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX));
        *self = Self::new(wall, at);
        (wall <= latest).then_some(wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_ahead_is_believed_once_it_has_stayed_there() {
        const DAY: Millis = 86_400_000;
        let begin = Instant::now();
        let at = |minutes: u64| begin + Duration::from_secs(60 * minutes);
        let mut clock = BelievedClock::new(DAY, begin);
        assert_eq!(clock.look(DAY + 60_000, at(1)), Some(DAY + 60_000));
        assert_eq!(clock.look(30 * DAY, at(2)), None, "it is wrong for a minute");
        assert_eq!(clock.look(DAY + 180_000, at(3)), Some(DAY + 180_000));
        assert_eq!(clock.look(30 * DAY, at(4)), None, "it is put right");
        assert_eq!(clock.look(30 * DAY + 60_000, at(5)), Some(30 * DAY + 60_000));
    }
}
