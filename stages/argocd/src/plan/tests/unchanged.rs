//! What is told of an object that is not read again is what deciding in full would tell.

use pipeline_core::{EntityRow, Filtered, Settled};

use super::*;
use crate::plan::unchanged;

fn known_of(object: &Value) -> Record {
    let (enriched, _) = run(&event(object), None, healthy);
    remember(None, &enriched).unwrap()
}

/// A refresh that found the same.
fn refreshed(object: &Value) -> Event {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = json!("12");
    object["status"]["reconciledAt"] = json!("2026-11-21T12:02:00Z");
    event(&object)
}

/// What was found when the object was read in full, and what that came to, if it needed nothing.
fn in_full(event: &Event, known: &Record) -> (super::super::Facts, Option<Enriched>) {
    let (settings, redactor) = (settings(RawManifests::Absent), Redactor::new(b"test"));
    let (attempt, mut found) = (attempt(Duration::ZERO), None);
    let begun =
        FetchPlan::begin_noting(event, Some(known), &attempt, &settings, &redactor, &mut found).unwrap();
    let done = match begun {
        Begun::Done(enriched) => Some(enriched),
        Begun::Go(_) => None,
    };
    (found.unwrap(), done)
}

#[test]
fn a_refresh_that_found_the_same_is_unchanged() {
    let known = known_of(&store());
    let event = refreshed(&store());
    let (found, done) = in_full(&event, &known);
    assert_eq!(done.as_ref().unwrap().filtered, Some(Filtered::Unchanged));
    assert_eq!(unchanged(&event, Some(&known), found, || false), done);
    // And a state that is older than what was acknowledged.
    let known = Record { version: Version(20), ..known };
    let done = in_full(&event, &known).1;
    assert_eq!(done.as_ref().unwrap().filtered, Some(Filtered::Stale));
    assert_eq!(unchanged(&event, Some(&known), found, || false), done);
}

#[test]
fn where_a_tree_tells_of_health_it_is_asked_for_unless_it_was_just_before() {
    let mut object = store();
    object["status"]["resourceHealthSource"] = json!("appTree");
    let known = known_of(&object);
    let event = refreshed(&object);
    let (found, done) = in_full(&event, &known);
    assert_eq!(done, None);
    assert_eq!(unchanged(&event, Some(&known), found, || false), None);
    let skipped = |fetch: &Fetch| match fetch {
        Fetch::ResourceTree { paced: true, .. } => Response::Skipped,
        other => healthy(other),
    };
    let (full, _) = run(&event, Some(&known), skipped);
    let quick = unchanged(&event, Some(&known), found, || true).unwrap();
    assert_eq!((quick.filtered, quick.refetch), (full.filtered, full.refetch));
    assert!(quick.reports.is_empty() && full.reports.is_empty());
}

#[test]
fn what_must_be_looked_at_is_decided_in_full() {
    let known = known_of(&store());
    let event = refreshed(&store());
    let (found, _) = in_full(&event, &known);
    let told = |event: &Event, known: Option<&Record>| unchanged(event, known, found, || true).is_some();
    let own = |change: fn(&mut EntityRow)| {
        let mut record = known.clone();
        change(record.object_mut());
        record
    };
    assert!(told(&event, Some(&known)));
    assert!(!told(&event, None), "nothing was acknowledged");
    assert!(!told(&event, Some(&Record { uid: "u0".into(), ..known.clone() })), "another life");
    assert!(!told(&event, Some(&own(|own| own.in_doubt = true))), "not sure");
    assert!(
        !told(&event, Some(&Record { settled: Settled::Never, ..known.clone() })),
        "a delivery that was cut off"
    );
    let incomplete = own(|own| own.incomplete = true);
    assert!(!told(&Event { cause: Cause::Refetch, ..event.clone() }, Some(&incomplete)), "incomplete");
    assert!(!told(&deleted(&store()), Some(&known)), "deleted");
    let ended = Event { coalesced: vec![super::decide::failed()], ..event.clone() };
    assert!(!told(&ended, Some(&known)), "an operation's end is still to be told");
    let other = Record { settled: Settled::Before, ..known };
    assert!(!told(&event, Some(&other)), "another content");
}
