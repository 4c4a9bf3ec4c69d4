//! What the store promises, on SQLite and on Postgres alike, and what holds of SQLite's file alone.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod alike;
mod changes;
mod clocks;
mod connecting;
mod connections;
mod contract;
mod databases;
mod drifted;
mod file;
mod fleet;
mod group;
mod identities;
mod keys;
mod letters;
mod looked_up;
mod matrix;
mod narrowed;
mod overview;
mod owners;
mod pooler;
mod postgres;
mod proxy;
mod ranges;
mod retention;
mod rights;
mod rotated;
mod rows;
mod runtimes;
mod saved_views;
mod servers;
mod shipping;
mod silence;
mod support;
mod upgraded;
