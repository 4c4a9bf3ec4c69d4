//! The sinks against real servers on loopback, real files and real pipes.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod answers;
mod batch;
mod cloudevents;
mod cloudevents_sdk;
mod compare;
mod file;
mod nats;
mod platform;
mod stdout;
mod support;
