//! Compares what the product reports with what the recorded reporter posted, round by round.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::fields::{self, Field};
use super::memory::{Memory, posted_later};
use super::play::{Playback, Played, redactor, timestamp};
use super::predicates::{Scene, is_now};
use super::rules::Rules;
use loadtest_judge::diff::{Difference, diff, patch};
use loadtest_judge::view::View;
use loadtest_sim::platform::ResourceKey;
use loadtest_sim::recordings::{Case, ReportLine};

/// How the reports of a case compare.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) rounds: usize,
    pub(super) equal: usize,
    pub(super) on_purpose: usize,
    /// Reports that differ, each with where.
    pub(super) different: Vec<Unequal>,
    /// Of what both made, the fields that Git answers.
    pub(super) fields: [Field; 3],
}

impl Tally {
    pub(super) fn reports(&self) -> usize {
        self.equal + self.on_purpose + self.different.len()
    }
}

/// A report that differs and no rule says that it may.
#[derive(Debug)]
pub(super) struct Unequal {
    pub(super) round: u64,
    /// Number of the recorded report, if there is one.
    pub(super) report: Option<u64>,
    pub(super) about: ResourceKey,
    pub(super) differences: Vec<Difference>,
}

/// Compares a played case.
pub(super) fn compare(case: &Case, playback: &Playback<'_>, rules: &mut Rules) -> Tally {
    let theirs: HashMap<u64, &ReportLine> = case.reports.iter().map(|report| (report.n, report)).collect();
    let mut tally = Tally { rounds: playback.rounds.len(), ..Tally::default() };
    let mut memory = Memory::default();
    let redactor = redactor();
    for round in &playback.rounds {
        let our_now = second(round.line.t);
        // The hour was taken just before the round was noted.
        let since = second(round.line.t - 0.1);
        let ours: Vec<View> = round.reports.iter().map(open).collect();
        let newer: Vec<View> = round.newer.iter().map(open).collect();
        let posted: Vec<&ReportLine> =
            round.line.reports.iter().filter_map(|n| theirs.get(n).copied()).collect();
        let mut left: Vec<usize> = (0..ours.len()).collect();
        let mut scene = Scene {
            watched: &round.watched.object,
            deleted: round.watched.event.is_deleted(),
            now: (&since, &our_now),
            our_now: &our_now,
            ours: None,
            theirs: None,
            predecessor: None,
            newer: &newer,
            parent_unreadable: matches!(round.parent_status, Some(403 | 404)),
            silent: posted.is_empty(),
            remembered: false,
            said: false,
            unchanged: false,
            taken_up_again: false,
            redactor: &redactor,
        };
        for line in posted {
            let view = View::of(&line.data);
            let about = view.identity();
            let until = second(line.t);
            let now: (&str, &str) = (&since, &until);
            let pair = left.iter().position(|&index| ours[index].identity() == about);
            let pair = pair.map(|at| left.remove(at));
            let scene = Scene {
                now,
                ours: pair.map(|index| &ours[index]),
                theirs: Some(&view),
                predecessor: memory.predecessor(round, &about),
                said: pair.is_none() && memory.is_said(round, &view, now, &redactor),
                unchanged: pair.is_none() && memory.is_unchanged(round, &about),
                ..scene
            };
            let found = differences(&scene, rules);
            fields::count(&mut tally.fields, &scene, &found.all, &found.left);
            let is_unsent = pair.is_none() && found.on_purpose;
            count(&mut tally, found, round, Some(line.n), about.clone());
            if is_unsent {
                memory.unsent(round, &about);
            }
            let span = (since.clone(), until.clone());
            memory.posted(round, &about, (view, span));
        }
        let later = if left.is_empty() { HashSet::new() } else { posted_later(case, playback, round.line) };
        for index in left {
            let view = &ours[index];
            let about = view.identity();
            scene.ours = Some(view);
            scene.remembered = memory.is_remembered(round, &about);
            scene.taken_up_again = later.contains(&about);
            let found = differences(&scene, rules);
            count(&mut tally, found, round, None, about);
        }
        ours.iter().for_each(|view| memory.made(round, view, &our_now));
    }
    for line in &playback.lost {
        for report in line.reports.iter().filter_map(|n| theirs.get(n)) {
            let view = View::of(&report.data);
            let path = "report".to_owned();
            let differences = vec![Difference { path, ours: None, theirs: Some(view.data().clone()) }];
            let (round, report, about) = (line.n, Some(report.n), view.identity());
            tally.different.push(Unequal { round, report, about, differences });
        }
    }
    tally
}

/// What was found between two reports.
#[derive(Debug, Default)]
struct Found {
    on_purpose: bool,
    left: Vec<Difference>,
    /// Where the two differ, allowed or not.
    all: Vec<String>,
}

fn count(tally: &mut Tally, found: Found, round: &Played<'_>, report: Option<u64>, about: ResourceKey) {
    match (found.left.is_empty(), found.on_purpose) {
        (true, false) => tally.equal += 1,
        (true, true) => tally.on_purpose += 1,
        (false, _) => {
            tally.different.push(Unequal { round: round.line.n, report, about, differences: found.left });
        }
    }
}

