//! The identity of one life of an object.

use std::sync::Arc;

/// `metadata.uid`: the identity of one life of an object.
pub type Uid = Arc<str>;
