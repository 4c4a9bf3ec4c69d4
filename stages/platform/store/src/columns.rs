//! Rows as the values that they stand for: a statement names its columns in the order of a value's fields.

use pipeline_core::SecretString;
use sqlx::SqlSafeStr;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;

/// The columns of a row, from one on.
pub(crate) struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

/// What stands in one column, or in several beside each other.
pub(crate) trait Column: Sized {
    /// Takes as many columns as it stands in.
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError>;
}

impl Columns<'_> {
    /// What stands in those that come next.
    pub(crate) fn value<T: Column>(&mut self) -> Result<T, StoreError> {
        T::read(self)
    }
}

impl Row {
    /// What stands in its columns, from the first on.
    pub(crate) fn read<T: Column>(&self) -> Result<T, StoreError> {
        self.read_from(0)
    }

    /// The same from another one on.
    pub(crate) fn read_from<T: Column>(&self, first: usize) -> Result<T, StoreError> {
        T::read(&mut Columns { row: self, next: first })
    }
}

impl Connection {
    /// What stands in the rows of an answer.
    pub(crate) async fn all<T: Column>(
        &mut self,
        sql: impl SqlSafeStr,
        arguments: &[Arg<'_>],
    ) -> Result<Vec<T>, StoreError> {
        self.rows(sql, arguments).await?.iter().map(Row::read).collect()
    }

    /// What stands in the first row, if there is one.
    pub(crate) async fn one<T: Column>(
        &mut self,
        sql: &'static str,
        arguments: &[Arg<'_>],
    ) -> Result<Option<T>, StoreError> {
        self.row(sql, arguments).await?.as_ref().map(Row::read).transpose()
    }
}

macro_rules! one_column {
    ($($kind:ty: $read:ident),*) => {$(
        impl Column for $kind {
            fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
                columns.next += 1;
                columns.row.$read(columns.next - 1)
            }
        }
    )*};
}

one_column! {
    i64: int, Option<i64>: int_or_null, String: text, Option<String>: text_or_null, Vec<u8>: bytes,
    Option<Vec<u8>>: bytes_or_null
}

impl Column for bool {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(columns.value::<i64>()? != 0)
    }
}

/// How many there are of something.
impl Column for u64 {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok(Self::try_from(columns.value::<i64>()?).unwrap_or_default())
    }
}

impl Column for SecretString {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        columns.value::<String>().map(Self::from)
    }
}

impl<A: Column, B: Column> Column for (A, B) {
    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        Ok((columns.value()?, columns.value()?))
    }
}

/// Reads these fields of a value, in the order of the columns; others of it are made.
macro_rules! from_columns {
    ($name:ident { $($field:ident),* $(; $other:ident: $made:expr)? }) => {
        impl $crate::columns::Column for $name {
            fn read(
                columns: &mut $crate::columns::Columns<'_>,
            ) -> Result<Self, $crate::error::StoreError> {
                Ok(Self { $($field: columns.value()?,)* $($other: $made,)? })
            }
        }
    };
}
pub(crate) use from_columns;
