//! A step as it is kept: an eighth of its size, since some twenty steps are kept of each of thousands of applications.
//!
//! Times are kept to the hundredth of a millisecond up to six hours, then to the hundredth of a second, for up to eight
//! months; moments to the millisecond. Longer ones are kept as the longest. A clock that is set while an event is worked
//! on is followed by half a minute at most until the next event.

use std::time::Duration;

use pipeline_core::{Call, Filtered, Folded, Peer, Reason, ReportKind, Step, Timestamp, Version};

use super::Moment;
use super::known_labels::KnownLabels;

static CALLS: KnownLabels<Call> = KnownLabels::new();
static KINDS: KnownLabels<ReportKind> = KnownLabels::new();
static REASONS: KnownLabels<Filtered> = KnownLabels::new();

/// Of a place that none was given.
const NO_CALL: Call = Call::new(Peer::new("unknown"), "unknown");
const NO_KIND: ReportKind = ReportKind::of_object("unknown");

/// A span of time in four bytes.
#[derive(Debug, Clone, Copy)]
struct Took(u32);

/// Set where the rest counts hundredths of a second.
const COARSE: u32 = 1 << 31;

impl Took {
    fn of(time: Duration) -> Self {
        match u32::try_from(time.as_micros() / 10) {
            Ok(fine) if fine < COARSE => Self(fine),
            _ => Self(COARSE | u32::try_from(time.as_millis() / 10).unwrap_or(COARSE - 1).min(COARSE - 1)),
        }
    }

    fn time(self) -> Duration {
        match self.0 {
            fine if fine < COARSE => Duration::from_micros(u64::from(fine) * 10),
            coarse => Duration::from_millis(u64::from(coarse & !COARSE) * 10),
        }
    }
}

/// [`Step`], with [`Took`] for its times.
#[derive(Debug, Clone, Copy)]
enum Slim {
    Observed,
    Coalesced(Folded),
    Filtered(u8),
    Limited(Took),
    Started(u32),
    Fetched(u8, Option<Reason>, Took),
    Enriched(u16, Took),
    Reported(u8, Took),
    NotTaken(u8, Reason, Took),
    Acked(Took),
    Retried(Reason, Took),
    Parked(Reason),
    Reading,
    Owed(Took),
}

impl Slim {
    fn of(step: Step) -> Self {
        match step {
            Step::Observed => Self::Observed,
            Step::Coalesced(folded) => Self::Coalesced(folded),
            Step::Filtered(why) => Self::Filtered(REASONS.place(why)),
            Step::Limited(by) => Self::Limited(Took::of(by)),
            Step::Started { attempt } => Self::Started(attempt),
            Step::Fetched { call, took, failed } => Self::Fetched(CALLS.place(call), failed, Took::of(took)),
            Step::Enriched { reports, took } => {
                Self::Enriched(u16::try_from(reports).unwrap_or(u16::MAX), Took::of(took))
            }
            Step::Reported { kind, took } => Self::Reported(KINDS.place(kind), Took::of(took)),
            Step::NotTaken { kind, reason, took } => {
                Self::NotTaken(KINDS.place(kind), reason, Took::of(took))
            }
            Step::Acked { after } => Self::Acked(Took::of(after)),
            Step::Retried { reason, after } => Self::Retried(reason, Took::of(after)),
            Step::Parked(reason) => Self::Parked(reason),
            Step::Reading => Self::Reading,
            Step::Owed(after) => Self::Owed(Took::of(after)),
        }
    }

    fn step(self) -> Step {
        match self {
            Self::Observed => Step::Observed,
            Self::Coalesced(folded) => Step::Coalesced(folded),
            Self::Filtered(why) => Step::Filtered(REASONS.label(why).unwrap_or(Filtered::Unchanged)),
            Self::Limited(by) => Step::Limited(by.time()),
            Self::Started(attempt) => Step::Started { attempt },
            Self::Fetched(call, failed, took) => {
                Step::Fetched { call: CALLS.label(call).unwrap_or(NO_CALL), took: took.time(), failed }
            }
            Self::Enriched(reports, took) => Step::Enriched { reports: reports.into(), took: took.time() },
            Self::Reported(kind, took) => {
                Step::Reported { kind: KINDS.label(kind).unwrap_or(NO_KIND), took: took.time() }
            }
            Self::NotTaken(kind, reason, took) => {
                Step::NotTaken { kind: KINDS.label(kind).unwrap_or(NO_KIND), reason, took: took.time() }
            }
            Self::Acked(after) => Step::Acked { after: after.time() },
            Self::Retried(reason, after) => Step::Retried { reason, after: after.time() },
            Self::Parked(reason) => Step::Parked(reason),
            Self::Reading => Step::Reading,
            Self::Owed(after) => Step::Owed(after.time()),
        }
    }
}

/// Which state of which event a step is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose {
    version: Version,
    trace: [u8; 16],
    /// The wall clock of its first step, less when that was since the engine started, in milliseconds.
    started: i64,
}

