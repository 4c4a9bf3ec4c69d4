//! Paths that two servers could read in two ways.
//!
//! takes: the path of a request - gives: nothing, when everybody reads it alike - fails: with what is wrong. A service
//! behind may decode a path once more than this, so that it is looked at decoded twice.

use percent_encoding::percent_decode;

use crate::refusal::Refusal;

/// How often servers behind the router may decode a path.
const MAX_DECODINGS: usize = 2;

/// Refuses a path that two servers could read in two ways.
pub(crate) fn check(path: &str) -> Result<(), Refusal> {
    if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') || !is_encoded(path.as_bytes()) {
        return Err(Refusal::Encoding);
    }
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..=MAX_DECODINGS {
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(Refusal::Encoding);
        }
        if bytes.split(|byte| matches!(byte, b'/' | b'\\')).any(is_dots) {
            return Err(Refusal::Dots);
        }
        bytes = percent_decode(&bytes).collect();
    }
    Ok(())
}

/// Whether a segment is `.` or `..`. What follows `;` is left out, as servers written in Java take it for a parameter of the
/// segment.
fn is_dots(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    matches!(name, b"." | b"..")
}

/// Whether two hexadecimal digits follow each `%`.
fn is_encoded(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'%')
        .skip(1)
        .all(|after| after.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_reads_alike_is_taken() {
        for path in [
            "/app-proxy/api/graphql",
            "/a/b%20c",
            "/owner%2Frepo",
            "/v1.2/...",
            "/a;b=c",
            "/%E2%9C%93",
            "//a",
            "/",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn segments_of_dots_are_refused_however_they_are_written() {
        for path in [
            "/a/../b",
            "/a/..",
            "/./a",
            "/a/%2e%2e/b",
            "/a/.%2E/b",
            "/a/%252e%252e/b",
            "/a/..%2fb",
            "/a/..%5cb",
            "/a/..;/b",
            "/a/..;x=1/b",
        ] {
            assert_eq!(check(path), Err(Refusal::Dots), "{path}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for path in ["/a\\b", "/a b", "/%", "/%2", "/%zz", "/%u002e", "/a%00", "/a%0d%0ab", "/%250a", "/ä"] {
            assert_eq!(check(path), Err(Refusal::Encoding), "{path}");
        }
    }
}
