//! Sessions: by a cookie whose digest alone is kept.

pub(crate) mod account_name;
pub(crate) mod known_browser;
pub(crate) mod link;
pub(crate) mod password;
pub(crate) mod throttle;
pub(crate) mod token;
