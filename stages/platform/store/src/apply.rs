//! Keeps reports, within the transaction of their group: of each its key, the entity that it is about, the transition, the
//! state.
//!
//! takes: deliveries - gives: what became of each - fails: with the database, and then nothing of the group is kept

use std::collections::HashSet;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::fleet::Holding;
use crate::report::{Delivery, Millis, Outcome, Report, ResourceName};
use crate::rows::with_rows;
use crate::texts::NamedTexts;
use crate::{change, fleet, history};

/// An older version that says it was reported this much later than a newer one is of a cluster that was restored, whose
/// versions went back; two watches of one object are never so far apart. A report that does not say when may have waited
/// for as long.
const VERSIONS_WENT_BACK: Millis = 10 * 60 * 1000;

/// Of an entity's state: what decides whether another report is newer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Held {
    uid: String,
    version: Option<i64>,
    created_at: Option<Millis>,
    at: Millis,
}

impl Held {
    /// Whether a report is not older than the state, by incarnation and version, and by the time of the report where these do
    /// not tell: what was never live has neither.
    fn gives_way_to(&self, report: &Report) -> bool {
        let later = report.at >= self.at;
        if self.uid.is_empty() || report.uid.is_empty() {
            return later;
        }
        if self.uid != report.uid {
            return match (self.created_at, report.created_at) {
                (Some(held), Some(new)) if held != new => new > held,
                _ => later,
            };
        }
        match (self.version, report.version) {
            (Some(held), Some(new)) if new == held => later,
            (Some(held), Some(new)) => {
                new > held || (report.timed && report.at.saturating_sub(self.at) > VERSIONS_WENT_BACK)
            }
            _ => later,
        }
    }
}

/// An entity as it is kept.
struct Entity {
    id: i64,
    current: Option<i64>,
    latest: Option<i64>,
    content: Vec<u8>,
    held: Held,
    /// Its drift that goes on.
    drift: Option<i64>,
}

/// What a transition says beside the object, for a report that knows the object alone.
struct Beside {
    sync: Option<String>,
    health: Option<String>,
    health_message: Option<String>,
    revision: Option<String>,
    deleted: bool,
    /// Digests of the texts, in the order of the columns.
    texts: [Option<Vec<u8>>; 5],
}

/// Keys that were not taken before, each with its runtime.
type NewKeys = HashSet<(i64, Vec<u8>)>;

/// Keeps reports in their order.
pub(crate) async fn all(
    connection: &mut Connection,
    deliveries: &[&Delivery],
    now: Millis,
) -> Result<Vec<Outcome>, StoreError> {
    let mut new_keys = take_keys(connection, deliveries, now).await?;
    let mut texts = NamedTexts::default();
    let mut outcomes = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        outcomes.push(apply(connection, delivery, now, &mut new_keys, &mut texts).await?);
    }
    texts.keep(connection).await?;
    // What was refused may come again.
    for (runtime, key) in new_keys {
        let sql = "DELETE FROM reports WHERE runtime_id = $1 AND key = $2";
        connection.execute(sql, &[Arg::Int(runtime), Arg::Bytes(&key)]).await?;
    }
    Ok(outcomes)
}

async fn take_keys(
    connection: &mut Connection,
    deliveries: &[&Delivery],
    now: Millis,
) -> Result<NewKeys, StoreError> {
    let rows: Vec<_> = deliveries
        .iter()
        .map(|delivery| [Arg::Int(delivery.runtime), Arg::Bytes(&delivery.key), Arg::Int(now)])
        .collect();
    let sql = "INSERT INTO reports (runtime_id, key, received_at) VALUES ROWS ON CONFLICT DO NOTHING \
               RETURNING runtime_id, key";
    let rows = with_rows(connection, sql, &rows).await?;
    rows.iter().map(|row| Ok((row.int(0)?, row.bytes(1)?))).collect()
}

