//! The way of an act: what somebody asks of a runtime's app proxy comes here, and goes on to that runtime in their name.
//!
//! takes: GraphQL for one runtime, of a person - gives: the runtime's answer, as it comes
//! calls: the address that the runtime was registered with, and nothing else: no redirect is followed - fails: 404 for a runtime
//! that whoever asks does not see, 409 for one without an address, 502 and 504 where it does not answer, 429 for too many at a time of
//! one person, 503 for too many of all

use std::time::Duration;

use async_graphql::Request as GraphQl;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{OperationType, Selection};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use ipnet::IpNet;
use pipeline_core::{ExposeSecret as _, SecretString, Shutdown};
use serde::Deserialize;
use stages_client::{ACCEL_BUFFERING, NO_TUNNEL, Target, check_query, install_crypto, through_environment};
use stages_platform_store::Scope;

use crate::addresses::{Addresses, RefusedName};
use crate::api::{Api, is_plain};
use crate::caller::{Caller, Refusal, registered, unwritten};
use crate::shares::{NoPlace, SharedPlace, Shares};
use crate::stored;

/// The most that a body may be long: files that are committed are in it.
const BODY: usize = 4 * 1_024 * 1_024;
/// Names of what is to be changed that stand in the audit log, and how long each may be.
const NAMES: usize = 10;
const NAME: usize = 100;
/// Below the address of a runtime.
const PATH: &str = "/app-proxy/api/graphql";
/// What a runtime answers with; anything else is none of an app proxy.
const KINDS: [&str; 4] =
    ["application/json", "application/graphql-response+json", "text/event-stream", "multipart/mixed"];

/// How runtimes are asked.
#[derive(Debug, Clone)]
pub struct ForwardConfig {
    /// A runtime is connected to within this time.
    pub connect_timeout: Duration,
    /// It begins to answer within this time.
    pub timeout: Duration,
    /// Of an answer that has begun something comes within this time.
    pub idle_timeout: Duration,
    /// So many are asked at a time, and in the name of one person a quarter of it.
    pub concurrency: usize,
    /// No runtime is there: whoever registers one could otherwise have this process ask what it alone reaches.
    pub refused: Vec<IpNet>,
    /// Answers that come as a stream end with it.
    pub stop: Shutdown,
}

impl ForwardConfig {
    /// The defaults, until `stop`.
    #[must_use]
    pub fn new(stop: Shutdown) -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            concurrency: 256,
            refused: Vec::new(),
            stop,
        }
    }
}

/// What asks runtimes; cloning shares.
#[derive(Clone)]
pub(crate) struct Forward {
    /// None where this machine has nothing to make it of, which was told.
    http: Option<reqwest::Client>,
    places: Shares,
    addresses: Addresses,
    timeout: Duration,
    stop: Shutdown,
}

/// Of what a runtime said of itself when it was registered: where it is.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Address {
    ingress_host: Option<String>,
    internal_ingress_host: Option<String>,
}

