//! The API over real HTTP, on a store of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod authorize;
mod forward;
mod library;
mod library_operations;
mod limits;
mod operations;
mod places;
mod queries;
mod served;
mod subscriptions;
mod told;
