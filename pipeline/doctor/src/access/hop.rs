//! One step on the way between a visitor and a runtime, and what was found there.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;

/// Characters of a text of others that are shown.
const SHOWN: usize = 200;

/// From where it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// From the cluster, towards the visitor.
    Inside,
    /// As a visitor, towards the runtime.
    Outside,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It leads on.
    Works,
    /// It leads on, and something is not as it should be.
    Doubtful,
    /// It does not lead on.
    Fails,
    /// Nobody could look.
    Unmeasured,
}

impl Verdict {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Doubtful => "doubtful",
            Self::Fails => "fails",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// From where it was looked at.
    pub side: Side,
    /// What it is.
    pub hop: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do next; empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub todo: String,
}

/// Steps, in their order.
pub(super) struct Hops {
    pub(super) side: Side,
    pub(super) all: Vec<Hop>,
}

impl Hops {
    pub(super) fn new(side: Side) -> Self {
        Self { side, all: Vec::new() }
    }

    fn add(
        &mut self,
        hop: impl Into<String>,
        verdict: Verdict,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) {
        let (hop, found, todo) = (hop.into(), found.into(), todo.into());
        self.all.push(Hop { side: self.side, hop, verdict, found, todo });
    }

    pub(super) fn works(&mut self, hop: impl Into<String>, found: impl Into<String>) {
        self.add(hop, Verdict::Works, found, "");
    }

    pub(super) fn doubts(
        &mut self,
        hop: impl Into<String>,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.add(hop, Verdict::Doubtful, found, todo);
    }

    pub(super) fn fails(
        &mut self,
        hop: impl Into<String>,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.add(hop, Verdict::Fails, found, todo);
    }

    pub(super) fn unmeasured(
        &mut self,
        hop: impl Into<String>,
        why: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.add(hop, Verdict::Unmeasured, why, todo);
    }

    /// Says that it works unless something else was said of it since.
    pub(super) fn fine_since(&mut self, before: usize, hop: impl Into<String>, found: impl Into<String>) {
        if self.all.get(before..).is_none_or(<[Hop]>::is_empty) {
            self.works(hop, found);
        }
    }
}

/// Adds to a table what was found of something, and what to do about it.
pub(crate) fn add_row(table: &mut String, (name, verdict): (&str, Verdict), found: &str, todo: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(table, "  {:<10}  {name}: {found}", verdict.name());
    if !todo.is_empty() {
        let _ = writeln!(table, "              -> {todo}");
    }
}

/// A text of an object, as it may be shown.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
}

/// The text at a pointer.
pub(crate) fn text<'a>(object: &'a Json, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

/// The text at a pointer, or another where there is none.
pub(super) fn text_or<'a>(object: &'a Json, pointer: &str, otherwise: &'a str) -> &'a str {
    Some(text(object, pointer)).filter(|text| !text.is_empty()).unwrap_or(otherwise)
}

/// The list at a pointer.
pub(crate) fn list<'a>(object: &'a Json, pointer: &str) -> &'a [Json] {
    object.pointer(pointer).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Texts of a list.
pub(super) fn texts<'a>(object: &'a Json, pointer: &str) -> Vec<&'a str> {
    list(object, pointer).iter().filter_map(Json::as_str).collect()
}

/// Whether it may stand in a path of the API: texts of some objects nobody has checked.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
        && !text.starts_with('.')
}

/// Whether a pattern such as `*.example.com`, `*` or a host takes a host.
pub(super) fn takes(pattern: &str, host: &str) -> bool {
    let pattern = pattern.rsplit('/').next().unwrap_or_default();
    match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end) && host.len() > end.len(),
        None => pattern.eq_ignore_ascii_case(host),
    }
}
