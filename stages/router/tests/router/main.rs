//! The router before real services: streams, upgrades, names that move, limits, and requests that mean harm.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod dns;
mod frames;
mod limits;
mod names;
mod probe;
mod routes;
mod streams;
mod support;
