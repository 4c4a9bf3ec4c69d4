//! Canaries: what stands for a secret in a case, and every form in which it must not come out.

#![expect(
    clippy::expect_used,
    clippy::string_slice,
    clippy::missing_panics_doc,
    reason = "it is for tests, which fail by panicking"
)]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A canary, and the letters-and-digits one for places that take no other characters.
#[derive(Debug, Clone, Copy)]
pub struct Canary {
    /// The one.
    pub text: &'static str,
    /// The other.
    pub alphanumeric: &'static str,
}

/// The canary of most cases.
pub const FIRST: Canary =
    Canary { text: "kanarie-7Qx!Zp9~w", alphanumeric: "kanarie7QxZp9wkanarie7QxZp9wKANA" };
/// Another, where two are compared.
pub const SECOND: Canary =
    Canary { text: "kanarie-3Rt!Yk4~v", alphanumeric: "kanarie3RtYk4vkanarie3RtYk4vKANA" };

/// Fills the canary into a case: `@@CANARY@@`, `@@CANARY_ALNUM@@`, `@@CANARY_JSON@@` (`\uNNNN`),
/// `@@CANARY_YAML@@` (`\xNN`), and around any text `@@BASE64(...)@@` and `@@BASE64URL(...)@@`.
pub fn fill(case: &str, canary: &Canary) -> String {
    let escaped =
        |each: &dyn Fn(u32) -> String| canary.text.chars().map(|c| each(u32::from(c))).collect::<String>();
    let mut text = case
        .replace("@@CANARY@@", canary.text)
        .replace("@@CANARY_ALNUM@@", canary.alphanumeric)
        .replace("@@CANARY_JSON@@", &escaped(&|code| format!("\\u{code:04x}")))
        .replace("@@CANARY_YAML@@", &escaped(&|code| format!("\\x{code:02x}")));
    for (open, url) in [("@@BASE64(", false), ("@@BASE64URL(", true)] {
        while let Some(start) = text.find(open) {
            let inner = start + open.len();
            let end = inner + text[inner..].find(")@@").expect("an encoding is closed");
            let plain = text[inner..end].replace("\\n", "\n").replace("\\\"", "\"");
            let coded = if url { URL_SAFE_NO_PAD.encode(plain) } else { STANDARD.encode(plain) };
            text.replace_range(start..end + 3, &coded);
        }
    }
    text
}

/// Every form of the canary that `text` must not hold.
fn forms(canary: &str) -> Vec<String> {
    let bytes = canary.as_bytes();
    let each = |form: &dyn Fn(&u8) -> String| bytes.iter().map(form).collect::<String>();
    let mut forms = vec![
        canary.to_owned(),
        canary.chars().rev().collect(),
        each(&|byte| {
            if byte.is_ascii_alphanumeric() { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
        }),
        each(&|byte| format!("\\x{byte:02x}")),
        each(&|byte| format!("\\u{byte:04x}")),
        each(&|byte| format!("{byte:02x}")),
    ];
    for shift in 0..3 {
        // Whole groups of three bytes: what base64 shows of the canary wherever it stands in a longer text.
        let start = shift;
        let whole = (bytes.len() - start) / 3 * 3;
        forms.push(STANDARD_NO_PAD.encode(&bytes[start..start + whole]));
        forms.push(URL_SAFE_NO_PAD.encode(&bytes[start..start + whole]));
    }
    forms
}

/// Panics when any form of the canary, or its beginning, stands in `text`.
pub fn assert_absent(name: &str, text: &str, canary: &Canary) {
    for form in forms(canary.text).iter().chain(&forms(canary.alphanumeric)) {
        assert!(!text.contains(form.as_str()), "{name}: the canary came out as {form:?} in\n{text}");
    }
    assert!(!text.to_ascii_lowercase().contains("kanarie"), "{name}: part of the canary came out in\n{text}");
}
