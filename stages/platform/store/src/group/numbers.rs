//! The numbers of a group's new rows: taken before these are written, so that rows that name each other are written in one
//! statement for each table.

use crate::connection::{Arg, Connection};
use crate::error::StoreError;

/// The number behind which the next one is. Nobody else writes meanwhile.
pub(super) const LAST_IN_SQLITE: &str = "SELECT COALESCE((SELECT max(id) FROM applications), 0), \
    COALESCE((SELECT max(id) FROM entities), 0), \
    COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'transitions'), 0)";
const NEXT_IN_POSTGRES: &str = "SELECT 0::bigint, nextval('applications_id_seq') FROM generate_series(1::bigint, $1) \
    UNION ALL SELECT 1::bigint, nextval('entities_id_seq') FROM generate_series(1::bigint, $2) \
    UNION ALL SELECT 2::bigint, nextval('transitions_id_seq') FROM generate_series(1::bigint, $3)";

/// Numbers of new rows, ascending.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) applications: Vec<i64>,
    pub(super) entities: Vec<i64>,
    pub(super) transitions: Vec<i64>,
}

/// How many new rows there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) applications: i64,
    pub(super) entities: i64,
    pub(super) transitions: i64,
}

impl Numbers {
    pub(super) async fn take(connection: &mut Connection, wanted: Wanted) -> Result<Self, StoreError> {
        let mut numbers = Self::default();
        if wanted == Wanted::default() {
            return Ok(numbers);
        }
        let Wanted { applications, entities, transitions } = wanted;
        let Self { applications: first, entities: second, transitions: third } = &mut numbers;
        if connection.is_sqlite() {
            let last = connection.row(LAST_IN_SQLITE, &[]).await?.ok_or_else(StoreError::missing)?;
            for (column, (of, count)) in
                [(first, applications), (second, entities), (third, transitions)].into_iter().enumerate()
            {
                let last = last.int(column)?;
                of.extend((1..=count).map(|number| last + number));
            }
            return Ok(numbers);
        }
        let counts = [Arg::Int(applications), Arg::Int(entities), Arg::Int(transitions)];
        for row in connection.rows(NEXT_IN_POSTGRES, &counts).await? {
            let of = match row.int(0)? {
                0 => &mut *first,
                1 => &mut *second,
                _ => &mut *third,
            };
            of.push(row.int(1)?);
        }
        Ok(numbers)
    }
}
