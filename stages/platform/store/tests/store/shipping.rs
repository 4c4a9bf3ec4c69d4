//! The four figures of deployments: over 30 generated days whose answers are known, and as a second, slow reading of the same
//! history finds them.

use std::time::Duration;

use stages_platform_store::{
    Commit, Delivery, Figures, Report, Retention, Selection, Shipped, Transition, View,
};

use crate::contract::retained;
use crate::support::{KEEP_ALL, Opened, digest, operation, report};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// 2026-10-01, 00:00 UTC.
const BEGIN: i64 = 1_790_812_800_000;
const DAYS: i64 = 30;
const APPLICATIONS: usize = 5;

/// What a deployment that was generated leads to.
struct Planned {
    lead: Option<i64>,
    failed: bool,
    restored_after: Option<i64>,
    succeeded: bool,
}

/// Of a deployment: its end, its lead time, since when it failed, and when that was over.
type Found = (i64, Option<i64>, Option<i64>, Option<i64>);

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % u64::try_from(most).unwrap()).unwrap()
    }
}

/// Writes the history of one application, a state after another.
struct Writer {
    name: String,
    version: i64,
    reports: Vec<Report>,
}

impl Writer {
    fn state(&mut self, at: i64, health: &str) -> &mut Report {
        self.version += 1;
        let mut one = report(&format!("uid-{}", self.name), self.version, at);
        one.entity.app_name.clone_from(&self.name);
        one.health = Some(health.to_owned());
        self.reports.push(one);
        self.reports.last_mut().unwrap()
    }

    fn operation(
        &mut self,
        (begin, end): (i64, Option<i64>),
        phase: &str,
        health: &str,
        revision: &str,
        committed: i64,
    ) {
        let at = end.unwrap_or(begin);
        let one = self.state(at, health);
        let mut done = operation(begin, end, phase).unwrap();
        revision.clone_into(&mut done.revision);
        one.operation = Some(done);
        let date = jiff::Timestamp::from_millisecond(committed).unwrap().to_string();
        one.commit = Commit { date, ..Commit::default() };
    }
}

fn plan(writer: &mut Writer, numbers: &mut Numbers) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    let (mut at, mut deployed) = (BEGIN + numbers.below(6 * HOUR), 0);
    writer.state(BEGIN - HOUR, "Healthy");
    // A failed operation is over with the next that succeeds: this many wait for it, each since its end.
    let mut waiting: Vec<(usize, i64)> = Vec::new();
    while at < BEGIN + DAYS * DAY - 4 * HOUR {
        let end = at + MINUTE + numbers.below(10 * MINUTE);
        // Every fifth brings what was there before: it is no change, and has no lead time.
        let again = deployed > 0 && numbers.below(5) == 0;
        if !again {
            deployed += 1;
        }
        let committed = at - MINUTE - numbers.below(20 * HOUR);
        let revision = format!("{}-{deployed}", writer.name);
        let is_first = !writer.reports.iter().any(|one| {
            one.operation.as_ref().is_some_and(|done| done.revision == revision && done.phase == "Succeeded")
        });
        writer.operation((at, None), "Running", "Progressing", &revision, committed);
        let kind = numbers.below(10);
        let index = planned.len();
        if kind == 0 {
            writer.operation(
                (at, Some(end)),
                if numbers.below(2) == 0 { "Failed" } else { "Error" },
                "Healthy",
                &revision,
                committed,
            );
            planned.push(Planned { lead: None, failed: true, restored_after: None, succeeded: false });
            waiting.push((index, end));
            // The revision that failed comes again as a new one.
            deployed += 1;
        } else {
            writer.operation((at, Some(end)), "Succeeded", "Healthy", &revision, committed);
            for (index, since) in waiting.drain(..) {
                planned[index].restored_after = Some(end - since);
            }
            let lead = is_first.then_some(end - committed);
            let mut one = Planned { lead, failed: false, restored_after: None, succeeded: true };
            match kind {
                // Degraded within the hour, told twice, and healthy again.
                1 | 2 => {
                    let (hurt, lasts) = (end + 1 + numbers.below(HOUR - 1), MINUTE + numbers.below(HOUR));
                    writer.state(hurt, "Degraded");
                    writer.state(hurt + MINUTE / 2, "Degraded");
                    writer.state(hurt + lasts, "Healthy");
                    (one.failed, one.restored_after) = (true, Some(lasts));
                }
                // Degraded later than the hour: by something else.
                3 => {
                    writer.state(end + HOUR + 1, "Degraded");
                    writer.state(end + HOUR + MINUTE, "Healthy");
                }
                _ => {}
            }
            planned.push(one);
        }
        at = end + 3 * HOUR + numbers.below(12 * HOUR);
    }
    planned
}

