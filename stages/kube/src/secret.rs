//! A token or password that stands in a Secret, and is followed there.
//!
//! takes: the name of a Secret and a key in it - gives: the text under that key, and each that stands there later.
//! It is asked for every few seconds and not watched: a watch would need the right to list and watch it
//! calls: `GET /api/v1/namespaces/{namespace}/secrets/{name}` - fails: with what is missing; nothing of the
//! answer stands in an error. Only a process that is told to needs the right to this one Secret.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::GetParams;
use kube::core::Request;
use pipeline_core::{ExposeSecret as _, SecretString, Shutdown};
use serde::Deserialize;

use crate::api::segment;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::rights::{self, Right};
use crate::{Config, ConfigError};

/// A Secret is at most 1 MiB; base64 and its metadata are on top of that.
pub(crate) const LARGEST: usize = 4 << 20;
/// How often a Secret that holds a token is read.
const EVERY: Duration = Duration::from_secs(10);
pub(crate) const SECRETS: Kind = Kind { group: "", version: "v1", plural: "secrets", singular: "secret" };

/// Why the token cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The API server cannot be asked.
    #[error("cannot ask for the secret `{name}`")]
    Config {
        /// The Secret.
        name: String,
        /// Why.
        source: ConfigError,
    },
    /// The API server did not give it.
    #[error(
        "cannot read the secret `{name}` in `{namespace}`: it must exist, and the service account needs `get` on it"
    )]
    Read {
        /// The Secret.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Why; without anything of the answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It is there, and holds no such text.
    #[error("the secret `{name}` in `{namespace}` holds no text under the key `{key}`")]
    Key {
        /// The Secret.
        name: String,
        /// Its namespace.
        namespace: String,
        /// The key.
        key: String,
    },
}

#[derive(Deserialize)]
struct Secret {
    #[serde(default)]
    data: std::collections::HashMap<String, String>,
}

impl Config {
    /// What [`Config::secret`] needs to be allowed.
    #[must_use]
    pub fn secret_right(&self, name: &str) -> Right {
        rights::secret(&self.namespace, name)
    }

    /// The token under `key` of the Secret `name` in the runtime's namespace.
    ///
    /// # Errors
    /// [`SecretError`] when the API server cannot be asked.
    pub async fn secret(&self, name: &str, key: &str) -> Result<SecretToken, SecretError> {
        let config = |source| SecretError::Config { name: name.to_owned(), source };
        Ok(SecretToken {
            connection: self.cluster.connection().await.map_err(config)?,
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            key: key.to_owned(),
            call_timeout: self.call_timeout,
        })
    }
}

/// Where a token stands.
pub struct SecretToken {
    connection: Connection,
    namespace: String,
    name: String,
    key: String,
    call_timeout: Duration,
}

impl SecretToken {
    /// Reads it.
    ///
    /// # Errors
    /// [`SecretError`] names what is missing.
    pub async fn read(&self) -> Result<SecretString, SecretError> {
        let read = |source: Box<dyn std::error::Error + Send + Sync>| SecretError::Read {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            source,
        };
        let act = SECRETS.get();
        let request = Request::new(SECRETS.collection(Some(&self.namespace)))
            .get(&segment(&self.name), &GetParams::default())
            .map_err(|error| read(error.into()))?;
        let answer = self.connection.exchange(act, request, LARGEST);
        let answer =
            tokio::time::timeout(self.call_timeout, answer).await.unwrap_or(Err(Failure::Timeout { act }));
        let body = answer.map_err(|failure| read(failure.into()))?;
        text(&body, &self.key).ok_or_else(|| SecretError::Key {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            key: self.key.clone(),
        })
    }

    /// Tells each other token that stands there from now on, until `stop`. While it cannot be read the last one is in
    /// force; that is said once.
    pub async fn follow(self, mut last: SecretString, tell: impl Fn(SecretString), stop: Shutdown) {
        let following = async {
            let mut complained = false;
            loop {
                tokio::time::sleep(EVERY).await;
                match self.read().await {
                    Ok(now) => {
                        complained = false;
                        if now.expose_secret() != last.expose_secret() {
                            tracing::info!(
                                secret = self.name,
                                "the secret holds another value, which is used from now on"
                            );
                            tell(now.clone());
                            last = now;
                        }
                    }
                    Err(error) if !std::mem::replace(&mut complained, true) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "what was read of the secret before stays in use");
                    }
                    Err(_) => {}
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }
}

impl std::fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretToken").field("name", &self.name).finish_non_exhaustive()
    }
}

fn text(body: &[u8], key: &str) -> Option<SecretString> {
    let secret: Secret = serde_json::from_slice(body).ok()?;
    let decoded = STANDARD.decode(secret.data.get(key)?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| SecretString::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_under_a_key_is_decoded_and_trimmed() {
        let body = br#"{"kind":"Secret","data":{"token":"YWJjCg==","empty":"","bad":"%"}}"#;
        assert_eq!(text(body, "token").unwrap().expose_secret(), "abc");
        for key in ["empty", "bad", "missing"] {
            assert!(text(body, key).is_none(), "{key}");
        }
        assert!(text(b"no json", "token").is_none());
    }
}
