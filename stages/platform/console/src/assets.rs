//! The stylesheet and the modules, under an address that changes with them.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// Name, media type and content.
pub(crate) const FILES: &[(&str, &str, &str)] = &[
    ("console.css", "text/css; charset=utf-8", include_str!("../assets/console.css")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("acts.js", SCRIPT, include_str!("../assets/acts.js")),
    ("asked.js", SCRIPT, include_str!("../assets/asked.js")),
    ("console.js", SCRIPT, include_str!("../assets/console.js")),
    ("dialog.js", SCRIPT, include_str!("../assets/dialog.js")),
    ("events.js", SCRIPT, include_str!("../assets/events.js")),
    ("files.js", SCRIPT, include_str!("../assets/files.js")),
    ("filter.js", SCRIPT, include_str!("../assets/filter.js")),
    ("forms.js", SCRIPT, include_str!("../assets/forms.js")),
    ("git.js", SCRIPT, include_str!("../assets/git.js")),
    ("keys.js", SCRIPT, include_str!("../assets/keys.js")),
    ("lines.js", SCRIPT, include_str!("../assets/lines.js")),
    ("live.js", SCRIPT, include_str!("../assets/live.js")),
    ("palette.js", SCRIPT, include_str!("../assets/palette.js")),
    ("proxy.js", SCRIPT, include_str!("../assets/proxy.js")),
    ("strip.js", SCRIPT, include_str!("../assets/strip.js")),
    ("swap.js", SCRIPT, include_str!("../assets/swap.js")),
    ("time.js", SCRIPT, include_str!("../assets/time.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for (name, _, content) in FILES {
        hasher.update(name);
        hasher.update(content);
    }
    hex::encode(&hasher.finalize()[..6])
});

/// Where they stand.
pub(crate) fn base() -> String {
    format!("/assets/{}", *VERSION)
}

/// One of them, of this version.
pub(crate) fn file(version: &str, name: &str) -> Option<(&'static str, &'static str)> {
    let found = FILES.iter().find(|(known, ..)| *known == name).filter(|_| version == *VERSION);
    found.map(|(_, kind, content)| (*kind, *content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_styles_are_small_and_name_no_other_origin() {
        let scripts: usize =
            FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT).map(|(_, _, text)| text.len()).sum();
        assert!(scripts <= 64_000, "{scripts} bytes of scripts");
        for (name, _, content) in FILES {
            let foreign = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!foreign.contains("://"), "{name} names another origin");
        }
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for (name, _, content) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            for import in content.split("from \"./").skip(1) {
                let file = import.split('"').next().unwrap();
                assert!(FILES.iter().any(|(known, ..)| known == &file), "{name} imports {file}");
            }
        }
    }

    /// WCAG's relative luminance of `#rrggbb` or `#rgb`.
    fn luminance(colour: &str) -> f64 {
        let digits: Vec<char> = colour.trim_start_matches('#').chars().collect();
        let each = digits.len() / 3;
        let channel = |index: usize| {
            let text: String = digits[index * each..(index + 1) * each].iter().collect();
            let text = if each == 1 { text.repeat(2) } else { text };
            let value = f64::from(u8::from_str_radix(&text, 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_of_every_token_stands_out_in_light_and_dark() {
        let sheet = FILES[0].2;
        let schemes: Vec<&str> = sheet.split("\n  color-scheme: ").skip(1).collect();
        assert_eq!(schemes.len(), 3, "light, dark by preference, dark by choice");
        for scheme in schemes {
            let token = |name: &str| {
                let found = scheme.split_once(&format!("--{name}: ")).unwrap().1;
                found.split(';').next().unwrap().to_owned()
            };
            for (text, grounds) in [
                ("ink", &["bg", "panel", "fill", "tint"][..]),
                ("faint", &["bg", "panel", "fill", "tint", "gone", "new"]),
                ("mute", &["bg", "panel", "fill", "tint"]),
                ("accent", &["bg", "panel", "fill"]),
                ("bad-text", &["bg", "panel"]),
                ("warn-text", &["bg", "panel"]),
                ("gone-text", &["gone"]),
                ("new-text", &["new"]),
            ] {
                for ground in grounds {
                    let found = contrast(&token(text), &token(ground));
                    assert!(
                        found >= 4.5,
                        "{text} on {ground}: {found:.2}: {}",
                        scheme.lines().next().unwrap_or_default()
                    );
                }
            }
            // Shapes and what may be missed.
            for (mark, least) in [("ok", 3.0), ("progress", 3.0), ("bad", 3.0), ("still", 3.0)] {
                let found = contrast(&token(mark), &token("panel"));
                assert!(found >= least, "{mark}: {found:.2}: {}", scheme.lines().next().unwrap_or_default());
            }
        }
    }
}
