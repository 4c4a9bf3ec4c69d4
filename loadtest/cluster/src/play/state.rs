//! What an Application says of itself.

use std::fmt;

use serde_json::Value;

use super::REFRESH;
use crate::scenario::Wait;

/// An Application as the API server gives it.
#[derive(Debug, Clone)]
pub(super) struct State {
    object: Value,
}

impl State {
    pub(super) fn new(object: Value) -> Self {
        Self { object }
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The phase of its last operation.
    pub(super) fn phase(&self) -> &str {
        self.text("/status/operationState/phase")
    }

    /// Whether an operation was asked for that has not ended.
    pub(super) fn is_asked_for(&self) -> bool {
        self.object.get("operation").is_some_and(|operation| !operation.is_null())
    }

    /// Whether its last operation has ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed" | "Error")
    }

    /// Whether the operation that was asked for runs.
    pub(super) fn is_running(&self) -> bool {
        self.is_asked_for() && self.phase() == "Running"
    }

    /// Whether a comparison was asked for that has not been made.
    pub(super) fn is_asked_to_refresh(&self) -> bool {
        self.object.pointer("/metadata/annotations").is_some_and(|all| all.get(REFRESH).is_some())
    }

    /// The id of an entry of its history, counted back from the last.
    pub(super) fn history(&self, back: usize) -> Option<i64> {
        self.list("/status/history").iter().rev().nth(back)?.get("id")?.as_i64()
    }

    /// Whether everything that a step says holds; `head` is the newest commit, where the step asks for it.
    pub(super) fn is(&self, step: &Wait, head: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, pointer| {
            wanted.as_ref().is_none_or(|wanted| wanted == self.text(pointer))
        };
        let mut conditions = self.list("/status/conditions").iter();
        is(&step.health, "/status/health/status")
            && is(&step.sync, "/status/sync/status")
            && is(&step.phase, "/status/operationState/phase")
            && step.resources.is_none_or(|count| count == self.list("/status/resources").len())
            && head.is_none_or(|head| self.is_compared_with(head))
            && step.condition.as_ref().is_none_or(|wanted| {
                conditions.any(|own| own.get("type").and_then(Value::as_str) == Some(wanted))
            })
            && step.message.as_ref().is_none_or(|wanted| self.messages().any(|own| own.contains(wanted)))
    }

    /// Whether every source was compared with this commit.
    pub(super) fn is_compared_with(&self, head: &str) -> bool {
        match self.list("/status/sync/revisions") {
            [] => self.text("/status/sync/revision") == head,
            several => several.iter().all(|revision| revision.as_str() == Some(head)),
        }
    }

    fn messages(&self) -> impl Iterator<Item = &str> {
        let conditions = self.list("/status/conditions").iter();
        let conditions = conditions.filter_map(|own| own.get("message").and_then(Value::as_str));
        conditions.chain([self.text("/status/operationState/message")])
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &'_ str| if text.is_empty() { "unset".to_owned() } else { text.to_owned() };
        write!(
            f,
            "health {}, sync {} of {}, operation {}, {} resources",
            or(self.text("/status/health/status")),
            or(self.text("/status/sync/status")),
            or(self.text("/status/sync/revision")),
            or(self.phase()),
            self.list("/status/resources").len()
        )?;
        let conditions = self.list("/status/conditions").iter();
        for kind in conditions.filter_map(|own| own.get("type").and_then(Value::as_str)) {
            write!(f, ", {kind}")?;
        }
        for message in self.messages().filter(|message| !message.is_empty()) {
            // Long enough to know it again.
            let short: String = message.chars().take(300).collect();
            write!(f, "; {short}")?;
        }
        Ok(())
    }
}
