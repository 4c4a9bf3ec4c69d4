//! What is told of runtimes beside their reports: that they live, and what of theirs was not taken. It is written at once, and then
//! seldom: neither a flood of refusals nor 32 digests a minute are as many commits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use stages_platform_store::{Store, StoreError};

/// What is noted of one runtime is written no oftener.
const SELDOM: Duration = Duration::from_secs(5);

/// What is noted and not written yet, by runtime; `None`: nobody knows whose it is.
#[derive(Debug)]
pub(crate) struct Noted {
    store: Store,
    all: Mutex<HashMap<Option<i64>, Of>>,
}

#[derive(Debug, Default)]
struct Of {
    written: Option<Instant>,
    waits: Waits,
    /// Roles that were heard of since the process began.
    known: BTreeSet<&'static str>,
}

#[derive(Debug, Default)]
struct Waits {
    refused: BTreeMap<&'static str, u64>,
    /// Roles that were heard of, each with its version.
    roles: BTreeMap<&'static str, String>,
}

impl Noted {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, all: Mutex::default() }
    }

    /// A role of a runtime was heard of; an empty one: it is not known which. The first time does not wait: somebody may look for it.
    pub(crate) fn heard(self: &Arc<Self>, runtime: i64, role: &'static str, version: &str) {
        self.note(Some(runtime), |of| {
            of.waits.roles.insert(role, version.to_owned());
            of.known.insert(role)
        });
    }

    /// Something was not taken.
    pub(crate) fn refused(self: &Arc<Self>, runtime: Option<i64>, reason: &'static str) {
        self.note(runtime, |of| {
            *of.waits.refused.entry(reason).or_default() += 1;
            false
        });
    }

    /// What is noted within [`SELDOM`] of the last time waits for whatever comes next, unless it says that it does not.
    fn note(self: &Arc<Self>, runtime: Option<i64>, note: impl FnOnce(&mut Of) -> bool) {
        let due = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            let of = all.entry(runtime).or_default();
            let (at_once, now) = (note(of), Instant::now());
            if !at_once && of.written.is_some_and(|written| now.duration_since(written) < SELDOM) {
                return;
            }
            of.written = Some(now);
            std::mem::take(&mut of.waits)
        };
        let noted = self.clone();
        tokio::spawn(async move {
            if let Err(error) = noted.write(runtime, due).await {
                let error = &*error as &(dyn std::error::Error + 'static);
                tracing::warn!(error, "what is known of a runtime beside its reports is not kept");
            }
        });
    }

    async fn write(&self, runtime: Option<i64>, due: Waits) -> Result<(), Arc<StoreError>> {
        let now = Timestamp::now().as_millisecond();
        if let Some(runtime) = runtime {
            for (role, version) in due.roles {
                self.store.keep_heard(runtime, (role, &version), now).await?;
            }
        }
        let refused: Vec<(&str, u64)> = due.refused.into_iter().collect();
        if refused.is_empty() {
            return Ok(());
        }
        self.store.count_refused(runtime, &refused, now).await
    }
}
