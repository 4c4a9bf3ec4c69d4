//! Why the router answers a request itself, with which status, and under which label it is counted.

use http::StatusCode;

/// Why the router answers in place of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("a path must hold no `.` or `..` segment, encoded or not")]
    Dots,
    #[error("a path must hold printable characters alone, each other one as %XX of a printable one")]
    Encoding,
    #[error("a request must name one host, and a valid one")]
    Host,
    #[error("the transfer coding `chunked` alone is taken")]
    TransferCoding,
    #[error("this method is not taken")]
    Method,
    #[error("the expectation 100-continue alone is taken")]
    Expectation,
    #[error("an upgrade is to be a GET without a body")]
    Upgrade,
    #[error("the headers are larger than the {0} bytes that this route takes")]
    Headers(usize),
    #[error("the body is larger than the {0} bytes that this route takes")]
    Body(u64),
    #[error("the body did not arrive in time")]
    BodyIdle,
    #[error("the body is not what its head says")]
    BodyBroken,
    #[error("nothing is served at this path")]
    Nowhere,
    #[error("a webhook is /webhooks/<namespace>/<name>, both DNS labels")]
    WebhookName,
    #[error("this webhook is not one that may be reached")]
    WebhookNotAllowed,
    #[error("as many requests are under way as this route takes; try again")]
    Busy,
    #[error("the service is not there")]
    Unresolved,
    #[error("the service cannot be connected to")]
    Unreachable,
    #[error("the service cannot be connected to in time")]
    ConnectTimeout,
    #[error("the service did not answer in time")]
    AnswerTimeout,
    #[error("the service broke off before it answered")]
    Broken,
    #[error("the service answered what was not asked for")]
    Protocol,
}

impl Refusal {
    /// The labels of requests that are passed to no service.
    pub(crate) const REFUSED: [&str; 14] = [
        "path",
        "host",
        "transfer_coding",
        "method",
        "expectation",
        "upgrade",
        "headers",
        "body",
        "body_idle",
        "body_broken",
        "nowhere",
        "webhook_name",
        "webhook_not_allowed",
        "busy",
    ];
    /// The labels of requests that a service did not answer.
    pub(crate) const FAILED: [&str; 6] =
        ["unresolved", "unreachable", "connect_timeout", "answer_timeout", "broken", "protocol"];

    /// The status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Dots
            | Self::Encoding
            | Self::Host
            | Self::Upgrade
            | Self::BodyBroken
            | Self::WebhookName => StatusCode::BAD_REQUEST,
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Headers(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Body(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyIdle => StatusCode::REQUEST_TIMEOUT,
            Self::Nowhere | Self::WebhookNotAllowed => StatusCode::NOT_FOUND,
            Self::Busy | Self::Unresolved | Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout | Self::AnswerTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Broken | Self::Protocol => StatusCode::BAD_GATEWAY,
        }
    }

    /// Whether the service is at fault or away, rather than the request.
    pub(crate) fn is_failure(self) -> bool {
        Self::FAILED.contains(&self.reason())
    }

    /// The label that it is counted under; several refusals may share one.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Dots | Self::Encoding => "path",
            Self::Host => "host",
            Self::TransferCoding => "transfer_coding",
            Self::Method => "method",
            Self::Expectation => "expectation",
            Self::Upgrade => "upgrade",
            Self::Headers(_) => "headers",
            Self::Body(_) => "body",
            Self::BodyIdle => "body_idle",
            Self::BodyBroken => "body_broken",
            Self::Nowhere => "nowhere",
            Self::WebhookName => "webhook_name",
            Self::WebhookNotAllowed => "webhook_not_allowed",
            Self::Busy => "busy",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::ConnectTimeout => "connect_timeout",
            Self::AnswerTimeout => "answer_timeout",
            Self::Broken => "broken",
            Self::Protocol => "protocol",
        }
    }
}
