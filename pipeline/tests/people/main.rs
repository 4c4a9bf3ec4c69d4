//! The command line for people, as processes against the real platform.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod acts;
mod app_proxy;
mod desk;
mod grid;
mod install;
mod integrations;
mod lists;
mod login;
mod pictures;
mod platform;
mod registration;
mod seal;
mod shells;
mod terminal;
mod watch;
mod whole_way;
