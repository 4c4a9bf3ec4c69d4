//! Pages: functions from what is known to markup.

pub(crate) mod acts;
pub(crate) mod add_runtime;
pub(crate) mod application;
pub(crate) mod applications;
mod clusters;
pub(crate) mod commit;
pub(crate) mod deployments;
pub(crate) mod diff;
pub(crate) mod home;
pub(crate) mod link;
pub(crate) mod matrix;
pub(crate) mod pieces;
pub(crate) mod preview;
pub(crate) mod progress;
mod provider;
pub(crate) mod resources;
pub(crate) mod rollout;
mod runtime_problems;
pub(crate) mod runtimes;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod shipping;
pub(crate) mod sign_in;
pub(crate) mod strip;
mod timeline;
pub(crate) mod tree;
pub(crate) mod views;
