//! Replays the watch of recordings into the simulated API server, in the order of resourceVersions, or in that in
//! which a recorded reporter took the events up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_core::Key;

use super::argocd::Recorded;
use super::kube::KubeSim;
use crate::recordings::{Case, WatchLine};

/// Plays watch events one by one; Argo CD's answers move along.
#[derive(Debug)]
pub struct Player {
    lines: Vec<WatchLine>,
    next: usize,
    recorded: Arc<Recorded>,
    in_turns: bool,
}

impl Player {
    /// Prepares cases that were recorded in one cluster.
    pub fn new(cases: &[Case]) -> anyhow::Result<Self> {
        Self::with(cases, Recorded::new(cases), false)
    }

    /// Prepares cases in which the product's own reporter was recorded: Argo CD answers as it answered that, and
    /// events come in the order in which it took them up. (An application's own are always in order.)
    pub fn of_reporter(cases: &[Case]) -> anyhow::Result<Self> {
        Self::with(cases, Recorded::of_reporter(cases), true)
    }

    fn with(cases: &[Case], recorded: Recorded, in_turns: bool) -> anyhow::Result<Self> {
        let mut lines = Vec::new();
        let mut events: HashMap<String, usize> = HashMap::new();
        for case in cases {
            for (at, line) in case.watch.iter().enumerate() {
                let version = version_of(line).with_context(|| {
                    format!("read the resourceVersion of event {at} of case {}", case.name)
                })?;
                let name = name_of(line)?;
                let event = events.entry(name.clone()).or_default();
                let taken_up = recorded.taken_up(&name, *event);
                *event += 1;
                lines.push((taken_up.unwrap_or_default(), version, line.clone()));
            }
        }
        lines.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        let lines = lines.into_iter().map(|(_, _, line)| line).collect();
        Ok(Self { lines, next: 0, recorded: Arc::new(recorded), in_turns })
    }

    /// The answers that move along.
    #[must_use]
    pub fn recorded(&self) -> Arc<Recorded> {
        self.recorded.clone()
    }

    /// Events that are still to come.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.lines.len() - self.next
    }

    /// Time between the event that was played last and the next, as recorded; `None` at the end.
    #[must_use]
    pub fn gap(&self) -> Option<Duration> {
        let line = self.lines.get(self.next)?;
        let before = self.next.checked_sub(1).and_then(|at| self.lines.get(at));
        Some(before.map_or(Duration::ZERO, |before| Duration::from_secs_f64((line.t - before.t).max(0.0))))
    }

    /// Name of the application whose event is next; `None` at the end.
    pub fn whose(&self) -> anyhow::Result<Option<String>> {
        self.lines.get(self.next).map(name_of).transpose()
    }

    /// Plays the next event; gives whose it was, `None` at the end.
    pub fn step(&mut self, kube: &KubeSim) -> anyhow::Result<Option<Key>> {
        let Some(line) = self.lines.get(self.next) else { return Ok(None) };
        self.next += 1;
        let name = name_of(line)?;
        self.recorded.advance(&name);
        let object = line.object.get();
        let key = if self.in_turns {
            kube.replay_late(&line.kind, object)
        } else {
            kube.replay(&line.kind, object)
        };
        key.map(Some)
    }

    /// Plays all that is left, `speed` times as fast as it was recorded but with pauses of at most `longest`;
    /// without pauses when `speed` is not above 0.
    pub async fn play(&mut self, kube: &KubeSim, speed: f64, longest: Duration) -> anyhow::Result<()> {
        while let Some(gap) = self.gap() {
            if speed > 0.0 {
                tokio::time::sleep(gap.div_f64(speed).min(longest)).await;
            }
            self.step(kube)?;
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct Head {
    metadata: Metadata,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

fn version_of(line: &WatchLine) -> anyhow::Result<u64> {
    let head: Head = serde_json::from_str(line.object.get())?;
    Ok(head.metadata.resource_version.parse()?)
}

fn name_of(line: &WatchLine) -> anyhow::Result<String> {
    let head: Head = serde_json::from_str(line.object.get())?;
    Ok(head.metadata.name)
}

#[cfg(test)]
mod tests;
