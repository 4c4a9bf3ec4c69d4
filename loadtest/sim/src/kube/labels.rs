//! Label selectors, as the API server reads them: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` and `!a`, with
//! commas between.

use std::collections::HashMap;

use serde::Deserialize;

use super::store::Entry;
use crate::generate::Fleet;

/// What one part of a selector asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

/// A selector: what each part asks of its label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Labels(Vec<(String, Wanted)>);

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Option<HashMap<String, String>>,
}

impl Labels {
    /// Reads a selector; of an empty one everything is selected.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            // A comma within brackets ends no part.
            let open = rest.find('(').filter(|open| rest.find(',').is_none_or(|comma| *open < comma));
            let end = match open {
                Some(open) => rest.get(open..).and_then(|list| list.find(')')).map(|close| open + close + 1),
                None => rest.find(',').or(Some(rest.len())),
            };
            let part = end.and_then(|end| rest.get(..end));
            parts.push(part.and_then(wanted).ok_or_else(|| format!("unable to parse requirement: {rest}"))?);
            rest = end.and_then(|end| rest.get(end..)).unwrap_or_default().trim();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim();
        }
        Ok(Self(parts))
    }

    /// Whether nothing is asked for.
    pub(super) fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object is selected, by the labels that it is served with.
    pub(super) fn select(&self, entry: &Entry, fleet: Option<&Fleet>) -> bool {
        if self.is_all() {
            return true;
        }
        let mut text = Vec::new();
        entry.render(fleet, &mut text);
        let object = serde_json::from_slice::<Labelled>(&text).ok();
        let labels = object.and_then(|object| object.metadata.labels).unwrap_or_default();
        self.0.iter().all(|(name, wanted)| match (wanted, labels.get(name)) {
            (Wanted::Exists, found) => found.is_some(),
            (Wanted::Absent, found) => found.is_none(),
            (Wanted::In(values), found) => found.is_some_and(|found| values.contains(found)),
            (Wanted::NotIn(values), found) => found.is_none_or(|found| !values.contains(found)),
        })
    }
}

fn wanted(part: &str) -> Option<(String, Wanted)> {
    let name =
        |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains(' '));
    if let Some(absent) = part.strip_prefix('!') {
        return Some((name(absent)?, Wanted::Absent));
    }
    if let Some((head, list)) = part.split_once('(') {
        let values = list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (label, operator) = head.trim().rsplit_once(' ')?;
        return match operator {
            "in" => Some((name(label)?, Wanted::In(values))),
            "notin" => Some((name(label)?, Wanted::NotIn(values))),
            _ => None,
        };
    }
    if let Some((label, value)) = part.split_once("!=") {
        return Some((name(label)?, Wanted::NotIn(vec![value.trim().to_owned()])));
    }
    match part.split_once('=') {
        Some((label, value)) => {
            let value = value.trim_start_matches('=').trim().to_owned();
            Some((name(label)?, Wanted::In(vec![value])))
        }
        None => Some((name(part)?, Wanted::Exists)),
    }
}
