//! Three requests to the API server, their answers within bounds, and how they fail.
//!
//! Requests are built and authenticated by [`kube`]; answers are read here, so that no body is larger than
//! its limit, none is logged, and the objects in it stay the text they are.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use kube::api::{GetParams, ListParams, VersionMatch, WatchParams};
use kube::client::Body;
use kube::core::Request;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pipeline_core::{Call, Key, Meter, Outcome, Reason, Sample, StageError, Version};
use serde::Deserialize;

use crate::Config;
use crate::credentials;
use crate::kind::{Act, Kind};
use crate::labels;
use crate::lines::{Line, Lines};
use crate::pages::Page;
use crate::question::METADATA;
use crate::selector::Selector;
use crate::token::TokenFile;

/// A peer's wish to be left alone is granted for this long at most: less than the silence after which health
/// takes the watch for stuck.
const RETRY_AFTER_LIMIT: Duration = Duration::from_secs(180);
/// Layers of an error that are looked through; more would be a circle.
pub(crate) const LAYERS: usize = 16;
/// What stays as it is in a segment of a path (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a request brought no result. Holds nothing of an answer: neither a body nor what a parser says of it,
/// which quotes it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{act}: the api server answered {code}")]
    Status { act: Act, code: u16, after: Option<Duration> },
    #[error("{act}: the api server did not answer in time")]
    Timeout { act: Act },
    #[error("{act}: nothing came for {limit:?}, not even a bookmark")]
    Silent { act: Act, limit: Duration },
    #[error("{act}: the connection failed")]
    Transport { act: Act, reason: Reason, source: Box<dyn Error + Send + Sync> },
    #[error("{act}: the answer ended before its end")]
    CutShort { act: Act },
    #[error("{act}: the answer is larger than {limit} bytes")]
    TooLarge { act: Act, limit: usize },
    #[error("{act}: the credentials cannot be had: {what}")]
    Credentials { act: Act, what: &'static str },
    #[error("{act}: the token file cannot be used")]
    Token { act: Act, source: io::Error },
    #[error("{act}: {what}")]
    Malformed { act: Act, what: &'static str },
}

impl Failure {
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Status { code, .. } => of_status(*code),
            Self::Timeout { .. } | Self::Silent { .. } => Reason::Timeout,
            Self::Transport { reason, .. } => *reason,
            Self::CutShort { .. } => Reason::CutShort,
            Self::Credentials { .. } | Self::Token { .. } => Reason::Unauthorized,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::Malformed { .. } => Reason::Malformed,
        }
    }

    /// Whether what was asked for is no longer held by the server: a continue token or a version that is too
    /// old. Only a new list helps.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Status { code: 410, .. })
    }

    /// Whether the version that a watch was to go on from may be the cause. It is not while the server cannot be
    /// reached, does not know us or has no time: to list then would make every watcher of a server that was away for
    /// a moment read everything anew.
    pub(crate) fn may_blame_version(&self) -> bool {
        match self {
            Self::Status { code, .. } => !matches!(code, 401 | 403 | 429 | 502 | 503),
            Self::Transport { .. } | Self::Credentials { .. } | Self::Token { .. } => false,
            _ => true,
        }
    }

    /// Whether it may be no more than the end of a watch that was open: the connection broke, or nothing came on it, as
    /// where no bookmarks are sent.
    pub(crate) fn ends_watch(&self) -> bool {
        match self {
            Self::CutShort { .. } | Self::Silent { .. } => true,
            Self::Transport { reason, .. } => *reason == Reason::Unreachable,
            _ => false,
        }
    }

    /// The peer's `Retry-After`.
    pub(crate) fn after(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            _ => None,
        }
    }
}

/// Whether the same request may succeed later, without anybody changing the request.
pub(crate) fn is_passing(reason: Reason) -> bool {
    !matches!(reason, Reason::Refused | Reason::Redirect | Reason::TooLarge)
}

impl From<Failure> for StageError {
    fn from(failure: Failure) -> Self {
        let (reason, after) = (failure.reason(), failure.after());
        if is_passing(reason) {
            Self::Retry { reason, source: failure.into(), after }
        } else {
            Self::reject(reason, failure)
        }
    }
}

/// What a status means that is no success.
pub(crate) fn of_status(code: u16) -> Reason {
    match code {
        300..=399 => Reason::Redirect,
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        404 | 405 => Reason::NotFound,
        408 | 504 => Reason::Timeout,
        429 => Reason::RateLimited,
        400..=499 => Reason::Refused,
        _ => Reason::ServerError,
    }
}

/// Asks for the objects of one kind, of one namespace or of all.
pub(crate) struct Api {
    pub(crate) kind: Kind,
    client: kube::Client,
    token: Option<Arc<TokenFile>>,
    collection: String,
    selector: Selector,
    call_timeout: Duration,
    idle_limit: Duration,
    max_body: usize,
    meter: Arc<dyn Meter>,
}

