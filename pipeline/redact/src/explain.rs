//! What was touched, and by which rule: never the value.

use super::document::is_fenced;
use super::scan::Found;
use super::tree;
use super::walk::Walk;
use super::{Redactor, prose, shape};

/// One thing that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands: the document, where there are several, members and numbers of items, or the line of a text within
    /// them.
    pub place: String,
    /// The row of the table, or the rule.
    pub rule: &'static str,
}

/// A text as it would leave the process, and what was done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The text.
    pub text: String,
    /// What was replaced, in the order it was found.
    pub notes: Vec<Note>,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) path: Vec<String>,
    /// The number of the document that is looked at, of several.
    pub(super) document: Option<usize>,
    found: Vec<Note>,
}

impl Notes {
    pub(super) fn add(&mut self, rule: &'static str) {
        let place = if self.path.is_empty() { "text".to_owned() } else { self.path() };
        self.found.push(Note { place, rule });
    }

    /// The path, behind the document in which it lies where there are several.
    fn path(&self) -> String {
        let path = self.path.join(".");
        self.document.map_or(path.clone(), |number| format!("document {number}: {path}"))
    }

    pub(super) fn lines(&mut self, text: &str, found: &[Found]) {
        let one_line = !text.contains('\n');
        let (mut line, mut done) = (1, 0);
        for found in found {
            line += text.get(done..found.range.start).unwrap_or_default().matches('\n').count();
            done = found.range.start;
            let place = match self.path.is_empty() {
                true => format!("line {line}"),
                false if one_line => self.path(),
                false => format!("{}, line {line}", self.path()),
            };
            self.found.push(Note { place, rule: found.rule });
        }
    }
}

impl Redactor {
    /// What would leave the process of any text: a manifest or an Application in JSON or YAML, of one document or many,
    /// or free text, which everything else is. One line that has no bracket is free text too: `secret: rotate` is a
    /// commit's message.
    #[must_use]
    pub fn explain(&self, text: &str) -> Explained {
        let mut walk = Walk::new(self);
        walk.notes = Some(Notes::default());
        let opens = text.trim_start().starts_with(['{', '[']);
        let lines = text.trim_end().lines().count() > 1;
        let object = || {
            if opens && tree::json(text).is_ok() {
                return true;
            }
            let flow = shape::ends_in_flow(text.trim_end());
            (lines || opens || flow)
                && !prose::is_message(text)
                && tree::yaml(text).is_ok_and(|all| all.iter().any(|one| one.is_object() || one.is_array()))
        };
        // A line that quotes the data of one is withheld as every message is.
        let secret = || (lines || opens) && shape::mentions_secret(text) && !is_fenced(text);
        let new = if object() || secret() || text.contains("{{") && walk.is_template(text) {
            match walk.raw(text) {
                Ok(new) => new.into_owned(),
                Err(_) => {
                    walk.note("unreadable");
                    self.withheld(text)
                }
            }
        } else {
            match walk.string(text, 0) {
                Some(new) => new,
                None => text.to_owned(),
            }
        };
        Explained { text: new, notes: walk.notes.map(|notes| notes.found).unwrap_or_default() }
    }
}
