//! Whose request it is: told by the token in `Authorization`, as it is or after `Bearer`, before anything of the body is read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use pipeline_core::SecretString;
use sha2::{Digest as _, Sha256};
use stages_client::bearer_token;
use stages_platform_store::{Runtime, Store};

use crate::refusal::Refusal;

/// A token that was known is not asked for again so soon.
const KNOWN_FOR: Duration = Duration::from_secs(10);
/// Tokens that are remembered; beyond them all are asked for anew.
const REMEMBERED: usize = 10_000;

/// Tokens that were known lately, by their digest.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<[u8; 32], (Runtime, Instant)>>,
}

impl Tokens {
    pub(crate) async fn runtime(&self, store: &Store, headers: &HeaderMap) -> Result<Runtime, Refusal> {
        let token = headers.get(header::AUTHORIZATION).ok_or(Refusal::NoToken)?;
        let token = token.to_str().map_err(|_| Refusal::UnknownToken)?;
        let token = bearer_token(token).ok_or(Refusal::NoToken)?;
        let (digest, now): ([u8; 32], _) = (Sha256::digest(token.as_bytes()).into(), Instant::now());
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((runtime, until)) = known.get(&digest)
                && now < *until
            {
                return Ok(runtime.clone());
            }
        }
        let found = store.runtime(&SecretString::from(token)).await.map_err(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "tokens cannot be read");
            Refusal::Unreadable
        })?;
        let runtime = found.ok_or(Refusal::UnknownToken)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(digest, (runtime.clone(), now + KNOWN_FOR));
        Ok(runtime)
    }
}
