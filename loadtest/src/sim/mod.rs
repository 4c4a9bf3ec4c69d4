//! Simulators of a Kubernetes API server, an Argo CD server and a platform: real HTTP servers.
//!
//! Each serves a recording or generated load, and misbehaves as its [`fault::Faults`] say, at any moment.

pub mod argocd;
mod capacity;
pub mod certificate;
mod command;
pub mod fault;
pub mod generate;
pub mod kube;
pub mod platform;
mod player;
pub(crate) mod server;
mod simulation;
mod traffic;

pub use capacity::{Capacity, Worked};
pub use command::{Args, run};
pub use player::Player;
pub use server::Listen;
pub use simulation::{Load, Setup, Simulation};
pub use traffic::Traffic;
