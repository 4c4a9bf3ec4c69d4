//! The client of one peer: connections that are kept, time limits, bounded answers, no redirects.
//!
//! takes: requests to one [`Target`] - gives: a [`Reply`] of any status - fails: with [`HttpError`] when
//! there is no whole answer. The environment's proxy settings hold. A request that is part of a traced event carries its
//! `traceparent`. Never retries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_core::{Call, Digest, Meter};
use reqwest::{Method, RequestBuilder, Url};

use crate::error::of_request;
use crate::metered::Metered;
use crate::reply::{beginning, whole};
use crate::trusting::Trusting;
use crate::{Config, Fault, HttpError, Opened, Reply, Target, Token};

/// The body of an answer of which the head was enough is read for so long, so that its connection may serve the next call.
const DRAIN: Duration = Duration::from_millis(100);

/// Calls one peer. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Client {
    /// Makes requests; they are sent by the one that trusts what the file holds now.
    http: reqwest::Client,
    trusting: Arc<Trusting>,
    target: Target,
    max_body: usize,
    metered: Option<Metered>,
}

impl Client {
    /// Of `http`, which trusts what the file of certificate authorities held.
    pub(crate) fn new(config: Config, http: reqwest::Client, held: Digest, target: Target) -> Self {
        let max_body = config.max_body;
        let trusting = Trusting::new(config, http.clone(), held);
        Self { http, trusting, target, max_body, metered: None }
    }

    /// Tells a meter of every call from now on: how it ended, and how long that took; of one that is [opened](Client::open), until
    /// the head of its answer was there.
    #[must_use]
    pub fn metered(self, call: Call, meter: Arc<dyn Meter>) -> Self {
        Self { metered: Some(Metered { call, meter }), ..self }
    }

    /// Begins a request to the path made of `segments` below the target's base.
    ///
    /// # Errors
    /// A segment that cannot be addressed.
    pub fn request(
        &self,
        act: &'static str,
        method: Method,
        segments: &[&str],
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.url(segments).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Begins a request to `path` below the target's base; `path` and its query are escaped already.
    ///
    /// # Errors
    /// A path that cannot be addressed.
    pub fn request_escaped(
        &self,
        act: &'static str,
        method: Method,
        path: &str,
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.escaped(path).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Begins a request to the URL that the peer itself gave as that of one of its endpoints.
    ///
    /// # Errors
    /// A URL that is not at the target's host.
    pub fn request_at(
        &self,
        act: &'static str,
        method: Method,
        url: &Url,
    ) -> Result<RequestBuilder, HttpError> {
        let url = self.target.told(url).map_err(|error| self.error(act, Fault::Address(error)))?;
        Ok(self.http.request(method, url))
    }

    /// Adds the `Authorization` header `prefix` + token.
    ///
    /// # Errors
    /// A token that cannot be used.
    pub async fn authorize(
        &self,
        act: &'static str,
        request: RequestBuilder,
        token: &Token,
        prefix: &str,
    ) -> Result<RequestBuilder, HttpError> {
        let value = token.header(prefix).await.map_err(|error| self.error(act, Fault::Token(error)))?;
        Ok(request.header(reqwest::header::AUTHORIZATION, value))
    }

    /// Sends a request and reads its answer, whatever its status. `act` completes "cannot ..." in errors.
    ///
    /// # Errors
    /// No answer, or a 2xx answer that is too large, cut short, or not what its encoding says.
    pub async fn send(&self, act: &'static str, request: RequestBuilder) -> Result<Reply, HttpError> {
        self.exchange(act, request, Some(self.max_body)).await
    }

    /// As [`Client::send`], with a limit of its own for the body of a 2xx.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_within(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: usize,
    ) -> Result<Reply, HttpError> {
        self.exchange(act, request, Some(limit.min(self.max_body))).await
    }

    /// Sends a request of whose answer only the head matters: it stands once that is complete, whatever becomes of its
    /// body, which is neither given nor waited for. Whoever sends a status has decided; a connection that breaks before
    /// the head's end is an error, one whose body is long or late is not used again.
    ///
    /// # Errors
    /// No answer.
    pub async fn deliver(&self, act: &'static str, request: RequestBuilder) -> Result<Reply, HttpError> {
        self.exchange(act, request, None).await
    }

    /// Sends a request and gives its answer before it has ended, if it is a 2xx: what comes may come for as long as the request's
    /// own limit says. Any other answer is read as [`Client::send`] reads it.
    ///
    /// # Errors
    /// No answer.
    pub async fn open(
        &self,
        act: &'static str,
        request: RequestBuilder,
    ) -> Result<Result<Opened, Reply>, HttpError> {
        let fail = |error| self.error(act, of_request(error));
        let request = request.build().map_err(fail)?;
        let begun = Instant::now();
        let answered = Trusting::now(&self.trusting).await.execute(request).await.map_err(fail);
        if let Some(metered) = &self.metered {
            metered.record(begun, answered.as_ref().map(|response| response.status().as_u16()));
        }
        let mut response = answered?;
        let host = self.target.host().clone();
        if response.status().is_success() {
            return Ok(Ok(Opened { act, host, response }));
        }
        let body = beginning(&mut response).await;
        Ok(Err(Reply::new(act, host, &response, body)))
    }

    /// The peer's host, for messages and logs.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        self.target.host()
    }

    /// An error of this peer.
    #[must_use]
    pub fn error(&self, act: &'static str, fault: Fault) -> HttpError {
        HttpError::new(act, self.target.host().clone(), fault)
    }

    async fn exchange(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: Option<usize>,
    ) -> Result<Reply, HttpError> {
        let begun = Instant::now();
        let answered = self.answer(act, request, limit).await;
        if let Some(metered) = &self.metered {
            metered.record(begun, answered.as_ref().map(Reply::status));
        }
        answered
    }

    async fn answer(
        &self,
        act: &'static str,
        request: RequestBuilder,
        limit: Option<usize>,
    ) -> Result<Reply, HttpError> {
        let request = match pipeline_core::traceparent() {
            Some(trace) => request.header("traceparent", &*trace),
            None => request,
        };
        let fail = |error| self.error(act, of_request(error));
        let request = request.build().map_err(fail)?;
        let mut response = Trusting::now(&self.trusting).await.execute(request).await.map_err(fail)?;
        let body = match limit {
            Some(limit) if response.status().is_success() => {
                whole(&mut response, limit).await.map_err(|fault| self.error(act, fault))?
            }
            Some(_) => beginning(&mut response).await,
            None => {
                // Whether it came to its end does not matter.
                let _ = tokio::time::timeout(DRAIN, beginning(&mut response)).await;
                Bytes::new()
            }
        };
        Ok(Reply::new(act, self.target.host().clone(), &response, body))
    }
}
