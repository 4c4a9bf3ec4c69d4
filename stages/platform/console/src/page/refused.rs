//! What of a runtime's requests was not taken: why, how often, when last, and what to do.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use stages_platform_store::RefusedReports;

use super::pieces::{counted, glyph, number, prose};
use crate::time::{moment, since};

/// What was refused longer ago is counted, and no more than that.
const LATELY: SignedDuration = SignedDuration::from_hours(24);

/// What to do about the reasons that somebody can do something about.
fn cure(reason: &str) -> &'static str {
    match reason {
        "malformed" => {
            "They are no reports as this platform knows them. `gitops-runtime parked` says there which they are."
        }
        "too_large" => "They are larger than `platformServer.ingest.maxBody` or `maxUnpacked` lets in.",
        "late" => {
            "They broke off, or took longer than `platformServer.ingest.bodyTimeout`: look at the way between."
        }
        "outdated" => {
            "Another replica had taken the application over: where that lasts, two runtimes have one name."
        }
        "quota" => {
            "More came at a time than `platformServer.ingest.runtimeRequests` and `runtimeBytes` let in; they come again."
        }
        "busy" => {
            "The platform had as much under way as `platformServer.ingest.allBytes` lets in; they come again."
        }
        "store" => "The store could not be written; they come again. The platform's log says why.",
        "unauthorized" => {
            "Their token is not known: it was taken back, or is of another platform. Another is made under Settings, Runtime tokens."
        }
        _ => "The platform's log says more.",
    }
}

/// How many were refused in all; more than a number where one was lately.
pub(super) fn count(refused: &[RefusedReports], now: Timestamp) -> Markup {
    let all: u64 = refused.iter().map(|one| one.number).sum();
    html! {
        @if refused.iter().any(|one| is_late(one, now)) { span.warn { (number(all)) } } @else { span.mute { (number(all)) } }
    }
}

/// Each reason for which one was refused lately; nothing where none was.
pub(super) fn lines(refused: &[RefusedReports], now: Timestamp) -> Markup {
    html! {
        @for one in refused.iter().filter(|one| is_late(one, now)) {
            li {
                (glyph("warn", "refused", "▲"))
                div {
                    p { b { (counted(one.number, "request")) " not taken" } ": "
                        (one.reason.replace('_', " ")) ", the last " (since(moment(one.at), now)) }
                    p.cure { span.mute { "What to do: " } (prose(cure(&one.reason))) }
                }
            }
        }
    }
}

fn is_late(one: &RefusedReports, now: Timestamp) -> bool {
    now.duration_since(moment(one.at)) < LATELY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_lately_is_told_with_what_to_do_and_what_is_long_past_is_a_number() {
        let now: Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let one = |reason: &str, number: u64, hours: i64| RefusedReports {
            reason: reason.to_owned(),
            number,
            at: (now - SignedDuration::from_hours(hours)).as_millisecond(),
        };
        let lately = [one("too_large", 1, 2), one("quota", 7, 30)];
        assert_eq!(count(&lately, now).0, "<span class=\"warn\">8</span>");
        let told = lines(&lately, now).0;
        assert!(told.contains("<b>1 request not taken</b>: too large, the last "), "{told}");
        assert!(told.contains("<code>platformServer.ingest.maxBody</code>") && !told.contains("7"), "{told}");
        let past = [one("quota", 7, 30)];
        assert_eq!(
            (count(&past, now).0, lines(&past, now).0),
            ("<span class=\"mute\">7</span>".to_owned(), String::new())
        );
    }
}
