//! What the platform answers over HTTP to those who report: reports one by one and in batches, in every form that they are
//! sent in, comparisons, and which commits changed an application; and to a runtime that asks for what it reported itself.

mod auth;
mod body;
mod changes;
mod compare;
mod fields;
mod ingest;
mod metrics;
mod noted;
mod placement;
mod quota;
mod read;
mod refusal;
mod steps;
mod turns;
mod wire;

pub use ingest::{Ingest, IngestConfig, table};
