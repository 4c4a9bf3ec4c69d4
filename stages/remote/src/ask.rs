//! A platform that can be asked: over GraphQL, with somebody's key.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stages_client::{Client, Config, Method, Opened, RequestBuilder, Target, Token};

use crate::arguments::Place;
use crate::contexts::{Contexts, Kept};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::show::plain;
use crate::stream::Items;

/// A whole answer is here in this time.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// What comes piece by piece comes for no longer.
const FOREVER: Duration = Duration::from_secs(30 * 86_400);
/// Bytes of an answer.
const LONGEST: usize = 64 << 20;
/// Characters of what a platform says in a refusal.
const SAID: usize = 1_000;
/// What nobody is told to do who does it.
pub(crate) const SIGN_IN: &str = "sign in";
/// Where a platform is asked.
const PATH: [&str; 3] = ["2.0", "api", "graphql"];
/// Rows that are asked for at a time; what a row may hold is bounded on the other side.
const ROWS: usize = 250;

/// A platform that can be asked.
pub(crate) struct Platform {
    client: Client,
    key: Token,
}

/// What an answer is made of.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

/// Rows of a list, and whether there are more than were asked for.
pub(crate) struct Rows {
    pub(crate) nodes: Vec<Value>,
    pub(crate) more: bool,
}

impl Platform {
    /// The platform of the context that is meant.
    pub(crate) async fn find(place: &Place, environment: &Environment) -> Result<Self, RemoteError> {
        let all = Contexts::read(environment)?;
        let kept = all.chosen(place.context.as_deref(), environment)?;
        Self::of(kept, ANSWER).await
    }

    /// The same, which is given up on after so long.
    pub(crate) async fn of(kept: &Kept, within: Duration) -> Result<Self, RemoteError> {
        Self::at(&kept.platform, kept.key.clone(), kept.ca_file.clone(), kept.insecure, within).await
    }

    /// The platform at an address.
    pub(crate) async fn at(
        url: &str,
        key: SecretString,
        ca_file: Option<PathBuf>,
        insecure: bool,
        within: Duration,
    ) -> Result<Self, RemoteError> {
        let target = Target::new(url, "").map_err(RemoteError::Address)?;
        let mut config = Config::new(within, LONGEST);
        config.ca_file = ca_file;
        config.insecure_skip_verify = insecure;
        config.connect_timeout = config.connect_timeout.min(within);
        let client = config.build(target).await.map_err(RemoteError::Client)?;
        Ok(Self { client, key: Token::Literal(key) })
    }

