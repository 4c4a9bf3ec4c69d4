//! A sink that refuses the token it is sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use pipeline_core::{CircuitState, Reason, StageError};
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::running::{Running, start};

/// Keeps the messages that someone must act on.
#[derive(Clone, Default)]
struct Errors {
    messages: Arc<Mutex<Vec<String>>>,
}

struct Message<'a>(&'a mut Vec<String>);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message(&mut self.messages.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Errors {
    /// Listens until the guard is dropped. The engine runs in this thread.
    fn listen(&self) -> DefaultGuard {
        static EARS: Once = Once::new();
        // A line that another test reaches first, while nobody listens, may count as heard by nobody for ever.
        EARS.call_once(|| tracing::subscriber::set_global_default(Self::default()).unwrap());
        tracing::subscriber::set_default(self.clone())
    }

    fn said(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }
}

/// An engine with 200 objects whose sink answers `reason` until the switch is on.
fn refused(reason: Reason) -> (Running, Arc<AtomicBool>) {
    let (cluster, receiver, right) = (Cluster::new(), Receiver::new(), Arc::new(AtomicBool::new(false)));
    for number in 0..200 {
        cluster.put(&format!("app-{number}"), number + 1);
    }
    let switch = right.clone();
    receiver.answers(move |_, _| match switch.load(Ordering::SeqCst) {
        true => Ok(()),
        false => Err(StageError::reject(reason, "status 4xx")),
    });
    (start(crate::running::config(), cluster, Enricher::default(), receiver), right)
}

const SAID: &str = "the sink refuses everything: check its address and token";

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_said_once_and_everything_goes_on_as_soon_as_it_changes() {
    for reason in [Reason::Unauthorized, Reason::Forbidden] {
        let errors = Errors::default();
        let _listening = errors.listen();
        let (engine, right) = refused(reason);
        engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
        let storm = engine.receiver.came().len();
        assert!(storm <= 5 * 16, "what was in flight when it opened: {storm}");
        tokio::time::sleep(Duration::from_secs(140)).await;
        let storm = storm + 1;
        assert_eq!(engine.receiver.came().len(), storm, "one probe; nobody has acted yet, so no other");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let probes = engine.receiver.came().len() - storm;
        assert!((11..=26).contains(&probes), "every 150 to 300 s: {probes}");
        assert!(
            matches!(engine.handle.status().circuit, CircuitState::Open { reason: why, .. } if why == reason)
        );

        right.store(true, Ordering::SeqCst);
        engine.receiver.credentials.notify_one();
        let changed = Instant::now();
        let counts = engine.until_idle(200).await;
        assert!(changed.elapsed() < Duration::from_secs(5), "{:?}", changed.elapsed());
        assert_eq!((counts.acked, counts.parked, counts.paused), (200, 0, false));
        assert_eq!(engine.receiver.newest().len(), 200);
        assert_eq!(errors.said(), [SAID]);
        engine.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_wrong_token_is_tried_a_few_times_and_said_no_more() {
    let errors = Errors::default();
    let _listening = errors.listen();
    let (engine, right) = refused(Reason::Unauthorized);
    engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
    let storm = engine.receiver.came().len();
    engine.receiver.credentials.notify_one();
    tokio::time::sleep(Duration::from_secs(200)).await;
    let probes = engine.receiver.came().len() - storm;
    assert!((4..=10).contains(&probes), "for a minute as after any failure: {probes}");
    right.store(true, Ordering::SeqCst);
    engine.receiver.credentials.notify_one();
    engine.until_idle(200).await;
    assert_eq!(errors.said(), [SAID]);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_changes_while_all_is_well_changes_nothing() {
    let (engine, right) = refused(Reason::Unauthorized);
    right.store(true, Ordering::SeqCst);
    engine.until_idle(200).await;
    engine.receiver.credentials.notify_one();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(engine.handle.status().circuit, CircuitState::Closed);
    assert_eq!(engine.receiver.came().len(), 200);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_away_first_and_then_refuses_the_token_says_so() {
    let errors = Errors::default();
    let _listening = errors.listen();
    let (engine, right) = refused(Reason::Unauthorized);
    let away = Arc::new(AtomicBool::new(true));
    let (is_away, is_right) = (away.clone(), right.clone());
    engine.receiver.answers(move |_, _| {
        match (is_away.load(Ordering::SeqCst), is_right.load(Ordering::SeqCst)) {
            (true, _) => Err(StageError::retry(Reason::Unreachable, "connection refused")),
            (_, true) => Ok(()),
            (_, false) => Err(StageError::reject(Reason::Unauthorized, "status 401")),
        }
    });
    engine.until("paused", |counts| counts.paused && counts.in_flight == 0).await;
    assert_eq!(errors.said(), [""; 0]);
    away.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(errors.said(), [SAID]);
    right.store(true, Ordering::SeqCst);
    engine.receiver.credentials.notify_one();
    engine.until_idle(200).await;
    engine.end().await;
}
