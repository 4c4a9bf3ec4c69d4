//! `GET /v1/tail`: the steps that happen from now on, a line of JSON each, for as long as the client listens.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use pipeline_core::{Key, Shutdown, Timestamp, Trace};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::answer::{Refusal, failed};
use super::short_kind::is_same_kind;
use super::wire::{Line, Moment, Step};

/// How often an empty line shows that the connection lives, and finds out whether the client does.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How many names one filter may have.
const NAMES: usize = 100;

/// The query of `GET /v1/tail`: filters, each a list with commas between its names; an empty one lets everything through.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TailQuery {
    #[serde(default)]
    app: String,
    #[serde(default)]
    shard: String,
    #[serde(default)]
    step: String,
}

/// Which steps a listener is told; an empty list lets everything through.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TailFilter {
    apps: Vec<String>,
    shards: Vec<u32>,
    steps: Vec<String>,
}

impl TailQuery {
    /// Reads the filters; a name that can never be met where there are so many shards is refused.
    pub(super) fn read(&self, of: u32) -> Result<TailFilter, Refusal> {
        let list = |text: &str| {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let wrong = |why: String| failed(StatusCode::BAD_REQUEST, why);
        let (apps, steps) = (list(&self.app), list(&self.step));
        if let Some(step) = steps.iter().find(|step| !Step::NAMES.contains(&step.as_str())) {
            return Err(wrong(format!("`{step}` is no step: {}", Step::NAMES.join(", "))));
        }
        if let Some(app) = apps.iter().find(|app| app.contains('/') && Key::parse(app).is_err()) {
            return Err(wrong(format!(
                "`{app}` is no object: give name, namespace/name or kind/namespace/name"
            )));
        }
        let mut shards = Vec::new();
        for shard in list(&self.shard) {
            let read = shard.parse().ok().filter(|number| *number < of);
            let last = of.saturating_sub(1);
            shards.push(read.ok_or_else(|| wrong(format!("`{shard}` is no shard: they are 0 to {last}")))?);
        }
        if apps.len() > NAMES || shards.len() > NAMES {
            return Err(wrong(format!("a filter takes at most {NAMES} names")));
        }
        Ok(TailFilter { apps, shards, steps })
    }
}

impl TailFilter {
    fn takes(&self, shard: u32, key: &Key, step: &Step) -> bool {
        let own = |app: &String| match Key::parse(app) {
            Ok(asked) => {
                (asked.namespace(), asked.name()) == (key.namespace(), key.name())
                    && is_same_kind(asked.kind(), key.kind())
            }
            Err(_) => app == key.name(),
        };
        (self.shards.is_empty() || self.shards.contains(&shard))
            && (self.apps.is_empty() || self.apps.iter().any(own))
            && (self.steps.is_empty() || self.steps.iter().any(|name| name == step.name()))
    }
}

/// A client that listens, and what is sent to it.
struct Listener {
    traces: Receiver<(u32, Trace)>,
    filter: TailFilter,
    beat: Interval,
    closing: Shutdown,
    /// The place that it takes among the listeners.
    _place: OwnedSemaphorePermit,
}

/// The answer to a listener: a stream of lines that ends when the process stops.
pub(super) fn tail(
    traces: Receiver<(u32, Trace)>,
    filter: TailFilter,
    closing: Shutdown,
    place: OwnedSemaphorePermit,
) -> Response {
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener { traces, filter, beat, closing, _place: place };
    let lines = stream::unfold(listener, async |mut listener| {
        let line = listener.next().await?;
        Some((Ok::<_, Infallible>(line), listener))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

impl Listener {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let told = tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                _ = self.beat.tick() => return Some(Bytes::from_static(b"\n")),
                told = self.traces.recv() => told,
            };
            let line = match told {
                Ok((shard, trace)) => {
                    let step = Step::from(trace.step);
                    if !self.filter.takes(shard, &trace.key, &step) {
                        continue;
                    }
                    Line::Happened(Moment::new(Timestamp::now(), shard, &trace))
                }
                Err(RecvError::Lagged(lost)) => Line::Lost { lost },
                Err(RecvError::Closed) => return None,
            };
            // A line of names and numbers can always be written.
            if let Ok(mut line) = serde_json::to_vec(&line) {
                line.push(b'\n');
                return Some(line.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt as _;
    use pipeline_core::Version;
    use tokio::sync::{Semaphore, broadcast};

    use super::*;

    fn asked(app: &str, shard: &str, step: &str) -> TailQuery {
        TailQuery { app: app.to_owned(), shard: shard.to_owned(), step: step.to_owned() }
    }

    fn trace(name: &str) -> Trace {
        let key = Key::new("argocd", name).unwrap();
        Trace { key, version: Version(7), trace: 1, step: pipeline_core::Step::Observed }
    }

    #[test]
    fn filters_let_through_what_they_name() {
        let key = Key::new("argocd", "shop").unwrap();
        let takes = |app, shard, step| {
            asked(app, shard, step).read(4).unwrap().takes(3, &key, &Step::Started { attempt: 0 })
        };
        for (app, shard, step) in [
            ("", "", ""),
            ("shop", "", ""),
            ("other, argocd/shop", "", ""),
            ("", "1,3", ""),
            ("", "", "acked,started"),
            ("shop", "3", "started"),
        ] {
            assert!(takes(app, shard, step), "{app} {shard} {step}");
        }
        for (app, shard, step) in [("other/shop", "", ""), ("sho", "", ""), ("", "1", ""), ("", "", "acked")]
        {
            assert!(!takes(app, shard, step), "{app} {shard} {step}");
        }
    }

    #[test]
    fn filters_that_can_never_be_met_are_refused() {
        let many = vec!["x"; 101].join(",");
        for (asked, expected) in [
            (
                asked("", "", "ackd"),
                "`ackd` is no step: observed, coalesced, filtered, limited, started, fetched, enriched, reported, \
                 not_taken, acked, retried, parked, reading, refetch, gave_up",
            ),
            (
                asked("a/b/c/d", "", ""),
                "`a/b/c/d` is no object: give name, namespace/name or kind/namespace/name",
            ),
            (asked("", "two", ""), "`two` is no shard: they are 0 to 3"),
            (asked("", "0,4", ""), "`4` is no shard: they are 0 to 3"),
            (asked(&many, "", ""), "a filter takes at most 100 names"),
        ] {
            assert_eq!(asked.read(4).unwrap_err().into_body().error, expected);
        }
    }

    #[tokio::test]
    async fn a_listener_that_lags_loses_the_oldest_and_is_told_how_many() {
        let (tell, traces) = broadcast::channel(4);
        let places = Arc::new(Semaphore::new(1));
        let place = places.clone().try_acquire_owned().unwrap();
        let closing = Shutdown::new();
        for n in 0..10 {
            tell.send((0, trace(&format!("app-{n}")))).unwrap();
        }
        let filter = TailFilter::default();
        let mut body = tail(traces, filter, closing.clone(), place).into_body();
        let mut lines = Vec::new();
        while lines.len() < 5 {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            if frame.len() > 1 {
                lines.push(serde_json::from_slice::<Line>(&frame).unwrap());
            }
        }
        assert_eq!(lines[0], Line::Lost { lost: 6 });
        let names: Vec<String> = lines
            .into_iter()
            .filter_map(|line| match line {
                Line::Happened(moment) => Some(moment.app),
                Line::Lost { .. } => None,
            })
            .collect();
        assert_eq!(names, ["argocd/app-6", "argocd/app-7", "argocd/app-8", "argocd/app-9"]);
        assert_eq!(places.available_permits(), 0);
        closing.cancel();
        assert!(body.frame().await.is_none());
        drop(body);
        assert_eq!(places.available_permits(), 1);
    }
}
