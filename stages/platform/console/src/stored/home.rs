//! What needs somebody, each with its reason in a sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use stages_platform_store::{DAY, DayOfDeployments, Drifting, FleetNeed, Store, StoreError, View};

use super::drifted::{Comparison, Comparisons};
use super::remembered::Remembered;
use super::shipping::is_kept;
use super::{drifted, rows};
use crate::page::pieces::{first_line, name, number, short};
use crate::time::lasting;
use crate::view::deployment::Outcome;
use crate::view::home::{Activity, Day, Home, Need, Said, Subject};
use crate::view::runtime::RuntimeRow;
use crate::view::state::{Health, SyncStatus};

/// Rows of what needs somebody.
const NEEDS: u32 = 30;
const DAYS: u32 = 28;
/// Days within which it is told how often something drifted.
const WEEK: i64 = 7;
/// Rows of applications that move.
const MOVERS: u32 = 8;
/// Rows of clusters.
const CLUSTERS: u32 = 8;

pub(super) async fn read(
    store: &Store,
    view: &View,
    now: Timestamp,
    activities: &Remembered<Activity>,
    comparisons: &Comparisons,
) -> Result<Home, StoreError> {
    let runtimes: Vec<_> =
        store.runtimes(view).await?.into_iter().map(|one| rows::runtime(one, now)).collect();
    let (found, all) = store.needs(view, NEEDS).await?;
    let silent: Vec<Need> = runtimes.iter().filter_map(|one| silence(one, now)).collect();
    let troubled: Vec<Need> = runtimes.iter().filter_map(|one| trouble(one, now)).collect();
    let needs_total = all + (silent.len() + troubled.len()) as u64;
    let mut drifting = drifting(store, &found, now, comparisons).await?;
    // A runtime that says nothing hides what else there may be. One that is in trouble comes before what can wait, and after
    // what users feel.
    let (mut needs, found) = (
        silent,
        found.into_iter().map(|one| {
            let (drifting, comparison) = drifting.remove(&one.id).unwrap_or_default();
            need(one, (&drifting, &comparison))
        }),
    );
    let (waits, urgent): (Vec<Need>, Vec<Need>) =
        found.partition(|one| matches!(one.subject, Subject::OutOfSync(..) | Subject::Unknown(..)));
    needs.extend(urgent.into_iter().chain(troubled).chain(waits));
    let days = days(store, view, now).await?;
    let applications = runtimes.iter().map(|one| one.applications).sum();
    let activity = activity(store, view, now, activities).await?;
    let (clusters, clusters_total) = store.clusters(view, CLUSTERS).await?;
    let clusters = clusters.into_iter().map(|one| rows::cluster(one, &runtimes)).collect();
    Ok(Home { needs, needs_total, applications, runtimes, days, activity, clusters, clusters_total })
}

/// A runtime whose reporter is silent.
fn silence(one: &RuntimeRow, now: Timestamp) -> Option<Need> {
    let since = one.heard.filter(|_| one.silent)?;
    let lasts = lasting(since, now);
    let reason = match one.applications {
        1 => format!("Its reporter was not heard of for {lasts}; 1 application is shown as it was then"),
        count => format!(
            "Its reporter was not heard of for {lasts}; {} applications are shown as they were then",
            number(count)
        ),
    };
    Some(Need { subject: Subject::Silent(one.name.clone()), reason: vec![Said::Text(reason)], since })
}

/// How those drift that are out of sync, and what differed the last time.
async fn drifting(
    store: &Store,
    found: &[FleetNeed],
    now: Timestamp,
    comparisons: &Comparisons,
) -> Result<BTreeMap<i64, (Drifting, Arc<Comparison>)>, StoreError> {
    let week = now.checked_sub(SignedDuration::from_hours(24 * WEEK)).unwrap_or(Timestamp::UNIX_EPOCH);
    let out: Vec<i64> =
        found.iter().filter(|one| one.application.sync == "OutOfSync").map(|one| one.id).collect();
    let mut drifting = BTreeMap::new();
    for (id, one) in store.drifting(&out, week.as_millisecond()).await? {
        let manifests = one.last.as_ref().map(|last| &last.manifests);
        let comparison = match manifests {
            Some(manifests) => {
                comparisons.of(manifests, async |manifests| store.drift_manifests(manifests).await).await?
            }
            None => Arc::default(),
        };
        drifting.insert(id, (one, comparison));
    }
    Ok(drifting)
}

