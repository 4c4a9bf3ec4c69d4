//! Headers of an answer that is data.
//!
//! takes: the headers of an answer - gives: the same, with what keeps browsers from taking it for a page - fails: never

use reqwest::header::{self, HeaderMap, HeaderValue};

/// Says of an answer that it is data: nothing of it is a page, runs, or is kept by whoever passes it on. An answer that says
/// itself how long it is kept is left that.
pub fn mark_as_data(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
