//! Health at chosen times: no clock is read.

use pipeline_core::{Reason, Timestamp};
use serde_json::json;

use super::*;
use pipeline_ledger::Ledger;

const SECOND: Duration = Duration::from_secs(1);

/// Healthy at `now`: listed, two shards running, ledger open.
fn healthy(now: Instant) -> Health {
    let health = Health::new(HealthLimits::default(), [0, 3], now);
    health.note(&SourceNote::Listed { objects: 7 }, now);
    health.shard(0, true, now);
    health.shard(3, true, now);
    health.ledger(&Ledger::memory().status());
    health
}

fn check(health: &Health, at: Instant) -> (State, String) {
    let report = health.report(at);
    (report.state, report.line())
}

fn found(state: State, line: &str) -> (State, String) {
    (state, line.to_owned())
}

fn open(reason: Reason) -> CircuitState {
    CircuitState::Open { until: SECOND, reason }
}

#[test]
fn a_process_is_ready_when_it_has_listed_and_runs_and_remembers() {
    let now = Instant::now();
    let health = Health::new(HealthLimits::default(), [0, 3], now);
    let missing = || health.report(now).missing;
    assert_eq!(check(&health, now), found(State::Ok, "ok"), "a process that starts is well");
    let all = ["the first list is not complete", "not every shard runs", "the ledger is not open"];
    assert_eq!(missing(), all);
    health.note(&SourceNote::Page { objects: 100 }, now);
    assert_eq!(missing(), all);
    health.note(&SourceNote::Listed { objects: 100 }, now);
    health.shard(0, true, now);
    assert_eq!(missing(), all[1..]);
    health.shard(3, true, now);
    assert!(!health.report(now).ready);
    health.ledger(&Ledger::memory().status());
    assert!(health.report(now).ready && health.listed());
    health.shard(3, false, now);
    assert_eq!(missing(), ["not every shard runs"]);
    assert_eq!(check(&health, now), found(State::Failing, "failing: lanes: shard 3 does not run"));
}

#[test]
fn a_watch_that_does_not_move_fails_and_one_that_moves_again_does_not() {
    let now = Instant::now();
    let health = healthy(now);
    assert_eq!(check(&health, now + 300 * SECOND), found(State::Ok, "ok"));
    let silent = found(State::Failing, "failing: source: watching: nothing has moved for 301 s");
    assert_eq!(check(&health, now + 301 * SECOND), silent);
    health.note(&SourceNote::Malformed, now + 301 * SECOND);
    health.note(&SourceNote::Listing, now + 301 * SECOND);
    assert_eq!(check(&health, now + 301 * SECOND), silent, "neither is progress");
    health.note(&SourceNote::Alive, now + 302 * SECOND);
    assert_eq!(check(&health, now + 302 * SECOND), found(State::Ok, "ok"));
}

#[test]
fn a_first_list_that_never_ends_fails_unless_its_pages_come() {
    let now = Instant::now();
    let health = Health::new(HealthLimits::default(), [], now);
    health.note(&SourceNote::Page { objects: 1 }, now + 299 * SECOND);
    assert_eq!(check(&health, now + 400 * SECOND).0, State::Ok);
    assert_eq!(
        check(&health, now + 600 * SECOND),
        found(State::Failing, "failing: source: listing: nothing has moved for 301 s")
    );
}

#[test]
fn a_broken_watch_is_shown_until_it_moves() {
    let now = Instant::now();
    let health = healthy(now);
    health.note(&SourceNote::Broken(Reason::Unreachable), now + 10 * SECOND);
    health.note(&SourceNote::Broken(Reason::Timeout), now + 20 * SECOND);
    assert_eq!(
        check(&health, now + 30 * SECOND),
        found(State::Degraded, "degraded: source: watching: broken for 20 s (timeout), begun again")
    );
    health.note(&SourceNote::Alive, now + 31 * SECOND);
    assert_eq!(check(&health, now + 31 * SECOND).0, State::Ok);
}

