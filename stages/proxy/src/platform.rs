//! A client of the platform, with the runtime's own token.
//!
//! takes: who asks for what, records of acts, what is wrong with the runtime - gives: whether they may
//! calls: `GET {platform}/api/ping`, `POST {platform}/2.0/api/authorize`, `/2.0/api/audit`, `/2.0/api/graphql` - fails: with [`HttpError`]

use pipeline_core::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stages_client::{Client, Fault, HttpError, Method, Reply, Token};

use crate::error::ActError;
use crate::refusal::Refusal;

const PEER: &str = "the platform";

/// The most bytes of an answer.
const MAX_ANSWER: usize = 256 << 10;

/// The platform, and the token that it is asked with.
#[derive(Debug, Clone)]
pub(crate) struct Platform {
    pub(crate) client: Client,
    pub(crate) token: Token,
}

/// The platform's answer whether a caller may do something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// The name of the account that the token is of; `None`: the platform does not know the token.
    pub(crate) who: Option<String>,
    /// The uid of that account; an older platform does not say it.
    #[serde(default)]
    pub(crate) uid: Option<String>,
    /// Why the caller may not, in a sentence.
    pub(crate) why: Option<String>,
    /// Why the caller may not, from a closed set; an older platform does not say it.
    #[serde(default)]
    pub(crate) refusal: Option<Refusal>,
    /// Whether the answer may be cached; it may not where the token ends sooner.
    #[serde(default)]
    pub(crate) lasts: bool,
}

/// The platform's answer with the store key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoreKey {
    store_key: SecretString,
}

/// What is said of a runtime that has no store key.
pub(crate) fn unregistered(runtime: &str) -> String {
    format!("the runtime '{runtime}' has a token and is not registered: createRuntime registers it")
}

impl Platform {
    pub(crate) async fn authorize(&self, asked: &Value) -> Result<Verdict, HttpError> {
        self.post("ask whether somebody may", &["2.0", "api", "authorize"], asked).await
    }

    pub(crate) async fn record(&self, records: &Value) -> Result<(), HttpError> {
        let _: Value = self.post("record acts", &["2.0", "api", "audit"], records).await?;
        Ok(())
    }

    /// Whether a platform answers.
    pub(crate) async fn ping(&self) -> Result<(), HttpError> {
        let act = "ask whether there is a platform";
        let request = self.client.request(act, Method::GET, &["api", "ping"])?;
        self.client.send_within(act, request, MAX_ANSWER).await?.checked().map(drop)
    }

    /// The answer to a query, with its errors.
    pub(crate) async fn answer(&self, act: &'static str, query: &Value) -> Result<Value, HttpError> {
        self.post(act, &["2.0", "api", "graphql"], query).await
    }

    /// The data of the answer to a query; an answer with errors counts as a status of 400.
    pub(crate) async fn graphql(&self, act: &'static str, query: &Value) -> Result<Value, HttpError> {
        let answer = self.answer(act, query).await?;
        if answer.get("errors").is_some_and(|errors| !errors.is_null()) {
            return Err(self.client.error(act, Fault::Status(400)));
        }
        Ok(answer.get("data").cloned().unwrap_or_default())
    }

    /// The store key, which the runtime's own secrets are sealed with.
    pub(crate) async fn store_key(&self) -> Result<SecretString, ActError> {
        let away = |source| ActError::Away { peer: PEER, act: "say the store key", source };
        let me = json!({"query": "{ me { runtimeName } }"});
        let me = self.graphql("ask which runtime this is", &me).await.map_err(away)?;
        let runtime = me.pointer("/me/runtimeName").and_then(Value::as_str);
        let runtime = runtime.ok_or(ActError::Unreadable(PEER))?;
        let reply = self.ask_store_key(runtime).await.map_err(|error| match error.status() {
            Some(404) => ActError::Wrong(unregistered(runtime)),
            _ => away(error),
        })?;
        let answer: StoreKey =
            serde_json::from_slice(reply.body()).map_err(|_| ActError::Unreadable(PEER))?;
        match answer.store_key.expose_secret().is_empty() {
            true => Err(ActError::Unreadable(PEER)),
            false => Ok(answer.store_key),
        }
    }

    /// Whether the platform gives the store key.
    pub(crate) async fn has_store_key(&self, runtime: &str) -> Result<(), HttpError> {
        self.ask_store_key(runtime).await.map(drop)
    }

    async fn ask_store_key(&self, runtime: &str) -> Result<Reply, HttpError> {
        let act = "read the store key";
        let path = ["api", "argo-runtime", runtime, "storeKey"];
        let request = self.client.request(act, Method::GET, &path)?;
        let request = self.client.authorize(act, request, &self.token, "").await?;
        self.client.send_within(act, request, MAX_ANSWER).await?.checked()
    }

    async fn post<T: DeserializeOwned>(
        &self,
        act: &'static str,
        path: &[&str],
        body: &Value,
    ) -> Result<T, HttpError> {
        let request = self.client.request(act, Method::POST, path)?.json(body);
        let request = self.client.authorize(act, request, &self.token, "").await?;
        self.client.send_within(act, request, MAX_ANSWER).await?.checked()?.json()
    }
}
