//! Texts in texts: base64 of both alphabets, padded or not, wrapped or not, and gzip or zlib within it.

use std::io::Read as _;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Bytes that are unpacked of one text, with all that is in it.
pub(super) const MOST: usize = 16 * 1024 * 1024;
/// Characters of the shortest text that is looked into.
const LEAST: usize = 16;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// What a text is that may be packed.
pub(super) enum Packed {
    /// Not packed, or nothing that can be read.
    No,
    /// This text.
    Text(String),
    /// More than is unpacked.
    TooLarge,
}

/// Whether the whole of `text` could be base64: nothing else stands in it, and in its lines no space.
pub(super) fn is_encoded(text: &str) -> bool {
    let text = text.trim();
    text.len() >= LEAST
        && text.as_bytes().first().is_some_and(|byte| is_letter(*byte))
        && text.lines().all(|line| !line.trim().is_empty() && line.trim().bytes().all(is_letter))
}

/// For each byte, whether it is a letter of base64.
const LETTERS: [bool; 256] = {
    let mut letters = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let sign = byte as u8;
        letters[byte] = sign.is_ascii_alphanumeric() || matches!(sign, b'+' | b'/' | b'-' | b'_' | b'=');
        byte += 1;
    }
    letters
};

fn is_letter(byte: u8) -> bool {
    LETTERS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Whether `text` is the base64 of an address or of a public key, which are no secrets.
pub(super) fn is_public(text: &str) -> bool {
    // How `http` and `-----BEGIN` begin.
    let begins = text.starts_with("aHR0c") || text.starts_with("LS0tLS1CRUdJTi");
    begins
        && decode(text).is_some_and(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let address = text.starts_with("http") && super::shape::is_address(text.trim());
            address || text.starts_with("-----BEGIN PUBLIC") || text.starts_with("-----BEGIN CERT")
        })
}

/// Whether the first letters of `text` are the base64 of something that can be read, or of what is packed. Few names
/// are, so few are decoded.
fn begins(text: &str) -> bool {
    let mut letters = [0_u8; LEAST];
    let mut count = 0;
    for (place, byte) in letters.iter_mut().zip(text.bytes().filter(|byte| !byte.is_ascii_whitespace())) {
        *place = byte;
        count += 1;
    }
    let mut bytes = [0_u8; LEAST];
    let engine = if letters.iter().any(|byte| matches!(byte, b'-' | b'_')) { &URL_SAFE } else { &STANDARD };
    let Ok(length) = engine.decode_slice(letters.get(..count).unwrap_or_default(), &mut bytes) else {
        // Signs that end it early, or of both alphabets.
        return true;
    };
    let head = bytes.get(..length).unwrap_or_default();
    let readable = |head: &str| !head.chars().any(|letter| letter.is_control() && !letter.is_whitespace());
    is_packed(head)
        || match std::str::from_utf8(head) {
            Ok(head) => readable(head),
            // A letter that is cut at the end.
            Err(error) => {
                error.error_len().is_none()
                    && head
                        .get(..error.valid_up_to())
                        .and_then(|head| std::str::from_utf8(head).ok())
                        .is_some_and(readable)
            }
        }
}

fn is_packed(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1f, 0x8b, ..] | [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] | [b'P', b'K', 3, 4, ..])
        || is_opaque(bytes)
}

/// What is packed as bzip2, xz, Zstandard or 7z does it, which is not unpacked.
fn is_opaque(bytes: &[u8]) -> bool {
    [&b"BZh91AY&"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"]
        .iter()
        .any(|magic| bytes.starts_with(magic))
}

/// What the first entry of a zip holds.
fn zipped(bytes: &[u8], left: &mut usize) -> Option<Vec<u8>> {
    let number = |at: usize| {
        bytes
            .get(at..at + 2)
            .map_or(0, |two| two.iter().rev().fold(0, |sum, byte| sum * 256 + usize::from(*byte)))
    };
    let data = bytes.get(30 + number(26) + number(28)..).unwrap_or_default();
    match number(8) {
        8 => inflate(DeflateDecoder::new(data), left),
        0 => inflate(data, left),
        _ => None,
    }
}

/// The bytes of a Secret's data.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    decode(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(&packed).or_else(|_| URL_SAFE.decode(&packed)).ok()
}

/// What is written in hexadecimal digits, as `xxd -p` does it, where it can be read.
fn hexadecimal(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.len() >= LEAST && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let inner = String::from_utf8(digits.then(|| hex::decode(text).ok())??).ok()?;
    is_readable(&inner).then_some(inner)
}