#[test]
fn a_watch_that_goes_on_trying_never_fails_and_one_that_gives_up_does() {
    let now = Instant::now();
    for listed in [true, false] {
        let health = if listed { healthy(now) } else { Health::new(HealthLimits::default(), [], now) };
        let doing = if listed { "watching" } else { "listing" };
        for minute in 1..=60 {
            health.note(&SourceNote::Listing, now + minute * 60 * SECOND);
            health.note(&SourceNote::Broken(Reason::Forbidden), now + minute * 60 * SECOND);
        }
        let text = format!("degraded: source: {doing}: broken for 3600 s (forbidden), begun again");
        assert_eq!(check(&health, now + 3660 * SECOND), (State::Degraded, text));
        assert_eq!(check(&health, now + 3900 * SECOND).0, State::Degraded);
        let text = format!("failing: source: {doing}: nothing has moved for 3901 s");
        assert_eq!(check(&health, now + 3901 * SECOND), (State::Failing, text));
        health.note(&SourceNote::Alive, now + 3902 * SECOND);
        assert_eq!(check(&health, now + 3902 * SECOND).0, State::Ok);
    }
}

#[test]
fn a_lane_in_which_no_attempt_ends_is_stuck() {
    let now = Instant::now();
    let health = healthy(now);
    let alive = |at: Instant| health.note(&SourceNote::Alive, at);
    let busy = LaneCounts { observed: 5, acked: 2, queued: 2, in_flight: 1, ..LaneCounts::default() };
    health.lane(3, &busy, now + 10 * SECOND);
    health.lane(3, &LaneCounts { observed: 9, queued: 6, ..busy }, now + 200 * SECOND);
    alive(now + 320 * SECOND);
    assert_eq!(check(&health, now + 310 * SECOND).0, State::Ok);
    assert_eq!(
        check(&health, now + 311 * SECOND),
        found(State::Failing, "failing: lanes: shard 3: no attempt has ended for 301 s"),
        "new events are no progress"
    );
    health.lane(3, &LaneCounts { observed: 9, acked: 3, queued: 5, ..busy }, now + 312 * SECOND);
    assert_eq!(check(&health, now + 320 * SECOND).0, State::Ok);
}

#[test]
fn a_lane_that_waits_or_rests_or_is_paused_is_not_stuck() {
    let now = Instant::now();
    let later = now + 550 * SECOND;
    let waiting = LaneCounts { observed: 2, waiting: 1, queued: 1, dirty: 1, ..LaneCounts::default() };
    let paused = LaneCounts { observed: 1, queued: 1, ready: 1, paused: true, ..LaneCounts::default() };
    for counts in [LaneCounts::default(), waiting, paused] {
        let health = healthy(now);
        health.lane(0, &counts, now);
        health.note(&SourceNote::Alive, later);
        assert_eq!(check(&health, later), found(State::Ok, "ok"), "{counts:?}");
    }
}

#[test]
fn a_lane_that_was_idle_for_hours_has_its_full_time_once_work_comes() {
    let now = Instant::now();
    let health = healthy(now);
    health.lane(0, &LaneCounts::default(), now);
    let work = now + 7200 * SECOND;
    health.lane(0, &LaneCounts { observed: 1, in_flight: 1, ..LaneCounts::default() }, work - SECOND);
    health.note(&SourceNote::Alive, work);
    assert_eq!(check(&health, work), found(State::Ok, "ok"));
}

#[test]
fn an_old_change_degrades_its_lane_and_grows_older_without_a_new_snapshot() {
    let now = Instant::now();
    let health = healthy(now);
    let old = LaneCounts { observed: 1, waiting: 1, oldest: 500 * SECOND, ..LaneCounts::default() };
    health.lane(0, &old, now);
    assert_eq!(check(&health, now + 100 * SECOND).0, State::Ok);
    assert_eq!(
        check(&health, now + 101 * SECOND),
        found(State::Degraded, "degraded: lanes: shard 0: the oldest change has waited for 601 s")
    );
}

