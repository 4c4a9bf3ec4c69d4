//! The file of certificate authorities is followed: once it holds others, they are trusted, and no connection is kept that was made
//! before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pipeline_core::Digest;

use crate::Config;

/// The client that trusts what the file of certificate authorities held when it was looked at last.
#[derive(Debug)]
pub(crate) struct Trusting {
    config: Config,
    now: Mutex<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    http: reqwest::Client,
    /// What the file held, also if it could not be used.
    held: Digest,
    looked: Instant,
}

impl Trusting {
    /// Begins with `http`, which trusts what the file held.
    pub(crate) fn new(config: Config, http: reqwest::Client, held: Digest) -> Arc<Self> {
        Arc::new(Self { config, now: Mutex::new(Trusted { http, held, looked: Instant::now() }) })
    }

    /// The client that is used now. Looks at the file at most so often, and leaves the runtime's threads for it; who
    /// asks meanwhile is not kept waiting.
    pub(crate) async fn now(this: &Arc<Self>) -> reqwest::Client {
        {
            let mut now = this.lock();
            if this.config.ca_file.is_none() || now.looked.elapsed() < this.config.look {
                return now.http.clone();
            }
            now.looked = Instant::now();
        }
        let look = this.clone();
        // It fails when the process is stopping.
        let _ = tokio::task::spawn_blocking(move || look.look()).await;
        this.lock().http.clone()
    }

    /// Trusts what the file holds by now. One that cannot be read or used leaves in force what was.
    fn look(&self) {
        let Some(path) = &self.config.ca_file else { return };
        let Ok(pem) = self.config.authorities(path) else { return };
        let held = Digest::of(&pem);
        if self.lock().held == held {
            return;
        }
        let trusting = self.config.trusting(path, &pem);
        let mut now = self.lock();
        now.held = held;
        let path = path.display();
        match trusting {
            Ok(http) => {
                now.http = http;
                tracing::info!(%path, "other certificate authorities are trusted from now on");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%path, error, "the certificate authorities read before stay in use");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Trusted> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