fn differences(scene: &Scene<'_>, rules: &mut Rules) -> Found {
    let mut found = Found::default();
    let (Some(ours), Some(theirs)) = (scene.ours, scene.theirs) else {
        let whole = |view: Option<&View>| view.map(|view| view.data().clone());
        let (ours, theirs) = (whole(scene.ours), whole(scene.theirs));
        if rules.allow("report", ours.as_ref(), theirs.as_ref(), scene) {
            found.on_purpose = true;
        } else {
            found.left.push(Difference { path: "report".to_owned(), ours, theirs });
        }
        return found;
    };
    let mut all = Vec::new();
    diff("", Some(ours.data()), Some(theirs.data()), &mut all);
    all.retain(|difference| !is_same_now(difference, scene) && !is_same_yaml(difference));
    found.all = all.iter().map(|difference| difference.path.clone()).collect();
    for root in ["object", "source.actualManifest", "source.desiredManifest", "source.appLabels", ""] {
        let (mine, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|difference| !root.is_empty() && is_below(&difference.path, root));
        all = others;
        if root.is_empty() {
            for difference in std::mem::take(&mut all) {
                settle(&mut found, difference, scene, rules);
            }
            break;
        }
        let mut patched = ours.at(root).cloned();
        let mut rest = Vec::new();
        for difference in mine {
            if rules.allow(&difference.path, difference.ours.as_ref(), difference.theirs.as_ref(), scene) {
                found.on_purpose = true;
                if let Some(patched) = &mut patched {
                    patch(patched, root, &difference);
                }
            } else {
                rest.push(difference);
            }
        }
        if rest.is_empty() {
            continue;
        }
        // What no rule allows by itself may still be allowed by one for the whole.
        if rules.allow(root, patched.as_ref(), theirs.at(root), scene) {
            found.on_purpose = true;
        } else {
            found.left.extend(rest);
        }
    }
    found
}

fn settle(found: &mut Found, difference: Difference, scene: &Scene<'_>, rules: &mut Rules) {
    if rules.allow(&difference.path, difference.ours.as_ref(), difference.theirs.as_ref(), scene) {
        found.on_purpose = true;
    } else {
        found.left.push(difference);
    }
}

pub(super) fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Both say "now", each in its own hour.
fn is_same_now(difference: &Difference, scene: &Scene<'_>) -> bool {
    let (Some(Value::String(ours)), Some(Value::String(theirs))) = (&difference.ours, &difference.theirs)
    else {
        return false;
    };
    let path = difference.path.as_str();
    if path == "timestamp" {
        // The only moment with milliseconds.
        let seconds = |text: &str| text.split_once('.').map(|(seconds, _)| format!("{seconds}Z"));
        return theirs.len() == ours.len()
            && seconds(ours).as_deref() == Some(scene.our_now)
            && seconds(theirs).is_some_and(|theirs| is_now(&theirs, scene.now));
    }
    let may_be_now = path == "source.syncStartedAt"
        || path == "source.syncFinishedAt"
        || loadtest_judge::diff::is_path("errors[*].lastSeen", path);
    may_be_now && ours == scene.our_now && is_now(theirs, scene.now)
}

/// YAML made of the same manifest by another writer.
pub(super) fn is_same_yaml(difference: &Difference) -> bool {
    let (Some(Value::String(ours)), Some(Value::String(theirs))) = (&difference.ours, &difference.theirs)
    else {
        return false;
    };
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).ok().filter(|value| !value.is_null());
    difference.path == "source.gitManifest" && read(ours).is_some_and(|ours| Some(ours) == read(theirs))
}

fn open(report: &pipeline_core::Report) -> View {
    let data: Value = serde_json::from_slice(&report.body).unwrap_or_default();
    View::of(&data)
}

fn second(t: f64) -> String {
    timestamp(t).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether two plays of one case made the same reports; gives those rounds that did not.
pub(super) fn unequal_rounds(one: &Playback<'_>, other: &Playback<'_>) -> Vec<u64> {
    let mut unequal = HashSet::new();
    for (a, b) in one.rounds.iter().zip(&other.rounds) {
        let views = |played: &Played<'_>| -> Vec<View> { played.reports.iter().map(open).collect() };
        let mut others = views(b);
        let same = views(a).iter().all(|view| {
            let found = others.iter().position(|other| other == view);
            found.map(|at| others.remove(at)).is_some()
        });
        // With its states a resource that is not in sync is looked at for drift, whatever its entry says.
        let drifts = |view: &View| {
            let status = view.at("source").and_then(|source| source.get("syncStatus"));
            status.and_then(Value::as_str) == Some("OutOfSync")
        };
        if !same || !others.iter().all(drifts) {
            unequal.insert(a.line.n);
        }
    }
    let mut unequal: Vec<_> = unequal.into_iter().collect();
    unequal.sort_unstable();
    unequal
}
