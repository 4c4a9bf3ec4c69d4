use super::*;

const NOW: Duration = Duration::from_secs(100);
const DOWN: SinkResponse = SinkResponse::Failed { reason: Reason::Unreachable, after: None };
const TRIED_AGAIN: Verdict = Verdict::Retry { reason: Reason::Unreachable, after: None };

fn key(number: u32) -> Key {
    Key::new("ns", &format!("app-{number}")).unwrap()
}

fn fail(circuit: &mut Circuit, objects: std::ops::Range<u32>) {
    for number in objects {
        assert_eq!(circuit.answer(&key(number), DOWN, None, NOW, 0), TRIED_AGAIN);
    }
}

fn open(after: u64, reason: Reason) -> CircuitState {
    CircuitState::Open { until: NOW + Duration::from_millis(after), reason }
}

#[test]
fn opens_after_enough_objects_in_a_row() {
    let mut circuit = Circuit::new(Config::default());
    for number in 0..4 {
        assert_eq!(circuit.answer(&key(number), DOWN, None, NOW, 0), TRIED_AGAIN);
        assert_eq!(circuit.state(), CircuitState::Closed);
    }
    circuit.answer(&key(4), DOWN, None, NOW, 0);
    assert_eq!(circuit.state(), open(500, Reason::Unreachable));
}

#[test]
fn one_failing_object_never_opens_it() {
    let mut circuit = Circuit::new(Config::default());
    for _ in 0..100 {
        circuit.answer(&key(1), DOWN, None, NOW, 0);
    }
    assert_eq!(circuit.state(), CircuitState::Closed);
}

#[test]
fn an_answer_between_starts_the_count_anew() {
    let mut circuit = Circuit::new(Config::default());
    let followed = SinkResponse::Failed { reason: Reason::Refused, after: None };
    for between in [SinkResponse::Accepted, SinkResponse::Refused { reason: Reason::Refused }, followed] {
        fail(&mut circuit, 0..4);
        circuit.answer(&key(9), between, None, NOW, 0);
        assert_eq!(circuit.state(), CircuitState::Closed);
    }
}

#[test]
fn being_refused_as_a_whole_opens_it_at_once_and_parks_nothing() {
    for (reason, parks_later) in [
        (Reason::Unauthorized, false),
        (Reason::Forbidden, false),
        (Reason::NotFound, true),
        (Reason::Redirect, true),
        (Reason::Tls, true),
    ] {
        let again = Verdict::Retry { reason, after: None };
        let later = if parks_later { Verdict::Reject { reason } } else { again };
        let mut circuit = Circuit::new(Config::default());
        let refused = SinkResponse::Refused { reason };
        assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), again, "{reason:?}");
        assert_eq!(circuit.state(), open(500, reason));
        circuit.answer(&key(1), SinkResponse::Accepted, None, NOW, 0);
        assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), later, "{reason:?} after a success");
    }
    let mut circuit = Circuit::new(Config::default());
    let reason = Reason::TooLarge;
    let refused = SinkResponse::Refused { reason };
    assert_eq!(circuit.answer(&key(1), refused, None, NOW, 0), Verdict::Reject { reason });
    assert_eq!(circuit.state(), CircuitState::Closed);
}

#[test]
fn one_probe_at_a_time_and_longer_waits_between() {
    let mut circuit = Circuit::new(Config::default());
    fail(&mut circuit, 0..5);
    let mut now = NOW;
    for half in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        let wait = Duration::from_millis(half);
        assert_eq!(circuit.try_probe(now + wait - Duration::from_millis(1)), None);
        now += wait;
        let probe = circuit.try_probe(now);
        assert!(probe.is_some());
        assert_eq!(circuit.try_probe(now), None, "only one");
        assert_eq!(circuit.may_send(probe), Ok(()));
        assert_eq!(circuit.may_send(None), Err(Reason::Unreachable));
        circuit.answer(&key(7), DOWN, None, now, 0);
        assert!(matches!(circuit.state(), CircuitState::Probing { .. }), "an old failure is not the probe's");
        circuit.answer(&key(1), DOWN, probe, now, 0);
    }
    now += Duration::from_secs(15);
    let probe = circuit.try_probe(now);
    circuit.answer(&key(1), SinkResponse::Accepted, probe, now, 0);
    assert_eq!(circuit.state(), CircuitState::Closed);
    fail(&mut circuit, 0..5);
    assert_eq!(circuit.state(), open(500, Reason::Unreachable), "the wait starts anew");
}

#[test]
fn a_probe_without_an_answer_is_given_back() {
    let mut circuit = Circuit::new(Config::default());
    circuit.answer(&key(1), SinkResponse::Refused { reason: Reason::NotFound }, None, NOW, 0);
    let later = NOW + Duration::from_secs(1);
    let first = circuit.try_probe(later).unwrap();
    circuit.probe_over(first, later);
    let second = circuit.try_probe(later).unwrap();
    circuit.probe_over(first, later);
    assert_eq!(circuit.may_send(Some(second)), Ok(()), "an old right gives no other's back");
    circuit.answer(&key(1), SinkResponse::Accepted, Some(second), later, 0);
    circuit.probe_over(second, later);
    assert_eq!(circuit.state(), CircuitState::Closed);
}

