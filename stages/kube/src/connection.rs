//! How the API server is asked: each answer within bounds, with who asks.
//!
//! Requests are authenticated by [`kube`]; answers are read here, so that no body is larger than its limit, and none is logged.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http_body_util::BodyExt as _;
use kube::client::Body;

use crate::failure::{Failure, broken};
use crate::kind::Act;
use crate::token::TokenFile;

/// A peer's wish to be left alone is granted for this long at most: less than the silence after which health
/// takes the watch for stuck.
const RETRY_AFTER_LIMIT: Duration = Duration::from_secs(180);

/// A connection to the API server. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Connection {
    client: kube::Client,
    /// Of a token that stands in a file, and not in a kubeconfig.
    token: Option<TokenFile>,
}

impl Connection {
    pub(crate) fn new(client: kube::Client, token: Option<TokenFile>) -> Self {
        Self { client, token }
    }

    /// One request, and its answer whatever it says.
    pub(crate) async fn send(
        &self,
        act: Act,
        request: http::Request<Vec<u8>>,
    ) -> Result<Response<Body>, Failure> {
        let mut request = request.map(Body::from);
        if let Some(token) = &self.token {
            let value = token.header().await.map_err(|source| Failure::Token { act, source })?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        self.client.send(request).await.map_err(|error| broken(act, error))
    }

    /// One request, and the body of its answer as it comes.
    pub(crate) async fn open(&self, act: Act, request: http::Request<Vec<u8>>) -> Result<Body, Failure> {
        ok(act, self.send(act, request).await?)
    }

    /// One request and its whole answer, of at most `limit` bytes.
    pub(crate) async fn exchange(
        &self,
        act: Act,
        request: http::Request<Vec<u8>>,
        limit: usize,
    ) -> Result<Bytes, Failure> {
        let body = self.open(act, request).await?;
        read(act, body, limit).await
    }
}

/// The body of an answer that says yes; the body of any other is not looked at.
pub(crate) fn ok(act: Act, response: Response<Body>) -> Result<Body, Failure> {
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

/// The whole of a body, of at most `limit` bytes.
pub(crate) async fn read(act: Act, mut body: Body, limit: usize) -> Result<Bytes, Failure> {
    let mut all = BytesMut::new();
    while let Some(chunk) = piece(act, &mut body).await? {
        if chunk.len() > limit - all.len() {
            return Err(Failure::TooLarge { act, limit });
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all.freeze())
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