impl Api {
    pub(crate) fn new(
        (client, token): (kube::Client, Option<Arc<TokenFile>>),
        (kind, namespace): (Kind, Option<&str>),
        config: &Config,
        meter: Arc<dyn Meter>,
    ) -> Self {
        Self {
            kind,
            client,
            token,
            collection: kind.collection(namespace),
            selector: Selector::default(),
            call_timeout: config.call_timeout,
            idle_limit: config.idle_limit,
            max_body: config.max_body,
            meter,
        }
    }

    /// Only what is selected.
    pub(crate) fn selecting(self, selector: Selector) -> Self {
        Self { selector, ..self }
    }

    /// One page of a list, as JSON text.
    pub(crate) async fn page(&self, limit: u32, token: Option<&str>) -> Result<Bytes, Failure> {
        let continue_token = token.map(str::to_owned);
        let Selector { labels, fields, .. } = self.selector.clone();
        let asked = ListParams { label_selector: labels, field_selector: fields, ..ListParams::default() };
        self.list(&self.collection, &ListParams { limit: Some(limit), continue_token, ..asked }, None).await
    }

    /// The newest version that the store knows: that of a list of one object, without what it holds. A list that selects
    /// nothing would be as short, but API servers go through all objects of all namespaces for it.
    pub(crate) async fn newest(&self) -> Result<Version, Failure> {
        let body = self.list(&self.collection, &ListParams::default().limit(1), Some(METADATA)).await?;
        let text = String::from_utf8_lossy(&body);
        Ok(Page::read(self.kind, &text)?.version().unwrap_or_default())
    }

    /// A list in the form that is accepted; `None`: as it is.
    async fn list(
        &self,
        collection: &str,
        asked: &ListParams,
        accepted: Option<&'static str>,
    ) -> Result<Bytes, Failure> {
        let act = self.kind.list();
        let mut request = Request::new(collection).list(asked).map_err(|error| unbuilt(act, error))?;
        if let Some(accepted) = accepted {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accepted));
        }
        self.measured(labels::LIST, act, async {
            let body = ok(act, self.send(act, request).await?)?;
            read(act, body, self.max_body).await
        })
        .await
    }

    /// Opens a watch of what comes after `resource_version`. Measured until the server answers.
    pub(crate) async fn watch(&self, resource_version: &str, timeout: Duration) -> Result<Changes, Failure> {
        let act = self.kind.watch();
        let seconds = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        let Selector { labels, fields, .. } = self.selector.clone();
        let asked = WatchParams { label_selector: labels, field_selector: fields, ..WatchParams::default() };
        let asked = asked.timeout(seconds);
        let request = Request::new(&self.collection)
            .watch(&asked, resource_version)
            .map_err(|error| unbuilt(act, error))?;
        let body =
            self.measured(labels::WATCH, act, async { ok(act, self.send(act, request).await?) }).await?;
        Ok(Changes { act, body, lines: Lines::new(self.max_body), idle_limit: self.idle_limit })
    }

    /// One object, not older than `version`; `None` when there is no such object, or none that is selected.
    pub(crate) async fn object(&self, key: &Key, version: Version) -> Result<Option<Bytes>, Failure> {
        if !self.selector.is_all() {
            return self.selected(key, version).await;
        }
        let act = self.kind.get();
        let asked = match version {
            Version(0) => GetParams::default(),
            Version(known) => GetParams::at(&known.to_string()),
        };
        let request = Request::new(self.collection_of(key))
            .get(&segment(key.name()), &asked)
            .map_err(|error| unbuilt(act, error))?;
        self.measured(labels::GET, act, async {
            let response = self.send(act, request).await?;
            if response.status().as_u16() != 404 {
                let body = ok(act, response)?;
                return read(act, body, self.max_body).await.map(Some);
            }
            let body = read(act, response.into_body(), self.max_body).await?;
            if says_not_found(&body) {
                Ok(None)
            } else {
                Err(Failure::Status { act, code: 404, after: None })
            }
        })
        .await
    }

    /// One object as a list of it alone, which the server's own selector judges: what is selected no more is gone.
    async fn selected(&self, key: &Key, version: Version) -> Result<Option<Bytes>, Failure> {
        let known = (version != Version(0)).then(|| version.0.to_string());
        let asked = ListParams {
            label_selector: self.selector.labels.clone(),
            field_selector: Some(self.selector.fields_of(key.name())),
            version_match: known.as_ref().map(|_| VersionMatch::NotOlderThan),
            resource_version: known,
            ..ListParams::default()
        };
        let body = self.list(&self.collection_of(key), &asked, None).await?;
        let text = String::from_utf8_lossy(&body);
        let page = Page::read(self.kind, &text)?;
        Ok(page.items().first().map(|item| Bytes::copy_from_slice(page.whole(item.get()).as_bytes())))
    }

    fn collection_of(&self, key: &Key) -> String {
        self.kind.collection(Some(key.namespace()).filter(|namespace| !namespace.is_empty()))
    }

    async fn send(&self, act: Act, request: http::Request<Vec<u8>>) -> Result<Response<Body>, Failure> {
        send(act, &self.client, self.token.as_deref(), request).await
    }

    async fn measured<T>(
        &self,
        call: Call,
        act: Act,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let result = tokio::time::timeout(self.call_timeout, answer)
            .await
            .unwrap_or_else(|_| Err(Failure::Timeout { act }));
        let outcome = Outcome::of(&result, Failure::reason);
        self.meter.record(Sample { call, outcome, took: begun.elapsed() });
        result
    }
}

