//! Where `.ci/setup` installs what tests need.
//!
//! takes: the environment - gives: a folder - fails: never; there may be none

use std::path::PathBuf;

/// A path that a variable of the environment names.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `LOADTEST_CACHE`, else a folder in the user's cache; `None` for a user who has none.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let caches = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("LOADTEST_CACHE").or_else(|| Some(caches()?.join("gitops-runtime")))
}
