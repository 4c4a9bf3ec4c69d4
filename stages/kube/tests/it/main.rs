//! The watch against an API server over real HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod credentials;
mod ensure;
mod fake;
mod follow;
mod gone;
mod harness;
mod kinds;
mod listing;
mod owner;
mod proxy;
mod reach;
mod read;
mod restored;
mod resumed;
mod said;
mod survey;