/// How many deployments there were on each of the last days.
async fn days(store: &Store, view: &View, now: Timestamp) -> Result<Vec<Day>, StoreError> {
    let today = now.as_millisecond().div_euclid(DAY) * DAY;
    let first = rows::moment(today - (i64::from(DAYS) - 1) * DAY);
    let days = store.deployments_by_day(view, first.as_millisecond(), DAYS).await?;
    let day = |(index, day): (i64, DayOfDeployments)| Day {
        from: first.checked_add(SignedDuration::from_hours(24 * index)).unwrap_or(first),
        succeeded: day.succeeded,
        failed: day.failed,
    };
    Ok((0_i64..).zip(days).map(day).collect())
}

/// What moved in the last days, against as many before.
async fn activity(
    store: &Store,
    view: &View,
    now: Timestamp,
    remembered: &Remembered<Activity>,
) -> Result<Activity, StoreError> {
    if let Some(known) = remembered.get(view, now) {
        return Ok(known);
    }
    let end = now.as_millisecond();
    let begin = end - i64::from(DAYS) * DAY;
    let all = |days: &[DayOfDeployments]| days.iter().map(|day| day.succeeded + day.failed).sum();
    let deployments = all(&store.deployments_by_day(view, begin, DAYS).await?);
    let before = match is_kept(store, 2 * DAYS).await? {
        true => Some(all(&store.deployments_by_day(view, begin - (end - begin), DAYS).await?)),
        false => None,
    };
    let movers = store.movers(view, (begin, end), MOVERS).await?;
    let activity = Activity { deployments, before, movers };
    remembered.keep(view, now, activity.clone());
    Ok(activity)
}

/// What a runtime says is wrong with it, unless that is old: a silent one is told of as such.
fn trouble(runtime: &RuntimeRow, now: Timestamp) -> Option<Need> {
    let errors: Vec<_> = runtime.problems.iter().filter(|one| one.error).collect();
    let first = errors.first().filter(|_| !runtime.silent)?;
    let more = match errors.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let reason = format!("{}: {}{more}", first.title, first_line(&first.message));
    let since = first.since.or(first.seen).unwrap_or(now);
    Some(Need { subject: Subject::Troubled(runtime.name.clone()), reason: vec![Said::Text(reason)], since })
}

/// For how long stands beside the reason, which is another only where something happened.
fn need(found: FleetNeed, (drifting, comparison): (&Drifting, &Comparison)) -> Need {
    let (health_since, sync_since) = (rows::moment(found.health_since), rows::moment(found.sync_since));
    let phase_at = rows::moment(found.phase_at);
    let row = rows::application(found.application);
    let place = match row.environment.as_str() {
        "" => row.id.runtime.clone(),
        environment => format!("{environment} · {}", row.id.runtime),
    };
    let failed = rows::outcome(&found.phase) == Outcome::Failed;
    let state = row.health.word();
    let unhealthy = matches!(state, "Degraded" | "Missing");
    if failed && state != "Degraded" {
        let reason = match first_line(&found.phase_message) {
            "" => "Sync failed".to_owned(),
            why => format!("Sync failed: {why}"),
        };
        let reason = vec![Said::Text(reason)];
        return Need { subject: Subject::SyncFailed(row.id, place), reason, since: phase_at };
    }
    if unhealthy {
        let why = first_line(&found.health_message);
        let of = row.change.as_ref().filter(|_| row.deployed.is_some_and(|at| at <= health_since));
        let mut reason = vec![Said::text(state)];
        if let Some(change) = of {
            reason.push(Said::text(" after "));
            reason.push(Said::Code(short(&change.revision)));
            reason.push(Said::Text(format!(" by {}", author(&change.author))));
        }
        if !why.is_empty() {
            reason.push(Said::Text(format!(": {why}")));
        }
        return Need { subject: Subject::Unhealthy(row.id, place, row.health), reason, since: health_since };
    }
    if row.sync != SyncStatus::OutOfSync && (row.health == Health::Unknown || row.sync == SyncStatus::Unknown)
    {
        let (of, since) = match row.health {
            Health::Unknown => ("How it is", health_since),
            _ => ("Whether it is as Git says", sync_since),
        };
        let reason = vec![Said::Text(format!("{of} is not known to Argo CD"))];
        return Need { subject: Subject::Unknown(row.id, place), reason, since };
    }
    let reason = drifted::sentence(drifting, comparison);
    Need { subject: Subject::OutOfSync(row.id, place), reason, since: sync_since }
}

/// Without the address behind it.
fn author(author: &str) -> &str {
    match name(author) {
        "" => "somebody",
        name => name,
    }
}
