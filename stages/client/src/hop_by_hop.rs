//! What is between two neighbours alone, which a proxy does not pass on.

use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
    UPGRADE,
};

/// The headers that are between two neighbours alone, beside those that `Connection` names.
pub const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
];

/// Whether something was done to a body that a proxy cannot undo: any transfer coding but `chunked` alone.
#[must_use]
pub fn has_other_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings
        .next()
        .is_some_and(|coding| codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}