#[test]
fn an_open_circuit_degrades_and_a_failed_probe_does_not_make_it_new() {
    let now = Instant::now();
    let health = healthy(now);
    health.circuit(open(Reason::ServerError), now + SECOND);
    let probing = CircuitState::Probing { probe: 1, reason: Reason::ServerError };
    health.circuit(probing, now + 30 * SECOND);
    health.circuit(open(Reason::Timeout), now + 31 * SECOND);
    let open = found(State::Degraded, "degraded: sink: the circuit has been open for 100 s (timeout)");
    assert_eq!(check(&health, now + 101 * SECOND), open);
    health.circuit(CircuitState::Closed, now + 102 * SECOND);
    assert_eq!(check(&health, now + 102 * SECOND), found(State::Ok, "ok"));
}

#[test]
fn a_ledger_that_cannot_be_written_degrades() {
    let now = Instant::now();
    let health = healthy(now);
    let status = LedgerStatus { failing: true, waiting: 4, errors: 2, ..Ledger::memory().status() };
    health.ledger(&status);
    assert_eq!(
        check(&health, now),
        found(State::Degraded, "degraded: ledger: cannot be written: 4 records wait, 2 commits failed")
    );
}

#[test]
fn settings_that_stay_unknown_degrade_when_they_are_needed() {
    let now = Instant::now();
    let limits = HealthLimits { settings: Some(60 * SECOND), ..HealthLimits::default() };
    let health = Health::new(limits, [], now);
    assert_eq!(check(&health, now + 60 * SECOND).0, State::Ok);
    assert_eq!(
        check(&health, now + 61 * SECOND),
        found(State::Degraded, "degraded: settings: not known after 61 s")
    );
    health.settings_known();
    assert_eq!(check(&health, now + 61 * SECOND).0, State::Ok);
}

#[test]
fn the_report_says_since_when() {
    let now = Instant::now();
    let health = healthy(now);
    assert_eq!(check(&health, now).0, State::Ok);
    health.circuit(open(Reason::Unauthorized), now + 10 * SECOND);
    assert_eq!(check(&health, now + 10 * SECOND).0, State::Degraded);
    let wall: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    let json = health.report(now + 25 * SECOND).to_json(wall);
    assert_eq!((&json["state"], &json["ready"]), (&json!("degraded"), &json!(true)));
    assert_eq!(
        json["checks"][2],
        json!({
            "check": "sink", "state": "degraded", "since": "2026-11-21T09:59:45Z", "seconds": 15,
            "text": "the circuit has been open for 15 s (unauthorized)",
        })
    );
    assert_eq!(json["checks"][0]["seconds"], 25);
}

/// A replica that knows who owns what, and runs nothing.
fn replica(now: Instant) -> Health {
    let health = Health::new(HealthLimits::default(), [], now);
    health.ledger(&Ledger::memory().status());
    health.shares(true, true, now);
    health
}

#[test]
fn that_this_process_watches_is_known_before_it_is_known_who_owns_what() {
    let now = Instant::now();
    let health = Health::new(HealthLimits::default(), [], now);
    health.watches(true, now);
    health.shares(true, true, now);
    let silent = found(State::Failing, "failing: source: listing: nothing has moved for 301 s");
    assert_eq!(check(&health, now + 301 * SECOND), silent);
}

#[test]
fn that_nobody_watches_shows_soon_and_fails_later() {
    let now = Instant::now();
    let health = replica(now);
    let after = |seconds: u32| check(&health, now + seconds * SECOND);
    assert_eq!(after(100), found(State::Ok, "ok"));
    health.shares(true, false, now + 100 * SECOND);
    assert_eq!(after(115), found(State::Ok, "ok"), "another one takes the lease");
    assert_eq!(after(121), found(State::Degraded, "degraded: source: nobody has watched for 21 s"));
    assert_eq!(after(161), found(State::Failing, "failing: source: nobody has watched for 61 s"));
    // Who has it for a moment was refused it.
    health.shares(true, true, now + 162 * SECOND);
    assert_eq!(after(163).0, State::Failing);
    health.shares(true, false, now + 164 * SECOND);
    health.shares(true, true, now + 170 * SECOND);
    assert_eq!(after(179), found(State::Failing, "failing: source: nobody has watched for 79 s"));
    assert_eq!(after(180), found(State::Ok, "ok"));
}

