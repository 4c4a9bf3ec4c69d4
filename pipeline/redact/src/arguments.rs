//! Command lines whose arguments stand apart: a flag, then its value.

use super::names::{self, Class};
use super::shape;

/// Whether `text` is a command-line flag without a value.
pub(super) fn is_flag(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    let dashes = text.len() - name.len();
    (1..=2).contains(&dashes)
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether `flag` followed by `value` passes a secret.
pub(super) fn takes_secret(flag: &str, value: &str) -> bool {
    if shape::is_harmless(value) || shape::is_switch(value) {
        return false;
    }
    match names::classify(flag) {
        Class::Secret | Class::Scalar => true,
        Class::Header => shape::is_credential(value),
        Class::Plain => matches!(flag, "-u" | "--user" | "--proxy-user" | "-U") && value.contains(':'),
    }
}
