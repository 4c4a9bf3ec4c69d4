//! What is stored: values of serde types in MessagePack, under a version, and sealed where they leave the memory.

use std::hash::Hasher as _;

use pipeline_core::{Lengthened, Parked, Pending, Record, Uid, Version};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::tables::Table;

/// A value as it is stored. What gives a value another meaning gets a variant of its own, which older versions refuse.
#[derive(Serialize, Deserialize)]
enum Stored<T> {
    V1(T),
}

/// Bytes that are not a value: damaged, another key's, or a newer version's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a value of the ledger cannot be read")]
pub(super) struct Unreadable;

const CHECKSUM: usize = 8;

/// The bytes of a value; the same for equal values.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    // Numbers, texts and lists alone: there is no reason to fail.
    rmp_serde::to_vec(&Stored::V1(value)).unwrap_or_default()
}

/// Reads what [`encode`] wrote; takes any bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let Stored::V1(value) = rmp_serde::from_slice(bytes).map_err(|_| Unreadable)?;
    Ok(value)
}

/// Reads a record. Rows are found by bisection: an order that is not theirs would hide some of them.
pub(super) fn record(bytes: &[u8]) -> Result<Record, Unreadable> {
    let Lengthened(record) = decode::<Lengthened<Record>>(bytes)?;
    if record.entities.is_sorted_by(|a, b| a.id < b.id) { Ok(record) } else { Err(Unreadable) }
}

/// Which incarnation a record is of, and its version: nothing else of it is kept.
pub(super) fn incarnation(bytes: &[u8]) -> Result<(Uid, Version), Unreadable> {
    /// The members of a [`Record`]; former versions wrote no ninth and no tenth.
    #[derive(Deserialize)]
    struct Head(
        Uid,
        Version,
        IgnoredAny,
        IgnoredAny,
        IgnoredAny,
        IgnoredAny,
        IgnoredAny,
        IgnoredAny,
        #[serde(default)] IgnoredAny,
        #[serde(default)] IgnoredAny,
    );
    let Lengthened(Head(uid, version, ..)) = decode(bytes)?;
    Ok((uid, version))
}

/// What stands in a file or a bucket: the bytes, then a checksum of their key and themselves.
pub(super) fn seal(key: &str, bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(bytes.len() + CHECKSUM);
    sealed.extend_from_slice(bytes);
    sealed.extend(checksum(key, bytes).to_le_bytes());
    sealed
}

/// The bytes of what stands in a file or a bucket; whether they can be decoded is not said by this.
pub(super) fn unseal<'a>(key: &str, sealed: &'a [u8]) -> Result<&'a [u8], Unreadable> {
    let (bytes, sum) = sealed.split_last_chunk::<CHECKSUM>().ok_or(Unreadable)?;
    if u64::from_le_bytes(*sum) == checksum(key, bytes) { Ok(bytes) } else { Err(Unreadable) }
}

/// The bytes of a row that stands in a file or a bucket, if they are a value of its table.
pub(super) fn unseal_row<'a>(table: Table, key: &str, sealed: &'a [u8]) -> Result<&'a [u8], Unreadable> {
    let bytes = unseal(key, sealed)?;
    match table {
        Table::Records => drop(record(bytes)?),
        Table::Journal => drop(decode::<Pending>(bytes)?),
        Table::Parked => drop(decode::<Parked>(bytes)?),
        Table::Done => drop(decode::<Version>(bytes)?),
    }
    Ok(bytes)
}

/// Over the key too, so that what is found under another key does not pass.
pub(super) fn checksum(key: &str, bytes: &[u8]) -> u64 {
    let mut hasher = seahash::SeaHasher::new();
    hasher.write(key.as_bytes());
    hasher.write(bytes);
    hasher.write_u64(key.len() as u64);
    hasher.finish()
}

#[cfg(test)]
pub(super) mod tests;
