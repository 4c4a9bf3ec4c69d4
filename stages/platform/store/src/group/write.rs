//! Writes what the reports of a group changed, of each table in one statement for all of them.

use super::drifts::Drift;
use super::entity_state::EntityState;
use super::group_state::GroupState;
use super::load::names;
use super::numbers::{Numbers, Wanted};
use super::transition::{NewTransition, TransitionRef};
use crate::change;
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::fleet::{self, Indexed};
use crate::report::Millis;
use crate::rows::with_rows;

pub(super) const NEW_APPLICATIONS: &str = "INSERT INTO applications (id, runtime_id, namespace, name, epoch) \
    SELECT column1, column2, column3, column4, column5 FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL";
pub(super) const EPOCHS: &str = "UPDATE applications SET epoch = named.column2 FROM (VALUES ROWS) AS named \
    WHERE applications.id = named.column1";
pub(super) const FORGET: &str = "UPDATE entities SET held_key = NULL \
    WHERE application_id IN (SELECT column1 FROM (VALUES ROWS) AS named) AND held_key IS NOT NULL";
pub(super) const NEW_ENTITIES: &str = "INSERT INTO entities (id, application_id, api_version, kind, namespace, name, listing, \
    current, latest, content, uid, version, object_created_at, at, held_key, since, gone, owner, era) \
    SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12, \
    column13, column14, column15, column16, column17, COALESCE(column18, ''), column19 \
    FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL";
/// Since when the state is so, and whether it is an end, is that of its transition: of one that the group adds it is told, one that
/// is kept and is the state again is looked up. A report without an owner does not say that there is none: Git has none of any.
pub(super) const ENTITIES: &str = "UPDATE entities SET current = named.column2, latest = named.column3, \
    content = named.column4, uid = named.column5, version = named.column6, object_created_at = named.column7, \
    at = named.column8, held_key = COALESCE(named.column9, held_key), \
    since = CASE WHEN entities.current = named.column2 THEN entities.since \
    ELSE COALESCE(named.column10, (SELECT t.at FROM transitions t WHERE t.id = named.column2)) END, \
    gone = CASE WHEN entities.current = named.column2 THEN entities.gone \
    ELSE COALESCE(named.column11, (SELECT t.deleted FROM transitions t WHERE t.id = named.column2)) END, \
    owner = COALESCE(named.column12, entities.owner), era = named.column13 \
    FROM (VALUES ROWS) AS named WHERE entities.id = named.column1";
pub(super) const NEW_TRANSITIONS: &str = "INSERT INTO transitions (id, entity_id, at, last_at, received_at, reports, uid, \
    version, deleted, sync, health, health_message, revision, object_is_json, object, actual, desired, git, details, \
    pods_ready, pods_wanted, pods_revision) \
    SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12, \
    column13, column14, column15, column16, column17, column18, column19, column20, column21, column22 \
    FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL";
pub(super) const AGAIN: &str = "UPDATE transitions SET reports = reports + named.column2, \
    last_at = CASE WHEN last_at < named.column3 THEN named.column3 ELSE last_at END \
    FROM (VALUES ROWS) AS named WHERE transitions.id = named.column1";
/// An operation is one deployment, told by when it began: each report of it says how far it is, until it has ended.
pub(super) const DEPLOYMENTS: &str = "INSERT INTO deployments (application_id, started_at, finished_at, phase, revision, \
    initiated_by, commit_author, commit_message, commit_date, images, message) \
    SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11 \
    FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL \
    ON CONFLICT (application_id, started_at) DO UPDATE SET finished_at = excluded.finished_at, phase = excluded.phase, \
    revision = excluded.revision, initiated_by = excluded.initiated_by, commit_author = excluded.commit_author, \
    commit_message = excluded.commit_message, commit_date = excluded.commit_date, images = excluded.images, \
    message = excluded.message WHERE deployments.finished_at IS NULL";
/// When an operation has ended, what it replaced runs still: what it brought is told later.
pub(super) const IMAGES: &str = "UPDATE deployments SET images = named.column3 FROM (VALUES ROWS) AS named \
    WHERE deployments.application_id = named.column1 AND deployments.started_at = named.column2 \
    AND deployments.images <> named.column3";
pub(super) const NEW_DRIFTS: &str = "INSERT INTO drifts (entity_id, onset, ended, repeats) \
    SELECT column1, column2, column3, column4 FROM (VALUES ROWS) AS named WHERE column1 IS NOT NULL";
pub(super) const DRIFTS: &str = "UPDATE drifts SET repeats = repeats + named.column2, ended = named.column3 \
    FROM (VALUES ROWS) AS named WHERE drifts.id = named.column1";