fn middle(mut all: Vec<i64>) -> Option<i64> {
    all.sort_unstable();
    match all.len() {
        0 => None,
        many if many % 2 == 1 => Some(all[many / 2]),
        many => Some(all[many / 2 - 1] + (all[many / 2] - all[many / 2 - 1]) / 2),
    }
}

/// The states of an application alone, the oldest first.
async fn states(opened: &Opened, name: &str) -> Vec<Transition> {
    let mut all = Vec::new();
    let mut before = i64::MAX;
    loop {
        let page = opened.store.timeline(opened.runtime.id, ("argocd", name), before, 200).await.unwrap();
        let Some(last) = page.last() else { break };
        before = last.id;
        all.extend(page.into_iter().filter(|one| one.resource.is_none()));
    }
    all.sort_by_key(|one| (one.at, one.id));
    all
}

/// Looks through everything, once for each deployment.
fn slowly(writer: &Writer, states: &[Transition]) -> Vec<Found> {
    let ended: Vec<_> = writer
        .reports
        .iter()
        .filter_map(|one| {
            let done = one.operation.as_ref()?;
            Some((
                done.started_at,
                done.finished_at?,
                &*done.phase,
                &*done.revision,
                one.commit.date.parse::<jiff::Timestamp>().unwrap().as_millisecond(),
            ))
        })
        .collect();
    let mut found = Vec::new();
    for (begin, end, phase, revision, committed) in &ended {
        let later: Vec<_> = ended.iter().filter(|other| other.0 > *begin).collect();
        let is_first =
            !ended.iter().any(|other| other.0 < *begin && other.3 == *revision && other.2 == "Succeeded");
        let lead = (*phase == "Succeeded" && is_first && end >= committed).then(|| end - committed);
        let (mut failed, mut restored) = (None, None);
        if *phase == "Succeeded" {
            let mut was = "";
            for state in states {
                let health = state.health.as_deref().unwrap_or_default();
                let within = state.at > *begin
                    && state.at <= end + HOUR
                    && later.iter().all(|other| state.at < other.0);
                if failed.is_none() && within && health == "Degraded" && was != "Degraded" {
                    failed = Some(state.at);
                }
                if restored.is_none() && failed.is_some_and(|failed| state.at > failed) && health == "Healthy"
                {
                    restored = Some(state.at);
                }
                was = health;
            }
        } else {
            failed = Some(*end);
            restored = later.iter().filter(|other| other.2 == "Succeeded").map(|other| other.1).min();
        }
        found.push((*end, lead, failed, restored));
    }
    found
}

