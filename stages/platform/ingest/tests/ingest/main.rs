//! What is received over real HTTP: the incumbent's recorded traffic as it was posted, every form of body, every refusal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod clients;
mod forms;
mod heard;
mod recorded;
mod refused;
mod support;
