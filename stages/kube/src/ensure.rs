//! Makes once what nobody gives, in a Secret that is there already.
//!
//! takes: a Secret, keys in it, and how a value is made - gives: what stands under each key, made here or by somebody else
//! calls: `GET` and `PATCH /api/v1/namespaces/{namespace}/secrets/{name}` - fails: with what is missing; nothing of the
//! answer stands in an error
//!
//! The Secret is never created: the right to create Secrets cannot be restricted to one name, and would give tokens of
//! every ServiceAccount of the namespace. What is there is never replaced, and a change goes with the version that it was made
//! for: of several processes that begin at once one writes, and all read the same.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::api::segment;
use crate::failure::Failure;
use crate::kind::Act;
use crate::rights::{self, Right};
use crate::secret::{LARGEST, SECRETS};
use crate::{Cluster, ConfigError};

/// One call ends within this time.
const WITHIN: Duration = Duration::from_secs(30);
/// So often somebody else may be first before it is given up.
const TRIES: u32 = 50;

/// A Secret, and what is to stand in it.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The keys that must hold something.
    pub keys: Vec<String>,
}

/// Why it cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// The API server cannot be asked.
    #[error("cannot ask for the secret `{name}`")]
    Config {
        /// The Secret.
        name: String,
        /// Why.
        source: ConfigError,
    },
    /// It is not there.
    #[error(
        "there is no secret `{name}` in `{namespace}`; the chart makes an empty one, and so does `kubectl create secret \
         generic {name} --namespace {namespace}`"
    )]
    Absent {
        /// The Secret.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The service account may not.
    #[error(
        "the secret `{name}` in `{namespace}` may not be read and written: grant what `gitops-runtime rbac print --role \
         secrets --secret {name}` prints"
    )]
    Forbidden {
        /// The Secret.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The API server did not do it.
    #[error("cannot make what the secret `{name}` in `{namespace}` lacks")]
    Failed {
        /// The Secret.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Why; without anything of the answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Secret {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

impl Generated {
    /// What [`Generated::ensure`] needs to be allowed: this one Secret, and nothing of any other.
    #[must_use]
    pub fn right(&self) -> Right {
        Right { verbs: &["get", "patch"], ..rights::secret(&self.namespace, &self.name) }
    }

    /// Makes what the Secret lacks with `make`, and gives what stands in it then.
    ///
    /// # Errors
    /// [`EnsureError`] names what is missing.
    pub async fn ensure(
        &self,
        cluster: &Cluster,
        make: impl Fn() -> io::Result<SecretString>,
    ) -> Result<BTreeMap<String, SecretString>, EnsureError> {
        let config = |source| EnsureError::Config { name: self.name.clone(), source };
        let connection = cluster.connection().await.map_err(config)?;
        let path = format!("{}/{}", SECRETS.collection(Some(&self.namespace)), segment(&self.name));
        let ask = async |act: Act, request: http::Result<http::Request<Vec<u8>>>| {
            let request = request.map_err(|error| self.failed(error))?;
            let answer = connection.exchange(act, request, LARGEST);
            let answer = tokio::time::timeout(WITHIN, answer).await;
            let body = match answer.unwrap_or(Err(Failure::Timeout { act })) {
                Ok(body) => body,
                Err(Failure::Status { code: 409, .. }) => return Ok(None),
                Err(failure) => return Err(self.refused(failure)),
            };
            // What a parser says of an answer quotes it.
            let secret = serde_json::from_slice::<Secret>(&body);
            secret.map(Some).map_err(|_| self.failed("the answer is no Secret"))
        };
        for _ in 0..TRIES {
            let Some(found) = ask(SECRETS.get(), http::Request::get(&path).body(Vec::new())).await? else {
                continue;
            };
            let lacking: Vec<&String> =
                self.keys.iter().filter(|key| found.data.get(*key).is_none_or(String::is_empty)).collect();
            if lacking.is_empty() {
                return self.values(&found);
            }
            let mut data = BTreeMap::new();
            for key in &lacking {
                let made = make().map_err(|error| self.failed(error))?;
                data.insert(*key, STANDARD.encode(made.expose_secret()));
            }
            let version = found.metadata.resource_version;
            let change = json!({"metadata": {"resourceVersion": version}, "data": data}).to_string();
            let request = http::Request::patch(&path)
                .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                .body(change.into_bytes());
            if let Some(written) = ask(Act { verb: "patch", what: SECRETS.singular }, request).await? {
                tracing::info!(secret = self.name, keys = ?lacking, "made what nobody gave");
                return self.values(&written);
            }
        }
        Err(self.failed("others change it without end"))
    }

    fn values(&self, secret: &Secret) -> Result<BTreeMap<String, SecretString>, EnsureError> {
        let read = |key: &String| {
            let decoded = STANDARD.decode(secret.data.get(key)?).ok()?;
            Some((key.clone(), SecretString::from(String::from_utf8(decoded).ok()?)))
        };
        let values: Option<_> = self.keys.iter().map(read).collect();
        values.ok_or_else(|| self.failed("what stands in it is no text"))
    }

    fn refused(&self, failure: Failure) -> EnsureError {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        match failure {
            Failure::Status { code: 404, .. } => EnsureError::Absent { name, namespace },
            Failure::Status { code: 401 | 403, .. } => EnsureError::Forbidden { name, namespace },
            failure => self.failed(failure),
        }
    }

    fn failed(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> EnsureError {
        EnsureError::Failed {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            source: source.into(),
        }
    }
}