impl Forward {
    pub(crate) fn new(config: ForwardConfig) -> Self {
        install_crypto();
        let addresses = Addresses::new(config.refused);
        let builder = || {
            through_environment(reqwest::Client::builder(), |name| std::env::var(name).ok())
                .user_agent(concat!("gitops-runtime/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .dns_resolver(addresses.clone())
                .no_gzip()
                .tcp_nodelay(true)
                .connect_timeout(config.connect_timeout)
                .read_timeout(config.idle_timeout)
        };
        // A slim container has no certificate authorities: runtimes are reached without TLS there, and no certificate holds.
        let http = builder().build().or_else(|_| builder().tls_certs_only([]).build());
        let http = http.inspect_err(|error| {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "no runtime can be asked anything in the name of somebody");
        });
        let places = Shares::new((config.concurrency / 4).max(1), config.concurrency);
        Self { http: http.ok(), places, addresses, timeout: config.timeout, stop: config.stop }
    }

    /// The answer of a runtime, whose head came in time.
    async fn send(
        &self,
        runtime: &str,
        to: &Target,
        pass: &SecretString,
        accept: Option<HeaderValue>,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, Refusal> {
        let away = || Refusal::Unreachable(runtime.to_owned(), to.host().to_string());
        let http = self.http.as_ref().ok_or_else(away)?;
        let refused = || Refusal::RefusedAddress(runtime.to_owned(), to.host().to_string());
        let url = to.escaped(PATH).map_err(|error| Refusal::BadAddress(runtime.to_owned(), error))?;
        if url.host_str().is_some_and(|host| self.addresses.refuse(host)) {
            return Err(refused());
        }
        let mut authorization = HeaderValue::from_str(pass.expose_secret()).map_err(|_| Refusal::Store)?;
        authorization.set_sensitive(true);
        let asked = http.post(url).header(header::AUTHORIZATION, authorization);
        let asked = asked
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, accept.unwrap_or(HeaderValue::from_static("application/json")))
            .body(body);
        let late = || Refusal::Late(runtime.to_owned(), self.timeout.as_secs());
        match tokio::time::timeout(self.timeout, asked.send()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if RefusedName::is_in(&error) => Err(refused()),
            Ok(Err(error)) => {
                tracing::warn!(
                    runtime,
                    error = &error.without_url() as &dyn std::error::Error,
                    "a runtime could not be asked"
                );
                Err(away())
            }
            Err(_) => Err(late()),
        }
    }
}

/// `POST /2.0/api/runtimes/NAME/app-proxy/graphql`.
pub(crate) async fn forward(
    State(api): State<Api>,
    Path(asked): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let caller = api.caller(&head.headers).await?;
    let Caller::Person(person) = &caller else { return Err(Refusal::NotAPerson) };
    is_plain(&head.headers)?;
    let found = caller.runtime(&api.store, &asked).await?;
    let runtime = &*found.ok_or(Refusal::NoRuntime(asked))?;
    let place = api.forward.places.place(&caller).map_err(|none| match none {
        NoPlace::OfOne(most) => Refusal::OwnRequests(most),
        NoPlace::OfAll => Refusal::Busy,
    })?;
    let body = to_bytes(body, BODY).await.map_err(|_| Refusal::TooLong(BODY))?;
    let body = if caller.is_page() { stored::request(&body)? } else { body.into() };
    let act = act_of(&body)?;
    if act.is_some() && person.scope != Scope::Full {
        return Err(Refusal::ReadsOnly);
    }
    let to = address(&api, runtime).await?;
    let now = api.now();
    let pass = api
        .store
        .add_pass(&person.by, person.scope, runtime, act.as_deref(), now)
        .await
        .map_err(unwritten)?;
    let pass = pass.ok_or_else(|| Refusal::NoRuntime(runtime.to_owned()))?;
    let accept = head.headers.get(header::ACCEPT).filter(|value| kind(value).is_some()).cloned();
    let answer = api.forward.send(runtime, &to, &pass, accept, body).await?;
    if answer.headers().contains_key(NO_TUNNEL) {
        return Err(Refusal::NoTunnel(runtime.to_owned(), to.host().to_string()));
    }
    answered(runtime, answer, place, api.forward.stop.clone())
}

/// Where a runtime is, as it was registered.
async fn address(api: &Api, runtime: &str) -> Result<Target, Refusal> {
    let found = registered(&api.store, runtime).await?;
    let said: Address = serde_json::from_str(&found.body).unwrap_or_default();
    let given = |address: Option<String>| address.filter(|address| !address.trim().is_empty());
    let address = given(said.internal_ingress_host).or(given(said.ingress_host));
    let address = address.ok_or_else(|| Refusal::NoAddress(runtime.to_owned()))?;
    Target::new(address.trim(), "").map_err(|error| Refusal::BadAddress(runtime.to_owned(), error))
}

/// What is to be changed, by the names of its fields; `None`: something is only to be read.
fn act_of(body: &[u8]) -> Result<Option<String>, Refusal> {
    let wrong = |what: &str| {
        Refusal::Wrong(format!(
            "the body is no GraphQL of the form {{\"query\": \"…\", \"variables\": {{}}}}: {what}"
        ))
    };
    let asked: GraphQl = serde_json::from_slice(body).map_err(|_| wrong("it is not such JSON"))?;
    check_query(&asked.query)?;
    let document = parse_query(&asked.query).map_err(|_| wrong("its query cannot be read"))?;
    let mut names = Vec::new();
    // Whichever of several is meant, all of them count.
    for (_, operation) in document.operations.iter() {
        if operation.node.ty != OperationType::Mutation {
            continue;
        }
        for selection in &operation.node.selection_set.node.items {
            names.push(match &selection.node {
                Selection::Field(field) => field.node.name.node.chars().take(NAME).collect(),
                _ => "a fragment".to_owned(),
            });
        }
    }
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok((!names.is_empty()).then(|| format!("{}{more}", names.join(", "))))
}

/// Which kind of content a header names.
fn kind(value: &HeaderValue) -> Option<&'static str> {
    let text = value.to_str().ok()?.split([';', ',']).next()?.trim().to_ascii_lowercase();
    KINDS.into_iter().find(|kind| *kind == text)
}

