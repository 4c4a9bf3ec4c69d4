//! What a scrape shows: every series from the start, few of them, and numbers that agree with each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pipeline_core::{Call, Key, KindState};

use super::*;
use pipeline_ledger::Ledger;

const PEER: Peer = Peer::new("argocd");
const CALL: Call = Call::new(PEER, "manifests");
const SENT: Call = Call::new(Peer::PLATFORM, "report");
const STAGES: [Labels; 2] = [
    Labels {
        peer: PEER,
        calls: &[CALL, Call::new(PEER, "settings")],
        caches: true,
        limits: true,
        kinds: &[
            ReportKind::of_object("app"),
            ReportKind::of_object("child_app"),
            ReportKind::of_listed("resource"),
        ],
        filtered: &[Filtered::Of("reconciled_only")],
    },
    Labels::of_calls(Peer::PLATFORM, &[SENT]),
];

fn metrics(owned: u32) -> Metrics {
    Metrics::new(&MetricsConfig { stages: STAGES.into(), ..MetricsConfig::new(0..owned, "1.2.3") })
}

/// Series of a scrape: name and labels to value.
fn scrape(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = metrics.render();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, n)| (name.to_owned(), n.parse().unwrap()))
        .collect()
}

fn value(metrics: &Metrics, series: &str) -> f64 {
    *scrape(metrics).get(series).unwrap_or_else(|| panic!("no series {series}"))
}

/// Everything that can happen, once.
fn exercise(metrics: &Metrics) {
    for why in Filtered::COMMON.into_iter().chain(STAGES[0].filtered.iter().copied()) {
        metrics.filtered(why);
    }
    for kind in STAGES[0].kinds {
        ReportResult::ALL.into_iter().for_each(|result| metrics.report(*kind, result));
    }
    for reason in Reason::ALL.iter().copied() {
        metrics.retried(reason);
        metrics.parked(reason);
        metrics.note(&SourceNote::Broken(reason));
    }
    for note in [
        SourceNote::Listing,
        SourceNote::Page { objects: 1 },
        SourceNote::Listed { objects: 2 },
        SourceNote::Alive,
        SourceNote::Malformed,
    ] {
        metrics.note(&note);
    }
    metrics.acknowledged(Duration::from_millis(30));
    metrics.ledger(&Ledger::memory().status());
    metrics.circuit(CircuitState::Open { until: Duration::ZERO, reason: Reason::Timeout });
}

#[test]
fn how_each_kind_stands_is_shown_once_it_is_known() {
    let metrics = metrics(1);
    let note = |kind, state| metrics.note(&SourceNote::Kind { kind, state });
    note("rollout", KindState::Watched { objects: 2 });
    note("workflow", KindState::Absent);
    note("job", KindState::Unreadable);
    metrics.note(&SourceNote::Gap { kind: "rollout" });
    for (kind, shown) in
        [("rollout", [0.0, 2.0, 1.0]), ("workflow", [1.0, 0.0, 0.0]), ("job", [2.0, 0.0, 0.0])]
    {
        let families = ["kind_state", "kind_objects", "watch_gaps_total"];
        let found =
            families.map(|family| value(&metrics, &format!("gitops_runtime_{family}{{kind=\"{kind}\"}}")));
        assert_eq!(found, shown, "{kind}");
    }
    note("workflow", KindState::Watched { objects: 7 });
    assert_eq!(value(&metrics, "gitops_runtime_kind_state{kind=\"workflow\"}"), 0.0, "it was installed");
    note("workflow", KindState::Unreadable);
    assert_eq!(value(&metrics, "gitops_runtime_kind_objects{kind=\"workflow\"}"), 7.0);
    metrics.note(&SourceNote::Ended);
    let left: Vec<String> =
        scrape(&metrics).into_keys().filter(|series| series.contains("kind=\"workflow\"")).collect();
    assert_eq!(left, ["gitops_runtime_watch_gaps_total{kind=\"workflow\"}"]);
}

#[test]
fn series_are_few_and_all_there_from_the_start() {
    for (owned, limit) in [(1, 250), (5, 270), (8, 300), (32, 250)] {
        let metrics = metrics(owned);
        let at_start: Vec<String> = scrape(&metrics).into_keys().collect();
        assert!(at_start.len() < limit, "{} series with {owned} shards", at_start.len());
        exercise(&metrics);
        (0..owned).for_each(|shard| metrics.lane(shard, &LaneCounts::default()));
        for call in STAGES.iter().flat_map(|stage| stage.calls) {
            for outcome in [Outcome::Ok, Outcome::Failed(Reason::Timeout)] {
                metrics.record(Sample { call: *call, outcome, took: Duration::ZERO });
            }
        }
        let later: Vec<String> = scrape(&metrics).into_keys().collect();
        assert_eq!(later, at_start);
    }
}

