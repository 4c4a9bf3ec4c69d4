//! Lists, watches and reads objects of a Kubernetes API server, of any kind, as events.
//!
//! [`Config::build`] makes a [`Watch`] of a [`Mapping`], which says what kind of objects is watched and what an event tells
//! of one. Lists and watches are asked for through [`kube::Client`], which knows kubeconfigs, rotating tokens and
//! certificates. They are read here and not by kube's own watcher, because that one logs an answer that it cannot decode
//! (and an answer holds manifests), fails a whole page for one bad object, reads bodies of any size, and hides the
//! bookmarks that show a quiet watch to be alive.

mod api;
mod config;
mod connection;
mod credentials;
mod discovery;
mod ensure;
mod era;
mod failure;
mod failure_tracker;
mod kind;
mod kinds;
pub mod labels;
mod lines;
mod list;
mod namespaces;
mod object;
mod pages;
mod proxy;
mod question;
mod resume;
mod rights;
mod secret;
mod selector;
mod survey;
mod token;
mod watch;

pub use config::{Cluster, Config, ConfigError};
pub use discovery::is_version;
pub use ensure::{EnsureError, Generated};
pub use kind::{Kind, Mapping};
pub use kinds::{Wanted, Watches};
pub use namespaces::{Namespaces, PatternError, Patterns};
pub use question::{Pieces, QuestionError, Reader};
pub use rights::{Right, Scope};
pub use secret::{SecretError, SecretToken};
pub use selector::{Selector, SelectorError};
pub use watch::{Deps, Unwatched, Watch};
