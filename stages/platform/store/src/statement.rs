//! What people change: statements that the writer runs together, all of them or none.

use crate::connection::{Arg, Connection};
use crate::error::StoreError;

/// A value that a statement takes with it.
pub(crate) enum Value {
    Int(i64),
    IntOrNull(Option<i64>),
    Text(String),
    TextOrNull(Option<String>),
    Bytes(Vec<u8>),
}

/// One statement.
pub(crate) struct Statement {
    sql: &'static str,
    values: Vec<Value>,
    must: bool,
}

impl Value {
    pub(crate) fn arg(&self) -> Arg<'_> {
        match self {
            Self::Int(value) => Arg::Int(*value),
            Self::IntOrNull(value) => Arg::IntOrNull(*value),
            Self::Text(value) => Arg::Text(value),
            Self::TextOrNull(value) => Arg::TextOrNull(value.as_deref()),
            Self::Bytes(value) => Arg::Bytes(value),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::IntOrNull(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Self::TextOrNull(value.map(str::to_owned))
    }
}

impl From<[u8; 32]> for Value {
    fn from(value: [u8; 32]) -> Self {
        Self::Bytes(value.into())
    }
}

impl Statement {
    /// It may find nothing to change.
    pub(crate) fn may<const N: usize>(sql: &'static str, values: [Value; N]) -> Self {
        Self { sql, values: values.into(), must: false }
    }

    /// Where it finds nothing to change, nothing at all is changed.
    pub(crate) fn must<const N: usize>(sql: &'static str, values: [Value; N]) -> Self {
        Self { sql, values: values.into(), must: true }
    }
}

/// Runs them within a transaction that is ended by whoever asks.
pub(crate) async fn run(connection: &mut Connection, statements: &[Statement]) -> Result<(), StoreError> {
    for statement in statements {
        let values: Vec<Arg<'_>> = statement.values.iter().map(Value::arg).collect();
        let touched = connection.execute(statement.sql, &values).await?;
        if statement.must && touched == 0 {
            return Err(StoreError::Gone);
        }
    }
    Ok(())
}
