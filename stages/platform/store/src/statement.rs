//! Statements with the values that they take: what people change, which the writer runs together, all of it or none; and queries that
//! are put together of constants and numbered parameters.

use crate::connection::{Arg, Connection, Row};
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
    fn arg(&self) -> Arg<'_> {
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

/// A value behind those that there are, as it stands in the text of a statement: by its number.
pub(crate) fn parameter(values: &mut Vec<Value>, value: impl Into<Value>) -> String {
    values.push(value.into());
    format!("${}", values.len())
}

/// The rows of a statement that was put together here, with its values.
pub(crate) async fn rows(
    connection: &mut Connection,
    sql: String,
    values: &[Value],
) -> Result<Vec<Row>, StoreError> {
    let values: Vec<Arg<'_>> = values.iter().map(Value::arg).collect();
    connection.rows_of(sql, &values).await
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
