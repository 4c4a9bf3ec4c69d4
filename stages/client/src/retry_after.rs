//! The `Retry-After` header: a number of seconds, or a date.

use std::time::Duration;

use pipeline_core::Timestamp;

/// The longest wait that a peer may ask for; longer ones are cut to it. A day: maintenance takes hours, and a
/// peer's typing error (milliseconds for seconds, a date in another year) must not silence the runtime for weeks.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Reads a `Retry-After` value (RFC 9110, 10.2.3): seconds, or a date such as
/// `Sun, 06 Nov 1994 08:49:37 GMT`, of which one that has passed means "at once". `None` when it is neither.
#[must_use]
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a u64 holds are still a number of seconds, and a long one.
        let seconds = value.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    let wait = Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO);
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_seconds_and_dates_and_bounds_both() {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        let read = |value| retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(read("0"), Some(0));
        assert_eq!(read(" 120 "), Some(120));
        assert_eq!(read("7200"), Some(7200));
        assert_eq!(read("86401"), Some(86_400));
        assert_eq!(read("99999999999999999999999"), Some(86_400));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(37));
        assert_eq!(read("Sun, 06 Nov 1994 08:48:37 GMT"), Some(0));
        assert_eq!(read("Mon, 07 Nov 1994 08:48:59 GMT"), Some(86_399));
        assert_eq!(read("Mon, 06 Nov 1995 08:48:37 GMT"), Some(86_400));
    }

    #[test]
    fn anything_else_is_no_time() {
        for value in ["", " ", "-1", "1.5", "soon", "1 2", "1994-11-06T08:49:37Z"] {
            assert_eq!(retry_after(value, Timestamp::UNIX_EPOCH), None, "{value:?}");
        }
    }
}
