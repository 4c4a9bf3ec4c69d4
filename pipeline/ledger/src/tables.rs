//! What the file holds beside its head: tables of values by object, and one by kind.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline_core::{Key, Record};

use super::stored;

/// One of the tables, in the order in which they are written where one row is written after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Table {
    /// What must outlive the process.
    Journal,
    /// What was refused for good.
    Parked,
    /// Records.
    Records,
    /// How far what was shown of each kind is done with: after all that it stands for.
    Done,
}

/// Which row: where one value stands.
pub(super) type RowId = (Table, Key);

/// One value as it is stored, without its seal.
pub(super) type Bytes = Arc<[u8]>;

/// A row and what it is to hold; `None` is nothing.
pub(super) type Row = (RowId, Option<Bytes>);

/// Values by object.
pub(super) type Values = HashMap<Key, Bytes>;

/// All tables of one sink.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) records: Values,
    pub(super) journal: Values,
    pub(super) parked: Values,
    pub(super) done: Values,
}

impl Table {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Records, Self::Journal, Self::Parked, Self::Done];

    /// What names of it in a file and a bucket begin with.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Journal => "journal",
            Self::Parked => "parked",
            Self::Done => "done",
        }
    }

    /// Its name in the file.
    pub(super) fn in_file(self, sink: &str) -> String {
        format!("{}/{sink}", self.name())
    }
}

impl Tables {
    pub(super) fn of(&self, table: Table) -> &Values {
        match table {
            Table::Records => &self.records,
            Table::Journal => &self.journal,
            Table::Parked => &self.parked,
            Table::Done => &self.done,
        }
    }

    pub(super) fn of_mut(&mut self, table: Table) -> &mut Values {
        match table {
            Table::Records => &mut self.records,
            Table::Journal => &mut self.journal,
            Table::Parked => &mut self.parked,
            Table::Done => &mut self.done,
        }
    }

    /// Every row that holds something.
    pub(super) fn row_ids(&self) -> impl Iterator<Item = RowId> {
        Table::ALL.into_iter().flat_map(|table| self.of(table).keys().map(move |key| (table, key.clone())))
    }

    pub(super) fn record(&self, key: &Key) -> Option<Record> {
        self.records.get(key).and_then(|bytes| stored::record(bytes).ok())
    }
}

/// Bytes that one value takes in memory.
pub(super) fn weight(key: &Key, bytes: &[u8]) -> usize {
    size_of::<(Key, Bytes)>() + key.as_str().len() + bytes.len()
}

/// What of `key` moved.
pub(super) fn row_ids(key: &Key, record: bool, journal: bool) -> impl Iterator<Item = RowId> {
    let moved = [(record, Table::Records), (journal, Table::Journal)].into_iter().filter(|(moved, _)| *moved);
    moved.map(|(_, table)| (table, key.clone()))
}
