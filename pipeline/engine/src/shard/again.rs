//! What a watch that goes on where a former process ended shows again, and a route is done with.

use std::sync::Arc;

use pipeline_core::{Event, Record, Settled, Version};

use crate::lane::Input;

/// What a lane is given of an event that the watch of its own process shows, where the ledger knows `known` of the object and
/// that all up to `done` is done.
pub(crate) fn input(event: Arc<Event>, known: Option<&Record>, done: Option<Version>) -> Input {
    // What led to a state that went out goes along with that, which is shown as well.
    let doubts = |known: &Record| known.uid == event.uid && known.is_in_doubt() && event.version < known.sent;
    if is_done_with(&event, known, done) {
        Input::PassedOver(event)
    } else if known.is_some_and(|known| is_untold(&event, known)) {
        Input::Redelivered(event)
    } else if event.again && !event.is_deleted() && known.is_some_and(doubts) {
        Input::InDoubt(event)
    } else {
        Input::Event(event)
    }
}

/// Whether a route, of which its ledger knows `known` of the object and that all up to `done` is done, is done with an event that
/// is shown again: it was done with before the former process ended, or a state as new as that was acknowledged as a whole, or
/// something of a later life.
///
/// Something of what was acknowledged may be in doubt, or incomplete: that is for the newest state, which is shown as well and
/// is not shown again. An end of what the route still knows is told in any case: it may have been refused for good. And of a fact
/// that led to what was acknowledged it is not known that it was told, where a read had shown that before the watch.
fn is_done_with(event: &Event, known: Option<&Record>, done: Option<Version>) -> bool {
    let Event { uid, version, again: true, .. } = event else { return false };
    if version.0 == 0 {
        return false;
    }
    let (known, later) = match known {
        Some(known) if known.uid == *uid => (Some(known), false),
        other => (None, other.is_some_and(|other| *version < other.version)),
    };
    let acknowledged = known.is_some_and(|known| {
        known.settled != Settled::Never && *version <= known.version && !is_untold(event, known)
    });
    let untold_end = event.is_deleted() && known.is_some();
    acknowledged || later || (!untold_end && done.is_some_and(|done| *version <= done))
}

