//! Leases: which replica owns which shard, as a store holds it that writes by compare-and-set.
//!
//! What is here is what every such store ([`Store`]) has in common: its records, and what it is asked and shows. Who claims
//! what, and when, is decided by [`crate::Ownership`]; where the records are, by the store.

mod record;
mod replica;
mod store;

pub use self::record::{Lease, LeaseError, Presence, RECORD_BYTES, REFUSED};
pub use self::replica::{Replica, ReplicaError};
pub use self::store::{LeaseWrite, Shown, Store};
