//! The chart under `helm/gitops-runtime`, rendered by a real Helm with the doctor's good files of values, and refused
//! by it with the bad ones.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod before;
mod changes;
mod commands;
mod dependency;
mod helm;
mod hook;
mod ingresses;
mod installation;
mod installer;
mod names;
mod objects;
mod peers;
mod policies;
mod registration;
mod renewals;
mod rights;
mod roles;
mod synced;
mod texts;
mod uses;