#[test]
fn a_shard_that_cannot_be_claimed_shows_until_it_is() {
    let now = Instant::now();
    let health = replica(now);
    let after = |seconds: u32| check(&health, now + seconds * SECOND);
    health.claims(3, now);
    assert_eq!(after(60), found(State::Ok, "ok"));
    let late = "degraded: lanes: shard 3: its part of the ledger has not been claimed for 61 s";
    assert_eq!(after(61), found(State::Degraded, late));
    health.refused(3, ClaimRefusal::Version);
    let refused = "degraded: lanes: shard 3 cannot be claimed: a newer version wrote its part of the ledger";
    assert_eq!(after(61), found(State::Degraded, refused));
    health.refused(7, ClaimRefusal::Version);
    health.refused(1, ClaimRefusal::Sharding);
    let refused = "degraded: lanes: shard 1, and 2 others cannot be claimed: its part of the ledger was written with \
                   another sharding";
    assert_eq!(after(62), found(State::Degraded, refused));
    [1, 3, 7].into_iter().for_each(|shard| health.claimed(shard));
    assert_eq!(after(62), found(State::Ok, "ok"));
}

#[test]
fn what_waits_for_the_bus_is_no_failure_and_has_its_full_time_afterwards() {
    let now = Instant::now();
    let health =
        Health::new(HealthLimits { settings: Some(SECOND * 60), ..HealthLimits::default() }, [0], now);
    health.bus(Link::Joining, now);
    let waits =
        "degraded: bus: not ready for 1000 s, as the log says: nothing is watched or reported before it is";
    assert_eq!(check(&health, now + 1_000 * SECOND), found(State::Degraded, waits));
    assert_eq!(health.report(now).missing[0], "the bus is not ready yet");
    health.bus(Link::Whole, now + 1_000 * SECOND);
    assert_eq!(check(&health, now + 1_050 * SECOND), found(State::Ok, "ok"));
    health.note(&SourceNote::Listed { objects: 0 }, now + 1_050 * SECOND);
    health.shard(0, true, now + 1_050 * SECOND);
    health.settings_known();
    health.lane(0, &LaneCounts { in_flight: 1, ..LaneCounts::default() }, now + 1_050 * SECOND);

    health.bus(Link::Away, now + 1_060 * SECOND);
    health.note(&SourceNote::Alive, now + 1_500 * SECOND);
    let away = "degraded: bus: no connection for 440 s, tried again";
    assert_eq!(check(&health, now + 1_500 * SECOND), found(State::Degraded, away));
    assert_eq!(health.report(now).missing[0], "the bus does not answer");
    health.bus(Link::Whole, now + 1_500 * SECOND);
    assert_eq!(check(&health, now + 1_650 * SECOND), found(State::Ok, "ok"), "a lane has time to go on");
    assert_eq!(check(&health, now + 1_801 * SECOND).0, State::Failing);
}

#[test]
fn a_replica_whose_bus_is_away_does_not_fail_for_a_watch_that_nobody_can_know_of() {
    let now = Instant::now();
    let health = replica(now);
    health.bus(Link::Whole, now);
    health.bus(Link::Away, now);
    health.shares(true, false, now + 10 * SECOND);
    assert_eq!(
        check(&health, now + 900 * SECOND),
        found(State::Degraded, "degraded: bus: no connection for 900 s, tried again")
    );
    health.bus(Link::Whole, now + 900 * SECOND);
    assert_eq!(check(&health, now + 915 * SECOND), found(State::Ok, "ok"));
    health.shares(false, false, now + 915 * SECOND);
    assert_eq!(
        check(&health, now + 961 * SECOND),
        found(State::Degraded, "degraded: source: it is not known who watches")
    );
}
