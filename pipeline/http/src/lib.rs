//! What a process answers: probes, metrics and pages for everybody, and the admin interface for those who may.

pub mod admin;
pub mod serve;
