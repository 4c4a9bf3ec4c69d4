//! Values that look like keys and passwords, whatever stands beside them.

use std::borrow::Cow;

/// Whether `text` looks like a key: long, without spaces, and made as only chance makes it.
pub(crate) fn is_key(text: &str) -> bool {
    let text = text.trim().trim_matches(['"', '\'']);
    let text = text.strip_prefix("base64:").unwrap_or(text);
    if text.starts_with("-----BEGIN ") {
        return text.contains("PRIVATE");
    }
    if text.len() < 12 || text.len() > 16_384 || is_known_id(text) {
        return false;
    }
    let strange = text.bytes().filter(|byte| b"!@#$%^&*()~`|<>?;,{}[]\\".contains(byte)).count();
    if text.contains(char::is_whitespace) {
        // Salts that are made of every sign there is.
        return text.len() >= 32
            && strange >= 4
            && text.bytes().any(|byte| byte.is_ascii_digit())
            && !text.contains('\n');
    }
    if text.contains("://")
        || text.starts_with('/')
        || text.starts_with("./")
        || super::shape::is_harmless(text)
    {
        return false;
    }
    if strange >= 1 && is_password(text) || is_serial(text) {
        return true;
    }
    text.split(['.', '-', '_', ':', '/']).any(is_random) || text.len() >= 24 && is_hex_in_groups(text)
}

/// Whether `text` is the serial number of a licence: groups of one length, of capital letters and digits.
fn is_serial(text: &str) -> bool {
    let mut groups = text.split('-');
    let length = groups.next().map_or(0, str::len);
    (4..=8).contains(&length)
        && text.matches('-').count() >= 3
        && groups.all(|group| group.len() == length)
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-')
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether a piece of `text` looks made by chance.
pub(crate) fn holds_random(text: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_random)
}

/// One piece that is no word, no number and no name with a number behind it.
fn is_random(piece: &str) -> bool {
    let body = piece.trim_end_matches('=');
    if body.len() < 12 || !body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+') {
        return false;
    }
    let digits = body.bytes().filter(u8::is_ascii_digit).count();
    let letters = body.len() - digits;
    let upper = body.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = body.bytes().filter(u8::is_ascii_lowercase).count();
    let changes = body.as_bytes().windows(2).filter(|pair| kind(pair.first()) != kind(pair.last())).count();
    let mixed = digits >= 1 && letters >= 4 && changes >= 3;
    let cased = upper >= 3 && lower >= 3 && changes * 3 >= body.len() && body.len() >= 16;
    let padded = body.len() < piece.len() && body.len() >= 14;
    let long = body.len() >= 32 && (digits == body.len() || upper >= 3 || digits >= 3);
    let counted = digits == body.len() && body.len() >= 32;
    mixed || cased || padded || long || counted || body.len() >= 20 && upper == body.len()
}

fn kind(byte: Option<&u8>) -> u8 {
    match byte {
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_uppercase() => 1,
        Some(byte) if byte.is_ascii_lowercase() => 2,
        _ => 3,
    }
}

fn is_hex_in_groups(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits >= 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Whether `text` has the form of a well-known harmless id: a date, a version, an image digest.
fn is_known_id(text: &str) -> bool {
    let digest =
        ["sha256:", "sha512:", "sha1:", "md5:", "sha256-", "sha384-", "sha512-"].iter().any(|prefix| {
            text.strip_prefix(prefix).is_some_and(|rest| {
                rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
            })
        });
    let commit = ["sha-", "git-", "rev-", "commit-"].iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            (7..=40).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    });
    let date = text.get(4..5) == Some("-")
        && text.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
        && text.contains(['T', ':']);
    digest || commit || date || text.contains("@sha256:")
}

/// Whether `text` is the id of a key of GnuPG, or its fingerprint.
pub(crate) fn is_key_id(text: &str) -> bool {
    matches!(text.len(), 8 | 16 | 40)
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
}