/// Unpacks `text`, of which at most `left` bytes may still be unpacked.
pub(super) fn unpack(text: &str, left: &mut usize) -> Packed {
    if let Some(inner) = hexadecimal(text) {
        return Packed::Text(inner);
    }
    if !is_encoded(text) || !begins(text) {
        return Packed::No;
    }
    let Some(bytes) = decode(text) else { return Packed::No };
    let inflated = match bytes.as_slice() {
        [0x1f, 0x8b, ..] => inflate(MultiGzDecoder::new(bytes.as_slice()), left),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => inflate(ZlibDecoder::new(bytes.as_slice()), left),
        [b'P', b'K', 3, 4, ..] => zipped(&bytes, left),
        packed if is_opaque(packed) => None,
        _ => {
            let Some(rest) = left.checked_sub(bytes.len()) else { return Packed::TooLarge };
            *left = rest;
            return match String::from_utf8(bytes) {
                Ok(text) if is_readable(&text) => Packed::Text(text),
                _ => Packed::No,
            };
        }
    };
    match inflated {
        None => Packed::TooLarge,
        Some(bytes) if bytes.is_empty() => Packed::No,
        Some(bytes) => Packed::Text(String::from_utf8(bytes).unwrap_or_else(|error| {
            // A secret in an archive is one too.
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })),
    }
}

fn is_readable(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() && !letter.is_whitespace())
        && (text.contains(['=', ':', '.', '-', '{', ' ', '$']) || is_encoded(text))
}

/// What can be read of it; nothing when it is more than is left.
fn inflate(reader: impl std::io::Read, left: &mut usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // What is cut or damaged is looked at as far as it goes.
    let _ = reader.take(*left as u64 + 1).read_to_end(&mut bytes);
    *left = left.checked_sub(bytes.len())?;
    Some(bytes)
}

/// The runs of a text that could be base64, long enough to hold something.
pub(super) fn runs(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            let rest = bytes.get(at..)?;
            // Equal signs end it: what follows one is another, `NAME=x`.
            let follows = |at: usize| rest.get(at).is_none_or(|next| *next != b'=');
            let ends = |(at, byte): (usize, &u8)| match byte {
                b'=' => follows(at + 1).then_some((at + 1, at + 1)),
                byte => (!is_letter(*byte)).then_some((at, at + 1)),
            };
            let (length, next) = rest.iter().enumerate().find_map(ends).unwrap_or((rest.len(), rest.len()));
            at = start + next.max(1);
            if length >= LEAST + 4 {
                return Some(start..start + length);
            }
        }
        None
    })
}

/// Where the base64 ends whose first line, of a width at which it is wrapped, ends at `end`.
pub(super) fn wrapped(text: &str, run: &Range<usize>) -> usize {
    let mut end = run.end;
    while run.len() >= 60 && run.len().is_multiple_of(4) {
        let rest = text.get(end..).unwrap_or_default();
        let line = rest.strip_prefix('\n').unwrap_or_default().trim_start_matches(' ');
        let next = line.bytes().take_while(|byte| is_letter(*byte)).count();
        if next == 0
            || next > run.len()
            || !next.is_multiple_of(4)
            || !line.get(next..).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        {
            break;
        }
        end += rest.len() - line.len() + next;
        if next < run.len() {
            break;
        }
    }
    end
}

/// A text whose quotes or angle brackets are escaped as in HTML or JSON, with those.
pub(super) fn unquoted(text: &str) -> Option<String> {
    // All begin so, and few texts hold one of these.
    if !text.contains(['&', '\\']) {
        return None;
    }
    let escapes = [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("\\u0022", "\""),
        ("\\u003d", "="),
        ("\\u0026", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
    ];
    escapes
        .iter()
        .any(|(escape, _)| text.contains(escape))
        .then(|| escapes.iter().fold(text.to_owned(), |text, (escape, sign)| text.replace(escape, sign)))
}

/// The words of a text in which signs that part names from values are escaped as in URLs.
pub(super) fn escaped(text: &str) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = 0;
    for word in
        text.split(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '?' | '<' | '>'))
    {
        let upper = word.contains("%3D") || word.contains("%3A") || word.contains("%22");
        if upper || word.contains("%3d") || word.contains("%3a") || is_escaped_twice(word) {
            runs.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
    runs
}

/// Whether signs that part names from values are escaped twice as in URLs: `password%253Dx`.
pub(super) fn is_escaped_twice(text: &str) -> bool {
    text.contains("%25")
        && ["%253D", "%253A", "%2522", "%253d", "%253a"].iter().any(|sign| text.contains(sign))
}

/// The parts of a run that slashes part, where one could be JSON by itself: `/settings/eyJwYXNzd29yZCI6`.
pub(super) fn segments(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    text.split('/').filter_map(move |part| {
        let start = at;
        at += part.len() + 1;
        (part.len() >= LEAST + 4 && part.len() < text.len() && part.starts_with("ey"))
            .then(|| start..start + part.len())
    })
}

/// The text with each `%41` as the letter that it stands for, and where each of its bytes stood; nowhere when it is no
/// text.
pub(super) fn unescape(text: &str) -> (String, Vec<usize>) {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut places = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        places.push(at);
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    match String::from_utf8(out) {
        Ok(text) => (text, places),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), Vec::new()),
    }
}
