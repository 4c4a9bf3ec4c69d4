//! All rows that a store keeps of what was reported, as texts: without the times at which it was received, and with places in the
//! sequence of transitions instead of numbers, of which a commit that failed leaves some out.

use sqlx::Connection as _;
use sqlx::{PgConnection, SqliteConnection};
use stages_platform_store::Place;

/// Entities that say otherwise than the transition that they are in: there is none.
pub(crate) const STALE: &str =
    "entities e JOIN transitions t ON t.id = e.current WHERE e.since <> t.at OR e.gone <> t.deleted";

/// Where rows are, and what of them: columns, and after a `#` such as hold bytes.
const ROWS: [(&str, &str); 10] = [
    ("runtimes r", "r.name r.reported_at"),
    ("reports k", "k.runtime_id #k.key"),
    (
        "applications a",
        "a.runtime_id a.namespace a.name a.epoch a.held_uid #a.listed a.project a.environment a.cluster a.destination \
         a.repository a.path a.images a.version a.revision a.author a.message a.search a.health a.health_since \
         a.health_message a.sync a.sync_since a.phase a.phase_at a.phase_message a.deployed_at a.reported_at a.deleted \
         a.product a.labels",
    ),
    (
        "entities e JOIN applications a ON a.id = e.application_id",
        "a.runtime_id a.namespace a.name e.api_version e.kind e.namespace e.name #e.listing #e.content #e.held_key e.uid \
         e.version e.object_created_at e.at e.since e.gone place(e.current) place(e.latest)",
    ),
    (STALE, "e.id e.since t.at e.gone t.deleted"),
    (
        "transitions t JOIN entities e ON e.id = t.entity_id JOIN applications a ON a.id = e.application_id",
        "place(t.id) a.runtime_id a.namespace a.name e.api_version e.kind e.namespace e.name t.at t.last_at t.reports t.uid \
         t.version t.deleted t.sync t.health t.health_message t.revision t.object_is_json #t.object #t.actual #t.desired \
         #t.git #t.details t.pods_ready t.pods_wanted t.pods_revision",
    ),
    ("blobs b", "#b.digest b.refs b.size"),
    (
        "deployments d JOIN applications a ON a.id = d.application_id",
        "a.runtime_id a.namespace a.name d.started_at d.finished_at d.phase d.revision d.initiated_by d.commit_author \
         d.commit_message d.commit_date d.images d.message",
    ),
    (
        "drifts d JOIN entities e ON e.id = d.entity_id JOIN applications a ON a.id = e.application_id",
        "a.runtime_id a.namespace a.name e.api_version e.kind e.namespace e.name d.onset d.ended d.repeats",
    ),
    ("changes c", "c.runtime_id c.namespace c.name c.started_at c.known c.sources c.diffs"),
];

fn statement(from: &str, columns: &str, hex: &str) -> String {
    let columns = columns.split_whitespace().map(|column| {
        let text = match (column.strip_prefix('#'), column.strip_prefix("place(")) {
            (Some(bytes), _) => hex.replace("BYTES", bytes),
            (_, Some(number)) => {
                let number = number.trim_end_matches(')');
                format!("CAST((SELECT count(*) FROM transitions p WHERE p.id <= {number}) AS TEXT)")
            }
            _ => format!("CAST({column} AS TEXT)"),
        };
        format!("COALESCE({text}, '-')")
    });
    format!("SELECT {} FROM {from}", columns.collect::<Vec<_>>().join(" || ' | ' || "))
}

/// Each with the table that it is of, in an order that does not depend on when it was written.
pub(crate) async fn all(place: &Place) -> Vec<String> {
    let mut rows = Vec::new();
    let mut of = |from: &str, found: Vec<String>| {
        rows.extend(found.into_iter().map(|row| format!("{from}: {row}")));
    };
    match place {
        Place::Sqlite(path) => {
            let url = format!("sqlite://{}", path.display());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            for (from, columns) in ROWS {
                let sql = sqlx::AssertSqlSafe(statement(from, columns, "lower(hex(BYTES))"));
                of(from, sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap());
            }
        }
        Place::PostgresFile(_) => unreachable!("no test of these has one"),
        Place::Postgres(url) => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            for (from, columns) in ROWS {
                let sql = sqlx::AssertSqlSafe(statement(from, columns, "encode(BYTES, 'hex')"));
                of(from, sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap());
            }
        }
    }
    rows.sort();
    rows
}