/// Whether an event shows a fact of before the state that was acknowledged, which no watch of the former process had shown.
fn is_untold(event: &Event, known: &Record) -> bool {
    let before = known.settled != Settled::Never && known.uid == event.uid && event.version < known.version;
    let fact = event.fact.as_ref().is_some_and(|fact| !known.reported_last(fact));
    event.again && before && fact && !known.was_watched(event.version)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pipeline_core::{Change, Digest, Fact, Key, Timestamp};

    use super::*;
    use crate::shard::attempt::is_stale;

    fn event(version: u64, deleted: bool) -> Event {
        let body = Bytes::from_static(b"{}");
        let key = Key::of_kind("rollout", "shop", "web").unwrap();
        let change = if deleted { Change::Deleted { body: Some(body) } } else { Change::Applied { body } };
        let event = Event::watched(key, "u".into(), Version(version), change, Timestamp::UNIX_EPOCH);
        Event { again: true, ..event }
    }

    fn known(uid: &str, version: u64, settled: Settled) -> Record {
        Record { version: Version(version), settled, ..Record::new(uid.into()) }
    }

    fn is_done(event: &Event, known: Option<&Record>, done: u64) -> bool {
        is_done_with(event, known, Some(Version(done)).filter(|done| done.0 > 0))
    }

    #[test]
    fn a_route_is_done_with_what_it_acknowledged_whatever_another_lacks() {
        let state = |version| event(version, false);
        for settled in [Settled::Now, Settled::Before] {
            let known = known("u", 20, settled);
            assert!(is_done(&state(20), Some(&known), 10) && is_done(&state(12), Some(&known), 10));
            assert!(!is_done(&state(21), Some(&known), 10));
            assert!(is_done(&state(21), Some(&known), 30), "what it did not report, it left out");
        }
        for not_yet in [known("former", 11, Settled::Now), known("u", 20, Settled::Never)] {
            assert!(!is_done(&state(12), Some(&not_yet), 10) && is_done(&state(10), Some(&not_yet), 10));
        }
        assert!(is_done(&state(10), None, 10) && !is_done(&state(11), None, 10));
        assert!(!is_done(&state(10), None, 0), "a route that is new");
    }

    #[test]
    fn a_state_that_is_shown_again_waits_for_the_one_that_went_out_while_that_is_not_known_to_have_arrived() {
        let mut doubted = Record { sent: Version(26), ..known("u", 20, Settled::Now) };
        doubted.doubt();
        let of = |event: Event, known: &Record| input(event.into(), Some(known), Some(Version(10)));
        let Input::InDoubt(waits) = of(event(25, false), &doubted) else {
            panic!("it may be older than that")
        };
        assert_eq!(waits.version, Version(25));
        let taken = |event: Event, known: &Record| matches!(of(event, known), Input::Event(_));
        let newest = Event { again: false, ..event(30, false) };
        assert!(
            taken(newest, &doubted) && taken(event(26, false), &doubted) && taken(event(25, true), &doubted)
        );
        assert!(taken(event(25, false), &known("u", 20, Settled::Now)), "there is no doubt");
        let mut former = Record { uid: "former".into(), ..doubted.clone() };
        former.doubt();
        assert!(taken(event(25, false), &former), "of another life");
        assert!(matches!(of(event(20, false), &doubted), Input::PassedOver(_)), "it was acknowledged");
    }

    #[test]
    fn a_fact_that_led_to_what_a_read_showed_first_is_told_with_the_newest_state() {
        let led = Fact { id: Digest(8), body: Bytes::new() };
        let last = Fact { id: Digest(9), body: Bytes::new() };
        let shows = |version, fact: &Fact| Event { fact: Some(fact.clone()), ..event(version, false) };
        let ahead = Record { watched: Some(Version(12)), fact: last.id, ..known("u", 20, Settled::Now) };
        let of = |event: Event, known: &Record, done| input(event.into(), Some(known), Some(Version(done)));
        let is_told = |event, known: &Record| matches!(of(event, known, 10), Input::Redelivered(_));
        assert!(is_told(shows(15, &led), &ahead));
        let passed = |event, known: &Record, done| matches!(of(event, known, done), Input::PassedOver(_));
        assert!(passed(shows(12, &led), &ahead, 10), "the watch had shown it");
        assert!(passed(shows(15, &led), &ahead, 15), "it is done with");
        assert!(
            passed(shows(15, &last), &ahead, 10) && passed(event(15, false), &ahead, 10),
            "nothing is new of it"
        );
        assert!(passed(shows(20, &led), &ahead, 10), "it was acknowledged");
        let before = Record { watched: None, ..ahead };
        assert!(passed(shows(15, &led), &before, 10), "a former version wrote it");
    }

    #[test]
    fn what_is_not_shown_again_is_looked_at() {
        let known = known("u", 20, Settled::Now);
        for event in [
            Event { again: false, ..event(12, false) },
            Event { again: false, ..event(12, true) },
            event(0, false),
        ] {
            assert!(!is_done(&event, Some(&known), 30), "{event:?}");
        }
    }

    #[test]
    fn the_end_of_what_is_known_is_told_but_of_a_former_stay() {
        assert!(
            !is_done(&event(25, true), Some(&known("u", 20, Settled::Now)), 30),
            "it may have been refused"
        );
        assert!(is_done(&event(15, true), Some(&known("u", 20, Settled::Now)), 10), "it is back since");
        assert!(is_done(&event(25, true), None, 30) && !is_done(&event(25, true), None, 10));
        let later = known("later", 40, Settled::Never);
        assert!(is_done(&event(25, true), Some(&later), 10) && is_done(&event(24, false), Some(&later), 10));
    }

    #[test]
    fn what_was_done_before_the_versions_went_back_says_nothing_of_what_came_since() {
        let since = Event { version: Version(5).in_era(1), ..event(5, false) };
        assert!(!is_done(&since, Some(&known("u", 20, Settled::Now)), 30));
    }

    #[test]
    fn an_end_of_which_nothing_is_remembered_is_told_again_only_for_what_it_stands_for() {
        assert!(is_stale(&event(25, true), None), "it was told, or nothing of its life ever was");
        let stands = Event { again: false, ..event(25, true) };
        let fact = Fact { id: Digest(1), body: Bytes::new() };
        for told in [stands, Event { coalesced: vec![fact], ..event(25, true) }, event(25, false)] {
            assert!(!is_stale(&told, None), "{told:?}");
        }
        assert!(!is_stale(&event(25, true), Some(&known("u", 20, Settled::Now))));
    }
}
