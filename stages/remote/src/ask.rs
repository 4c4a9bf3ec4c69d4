//! A platform that can be asked: over GraphQL, with somebody's key.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stages_client::{Client, Config, Method, Opened, Reply, RequestBuilder, Target, Token};
use tokio::sync::oneshot;

use crate::arguments::Place;
use crate::contexts::{Contexts, Kept};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::page::{Page, Unread};
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
/// Rows that are asked for at a time, the most that a platform gives; what a row may hold is bounded there.
const ROWS: usize = 500;
/// What is said of what comes from somebody else.
const NO_ANSWER: &str = "its answer is none of a platform: is the address right?";
const OTHER_SCHEMA: &str = "the platform's answer is not what its schema says: is it older than this program? `gitops-runtime --version`";

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

/// What a platform says of what it did not do.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) message: String,
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
        let reply = self.reply(act, path, query, variables).await?;
        self.answer(act, &reply.into_body()?)
    }

    /// The same, before what it holds is read.
    async fn reply(
        &self,
        act: &'static str,
        path: &[&str],
        query: &str,
        variables: Value,
    ) -> Result<Reply, RemoteError> {
        let request = self.request(act, path, query, variables).await?;
        let reply = self.client.send(act, request).await?;
        match reply.status() {
            status if status >= 400 => Err(self.refused(act)(Self::status(act, status, reply.body()))),
            _ => Ok(reply),
        }
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
        let Ok(answer) = answer else { return Err(refused(NO_ANSWER.to_owned())) };
        if !answer.errors.is_empty() {
            return Err(refused(joined(&answer.errors)));
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
    /// `pageInfo { endCursor hasNextPage }` and, behind it, `edges { node }`: where the list goes on stands before its rows, and is
    /// asked for while these are read.
    pub(crate) async fn rows(
        &self,
        act: &'static str,
        query: &str,
        variables: &Value,
        field: &'static str,
        limit: usize,
    ) -> Result<Rows, RemoteError> {
        let ask = async |after: &str, first: usize| {
            let mut variables = variables.clone();
            variables["pagination"] = json!({"after": after, "first": first});
            self.reply(act, &PATH, query, variables).await?.into_body().map_err(RemoteError::from)
        };
        let (mut nodes, mut after) = (Vec::new(), String::new());
        let mut first = ROWS.min(limit);
        let mut body = ask(&after, first).await?;
        loop {
            let (tell, told) = oneshot::channel();
            let reading = tokio::task::spawn_blocking(move || Page::read(&body, field, tell));
            // One that has as many rows as were asked for leaves so many.
            let (left, wanted) = (limit - nodes.len(), ROWS.min((limit - nodes.len()).saturating_sub(first)));
            let next = async {
                let info = told.await.unwrap_or_default();
                match info.next(&after) {
                    Some(end) if wanted > 0 => ask(end, wanted).await.map(Some),
                    _ => Ok(None),
                }
            };
            let page = async {
                // One that cannot be read on has panicked, and said so.
                self.page(act, reading.await.unwrap_or(Err(Unread::NoAnswer)))
            };
            let (mut page, next) = tokio::try_join!(page, next)?;
            let (count, more) = (page.nodes.len(), page.info.has_next_page);
            nodes.append(&mut page.nodes);
            let end = page.info.next(&after).map(str::to_owned);
            let Some(end) = end.filter(|_| count > 0 && count < left) else {
                nodes.truncate(limit);
                return Ok(Rows { more, nodes });
            };
            (first, body) = match next {
                Some(body) => (wanted, body),
                None => {
                    let first = ROWS.min(limit - nodes.len());
                    (first, ask(&end, first).await?)
                }
            };
            after = end;
        }
    }

    /// A page, unless something else was answered.
    fn page(&self, act: &'static str, read: Result<Page, Unread>) -> Result<Page, RemoteError> {
        let said = match read {
            Ok(page) if !page.errors.is_empty() => joined(&page.errors),
            Ok(page) if page.is_there => return Ok(page),
            Ok(_) => "its answer holds nothing".to_owned(),
            Err(Unread::OtherSchema) => return Err(RemoteError::Missing(OTHER_SCHEMA.to_owned())),
            Err(Unread::NoAnswer) => NO_ANSWER.to_owned(),
        };
        Err(self.refused(act)(said))
    }
}

/// Reads what was answered.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, RemoteError> {
    serde_json::from_value(value).map_err(|_| RemoteError::Missing(OTHER_SCHEMA.to_owned()))
}

/// Reads rows of what was answered, which stay.
pub(crate) fn read_all<T: DeserializeOwned>(rows: &[Value]) -> Result<Vec<T>, RemoteError> {
    let read = rows.iter().map(T::deserialize).collect::<Result<_, _>>();
    read.map_err(|_| RemoteError::Missing(OTHER_SCHEMA.to_owned()))
}

/// All that a platform says of what it did not do.
fn joined(errors: &[Message]) -> String {
    errors.iter().map(|one| short(&one.message)).collect::<Vec<_>>().join("; ")
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