async fn send(
    act: Act,
    client: &kube::Client,
    token: Option<&TokenFile>,
    request: http::Request<Vec<u8>>,
) -> Result<Response<Body>, Failure> {
    let mut request = request.map(Body::from);
    if let Some(token) = token {
        let value = token.header().await.map_err(|source| Failure::Token { act, source })?;
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    client.send(request).await.map_err(|error| broken(act, error))
}

/// One request, and the body of its answer as it comes.
pub(crate) async fn open(
    act: Act,
    client: &kube::Client,
    token: Option<&TokenFile>,
    request: http::Request<Vec<u8>>,
) -> Result<Body, Failure> {
    ok(act, send(act, client, token, request).await?)
}

/// What comes next of a body; `None` at its end.
pub(crate) async fn piece(act: Act, body: &mut Body) -> Result<Option<Bytes>, Failure> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(broken(act, error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// One request and its whole answer, of at most `limit` bytes.
pub(crate) async fn exchange(
    act: Act,
    client: &kube::Client,
    token: Option<&TokenFile>,
    request: http::Request<Vec<u8>>,
    limit: usize,
) -> Result<Bytes, Failure> {
    let body = open(act, client, token, request).await?;
    read(act, body, limit).await
}

/// The lines of one watch connection.
pub(crate) struct Changes {
    act: Act,
    body: Body,
    lines: Lines,
    idle_limit: Duration,
}

impl Changes {
    /// The next line; `None` when the server has ended the watch between two lines.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(Some(line));
            }
            let frame = tokio::time::timeout(self.idle_limit, self.body.frame())
                .await
                .map_err(|_| Failure::Silent { act: self.act, limit: self.idle_limit })?;
            match frame {
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.lines.push(chunk);
                    }
                }
                Some(Err(error)) => return Err(broken(self.act, error)),
                None if self.lines.unfinished() => return Err(Failure::CutShort { act: self.act }),
                None => return Ok(None),
            }
        }
    }
}

pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

pub(crate) fn unbuilt(act: Act, error: kube::core::request::Error) -> Failure {
    Failure::Transport { act, reason: Reason::Refused, source: error.into() }
}

/// The body of an answer that says yes; the body of any other is not looked at.
fn ok(act: Act, response: Response<Body>) -> Result<Body, Failure> {
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Err(Failure::Status {
        act,
        code: response.status().as_u16(),
        after: after.map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_LIMIT)),
    })
}

async fn read(act: Act, mut body: Body, limit: usize) -> Result<Bytes, Failure> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(act, error))?;
        let Some(chunk) = frame.data_ref() else { continue };
        if chunk.len() > limit - all.len() {
            return Err(Failure::TooLarge { act, limit });
        }
        all.extend_from_slice(chunk);
    }
    Ok(all.freeze())
}

/// Whether a 404 speaks of the object. A server that does not know the whole resource, or a proxy in
/// between, says 404 too, and that must not be taken for a deletion.
fn says_not_found(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Said<'a> {
        kind: &'a str,
    }
    serde_json::from_slice(body).is_ok_and(|said: Said<'_>| said.kind == "Status")
}

fn broken(act: Act, error: kube::Error) -> Failure {
    if let Some(what) = credentials::refused(&error) {
        return Failure::Credentials { act, what };
    }
    match cause(&error) {
        Reason::CutShort => Failure::CutShort { act },
        Reason::Timeout => Failure::Timeout { act },
        reason => Failure::Transport { act, reason, source: error.into() },
    }
}

/// Looks through the layers of a client's error for what happened on the wire.
fn cause(error: &(dyn Error + 'static)) -> Reason {
    let mut layer = Some(error);
    for _ in 0..LAYERS {
        let Some(error) = layer else { break };
        if error.is::<rustls::Error>() {
            return Reason::Tls;
        }
        layer = error.source();
        let Some(error) = error.downcast_ref::<io::Error>() else { continue };
        match error.kind() {
            io::ErrorKind::UnexpectedEof => return Reason::CutShort,
            io::ErrorKind::TimedOut => return Reason::Timeout,
            // An io error's source is the source of what it wraps; what it wraps itself is asked for so.
            _ => layer = error.get_ref().map(|inner| inner as &(dyn Error + 'static)).or(layer),
        }
    }
    Reason::Unreachable
}

#[cfg(test)]
mod tests;
