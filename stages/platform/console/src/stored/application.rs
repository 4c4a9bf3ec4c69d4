//! An application as of a moment, with its life around it.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stages_client::manifest_sources;
use stages_platform_store::{
    ApplicationName, DriftOf, FleetDeployment, MOST_DRIFTS, MOST_OF_LIFE, MOST_STEPS, Millis, ObjectAt,
    ResourceAt, SourceChange, StateOf, StepOf, Store, StoreError, View,
};

use super::as_of::HealthAt;
use super::drifted::Comparisons;
use super::object::{Condition, Entry, Object, Synced};
use super::{as_of, drifts, errors, rows};
use crate::fleet::{Steps, Window};
use crate::view::application::{Application, Life, ManifestSource, Problem, Span, Transition};
use crate::view::deployment::{Deployment, Outcome};
use crate::view::resource::{Resource, ResourceKey};
use crate::view::state::{Health, SyncStatus};

/// Owners above each other: a pod has a ReplicaSet, a Rollout, and whatever makes Rollouts.
const ABOVE: usize = 6;
/// Deployments that somebody chooses from, the newest.
const DEPLOYED: usize = 100;

pub(super) async fn read(
    store: &Store,
    view: &View,
    id: &ApplicationName,
    (window, now): (Window, Timestamp),
    comparisons: &Comparisons,
) -> Result<Option<Application>, StoreError> {
    let Some(known) = store.known(view, id).await? else { return Ok(None) };
    let number = known.id;
    let millis = |at: Timestamp| at.as_millisecond();
    let moment = window.to.filter(|to| *to < now);
    // Clocks of clusters may be ahead: until now is all that was reported.
    let end = if moment.is_some() { millis(window.end) } else { Millis::MAX };
    let between = (millis(window.begin), end);
    let states = store.states(number, between).await?;
    let stepped = match window.steps {
        Steps::None => Vec::new(),
        of => store.steps_between(number, between, of == Steps::OfAll).await?,
    };
    let deployed = store.deployments_between(number, between).await?;
    let mut brought: BTreeMap<Millis, Vec<SourceChange>> =
        store.changes_between(number, between).await?.into_iter().collect();
    let deployment = |row: FleetDeployment| {
        let brought = brought.remove(&row.started_at).unwrap_or_default();
        Deployment { brought, ..rows::deployment(row) }
    };
    let deployments: Vec<Deployment> = deployed.into_iter().map(deployment).collect();
    let drifted = store.drifts_between(number, between).await?;
    let of_resources = drifted.iter().filter(|one| one.resource.is_some()).count();
    let is_cut = match window.drifts {
        true => of_resources.max(drifted.len() - of_resources) >= MOST_DRIFTS as usize,
        false => {
            states.len().max(deployments.len()) >= MOST_OF_LIFE as usize
                || stepped.len() >= MOST_STEPS as usize
        }
    };
    let to = moment.map(millis);
    let object = store.object_at(number, to).await?;
    let resources = store.resources_at(number, to, window.from.map(millis)).await?;
    let read = object.as_ref().map(Object::of).unwrap_or_default();
    let resources = merge(&read.status.resources, resources);
    let problems = problems(&read, object.as_ref());
    let drifts = match window.drifts {
        true => drifts::compared(store, (&drifted, &resources), comparisons).await?,
        false => drifts::drifts(&drifted, &resources, &[]),
    };
    let health = match to {
        Some(to) => HealthAt::then(object.as_ref(), &states, to),
        None => HealthAt::now(&known),
    };
    let earlier = match health.unwell_since() {
        Some(since) if deployments.iter().all(|one| one.at > since) => before(store, number, since).await?,
        _ => Vec::new(),
    };
    let cause = health.cause(&resources, if earlier.is_empty() { &deployments } else { &earlier });
    // One that never had an operation has no phase.
    let is_syncing = !known.phase.is_empty() && rows::outcome(&known.phase) == Outcome::Running;
    let row = rows::application(known.listed);
    let (row, as_of) = match to {
        Some(_) => (as_of::row(row, object.as_ref()), object.as_ref().map_or(0, |object| object.at)),
        None => (row, known.reported_at),
    };
    let (cluster, namespace) = &known.destination;
    Ok(Some(Application {
        cause,
        as_of: rows::moment(as_of),
        moment,
        silent_since: rows::silent(known.heard_at, now),
        deleted: known.deleted,
        is_syncing,
        sources: sources(&read.spec),
        destination: [&**cluster, namespace].join(" ").trim().to_owned(),
        is_cut,
        transitions: transitions(&states, window.begin)
            .into_iter()
            .chain(steps(&stepped, window.steps))
            .collect(),
        life: life(&states, &drifted, deployments, window),
        row,
        resources,
        drifts,
        problems,
    }))
}

