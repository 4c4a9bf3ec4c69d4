//! The program itself, end to end: the real binary as a child process, against simulated peers over real HTTP.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod ask;
mod bad_input;
mod bad_objects;
mod batch;
mod bus_away;
mod bus_cluster;
mod bus_commands;
mod changes;
mod changes_asked;
mod changes_followed;
mod changes_hydrated;
mod changes_shared;
mod credentials;
mod dry_run;
mod environment;
mod forge;
mod gentle;
mod git_tokens;
mod killed_commits;
mod merged;
mod oidc;
mod overload;
mod pages;
mod platform;
mod replay;
mod resource_routes;
mod resource_rules;
mod resources;
mod restored;
mod rotation;
mod router;
mod runtime;
mod secrets;
mod shutdown;
mod sources;
mod sources_by_repository;
mod sources_over_bus;
mod told;
mod top;
mod traces;
mod tunnel;
mod verify;
mod way_in;
mod wire;
