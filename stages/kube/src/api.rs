//! Three requests to the API server for the objects of one kind: a list, a watch, and one object.
//!
//! Requests are built by [`kube`] and answered over a [`Connection`]; the objects in the answers stay the text they are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderValue;
use http::header::ACCEPT;
use kube::api::{GetParams, ListParams, VersionMatch, WatchParams};
use kube::client::Body;
use kube::core::Request;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pipeline_core::{Call, Key, Meter, Outcome, Sample, Version};
use serde::Deserialize;

use crate::Config;
use crate::connection::{Connection, ok, piece, read};
use crate::failure::{Failure, unbuilt};
use crate::kind::{Act, Kind};
use crate::labels;
use crate::lines::{Line, Lines};
use crate::pages::Page;
use crate::question::METADATA;
use crate::selector::Selector;

/// What stays as it is in a segment of a path (RFC 3986, unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Asks for the objects of one kind, of one namespace or of all.
pub(crate) struct Api {
    pub(crate) kind: Kind,
    connection: Connection,
    collection: String,
    selector: Selector,
    call_timeout: Duration,
    idle_limit: Duration,
    max_body: usize,
    meter: Arc<dyn Meter>,
}

impl Api {
    pub(crate) fn new(
        connection: Connection,
        (kind, namespace): (Kind, Option<&str>),
        config: &Config,
        meter: Arc<dyn Meter>,
    ) -> Self {
        Self {
            kind,
            connection,
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
        self.measured(labels::LIST, act, self.connection.exchange(act, request, self.max_body)).await
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
        let body = self.measured(labels::WATCH, act, self.connection.open(act, request)).await?;
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
            let response = self.connection.send(act, request).await?;
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
            let next = tokio::time::timeout(self.idle_limit, piece(self.act, &mut self.body))
                .await
                .map_err(|_| Failure::Silent { act: self.act, limit: self.idle_limit })?;
            match next? {
                Some(chunk) => self.lines.push(&chunk),
                None if self.lines.unfinished() => return Err(Failure::CutShort { act: self.act }),
                None => return Ok(None),
            }
        }
    }
}

pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Whether a 404 speaks of the object. A server that does not know the whole resource, or a proxy in
/// between, says 404 too, and that must not be taken for a deletion.
fn says_not_found(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Answer<'a> {
        kind: &'a str,
    }
    serde_json::from_slice(body).is_ok_and(|answer: Answer<'_>| answer.kind == "Status")
}

#[cfg(test)]
mod tests;
