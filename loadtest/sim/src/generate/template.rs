//! Texts with holes: JSON that is built once and filled in many times, without any JSON work.

use serde::de::DeserializeOwned;

/// A text that is cut at its holes, `@@name@@`.
#[derive(Debug)]
pub(super) struct Template<H> {
    parts: Vec<Part<H>>,
    size: usize,
}

#[derive(Debug)]
enum Part<H> {
    Text(String),
    Hole(H),
}

impl<H: Copy + DeserializeOwned> Template<H> {
    /// Cuts `text`. A name that is none of a hole stays as text. A hole written `"@@#name#@@"` loses its
    /// quotes, also where they are escaped: it takes a number or any JSON.
    pub(super) fn new(text: &str) -> Self {
        let text = text
            .replace("\\\"@@#", "@@")
            .replace("#@@\\\"", "@@")
            .replace("\"@@#", "@@")
            .replace("#@@\"", "@@");
        let mut parts = Vec::new();
        let mut kept = String::new();
        for (at, piece) in text.split("@@").enumerate() {
            let hole = if at % 2 == 1 { serde_json::from_value(piece.into()).ok() } else { None };
            match hole {
                Some(hole) => {
                    parts.push(Part::Text(std::mem::take(&mut kept)));
                    parts.push(Part::Hole(hole));
                }
                None => kept.push_str(piece),
            }
        }
        parts.push(Part::Text(kept));
        Self { size: text.len(), parts }
    }

    /// Appends the text; `fill` appends what belongs into a hole.
    pub(super) fn render(&self, out: &mut Vec<u8>, mut fill: impl FnMut(H, &mut Vec<u8>)) {
        out.reserve(self.size);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Hole(hole) => fill(*hole, out),
            }
        }
    }
}

/// Appends formatted text.
macro_rules! put {
    ($out:expr, $($format:tt)+) => {{
        // Writing to memory cannot fail.
        let _ = std::io::Write::write_fmt($out, format_args!($($format)+));
    }};
}
pub(super) use put;

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Copy, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Hole {
        Count,
        Name,
    }

    #[test]
    fn holes_are_filled_at_every_depth() {
        let inner = serde_json::json!({"n": "@@#count#@@", "s": "a-@@name@@"}).to_string();
        let text = serde_json::json!({"inner": inner, "n": "@@#count#@@", "x": "@@unknown@@"}).to_string();
        let template = Template::new(&text);
        let mut out = Vec::new();
        template.render(&mut out, |hole, out| match hole {
            Hole::Count => put!(out, "7"),
            Hole::Name => put!(out, "web"),
        });
        let outer: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(outer["n"], 7);
        let inner: serde_json::Value = serde_json::from_str(outer["inner"].as_str().unwrap()).unwrap();
        assert_eq!(inner, serde_json::json!({"n": 7, "s": "a-web"}));
    }
}
