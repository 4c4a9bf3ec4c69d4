//! What follows of a new state for the tables of history: deployments, and drift from its onset to its end.

use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::Report;

/// An operation is one deployment, told by when it began: each report of it says how far it is.
pub(crate) async fn deployment(
    connection: &mut Connection,
    application: i64,
    report: &Report,
) -> Result<(), StoreError> {
    let Some(operation) = &report.operation else { return Ok(()) };
    let sql = "INSERT INTO deployments (application_id, started_at, finished_at, phase, revision, initiated_by, \
               commit_author, commit_message, commit_date, images, message) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
               ON CONFLICT (application_id, started_at) DO UPDATE SET finished_at = $3, phase = $4, revision = $5, \
               initiated_by = $6, commit_author = $7, commit_message = $8, commit_date = $9, images = $10, message = $11 \
               WHERE deployments.finished_at IS NULL";
    let arguments = [
        Arg::Int(application),
        Arg::Int(operation.started_at),
        Arg::IntOrNull(operation.finished_at),
        Arg::Text(&operation.phase),
        Arg::Text(&operation.revision),
        Arg::Text(&operation.initiated_by),
        Arg::Text(&report.commit.author),
        Arg::Text(&report.commit.message),
        Arg::Text(&report.commit.date),
        Arg::Text(&report.images),
        Arg::Text(&operation.message),
    ];
    connection.execute(sql, &arguments).await.map(drop)
}

/// A state that is out of sync begins a drift of its entity, or goes on with the one that goes on; one in sync ends it.
pub(crate) async fn drift(
    connection: &mut Connection,
    (entity, going_on): (i64, Option<i64>),
    report: &Report,
) -> Result<(), StoreError> {
    let at = Arg::Int(report.at);
    let (sql, arguments) = match going_on {
        Some(drift) if is_out_of_sync(report) => {
            ("UPDATE drifts SET repeats = repeats + 1 WHERE id = $1", vec![Arg::Int(drift)])
        }
        Some(drift) if report.deleted || report.sync.as_deref() == Some("Synced") => {
            ("UPDATE drifts SET ended = $2 WHERE id = $1", vec![Arg::Int(drift), at])
        }
        None if is_out_of_sync(report) => {
            ("INSERT INTO drifts (entity_id, onset) VALUES ($1, $2)", vec![Arg::Int(entity), at])
        }
        _ => return Ok(()),
    };
    connection.execute(sql, &arguments).await.map(drop)
}

fn is_out_of_sync(report: &Report) -> bool {
    report.sync.as_deref() == Some("OutOfSync") && !report.deleted
}
