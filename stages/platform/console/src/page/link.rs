//! Addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use stages_platform_store::ApplicationName;

/// What may stand in a part of a path as it is.
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A path with a query, if there is one.
pub(crate) fn with(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The address of an application's page, without a query. Its runtime stands there by its name, whatever that is, and may by its id.
pub(crate) fn application_path(of: &ApplicationName) -> String {
    format!("/applications/{}", application_key(of))
}

/// What tells an application from all others, as it stands in addresses and in the marks of a page.
pub(crate) fn application_key(of: &ApplicationName) -> String {
    let segment = |text| utf8_percent_encode(text, SEGMENT).to_string();
    format!("{}/{}/{}", segment(&of.runtime), segment(&of.namespace), segment(&of.name))
}
