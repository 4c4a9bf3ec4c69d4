//! The command line for people: `login`, `context`, `runtime`, `app`, `rollout`, `workflow`, `seal`, and of `git` what is about
//! integrations and tokens, against a platform that runs elsewhere, and the app proxies of its runtimes.
//!
//! takes: the command line, the contexts that a person signed in to - gives: tables for people, JSON, YAML or names for
//! programs, and an exit code
//! calls: `POST {platform}/2.0/api/graphql`, and for what is done in a runtime
//! `POST {platform}/2.0/api/runtimes/{runtime}/app-proxy/graphql` or `POST {app proxy}/api/graphql` - fails: with [`RemoteError`], which says what to do next and never repeats a key
//!
//! It knows HTTP and the schemas that are printed, and nothing else of a platform or an app proxy.

mod act;
mod app;
mod arguments;
mod context;
mod contexts;
mod download;
mod environment;
mod error;
mod git;
mod install;
mod login;
mod logs;
mod names;
mod page;
mod platform;
mod proxy;
mod release;
mod resource;
mod rollout;
mod run;
mod runtime;
mod seal;
mod secret;
#[cfg(test)]
mod server;
mod show;
mod subscription;
mod unencrypted;
mod watch;
mod workflow;

pub use arguments::{RemoteCommand, RemoteGit};
pub use environment::Environment;
pub use error::RemoteError;
pub use names::complete_with;
pub use run::{run, run_git};
