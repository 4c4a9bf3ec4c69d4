//! Packs pages and assets for whoever takes gzip: a list of 200 rows is some ten times smaller then.
//!
//! What streams has no length yet, and is sent as it comes. The answer to a form may show a secret once, beside what was typed:
//! it is sent as it is, so that its length tells nothing of either.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, VARY};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

/// What is shorter is not worth it.
const LEAST: u64 = 1_024;
/// Of ten levels: beyond this one it takes twice as long for a twentieth less.
const LEVEL: u32 = 4;

pub(super) async fn packed(request: Request, next: Next) -> Response {
    let is_read = request.method() == Method::GET;
    let takes = takes_gzip(request.headers());
    let response = next.run(request).await;
    let length = response.body().size_hint().exact().unwrap_or_default();
    if !is_read || length < LEAST {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    if !takes {
        return Response::from_parts(head, body);
    }
    // It is in memory as a whole: it cannot break off.
    let Ok(whole) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    let packed = encoder.write_all(&whole).and_then(|()| encoder.finish());
    let body = match packed {
        Ok(packed) => {
            head.headers.remove(CONTENT_LENGTH);
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            Body::from(packed)
        }
        Err(_) => Body::from(whole),
    };
    Response::from_parts(head, body)
}

/// Whether gzip is named, and not with a weight of nothing.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f64>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        for (accepted, takes) in [
            ("gzip", true),
            ("br, GZIP;q=0.5, *;q=0", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("xgzip", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(takes_gzip(&headers), takes, "{accepted:?}");
        }
    }
}
