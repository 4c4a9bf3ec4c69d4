//! The app proxy: carries out in the cluster what people ask for in the console or on the command line, as them.
//!
//! takes: GraphQL at `/app-proxy/api/graphql` and `/api/graphql`, with a token of the platform - gives: what Argo CD, Rollouts
//! and Workflows say, and changes there what whoever asks may change - calls: the platform, which says whether they may and keeps
//! the audit log; Argo CD; the API server; the server of Argo Workflows, where there is one
//! fails: closed: while the platform does not answer nobody is let in

mod account;
mod archive;
mod argocd;
mod audit;
mod clusters;
mod collection;
mod component_logs;
mod dispatcher;
mod error;
mod gate;
mod git;
mod heartbeat;
mod kubernetes_name;
mod logs;
mod operation;
mod own_pods;
mod platform;
mod proxy;
mod query_text;
mod refusal;
mod refusal_log;
mod registration;
mod rendered;
mod rollouts;
mod routes;
mod schema;
mod sealing;
mod secret_names;
mod series;
mod shown;
mod socket;
mod stopping;
mod strangers;
mod stream_grant;
mod streams;
mod validation;
mod workflows;

pub use argocd::Access;
pub use error::ActError;
pub use git::OAuthConfig;
pub use operation::Operation;
pub use proxy::{BuildError, Limits, Proxy, ProxyConfig, RuntimeToken, rights};
pub use registration::RegistrationConfig;
pub use schema::sdl;
pub use series::ProxySeries;
pub use stopping::Stopping;

/// The version that runs.
const VERSION: &str = env!("CARGO_PKG_VERSION");
