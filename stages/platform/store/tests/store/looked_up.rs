//! How much of its tables Postgres reads: told by what it counts itself, since a plan that is asked for is not the one that is used.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use sqlx::{Connection as _, PgConnection};
use stages_platform_store::{Delivery, Place, View, Which};

use crate::alike::Dice;
use crate::support::{digest, open, report, resource};

/// What was read of a table.
#[derive(Debug, Clone, Copy)]
struct Read {
    /// How often all of it,
    through: i64,
    /// how often by an index,
    looked_up: i64,
    /// and rows that were found so.
    rows: i64,
}

/// A database, whose counts begin anew.
struct Counts(PgConnection);

impl Counts {
    async fn begin(url: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::query("SELECT pg_stat_reset()").execute(&mut connection).await.unwrap();
        Self(connection)
    }

    /// Once all that is named was looked up in: what a connection counted is told when it ends, or a moment later.
    async fn of<const N: usize>(&mut self, names: [&str; N]) -> BTreeMap<String, Read> {
        let sql = "SELECT relname::text, seq_scan, COALESCE(idx_scan, 0), COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables";
        let told = async {
            loop {
                let rows: Vec<(String, i64, i64, i64)> =
                    sqlx::query_as(sql).fetch_all(&mut self.0).await.unwrap();
                let read = rows
                    .into_iter()
                    .map(|(name, through, looked_up, rows)| (name, Read { through, looked_up, rows }));
                let read: BTreeMap<_, _> = read.filter(|(name, _)| names.contains(&&**name)).collect();
                if read.len() == N && read.values().all(|read| read.looked_up > 0) {
                    return read;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), told).await.expect("each table is looked up in")
    }
}

/// The server plans statements when the tables are empty.
pub(crate) async fn no_table_is_read_through_when_it_has_grown(url: &str) {
    let place = Place::Postgres(url.to_owned());
    open(&place).await.close().await;
    let mut counts = Counts::begin(url).await;
    let opened = open(&place).await;
    let mut dice = Dice::of(Rng::with_seed(7), [opened.runtime.id; 2]);
    for _ in 0..20 {
        let deliveries = (0..30).map(|_| dice.delivery()).collect();
        opened.store.keep(deliveries).await.unwrap();
    }
    opened.close().await;
    let names =
        ["reports", "applications", "entities", "transitions", "blobs", "deployments", "drifts", "changes"];
    let read = counts.of(names).await;
    assert!(read.values().all(|read| read.through == 0), "{read:?}");
}

/// Applications have no kind, no namespace and no name among entities, and each resource may have a namespace of its own: a server that
/// takes these for independent of each other believes that a name finds one row.
pub(crate) async fn an_entity_is_found_without_reading_those_that_are_called_alike(url: &str) {
    const ALIKE: i64 = 200;
    let place = Place::Postgres(url.to_owned());
    open(&place).await.close().await;
    // What is kept before the server has looked at its tables, and after.
    for version in 1..=3 {
        let mut counts = Counts::begin(url).await;
        let opened = open(&place).await;
        let states = (0..ALIKE).flat_map(|number| {
            let uid = format!("u{number}");
            [report(&uid, version, version), resource(&uid, version, version)].map(|mut report| {
                report.entity.app_name = format!("shop-{number:03}");
                if let Some(resource) = &mut report.entity.resource {
                    resource.namespace = format!("shop-{number:03}");
                }
                let key = digest(&format!("{number} {version} {}", report.entity.resource.is_some()));
                Delivery { runtime: opened.runtime.id, key, keyed: true, epoch: None, era: 0, report }
            })
        });
        for some in states.collect::<Vec<_>>().chunks(20) {
            opened.store.keep(some.to_vec()).await.unwrap();
        }
        opened.close().await;
        // All that was counted is told by then.
        counts.of(["entities"]).await;
        let sql = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'entities_object'";
        let by_names: i64 = sqlx::query_scalar(sql).fetch_one(&mut counts.0).await.unwrap();
        assert_eq!(by_names, 0, "reports that say whose they are were looked for by their names, {version}");
        sqlx::query("ANALYZE").execute(&mut counts.0).await.unwrap();
    }
}

/// Of each of these runtimes there are so many, and a page has so many.
const RUNTIMES: [&str; 3] = ["east", "north", "west"];
const APPLICATIONS: i64 = 400;
const PAGE: u32 = 20;

pub(crate) async fn a_page_of_a_list_reads_no_more_than_it_may_show(url: &str) {
    let place = Place::Postgres(url.to_owned());
    let opened = open(&place).await;
    for name in RUNTIMES {
        let token = stages_platform_store::create_token(&place, name).await.unwrap();
        let runtime = opened.store.runtime(&token).await.unwrap().unwrap().id;
        let delivery = |number| {
            let mut report = report("u", number, number);
            report.entity.app_name = format!("shop-{number:03}");
            Delivery { runtime, key: digest(&number.to_string()), keyed: true, epoch: None, era: 0, report }
        };
        opened.store.keep((1..=APPLICATIONS).map(delivery).collect()).await.unwrap();
    }
    opened.close().await;
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query("ANALYZE").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    for (after, which, first) in [
        (("", "", ""), Which::default(), ("east", "shop-001")),
        (("north", "argocd", "shop-200"), Which::default(), ("north", "shop-201")),
        (("north", "argocd", "shop-395"), Which::default(), ("north", "shop-396")),
        (("", "", ""), Which { runtime: Some("west".to_owned()), ..Which::default() }, ("west", "shop-001")),
    ] {
        let mut counts = Counts::begin(url).await;
        let opened = open(&place).await;
        let page = opened.store.visible(&View::ALL, &which, after, PAGE).await.unwrap();
        let ends = opened.store.ends(&View::ALL, &which, after, (PAGE / 2, 2)).await.unwrap();
        opened.close().await;
        let names: Vec<_> = page.iter().map(|one| (&*one.runtime, &*one.state.name)).collect();
        assert_eq!((names.len(), names.first()), (PAGE as usize, Some(&first)));
        assert!(names.is_sorted(), "{names:?}");
        let ends: Vec<_> = ends.iter().map(|one| (&*one.runtime, &*one.name)).collect();
        assert_eq!(ends, [names[9], names[19]]);
        let read = counts.of(["applications", "entities", "transitions"]).await;
        // Of each runtime no more than a page, and the ends of one as long, whichever way the server puts them in order.
        let most = 2 * RUNTIMES.len() as i64 * i64::from(PAGE);
        assert!(read.values().all(|read| read.through == 0 && read.rows <= most), "{after:?}: {read:?}");
    }
}