#[test]
fn only_the_version_and_ages_are_not_zero_at_the_start() {
    for (series, value) in scrape(&metrics(5)) {
        let moving = ["build_info", "shards", "uptime", "silent", "process_"];
        assert!(value == 0.0 || moving.iter().any(|name| series.contains(name)), "{series} {value}");
    }
}

#[test]
fn what_is_counted_is_shown() {
    let metrics = metrics(2);
    exercise(&metrics);
    for (series, expected) in [
        ("filtered_total{reason=\"stale\"}", 1.0),
        ("reports_total{kind=\"child_app\",result=\"rejected\"}", 1.0),
        ("retries_total{reason=\"rate_limited\"}", 1.0),
        ("parked_total{reason=\"refused\"}", 1.0),
        ("report_latency_seconds_bucket{le=\"0.025\"}", 0.0),
        ("report_latency_seconds_bucket{le=\"0.05\"}", 1.0),
        ("watch_restarts_total", 16.0),
        ("malformed_objects_total", 1.0),
        ("listed_objects", 2.0),
        ("lists_total", 1.0),
        ("circuit_state", 2.0),
        ("build_info{version=\"1.2.3\"}", 1.0),
    ] {
        assert_eq!(value(&metrics, &format!("gitops_runtime_{series}")), expected, "{series}");
    }
    assert!(value(&metrics, "process_resident_memory_bytes") > 1e6);
}

#[test]
fn processor_time_is_that_of_the_process() {
    let metrics = metrics(1);
    let began = Instant::now();
    let cpu = || value(&metrics, "process_cpu_seconds_total");
    let before = cpu();
    let mut busy = cpu();
    while busy < before + 0.05 && began.elapsed() < Duration::from_secs(60) {
        busy = cpu();
    }
    assert!(busy >= before + 0.05, "{before} s, and {busy} s after work");
}

#[test]
fn owned_shards_stand_beside_those_of_all_processes() {
    for (config, shards, owned) in [
        (MetricsConfig::new([0, 1, 2], "1"), 3.0, 3.0),
        (MetricsConfig { shards: 5, ..MetricsConfig::new([3], "1") }, 5.0, 1.0),
    ] {
        let metrics = Metrics::new(&config);
        assert_eq!(value(&metrics, "gitops_runtime_shards"), shards);
        assert_eq!(value(&metrics, "gitops_runtime_shards_owned"), owned);
    }
}

#[test]
fn calls_are_counted_by_peer_call_and_outcome() {
    let metrics = metrics(1);
    let sample = |call, outcome| Sample { call, outcome, took: Duration::from_millis(50) };
    metrics.record(sample(CALL, Outcome::Ok));
    metrics.record(sample(CALL, Outcome::Cached));
    metrics.record(sample(CALL, Outcome::Failed(Reason::TooLarge)));
    metrics.record(sample(Call::new(Peer::PLATFORM, "get"), Outcome::Ok));
    for (series, expected) in [
        ("calls_total{call=\"manifests\",outcome=\"ok\",peer=\"argocd\"}", 1.0),
        ("calls_total{call=\"manifests\",outcome=\"cached\",peer=\"argocd\"}", 1.0),
        ("calls_total{call=\"manifests\",outcome=\"failed\",peer=\"argocd\"}", 1.0),
        ("calls_total{call=\"other\",outcome=\"ok\",peer=\"platform\"}", 1.0),
        ("call_failures_total{peer=\"argocd\",reason=\"too_large\"}", 1.0),
        ("call_duration_seconds_count{peer=\"argocd\"}", 2.0),
        ("call_duration_seconds_bucket{peer=\"argocd\",le=\"0.025\"}", 0.0),
        ("call_duration_seconds_bucket{peer=\"argocd\",le=\"0.1\"}", 2.0),
    ] {
        assert_eq!(value(&metrics, &format!("gitops_runtime_{series}")), expected, "{series}");
    }
}

/// `observed` less everything an event can be, of each shard in one scrape.
fn missing(text: &BTreeMap<String, f64>, shard: &str) -> f64 {
    let of = |name: &str| text[&format!("gitops_runtime_{name}{{shard=\"{shard}\"}}")];
    let out: f64 = ["acked", "coalesced", "filtered", "parked"]
        .map(|name| of(&format!("events_{name}_total")))
        .iter()
        .sum();
    of("events_observed_total") - out - of("events_queued") - of("events_waiting") - of("events_in_flight")
}