async fn apply<'a>(
    connection: &mut Connection,
    delivery: &'a Delivery,
    now: Millis,
    new_keys: &mut NewKeys,
    texts: &mut NamedTexts<'a>,
) -> Result<Outcome, StoreError> {
    let (runtime, report) = (delivery.runtime, &delivery.report);
    let found = match shared_entity(connection, runtime, report).await? {
        Some(found) => found,
        None => find(connection, runtime, report).await?,
    };
    let application = found.application;
    if let Some(epoch) = delivery.epoch {
        let sql = "UPDATE applications SET epoch = $2 WHERE id = $1 AND epoch <= $2";
        if connection.execute(sql, &[Arg::Int(application), Arg::Int(epoch)]).await? == 0 {
            return Ok(Outcome::Outdated);
        }
    }
    if !new_keys.remove(&(runtime, delivery.key.to_vec())) {
        return Ok(Outcome::Repeated);
    }
    let entity = match found.entity {
        Some(entity) => entity,
        None => entity(connection, application, report.entity.resource.as_ref()).await?,
    };
    if report.entity.resource.is_none() {
        forget_held(connection, application, &found.held_uid, report).await?;
    }
    // Nothing is held of what has ended, and what has no key moves none. Nor does a report of another reporter than that of the
    // application, which is the one that compares.
    let has_ended = report.entity.resource.is_none() && report.deleted;
    let key = delivery.key.get(..16).filter(|_| delivery.keyed && !has_ended && report.has_source);

    let beside = match entity.current {
        Some(current) if !report.has_source => Some(beside(connection, current).await?),
        _ => None,
    };
    let content = match (&beside, &report.object) {
        // The object is all that it says: it tells nothing where that is known.
        (Some(beside), Some(object))
            if beside.texts[0].as_deref() == Some(&object.digest) && beside.deleted == report.deleted =>
        {
            entity.content.clone()
        }
        _ => report.content().to_vec(),
    };
    // Also of what came late: an operation that ended is a deployment, whatever was reported since.
    history::deployment(connection, application, report).await?;
    change::of_report(connection, runtime, report).await?;
    let is_newer = entity.current.is_none() || entity.held.gives_way_to(report);
    if report.entity.resource.is_none() {
        let holding = Holding::of(report);
        match is_newer {
            true => fleet::application(connection, application, report, &holding).await?,
            false => fleet::hold(connection, application, &holding).await?,
        }
    }
    let known = entity.latest.filter(|_| content == entity.content);
    let transition = match known {
        Some(latest) => {
            let sql = "UPDATE transitions SET reports = reports + 1, \
                       last_at = CASE WHEN last_at < $2 THEN $2 ELSE last_at END WHERE id = $1";
            connection.execute(sql, &[Arg::Int(latest), Arg::Int(report.at)]).await?;
            latest
        }
        None => transition(connection, entity.id, report, beside.as_ref(), now, texts).await?,
    };
    if is_newer && entity.current != Some(transition) {
        let sql = "UPDATE entities SET latest = $2, content = $3, current = $2, uid = $4, version = $5, \
                   object_created_at = $6, at = $7, held_key = COALESCE($8, held_key) WHERE id = $1";
        let arguments = [
            Arg::Int(entity.id),
            Arg::Int(transition),
            Arg::Bytes(&content),
            Arg::Text(&report.uid),
            Arg::IntOrNull(report.version),
            Arg::IntOrNull(report.created_at),
            Arg::Int(report.at),
            Arg::BytesOrNull(key),
        ];
        connection.execute(sql, &arguments).await?;
        history::drift(connection, (entity.id, entity.drift), report).await?;
        return Ok(Outcome::Kept);
    }
    // What came last moves the time of the state where it is the state.
    let sql = "UPDATE entities SET latest = $2, content = $3, held_key = COALESCE($5, held_key), \
               at = CASE WHEN at < $4 AND current = $2 THEN $4 ELSE at END WHERE id = $1";
    let arguments = [
        Arg::Int(entity.id),
        Arg::Int(transition),
        Arg::Bytes(&content),
        Arg::Int(report.at),
        Arg::BytesOrNull(key),
    ];
    connection.execute(sql, &arguments).await?;
    Ok(Outcome::Kept)
}

/// Where a report belongs.
struct Found {
    application: i64,
    /// The incarnation that is held of the application.
    held_uid: String,
    entity: Option<Entity>,
}

