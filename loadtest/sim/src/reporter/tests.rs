use super::*;

#[test]
fn samples_are_summed_by_label() {
    let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{shard=\"0\",name=\"x\"} 3\n\
                a_total{shard=\"1\",name=\"y \\\"q\\\", {z}\"} 4\nplain 2.5\nbroken{a=\"b 1\n\n";
    let metrics = Metrics::read(text);
    assert_eq!(metrics.len(), 3);
    assert_eq!(metrics.sum("a_total", &[]), 7.0);
    assert_eq!(metrics.sum("a_total", &[("shard", "1")]), 4.0);
    assert_eq!(metrics.sum("plain", &[]), 2.5);
    assert_eq!(metrics.sum("plain", &[("shard", "1")]), 0.0);
    assert_eq!(metrics.values("a_total", "name"), ["x", "y \"q\", {z}"]);
}

#[test]
fn a_missing_event_tips_the_balance() {
    let figures = Figures {
        observed: 9,
        acked: 3,
        coalesced: 1,
        filtered: 2,
        queued: 1,
        waiting: 1,
        in_flight: 1,
        ..Figures::default()
    };
    assert_eq!(figures.balance(), 0);
    assert!(!figures.idle());
    assert_eq!(Figures { observed: 10, ..figures }.balance(), 1);
    assert_eq!(Figures { parked: 1, ..figures }.balance(), -1);
    assert!(Figures { observed: 3, acked: 3, ..Figures::default() }.idle());
    assert!(!Figures { dirty: 1, ..Figures::default() }.idle());
}

#[test]
fn the_status_page_is_read() {
    let text = r#"{"ready":true,"health":"ok","ledger":{},"uptime_seconds":1.5,"circuit":{"state":"open","reason":"timeout"},
        "total":{"observed":7,"acked":7,"balance":0},"shards":[{"shard":2,"observed":7,"acked":7,"oldest_unreported_seconds":0.5}]}"#;
    let status: Status = serde_json::from_str(text).unwrap();
    assert_eq!((status.ready, status.circuit.state.as_str()), (true, "open"));
    assert_eq!((status.total.observed, status.shards[0].shard, status.shards[0].acked), (7, 2, 7));
}
