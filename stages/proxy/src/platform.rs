//! The platform, asked with the runtime's own token.
//!
//! takes: who asks for what, records of acts, what is wrong with the runtime - gives: whether they may
//! calls: `POST {platform}/2.0/api/authorize`, `/2.0/api/audit`, `/2.0/api/graphql` - fails: with [`HttpError`]

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stages_client::{Client, Fault, HttpError, Method, Token};

/// No answer is longer.
const LARGEST: usize = 256 << 10;

/// The platform, and the token that it is asked with.
#[derive(Debug, Clone)]
pub(crate) struct Platform {
    pub(crate) client: Client,
    pub(crate) token: Token,
}

/// Whether somebody may do something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// Whose token it is; `None`: nobody's.
    pub(crate) who: Option<String>,
    /// Why not.
    pub(crate) why: Option<String>,
    /// Whether the answer may be remembered: not that about a token which ends sooner.
    #[serde(default)]
    pub(crate) lasts: bool,
}

impl Platform {
    pub(crate) async fn authorize(&self, asked: &Value) -> Result<Verdict, HttpError> {
        self.post("ask whether somebody may", &["2.0", "api", "authorize"], asked).await
    }

    pub(crate) async fn record(&self, records: &Value) -> Result<(), HttpError> {
        let _: Value = self.post("record acts", &["2.0", "api", "audit"], records).await?;
        Ok(())
    }

    /// What a query gives; one that is answered with errors is refused.
    pub(crate) async fn graphql(&self, act: &'static str, query: &Value) -> Result<Value, HttpError> {
        let answer: Value = self.post(act, &["2.0", "api", "graphql"], query).await?;
        if answer.get("errors").is_some_and(|errors| !errors.is_null()) {
            return Err(self.client.error(act, Fault::Status(400)));
        }
        Ok(answer.get("data").cloned().unwrap_or_default())
    }

    /// The key of the runtime's own secrets is to be had.
    pub(crate) async fn has_store_key(&self, runtime: &str) -> Result<(), HttpError> {
        let act = "read the store key";
        let path = ["api", "argo-runtime", runtime, "storeKey"];
        let request = self.client.request(act, Method::GET, &path)?;
        let request = self.client.authorize(act, request, &self.token, "").await?;
        self.client.send_within(act, request, LARGEST).await?.checked().map(drop)
    }

    async fn post<T: DeserializeOwned>(
        &self,
        act: &'static str,
        path: &[&str],
        body: &Value,
    ) -> Result<T, HttpError> {
        let request = self.client.request(act, Method::POST, path)?.json(body);
        let request = self.client.authorize(act, request, &self.token, "").await?;
        let reply = self.client.send_within(act, request, LARGEST).await?.checked()?;
        serde_json::from_slice(reply.body()).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            reply.into_error(Fault::Json { line, column })
        })
    }
}