/// The application that a report is about, and the entity: of a report that knows an object alone the resource of an
/// application, where one has it.
async fn shared_entity(
    connection: &mut Connection,
    runtime: i64,
    report: &Report,
) -> Result<Option<Found>, StoreError> {
    let Some(resource) = report.entity.resource.as_ref().filter(|_| !report.has_source) else {
        return Ok(None);
    };
    let sql = "SELECT e.id, e.current, e.latest, e.content, e.uid, e.version, e.object_created_at, e.at, \
               (SELECT max(d.id) FROM drifts d WHERE d.entity_id = e.id AND d.ended IS NULL), e.application_id \
               FROM entities e JOIN applications a ON a.id = e.application_id \
               WHERE e.name = $1 AND e.kind = $2 AND e.namespace = $3 AND e.api_version = $4 AND a.runtime_id = $5 \
               AND a.name <> '' ORDER BY e.at DESC LIMIT 1";
    let arguments = [
        Arg::Text(&resource.name),
        Arg::Text(&resource.kind),
        Arg::Text(&resource.namespace),
        Arg::Text(&resource.api_version),
        Arg::Int(runtime),
    ];
    let Some(row) = connection.row(sql, &arguments).await? else { return Ok(None) };
    Ok(Some(Found { application: row.int(9)?, held_uid: String::new(), entity: Some(Entity::read(&row)?) }))
}

/// The application and the entity by their names; the application is made where there is none.
async fn find(connection: &mut Connection, runtime: i64, report: &Report) -> Result<Found, StoreError> {
    let (namespace, name) = (&report.entity.app_namespace, &report.entity.app_name);
    let resource = names(report.entity.resource.as_ref());
    let sql = "SELECT e.id, e.current, e.latest, e.content, e.uid, e.version, e.object_created_at, e.at, \
               (SELECT max(d.id) FROM drifts d WHERE d.entity_id = e.id AND d.ended IS NULL), a.id, a.held_uid \
               FROM applications a LEFT JOIN entities e ON e.application_id = a.id \
               AND e.api_version = $4 AND e.kind = $5 AND e.namespace = $6 AND e.name = $7 \
               WHERE a.runtime_id = $1 AND a.namespace = $2 AND a.name = $3";
    let arguments = [&[Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)][..], &resource].concat();
    if let Some(row) = connection.row(sql, &arguments).await? {
        let entity = row.int_or_null(0)?.map(|_| Entity::read(&row)).transpose()?;
        return Ok(Found { application: row.int(9)?, held_uid: row.text(10)?, entity });
    }
    let sql = "INSERT INTO applications (runtime_id, namespace, name) VALUES ($1, $2, $3) RETURNING id";
    let arguments = [Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)];
    let row = connection.row(sql, &arguments).await?.ok_or(StoreError::Closed)?;
    Ok(Found { application: row.int(0)?, held_uid: String::new(), entity: None })
}

/// The names of a resource in the order of the columns; an application itself has empty ones.
fn names(resource: Option<&ResourceName>) -> [Arg<'_>; 4] {
    let nothing = ["", "", "", ""];
    let names = resource.map_or(nothing, |resource| {
        [&*resource.api_version, &*resource.kind, &*resource.namespace, &*resource.name]
    });
    names.map(Arg::Text)
}

async fn entity(
    connection: &mut Connection,
    application: i64,
    resource: Option<&ResourceName>,
) -> Result<Entity, StoreError> {
    let listing = resource.map_or([0; 8], |resource| resource.listing().0);
    let arguments = [&[Arg::Int(application)][..], &names(resource), &[Arg::Bytes(&listing)]].concat();
    let sql = "INSERT INTO entities (application_id, api_version, kind, namespace, name, listing) \
               VALUES ($1, $2, $3, $4, $5, $6) RETURNING id";
    let row = connection.row(sql, &arguments).await?.ok_or(StoreError::Closed)?;
    let (content, held) = (Vec::new(), Held::default());
    Ok(Entity { id: row.int(0)?, current: None, latest: None, content, held, drift: None })
}

