//! Texts, each kept once however often it is named: what the transitions of a group name is written together at its end.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use zstd::bulk::Compressor;

use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::Text;
use crate::rows::with_rows;

/// Of the level of compression that zstd is fastest per byte saved at for texts of some kilobytes.
const ZSTD_LEVEL: i32 = 3;

/// Either database names the columns of such rows so.
pub(crate) const NAMED: &str = "UPDATE blobs SET refs = refs + named.column2 FROM (VALUES ROWS) AS named \
    WHERE blobs.digest = named.column1 RETURNING blobs.digest";
pub(crate) const NEW: &str = "INSERT INTO blobs (digest, refs, size, zstd) SELECT column1, column2, column3, column4 \
    FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL";

/// What transitions name, by digest: texts that are neighbours in the table are written one after the other.
#[derive(Default)]
pub(crate) struct NamedTexts<'a> {
    by_digest: BTreeMap<Vec<u8>, Named<'a>>,
}

#[derive(Default)]
struct Named<'a> {
    /// How often.
    times: i64,
    /// The text, unless it is known to be kept.
    text: Option<&'a Text>,
}

impl<'a> NamedTexts<'a> {
    /// A transition names a text.
    pub(crate) fn name(&mut self, text: &'a Text) {
        let named = self.by_digest.entry(text.digest.to_vec()).or_default();
        named.times += 1;
        named.text = Some(text);
    }

    /// A transition names a text that an earlier one named.
    pub(crate) fn name_again(&mut self, digest: &[u8]) {
        self.by_digest.entry(digest.to_vec()).or_default().times += 1;
    }

    /// Counts how often each is named, and keeps those that are not kept yet.
    pub(crate) async fn keep(self, connection: &mut Connection) -> Result<(), StoreError> {
        let named: Vec<_> = self.by_digest.iter().collect();
        let counts: Vec<_> =
            named.iter().map(|(digest, named)| [Arg::Bytes(digest), Arg::Int(named.times)]).collect();
        let rows = with_rows(connection, NAMED, &counts).await?;
        let known = rows.iter().map(|row| row.bytes(0)).collect::<Result<HashSet<_>, _>>()?;

        let mut packed = Vec::new();
        for (digest, named) in named {
            if let Some(text) = named.text.filter(|_| !known.contains(digest)) {
                let zipped = pack(text.as_str().as_bytes()).map_err(StoreError::Unreadable)?;
                packed.push((digest, named.times, text.as_str().len(), zipped));
            }
        }
        let rows: Vec<_> = packed
            .iter()
            .map(|(digest, times, size, zipped)| {
                let size = i64::try_from(*size).unwrap_or(i64::MAX);
                [Arg::Bytes(digest), Arg::Int(*times), Arg::Int(size), Arg::Bytes(zipped)]
            })
            .collect();
        with_rows(connection, NEW, &rows).await.map(drop)
    }
}

/// Compressed: what that needs is made once a thread, which costs as much as a text of some kilobytes.
fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    thread_local! {
        static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    PACKER.with_borrow_mut(|packer| match packer {
        Some(packer) => packer.compress(text),
        None => packer.insert(Compressor::new(ZSTD_LEVEL)?).compress(text),
    })
}
