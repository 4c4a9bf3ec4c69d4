//! Keeps reports, within the transaction of their group: what is known of whatever they are about is read at once, what each
//! changes of it is decided in memory, one after the other, and what came of all is written at once.
//!
//! takes: deliveries - gives: what became of each - fails: with the database, and then nothing of the group is kept

mod application_state;
mod drifts;
mod entity_state;
mod group_state;
mod keys;
mod load;
mod newest;
mod numbers;
mod said;
#[cfg(test)]
mod samples;
mod transition;
mod write;

#[cfg(test)]
pub(crate) use self::samples::{delivery, report};

use self::keys::NewKeys;
use crate::connection::Connection;
use crate::error::StoreError;
use crate::report::{Delivery, Millis, Outcome};

/// Keeps reports in their order.
pub(crate) async fn keep(
    connection: &mut Connection,
    deliveries: &[&Delivery],
    now: Millis,
) -> Result<Vec<Outcome>, StoreError> {
    let mut keys = NewKeys::take(connection, deliveries, now).await?;
    let mut known = load::known(connection, deliveries, &keys).await?;
    let outcomes = deliveries.iter().map(|delivery| known.take(delivery, &mut keys)).collect();
    write::all(connection, known, now).await?;
    keys.give_back(connection).await?;
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::{keys, load, numbers, write};
    use crate::plan::Plans;
    use crate::{change, fleet, rows, texts};

    /// Each with how many values its rows have.
    const STATEMENTS: [(&str, usize); 22] = [
        (keys::TAKE, 3),
        (numbers::LAST_IN_SQLITE, 0),
        (load::APPLICATIONS, 4),
        (load::ENTITIES, 6),
        (load::NAMESAKES, 6),
        (load::SAID, 1),
        (write::NEW_APPLICATIONS, 5),
        (write::EPOCHS, 2),
        (write::FORGET, 1),
        (write::NEW_ENTITIES, 19),
        (write::ENTITIES, 13),
        (write::NEW_TRANSITIONS, 22),
        (write::AGAIN, 3),
        (write::DEPLOYMENTS, 11),
        (write::IMAGES, 3),
        (write::NEW_DRIFTS, 4),
        (write::DRIFTS, 3),
        (fleet::LISTED, 28),
        (fleet::HELD, 5),
        (change::KEEP_ALL, 6),
        (texts::NAMED, 2),
        (texts::NEW, 4),
    ];

    #[tokio::test]
    async fn no_statement_of_a_group_looks_through_a_whole_table() {
        let plans = Plans::open().await;
        let mut odd = Vec::new();
        for (sql, columns) in STATEMENTS {
            for count in [1, 64] {
                let lines = plans.of(&rows::text(sql, count, columns)).await;
                // Of the rows that are given, and of the sequences of four tables, all are looked at.
                let all =
                    ["SCAN named", "SCAN CONSTANT ROW", "SCAN 64-ROW VALUES CLAUSE", "SCAN sqlite_sequence"];
                let through = lines.iter().filter(|line| line.starts_with("SCAN "));
                if through.clone().any(|line| !all.contains(&&**line)) {
                    odd.push(format!("{sql}: {lines:?}"));
                }
            }
        }
        plans.close().await;
        assert!(odd.is_empty(), "{odd:#?}");
    }
}
