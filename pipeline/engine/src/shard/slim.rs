//! A step as it is kept: a quarter of its size, since some twenty steps are kept of each of thousands of applications.
//!
//! Times are kept to the hundredth of a millisecond up to six hours, then to the hundredth of a second, for up to eight
//! months; moments to the millisecond. Longer ones are kept as the longest.

use std::time::Duration;

use pipeline_core::{Call, Filtered, Reason, ReportKind, Timestamp, Version};

use super::Moment;
use crate::lane::{Folded, Step};

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
    Filtered(Filtered),
    Limited(Took),
    Started(u32),
    Fetched(Call, Option<Reason>, Took),
    Enriched(u16, Took),
    Reported(ReportKind, Took),
    NotTaken(ReportKind, Reason, Took),
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
            Step::Filtered(why) => Self::Filtered(why),
            Step::Limited(by) => Self::Limited(Took::of(by)),
            Step::Started { attempt } => Self::Started(attempt),
            Step::Fetched { call, took, failed } => Self::Fetched(call, failed, Took::of(took)),
            Step::Enriched { reports, took } => {
                Self::Enriched(u16::try_from(reports).unwrap_or(u16::MAX), Took::of(took))
            }
            Step::Reported { kind, took } => Self::Reported(kind, Took::of(took)),
            Step::NotTaken { kind, reason, took } => Self::NotTaken(kind, reason, Took::of(took)),
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
            Self::Filtered(why) => Step::Filtered(why),
            Self::Limited(by) => Step::Limited(by.time()),
            Self::Started(attempt) => Step::Started { attempt },
            Self::Fetched(call, failed, took) => Step::Fetched { call, took: took.time(), failed },
            Self::Enriched(reports, took) => Step::Enriched { reports: reports.into(), took: took.time() },
            Self::Reported(kind, took) => Step::Reported { kind, took: took.time() },
            Self::NotTaken(kind, reason, took) => Step::NotTaken { kind, reason, took: took.time() },
            Self::Acked(after) => Step::Acked { after: after.time() },
            Self::Retried(reason, after) => Step::Retried { reason, after: after.time() },
            Self::Parked(reason) => Step::Parked(reason),
            Self::Reading => Step::Reading,
            Self::Owed(after) => Step::Owed(after.time()),
        }
    }
}

/// Which state of which event a step is of.
pub(super) type Whose = (Version, u128);

/// One step of an event that stands beside it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// Since the engine started, in milliseconds: never goes back.
    pub(super) since: u64,
    /// The wall clock, in milliseconds since 1970.
    at: i64,
    slim: Slim,
    /// The place of the event among those of its application.
    pub(super) whose: u8,
}

impl Kept {
    pub(super) fn new(now: Duration, moment: &Moment, whose: u8) -> Self {
        let since = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Self { since, at: moment.at.as_millisecond(), slim: Slim::of(moment.step), whose }
    }

    pub(super) fn step(&self) -> Step {
        self.slim.step()
    }

    pub(super) fn moment(&self, (version, trace): Whose) -> Moment {
        let at = Timestamp::from_millisecond(self.at).unwrap_or_default();
        Moment { at, version, trace, step: self.step() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_small_and_comes_back() {
        assert!(size_of::<Kept>() <= 32, "{}", size_of::<Kept>());
        let took = Duration::from_micros(12_340);
        let (kind, reason) = (ReportKind::Resource, Reason::Timeout);
        for step in [
            Step::Observed,
            Step::Coalesced(Folded::Full),
            Step::Filtered(Filtered::Stale),
            Step::Limited(took),
            Step::Started { attempt: u32::MAX },
            Step::Fetched { call: Call::Manifests, took, failed: Some(reason) },
            Step::Fetched { call: Call::Get, took: Duration::ZERO, failed: None },
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
