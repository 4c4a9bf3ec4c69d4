//! Sessions: by a cookie whose digest alone is kept.

pub(crate) mod link;
pub(crate) mod password;
pub(crate) mod throttle;
pub(crate) mod token;
