//! What pages show: plain values, without a word about how they are kept or drawn.

pub(crate) mod application;
pub(crate) mod cluster;
pub(crate) mod commit;
pub(crate) mod deployment;
pub(crate) mod home;
pub(crate) mod listing;
pub(crate) mod matrix;
pub(crate) mod resource;
pub(crate) mod runtime;
pub(crate) mod shipping;
pub(crate) mod state;
