//! What is said in the log, by tests whose server runs in their own thread.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the lines that warn.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Listens until the guard is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        static EARS: Once = Once::new();
        // A line that another test reaches first, while nobody listens, may count as heard by nobody for ever.
        EARS.call_once(|| tracing::subscriber::set_global_default(Self::default()).unwrap());
        tracing::subscriber::set_default(self.clone())
    }

    /// The lines so far: the message, and each field as ` name=value`.
    pub(crate) fn said(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}{}", self.0);
        } else {
            write!(self.0, " {field}={value:?}").unwrap();
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["stages_client::own_certificate", "stages_tunnel"];
        *metadata.level() == Level::WARN && ours.iter().any(|of| metadata.target().starts_with(of))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Line(&mut line));
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
