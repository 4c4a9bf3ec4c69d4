//! The platform's GraphQL API, asked with the API key of a context.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use pipeline_core::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stages_client::{Client, Config, HttpError, Method, Opened, Reply, RequestBuilder, Target, Token};

use crate::arguments::PlatformArgs;
use crate::contexts::{Context, Contexts};
use crate::environment::Environment;
use crate::error::{GIVEN, RemoteError};
use crate::page::{Page, Unread};
use crate::show::plain;
use crate::subscription::Subscription;

/// How long a whole answer may take.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// How long a subscription or a download may take.
const FOREVER: Duration = Duration::from_secs(30 * 86_400);
/// The most bytes that an answer may have.
const MAX_ANSWER: usize = 64 << 20;
/// How many characters of a platform's error message are shown.
const MAX_MESSAGE: usize = 1_000;
/// The act of signing in: whoever does it is not told to sign in.
pub(crate) const SIGN_IN: &str = "sign in";
/// The path of its GraphQL API.
const PATH: [&str; 3] = ["2.0", "api", "graphql"];
/// Rows of a page: the most that a platform gives.
const PAGE_ROWS: usize = 500;
/// Pages that are asked for at a time.
const MAX_CONCURRENT_PAGES: usize = 4;
/// Said of an answer that did not come from a platform.
const NO_ANSWER: &str = "its answer is none of a platform: is the address right?";
const OTHER_SCHEMA: &str = "the platform's answer is not what its schema says: is it older than this program? `gitops-runtime --version`";

/// A platform, or an app proxy that is asked directly, as it answers alike.
pub(crate) struct Platform {
    client: Client,
    key: Token,
    /// Whether its address was typed on the command line; else it is that of a context.
    is_given: bool,
}

/// An answer of GraphQL.
#[derive(Deserialize)]
struct GraphQlResponse {
    #[serde(default)]
    data: Option<Value>,
    /// Some servers write null where there are none.
    #[serde(default)]
    errors: Option<Vec<Message>>,
}

/// An error of an answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) message: String,
}

/// Rows of a list, and whether there are more than were asked for.
pub(crate) struct Rows {
    pub(crate) nodes: Vec<Value>,
    pub(crate) more: bool,
    /// Words of the query that the platform does not know, a sentence each.
    pub(crate) mistyped: Vec<String>,
}

impl From<Vec<Value>> for Rows {
    /// Rows of a whole list.
    fn from(nodes: Vec<Value>) -> Self {
        Self { nodes, more: false, mistyped: Vec::new() }
    }
}

impl Platform {
    /// The platform of the context that is meant.
    pub(crate) async fn find(place: &PlatformArgs, environment: &Environment) -> Result<Self, RemoteError> {
        let all = Contexts::read(environment)?;
        let kept = all.chosen(place.context.as_deref(), environment)?;
        Self::of(kept, ANSWER).await
    }

    /// The platform of a context; an answer that takes longer than `within` is given up.
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
        let mut config = Config::new(within, MAX_ANSWER);
        config.insecure_skip_verify = insecure && ca_file.is_none();
        config.ca_file = ca_file;
        config.connect_timeout = config.connect_timeout.min(within);
        let client = config.build(target).await.map_err(RemoteError::Client)?;
        Ok(Self { client, key: Token::Literal(key), is_given: true })
    }

    /// Asks a query, and gives the data of the answer; `act` completes "cannot ...".
    pub(crate) async fn ask(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Map<String, Value>, RemoteError> {
        self.post(act, &PATH, query, variables).await
    }

    /// The same as [`Self::ask`], at another path.
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

    /// Asks a query, and gives the answer unread.
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

    /// Begins a subscription.
    pub(crate) async fn subscribe(
        &self,
        act: &'static str,
        path: &[&str],
        query: &str,
        variables: Value,
    ) -> Result<Subscription, RemoteError> {
        let request = self.request(act, path, query, variables).await?;
        let request = request.header("accept", "text/event-stream").timeout(FOREVER);
        match self.client.open(act, request).await.map_err(|error| self.away(error))? {
            Ok(opened) => Ok(Subscription::new(opened, self.refused(act))),
            Err(reply) => Err(self.failed(act, reply.status(), reply.body())),
        }
    }

    /// Downloads a file, which the caller reads.
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

    /// The error of a call that nothing answered.
    fn away(&self, error: HttpError) -> RemoteError {
        if self.is_given { RemoteError::Http(error, GIVEN) } else { error.into() }
    }

    /// The error of an answer with a status of 400 or more.
    fn failed(&self, act: &'static str, status: u16, body: &[u8]) -> RemoteError {
        let said = said(body);
        let said = match status {
            401 if act != SIGN_IN => format!("{said}: `gitops-runtime login` signs you in anew"),
            401 | 403 => said,
            // The pages of health and metrics that each role has take no body.
            404 | 405 | 413 if act == SIGN_IN => {
                format!("it answered {status}: {said}: look whether that is the address of a platform")
            }
            500.. => return RemoteError::Unwell { act, host: self.client.host().to_string(), status, said },
            status => format!("it answered {status}: {said}"),
        };
        self.refused(act)(said)
    }

    /// The data of an answer.
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

    /// Asks a query, and reads one field of the answer's data.
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
            let (_, mut page) = ask(after.clone(), PAGE_ROWS.min(left), left > PAGE_ROWS).await?;
            let starts = std::mem::take(&mut page.ends).into_iter().zip((PAGE_ROWS..left).step_by(PAGE_ROWS));
            let behind = starts.map(|(start, before)| ask(start, PAGE_ROWS.min(left - before), false));
            let mut behind = pin!(stream::iter(behind).buffered(MAX_CONCURRENT_PAGES));
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

/// Reads a part of an answer's data.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, RemoteError> {
    serde_json::from_value(value).map_err(|_| RemoteError::Missing(OTHER_SCHEMA.to_owned()))
}

/// Reads rows of a list, which the caller keeps.
pub(crate) fn read_all<T: DeserializeOwned>(rows: &[Value]) -> Result<Vec<T>, RemoteError> {
    let read = rows.iter().map(T::deserialize).collect::<Result<_, _>>();
    read.map_err(|_| RemoteError::Missing(OTHER_SCHEMA.to_owned()))
}

/// All errors of an answer, as one sentence.
fn joined(errors: &[Message]) -> String {
    errors.iter().map(|one| short(&one.message)).collect::<Vec<_>>().join("; ")
}

/// The first line of a body that is not JSON.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    // HTML comes from a proxy or another server.
    if first.trim_start().starts_with('<') {
        "a page that is none of a platform".to_owned()
    } else {
        short(first)
    }
}

fn short(text: &str) -> String {
    plain(text.trim()).chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests;
