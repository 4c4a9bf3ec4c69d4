//! `resource-reporter --dry-run`: what would be sent, and why all else is not, a line of JSON each on standard output; at the end
//! how much of each.
//!
//! ```json
//! {"idempotencyKey": "...", "application": "rollout/shop/web", "kind": "object", "data": {"object": {...}}}
//! {"notSent": "replicaset/shop/web-1", "reason": "idle", "why": "nothing of it runs, and nothing did before"}
//! {"notSent": {"idle": 1}, "sent": 1}
//! ```
//! With several routes each line says its `route`, but for what none of them takes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use pipeline_core::{Event, Filtered, Key, Shutdown, Sink};
use pipeline_engine::run::{Match, Unreported};
use serde_json::{Value, json};

use crate::cli::ask::why;

/// Lines that wait for who reads them; of what is not sent no more are written then, and it is counted all the same.
const WAITING: usize = 16_384;

/// What goes to standard output.
#[derive(Clone)]
pub(super) struct DryRun {
    lines: SyncSender<Line>,
    counted: Arc<Mutex<Counted>>,
}

enum Line {
    Text(Vec<u8>),
    /// Reports, and who waits until they are written: they may be large.
    Sent(Vec<u8>, SyncSender<()>),
    /// Nothing comes after what was written until now.
    End,
}

#[derive(Default)]
struct Counted {
    sent: u64,
    not_sent: BTreeMap<String, u64>,
    not_written: u64,
}

impl DryRun {
    /// Begins to write; `stop` is cancelled when nobody reads any more.
    pub(super) fn start(stop: Shutdown) -> anyhow::Result<(Self, Writing)> {
        let (lines, waiting) = sync_channel(WAITING);
        let written = std::thread::Builder::new().name("dry-run".to_owned());
        let written = written.spawn(move || write(&waiting, &stop)).context("start writing")?;
        let dry = Self { lines, counted: Arc::default() };
        Ok((dry.clone(), Writing { dry, written }))
    }

    /// In place of the sink of a route, which is named where there are several.
    pub(super) fn sink(&self, route: Option<&str>, stop: &Shutdown) -> anyhow::Result<Arc<dyn Sink>> {
        let prefix = route.map(|route| format!("{{\"route\":{},", Value::from(route)).into_bytes());
        let writer = Sent { dry: self.clone(), prefix };
        let sink = stages_report::stdout::Config.build_onto(writer, stop.clone());
        Ok(Arc::new(sink.context("write to standard output")?))
    }

    /// Hears what brings no report on a route; `others` are what the other routes take, where this one is the first.
    pub(super) fn unreported(&self, route: Option<&str>, others: Option<Vec<Match>>) -> Arc<dyn Unreported> {
        Arc::new(OfRoute { dry: self.clone(), route: route.map(str::to_owned), others })
    }

    /// An object is in a namespace that is not watched.
    pub(super) fn unwatched(&self, key: &Key) {
        self.not_sent(None, key, "namespace");
    }

    fn not_sent(&self, route: Option<&str>, key: &Key, reason: &str) {
        let mut line = json!({"notSent": key.as_str(), "reason": reason, "why": why(reason)});
        if let Some(route) = route {
            line["route"] = json!(route);
        }
        // It is counted before anybody reads of it.
        let mut counted = self.counted();
        *counted.not_sent.entry(reason.to_owned()).or_default() += 1;
        // Where whoever reads is slow nobody waits for it.
        let is_written = self.lines.try_send(Line::Text(format!("{line}\n").into_bytes())).is_ok();
        counted.not_written += u64::from(!is_written);
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is written, until the end.
pub(super) struct Writing {
    dry: DryRun,
    written: JoinHandle<()>,
}

impl Writing {
    /// Writes how much of each there was, after all else; blocking.
    pub(super) fn end(self) {
        let Self { dry, written } = self;
        let line = {
            let Counted { sent, not_sent, not_written } = &*dry.counted();
            let mut line = json!({"sent": sent, "notSent": not_sent});
            if *not_written > 0 {
                line["notWritten"] = json!(not_written);
            }
            line
        };
        // Nobody may read any more.
        let _ = dry.lines.send(Line::Text(format!("{line}\n").into_bytes()));
        let _ = dry.lines.send(Line::End);
        let _ = written.join();
    }
}

fn write(waiting: &Receiver<Line>, stop: &Shutdown) {
    let mut out = io::stdout();
    while let Ok(line) = waiting.recv() {
        let (text, done) = match line {
            Line::Text(text) => (text, None),
            Line::Sent(text, done) => (text, Some(done)),
            Line::End => return,
        };
        if out.write_all(&text).and_then(|()| out.flush()).is_err() {
            stop.cancel();
            return;
        }
        if let Some(done) = done {
            // Whoever waited may be gone.
            let _ = done.send(());
        }
    }
}

/// What the sink of a route writes: whole lines.
struct Sent {
    dry: DryRun,
    prefix: Option<Vec<u8>>,
}

impl Write for Sent {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut text = Vec::with_capacity(lines.len());
        let mut count = 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match (&self.prefix, line.strip_prefix(b"{")) {
                (Some(prefix), Some(rest)) => text.extend(prefix.iter().chain(rest)),
                _ => text.extend_from_slice(line),
            }
            count += 1;
        }
        self.dry.counted().sent += count;
        let (done, written) = sync_channel(1);
        self.dry.lines.send(Line::Sent(text, done)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        written.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What brings no report on one route.
struct OfRoute {
    dry: DryRun,
    route: Option<String>,
    others: Option<Vec<Match>>,
}

impl Unreported for OfRoute {
    fn unmatched(&self, event: &Event) {
        let untaken =
            self.others.as_ref().is_some_and(|others| !others.iter().any(|other| other.takes(event)));
        if untaken {
            self.dry.not_sent(None, &event.key, "no-route");
        }
    }

    fn filtered(&self, key: &Key, why: Filtered) {
        // The same state again says nothing.
        if why != Filtered::Stale {
            self.dry.not_sent(self.route.as_deref(), key, why.as_str());
        }
    }
}