    /// Asks, and gives what the answer holds; `act` completes "cannot ...".
    pub(crate) async fn ask(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Map<String, Value>, RemoteError> {
        self.post(act, &PATH, query, variables).await
    }

    /// The same at another path.
    pub(crate) async fn post(
        &self,
        act: &'static str,
        path: &[&str],
        query: &str,
        variables: Value,
    ) -> Result<Map<String, Value>, RemoteError> {
        let request = self.request(act, path, query, variables).await?;
        let reply = self.client.send(act, request).await?;
        let refused = self.refused(act);
        if reply.status() >= 400 {
            return Err(refused(Self::status(act, reply.status(), reply.body())));
        }
        self.answer(act, &reply.into_body()?)
    }

    /// Asks for what comes piece by piece.
    pub(crate) async fn stream(
        &self,
        act: &'static str,
        path: &[&str],
        query: &str,
        variables: Value,
    ) -> Result<Items, RemoteError> {
        let request = self.request(act, path, query, variables).await?;
        let request = request.header("accept", "text/event-stream").timeout(FOREVER);
        match self.client.open(act, request).await? {
            Ok(opened) => Ok(Items::new(opened, self.refused(act))),
            Err(reply) => Err(self.refused(act)(Self::status(act, reply.status(), reply.body()))),
        }
    }

    /// Asks for a file, which comes as long as it takes.
    pub(crate) async fn file(&self, act: &'static str, path: &[&str]) -> Result<Opened, RemoteError> {
        let request = self.client.request(act, Method::GET, path)?;
        let request = self.client.authorize(act, request, &self.key, "").await?.timeout(FOREVER);
        match self.client.open(act, request).await? {
            Ok(opened) => Ok(opened),
            Err(reply) => Err(self.refused(act)(Self::status(act, reply.status(), reply.body()))),
        }
    }

    async fn request(
        &self,
        act: &'static str,
        path: &[&str],
        query: &str,
        variables: Value,
    ) -> Result<RequestBuilder, RemoteError> {
        let request = self.client.request(act, Method::POST, path)?;
        let request = self.client.authorize(act, request, &self.key, "").await?;
        Ok(request.json(&json!({"query": query, "variables": variables})))
    }

    fn refused(&self, act: &'static str) -> impl Fn(String) -> RemoteError + use<> {
        let host = self.client.host().to_string();
        move |said| RemoteError::Refused { act, host: host.clone(), said }
    }

    /// What is said of an answer that is none.
    fn status(act: &str, status: u16, body: &[u8]) -> String {
        match status {
            401 if act != SIGN_IN => format!("{}: `gitops-runtime login` signs you in anew", said(body)),
            401 => said(body),
            403 => said(body),
            status => format!("it answered {status}: {}", said(body)),
        }
    }

    /// What an answer holds.
    fn answer(&self, act: &'static str, body: &[u8]) -> Result<Map<String, Value>, RemoteError> {
        let refused = self.refused(act);
        let answer: Result<Answer, _> = serde_json::from_slice(body);
        let Ok(answer) = answer else {
            return Err(refused("its answer is none of a platform: is the address right?".to_owned()));
        };
        if !answer.errors.is_empty() {
            let all: Vec<String> = answer.errors.iter().map(|one| short(&one.message)).collect();
            return Err(refused(all.join("; ")));
        }
        match answer.data {
            Some(Value::Object(data)) => Ok(data),
            _ => Err(refused("its answer holds nothing".to_owned())),
        }
    }

    /// One field of an answer, read.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
        field: &str,
    ) -> Result<T, RemoteError> {
        let value = self.ask(act, query, variables).await?.remove(field).unwrap_or_default();
        read(value)
    }

    /// Every row of a list, page by page, or the first `limit` of them. The query takes `$pagination` and gives
    /// `edges { node }` and `pageInfo { endCursor hasNextPage }`.
    pub(crate) async fn rows(
        &self,
        act: &'static str,
        query: &str,
        variables: &Value,
        field: &str,
        limit: usize,
    ) -> Result<Rows, RemoteError> {
        let (mut nodes, mut after) = (Vec::new(), String::new());
        loop {
            let first = ROWS.min(limit - nodes.len());
            let mut variables = variables.clone();
            variables["pagination"] = json!({"after": after, "first": first});
            let mut page: Value = self.get(act, query, variables, field).await?;
            let edges = page["edges"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let empty = edges.is_empty();
            nodes.extend(edges.into_iter().map(|mut edge| edge["node"].take()));
            let more = page["pageInfo"]["hasNextPage"].as_bool().unwrap_or(false);
            // A page that does not lead on is the last one, whatever it says.
            let end = page["pageInfo"]["endCursor"].as_str().unwrap_or_default();
            if !more || empty || end == after || nodes.len() >= limit {
                nodes.truncate(limit);
                return Ok(Rows { more, nodes });
            }
            end.clone_into(&mut after);
        }
    }
}

/// Reads what was answered.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, RemoteError> {
    let unread = |_| {
        RemoteError::Missing(
            "the platform's answer is not what its schema says: is it older than this program? `gitops-runtime --version`"
                .to_owned(),
        )
    };
    serde_json::from_value(value).map_err(unread)
}

/// What a platform says in a body that is not JSON: its first line.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    // A page of somebody in between is no sentence.
    if first.trim_start().starts_with('<') {
        "a page that is none of a platform".to_owned()
    } else {
        short(first)
    }
}

fn short(text: &str) -> String {
    let text: String = plain(text.trim()).chars().take(SAID).collect();
    text
}
