//! Writes the effective settings as YAML that can be read again, secrets masked, the origin of each value that
//! is not the default beside it.

use std::fmt::Write as _;

use serde_json::Value;

use super::catalogue::{Catalogue, Setting};
use super::layers::Layers;
use super::problem::Origin;
use super::units::MASK;

/// All settings.
pub(crate) fn yaml(layers: &Layers) -> String {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    for setting in &Catalogue::get().settings {
        let mut names: Vec<&str> = setting.path.split('.').collect();
        let name = names.pop().unwrap_or_default();
        let shared = open.iter().zip(&names).take_while(|(left, right)| left == right).count();
        for (depth, group) in names.iter().enumerate().skip(shared) {
            let _ = writeln!(text, "{}{group}:", "  ".repeat(depth));
        }
        let (value, origin) = layers.value(setting);
        let _ = write!(text, "{}{name}: {}", "  ".repeat(names.len()), shown(setting, value));
        match origin {
            Origin::Default => text.push('\n'),
            origin => {
                let _ = writeln!(text, "  # from {}", origin.to_string().replace('\n', " "));
            }
        }
        open = names;
    }
    text
}

fn shown(setting: &Setting, value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(_) if setting.is_secret() => format!("\"{MASK}\""),
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether YAML, the older one too, takes the text for itself without quotes.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:".contains(c))
        && !text.ends_with(':')
        && !matches!(text.to_lowercase().as_str(), "yes" | "no" | "on" | "off" | "y" | "n")
        && serde_saphyr::from_str::<Value>(text).is_ok_and(|read| read == text)
}
