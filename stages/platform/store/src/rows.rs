//! One statement for many rows: what a group of reports needs is asked of the database in a few turns instead of one for each
//! report.

use std::fmt::Write as _;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;

/// Rows of one statement. The database knows each of these statements by its text and reads it once.
const PIECES: [usize; 3] = [64, 8, 1];

/// Runs a statement in whose text `ROWS` stands for rows of values, and gives the rows of all answers.
pub(crate) async fn with_rows<const N: usize>(
    connection: &mut Connection,
    sql: &'static str,
    mut rows: &[[Arg<'_>; N]],
) -> Result<Vec<Row>, StoreError> {
    let mut answers = Vec::new();
    while let Some(count) = PIECES.into_iter().find(|count| *count <= rows.len()) {
        let (piece, rest) = rows.split_at(count);
        rows = rest;
        let text = sql.replace("ROWS", &placeholders(count, N));
        answers.extend(connection.rows_of(text, piece.as_flattened()).await?);
    }
    Ok(answers)
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
    #[test]
    fn values_are_numbered_through_all_rows() {
        assert_eq!(super::placeholders(2, 2), "($1, $2), ($3, $4)");
        assert_eq!(super::placeholders(3, 1), "($1), ($2), ($3)");
    }
}