fn step(n: u64) -> LaneCounts {
    let (acked, filtered, coalesced, parked) = (n * 3, n * 2, n, n / 7);
    let (queued, waiting, in_flight) = (n % 11, n % 5, n % 3);
    let observed = acked + filtered + coalesced + parked + queued + waiting + in_flight;
    LaneCounts {
        observed,
        acked,
        filtered,
        coalesced,
        parked,
        queued,
        waiting,
        in_flight,
        ..LaneCounts::default()
    }
}

#[test]
fn the_conservation_law_holds_in_every_scrape_while_lanes_move() {
    for (owned, shards) in [(5, vec!["0", "1", "2", "3", "4"]), (32, vec!["all"])] {
        let metrics = metrics(owned);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    (0..owned).for_each(|shard| metrics.lane(shard, &step(n)));
                }
            });
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(metrics.render());
                }
            });
            let observed = format!("gitops_runtime_events_observed_total{{shard=\"{}\"}}", shards[0]);
            while scrape(&metrics)[&observed] == 0.0 {
                std::thread::yield_now();
            }
            // Judged when the others have stopped: they would not end with a test that fails here.
            let scrapes: Vec<_> = (0..100).map(|_| scrape(&metrics)).collect();
            stop.store(true, Ordering::Relaxed);
            for text in &scrapes {
                shards.iter().for_each(|shard| assert_eq!(missing(text, shard), 0.0));
            }
        });
    }
}

#[test]
fn a_lane_that_began_anew_is_a_counter_reset() {
    let metrics = metrics(1);
    let acked = || value(&metrics, "gitops_runtime_events_acked_total{shard=\"0\"}");
    metrics.lane(0, &step(10));
    assert_eq!(acked(), 30.0);
    metrics.lane(0, &step(1));
    assert_eq!((acked(), missing(&scrape(&metrics), "0")), (3.0, 0.0));
    metrics.lane(7, &step(1));
    assert!(!metrics.render().contains("shard=\"7\""), "a shard of another process is not shown");
}

#[test]
fn an_unreported_change_grows_older_between_snapshots() {
    let metrics = metrics(1);
    let oldest = || value(&metrics, "gitops_runtime_oldest_unreported_seconds{shard=\"0\"}");
    let held =
        LaneCounts { observed: 1, waiting: 1, oldest: Duration::from_secs(60), ..LaneCounts::default() };
    metrics.lane(0, &held);
    let (first, second) = (oldest(), oldest());
    assert!(first > 60.0 && first < 100.0 && second > first, "{first} {second}");
    metrics.lane(0, &LaneCounts::default());
    assert_eq!((oldest(), oldest()), (0.0, 0.0));
}

#[test]
fn the_compatibility_family_is_off_unless_asked_for_and_bounded() {
    assert!(metrics(1).compat().is_none());
    assert!(!metrics(1).render().contains("codefresh"));

    let config = MetricsConfig { compat: true, compat_applications: 2, ..MetricsConfig::new([4], "1") };
    let metrics = Metrics::new(&config);
    let compat = metrics.compat().unwrap();
    for name in ["a", "b", "c", "d", "a"] {
        let key = Key::new("ns", name).unwrap();
        compat.enqueued(4, &key);
        compat.dropped(4, &key);
        compat.errored(4, &key);
        compat.ignored(4, &key);
        compat.processed(4, &key, Duration::from_millis(300));
    }
    metrics.lane(4, &LaneCounts { observed: 3, queued: 3, ..LaneCounts::default() });
    for (series, expected) in [
        ("queue_size{reporter_shard=\"4\"}", 3.0),
        (
            "enqueued_events_total{application=\"a\",error_in_learning_mode=\"false\",reporter_shard=\"4\"}",
            2.0,
        ),
        (
            "enqueued_events_total{application=\"other\",error_in_learning_mode=\"false\",reporter_shard=\"4\"}",
            2.0,
        ),
        (
            "dropped_events_total{application=\"b\",error_in_learning_mode=\"false\",reporter_shard=\"4\"}",
            1.0,
        ),
        (
            "errored_events_total{application=\"b\",error_type=\"unknown\",metric_event_type=\"app\",\
             reporter_shard=\"4\"}",
            1.0,
        ),
        ("cached_ignored_events{application=\"b\",metric_event_type=\"app\",reporter_shard=\"4\"}", 1.0),
        (
            "event_processing_duration_bucket{application=\"a\",metric_event_type=\"app\",\
             reporter_shard=\"4\",le=\"0.5\"}",
            2.0,
        ),
        (
            "event_processing_duration_bucket{application=\"a\",metric_event_type=\"app\",\
             reporter_shard=\"4\",le=\"0.25\"}",
            0.0,
        ),
    ] {
        assert_eq!(value(&metrics, &format!("codefresh_event_reporter_{series}")), expected, "{series}");
    }
    assert!(!metrics.render().contains("application=\"c\""));
}

