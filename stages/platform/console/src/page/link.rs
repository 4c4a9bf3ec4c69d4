//! Addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What may stand in a part of a path as it is.
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A path with a query, if there is one.
pub(crate) fn with(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
