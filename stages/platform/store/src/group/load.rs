//! Reads what is known of whatever deliveries are about, of all of them at once.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::application_state::{ApplicationKey, ApplicationState};
use super::drifts::Drifts;
use super::entity_state::EntityState;
use super::group_state::{GroupState, key, object_alone};
use super::keys::NewKeys;
use super::newest::Newest;
use super::said::Said;
use super::transition::TransitionRef;
use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::fleet::{Index, indexed};
use crate::report::{Delivery, ResourceName};
use crate::rows::with_rows;

pub(super) const APPLICATIONS: &str = concat!(
    "SELECT named.column1, a.id, a.epoch, ",
    indexed!(),
    " FROM (VALUES ROWS) AS named CROSS JOIN applications a \
     WHERE a.runtime_id = named.column2 AND a.namespace = named.column3 AND a.name = named.column4"
);
/// The columns of an entity in the order that `read_entity` has; of its drifts no more than one goes on.
macro_rules! entity {
    () => {
        "e.id, e.current, e.latest, e.content, e.uid, e.version, e.object_created_at, e.at, d.id, e.since, \
         CASE WHEN e.latest = e.current THEN e.since ELSE (SELECT l.at FROM transitions l WHERE l.id = e.latest) END, e.era"
    };
}
pub(super) const ENTITIES: &str = concat!(
    "SELECT named.column1, ",
    entity!(),
    " FROM (VALUES ROWS) AS named CROSS JOIN entities e LEFT JOIN drifts d ON d.entity_id = e.id AND d.ended IS NULL \
     WHERE e.application_id = named.column2 AND e.kind = named.column3 AND e.name = named.column4 \
     AND e.namespace = named.column5 AND e.api_version = named.column6"
);
/// Of the resources of applications that have one name the one that was reported of last. No other statement of a group says that a name
/// is not empty: so none but this one is carried out by the index of names.
pub(super) const NAMESAKES: &str = concat!(
    "SELECT named.column1, ",
    entity!(),
    ", a.namespace, a.name, a.id, a.epoch, ",
    indexed!(),
    " FROM (VALUES ROWS) AS named CROSS JOIN entities e CROSS JOIN applications a \
     LEFT JOIN drifts d ON d.entity_id = e.id AND d.ended IS NULL \
     WHERE a.id = e.application_id AND e.id = (SELECT s.id FROM entities s JOIN applications o ON o.id = s.application_id \
     WHERE s.name = named.column3 AND s.name <> '' AND s.kind = named.column4 AND s.namespace = named.column5 AND s.api_version = named.column6 \
     AND o.runtime_id = named.column2 AND o.name <> '' ORDER BY s.at DESC, s.id LIMIT 1)"
);
pub(super) const SAID: &str = "SELECT t.id, t.sync, t.health, t.health_message, t.revision, t.deleted, \
    t.object, t.actual, t.desired, t.git, t.details, t.object_is_json \
    FROM (VALUES ROWS) AS named CROSS JOIN transitions t WHERE t.id = named.column1";

/// What is known of what the deliveries are about. Of one that repeats another nothing is read, unless it says by which right it
/// is sent: then its application.
pub(super) async fn known<'a>(
    connection: &mut Connection,
    deliveries: &[&'a Delivery],
    keys: &NewKeys,
) -> Result<GroupState<'a>, StoreError> {
    let mut known = GroupState::default();
    let new: Vec<&'a Delivery> = deliveries.iter().copied().filter(|delivery| keys.has(delivery)).collect();
    let alone: BTreeSet<(i64, &'a ResourceName)> = new
        .iter()
        .filter_map(|delivery| object_alone(&delivery.report).map(|resource| (delivery.runtime, resource)))
        .collect();
    for &(runtime, resource) in &alone {
        known.ask_for_namesakes(runtime, resource);
    }
    let asked = deliveries.iter().copied().filter(|delivery| delivery.epoch.is_some() || keys.has(delivery));
    applications(connection, &mut known, asked.map(key).collect()).await?;
    namesakes(connection, &mut known, alone.into_iter().collect()).await?;
    let named = new.iter().copied().filter_map(|delivery| {
        let application = known.application(&key(delivery))?;
        let resource = delivery.report.entity.resource.as_ref();
        known.entity(application, resource).is_none().then_some((application, resource))
    });
    let named: BTreeSet<_> = named.collect();
    entities(connection, &mut known, named.into_iter().collect()).await?;
    let followed: Vec<_> = known.followed(&new).into_iter().map(|id| [Arg::Int(id)]).collect();
    for row in with_rows(connection, SAID, &followed).await? {
        known.add_said(row.int(0)?, said(&row)?);
    }
    Ok(known)
}

