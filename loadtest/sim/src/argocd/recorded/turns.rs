//! What the recorded reporter was answered, by the turn in which it asked.
//!
//! takes: cases in which the product's own reporter was recorded - gives: for a call that is made while an event is
//! replayed, the answer that the recorded reporter had in its turn of that event - calls: nothing - fails: never; it
//! has no answer where the recorded reporter had none, neither then nor before
//!
//! A turn is what a reporter does for one watch event of an application: it asks, reports the application, then its
//! resources; the next event's turn comes after that. So a report that shows an event's resourceVersion ends the asking
//! of its turn, and the last report before it ends the turn before. What was asked later within a turn was a second
//! look at the same state, and is answered to a second look. The time at which the observer saw an event counts only
//! where the event was not reported: a reporter may be late, and an observer too.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::Uri;
use bytes::Bytes;

use super::Reply;
use crate::argocd::ask::{Ask, Asked};
use crate::platform::{Parsed, parse};
use crate::recordings::{CallLine, Case};

/// Calls of one turn follow each other within so many seconds.
const PAUSE: f64 = 1.0;
/// So many seconds later than the reporter the observer may see an event.
const LATE: f64 = 0.25;

/// One turn; times are Unix seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    /// When its event was seen.
    seen: f64,
    /// When it was taken up, as far as that is known.
    taken_up: f64,
    /// From when on calls are its own.
    begin: f64,
    /// When its first report was taken, if the application was reported.
    reported: Option<f64>,
    /// Its event is a deletion.
    deleted: bool,
}

/// One watch event.
#[derive(Debug, Clone, Copy)]
struct ObjectIndex {
    t: f64,
    version: u64,
    deleted: bool,
}

/// When the reporter asked about one application, and when it was answered.
type Span = (f64, f64);

/// When one application and its resources were reported.
#[derive(Debug, Default)]
struct Posts {
    /// All reports, in order.
    all: Vec<f64>,
    /// The first report of each state of the application itself.
    first: HashMap<u64, f64>,
}

/// The turns of the recorded reporter.
#[derive(Debug)]
pub(super) struct Turns {
    apps: HashMap<String, Vec<Turn>>,
    replies: HashMap<String, HashMap<Ask, Vec<Reply>>>,
    /// Applications that were read as somebody's parent: they are asked about in turns of others too.
    parents: HashSet<String>,
    now: Mutex<Now>,
}

/// How far the replay is.
#[derive(Debug, Default)]
struct Now {
    /// Whose event was replayed last.
    whose: String,
    /// What was asked about an application since its last event.
    asked: HashMap<String, HashMap<Ask, usize>>,
}

impl Turns {
    /// Finds the turns of the reporter that was recorded in `cases`.
    pub(super) fn of(cases: &[Case]) -> Self {
        let mut seen: HashMap<String, Vec<ObjectIndex>> = HashMap::new();
        let mut spans: HashMap<String, Vec<Span>> = HashMap::new();
        let mut replies: HashMap<String, HashMap<Ask, Vec<Reply>>> = HashMap::new();
        let mut posts: HashMap<String, Posts> = HashMap::new();
        let mut parents = HashSet::new();
        for case in cases {
            for line in &case.watch {
                let (name, version) = super::head_of(line.object.get());
                let deleted = line.kind == "DELETED";
                seen.entry(name).or_default().push(ObjectIndex { t: line.t, version, deleted });
            }
            for (call, application, ask) in calls(case) {
                let Some(body) = case.answer(call) else { continue };
                if ask == Ask::Application {
                    parents.insert(application.clone());
                }
                spans.entry(application.clone()).or_default().push((call.t, call.t + call.ms / 1_000.0));
                let body = Bytes::copy_from_slice(body.get().as_bytes());
                let reply = Reply { t: call.t, status: call.status, body };
                replies.entry(application).or_default().entry(ask).or_default().push(reply);
            }
            for line in &case.reports {
                let Some(report) = parse(&line.data.to_string()) else { continue };
                note(posts.entry(report.entity.app_name.clone()).or_default(), line.t, &report);
            }
        }
        for replies in replies.values_mut().flat_map(HashMap::values_mut) {
            replies.sort_by(|left, right| left.t.total_cmp(&right.t));
        }
        let turns = |(name, seen): (String, Vec<ObjectIndex>)| {
            let mut spans = spans.remove(&name).unwrap_or_default();
            spans.sort_by(|left, right| left.0.total_cmp(&right.0));
            let mut posts = posts.remove(&name).unwrap_or_default();
            posts.all.sort_by(f64::total_cmp);
            let turns = turns(&seen, &spans, &posts);
            (name, turns)
        };
        let apps = seen.into_iter().map(turns).collect();
        Self { apps, replies, parents, now: Mutex::default() }
    }

    /// The next event of an application is about to be replayed.
    pub(super) fn advance(&self, application: &str) {
        let mut now = self.now();
        application.clone_into(&mut now.whose);
        now.asked.remove(application);
    }