/// All of it.
pub(super) async fn all(
    connection: &mut Connection,
    mut known: GroupState<'_>,
    now: Millis,
) -> Result<(), StoreError> {
    let numbered = number(connection, &mut known).await?;
    let texts = std::mem::take(&mut known.texts);
    applications(connection, &known, &numbered).await?;
    entities(connection, &known, &numbered).await?;
    transitions(connection, &known, &numbered, now).await?;
    history(connection, &known).await?;
    texts.keep(connection).await
}

/// Which of what is known was new, and the numbers of the new transitions.
struct Numbered {
    applications: Vec<bool>,
    entities: Vec<bool>,
    transitions: Vec<i64>,
}

impl Numbered {
    fn of(&self, which: Option<TransitionRef>) -> Arg<'static> {
        Arg::IntOrNull(match which {
            Some(TransitionRef::Kept(id)) => Some(id),
            Some(TransitionRef::New(place)) => self.transitions.get(place).copied(),
            None => None,
        })
    }
}

/// Gives everything that is new its number.
async fn number(connection: &mut Connection, known: &mut GroupState<'_>) -> Result<Numbered, StoreError> {
    let applications: Vec<bool> = known.applications.iter().map(|one| one.id.is_none()).collect();
    let entities: Vec<bool> = known.entities.iter().map(|one| one.id.is_none()).collect();
    let count = |new: &[bool]| i64::try_from(new.iter().filter(|new| **new).count()).unwrap_or(i64::MAX);
    let transitions = i64::try_from(known.transitions.len()).unwrap_or(i64::MAX);
    let wanted = Wanted { applications: count(&applications), entities: count(&entities), transitions };
    let numbers = Numbers::take(connection, wanted).await?;
    let new = known.applications.iter_mut().filter(|one| one.id.is_none());
    new.zip(numbers.applications).for_each(|(one, id)| one.id = Some(id));
    let new = known.entities.iter_mut().filter(|one| one.id.is_none());
    new.zip(numbers.entities).for_each(|(one, id)| one.id = Some(id));
    Ok(Numbered { applications, entities, transitions: numbers.transitions })
}

