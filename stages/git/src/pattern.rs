//! Shell patterns of one name, as Go's `path/filepath` reads them: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` before a character.

/// Whether `part` holds anything that a pattern is made of.
pub(crate) fn is_pattern(part: &[u8]) -> bool {
    part.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
}

/// Whether the pattern is that of `name`; a pattern that is not well formed is that of nothing.
///
/// Takes no more steps than the product of both lengths: what follows a `*` is tried again from one place further alone.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        let step = (p < pattern.len()).then(|| one(&pattern[p..], &name[n..])).flatten();
        match (step, star) {
            _ if p == pattern.len() && n == name.len() => return true,
            (Some((in_pattern, in_name)), _) => {
                p += in_pattern;
                n += in_name;
            }
            (None, Some((after, from))) if from < name.len() => {
                star = Some((after, from + character(&name[from..])));
                (p, n) = (after, from + character(&name[from..]));
            }
            (None, _) => return false,
        }
    }
}

/// How long the first character is; a byte that is not UTF-8 is one.
fn character(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    if text.get(..length).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok()) { length } else { 1 }
}

/// Takes one character of the name with what stands first in the pattern: how much of both.
fn one(pattern: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let taken = character(name);
    let first = name.get(..taken)?;
    match pattern.first()? {
        b'?' => Some((1, taken)),
        b'[' => class(pattern, first).map(|length| (length, taken)),
        b'\\' => {
            let length = character(pattern.get(1..)?);
            (pattern.get(1..1 + length)? == first).then_some((1 + length, taken))
        }
        _ => {
            let length = character(pattern);
            (pattern.get(..length)? == first).then_some((length, taken))
        }
    }
}

/// How long the class is that the pattern begins with, when `wanted` is in it.
fn class(pattern: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut at = 1;
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    let mut ranges = 0;
    loop {
        if pattern.get(at) == Some(&b']') && ranges > 0 {
            return (found != negated).then_some(at + 1);
        }
        let (low, next) = bound(pattern, at)?;
        let (high, next) =
            if pattern.get(next) == Some(&b'-') { bound(pattern, next + 1)? } else { (low, next) };
        // UTF-8 sorts as its characters do.
        found |= low <= wanted && wanted <= high;
        at = next;
        ranges += 1;
    }
}

fn bound(pattern: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let at = match pattern.get(at)? {
        b'\\' => at + 1,
        b'-' | b']' => return None,
        _ => at,
    };
    let length = character(pattern.get(at..)?);
    Some((pattern.get(at..at + length)?, at + length))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_is_read_as_go_reads_it() {
        let cases = [
            ("*", "", true),
            ("*", "abc", true),
            ("a*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a.yml", false),
            ("a?c", "abc", true),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[a", "a", false),
            ("[]a]", "]", false),
            (r"[\]a]", "]", true),
            ("[-]", "-", false),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("a**b", "axyb", true),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
            ("{a,b}", "a", false),
            ("!a", "!a", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} of {name:?}");
        }
        // A pattern that would take other matchers for ever.
        assert!(!matches("a*".repeat(40).as_bytes(), "a".repeat(39).as_bytes()));
    }
}
