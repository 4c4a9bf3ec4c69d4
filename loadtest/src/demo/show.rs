//! The demo while it runs: on a terminal a line for each application that is drawn again, elsewhere a line for
//! each that moved, every second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar};

use super::board::Row;
use crate::reporter::Status;
use crate::screen::{bar, is_live, say, style};

/// How often lines are printed where nothing can be drawn.
const EVERY: Duration = Duration::from_secs(1);

pub(super) struct Show {
    began: Instant,
    lines: MultiProgress,
    all: ProgressBar,
    applications: Vec<ProgressBar>,
    printed: Mutex<(Instant, Vec<(String, Row)>)>,
}

impl Show {
    pub(super) fn new(events: u64, rows: &[(String, Row)]) -> Self {
        let lines = MultiProgress::new();
        let applications = rows.iter().map(|(name, _)| {
            let line = lines.add(ProgressBar::new_spinner());
            line.set_style(style("  {prefix:20.cyan} {msg}"));
            line.set_prefix(name.clone());
            line
        });
        let applications = applications.collect();
        let all = lines.add(bar(events, "events"));
        let printed = Mutex::new((Instant::now(), rows.to_vec()));
        Self { began: Instant::now(), lines, all, applications, printed }
    }

    /// One event was played.
    pub(super) fn played(&self) {
        self.all.inc(1);
    }

    /// Tells what happens to the peers.
    pub(super) fn notice(&self, text: &str) {
        let text = format!("{:6.1}s  {text}", self.began.elapsed().as_secs_f64());
        if !is_live() || self.lines.println(&text).is_err() {
            say(&text);
        }
    }

    /// Shows the newest figures.
    pub(super) fn draw(&self, rows: &[(String, Row)], status: &Status) {
        if is_live() {
            for (line, (_, row)) in self.applications.iter().zip(rows) {
                line.set_message(figures(row));
            }
            let total = &status.total;
            self.all.set_message(format!(
                "observed {} reported {} coalesced {} filtered {} waiting {} circuit {}",
                total.observed,
                total.acked,
                total.coalesced,
                total.filtered,
                total.waiting + total.dirty,
                status.circuit.state
            ));
            return;
        }
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.0.elapsed() < EVERY {
            return;
        }
        for (name, row) in rows {
            if !printed.1.iter().any(|(own, before)| own == name && before == row) {
                say(&format!("{:6.1}s  {name:20} {}", self.began.elapsed().as_secs_f64(), figures(row)));
            }
        }
        *printed = (Instant::now(), rows.to_vec());
    }

    /// Leaves the screen to what comes.
    pub(super) fn done(&self) {
        for line in &self.applications {
            line.finish_and_clear();
        }
        self.all.finish_and_clear();
    }
}

fn figures(row: &Row) -> String {
    let Row { observed, applications, resources, coalesced, filtered, retried, .. } = row;
    format!(
        "observed {observed:3}  reported {applications:3} + {resources:3} resources  coalesced {coalesced:2}  \
         filtered {filtered:2}  retried {retried:2}"
    )
}