/// The deployments of the week before it failed: a window of an hour may begin behind them.
async fn before(store: &Store, number: i64, failed: Timestamp) -> Result<Vec<Deployment>, StoreError> {
    let week = failed.checked_sub(SignedDuration::from_hours(24 * 7)).unwrap_or(Timestamp::UNIX_EPOCH);
    let between = (week.as_millisecond(), failed.as_millisecond());
    Ok(store.deployments_between(number, between).await?.into_iter().map(rows::deployment).collect())
}

/// The newest deployments of an application since a moment, the oldest first, without what they brought.
pub(super) async fn deployed(
    store: &Store,
    view: &View,
    id: &ApplicationName,
    since: Timestamp,
) -> Result<Option<Vec<Deployment>>, StoreError> {
    let Some(known) = store.known(view, id).await? else { return Ok(None) };
    // Clocks of clusters may be ahead: until now is all that was reported.
    let mut all = store.deployments_between(known.id, (since.as_millisecond(), Millis::MAX)).await?;
    all.drain(..all.len().saturating_sub(DEPLOYED));
    Ok(Some(all.into_iter().map(rows::deployment).collect()))
}

/// Those of an Application that are folders of repositories.
fn sources(spec: &Value) -> Vec<ManifestSource> {
    let several = spec["sources"].as_array().into_iter().flatten().collect();
    let dry = Some(&spec["sourceHydrator"]["drySource"]).filter(|dry| dry.is_object());
    let one = |of: &Value| {
        let text = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
        // It means the branch that is the repository's own.
        let revision = Some(text("targetRevision")).filter(|revision| revision != "HEAD").unwrap_or_default();
        let source = ManifestSource { repository: text("repoURL"), path: text("path"), revision };
        (text("chart").is_empty() && !source.repository.is_empty()).then_some(source)
    };
    manifest_sources(several, dry, spec.get("source")).into_iter().filter_map(one).collect()
}