async fn applications(
    connection: &mut Connection,
    known: &GroupState<'_>,
    numbered: &Numbered,
) -> Result<(), StoreError> {
    let (mut new, mut epochs, mut forgetful, mut listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (application, is_new) in known.applications.iter().zip(&numbered.applications) {
        let Some(id) = application.id else { continue };
        let (runtime, namespace, name) = &application.key;
        let epoch = Arg::Int(application.epoch);
        if *is_new {
            new.push([Arg::Int(id), Arg::Int(*runtime), Arg::Text(namespace), Arg::Text(name), epoch]);
        } else if application.has_new_epoch {
            epochs.push([Arg::Int(id), epoch]);
        }
        if application.forgets_held && !is_new {
            forgetful.push([Arg::Int(id)]);
        }
        if let Some(last) = application.last {
            let (index, newest) = (&application.index, application.newest);
            listed.push(Indexed { application: id, index, held: last, newest });
        }
    }
    with_rows(connection, NEW_APPLICATIONS, &new).await?;
    with_rows(connection, EPOCHS, &epochs).await?;
    with_rows(connection, FORGET, &forgetful).await?;
    fleet::write(connection, &listed).await
}

async fn entities(
    connection: &mut Connection,
    known: &GroupState<'_>,
    numbered: &Numbered,
) -> Result<(), StoreError> {
    let listings: Vec<[u8; 8]> = known
        .entities
        .iter()
        .map(|entity| entity.resource.map_or([0; 8], |resource| resource.listing().0))
        .collect();
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for ((entity, is_new), listing) in known.entities.iter().zip(&numbered.entities).zip(&listings) {
        let Some(id) = entity.id.filter(|_| entity.is_reported) else { continue };
        let EntityState { current, latest, content, newest, held_key, owner, .. } = entity;
        let added = match current {
            Some(TransitionRef::New(place)) => known.transitions.get(*place),
            _ => None,
        };
        let since = Arg::IntOrNull(added.map(|added| added.at));
        let gone = Arg::IntOrNull(added.map(|added| added.said.deleted.into()));
        let (id, owner, key) = (Arg::Int(id), Arg::TextOrNull(*owner), Arg::BytesOrNull(*held_key));
        let (current, latest, content) = (numbered.of(*current), numbered.of(*latest), Arg::Bytes(content));
        let (uid, version, at) =
            (Arg::Text(&newest.uid), Arg::IntOrNull(newest.version), Arg::Int(newest.at));
        let (created_at, era) = (Arg::IntOrNull(newest.created_at), Arg::Int(newest.era));
        if !*is_new {
            changed.push([
                id, current, latest, content, uid, version, created_at, at, key, since, gone, owner, era,
            ]);
            continue;
        }
        let part_of = known.applications.get(entity.application).and_then(|application| application.id);
        let (part_of, listing) = (Arg::IntOrNull(part_of), Arg::Bytes(listing));
        let [api, kind, namespace, name] = names(entity.resource);
        new.push([
            id, part_of, api, kind, namespace, name, listing, current, latest, content, uid, version,
            created_at, at, key, since, gone, owner, era,
        ]);
    }
    with_rows(connection, NEW_ENTITIES, &new).await?;
    with_rows(connection, ENTITIES, &changed).await.map(drop)
}

async fn transitions(
    connection: &mut Connection,
    known: &GroupState<'_>,
    numbered: &Numbered,
    now: Millis,
) -> Result<(), StoreError> {
    let mut new = Vec::new();
    for (transition, id) in known.transitions.iter().zip(&numbered.transitions) {
        let NewTransition { entity, at, uid, version, pods, said, reports } = transition;
        let entity = known.entities.get(*entity).and_then(|entity| entity.id);
        let [object, actual, desired, git, details] =
            said.texts.each_ref().map(|digest| Arg::BytesOrNull(digest.as_deref()));
        new.push([
            Arg::Int(*id),
            Arg::IntOrNull(entity),
            Arg::Int(*at),
            Arg::Int(reports.last_at),
            Arg::Int(now),
            Arg::Int(reports.times),
            Arg::Text(uid),
            Arg::IntOrNull(*version),
            Arg::Int(said.deleted.into()),
            Arg::TextOrNull(said.sync.as_deref()),
            Arg::TextOrNull(said.health.as_deref()),
            Arg::TextOrNull(said.health_message.as_deref()),
            Arg::TextOrNull(said.revision.as_deref()),
            Arg::Int(said.object_is_json.into()),
            object,
            actual,
            desired,
            git,
            details,
            Arg::IntOrNull(pods.map(|pods| pods.ready)),
            Arg::IntOrNull(pods.map(|pods| pods.wanted)),
            Arg::IntOrNull(pods.and_then(|pods| pods.revision)),
        ]);
    }
    with_rows(connection, NEW_TRANSITIONS, &new).await?;
    let again: Vec<_> = known
        .again
        .iter()
        .map(|(id, more)| [Arg::Int(*id), Arg::Int(more.times), Arg::Int(more.last_at)])
        .collect();
    with_rows(connection, AGAIN, &again).await.map(drop)
}

/// What follows for the tables of history.
async fn history(connection: &mut Connection, known: &GroupState<'_>) -> Result<(), StoreError> {
    let mut deployments = Vec::new();
    for ((application, started_at), report) in &known.deployments {
        let application = known.applications.get(*application).and_then(|application| application.id);
        let (Some(id), Some(operation)) = (application, &report.operation) else { continue };
        deployments.push([
            Arg::Int(id),
            Arg::Int(*started_at),
            Arg::IntOrNull(operation.finished_at),
            Arg::Text(&operation.phase),
            Arg::Text(&operation.revision),
            Arg::Text(&operation.initiated_by),
            Arg::Text(&report.commit.author),
            Arg::Text(&report.commit.message),
            Arg::Text(&report.commit.date),
            Arg::Text(&report.images),
            Arg::Text(&operation.message),
        ]);
    }
    with_rows(connection, DEPLOYMENTS, &deployments).await?;
    let shown = known.shown.iter().filter_map(|((application, started_at), report)| {
        let id = known.applications.get(*application)?.id?;
        Some([Arg::Int(id), Arg::Int(*started_at), Arg::Text(&report.images)])
    });
    with_rows(connection, IMAGES, &shown.collect::<Vec<_>>()).await?;
    let changes = known.changes.iter().filter_map(|((application, _), report)| {
        known.applications.get(*application).map(|application| (application.key.0, *report))
    });
    change::of_reports(connection, &changes.collect::<Vec<_>>()).await?;
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for entity in &known.entities {
        for Drift { id, onset, ended, repeats } in entity.drifts.changed() {
            let (ended, repeats) = (Arg::IntOrNull(*ended), Arg::Int(*repeats));
            match (id, entity.id) {
                (Some(id), _) => changed.push([Arg::Int(*id), repeats, ended]),
                (None, Some(entity)) => new.push([Arg::Int(entity), Arg::Int(*onset), ended, repeats]),
                (None, None) => {}
            }
        }
    }
    with_rows(connection, NEW_DRIFTS, &new).await?;
    with_rows(connection, DRIFTS, &changed).await.map(drop)
}
