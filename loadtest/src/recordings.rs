//! Recordings: loading cases from a folder or from the packed copies.