#[test]
fn what_was_on_its_way_closes_it_but_does_not_prolong_it() {
    let mut circuit = Circuit::new(Config::default());
    fail(&mut circuit, 0..5);
    circuit.answer(&key(9), DOWN, None, NOW + Duration::from_secs(1), 0);
    assert_eq!(circuit.state(), open(500, Reason::Unreachable));
    circuit.answer(&key(9), SinkResponse::Accepted, None, NOW, 0);
    assert_eq!(circuit.state(), CircuitState::Closed);
}

#[test]
fn the_sinks_retry_after_is_honoured() {
    let mut circuit = Circuit::new(Config { failures: 1, ..Config::default() });
    let busy = SinkResponse::Failed { reason: Reason::RateLimited, after: Some(Duration::from_secs(20)) };
    circuit.answer(&key(1), busy, None, NOW, 0);
    assert_eq!(circuit.state(), open(20_000, Reason::RateLimited));
}

const DENIED: SinkResponse = SinkResponse::Refused { reason: Reason::Unauthorized };

/// Two objects are refused: the second as a probe, half a second after [`NOW`].
fn refused() -> Circuit {
    let mut circuit = Circuit::new(Config::default());
    circuit.answer(&key(1), DENIED, None, NOW, 0);
    assert_eq!(circuit.state(), open(500, Reason::Unauthorized));
    let soon = NOW + Duration::from_millis(500);
    let probe = circuit.try_probe(soon);
    circuit.answer(&key(2), DENIED, probe, soon, 0);
    assert_eq!(circuit.state(), open(150_500, Reason::Unauthorized));
    circuit
}

#[test]
fn a_refused_token_is_probed_after_minutes_however_often_it_is_refused() {
    let mut circuit = refused();
    let mut now = NOW + Duration::from_millis(500);
    for _ in 0..5 {
        now += Duration::from_secs(150);
        assert_eq!(circuit.try_probe(now - Duration::from_millis(1)), None);
        let probe = circuit.try_probe(now);
        circuit.answer(&key(1), DENIED, probe, now, 0);
    }
    let until = now + Duration::from_secs(150);
    assert_eq!(circuit.state(), CircuitState::Open { until, reason: Reason::Unauthorized });
}

#[test]
fn one_object_that_is_forbidden_does_not_stop_the_others_for_minutes() {
    let forbidden = SinkResponse::Refused { reason: Reason::Forbidden };
    let mut circuit = Circuit::new(Config::default());
    let mut now = NOW;
    for wait in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        let probe = circuit.try_probe(now);
        circuit.answer(&key(1), forbidden, probe, now, 0);
        now += Duration::from_millis(wait);
        assert_eq!(circuit.state(), CircuitState::Open { until: now, reason: Reason::Forbidden });
    }
    let probe = circuit.try_probe(now);
    circuit.answer(&key(2), SinkResponse::Accepted, probe, now, 0);
    circuit.answer(&key(1), forbidden, None, now, 0);
    circuit.answer(&key(2), SinkResponse::Accepted, None, now, 0);
    circuit.answer(&key(3), forbidden, None, NOW, 0);
    assert_eq!(circuit.state(), open(500, Reason::Forbidden), "an answer between starts the count anew");
}

#[test]
fn a_changed_token_is_probed_at_once() {
    let mut circuit = refused();
    let later = NOW + Duration::from_secs(1);
    assert_eq!(circuit.try_probe(later), None);
    circuit.hasten(later);
    assert_eq!(circuit.state(), CircuitState::Open { until: later, reason: Reason::Unauthorized });
    let probe = circuit.try_probe(later);
    circuit.answer(&key(1), SinkResponse::Accepted, probe, later, 0);
    assert_eq!(circuit.state(), CircuitState::Closed);
}

#[test]
fn what_was_sent_with_the_token_before_the_change_does_not_stop_the_sink_for_minutes() {
    let mut circuit = Circuit::new(Config::default());
    circuit.hasten(NOW);
    assert_eq!(circuit.state(), CircuitState::Closed, "nothing is open: nothing changes");
    circuit.answer(&key(1), DENIED, None, NOW, 0);
    circuit.answer(&key(2), DENIED, None, NOW, 0);
    let mut now = NOW + Duration::from_millis(500);
    for wait in [1000, 500] {
        let probe = circuit.try_probe(now);
        if wait == 500 {
            circuit.hasten(now);
            assert!(matches!(circuit.state(), CircuitState::Probing { .. }), "the probe goes on");
        }
        circuit.answer(&key(3), DENIED, probe, now, 0);
        now += Duration::from_millis(wait);
        assert_eq!(circuit.state(), CircuitState::Open { until: now, reason: Reason::Unauthorized });
    }
    now += CHANGING;
    let probe = circuit.try_probe(now);
    circuit.answer(&key(1), DENIED, probe, now, 0);
    let until = now + Duration::from_secs(150);
    assert_eq!(
        circuit.state(),
        CircuitState::Open { until, reason: Reason::Unauthorized },
        "the new one is wrong"
    );
}

#[test]
fn a_hastened_circuit_is_never_probed_later_than_it_was_due() {
    let mut circuit = Circuit::new(Config::default());
    fail(&mut circuit, 0..5);
    circuit.hasten(NOW + Duration::from_secs(9));
    assert_eq!(circuit.state(), open(500, Reason::Unreachable));
}
