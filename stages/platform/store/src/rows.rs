//! One statement for many rows: what a group of reports needs is asked of the database in a few turns instead of one for each
//! report.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;

/// Rows, and values, of one statement at most.
const ROWS: usize = 256;
const VALUES: usize = 2_048;

/// Runs a statement in whose text `ROWS` stands for rows of values, and gives the rows of all answers. Statements differ in how
/// many rows they have, and the database reads each once: so that there are few of them, a number of rows that is no power of two
/// is filled up with rows whose values are all null, and a statement takes those for nothing.
pub(crate) async fn with_rows<const N: usize>(
    connection: &mut Connection,
    sql: &'static str,
    rows: &[[Arg<'_>; N]],
) -> Result<Vec<Row>, StoreError> {
    let mut answers = Vec::new();
    for piece in rows.chunks(most(N)) {
        let Some(first) = piece.first() else { break };
        let count = piece.len().next_power_of_two();
        let nothing = first.map(Arg::null);
        let filled = piece.iter().chain(std::iter::repeat_n(&nothing, count - piece.len()));
        let arguments: Vec<Arg<'_>> = filled.flatten().copied().collect();
        answers.extend(connection.rows_of(text(sql, count, N), &arguments).await?);
    }
    Ok(answers)
}

/// Texts that were made, by the statement and how many rows they have.
type Made = HashMap<(&'static str, usize), Arc<str>>;

/// How many rows of so many values each are in one statement: a power of two.
const fn most(columns: usize) -> usize {
    let mut rows = ROWS;
    while rows > 1 && rows * columns > VALUES {
        rows /= 2;
    }
    rows
}

/// The text of a statement with so many rows: made once, for a number of statements that is that of this crate's.
pub(crate) fn text(sql: &'static str, rows: usize, columns: usize) -> Arc<str> {
    static TEXTS: Mutex<Option<Made>> = Mutex::new(None);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || sql.replace("ROWS", &placeholders(rows, columns)).into();
    texts.get_or_insert_default().entry((sql, rows)).or_insert_with(made).clone()
}

/// `($1, $2), ($3, $4)` for two rows of two.
fn placeholders(rows: usize, columns: usize) -> String {
    let mut text = String::new();
    for number in 1..=rows * columns {
        let before = match (number - 1) % columns {
            0 if number == 1 => "(",
            0 => ", (",
            _ => ", ",
        };
        // Writing to a text cannot fail.
        let _ = write!(text, "{before}${number}");
        if number % columns == 0 {
            text.push(')');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_through_all_rows() {
        assert_eq!(placeholders(2, 2), "($1, $2), ($3, $4)");
        assert_eq!(placeholders(3, 1), "($1), ($2), ($3)");
        assert_eq!([1, 8, 9, 28, 4_000].map(most), [256, 256, 128, 64, 1]);
        assert_eq!(
            &*text("SELECT column1 FROM (VALUES ROWS) AS named", 2, 1),
            "SELECT column1 FROM (VALUES ($1), ($2)) AS named"
        );
    }
}
