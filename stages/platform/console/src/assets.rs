//! The stylesheet and the modules, under an address that changes with them.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// Name, media type and content.
pub(crate) const FILES: &[(&str, &str, &str)] = &[
    ("console.css", "text/css; charset=utf-8", include_str!("../assets/console.css")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("console.js", SCRIPT, include_str!("../assets/console.js")),
    ("filter.js", SCRIPT, include_str!("../assets/filter.js")),
    ("keys.js", SCRIPT, include_str!("../assets/keys.js")),
    ("live.js", SCRIPT, include_str!("../assets/live.js")),
    ("palette.js", SCRIPT, include_str!("../assets/palette.js")),
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
    hasher.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
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
        assert!(scripts <= 60_000, "{scripts} bytes of scripts");
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
}
