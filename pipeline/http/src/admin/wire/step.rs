//! A step in the life of an event, as `explain` and `tail` tell it.

use pipeline_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::rounded;

/// One step of one event: in `explain`, and a line of `GET /v1/tail`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When it happened.
    pub at: Timestamp,
    /// The key of the application.
    pub app: String,
    /// The shard that it happened in.
    pub shard: u32,
    /// The version of the application; 0 when none is known yet.
    pub version: u64,
    /// W3C trace id of the event's life: 32 hexadecimal digits.
    pub trace: String,
    /// What happened.
    #[serde(flatten)]
    pub step: Step,
}

/// What happened to an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "step", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Step {
    /// It was taken in.
    Observed,
    /// Its state was folded into a newer one.
    Coalesced {
        /// `full`, `dirty`, `limited`, `overtaken`, `former` or `retried`.
        why: String,
    },
    /// It brought no report.
    Filtered {
        /// `unchanged`, `reconciled_only`, `same_content`, `never_reported`, `stale` or `unmatched`.
        why: String,
    },
    /// The rate limit delays it.
    Limited {
        /// By how many seconds.
        seconds: f64,
    },
    /// Its attempt began.
    Started {
        /// How often it was tried before.
        attempt: u32,
    },
    /// A call was made for it.
    Fetched {
        /// The peer that was called.
        peer: String,
        /// The call.
        call: String,
        /// How long it took; 0 when the answer was at hand.
        seconds: f64,
        /// Why it failed, if it did.
        failed: Option<String>,
    },
    /// Its reports are made.
    Enriched {
        /// How many there are.
        reports: usize,
        /// How long that took, calls included.
        seconds: f64,
    },
    /// One of its reports was acknowledged.
    Reported {
        /// `app`, `child_app` or `resource`.
        kind: String,
        /// How long the sink took.
        seconds: f64,
    },
    /// One of its reports was not taken.
    NotTaken {
        /// As above.
        kind: String,
        /// Why.
        reason: String,
        /// How long the sink took.
        seconds: f64,
    },
    /// Every one of its reports was acknowledged.
    Acked {
        /// So long after it was seen.
        seconds: f64,
    },
    /// It will be tried again.
    Retried {
        /// Why.
        reason: String,
        /// In so long.
        seconds: f64,
    },
    /// It was refused for good.
    Parked {
        /// Why.
        reason: String,
    },
    /// The object is being read again.
    Reading,
    /// Something is incomplete: it is looked at again.
    Refetch {
        /// In so long.
        seconds: f64,
    },
    /// More facts and deletions came than are kept while the object cannot be reported: the oldest were given up.
    GaveUp {
        /// So many.
        count: u64,
    },
}

impl Moment {
    /// What a lane told at `at`.
    #[must_use]
    pub fn new(at: Timestamp, shard: u32, trace: &pipeline_core::Trace) -> Self {
        Self {
            at: rounded(at),
            app: trace.key.to_string(),
            shard,
            version: trace.version.number(),
            trace: format!("{:032x}", trace.trace),
            step: trace.step.into(),
        }
    }
}

impl From<pipeline_core::Step> for Step {
    fn from(step: pipeline_core::Step) -> Self {
        use pipeline_core::Step as From;
        let text = |text: &str| text.to_owned();
        match step {
            From::Observed => Self::Observed,
            From::Coalesced(folded) => Self::Coalesced { why: text(folded.as_str()) },
            From::Filtered(why) => Self::Filtered { why: text(why.as_str()) },
            From::Limited(by) => Self::Limited { seconds: by.as_secs_f64() },
            From::Started { attempt } => Self::Started { attempt },
            From::Fetched { call, took, failed } => Self::Fetched {
                peer: text(call.peer().as_str()),
                call: text(call.as_str()),
                seconds: took.as_secs_f64(),
                failed: failed.map(|reason| text(reason.as_str())),
            },
            From::Enriched { reports, took } => Self::Enriched { reports, seconds: took.as_secs_f64() },
            From::Reported { kind, took } => {
                Self::Reported { kind: text(kind.as_str()), seconds: took.as_secs_f64() }
            }
            From::NotTaken { kind, reason, took } => Self::NotTaken {
                kind: text(kind.as_str()),
                reason: text(reason.as_str()),
                seconds: took.as_secs_f64(),
            },
            From::Acked { after } => Self::Acked { seconds: after.as_secs_f64() },
            From::Retried { reason, after } => {
                Self::Retried { reason: text(reason.as_str()), seconds: after.as_secs_f64() }
            }
            From::Parked(reason) => Self::Parked { reason: text(reason.as_str()) },
            From::Reading => Self::Reading,
            From::Refetch(after) => Self::Refetch { seconds: after.as_secs_f64() },
            From::GaveUp(count) => Self::GaveUp { count },
        }
    }
}

impl Step {
    /// The names of all steps, as `step` has them.
    pub const NAMES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pipeline_core::{Filtered, Reason, ReportKind};
    use serde_json::{Value, json};

    use super::*;

    const CALL: pipeline_core::Call =
        pipeline_core::Call::new(pipeline_core::Peer::new("argocd"), "managed_resources");
    const OBJECT: ReportKind = ReportKind::of_object("object");

    /// One of each kind.
    fn steps() -> Vec<pipeline_core::Step> {
        use pipeline_core::Step as S;
        let (took, reason) = (Duration::from_millis(30), Reason::Timeout);
        vec![
            S::Observed,
            S::Coalesced(pipeline_core::Folded::Full),
            S::Filtered(Filtered::Of("reconciled_only")),
            S::Limited(took),
            S::Started { attempt: 2 },
            S::Fetched { call: CALL, took, failed: Some(reason) },
            S::Enriched { reports: 3, took },
            S::Reported { kind: OBJECT, took },
            S::NotTaken { kind: OBJECT, reason, took },
            S::Acked { after: took },
            S::Retried { reason, after: took },
            S::Parked(Reason::Refused),
            S::Reading,
            S::Refetch(took),
            S::GaveUp(3),
        ]
    }

    #[test]
    fn every_step_has_its_name_and_is_read_as_it_was_written() {
        let mut names = Vec::new();
        for step in steps() {
            let step = Step::from(step);
            let written = serde_json::to_value(&step).unwrap();
            assert_eq!(written["step"], step.name());
            assert_eq!(serde_json::from_value::<Step>(written).unwrap(), step);
            names.push(step.name());
        }
        assert_eq!(names, Step::NAMES);
    }

    #[test]
    fn a_line_holds_these_fields() {
        let key = pipeline_core::Key::new("argocd", "shop").unwrap();
        let fetched = steps().swap_remove(5);
        let trace =
            pipeline_core::Trace { key, version: pipeline_core::Version(7), trace: 255, step: fetched };
        let at: Timestamp = "2026-11-21T10:00:00.1234567Z".parse().unwrap();
        let line = serde_json::to_value(Moment::new(at, 3, &trace)).unwrap();
        let expected: Value = json!({
            "at": "2026-11-21T10:00:00.123Z", "app": "argocd/shop", "shard": 3, "version": 7,
            "trace": "000000000000000000000000000000ff", "step": "fetched", "peer": "argocd",
            "call": "managed_resources", "seconds": 0.03, "failed": "timeout",
        });
        assert_eq!(line, expected);
    }
}
