//! Names of objects in Kubernetes.

use crate::error::ActError;

/// Whether Kubernetes takes a text as a name: then it is one segment of a path, too.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), ActError> {
    let well = (1..=253).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if well { Ok(()) } else { Err(ActError::Wrong(format!("that is no name of {what} in Kubernetes"))) }
}