    /// The answer to a call about an application of which so many events were replayed.
    pub(super) fn answer(
        &self,
        application: &str,
        ask: &Ask,
        position: impl Fn(&str) -> usize,
    ) -> Option<&Reply> {
        let (whose, nth) = {
            let mut now = self.now();
            let asked = now.asked.entry(application.to_owned()).or_default();
            let asked = asked.entry(ask.clone()).or_default();
            let nth = *asked;
            *asked += 1;
            (now.whose.clone(), nth)
        };
        let all = self.replies.get(application)?.get(ask)?;
        let others = whose != application && self.parents.contains(application);
        if *ask == Ask::Application || others {
            // Asked on behalf of a child: what its turn knew, which may be newer than the parent's own.
            let until =
                self.turn(&whose, position(&whose)).map(|(turn, end)| turn.reported.unwrap_or(end))?;
            return all.get(..all.partition_point(|reply| reply.t <= until))?.last();
        }
        let (turn, end) = self.turn(application, position(application))?;
        let inside = inside(all, turn, end);
        if let Some(last) = inside.len().checked_sub(1) {
            let own = own(inside, turn);
            return inside.get((own.saturating_sub(1) + nth).min(last));
        }
        if turn.deleted {
            return None;
        }
        // It did not ask: what it knew from before is what it went by.
        let since = self.life(application, position(application));
        all.get(..all.partition_point(|reply| reply.t < turn.begin))?.last().filter(|reply| reply.t >= since)
    }

    /// Whether the recorded reporter read the tree more often in the turn that is replayed than was asked for now.
    pub(super) fn lacks_tree(&self, application: &str, position: usize) -> bool {
        let Some((turn, end)) = self.turn(application, position) else { return false };
        let all = self.replies.get(application).and_then(|replies| replies.get(&Ask::ResourceTree));
        let inside = all.map_or(&[][..], |all| inside(all, turn, end));
        let wanted = inside.len() - own(inside, turn).saturating_sub(1);
        let now = self.now();
        let asked = now.asked.get(application).and_then(|asked| asked.get(&Ask::ResourceTree));
        asked.copied().unwrap_or_default() < wanted
    }

    /// When an event was taken up, where that matters: an event of a parent counts from when it came.
    pub(super) fn taken_up(&self, application: &str, event: usize) -> Option<f64> {
        if self.parents.is_empty() {
            return None;
        }
        let turn = self.apps.get(application)?.get(event)?;
        Some(if self.parents.contains(application) { turn.seen } else { turn.taken_up })
    }

    /// A turn and when the next one began.
    fn turn(&self, application: &str, position: usize) -> Option<(&Turn, f64)> {
        let turns = self.apps.get(application)?;
        let turn = turns.get(position.checked_sub(1)?)?;
        Some((turn, turns.get(position).map_or(f64::INFINITY, |next| next.begin)))
    }

    /// When an application of this name was last deleted before.
    fn life(&self, application: &str, position: usize) -> f64 {
        let before = self.apps.get(application).and_then(|turns| turns.get(..position));
        let deleted = before.into_iter().flatten().rfind(|turn| turn.deleted);
        deleted.map_or(f64::NEG_INFINITY, |turn| turn.begin)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answered calls of the recorded reporter.
fn calls(case: &Case) -> impl Iterator<Item = (&CallLine, String, Ask)> {
    case.calls.iter().filter(|call| call.by == "reporter" && call.status != 0).filter_map(|call| {
        match Asked::read(&call.path.parse::<Uri>().ok()?, "") {
            Asked::About { application, ask } => Some((call, application, ask)),
            _ => None,
        }
    })
}

fn note(posts: &mut Posts, t: f64, report: &Parsed) {
    posts.all.push(t);
    if let (None, Some(version)) = (&report.entity.resource, report.version) {
        posts.first.entry(version).and_modify(|first| *first = first.min(t)).or_insert(t);
    }
}

/// The turns of one application; everything is in order of time.
fn turns(seen: &[ObjectIndex], calls: &[Span], posts: &Posts) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut reported_before = f64::NEG_INFINITY;
    for event in seen {
        let reported = posts.first.get(&event.version).copied();
        let floor = last_before(&posts.all, reported.unwrap_or(event.t));
        let asked = reported.and_then(|at| first_of_burst(calls, floor, at));
        let begin = match (asked, reported) {
            (Some(asked), _) => asked,
            (None, Some(at)) => at.min(event.t.max(floor)),
            (None, None) => (event.t - LATE).max(floor).max(reported_before),
        };
        // A turn that asks nothing is as short as its report.
        let taken_up = asked.or(reported).unwrap_or(event.t);
        let (begin, taken_up) = match turns.last() {
            None => (f64::NEG_INFINITY, taken_up),
            Some(before) => (begin.max(before.begin), taken_up.max(before.taken_up)),
        };
        reported_before = reported.map_or(reported_before, |at| at.max(reported_before));
        turns.push(Turn { seen: event.t, taken_up, begin, reported, deleted: event.deleted });
    }
    turns
}

/// When the first of the calls began that lead to a report at `at` without a pause, and came after `floor`.
fn first_of_burst(calls: &[Span], floor: f64, at: f64) -> Option<f64> {
    let from = calls.partition_point(|(begin, _)| *begin <= floor);
    let to = calls.partition_point(|(begin, _)| *begin <= at);
    let mut burst = calls.get(from..to)?.iter().rev();
    let (mut first, _) = *burst.next()?;
    for (begin, end) in burst {
        if first - end > PAUSE {
            break;
        }
        first = *begin;
    }
    Some(first)
}

fn last_before(all: &[f64], at: f64) -> f64 {
    let before = all.get(..all.partition_point(|t| *t < at)).and_then(<[f64]>::last);
    before.copied().unwrap_or(f64::NEG_INFINITY)
}

/// The answers of one turn.
fn inside<'a>(all: &'a [Reply], turn: &Turn, end: f64) -> &'a [Reply] {
    let from = all.partition_point(|reply| reply.t < turn.begin);
    let to = all.partition_point(|reply| reply.t < end);
    all.get(from..to).unwrap_or_default()
}

/// How many of them came before its report: tries of one call, of which the last was used.
fn own(inside: &[Reply], turn: &Turn) -> usize {
    turn.reported.map_or(0, |at| inside.partition_point(|reply| reply.t <= at))
}

#[cfg(test)]
mod tests;
