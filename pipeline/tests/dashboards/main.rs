//! The dashboards and alert rules under `helm`, against what the program really exposes: a real Prometheus scrapes
//! the real binary while its peers are in trouble, and is then asked every question that a panel or an alert asks.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod acts;
mod alerts;
mod clones;
mod files;
mod kinds;
mod panels;
mod platform;
mod prometheus;
mod promql;
mod series;
mod shape;
mod texts;
mod trouble;
mod variables;
mod ways;
