//! A store on Postgres as the version before left it: what its tables lacked is filled in when it is opened. SQLite's are opened from
//! files of those versions.

use sqlx::{Connection as _, PgConnection};
use stages_platform_store::{Account, Place, StoreConfig, View};

use crate::accounts::{NOW, ada, by, each_has_a_uid, with_ada};
use crate::support::{KEEP_ALL, open, report, resource};

/// Makes the tables what they were before the migration that keeps since when an entity is in its state.
const BACK_TO_16: &str = "ALTER TABLE entities DROP COLUMN since, DROP COLUMN gone, DROP COLUMN owner, DROP COLUMN era; \
    DROP TABLE refusals; DROP TABLE roles; DROP TABLE clusters; DROP TABLE sealing_keys; ALTER TABLE runtimes DROP COLUMN public_id, DROP COLUMN reporter_at; \
    ALTER TABLE transitions DROP COLUMN pods_ready, DROP COLUMN pods_wanted, DROP COLUMN pods_revision; \
    CREATE INDEX transitions_entity ON transitions (entity_id, id); DROP INDEX deployments_revision; DROP INDEX deployments_succeeded; \
    DROP INDEX entities_workflows; ALTER TABLE users DROP COLUMN uid; ALTER TABLE members DROP COLUMN given_by; \
    ALTER TABLE keys DROP COLUMN made_with; ALTER TABLE identities DROP COLUMN signed_in_at; DROP INDEX applications_key; DELETE FROM _sqlx_migrations WHERE version >= 17";

pub(crate) async fn since_when_a_resource_is_so_is_taken_over_on_postgres(url: &str) {
    let place = Place::Postgres(url.to_owned());
    let opened = with_ada(open(&place).await).await;
    assert!(opened.store.add_person(&by(), &Account { name: "lin".to_owned(), ..ada() }, NOW).await.unwrap());
    opened.keep(report("u", 1, 1)).await;
    opened.keep(resource("web", 2, 7)).await;
    let mut gone = resource("old", 3, 9);
    gone.entity.resource.as_mut().unwrap().name = "old".to_owned();
    gone.deleted = true;
    opened.keep(gone).await;
    opened.close().await;
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(BACK_TO_16).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    // A platform changes them, and whoever makes a token does not.
    let config = StoreConfig { place: place.clone(), retention: KEEP_ALL };
    let (store, writing) = config.build(&prometheus::Registry::new()).await.unwrap();
    drop(store);
    writing.finished().await;
    let opened = open(&place).await;
    let found = opened.store.find_resources(&View::ALL, "", 10).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (&*one.name.name, one.at, one.gone)).collect();
    assert_eq!(found, [("web", 7, false), ("old", 9, true)]);
    each_has_a_uid(&opened.store, ["ada", "lin"]).await;
    // A platform of the version before goes on beside this one, and gives none.
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = "INSERT INTO users (name, password, role, created_at) VALUES ('eve', '', 'member', 0), ('tom', '', 'member', 0)";
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    each_has_a_uid(&opened.store, ["eve", "tom"]).await;
    opened.close().await;
}
