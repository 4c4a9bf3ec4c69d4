//! Content that takes long to work on: held up where the work begins, in the thread that does it.

use std::sync::{Arc, Condvar, Mutex};

use std::time::Duration;

use pipeline_core::{
    Attempt, Cause, Change, Enrich as _, Enriched, Event, Reason, Record, StageError, Timestamp, Version,
};
use serde_json::json;
use stages_argocd::content;

use crate::events::{Stage, application, argo_cd, event};
use crate::support::Server;

/// Holds up the work on the content of one application until it is opened, or the test is over.
#[derive(Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn probe(&self, name: &'static str) -> content::Probe {
        let gate = self.0.clone();
        content::Probe::new(move |key| {
            if key.name() == name {
                let (open, opened) = &*gate;
                drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
            }
        })
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// What is worked on here ends, or is given up, long before this.
const LONG: Duration = Duration::from_secs(60);

fn large(name: &str, version: u64, note: &str) -> Event {
    let mut object = application(name);
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object["metadata"]["annotations"] = json!({"note": note, "text": "x".repeat(content::SMALL)});
    let body = object.to_string().into();
    Event { version: Version(version), change: Change::Applied { body }, ..event(name) }
}

async fn held(server: &Server, gate: &Gate, limit: Duration) -> Stage {
    let content = content::Config { time: limit, probe: gate.probe("held"), ..content::Config::default() };
    Stage::looked(server, |config| config.content = content).await
}

/// One thread runs everything: whatever stands still there holds up all else.
#[tokio::test]
async fn content_that_takes_long_holds_up_no_other_application() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let gate = Gate::default();
    let stage = Arc::new(held(&server, &gate, LONG).await);
    let slow = {
        let stage = stage.clone();
        tokio::spawn(async move { stage.enrich(&large("held", 7, "a")).await })
    };
    for n in 0..20 {
        let name = format!("app-{n}");
        let event = if n % 2 == 0 { event(&name) } else { large(&name, 7, "a") };
        assert_eq!(stage.enrich(&event).await.unwrap().reports.len(), 3, "{name}");
    }
    assert!(!slow.is_finished());
    gate.open();
    assert_eq!(slow.await.unwrap().unwrap().reports.len(), 3);
}

/// Tries until the work that nobody waits for any more has ended.
async fn until_worked(stage: &Stage, event: &Event) -> Enriched {
    let worked = async {
        loop {
            match stage.enrich(event).await {
                Ok(enriched) => return enriched,
                Err(error) => {
                    assert!(matches!(error.reason(), Reason::TooSlow | Reason::Timeout), "{error}");
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, worked).await.unwrap()
}

fn refused(result: Result<Enriched, StageError>) -> (bool, Reason, String) {
    let error = result.unwrap_err();
    (error.is_retry(), error.reason(), error.to_string())
}

#[tokio::test]
async fn content_that_always_takes_too_long_is_given_up_until_it_changes() {
    // Long enough for what is not held up, however busy the machine is.
    const LIMIT: Duration = Duration::from_secs(5);
    let server = Server::new(|_, path| argo_cd(path)).await;
    let gate = Gate::default();
    let stage = held(&server, &gate, LIMIT).await;
    let said = |retry| {
        (retry, Reason::TooSlow, "work on the application's content takes longer than 5 s".to_owned())
    };
    let mut said_of_tries = Vec::new();
    for _ in 0..3 {
        said_of_tries.push(refused(stage.enrich(&large("held", 7, "a")).await));
    }
    let goes_on = "earlier work on the application's content goes on still".to_owned();
    assert_eq!(said_of_tries, [said(true), (true, Reason::TooSlow, goes_on), said(false)]);
    gate.open();
    for version in [7, 8] {
        assert_eq!(refused(stage.enrich(&large("held", version, "a")).await), said(false), "it is the same");
    }
    assert_eq!(until_worked(&stage, &large("held", 9, "b")).await.reports.len(), 3, "it changed");
}

#[tokio::test]
async fn an_application_whose_content_was_given_up_is_tried_when_somebody_asks_and_its_end_is_told() {
    let server = Server::new(|_, path| argo_cd(path)).await;
    let gate = Gate::default();
    let stage = held(&server, &gate, Duration::from_secs(5)).await;
    let event = large("held", 7, "a");
    for _ in 0..3 {
        refused(stage.enrich(&event).await);
    }
    let body = event.body().unwrap().clone();
    let deleted =
        Event { version: Version(8), change: Change::Deleted { body: Some(body) }, ..event.clone() };
    let (known, attempt) = (Record::new(deleted.uid.clone()), Attempt::at(Timestamp::UNIX_EPOCH));
    let told = stage.stage.enrich(&deleted, Some(&known), &attempt).await.unwrap();
    assert!(matches!(told.reports.as_slice(), [report] if report.ends));
    gate.open();
    let asked = Event { cause: Cause::Refetch, ..event };
    assert_eq!(until_worked(&stage, &asked).await.reports.len(), 3);
}
