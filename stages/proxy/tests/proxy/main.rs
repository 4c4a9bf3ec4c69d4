//! The app proxy over real HTTP: a real platform with a store of its own, an Argo CD and an API server that keep what they are
//! told.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod argocd;
mod attacks;
mod canaries;
mod closed;
mod cluster;
mod collections;
mod components;
mod downloads;
mod effects;
mod everything;
mod files;
mod front;
mod git;
mod logs;
mod metrics;
mod named;
mod oauth;
mod operations;
mod proposed;
mod provider;
mod providers;
mod pulls;
mod schema;
mod sealing;
mod sockets;
mod status;
mod stopping;
mod support;
mod tokens;
mod workflows;
