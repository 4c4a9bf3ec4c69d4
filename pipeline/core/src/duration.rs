//! A length of time, as people write it.

use std::time::Duration;

/// Reads one such as `500ms`, `1h30m` or `1.5h`: numbers, each with its unit (`d`, `h`, `m`, `s`, `ms`, `us`, `ns`), added up; or `0`.
/// At most ten years.
///
/// # Errors
/// What the text should have been, for whoever wrote it.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration such as 500ms, 30s, 2m, 24h or 7d");
    let mut rest = text.trim();
    let mut sum = Duration::ZERO;
    if rest == "0" {
        return Ok(sum);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split(after, char::is_alphabetic);
        let seconds = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        sum = sum.checked_add(part).ok_or_else(wrong)?;
        rest = after.trim_start();
    }
    if sum > Duration::from_secs(3_650 * 86_400) {
        return Err(format!("'{text}' is longer than ten years"));
    }
    Ok(sum)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let read = |text| read_duration(text).map(|duration| duration.as_millis());
        assert_eq!(read("500ms"), Ok(500));
        assert_eq!(read("1d12h"), Ok(36 * 3_600_000));
        assert_eq!(read("1.5h"), Ok(5_400_000));
        assert_eq!(read("1m 30s"), Ok(90_000));
        assert_eq!(read("0"), Ok(0));
        for wrong in ["", "5", "s", "5 minutes", "-1s", "1.2.3s", "5sec", "1e9d", "99999999999999999d", "ä"]
        {
            let text = read(wrong).unwrap_err();
            assert_eq!(text, format!("'{wrong}' is not a duration such as 500ms, 30s, 2m, 24h or 7d"));
        }
        assert_eq!(read("3651d"), Err("'3651d' is longer than ten years".to_owned()));
    }
}
