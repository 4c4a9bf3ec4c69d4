//! The platform behind this one.

use std::time::Duration;

use anyhow::Context as _;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::local_client;

/// How long it may take to answer.
const WITHIN: Duration = Duration::from_secs(20);
/// What stands in a request beside its body that matters to it.
const PASSED: [&str; 3] = ["idempotency-key", "fencing-epoch", "traceparent"];

/// Where reports are passed on to.
#[derive(Debug)]
pub(super) struct Onward {
    client: reqwest::Client,
    url: String,
    authorization: HeaderValue,
}

impl Onward {
    pub(super) fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        let client = local_client().timeout(WITHIN);
        let mut authorization = HeaderValue::from_str(token).context("put the token into a header")?;
        authorization.set_sensitive(true);
        Ok(Self {
            client: client.build().context("make a client")?,
            url: format!("{url}/2.0/api/events"),
            authorization,
        })
    }

    /// Passes a report on; the status of its refusal, 503 where nothing was answered.
    pub(super) async fn pass(&self, headers: &HeaderMap, payload: &str) -> Result<(), u16> {
        let mut request = self.client.post(&self.url).header(header::AUTHORIZATION, &self.authorization);
        for name in PASSED {
            if let Some(value) = headers.get(name) {
                request = request.header(name, value);
            }
        }
        let request = request.header(header::CONTENT_TYPE, "application/json");
        match request.body(format!("{{\"data\":{payload}}}")).send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(answer.status().as_u16()),
            Err(_) => Err(503),
        }
    }
}
