//! What the larger commands take.

pub(super) mod app_proxy;
pub(super) mod ask;
pub(super) mod bus;
pub(super) mod git;
pub(super) mod platform;
pub(super) mod router;
pub(super) mod secrets;
pub(super) mod source_server;
pub(super) mod tunnel;
pub(super) mod values;
