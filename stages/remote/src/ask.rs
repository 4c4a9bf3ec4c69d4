//! A platform that can be asked: over GraphQL, with somebody's key.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use pipeline_core::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stages_client::{Client, Config, HttpError, Method, Opened, Reply, RequestBuilder, Target, Token};

use crate::arguments::Place;
use crate::contexts::{Context, Contexts};
use crate::environment::Environment;
use crate::error::{GIVEN, RemoteError};
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
/// Pages that are on their way at a time.
const ABREAST: usize = 4;
/// What is said of what comes from somebody else.
const NO_ANSWER: &str = "its answer is none of a platform: is the address right?";
const OTHER_SCHEMA: &str = "the platform's answer is not what its schema says: is it older than this program? `gitops-runtime --version`";

/// A platform that can be asked.
pub(crate) struct Platform {
    client: Client,
    key: Token,
    /// Whether somebody typed its address; else it is that of a context.
    is_given: bool,
}

/// What an answer is made of.
#[derive(Deserialize)]
struct GraphQlResponse {
    #[serde(default)]
    data: Option<Value>,
    /// Some servers write null where there are none.
    #[serde(default)]
    errors: Option<Vec<Message>>,
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
    /// What of what was asked is not known, a sentence each.
    pub(crate) mistyped: Vec<String>,
}

impl From<Vec<Value>> for Rows {
    /// All that there are.
    fn from(nodes: Vec<Value>) -> Self {
        Self { nodes, more: false, mistyped: Vec::new() }
    }
}

impl Platform {
    /// The platform of the context that is meant.
    pub(crate) async fn find(place: &Place, environment: &Environment) -> Result<Self, RemoteError> {
        let all = Contexts::read(environment)?;
        let kept = all.chosen(place.context.as_deref(), environment)?;
        Self::of(kept, ANSWER).await
    }

    /// The same, which is given up on after so long.
    pub(crate) async fn of(kept: &Context, within: Duration) -> Result<Self, RemoteError> {
        let (key, ca_file) = (kept.key.clone(), kept.ca_file.clone());
        let platform = Self::at(&kept.platform, key, ca_file, kept.insecure, within).await?;
        Ok(Self { is_given: false, ..platform })
    }

    /// The platform at an address that somebody typed. Where authorities are given, not any certificate is accepted, whatever was said
    /// before.
    pub(crate) async fn at(
        url: &str,
        key: SecretString,
        ca_file: Option<PathBuf>,
        insecure: bool,
        within: Duration,
    ) -> Result<Self, RemoteError> {
        let target = Target::new(url, "").map_err(RemoteError::Address)?;
        let mut config = Config::new(within, LONGEST);
        config.insecure_skip_verify = insecure && ca_file.is_none();
        config.ca_file = ca_file;
        config.connect_timeout = config.connect_timeout.min(within);
        let client = config.build(target).await.map_err(RemoteError::Client)?;
        Ok(Self { client, key: Token::Literal(key), is_given: true })
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
        let reply = self.client.send(act, request).await.map_err(|error| self.away(error))?;
        match reply.status() {
            status if status >= 400 => Err(self.failed(act, status, reply.body())),
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
        match self.client.open(act, request).await.map_err(|error| self.away(error))? {
            Ok(opened) => Ok(Items::new(opened, self.refused(act))),
            Err(reply) => Err(self.failed(act, reply.status(), reply.body())),
        }
    }

    /// Asks for a file, which comes as long as it takes.
    pub(crate) async fn file(&self, act: &'static str, path: &[&str]) -> Result<Opened, RemoteError> {
        let request = self.client.request(act, Method::GET, path)?;
        let request = self.client.authorize(act, request, &self.key, "").await?.timeout(FOREVER);
        match self.client.open(act, request).await.map_err(|error| self.away(error))? {
            Ok(opened) => Ok(opened),
            Err(reply) => Err(self.failed(act, reply.status(), reply.body())),
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

    /// Why there is no answer, of whom nothing came.
    fn away(&self, error: HttpError) -> RemoteError {
        if self.is_given { RemoteError::Http(error, GIVEN) } else { error.into() }
    }

    /// Why there is no answer, of a status.
    fn failed(&self, act: &'static str, status: u16, body: &[u8]) -> RemoteError {
        let said = said(body);
        let said = match status {
            401 if act != SIGN_IN => format!("{said}: `gitops-runtime login` signs you in anew"),
            401 | 403 => said,
            404 | 405 if act == SIGN_IN => {
                format!("it answered {status}: {said}: look whether that is the address of a platform")
            }
            500.. => return RemoteError::Unwell { act, host: self.client.host().to_string(), status, said },
            status => format!("it answered {status}: {said}"),
        };
        self.refused(act)(said)
    }

    /// What an answer holds.
    fn answer(&self, act: &'static str, body: &[u8]) -> Result<Map<String, Value>, RemoteError> {
        let refused = self.refused(act);
        let answer: Result<GraphQlResponse, _> = serde_json::from_slice(body);
        let Ok(answer) = answer else { return Err(refused(NO_ANSWER.to_owned())) };
        if let Some(errors) = answer.errors.filter(|errors| !errors.is_empty()) {
            return Err(refused(joined(&errors)));
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
    /// `pageInfo { endCursor hasNextPage }` and `edges { node }`. One of a list that may be long takes `$ends` as well, and where it
    /// is true gives `ends`: the pages behind the first one are asked for beside one another then. What it gives as `mistyped` the
    /// rows have too.
    pub(crate) async fn rows(
        &self,
        act: &'static str,
        query: &str,
        variables: &Value,
        field: &'static str,
        limit: usize,
    ) -> Result<Rows, RemoteError> {
        // So many rows from behind a place, with that place.
        let ask = async |after: String, first: usize, ends: bool| {
            let mut variables = variables.clone();
            variables["pagination"] = json!({"after": after, "first": first});
            variables["ends"] = ends.into();
            let body = self.reply(act, &PATH, query, variables).await?.into_body()?;
            let read = tokio::task::spawn_blocking(move || Page::read(&body, field)).await;
            // One that cannot be read on has panicked, and said so.
            self.page(act, read.unwrap_or(Err(Unread::NoAnswer))).map(|page| (after, page))
        };
        let (mut nodes, mut after) = (Vec::new(), String::new());
        loop {
            let left = limit - nodes.len();
            let (_, mut page) = ask(after.clone(), ROWS.min(left), left > ROWS).await?;
            let starts = std::mem::take(&mut page.ends).into_iter().zip((ROWS..left).step_by(ROWS));
            let behind = starts.map(|(start, before)| ask(start, ROWS.min(left - before), false));
            let mut behind = pin!(stream::iter(behind).buffered(ABREAST));
            loop {
                let (count, more) = (page.nodes.len(), page.info.has_next_page);
                nodes.append(&mut page.nodes);
                let end = page.info.next(&after).map(str::to_owned);
                let Some(end) = end.filter(|_| count > 0 && nodes.len() < limit) else {
                    nodes.truncate(limit);
                    return Ok(Rows { more, nodes, mistyped: page.mistyped });
                };
                after = end;
                // What came or went meanwhile has moved where pages begin: those that were asked for are of no use then.
                match behind.try_next().await? {
                    Some((start, next)) if start == after => page = next,
                    _ => break,
                }
            }
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

#[cfg(test)]
mod tests;
