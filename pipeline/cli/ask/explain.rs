//! `gitops-runtime explain`: what happened to one object last, and why.

use std::process::ExitCode;

use pipeline_core::Timestamp;
use pipeline_http::admin::wire::{AckedState, Counted, Explained, Parked, Standing, Step};

use super::client::Reporter;
use super::print;
use super::sentence::sentence;
use super::show::{ago, between, count, property_table, span, table, word};

/// Asks the reporter, and prints what it explains.
pub(super) async fn run(reporter: &Reporter, app: &str, json: bool) -> anyhow::Result<ExitCode> {
    let key = reporter.key(app).await?;
    let answer = reporter.get_of("explain", &key).await?;
    print(&answer, json, |explained| text(explained, reporter.route()))?;
    Ok(ExitCode::SUCCESS)
}

/// The explanation as text; `route` is the one that was asked about, if one was named.
pub(super) fn text(explained: &Explained, route: Option<&str>) -> String {
    let facts = [
        (Counted::of([explained.app.as_str()]).noun(), explained.app.clone()),
        ("shard", explained.shard.to_string()),
        ("lane", explained.standing.as_ref().map_or_else(|| "not busy".to_owned(), standing)),
        (
            "acknowledged",
            explained.acknowledged.as_ref().map_or_else(|| "nothing yet".to_owned(), acknowledged),
        ),
        (
            "incomplete",
            doubt(explained, |acknowledged| acknowledged.incomplete, "lacked a fact and is looked at again"),
        ),
        (
            "in doubt",
            doubt(explained, |acknowledged| acknowledged.in_doubt, "was sent and not answered for certain"),
        ),
        ("trace", trace(explained)),
        ("parked", explained.parked.as_ref().map_or_else(|| "no".to_owned(), |it| parked(it, route))),
    ];
    let mut text = property_table(facts) + "\n";
    if explained.steps.is_empty() {
        return text
            + " no step is remembered: nothing happened since the reporter started, or it was long ago\n";
    }
    text += &events(explained);
    let mut before: Option<Timestamp> = None;
    let mut steps = Vec::new();
    for moment in &explained.steps {
        let after =
            before.map_or_else(String::new, |before| format!("+{}", span(between(before, moment.at))));
        before = Some(moment.at);
        steps.push(vec![format!("{:.3}", moment.at), after, sentence(moment)]);
    }
    text += &table(3, &["TIME", "AFTER", "WHAT"], &steps);
    text
}

/// A table of the events that the steps belong to, each with its trace id.
fn events(explained: &Explained) -> String {
    let mut events: Vec<(&str, Vec<String>)> = Vec::new();
    for moment in explained.steps.iter().filter(|moment| moment.version > 0) {
        let state = match &moment.step {
            Step::Acked { seconds } => format!("acknowledged in {}", span(*seconds)),
            Step::Filtered { .. } => "filtered".to_owned(),
            Step::Coalesced { .. } => "folded".to_owned(),
            Step::Parked { .. } => "parked".to_owned(),
            Step::Retried { .. } => "waits".to_owned(),
            Step::Observed | Step::Limited { .. } | Step::Reading => "in line".to_owned(),
            _ => "under way".to_owned(),
        };
        let trace = moment.trace.as_str();
        let row = vec![trace.to_owned(), moment.version.to_string(), state];
        match events.iter_mut().find(|(known, _)| *known == trace) {
            Some((_, known)) => *known = row,
            None => events.push((trace, row)),
        }
    }
    let rows: Vec<Vec<String>> = events.into_iter().map(|(_, row)| row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(3, &["TRACE", "RESOURCEVERSION", "EVENT"], &rows) + "\n",
    }
}

fn standing(standing: &Standing) -> String {
    let mut text = standing.state.clone();
    if standing.events > 0 {
        text += &format!(", {}", count(standing.events as u64, "event"));
    }
    if standing.dirty {
        text += ", to be read again";
    }
    if standing.failures > 0 {
        text +=
            &format!(", {} so far", count(standing.failures.into(), "failed try").replace("trys", "tries"));
    }
    text += match standing.blame.as_deref() {
        Some("source") => " because of the cluster",
        Some("enrich") => " because of Argo CD",
        Some("sink") => " because of the sink",
        _ => "",
    };
    if let Some(due) = standing.due_seconds {
        text += &format!(", goes on in {}", span(due));
    }
    if let Some(unreported) = standing.unreported_seconds {
        text += &format!(", unreported for {}", span(unreported));
    }
    if let Some(after) = standing.refetch_seconds {
        text += &format!(", looked at again in {}", span(after));
    }
    text
}

fn acknowledged(acknowledged: &AckedState) -> String {
    let at = match acknowledged.at {
        Some(at) => format!(" at {at} ({})", ago(at)),
        None => String::new(),
    };
    let part = if acknowledged.complete { "" } else { ", in part" };
    format!(
        "resourceVersion {}{part}{at}: {} of its own; {}",
        acknowledged.version,
        count(acknowledged.own_reports, "report"),
        count(acknowledged.resources, "resource"),
    )
}

/// How many entities are in a state, by a count of the acknowledged state.
fn doubt(explained: &Explained, of: impl Fn(&AckedState) -> u64, what: &str) -> String {
    match explained.acknowledged.as_ref().map_or(0, of) {
        0 => "nothing".to_owned(),
        number => format!("{} whose last report {what}", count(number, "object")),
    }
}

/// The trace id of the event that the last step belongs to.
fn trace(explained: &Explained) -> String {
    let mut traced = explained.steps.iter().map(|moment| &moment.trace);
    let last = traced.rfind(|trace| trace.contains(|digit| digit != '0'));
    last.map_or_else(|| "none".to_owned(), |trace| format!("{trace}, of the last event; --json tells all"))
}

fn parked(parked: &Parked, route: Option<&str>) -> String {
    let route = route.map_or_else(String::new, |route| format!(" --route {route}"));
    format!(
        "resourceVersion {} was refused at {:.3} ({}): {}; gitops-runtime parked show {}{route}",
        parked.version,
        parked.at,
        ago(parked.at),
        word(&parked.reason),
        parked.app,
    )
}