#[test]
fn the_ledger_and_health_are_shown() {
    let metrics = metrics(1);
    let status = LedgerStatus {
        records: 3,
        bytes: 900,
        waiting: 2,
        commits: 5,
        errors: 1,
        file_bytes: 4096,
        in_doubt: 6,
        journal: 7,
        journal_refused: 8,
        intent_errors: 9,
        failing: true,
        last_commit_age: Some(Duration::from_secs(4)),
        ..Ledger::memory().status()
    };
    metrics.ledger(&status);
    let health = crate::health::Health::new(crate::health::HealthLimits::default(), [], Instant::now());
    health.ledger(&status);
    health.note(&SourceNote::Listed { objects: 0 }, Instant::now());
    metrics.health(&health.report(Instant::now()));
    for (series, expected) in [
        ("ledger_records", 3.0),
        ("ledger_bytes", 900.0),
        ("ledger_waiting", 2.0),
        ("ledger_commits_total", 5.0),
        ("ledger_errors_total", 1.0),
        ("ledger_failing", 1.0),
        ("ledger_file_bytes", 4096.0),
        ("ledger_in_doubt", 6.0),
        ("ledger_journal", 7.0),
        ("ledger_journal_refused_total", 8.0),
        ("ledger_flight_errors_total", 9.0),
        ("ledger_commit_age_seconds", 4.0),
        ("ready", 1.0),
        ("health_state{check=\"ledger\"}", 1.0),
        ("health_state{check=\"source\"}", 0.0),
    ] {
        assert_eq!(value(&metrics, &format!("gitops_runtime_{series}")), expected, "{series}");
    }
}

#[test]
fn what_is_asked_of_argo_cd_at_once_is_shown() {
    let metrics = metrics(1);
    let told = Pressure { peer: PEER, limit: 40, in_flight: 38, waiting: 7 };
    metrics.pressure(told);
    metrics.pressure(Pressure { in_flight: 39, ..told });
    for (wait, millis) in [(Wait::Slot, 1_500), (Wait::Slot, 500), (Wait::Budget, 250)] {
        Meter::waited(&metrics, PEER, wait, Duration::from_millis(millis));
    }
    for (series, expected) in [
        ("call_limit{peer=\"argocd\"}", 40.0),
        ("calls_in_flight{peer=\"argocd\"}", 39.0),
        ("calls_waiting{peer=\"argocd\"}", 7.0),
        ("call_wait_seconds_total{peer=\"argocd\",wait=\"slot\"}", 2.0),
        ("call_wait_seconds_total{peer=\"argocd\",wait=\"budget\"}", 0.25),
    ] {
        assert_eq!(value(&metrics, &format!("gitops_runtime_{series}")), expected, "{series}");
    }
}

#[test]
fn several_routes_stand_in_one_scrape_each_under_its_label_and_the_process_once() {
    let (first, second) = (metrics(1), metrics(1));
    second.filtered(Filtered::Unchanged);
    let text = first.render_with("default", &[("audit", &second)]);
    let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(of("gitops_runtime_build_info"), ["gitops_runtime_build_info{version=\"1.2.3\"} 1"]);
    assert_eq!(of("# TYPE gitops_runtime_circuit_state "), ["# TYPE gitops_runtime_circuit_state gauge"]);
    assert_eq!((of("process_cpu_seconds_total").len(), of("gitops_runtime_uptime_seconds").len()), (1, 1));
    let filtered: Vec<&str> =
        of("gitops_runtime_filtered_total").into_iter().filter(|line| line.contains("unchanged")).collect();
    assert_eq!(
        filtered,
        [
            "gitops_runtime_filtered_total{reason=\"unchanged\",route=\"default\"} 0",
            "gitops_runtime_filtered_total{reason=\"unchanged\",route=\"audit\"} 1",
        ]
    );
    // No family stands there twice, and no series.
    let names: Vec<&str> = text.lines().filter(|line| line.starts_with("# HELP")).collect();
    let series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|it| it.0)
        .collect();
    for all in [names, series] {
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
    assert!(!first.render().contains("route="), "one route is as it ever was");
}