/// A runtime's answer, as it comes; what is none of an app proxy is not passed on.
fn answered(
    runtime: &str,
    answer: reqwest::Response,
    place: SharedPlace,
    stop: Shutdown,
) -> Result<Response, Refusal> {
    let status = answer.status();
    let refused = |why: &'static str| Err(Refusal::NotAnAppProxy(runtime.to_owned(), status.as_u16(), why));
    match status.as_u16() {
        401 | 403 => return refused("it did not take the platform's word for who asks; its log says why"),
        404 | 405 => {
            return refused(
                "no app proxy is served there; deploy it, or register the address that leads to it",
            );
        }
        300..=399 => return refused("a redirect is not followed; register the address that it leads to"),
        500.. => {
            return refused("what stands in front of its app proxy, or the app proxy itself, is not well");
        }
        _ => {}
    }
    let of = answer.headers().get(header::CONTENT_TYPE).cloned();
    let Some(of) = of.filter(|value| kind(value).is_some()) else {
        return refused("its content is no GraphQL; register the address of its app proxy");
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, of);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    let status = StatusCode::from_u16(status.as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let stream = until(answer.bytes_stream(), place, stop);
    Ok((status, headers, Body::from_stream(stream)).into_response())
}

/// A stream that ends with the process, and holds a place as long as it lasts.
fn until(
    stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    place: SharedPlace,
    stop: Shutdown,
) -> impl Stream<Item = reqwest::Result<Bytes>> + Send {
    let ended = async move {
        stop.cancelled().await;
        drop(place);
    };
    stream.take_until(Box::pin(ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_changed_is_told_by_its_fields() {
        let act = |query: &str| act_of(serde_json::json!({"query": query}).to_string().as_bytes());
        assert_eq!(act("{ application { name } }").unwrap(), None);
        assert_eq!(act("subscription { logs }").unwrap(), None);
        assert_eq!(
            act("mutation Go { a: sync(x: 1) { name } refresh }").unwrap().as_deref(),
            Some("sync, refresh")
        );
        assert_eq!(
            act("query A { a } mutation B { ...F } fragment F on M { sync }").unwrap().as_deref(),
            Some("a fragment")
        );
        let many: String = (0..12).map(|n| format!("f{n} ")).collect();
        let told = act(&format!("mutation {{ {many} }}")).unwrap().unwrap();
        assert!(told.ends_with("f9 and 2 more"), "{told}");
        for wrong in ["", "{", "mutation {", "query"] {
            let said = act(wrong).unwrap_err().to_string();
            assert!(said.ends_with("its query cannot be read"), "{wrong}: {said}");
        }
        let said = act_of(b"{").unwrap_err().to_string();
        assert!(said.ends_with("it is not such JSON"), "{said}");
    }

    #[test]
    fn only_kinds_of_graphql_are_passed_on() {
        for (value, found) in [
            ("application/json", Some("application/json")),
            ("Application/JSON; charset=utf-8", Some("application/json")),
            ("text/event-stream", Some("text/event-stream")),
            ("text/html", None),
            ("image/svg+xml", None),
        ] {
            assert_eq!(kind(&HeaderValue::from_static(value)), found, "{value}");
        }
    }
}
