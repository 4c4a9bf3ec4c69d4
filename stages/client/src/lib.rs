//! HTTP plumbing shared by the stages that call a peer (Argo CD, the platform).
//!
//! takes: a [`Target`], a [`Config`], a [`Token`] - gives: a [`Client`] whose answers are bounded and whose
//! errors carry a [`pipeline_core::Reason`] - calls: what it is told to - fails: with [`HttpError`], which
//! names the act and the host and never a path, a query, a body or a token.
//!
//! It decides nothing: whether a failure is retried, and when, is the caller's business. The three rules that stand here, since all
//! who read Applications need them, are [`has_commits()`], [`manifest_sources()`] and [`synced_sources()`]; one that all who are asked
//! in GraphQL need is [`check_query()`].

mod bearer_token;
mod client;
mod config;
mod data_answer;
mod error;
mod event_stream;
mod forwarded;
mod gauge_guard;
mod has_commits;
mod hop_by_hop;
mod manifest_sources;
mod metered;
mod no_tunnel;
mod opened;
mod own_certificate;
mod own_cookie;
mod proxies;
mod query_bounds;
mod reply;
mod retry_after;
mod session;
mod speaks_http;
mod synced_sources;
mod target;
mod token;
mod token_file;
mod trusting;

pub use bearer_token::bearer_token;
pub use client::Client;
pub use config::{BuildError, Config};
pub use data_answer::mark_as_data;
pub use error::{Fault, HttpError, reason_of_status};
pub use event_stream::{ACCEL_BUFFERING, event_stream};
pub use forwarded::says_who_asked;
pub use gauge_guard::GaugeGuard;
pub use has_commits::has_commits;
pub use hop_by_hop::{HOP_BY_HOP, has_other_coding};
pub use manifest_sources::manifest_sources;
pub use no_tunnel::NO_TUNNEL;
pub use opened::Opened;
pub use own_certificate::{CertificateError, CertificateFiles, OwnCertificate};
pub use own_cookie::OwnCookie;
pub use pipeline_core::Families;
pub use pipeline_trust::{ServerVerifier, install_crypto};
pub use proxies::{proxy_exceptions, through_environment};
pub use query_bounds::{QueryFault, check_query};
pub use reply::Reply;
pub use reqwest::{Method, RequestBuilder, Url, header};
pub use retry_after::{MAX_RETRY_AFTER, retry_after};
pub use session::{Login, Session, Sessions};
pub use speaks_http::speaks_http;
pub use synced_sources::{SyncedSources, synced_sources};
pub use target::{Target, TargetError};
pub use token::{Token, TokenError};