/// Whether `text` is the version of a package, or a range of them: `^9.0.2`, `1.2.3-rc.1`.
pub(crate) fn is_version(text: &str) -> bool {
    let text = text.trim_start_matches(['^', '~', '=', '>', '<', 'v', ' ']);
    let mut parts = text.split(['-', '+']).next().unwrap_or_default().split('.');
    text.len() <= 24
        && text.matches('.').count() >= 2
        && parts.all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether `text` is a share of something: `10%`, `0.5%`.
pub(crate) fn is_share(text: &str) -> bool {
    text.len() <= 6
        && text.strip_suffix('%').is_some_and(|number| {
            number.starts_with(|letter: char| letter.is_ascii_digit())
                && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
}

/// Whether a hexadecimal text has the length of a commit, a checksum or a short hash, or is a UUID.
pub(crate) fn is_hash(text: &str) -> bool {
    let text = text.trim();
    let bare = ["sha256:", "sha512:", "sha1:", "md5:"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    // Nobody writes one in capitals and small letters.
    let upper = bare.bytes().any(|byte| byte.is_ascii_uppercase());
    let lower = bare.bytes().any(|byte| byte.is_ascii_lowercase());
    let hex = bare.bytes().all(|byte| byte.is_ascii_hexdigit()) && !(upper && lower);
    hex && matches!(bare.len(), 7..=12 | 32 | 40 | 56 | 64 | 96 | 128)
}

/// A word in which the letters of other alphabets than the English one are some of that: `Käse9` is made as `Kase9` is.
pub(crate) fn folded(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let fold = |letter: char| match letter {
        '\u{c0}'..='\u{24f}' if letter.is_uppercase() => 'U',
        '\u{c0}'..='\u{24f}' if letter.is_lowercase() => 'u',
        _ => letter,
    };
    Cow::Owned(word.chars().map(fold).collect())
}

/// Whether one word looks like a password somebody made up: letters with digits or signs among them, and no version,
/// name or term of the trade.
pub(crate) fn is_password(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'', '`']);
    let folded = folded(text);
    let text = &*folded;
    if text.len() < 5 || text.len() > 128 || text.contains(char::is_whitespace) || text.contains("://") {
        return false;
    }
    if !text.bytes().any(|byte| byte.is_ascii_alphanumeric())
        || text.starts_with(['/', '#', '.', '$', '{', '<', '(', '[', '@', '=', '*'])
    {
        return false;
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    let signs = text.bytes().filter(|byte| b"!@#$%^&*~+?=".contains(byte)).count();
    let ends_in_sign = text.ends_with(['!', '?']) && signs == 1 && digits == 0;
    if letters == 0 || (digits == 0 && (signs == 0 || ends_in_sign)) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    if super::words::TERMS.contains(lower.as_str())
        || is_known_id(text)
        || lower.contains("::")
        || text.contains('(')
    {
        return false;
    }
    let pieces: Vec<&str> = text.split(['-', '_', '.', ':', '/']).collect();
    if pieces.len() == 1 {
        // `a1b2c3d` may be a commit, `v12`, `30d`, `12h30m` are what they are.
        let short = text.len() <= 5 && signs == 0;
        let units = lower.bytes().all(|byte| byte.is_ascii_digit() || b"hmsdwkgibt".contains(&byte));
        let leading = lower.trim_start_matches(|letter: char| letter.is_ascii_digit()).len() < 3;
        return !(short || units || leading && signs == 0 || is_hash(text) && text.len() != 32);
    }
    if text.contains('/') && signs == 0 {
        return false;
    }
    // Words of which some are in capitals, and a number: `lantern-Quarry-81`.
    let word = |piece: &&&str| piece.len() >= 3 && piece.bytes().all(|byte| byte.is_ascii_lowercase());
    let title = |piece: &&&str| {
        piece.len() >= 3
            && piece.starts_with(|letter: char| letter.is_ascii_uppercase())
            && piece.bytes().skip(1).all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if pieces.iter().find(word).is_some()
        && pieces.iter().find(title).is_some()
        && !text.contains(['.', '/', ':'])
        && pieces.last().is_some_and(|last| last.len() <= 12)
    {
        return true;
    }
    pieces.iter().any(|piece| {
        let bytes = piece.as_bytes();
        let changes = bytes.windows(2).filter(|pair| kind(pair.first()) != kind(pair.last())).count();
        let digit = bytes.iter().any(u8::is_ascii_digit);
        let letter = bytes.iter().any(u8::is_ascii_alphabetic);
        piece.len() >= 5
            && (digit
                && letter
                && changes >= 2
                && !super::words::TERMS.contains(piece.to_ascii_lowercase().as_str()))
            || piece.bytes().any(|byte| b"!@#$%^&*".contains(&byte)) && piece.len() >= 4 && (letter || digit)
    })
}

/// Whether `text` is a link that opens something to who knows it: a URL with a random part in its path or its query.
pub(crate) fn is_secret_link(text: &str) -> bool {
    let text = text.trim();
    let rest = match text.split_once("://") {
        Some((_, rest)) => rest,
        // Its path alone: `webhookPath: /hook/x`.
        None if text.starts_with('/') => text,
        None => return is_key(text),
    };
    let Some((_, path)) = rest.split_once('/') else { return false };
    path.split(['/', '?', '&', '=', '#'])
        .any(|part| !super::shape::is_harmless(part) && (is_random(part) || is_key(part)))
}
