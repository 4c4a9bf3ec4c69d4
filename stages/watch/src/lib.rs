//! Watch stages: what happens in the cluster, as events.
//!
//! One stage so far: [`ApplicationWatch`], the Argo CD applications. Lists and watches are asked for through
//! [`kube::Client`], which knows kubeconfigs, rotating tokens and certificates. They are read here and not
//! by kube's own watcher, because that one logs an answer that it cannot decode (and an answer holds
//! manifests), fails a whole page for one bad object, reads bodies of any size, and hides the bookmarks
//! that show a quiet watch to be alive.

mod api;
mod application;
mod config;
mod credentials;
mod era;
mod lines;
mod list;
mod namespaces;
mod object;
mod pages;
mod proxy;
mod rights;
mod secret;
mod survey;
mod token;
mod trouble;

pub use application::{ApplicationWatch, Deps};
pub use config::{Cluster, Config, ConfigError};
pub use namespaces::{Namespaces, PatternError};
pub use rights::{Right, Scope};
pub use secret::{SecretError, SecretToken};
