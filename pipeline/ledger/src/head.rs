//! The head of the ledger's file: format, id, and the number of the last commit of a sink's tables.

use std::path::Path;

use redb::{Database, ReadableDatabase as _};

use super::aside::Unusable;
use super::file::{FORMAT, LEDGER, begin};
use super::state::new_id;

/// What the table `ledger` says to one sink.
pub(super) struct Head {
    pub(super) format: u64,
    pub(super) id: String,
    /// The number of the last commit.
    pub(super) covered: u64,
    /// The file was empty.
    pub(super) new: bool,
}

impl Head {
    /// Refuses a file that does not know a commit which is known to have been made.
    pub(super) fn not_before(&self, commit: u64, path: &Path) -> Result<(), Unusable> {
        let found = self.covered;
        if found >= commit {
            return Ok(());
        }
        tracing::warn!(file = %path.display(), found, commit, "the ledger file has gone back to an earlier commit");
        Err(Unusable::Corrupt)
    }
}

/// Reads format and id; a file that has neither is new and gets them, in one commit, unless its id is known: then they
/// come with all that was acknowledged under it.
pub(super) fn head(database: &Database, sink: &str, id: Option<&str>) -> Result<Head, redb::Error> {
    let number = |text: &str| text.parse().map_err(|_| redb::Error::Corrupted("a number".to_owned()));
    match read_head(database, sink)? {
        [Some(format), Some(id), covered] => {
            let covered = covered.map_or(Ok(0), |covered| number(&covered))?;
            Ok(Head { format: number(&format)?, id, covered, new: false })
        }
        [None, None, _] => {
            let id = match id {
                Some(known) => known.to_owned(),
                None => {
                    let id = new_id();
                    let transaction = begin(database)?;
                    {
                        let mut table = transaction.open_table(LEDGER)?;
                        table.insert("format", FORMAT.to_string().as_str())?;
                        table.insert("id", id.as_str())?;
                    }
                    transaction.commit()?;
                    id
                }
            };
            Ok(Head { format: FORMAT, id, covered: 0, new: true })
        }
        _ => Err(redb::Error::Corrupted("half a head".to_owned())),
    }
}

/// Format, id, and the number of the last commit.
fn read_head(database: &Database, sink: &str) -> Result<[Option<String>; 3], redb::Error> {
    let table = match database.begin_read()?.open_table(LEDGER) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok([None, None, None]),
        Err(error) => return Err(error.into()),
    };
    let read = |name: &str| Ok::<_, redb::Error>(table.get(name)?.map(|value| value.value().to_owned()));
    let id = match read(&id_of(sink))? {
        Some(own) => Some(own),
        None => read("id")?,
    };
    Ok([read("format")?, id, read(&covered_of(sink))?])
}

pub(super) fn id_of(sink: &str) -> String {
    format!("id/{sink}")
}

pub(super) fn covered_of(sink: &str) -> String {
    format!("covered/{sink}")
}
