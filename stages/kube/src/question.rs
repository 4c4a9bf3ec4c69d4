//! Questions that are asked once, of objects of any kind, and changes that are made once: for the doctor, which looks at a cluster
//! before anything runs, and for what people ask for.
//!
//! takes: a path, or a right - gives: the object as JSON, the text that stands there, or whether the right is there
//! calls: `GET {path}`, `PATCH {path}`, `POST {path}`, `POST .../selfsubjectaccessreviews`, `POST .../tokenreviews` - fails: with the status, or that nobody answered; nothing
//! of the answer stands in an error

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pipeline_core::{Call, Meter, NoMeter, Outcome, Peer, Reason, Sample, StageError};
use serde_json::{Value, json};

use crate::connection::{Connection, piece};
use crate::failure::{Failure, is_passing, of_status};
use crate::kind::{Act, Kind};
use crate::{Cluster, ConfigError, Right, Scope};

const LARGEST: usize = 8 << 20;
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA_OF_ONE: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const WITHIN: Duration = Duration::from_secs(10);
/// One question, as a meter is told of it.
const QUESTION: Call = Call::new(Peer::KUBERNETES, "question");
const OBJECTS: Kind = Kind { group: "", version: "v1", plural: "objects", singular: "object" };

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The API server refused.
    #[error("the API server answered {0}")]
    Status(u16),
    /// It could not be asked, or its answer could not be read.
    #[error("the API server did not answer")]
    Unanswered(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<QuestionError> for StageError {
    fn from(error: QuestionError) -> Self {
        let reason = match &error {
            QuestionError::Status(code) => of_status(*code),
            QuestionError::Unanswered(_) => Reason::Unreachable,
        };
        if is_passing(reason) { Self::retry(reason, error) } else { Self::reject(reason, error) }
    }
}

/// A cluster that can be asked.
pub struct Reader {
    connection: Connection,
    meter: Arc<dyn Meter>,
}

/// A text that comes piece by piece, such as a log that is followed.
pub struct Pieces(kube::client::Body);

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").finish_non_exhaustive()
    }
}

impl Pieces {
    /// What comes next, of whatever size it comes in; `None` at its end.
    ///
    /// # Errors
    /// [`QuestionError`] when it was cut short.
    pub async fn next(&mut self) -> Result<Option<Bytes>, QuestionError> {
        piece(OBJECTS.get(), &mut self.0).await.map_err(unanswered)
    }
}

/// What is at a path; `None` where the API server knows of nothing there.
fn found<T>(answer: Result<T, QuestionError>) -> Result<Option<T>, QuestionError> {
    match answer {
        Err(QuestionError::Status(404)) => Ok(None),
        answer => answer.map(Some),
    }
}