/// What the application lists, each with what was reported of it, and what that owns; where it lists nothing, all that was
/// reported.
fn merge(listed: &[Entry], reported: Vec<ResourceAt>) -> Vec<Resource> {
    let mut known: BTreeMap<ResourceKey, ResourceAt> =
        reported.into_iter().map(|one| (rows::key(&one.name), one)).collect();
    let one = |key: ResourceKey, at: &ResourceAt| Resource {
        parent: owner(&key, &at.owner),
        key,
        health: at.health.as_deref().and_then(|word| word.parse().ok()),
        sync: rows::sync(at.sync.as_deref().unwrap_or_default()),
        message: at.health_message.clone().unwrap_or_default(),
        pods: at.pods,
        since: rows::moment(at.at),
        changed: at.changed,
    };
    if listed.is_empty() {
        let there = known.into_iter().filter(|(_, at)| !at.deleted);
        return below_owners(there.map(|(key, at)| one(key, &at)).collect());
    }
    let of = |entry: &Entry| {
        let Entry { group, kind, namespace, name, .. } = entry;
        let key = ResourceKey {
            group: group.clone(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        let (health, sync) = (entry.health.status.parse().ok(), rows::sync(&entry.status));
        match known.remove(&key) {
            Some(at) => {
                let reported = one(key, &at);
                let message = Some(entry.health.message.clone()).filter(|said| !said.is_empty());
                // An Argo CD that keeps health in its tree lists none.
                let health = health.or(reported.health);
                Resource { health, sync, message: message.unwrap_or(reported.message.clone()), ..reported }
            }
            None => Resource {
                key,
                health,
                sync,
                message: entry.health.message.clone(),
                pods: None,
                parent: None,
                since: Timestamp::UNIX_EPOCH,
                changed: false,
            },
        }
    };
    let mut all: Vec<Resource> = listed.iter().map(of).collect();
    let owned = known.into_iter().filter(|(key, at)| !at.deleted && is_owned(key));
    all.extend(owned.map(|(key, at)| one(key, &at)));
    below_owners(all)
}

/// What owns a resource: something in its namespace.
fn owner(of: &ResourceKey, named: &str) -> Option<ResourceKey> {
    let mut parts = named.split('/');
    let (group, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    let [group, kind, name] = [group, kind, name].map(str::to_owned);
    Some(ResourceKey { group, kind, namespace: of.namespace.clone(), name })
}

/// Leaves of the owners those that are there, in the namespace or of the whole cluster, and none of what owns itself by others, or
/// stands below more than any object does: that was made up, and would not be drawn.
fn below_owners(mut all: Vec<Resource>) -> Vec<Resource> {
    let known: HashSet<ResourceKey> = all.iter().map(|one| one.key.clone()).collect();
    let found = |owner: ResourceKey| {
        if known.contains(&owner) {
            return Some(owner);
        }
        let of_cluster = ResourceKey { namespace: String::new(), ..owner };
        known.contains(&of_cluster).then_some(of_cluster)
    };
    let mut above = HashMap::new();
    for one in &mut all {
        one.parent = one.parent.take().and_then(found);
        if let Some(parent) = &one.parent {
            above.insert(one.key.clone(), parent.clone());
        }
    }
    for one in &mut all {
        let owners = std::iter::successors(one.parent.as_ref(), |owner| above.get(*owner));
        if owners.take(ABOVE + 1).count() > ABOVE {
            one.parent = None;
        }
    }
    all
}

/// Whether it belongs to what an application lists, and is never listed itself: who watches resources tells of it.
fn is_owned(key: &ResourceKey) -> bool {
    matches!(
        (&*key.group, &*key.kind),
        ("apps", "ReplicaSet") | ("argoproj.io", "AnalysisRun" | "Workflow") | ("", "Pod")
    )
}

/// Stretches of one state; what was said again is no new one.
fn spans<T: Copy + PartialEq>(
    states: &[StateOf],
    window: Window,
    of: impl Fn(&StateOf) -> Option<T>,
) -> Vec<Span<T>> {
    let mut all: Vec<Span<T>> = Vec::new();
    for state in states {
        let at = rows::moment(state.at).max(window.begin).min(window.end);
        let of = of(state).filter(|_| !state.deleted);
        match (all.last_mut(), of) {
            (Some(last), Some(state)) if last.state == state && last.to == window.end => {}
            (last, of) => {
                if let Some(last) = last.filter(|last| last.to == window.end) {
                    last.to = at;
                }
                if let Some(state) = of {
                    all.push(Span { from: at, to: window.end, state });
                }
            }
        }
    }
    all
}

fn health_of(state: &StateOf) -> Option<Health> {
    state.health.as_deref().map(rows::health)
}

fn sync_of(state: &StateOf) -> Option<SyncStatus> {
    state.sync.as_deref().map(rows::sync)
}

fn life(states: &[StateOf], drifted: &[DriftOf], deployments: Vec<Deployment>, window: Window) -> Life {
    let drift = drifted.iter().filter(|one| one.resource.is_none()).rev().map(|one| Span {
        from: rows::moment(one.onset).max(window.begin),
        to: one.ended.map_or(window.end, rows::moment).min(window.end),
        state: (),
    });
    Life {
        from: window.begin,
        to: window.end,
        // Of more than are read the newest are read, and none of before the window where there is none.
        first: states
            .first()
            .filter(|_| states.len() < MOST_OF_LIFE as usize)
            .map(|state| rows::moment(state.at)),
        health: spans(states, window, health_of),
        sync: spans(states, window, sync_of),
        drift: drift.collect(),
        deployments,
    }
}

/// Where health or sync changed, or it was deleted or made again, the newest first.
fn transitions(states: &[StateOf], begin: Timestamp) -> Vec<Transition> {
    // What begins unknown has said nothing yet.
    let (mut health, mut sync) = (Some(Health::Unknown), Some(SyncStatus::Unknown));
    let (mut all, mut was_gone) = (Vec::new(), false);
    for state in states {
        let (now, now_sync) = match state.deleted {
            true => (None, None),
            false => (health_of(state), sync_of(state)),
        };
        let said = match (was_gone, state.deleted) {
            (false, true) => Some("deleted"),
            (true, false) => Some("created again"),
            _ => None,
        };
        let change = Transition {
            at: rows::moment(state.at),
            resource: None,
            health: now.filter(|now| Some(*now) != health).map(|now| (health, now)),
            sync: now_sync.filter(|now| Some(*now) != sync).map(|now| (sync, now)),
            message: said.or(state.health_message.as_deref()).unwrap_or_default().to_owned(),
        };
        if change.at >= begin && (said.is_some() || change.health.is_some() || change.sync.is_some()) {
            all.push(change);
        }
        // Another life of it begins anew.
        (health, sync) = if state.deleted { (None, None) } else { (now.or(health), now_sync.or(sync)) };
        was_gone = state.deleted;
    }
    all.reverse();
    all
}

/// Where something that goes through phases came further, or where the health or sync of any resource changed, the newest first. Of
/// what was told of it within one moment the last counts.
fn steps(states: &[StepOf], of: Steps) -> Vec<Transition> {
    let mut known: BTreeMap<ResourceKey, (Option<Health>, Option<SyncStatus>, &str)> = BTreeMap::new();
    let mut all: Vec<Transition> = Vec::new();
    for state in states {
        let (at, key) = (rows::moment(state.at), rows::key(&state.name));
        let message = if state.deleted { "gone" } else { state.step.as_deref().unwrap_or_default() };
        let health = state.health.as_deref().map(rows::health).filter(|_| !state.deleted);
        // Whether what goes through phases is in sync is told with the application.
        let sync = state.sync.as_deref().map(rows::sync).filter(|_| !state.deleted && of == Steps::OfAll);
        let before = known.insert(key.clone(), (health, sync, message));
        // What has no phase yet has not come anywhere.
        if before == Some((health, sync, message))
            || (health.is_none() && sync.is_none() && message.is_empty())
        {
            continue;
        }
        let (health_before, sync_before) = before.map_or((None, None), |(health, sync, _)| (health, sync));
        let health = health.filter(|now| health_before != Some(*now)).map(|now| (health_before, now));
        let sync = sync.filter(|now| sync_before != Some(*now)).map(|now| (sync_before, now));
        let change = Transition { at, resource: Some(key), health, sync, message: message.to_owned() };
        match all.iter_mut().rev().take_while(|one| one.at == at).find(|one| one.resource == change.resource)
        {
            Some(last) => *last = change,
            None => all.push(change),
        }
    }
    all.reverse();
    all
}

fn problems(object: &Object, at: Option<&ObjectAt>) -> Vec<Problem> {
    let seen = at.map_or(Timestamp::UNIX_EPOCH, |object| rows::moment(object.at));
    let condition = |one: &Condition| Problem {
        at: one.last_transition_time.unwrap_or(seen),
        error: one.r#type.ends_with("Error"),
        message: one.message.clone(),
        resource: Some(one.r#type.clone()),
    };
    let mut all: Vec<Problem> = object.status.conditions.iter().map(condition).collect();
    let operation = &object.status.operation_state;
    if rows::outcome(&operation.phase) == Outcome::Failed {
        let at = operation.finished_at.unwrap_or(seen);
        let failed =
            |one: &&Synced| one.status == "SyncFailed" || ["Failed", "Error"].contains(&&*one.hook_phase);
        let one = |one: &Synced| Problem {
            at,
            error: true,
            message: one.message.clone(),
            resource: Some(format!("{}/{}", one.kind, one.name)),
        };
        all.push(Problem {
            at,
            error: true,
            message: operation.message.clone(),
            resource: Some("Sync".to_owned()),
        });
        all.extend(operation.sync_result.resources.iter().filter(failed).map(one));
    }
    // What the object says itself is reported beside it once more.
    let known: HashSet<String> = all.iter().map(|one| one.message.clone()).collect();
    all.extend(errors::reported(at, seen).into_iter().filter(|one| !known.contains(&one.message)));
    all.retain(|one| !one.message.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use stages_platform_store::ResourceName;

    use super::*;

    #[test]
    fn an_end_and_another_beginning_are_told_once_each_among_the_changes_of_state() {
        let state = |at: i64, health: &str, deleted: bool| StateOf {
            at,
            health: Some(health.to_owned()),
            health_message: None,
            sync: Some("Synced".to_owned()),
            deleted,
        };
        let states = [
            state(1, "Healthy", false),
            state(2, "Healthy", true),
            state(3, "Degraded", true),
            state(4, "Healthy", false),
            state(5, "Healthy", false),
            state(6, "Healthy", true),
        ];
        let told = |begin: i64| {
            let word = |one: &Transition| match one.health {
                Some((from, to)) => {
                    format!("{} -> {} {}", from.map_or("", Health::word), to.word(), one.message)
                }
                None => one.message.clone(),
            };
            let all = transitions(&states, rows::moment(begin));
            all.iter().map(|one| (one.at.as_millisecond(), word(one).trim().to_owned())).collect::<Vec<_>>()
        };
        let of = |at: i64, what: &str| (at, what.to_owned());
        let all = [
            of(6, "deleted"),
            of(4, "-> Healthy created again"),
            of(2, "deleted"),
            of(1, "Unknown -> Healthy"),
        ];
        assert_eq!(told(0), all);
        assert_eq!(told(4), all[..2]);
    }

    #[test]
    fn folders_of_repositories_are_where_manifests_come_from_and_charts_of_registries_are_not() {
        let of = |spec: Value| {
            let object = serde_json::json!({ "spec": spec }).to_string();
            sources(&Object::of(&ObjectAt { object: Some(object), ..ObjectAt::default() }).spec)
        };
        let source = |repository: &str, path: &str, revision: &str| ManifestSource {
            repository: repository.to_owned(),
            path: path.to_owned(),
            revision: revision.to_owned(),
        };
        let own = serde_json::json!({"repoURL": "https://git/a/b", "path": "web", "targetRevision": "HEAD"});
        let chart = serde_json::json!({"repoURL": "https://charts", "chart": "web", "targetRevision": "1.2"});
        let values =
            serde_json::json!({"repoURL": "https://git/a/c", "ref": "values", "targetRevision": "main"});
        assert_eq!(of(serde_json::json!({ "source": own })), [source("https://git/a/b", "web", "")]);
        let several = serde_json::json!({ "source": own, "sources": [chart, values] });
        assert_eq!(of(several), [source("https://git/a/c", "", "main")]);
        let dry =
            serde_json::json!({"drySource": own, "syncSource": {"targetBranch": "env/prod", "path": "web"}});
        let made = [source("https://git/a/b", "web", "")];
        assert_eq!(of(serde_json::json!({ "sourceHydrator": dry })), made);
        assert_eq!(
            of(serde_json::json!({"sourceHydrator": dry, "source": chart, "sources": [values]})),
            made
        );
        assert_eq!(of(serde_json::json!({ "source": chart })), []);
        let odd = serde_json::json!({ "sources": [null, own, "odd", {"repoURL": 7}] });
        assert_eq!(of(odd), made, "what cannot be read of one takes nothing from the others");
        assert_eq!(of(serde_json::json!({})), []);
    }

    #[test]
    fn what_is_owned_stands_below_its_owner_where_that_is_there() {
        let reported = |kind: &str, name: &str, owner: &str| ResourceAt {
            name: ResourceName {
                api_version: if kind == "Pod" { "v1" } else { "apps/v1" }.to_owned(),
                kind: kind.to_owned(),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            },
            at: 1,
            health: None,
            health_message: None,
            sync: None,
            pods: None,
            owner: owner.to_owned(),
            deleted: false,
            changed: false,
        };
        let listed = |group: &str, kind: &str, namespace: &str| Entry {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
            ..Entry::default()
        };
        let all = [
            reported("Deployment", "web", "example.org/Fleet/web"),
            reported("ReplicaSet", "a", "apps/Deployment/web"),
            reported("ReplicaSet", "b", "apps/Deployment/gone"),
            reported("Pod", "a-1", "apps/ReplicaSet/a"),
            reported("Pod", "odd", "apps"),
            reported("Pod", "circle-1", "/Pod/circle-2"),
            reported("Pod", "circle-2", "/Pod/circle-1"),
            reported("Pod", "itself", "/Pod/itself"),
        ];
        let listed = [listed("apps", "Deployment", "shop"), listed("example.org", "Fleet", "")];
        let found = merge(&listed, all.to_vec());
        let told: Vec<String> = found
            .iter()
            .map(|one| match &one.parent {
                Some(owner) => format!("{} < {owner}", one.key.name),
                None => one.key.name.clone(),
            })
            .collect();
        let expected = [
            "web < example.org/Fleet//web",
            "web",
            "a-1 < apps/ReplicaSet/shop/a",
            "circle-1",
            "circle-2",
            "itself",
            "odd",
            "a < apps/Deployment/shop/web",
            "b",
        ];
        assert_eq!(told, expected);
    }
}
