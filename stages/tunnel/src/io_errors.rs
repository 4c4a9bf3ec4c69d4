//! Errors of a connection whose other side does what it may not.

use std::io;

/// The other side sent what no peer may send.
pub(crate) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The other side took longer than it may.
pub(crate) fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}