async fn applications<'a>(
    connection: &mut Connection,
    known: &mut GroupState<'a>,
    keys: BTreeSet<ApplicationKey<'a>>,
) -> Result<(), StoreError> {
    let keys: Vec<_> = keys.into_iter().collect();
    let rows: Vec<_> = (0..)
        .zip(&keys)
        .map(|(number, (runtime, namespace, name))| {
            [Arg::Int(number), Arg::Int(*runtime), Arg::Text(namespace), Arg::Text(name)]
        })
        .collect();
    for row in with_rows(connection, APPLICATIONS, &rows).await? {
        if let Some(key) = asked(&row, &keys)? {
            known.add_application(application(&row, 1, key.clone())?);
        }
    }
    Ok(())
}

async fn namesakes<'a>(
    connection: &mut Connection,
    known: &mut GroupState<'a>,
    alone: Vec<(i64, &'a ResourceName)>,
) -> Result<(), StoreError> {
    let rows: Vec<_> = (0..)
        .zip(&alone)
        .map(|(number, &(runtime, resource))| {
            let [api_version, kind, namespace, name] = names(Some(resource));
            [Arg::Int(number), Arg::Int(runtime), name, kind, namespace, api_version]
        })
        .collect();
    for row in with_rows(connection, NAMESAKES, &rows).await? {
        let Some(&(runtime, resource)) = asked(&row, &alone)? else { continue };
        let key = (runtime, Cow::Owned(row.text(13)?), Cow::Owned(row.text(14)?));
        let place = match known.application(&key) {
            Some(place) => place,
            None => known.add_application(application(&row, 15, key)?),
        };
        read_entity(known, &row, place, Some(resource))?;
    }
    Ok(())
}

async fn entities<'a>(
    connection: &mut Connection,
    known: &mut GroupState<'a>,
    named: Vec<(usize, Option<&'a ResourceName>)>,
) -> Result<(), StoreError> {
    let mut rows = Vec::new();
    for (number, (application, resource)) in (0..).zip(&named) {
        let Some(id) = known.applications.get(*application).and_then(|application| application.id) else {
            continue;
        };
        let [api_version, kind, namespace, name] = names(*resource);
        rows.push([Arg::Int(number), Arg::Int(id), kind, name, namespace, api_version]);
    }
    for row in with_rows(connection, ENTITIES, &rows).await? {
        if let Some((application, resource)) = asked(&row, &named)? {
            read_entity(known, &row, *application, *resource)?;
        }
    }
    Ok(())
}

/// What a row is the answer to: its first column says which it is of those that were asked for.
fn asked<'r, T>(row: &Row, all: &'r [T]) -> Result<Option<&'r T>, StoreError> {
    Ok(usize::try_from(row.int(0)?).ok().and_then(|number| all.get(number)))
}

fn application<'a>(
    row: &Row,
    first: usize,
    key: ApplicationKey<'a>,
) -> Result<ApplicationState<'a>, StoreError> {
    let index = Index::read(row, first + 2)?;
    Ok(ApplicationState::new(key, Some(row.int(first)?), row.int(first + 1)?, index))
}

/// The entity of a row, where it is not known yet.
fn read_entity<'a>(
    known: &mut GroupState<'a>,
    row: &Row,
    application: usize,
    resource: Option<&'a ResourceName>,
) -> Result<usize, StoreError> {
    if let Some(place) = known.entity(application, resource) {
        return Ok(place);
    }
    let kept = |column| Ok::<_, StoreError>(row.int_or_null(column)?.map(TransitionRef::Kept));
    let since = row.int(10)?;
    let newest = Newest {
        uid: row.text(5)?.into(),
        version: row.int_or_null(6)?,
        created_at: row.int_or_null(7)?,
        at: row.int(8)?,
        era: row.int(12)?,
    };
    Ok(known.add_entity(EntityState {
        id: Some(row.int(1)?),
        application,
        resource,
        current: kept(2)?,
        since,
        latest: kept(3)?,
        latest_since: row.int_or_null(11)?.unwrap_or(since),
        content: row.bytes(4)?,
        newest,
        drifts: Drifts::going_on(row.int_or_null(9)?),
        ..EntityState::default()
    }))
}

/// The names of a resource in the order of the columns; an application itself has empty ones.
pub(super) fn names(resource: Option<&ResourceName>) -> [Arg<'_>; 4] {
    let nothing = ["", "", "", ""];
    let names = resource.map_or(nothing, |resource| {
        [&*resource.api_version, &*resource.kind, &*resource.namespace, &*resource.name]
    });
    names.map(Arg::Text)
}

fn said(row: &Row) -> Result<Said<'static>, StoreError> {
    let text = |column| Ok::<_, StoreError>(row.text_or_null(column)?.map(Cow::Owned));
    let digest = |column| Ok::<_, StoreError>(row.bytes_or_null(column)?.map(Cow::Owned));
    Ok(Said {
        sync: text(1)?,
        health: text(2)?,
        health_message: text(3)?,
        revision: text(4)?,
        deleted: row.int(5)? != 0,
        object_is_json: row.int(11)? != 0,
        texts: [digest(6)?, digest(7)?, digest(8)?, digest(9)?, digest(10)?],
    })
}
