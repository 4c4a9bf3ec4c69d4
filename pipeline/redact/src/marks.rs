//! Secrets that are known by their own shape, whatever stands beside them, and that take more than a pattern:
//! credentials in URLs, private keys, `Authorization` schemes.

use std::ops::Range;

use super::{placeholders, shape};

/// User and password of the URL whose `://` stands at `at`, or the secret path of a well-known webhook.
///
/// The URL ends at `end`.
pub(super) fn url(text: &str, at: usize, end: usize) -> Option<Range<usize>> {
    let from = at + 3;
    let token = text.as_bytes().get(from..end)?;
    let authority = token.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(token.len());
    let head = token.get(..authority)?;
    let Some(user) = head.iter().rposition(|byte| *byte == b'@') else {
        return unescaped(head, token, from);
    };
    let info = text.get(from..from + user)?;
    if info.contains(':') {
        let (name, password) = info.split_once(':')?;
        let told = !password.is_empty() || info.len() > 20;
        let example = matches!(
            info,
            "user:password"
                | "[username:password"
                | "username:password"
                | "user:pass"
                | "USER:PASSWORD"
                | "USERNAME:PASSWORD"
        );
        let variable = |part: &str| {
            part.strip_prefix('$').is_some_and(|part| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
        };
        // `sentinel://:password@host`, of documentation.
        let host = text.get(from + user + 1..end).unwrap_or_default();
        let told_how = matches!(password, "password" | "pass" | "passwd" | "PASSWORD")
            && ["host:", "host/", "hostname", "HOST", "server:", "server/"]
                .iter()
                .any(|word| host.starts_with(word));
        let harmless = example
            || told_how
            || variable(name) && variable(password)
            || shape::is_mask(info)
            || placeholders::fill_all(info)
            || (!password.is_empty() && shape::is_harmless(password) && !shape::is_key(name));
        return (told && !harmless).then_some(from..from + user);
    }
    let web = text.get(..at).is_some_and(|head| head.ends_with("http") || head.ends_with("https"));
    let well_known = matches!(info, "git" | "hg" | "oauth2" | "x-access-token" | "x-token-auth");
    // Azure DevOps clones from `https://org@dev.azure.com/org/...`: no secret, and the repository's name.
    let path = token.get(authority..).unwrap_or_default();
    let organisation = path.strip_prefix(b"/").is_some_and(|path| {
        path.strip_prefix(info.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    });
    let told = |sign: u8| b"!#$%&*+=~".contains(&sign);
    let digits = info.bytes().filter(u8::is_ascii_digit).count();
    let made = shape::is_password(info) && (info.bytes().any(told) || info.len() >= 8 && digits >= 2);
    // NATS and proxies take a token there.
    let takes = ["nats", "trojan", "hysteria2", "hy2", "vless", "anytls"];
    let token = text.get(..at).is_some_and(|head| {
        takes.iter().any(|scheme| {
            head.strip_suffix(scheme)
                .is_some_and(|head| !head.ends_with(|letter: char| letter.is_ascii_alphanumeric()))
        })
    });
    let key = shape::is_key(info) || token || web && made;
    (key && !well_known && !organisation && !shape::is_harmless(info)).then_some(from..from + user)
}

/// A password with an unescaped `/`, `?` or `#` in it: `postgres://user:pa/ss@host`.
fn unescaped(head: &[u8], token: &[u8], from: usize) -> Option<Range<usize>> {
    let colon = head.iter().position(|byte| *byte == b':')?;
    let port = head.get(colon + 1..)?;
    let bracketed = head.first() == Some(&b'[');
    if bracketed || (!port.is_empty() && port.iter().all(u8::is_ascii_digit)) {
        return None;
    }
    let user = token.iter().rposition(|byte| *byte == b'@')?;
    Some(from..from + user)
}

/// A private key in PEM, from its first line, which begins at `at`, to its last, or to the end of the text.
pub(super) fn pem(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    if !rest.starts_with('-') {
        // PuTTY: the lines of base64 behind `Private-Lines: 14`.
        let from = rest.bytes().take(32).position(|byte| byte == b'\n')?;
        // Its last line is a digest under the passphrase, by which that can be guessed.
        let end = rest.find("Private-MAC").map_or(rest.len(), |mac| {
            rest.get(mac..).and_then(|mac| mac.find('\n')).map_or(rest.len(), |end| mac + end)
        });
        return (from < end).then_some(at + from + 1..at + end);
    }
    let label = rest.as_bytes().get(11..)?;
    let label = label.get(..80).unwrap_or(label);
    let length = label.windows(5).position(|signs| signs == b"-----")?;
    let label = rest.get(11..11 + length)?.to_ascii_uppercase();
    if !label.contains("PRIVATE KEY")
        && !label.contains("STATIC KEY")
        && !label.contains("SECRET KEY")
        && !label.contains("NKEY SEED")
    {
        return None;
    }
    let end = rest.find("-----END").and_then(|end| {
        let close = rest.get(end + 8..)?.find("-----")?;
        Some(at + end + 8 + close + 5)
    });
    Some(at..end.unwrap_or(text.len()))
}

/// The credentials after `Bearer` or `Basic`, which begins at `at`, unless they are a word of prose.
pub(super) fn scheme(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    let word = [&b"bearer"[..], b"basic"]
        .into_iter()
        .find(|word| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))?;
    let gap = rest.get(word.len()..)?;
    let spaces = gap.iter().position(|byte| *byte != b' ').unwrap_or(gap.len());
    if spaces == 0 {
        return None;
    }
    let from = at + word.len() + spaces;
    let tail = text.as_bytes().get(from..)?;
    let stop = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b',' | b'\\');
    let end = tail.iter().position(stop).unwrap_or(tail.len());
    let value = text.get(from..from + end)?;
    let typed = || text.get(..at).is_some_and(|head| head.ends_with("token_type="));
    let member = |(name, _): (&str, &str)| {
        matches!(name, "expires_in" | "ext_expires_in" | "expires" | "scope" | "access_token" | "id_token")
    };
    if value.split_once('=').is_some_and(member) && typed() {
        // Of what a server of OAuth answered, of which each is looked at by itself: `token_type=bearer expires_in=3600`.
        return None;
    }
    let prose = value.trim_end_matches(['.', ':', ';', ')']).bytes().enumerate().all(|(place, byte)| {
        byte.is_ascii_lowercase()
            || matches!(byte, b'-' | b'/' | b'_' | b'=')
            || (place == 0 && byte.is_ascii_alphabetic())
    }) && value.len() < 24
        || value.len() <= 3;
    // What is filled in may hold spaces: `Bearer $(cat /run/token)`.
    let filled = || placeholders::one(text, from).is_some_and(|stop| stop > from + end);
    (!prose && !shape::is_harmless(value) && !filled()).then_some(from..from + end)
}
