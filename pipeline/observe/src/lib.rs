//! What people and machines see of a running process: metrics, health, spans, and what is busiest.
//!
//! It is told what happened and changes nothing of it.

pub mod health;
pub mod metrics;
pub mod spans;
pub mod top;
