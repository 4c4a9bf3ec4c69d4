//! A step of an event as a sentence.

use pipeline_http::admin::wire::{Moment, Step};

use super::show::{count, span, word};

/// A step as a sentence.
pub(super) fn sentence(moment: &Moment) -> String {
    match &moment.step {
        Step::Observed if moment.version == 0 => "seen".to_owned(),
        Step::Observed => format!("seen at resourceVersion {}", moment.version),
        Step::Coalesced { why } => format!("folded into the newest state: {}", folded(why)),
        Step::Filtered { why } => format!("filtered: {}", filtered(why)),
        Step::Limited { seconds } => format!("delayed by the rate limit for {}", span(*seconds)),
        Step::Started { attempt: 0 } => "work on it began".to_owned(),
        Step::Started { attempt } => format!("try {} began", u64::from(*attempt) + 1),
        Step::Fetched { peer, call, seconds, failed: Some(why) } => {
            format!("{peer} {call} failed after {}: {}", span(*seconds), word(why))
        }
        Step::Fetched { peer, call, seconds, failed: None } if *seconds == 0.0 => {
            format!("{peer} {call} was at hand")
        }
        Step::Fetched { peer, call, seconds, failed: None } => {
            format!("{peer} {call} answered in {}", span(*seconds))
        }
        Step::Enriched { reports: 0, seconds } => format!("no report to make, found in {}", span(*seconds)),
        Step::Enriched { reports, seconds } => {
            format!("{} made in {}", count(*reports as u64, "report"), span(*seconds))
        }
        Step::Reported { kind, seconds } => {
            format!("the report of {} was acknowledged in {}", reported(kind), span(*seconds))
        }
        Step::NotTaken { kind, reason, seconds } => {
            format!(
                "the report of {} was not taken after {}: {}",
                reported(kind),
                span(*seconds),
                word(reason)
            )
        }
        Step::Acked { seconds } => format!("acknowledged {} after it was seen", span(*seconds)),
        Step::Retried { reason, seconds } => {
            format!("to be tried again in {}: {}", span(*seconds), word(reason))
        }
        Step::Parked { reason } => format!("parked, refused for good: {}", word(reason)),
        Step::Reading => "read again from the cluster".to_owned(),
        Step::Refetch { seconds } => format!("a fact is missing: looked at again in {}", span(*seconds)),
        Step::GaveUp { count: given } => {
            format!(
                "{} given up, the oldest: more came than are kept while it cannot be reported",
                count(*given, "fact")
            )
        }
    }
}

fn folded(why: &str) -> &str {
    match why {
        "full" => "the queue was full",
        "dirty" => "it was to be read again already",
        "limited" => "the rate limit delays it",
        "overtaken" => "a read has shown a newer one",
        "former" => "a later life of it is known",
        "retried" => "it had to be tried again, and there was no room to keep it",
        other => other,
    }
}

/// Why an event brought no report, for people.
pub(crate) fn filtered(why: &str) -> &str {
    match why {
        "unchanged" => "nothing that counts differs from what was acknowledged",
        "reconciled_only" => "only status.reconciledAt moved",
        "same_content" => "every report would have equalled its predecessor",
        "unmatched" => "it was read again, and is not what its route takes",
        "never_reported" => "it is deleted, and nothing of it was ever reported",
        "stale" => "this state is acknowledged already",
        "heartbeat" => "only members changed that nobody would call a change",
        "idle" => "nothing of it runs, and nothing did before",
        "excluded" => "the filter of its kind does not take it",
        "filter-unanswered" => "the filter of its kind has no answer for it",
        "other-application" => "it belongs to no application that its route takes",
        "no-route" => "no route takes it",
        "namespace" => "its namespace is not watched",
        other => other,
    }
}

fn reported(kind: &str) -> &str {
    match kind {
        "app" => "the application",
        "child_app" => "the child application",
        "resource" => "a resource",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(step: Step) -> String {
        let (app, trace) = ("argocd/shop".to_owned(), "0".repeat(32));
        sentence(&Moment {
            at: pipeline_core::Timestamp::UNIX_EPOCH,
            app,
            shard: 3,
            version: 123,
            trace,
            step,
        })
    }

    #[test]
    fn every_step_is_a_sentence() {
        let text = str::to_owned;
        for (step, expected) in [
            (Step::Observed, "seen at resourceVersion 123"),
            (Step::Coalesced { why: text("full") }, "folded into the newest state: the queue was full"),
            (Step::Filtered { why: text("reconciled_only") }, "filtered: only status.reconciledAt moved"),
            (Step::Limited { seconds: 60.0 }, "delayed by the rate limit for 60 s"),
            (Step::Started { attempt: 0 }, "work on it began"),
            (Step::Started { attempt: 2 }, "try 3 began"),
            (
                Step::Fetched {
                    peer: text("argocd"),
                    call: text("managed_resources"),
                    seconds: 30.0,
                    failed: Some(text("server_error")),
                },
                "argocd managed_resources failed after 30 s: server error",
            ),
            (
                Step::Fetched { peer: text("argocd"), call: text("manifests"), seconds: 0.0, failed: None },
                "argocd manifests was at hand",
            ),
            (
                Step::Fetched { peer: text("argocd"), call: text("manifests"), seconds: 0.2, failed: None },
                "argocd manifests answered in 200 ms",
            ),
            (Step::Enriched { reports: 0, seconds: 0.005 }, "no report to make, found in 5 ms"),
            (Step::Enriched { reports: 3, seconds: 0.21 }, "3 reports made in 210 ms"),
            (
                Step::Reported { kind: text("resource"), seconds: 0.03 },
                "the report of a resource was acknowledged in 30 ms",
            ),
            (
                Step::NotTaken { kind: text("app"), reason: text("refused"), seconds: 0.03 },
                "the report of the application was not taken after 30 ms: refused",
            ),
            (Step::Acked { seconds: 0.34 }, "acknowledged 340 ms after it was seen"),
            (Step::Retried { reason: text("timeout"), seconds: 2.0 }, "to be tried again in 2.0 s: timeout"),
            (Step::Parked { reason: text("refused") }, "parked, refused for good: refused"),
            (Step::Reading, "read again from the cluster"),
            (Step::Refetch { seconds: 60.0 }, "a fact is missing: looked at again in 60 s"),
            (
                Step::GaveUp { count: 2 },
                "2 facts given up, the oldest: more came than are kept while it cannot be reported",
            ),
        ] {
            assert_eq!(of(step), expected);
        }
    }

    /// A word that this version does not know is shown as it is.
    #[test]
    fn words_of_another_version_are_shown() {
        assert_eq!(of(Step::Filtered { why: "moonlight".to_owned() }), "filtered: moonlight");
    }
}
