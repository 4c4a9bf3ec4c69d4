//! YAML of a repository: what nobody here wrote.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The first document; JSON is YAML as well.
///
/// # Errors
/// Why it is no YAML, without what stands in it.
pub fn first(text: &str) -> Result<Value, String> {
    first_document(text).map_or(Ok(Value::Null), parse)
}

/// The text of the first document that says anything.
pub fn first_document(text: &str) -> Option<&str> {
    documents(text).first().map(|document| document.text)
}

/// One document of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document<'t> {
    /// What stands in it.
    pub text: &'t str,
    /// Its first and last line, counted from one.
    pub lines: (usize, usize),
}

/// The documents of a file, the marks between them left out.
pub fn documents(text: &str) -> Vec<Document<'_>> {
    let mut all = Vec::new();
    let (mut from, mut at, mut first) = (0, 0, 1);
    let mut number = 0;
    let mut end = |from: usize, to: usize, first: usize, last: usize| {
        if let Some(text) = text.get(from..to)
            && !is_empty(text)
        {
            all.push(Document { text, lines: (first, last) });
        }
    };
    for line in text.split_inclusive('\n') {
        number += 1;
        let mark = line.trim_end();
        if mark == "---" || mark == "..." || mark.starts_with("--- ") {
            end(from, at, first, number - 1);
            from = at + line.len();
            first = number + 1;
        }
        at += line.len();
    }
    end(from, text.len(), first, number);
    all
}

/// Whether nothing but comments stands in it.
fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with(['#', '%']))
}

/// Reads one document.
///
/// # Errors
/// Why it is no YAML, without what stands in it.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    read(text, serde_saphyr::options! { with_snippet: false, strict_booleans: true })
}

/// Reads a document that the user gave, which may hold a whole cluster's objects.
///
/// # Errors
/// As [`parse`].
pub fn parse_large(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        let why = |error: serde_json::Error| format!("no JSON at line {}", error.line());
        return serde_json::from_str(text).map_err(why);
    }
    let budget = serde_saphyr::budget! { max_events: 50_000_000, max_nodes: 50_000_000 };
    read(text, serde_saphyr::options! { with_snippet: false, strict_booleans: true, budget: budget })
}

fn read<T: DeserializeOwned>(text: &str, options: serde_saphyr::Options) -> Result<T, String> {
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|place| format!(" at line {}", place.line())).unwrap_or_default();
        match error {
            serde_saphyr::Error::DuplicateMappingKey { .. } => format!("a key stands twice{place}"),
            _ => format!("no YAML{place}"),
        }
    })
}
