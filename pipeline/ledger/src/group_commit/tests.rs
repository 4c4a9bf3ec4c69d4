//! A writer that dies leaves nobody waiting, and its store knows.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use pipeline_core::Record;

use super::*;
use crate::intents::Intent;
use crate::state::State;
use crate::tests::key;
use crate::{Ledger, Origin};

/// A store with a bug.
#[derive(Default)]
struct Broken {
    stopped: AtomicBool,
}

impl Store for Broken {
    fn storage(&self) -> &'static str {
        "broken"
    }

    fn commit<'a>(&'a self, _group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>> {
        panic!("a bug in a store");
    }

    fn intend(&self, _intent: Intent) -> BoxFuture<'_, bool> {
        ready(true).boxed()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn when_a_commit_panics_the_store_hears_that_nothing_is_written_any_more() {
    let shared = Arc::new(Shared::new(String::new(), String::new(), State::default(), Some(1)));
    let store = Arc::new(Broken::default());
    let work = GroupCommit::new(shared.clone(), store.clone(), Duration::ZERO, Duration::ZERO);
    let writer = Some(Writer::task(work));
    let ledger = Ledger::over(shared, Origin::Memory, store.clone(), writer);
    ledger.update(&key(1), |_| Some(Record::new("uid".into())));
    assert!(ledger.flush().await.is_err(), "it waits in vain");
    assert!(store.stopped.load(Ordering::SeqCst));
}
