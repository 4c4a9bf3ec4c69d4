//! Headers with which a proxy says who asked, and how.
//!
//! takes: the name of a header - gives: whether it is one of them - fails: never

use reqwest::header::HeaderName;

/// Those that do not begin with `x-forwarded`.
const OTHERS: [&str; 6] = [
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-original-forwarded-for",
    "true-client-ip",
    "front-end-https",
];

/// Whether a header says who asked or how, which nobody but a proxy that is trusted may say. Programs that get headers as
/// variables read `_` as `-`, and so does this.
#[must_use]
pub fn says_who_asked(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    name.starts_with("x-forwarded") || OTHERS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_who_asked_is_told_from_what_does_not_also_with_underscores() {
        let says = |name: &'static str| says_who_asked(&HeaderName::from_static(name));
        for name in ["forwarded", "x-forwarded-for", "x-forwarded-prefix", "x_forwarded_for", "x_real-ip"] {
            assert!(says(name), "{name}");
        }
        for name in ["x-request-id", "host", "forwarded-by-mail", "via"] {
            assert!(!says(name), "{name}");
        }
    }
}