pub(crate) async fn figures_are_what_was_generated_and_what_a_slow_reading_finds(opened: Opened) {
    let (mut numbers, mut planned, mut writers) = (Numbers(7), Vec::new(), Vec::new());
    for index in 0..APPLICATIONS {
        let mut writer = Writer { name: format!("app{index}"), version: 0, reports: Vec::new() };
        planned.extend(plan(&mut writer, &mut numbers));
        for (nth, some) in writer.reports.chunks(200).enumerate() {
            let delivery = |(place, report): (usize, &Report)| {
                let key = digest(&format!("{index} {nth} {place}"));
                Delivery {
                    runtime: opened.runtime.id,
                    key,
                    keyed: true,
                    epoch: None,
                    era: 0,
                    report: report.clone(),
                }
            };
            opened.store.keep(some.iter().enumerate().map(delivery).collect()).await.unwrap();
        }
        writers.push(writer);
    }
    assert!(planned.len() > 150, "{} deployments", planned.len());
    let all = Selection::default();
    let within = (BEGIN, BEGIN + DAYS * DAY);
    let shipped = opened.store.shipped(&View::ALL, &all, within).await.unwrap();
    let figures = Figures::of(&shipped);

    // As it was generated.
    let count = |is: fn(&Planned) -> bool| planned.iter().filter(|one| is(one)).count() as u64;
    let known = Figures {
        ended: planned.len() as u64,
        succeeded: count(|one| one.succeeded),
        lead_time: middle(planned.iter().filter_map(|one| one.lead).collect()),
        failed: count(|one| one.failed),
        time_to_restore: middle(planned.iter().filter_map(|one| one.restored_after).collect()),
        open: count(|one| one.failed && one.restored_after.is_none()),
    };
    assert_eq!(figures, known);
    assert!(known.failed > 20 && known.lead_time.is_some() && known.time_to_restore.is_some());

    // As a slow reading finds it, deployment by deployment.
    let mut slow = Vec::new();
    for writer in &writers {
        let states = states(&opened, &writer.name).await;
        slow.extend(slowly(writer, &states));
    }
    slow.sort_unstable();
    let row = |one: &Shipped| (one.finished_at, one.lead_time(), one.failed_at, one.restored_at);
    let mut fast: Vec<_> = shipped.iter().map(row).collect();
    fast.sort_unstable();
    assert_eq!(fast, slow);

    // Half of the time, a runtime of which nothing is seen, and one application alone.
    let half = opened.store.shipped(&View::ALL, &all, (BEGIN, BEGIN + 15 * DAY)).await.unwrap();
    assert_eq!(half.len(), slow.iter().filter(|one| one.0 < BEGIN + 15 * DAY).count());
    assert!(opened.store.shipped(&View::of_runtime("other"), &all, within).await.unwrap().is_empty());
    opened.close().await;
}

/// Argo CD deploys what an application had before when it syncs again, heals, or rolls back, however long after: that is no change,
/// and the age of its commit is no time that anybody waited for it.
pub(crate) async fn what_was_deployed_before_the_time_that_is_kept_is_no_change_when_it_comes_again(
    opened: Opened,
) {
    let now = jiff::Timestamp::now().as_millisecond();
    let mut writer = Writer { name: "shop".to_owned(), version: 0, reports: Vec::new() };
    let deployed = |writer: &mut Writer, begin: i64, phase: &str, revision: &str| {
        writer.operation((begin, Some(begin + MINUTE)), phase, "Healthy", revision, begin - HOUR);
    };
    // Thirteen that succeeded, each of which failed at first, before the 30 days that are kept.
    let before = |number: i64| now - (50 - number) * DAY;
    for number in 0..13 {
        deployed(&mut writer, before(number) - HOUR, "Failed", &format!("r{number}"));
        deployed(&mut writer, before(number), "Succeeded", &format!("r{number}"));
    }
    for one in std::mem::take(&mut writer.reports) {
        opened.keep(one).await;
    }
    let started = async || {
        let all = opened.store.deployments(opened.runtime.id, ("argocd", "shop")).await.unwrap();
        all.iter().map(|one| one.started_at).collect::<Vec<_>>()
    };
    let goes = opened.store.older_than(30, now).await.unwrap();
    let history = Duration::from_secs(30 * 86_400);
    let retention = Retention { history, keys: history, ..KEEP_ALL };
    retained(&opened, retention, async || started().await.len() <= 10).await;
    assert_eq!(started().await, (3..13).rev().map(before).collect::<Vec<_>>(), "what Argo CD rolls back to");
    assert_eq!(goes.deployments, 16, "what was said to go is what went");
    for (hours, revision) in [(4, "r12"), (3, "r3"), (2, "new")] {
        // A commit is no younger for that.
        let committed = if revision == "new" { now - 3 * HOUR } else { before(0) };
        let begin = now - hours * HOUR;
        writer.operation((begin, Some(begin + MINUTE)), "Succeeded", "Healthy", revision, committed);
    }
    for one in writer.reports {
        opened.keep(one).await;
    }
    let within = (now - DAY, now);
    let shipped = opened.store.shipped(&View::ALL, &Selection::default(), within).await.unwrap();
    let told: Vec<_> = shipped.iter().map(|one| (&*one.revision, one.lead_time())).collect();
    assert_eq!(told, [("new", Some(HOUR + MINUTE)), ("r3", None), ("r12", None)]);
    opened.close().await;
}
