//! Replays the watch of recordings into the simulated API server, in the order of resourceVersions.

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
}

impl Player {
    /// Prepares cases that were recorded in one cluster.
    pub fn new(cases: &[Case]) -> anyhow::Result<Self> {
        let mut lines = Vec::new();
        for case in cases {
            for (at, line) in case.watch.iter().enumerate() {
                let version = version_of(line).with_context(|| {
                    format!("read the resourceVersion of event {at} of case {}", case.name)
                })?;
                lines.push((version, line.clone()));
            }
        }
        lines.sort_by_key(|(version, _)| *version);
        let lines = lines.into_iter().map(|(_, line)| line).collect();
        Ok(Self { lines, next: 0, recorded: Arc::new(Recorded::new(cases)) })
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

    /// Plays the next event; gives whose it was, `None` at the end.
    pub fn step(&mut self, kube: &KubeSim) -> anyhow::Result<Option<Key>> {
        let Some(line) = self.lines.get(self.next) else { return Ok(None) };
        self.next += 1;
        let name = name_of(line)?;
        self.recorded.advance(&name);
        kube.replay(&line.kind, line.object.get()).map(Some)
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
