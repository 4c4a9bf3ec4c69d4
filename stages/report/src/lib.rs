//! Where reports go.
//!
//! takes: shipments, redacted and encoded - gives: one answer per shipment - calls: `POST
//! {platform}/2.0/api/events` and below it, `POST` of CloudEvents, publishes to subjects of NATS, or writes lines to a file or to
//! standard output - fails: "retry" or "reject", as each sink says; the engine alone decides when a retry happens.

mod batching;
pub mod cloudevents;
mod envelope;
pub mod file;
mod gzip;
pub mod labels;
mod lines;
pub mod nats;
pub mod platform;
pub mod stdout;

pub use envelope::traceparent;