fn unanswered(failure: Failure) -> QuestionError {
    match failure {
        Failure::Status { code, .. } => QuestionError::Status(code),
        failure => QuestionError::Unanswered(failure.into()),
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Finds the cluster; nothing is asked yet.
    ///
    /// # Errors
    /// [`ConfigError`] when it cannot be found.
    pub async fn reader(&self) -> Result<Reader, ConfigError> {
        Ok(Reader { connection: self.connection().await?, meter: Arc::new(NoMeter) })
    }
}

impl Reader {
    /// Tells a meter of every question from now on.
    #[must_use]
    pub fn metered(self, meter: Arc<dyn Meter>) -> Self {
        Self { meter, ..self }
    }

    /// The object at a path, `None` where there is none.
    ///
    /// # Errors
    /// [`QuestionError`] for any other answer, or none.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, QuestionError> {
        found(self.ask(http::Request::get(path).body(Vec::new())).await)
    }

    /// The object at a path without what it holds, `None` where there is none.
    ///
    /// # Errors
    /// [`QuestionError`] for any other answer, or none.
    pub async fn metadata_of(&self, path: &str) -> Result<Option<Value>, QuestionError> {
        let request = http::Request::get(path).header(http::header::ACCEPT, METADATA_OF_ONE).body(Vec::new());
        found(self.ask(request).await)
    }

    /// A text at a path, such as a log; `None` where there is none.
    ///
    /// # Errors
    /// [`QuestionError`] for any other answer, one that is too long, or none.
    pub async fn text(&self, path: &str) -> Result<Option<Vec<u8>>, QuestionError> {
        let answer = self.bytes(http::Request::get(path).body(Vec::new())).await;
        found(answer.map(|bytes| bytes.to_vec()))
    }

    /// A text at a path as it comes, for as long as it does; `None` where there is none.
    ///
    /// # Errors
    /// [`QuestionError`] for any other answer, or none.
    pub async fn pieces(&self, path: &str) -> Result<Option<Pieces>, QuestionError> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| QuestionError::Unanswered(error.into()))?;
        let act = OBJECTS.get();
        let opened = self.within(act, self.connection.open(act, request).boxed()).await;
        found(opened.map(Pieces))
    }

    /// The objects at a path that lists some, without what they hold: of Secrets and definitions nobody wants all.
    ///
    /// # Errors
    /// [`QuestionError`] for any other answer, or none.
    pub async fn metadata(&self, path: &str) -> Result<Option<Value>, QuestionError> {
        let request = http::Request::get(path).header(http::header::ACCEPT, METADATA).body(Vec::new());
        found(self.ask(request).await)
    }

    /// Merges a patch into the object at a path; with `dry`, the API server says what would come of it and keeps
    /// nothing.
    ///
    /// # Errors
    /// [`QuestionError`] for any answer but the object, or none.
    pub async fn merge(&self, path: &str, patch: &Value, dry: bool) -> Result<Value, QuestionError> {
        let path = format!("{path}?fieldManager=gitops-runtime{}", if dry { "&dryRun=All" } else { "" });
        self.patch(path, "application/merge-patch+json", patch).await
    }

    /// Changes the object at a path by a JSON patch.
    ///
    /// # Errors
    /// [`QuestionError`] for any answer but the object, or none.
    pub async fn json_patch(&self, path: &str, patch: &Value) -> Result<Value, QuestionError> {
        self.patch(format!("{path}?fieldManager=gitops-runtime"), "application/json-patch+json", patch).await
    }

    /// Makes the object at a path where there is none, and else sets what is given of it. Unlike [`Self::create`] this may be
    /// granted for one name.
    ///
    /// # Errors
    /// [`QuestionError`] for any answer but the object, or none.
    pub async fn apply(&self, path: &str, object: &Value) -> Result<Value, QuestionError> {
        let path = format!("{path}?fieldManager=gitops-runtime&force=true");
        self.patch(path, "application/apply-patch+yaml", object).await
    }

    /// Makes an object in the collection at a path; gives it as it is kept.
    ///
    /// # Errors
    /// [`QuestionError`] for any answer but the object, or none.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, QuestionError> {
        self.post(&format!("{path}?fieldManager=gitops-runtime"), object).await
    }

    /// Whether whoever asks may do something: a verb on a resource of a group, or on a part of one such as `pods/log`, in a
    /// namespace or in the whole cluster.
    ///
    /// # Errors
    /// [`QuestionError`] when that is not said.
    pub async fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
    ) -> Result<bool, QuestionError> {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": part,
                "namespace": namespace.unwrap_or_default(),
            }},
        });
        let reviewed = self.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await?;
        Ok(reviewed["status"]["allowed"] == true)
    }

    /// The name of whoever a token is of; `None` when the cluster knows no such token.
    ///
    /// # Errors
    /// [`QuestionError`] when that is not said.
    pub async fn owner(&self, token: &str) -> Result<Option<String>, QuestionError> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let reviewed = self.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let status = &reviewed["status"];
        let owner = status["user"]["username"].as_str().filter(|_| status["authenticated"] == true);
        Ok(owner.map(str::to_owned))
    }

    /// The right to ask [`Reader::owner`].
    pub fn review_right() -> Right {
        Right {
            group: "authentication.k8s.io",
            resource: "tokenreviews",
            verbs: &["create"],
            names: Vec::new(),
            scope: Scope::Cluster,
        }
    }

    async fn patch(&self, path: String, form: &str, patch: &Value) -> Result<Value, QuestionError> {
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, form)
            .header(http::header::ACCEPT, METADATA_OF_ONE)
            .body(patch.to_string().into_bytes());
        self.ask(request).await
    }

    async fn post(&self, path: &str, object: &Value) -> Result<Value, QuestionError> {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes());
        self.ask(request).await
    }

    async fn ask(&self, request: http::Result<http::Request<Vec<u8>>>) -> Result<Value, QuestionError> {
        let body = self.bytes(request).await?;
        // What a parser says of an answer quotes it.
        serde_json::from_slice(&body).map_err(|_| QuestionError::Unanswered("the answer is no JSON".into()))
    }

    async fn bytes(&self, request: http::Result<http::Request<Vec<u8>>>) -> Result<Bytes, QuestionError> {
        let request = request.map_err(|error| QuestionError::Unanswered(error.into()))?;
        let act = OBJECTS.get();
        self.within(act, self.connection.exchange(act, request, LARGEST).boxed()).await
    }

    /// An answer in time, of which the meter is told.
    async fn within<T>(
        &self,
        act: Act,
        answer: BoxFuture<'_, Result<T, Failure>>,
    ) -> Result<T, QuestionError> {
        let begun = Instant::now();
        let answer = tokio::time::timeout(WITHIN, answer).await.unwrap_or(Err(Failure::Timeout { act }));
        let outcome = Outcome::of(&answer, Failure::reason);
        self.meter.record(Sample { call: QUESTION, outcome, took: begun.elapsed() });
        answer.map_err(unanswered)
    }
}

#[cfg(test)]
mod tests {
    use pipeline_core::{Reason, StageError};

    use super::QuestionError;

    #[test]
    fn a_refusal_is_tried_again_where_its_status_may_pass() {
        for (error, reason, again) in [
            (QuestionError::Status(401), Reason::Unauthorized, true),
            (QuestionError::Status(403), Reason::Forbidden, true),
            (QuestionError::Status(429), Reason::RateLimited, true),
            (QuestionError::Status(503), Reason::ServerError, true),
            (QuestionError::Status(504), Reason::Timeout, true),
            (QuestionError::Status(422), Reason::Refused, false),
            (QuestionError::Unanswered("away".into()), Reason::Unreachable, true),
        ] {
            let text = error.to_string();
            let found = match StageError::from(error) {
                StageError::Retry { reason, .. } => (reason, true),
                StageError::Reject { reason, .. } => (reason, false),
            };
            assert_eq!(found, (reason, again), "{text}");
        }
    }
}
