//! Times as people say them. The server writes UTC; the browser's script puts in the reader's own zone.

use jiff::Timestamp;
use maud::{Markup, html};

/// A moment of the store, in milliseconds since 1970.
pub(crate) fn moment(at: i64) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// "4 min", "3 h", "6 d".
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - at.as_second()).max(0);
    match seconds {
        0..=1 => "now".to_owned(),
        2..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// "41 s", "2 min", "1 h 5 min".
pub(crate) fn lasting(from: Timestamp, to: Timestamp) -> String {
    let seconds = (to.as_second() - from.as_second()).max(0);
    match seconds {
        0 => "under 1 s".to_owned(),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How long ago, kept up to date by the browser.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) data-ago title=(minute(at)) { (ago(at, now)) } }
}

/// The same at the end of a sentence: "6 s ago", and "now" by itself.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) data-ago="ago" title=(minute(at)) { (in_sentence(&ago(at, now))) } }
}

/// How long ago, at the end of a sentence.
pub(crate) fn in_sentence(ago: &str) -> String {
    if ago == "now" { ago.to_owned() } else { format!("{ago} ago") }
}

/// Day and minute.
pub(crate) fn absolute(at: Timestamp) -> Markup {
    html! { time datetime=(at) data-at { (minute(at)) } }
}

/// Hour and minute of what is less than a day ago, with its day before that.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> Markup {
    if now.as_second() - at.as_second() < 86_400 { clock(at) } else { absolute(at) }
}

/// Hour and minute, for within a sentence about today.
pub(crate) fn clock(at: Timestamp) -> Markup {
    html! { time datetime=(at) data-clock { (at.strftime("%H:%M UTC")) } }
}

fn minute(at: Timestamp) -> String {
    at.strftime("%a %-d %b %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{ago, in_sentence, when};

    #[test]
    fn what_is_longer_ago_than_a_day_is_told_with_its_day() {
        let at: Timestamp = "2026-11-24T08:31:00Z".parse().unwrap();
        let told = |hours: i64| when(at, at + SignedDuration::from_hours(hours)).0;
        assert!(told(23).ends_with(">08:31 UTC</time>"), "{}", told(23));
        assert!(told(24).ends_with(">Tue 24 Nov 08:31 UTC</time>"), "{}", told(24));
    }

    #[test]
    fn what_is_no_span_of_time_is_not_told_as_one() {
        let now = Timestamp::UNIX_EPOCH;
        for (seconds, told) in [(1, "now"), (6, "6 s ago"), (90_000, "1 d ago"), (300_000, "3 d ago")] {
            let at = now - SignedDuration::from_secs(seconds);
            assert_eq!(in_sentence(&ago(at, now)), told);
        }
    }
}