impl Entity {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.int(0)?,
            current: row.int_or_null(1)?,
            latest: row.int_or_null(2)?,
            content: row.bytes(3)?,
            held: Held {
                uid: row.text(4)?,
                version: row.int_or_null(5)?,
                created_at: row.int_or_null(6)?,
                at: row.int(7)?,
            },
            drift: row.int_or_null(8)?,
        })
    }
}

/// The end of an application, or another life of it, takes away what was held of it for whoever compares.
async fn forget_held(
    connection: &mut Connection,
    application: i64,
    held_uid: &str,
    report: &Report,
) -> Result<(), StoreError> {
    // What came of it before its own first report is of this life.
    if report.deleted || (!held_uid.is_empty() && held_uid != report.uid) {
        let sql = "UPDATE entities SET held_key = NULL WHERE application_id = $1 AND held_key IS NOT NULL";
        connection.execute(sql, &[Arg::Int(application)]).await?;
    }
    Ok(())
}

async fn beside(connection: &mut Connection, transition: i64) -> Result<Beside, StoreError> {
    let sql = "SELECT sync, health, health_message, revision, object, actual, desired, git, details, deleted \
               FROM transitions WHERE id = $1";
    let row = connection.row(sql, &[Arg::Int(transition)]).await?.ok_or(StoreError::Closed)?;
    let mut texts = [const { None }; 5];
    for (text, column) in texts.iter_mut().zip(4..) {
        *text = row.bytes_or_null(column)?;
    }
    Ok(Beside {
        sync: row.text_or_null(0)?,
        health: row.text_or_null(1)?,
        health_message: row.text_or_null(2)?,
        revision: row.text_or_null(3)?,
        deleted: row.int(9)? != 0,
        texts,
    })
}

async fn transition<'a>(
    connection: &mut Connection,
    entity: i64,
    report: &'a Report,
    beside: Option<&Beside>,
    now: Millis,
    texts: &mut NamedTexts<'a>,
) -> Result<i64, StoreError> {
    let own = report.texts();
    // A report that knows the object alone says nothing else that is kept, where more is known.
    let said = if beside.is_some() { 1 } else { own.len() };
    own.into_iter().take(said).flatten().for_each(|text| texts.name(text));
    let mut digests = own.map(|text| text.map(|text| &text.digest[..]));
    if let Some(beside) = beside {
        for (digest, known) in digests.iter_mut().zip(&beside.texts).skip(1) {
            *digest = known.as_deref();
            if let Some(known) = known {
                texts.name_again(known);
            }
        }
    }
    let told = |own: &'_ Option<String>, known: fn(&Beside) -> &Option<String>| {
        own.clone().or_else(|| beside.and_then(|beside| known(beside).clone()))
    };
    let sync = told(&report.sync, |beside| &beside.sync);
    let health = told(&report.health, |beside| &beside.health);
    let health_message = told(&report.health_message, |beside| &beside.health_message);
    let revision = told(&report.revision, |beside| &beside.revision);
    let sql = "INSERT INTO transitions (entity_id, at, last_at, received_at, uid, version, deleted, sync, health, \
               health_message, revision, object_is_json, object, actual, desired, git, details) \
               VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) RETURNING id";
    let [object, actual, desired, git, details] = digests;
    let arguments = [
        Arg::Int(entity),
        Arg::Int(report.at),
        Arg::Int(now),
        Arg::Text(&report.uid),
        Arg::IntOrNull(report.version),
        Arg::Int(report.deleted.into()),
        Arg::TextOrNull(sync.as_deref()),
        Arg::TextOrNull(health.as_deref()),
        Arg::TextOrNull(health_message.as_deref()),
        Arg::TextOrNull(revision.as_deref()),
        Arg::Int(report.object_is_json.into()),
        Arg::BytesOrNull(object),
        Arg::BytesOrNull(actual),
        Arg::BytesOrNull(desired),
        Arg::BytesOrNull(git),
        Arg::BytesOrNull(details),
    ];
    connection.row(sql, &arguments).await?.ok_or(StoreError::Closed)?.int(0)
}