impl Whose {
    pub(super) fn of(now: Duration, moment: &Moment) -> Self {
        let started = moment.at.as_millisecond().saturating_sub_unsigned(millis(now));
        Self { version: moment.version, trace: moment.trace.to_ne_bytes(), started }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        (self.version, self.trace) == (other.version, other.trace)
    }
}

/// One step of an event that stands beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    slim: Slim,
    /// Milliseconds since the engine started: the low 32 bits of them, and the eight above.
    low: u32,
    high: u8,
    /// The place of the event among those of its application.
    pub(super) whose: u8,
    /// By how much the wall clock differs from the event's.
    ahead: i16,
}

impl Kept {
    pub(super) fn new(now: Duration, moment: &Moment, event: &Whose, whose: u8) -> Self {
        let since = millis(now);
        let ahead = Whose::of(now, moment).started.saturating_sub(event.started);
        Self {
            slim: Slim::of(moment.step),
            low: since as u32,
            high: (since >> 32) as u8,
            whose,
            ahead: clamped(ahead),
        }
    }

    /// Milliseconds since the engine started: never goes back.
    pub(super) fn since(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    /// The same step beside another entry for its event.
    pub(super) fn beside(self, own: &Whose, event: &Whose, whose: u8) -> Self {
        let ahead = own.started.saturating_add(i64::from(self.ahead)).saturating_sub(event.started);
        Self { ahead: clamped(ahead), whose, ..self }
    }

    pub(super) fn step(&self) -> Step {
        self.slim.step()
    }

    pub(super) fn moment(&self, event: &Whose) -> Moment {
        let at = event.started.saturating_add(i64::from(self.ahead)).saturating_add_unsigned(self.since());
        let at = Timestamp::from_millisecond(at).unwrap_or_default();
        Moment { at, version: event.version, trace: u128::from_ne_bytes(event.trace), step: self.step() }
    }
}

/// Whole milliseconds, at most what five bytes hold: 34 years.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min((1 << 40) - 1)
}

fn clamped(milliseconds: i64) -> i16 {
    let least = if milliseconds < 0 { i16::MIN } else { i16::MAX };
    i16::try_from(milliseconds).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::new(Peer::new("peer"), "call");
    const LISTED: ReportKind = ReportKind::of_listed("listed");

    #[test]
    fn a_step_is_small_and_comes_back() {
        assert!(size_of::<Kept>() <= 16, "{}", size_of::<Kept>());
        let took = Duration::from_micros(12_340);
        let (kind, reason) = (LISTED, Reason::Timeout);
        for step in [
            Step::Observed,
            Step::Coalesced(Folded::Full),
            Step::Filtered(Filtered::Stale),
            Step::Limited(took),
            Step::Started { attempt: u32::MAX },
            Step::Fetched { call: CALL, took, failed: Some(reason) },
            Step::Fetched { call: CALL, took: Duration::ZERO, failed: None },
            Step::Enriched { reports: 61, took },
            Step::Reported { kind, took },
            Step::NotTaken { kind, reason, took },
            Step::Acked { after: Duration::from_secs(7 * 3600) },
            Step::Retried { reason, after: Duration::from_secs(86_400) },
            Step::Parked(reason),
            Step::Reading,
            Step::Owed(Duration::from_secs(60)),
        ] {
            assert_eq!(Slim::of(step).step(), step);
        }
    }

    #[test]
    fn a_step_comes_back_at_its_millisecond_whatever_the_clocks() {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        let moment =
            |ms| Moment { at: at(ms), version: Version(7), trace: u128::MAX - 3, step: Step::Reading };
        let day = Duration::from_secs(86_400);
        for (now, first, second) in [
            (Duration::ZERO, 0, 1),
            (Duration::from_millis(u32::MAX.into()), 1_700_000_000_123, 1_700_000_000_124),
            (day * 400, 1_700_000_000_123, 1_700_000_029_000),
            (day * 4000, 5, -20_000),
        ] {
            let event = Whose::of(now, &moment(first));
            let kept = Kept::new(now, &moment(first), &event, 3);
            assert_eq!((kept.moment(&event), u128::from(kept.since())), (moment(first), now.as_millis()));
            let other = Whose::of(now, &moment(second));
            let (moved, place) = (kept.beside(&event, &other, 9), 9);
            assert_eq!((moved.moment(&other), moved.whose), (moment(first), place));
            let later = Kept::new(now + Duration::from_millis(1), &moment(second), &event, 3);
            assert_eq!(later.moment(&event), moment(second));
        }
        let event = Whose::of(day, &moment(0));
        let set = Kept::new(day, &moment(3_600_000), &event, 0).moment(&event);
        assert_eq!(set.at, at(i16::MAX.into()), "a clock that is set by an hour meanwhile");
    }

    #[test]
    fn what_is_too_long_is_kept_as_the_longest() {
        let longest = Took::of(Duration::MAX).time();
        assert!(longest > Duration::from_secs(200 * 86_400), "{longest:?}");
        let Step::Enriched { reports, .. } =
            Slim::of(Step::Enriched { reports: 1 << 20, took: Duration::ZERO }).step()
        else {
            panic!("another step came back");
        };
        assert_eq!(reports, 65_535);
    }
}
