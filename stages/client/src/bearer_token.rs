//! The token of an `Authorization` header, as it is or after `Bearer`.

/// `None`: it holds no token, be it that it names the scheme alone (what is sent with spaces at its end comes without them).
#[must_use]
pub fn bearer_token(header: &str) -> Option<&str> {
    let header = header.trim();
    let bearer = header.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer "));
    let token = bearer.map_or(header, |(_, token)| token.trim());
    (!token.is_empty() && !token.eq_ignore_ascii_case("bearer")).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_alone_or_after_its_scheme_and_a_scheme_alone_is_none() {
        for header in ["abc", " abc ", "Bearer abc", "bearer  abc ", "BEARER abc"] {
            assert_eq!(bearer_token(header), Some("abc"), "{header:?}");
        }
        for header in ["", " ", "Bearer", "bearer ", "Bearer   "] {
            assert_eq!(bearer_token(header), None, "{header:?}");
        }
    }
}
