//! Simulators of a Kubernetes API server, an Argo CD server and a platform: real HTTP servers. And what is put before
//! them: recordings, generated load, the real binary as a process, a NATS server.
//!
//! Each serves a recording or generated load, and misbehaves as its [`fault::Faults`] say, at any moment.

pub mod account;
pub mod argocd;
pub mod certificate;
pub mod child;
pub mod command;
pub mod fault;
pub mod generate;
pub mod git_server;
pub mod installed;
pub mod kube;
mod local_client;
pub mod nats;
pub mod oidc_provider;
pub mod people;
pub mod platform;
pub mod platform_process;
mod player;
pub mod port;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod recordings;
pub mod reporter;
pub mod server;
mod simulation;
mod traffic;
mod until;

pub use local_client::local_client;
pub use player::Player;
pub use server::Listen;
pub use simulation::{Load, Setup, Simulation};
pub use traffic::Traffic;
pub use until::{PATIENCE, until, wait_for};
