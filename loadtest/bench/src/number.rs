//! Numbers as people read them.

/// A number with as many places as it is good for, and its thousands apart.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "-".to_owned();
    }
    if size != 0.0 && !(1e-3..1e12).contains(&size) {
        return format!("{value:.2e}");
    }
    let places = match size {
        0.0 | 1_000.0.. => 0,
        100.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut apart = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    if rest.is_empty() { apart } else { format!("{apart}.{rest}") }
}

/// A number and its unit, which may be empty.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    let told = number(value);
    if unit.is_empty() { told } else { format!("{told} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_places_that_they_are_good_for() {
        let told = [
            (0.0, "0"),
            (-0.25, "-0.25"),
            (0.001_5, "0.002"),
            (1.0, "1"),
            (2.5, "2.5"),
            (64.126, "64.13"),
            (123.46, "123.5"),
            (999.99, "1,000"),
            (1_234.5, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (1e-6, "1.00e-6"),
            (2.5e300, "2.50e300"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ];
        for (value, text) in told {
            assert_eq!(number(value), text);
        }
        assert_eq!(with_unit(12.0, "ms"), "12 ms");
        assert_eq!(with_unit(12.0, ""), "12");
    }
}
