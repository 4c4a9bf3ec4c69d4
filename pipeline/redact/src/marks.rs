//! Secrets that are known by their own shape, whatever stands beside them: credentials in URLs, private
//! keys, JSON Web Tokens, `Authorization` schemes, tokens of well-known issuers.

use std::ops::Range;

use super::shape;

/// How far credentials may reach into what follows `://`, in bytes.
const AUTHORITY: usize = 2048;

/// Prefixes of tokens, and how many characters follow at least.
const TOKENS: [(&str, usize); 31] = [
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("gldt-", 16),
    ("glsa_", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("sk-ant-", 16),
    ("sk-proj-", 16),
    ("npm_", 30),
    ("dckr_pat_", 16),
    ("dop_v1_", 32),
    ("hvs.", 16),
    ("hvb.", 16),
    ("SG.", 30),
    ("ya29.", 16),
    ("AGE-SECRET-KEY-", 16),
];

/// User and password of the URL whose `://` stands at `at`, or the secret path of a well-known webhook.
pub(super) fn url(text: &str, at: usize) -> Option<Range<usize>> {
    let from = at + 3;
    let rest = text.get(from..)?;
    let stop =
        |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let token = rest.bytes().take(AUTHORITY).position(stop).unwrap_or_else(|| rest.len().min(AUTHORITY));
    let token = rest.as_bytes().get(..token)?;
    let authority = token.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(token.len());
    let head = token.get(..authority)?;
    let Some(user) = head.iter().rposition(|byte| *byte == b'@') else {
        return webhook(head, token, from, authority).or_else(|| unescaped(head, token, from));
    };
    let info = text.get(from..from + user)?;
    if info.contains(':') {
        let (_, password) = info.split_once(':')?;
        let told = !password.is_empty() || info.len() > 20;
        return (told && !shape::is_harmless(info)).then_some(from..from + user);
    }
    let web = text.get(..at).is_some_and(|head| head.ends_with("http") || head.ends_with("https"));
    let well_known = matches!(info, "git" | "hg" | "oauth2" | "x-access-token" | "x-token-auth");
    // Azure DevOps clones from `https://org@dev.azure.com/org/...`: no secret, and the repository's name.
    let path = token.get(authority..).unwrap_or_default();
    let organisation = path.strip_prefix(b"/").is_some_and(|path| {
        path.strip_prefix(info.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    });
    (web && !well_known && !organisation && !shape::is_harmless(info)).then_some(from..from + user)
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

fn webhook(head: &[u8], token: &[u8], from: usize, authority: usize) -> Option<Range<usize>> {
    let path = token.get(authority..)?;
    let known: &[u8] = match head {
        b"hooks.slack.com" => b"/services/",
        b"discord.com" | b"discordapp.com" => b"/api/webhooks/",
        b"api.telegram.org" => b"/bot",
        _ => return None,
    };
    path.strip_prefix(known)
        .is_some_and(|secret| !secret.is_empty() && !secret.starts_with(b"redacted:"))
        .then(|| from + authority + known.len()..from + token.len())
}

/// The password of `user:password@tcp(host)/database`, whose first colon stands at `at`.
pub(super) fn go_dsn(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at + 1..)?;
    let rest = rest.get(..rest.len().min(AUTHORITY / 8)).unwrap_or(rest);
    let line = rest.get(..rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()))?;
    let user = line.windows(2).position(|pair| pair.first() == Some(&b'@'))?;
    let host = line.get(user + 1..)?;
    let value = at + 1..at + 1 + user;
    let dsn = [&b"tcp("[..], b"unix(", b"udp("].iter().any(|net| host.starts_with(net));
    (dsn && !shape::is_harmless(text.get(value.clone())?)).then_some(value)
}

/// A private key in PEM, from its first line, which begins at `at`, to its last, or to the end of the text.
pub(super) fn pem(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let label = rest.get(11..)?.split("-----").next()?;
    if label.len() > 64 || !label.contains("PRIVATE KEY") {
        return None;
    }
    let end = rest.find("-----END").and_then(|end| {
        let close = rest.get(end + 8..)?.find("-----")?;
        Some(at + end + 8 + close + 5)
    });
    Some(at..end.unwrap_or(text.len()))
}

/// A JSON Web Token that begins at `at`.
pub(super) fn jwt(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    if !rest.starts_with(b"eyJ") {
        return None;
    }
    let end = rest.iter().position(|byte| !is_token(*byte)).unwrap_or(rest.len());
    let parts: Vec<&[u8]> = rest.get(..end)?.split(|byte| *byte == b'.').collect();
    (parts.len() >= 3 && parts.get(1).is_some_and(|claims| claims.len() >= 2)).then_some(at..at + end)
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
    let prose = value.trim_end_matches(['.', ':', ';', ')']).bytes().enumerate().all(|(place, byte)| {
        byte.is_ascii_lowercase() || byte == b'-' || (place == 0 && byte.is_ascii_alphabetic())
    });
    (!prose && !shape::is_harmless(value)).then_some(from..from + end)
}

/// A token of a well-known issuer that begins at `at`.
pub(super) fn known_token(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let (prefix, least) = TOKENS.iter().find(|(prefix, _)| rest.starts_with(prefix))?;
    let tail = rest.as_bytes().get(prefix.len()..)?;
    let length = tail.iter().position(|byte| !is_token(*byte)).unwrap_or(tail.len());
    let upper = prefix.bytes().all(|byte| byte.is_ascii_uppercase());
    let shaped = !upper
        || (length == *least
            && tail.iter().take(length).all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
    (length >= *least && shaped).then(|| at..at + prefix.len() + length)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
