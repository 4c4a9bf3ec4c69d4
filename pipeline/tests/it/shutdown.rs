//! Ends and outages: SIGTERM in the middle of load, restarts, peers that are away for a while.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::generate::{Change, Fleet, Mix};
use loadtest::sim::platform::{KeptReport, Last};
use loadtest::sim::{Simulation, kube::Collection};
use pipeline_core::Key;
use serde_json::json;

use crate::runtime::{Line, Runtime, SOON, ensure, fleet, object, replace, taken};
use crate::told;

const APPLICATIONS: u32 = 200;
const RESOURCES: u32 = 3;
/// Reports when each entity is reported once.
const ONCE: u64 = APPLICATIONS as u64 * (1 + RESOURCES as u64);

/// Load that takes long enough to be interrupted.
async fn load() -> Simulation {
    fleet(APPLICATIONS, RESOURCES, |setup| setup.platform_latency = Duration::from_millis(30)).await
}

fn refuse(status: u16) -> Rule {
    Rule::always(Fault::Status { status, retry_after: None })
}

/// The last report of a generated application.
fn last(simulation: &Simulation, index: u32) -> Option<Last> {
    simulation.platform.last_of_application("argocd", &Fleet::name(index))
}

/// Whether the last report of an application says that it is gone.
fn is_deleted(simulation: &Simulation, index: u32) -> bool {
    let payload = last(simulation, index).unwrap().payload.unwrap();
    let source: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    let gone = object(&payload)["metadata"]["deletionTimestamp"].is_string();
    assert!(!gone || source["source"]["actualManifest"] == "", "a deleted application has a manifest");
    gone
}

#[tokio::test]
async fn sigterm_in_the_middle_of_load_loses_nothing_and_repeats_nothing() {
    let simulation = load().await;
    // Longer than what is in flight can take, whatever else the machine does.
    let runtime = Runtime::start(&simulation, &json!({"shutdown": {"grace": "10m"}})).await;
    taken(&simulation, ONCE / 4).await;
    let log = runtime.stop().await;
    ensure(log, "it says how it ends", |log| {
        log.iter().any(|line| line.message == "stopping: what is in flight may finish")
            && log.last().is_some_and(|line| line.message == "stopped")
    });
    let middle =
        ensure(simulation.platform.totals(), "not the middle of the load", |totals| totals.taken < ONCE);
    assert_eq!(middle.posts, middle.taken, "a report in flight was given up");

    let again = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, ONCE).await;
    again.idle(u64::from(APPLICATIONS)).await;
    again.stop().await;
    let totals = simulation.platform.totals();
    assert_eq!((totals.taken, totals.posts), (ONCE, ONCE), "{totals:?}");
    assert_eq!(simulation.platform.last().len() as u64, ONCE);
    assert_eq!((totals.out_of_order, totals.resources_out_of_order), (0, 0));
}

/// What is in flight and never answered is handed back when the grace period is over.
#[tokio::test]
async fn sigterm_while_the_platform_hangs_ends_within_the_grace_period() {
    let simulation = fleet(20, RESOURCES, |_| {}).await;
    simulation.platform.faults().add(Rule::always(Fault::Hang));
    let settings = json!({"shutdown": {"grace": "1s"}, "reporter": {"lanes": {"concurrency": 20}}});
    let runtime = Runtime::start(&simulation, &settings).await;
    runtime.until("reports in flight", |status| status.total.in_flight == 20).await;
    let begun = Instant::now();
    runtime.stop().await;
    ensure(begun.elapsed(), "the grace period", |took| *took >= Duration::from_secs(1));
    simulation.platform.faults().clear();
    let again = Runtime::start(&simulation, &settings).await;
    taken(&simulation, 80).await;
    again.idle(20).await;
    again.stop().await;
    assert_eq!(simulation.platform.totals().taken, 80);
}

#[tokio::test]
async fn sigterm_before_anything_works_ends_at_once() {
    let simulation = fleet(5, 1, |_| {}).await;
    simulation.kube.down().await;
    simulation.argocd.down().await;
    let runtime = Runtime::start(&simulation, &json!({"shutdown": {"grace": "10m"}})).await;
    runtime.says("the watch broke and is begun again").await;
    // There is no patience for the grace period: nothing is in flight.
    runtime.stop().await;
}

#[tokio::test]
async fn a_restart_with_nothing_changed_sends_nothing_and_asks_argo_cd_nothing() {
    let simulation = fleet(50, RESOURCES, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 200).await;
    runtime.idle(50).await;
    runtime.stop().await;
    let (posts, calls) = (simulation.platform.totals().posts, simulation.argocd.calls());
    assert_eq!(posts, 200);

    let again = Runtime::start(&simulation, &json!({})).await;
    let status = again.idle(50).await;
    assert_eq!(status.total.filtered, 50, "{status:?}");
    again.stop().await;
    assert_eq!(simulation.platform.totals().posts, posts);
    assert_eq!(simulation.argocd.calls(), calls);
}

#[tokio::test]
async fn what_changed_while_it_was_down_is_reported_after_a_restart_and_nothing_else() {
    let simulation = fleet(20, RESOURCES, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 80).await;
    runtime.idle(20).await;
    runtime.stop().await;
    let only = Mix { drift: 1, commit: 0, ..Mix::default() };
    let (changed, version) = simulation.change(only, &mut fastrand::Rng::with_seed(7)).unwrap().unwrap();
    assert!(simulation.delete((changed.state.index + 1) % 20).unwrap());

    let again = Runtime::start(&simulation, &json!({})).await;
    // The application, its resource, and the stub of the one that is gone.
    taken(&simulation, 80 + 3).await;
    again.idle(20).await;
    again.stop().await;
    assert_eq!(simulation.platform.totals().posts, 83);
    assert_eq!(last(&simulation, changed.state.index).unwrap().version, Some(version));
    assert!(is_deleted(&simulation, (changed.state.index + 1) % 20));
}

/// Deletes `gone` while the API server is away; `forget` makes it forget the deletions too.
async fn deletions_while_the_watch_is_down(forget: bool) {
    let gone: BTreeSet<u32> = [1, 4, 9, 16].into();
    let simulation = fleet(20, RESOURCES, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 80).await;
    runtime.idle(20).await;
    simulation.kube.down().await;
    for &index in &gone {
        assert!(simulation.delete(index).unwrap());
    }
    if forget {
        simulation.kube.compact();
    }
    runtime.says("the watch broke and is begun again").await;
    simulation.kube.up().await.unwrap();
    taken(&simulation, 80 + 4).await;
    if !forget {
        runtime.says("the watch works again").await;
    }
    runtime.idle(24).await;
    runtime.stop().await;
    let reported: BTreeSet<u32> = (0..20).filter(|&index| is_deleted(&simulation, index)).collect();
    assert_eq!(reported, gone);
    assert_eq!(simulation.platform.totals().posts, 84);
}

#[tokio::test]
async fn deletions_while_the_watch_is_down_come_when_it_is_resumed() {
    deletions_while_the_watch_is_down(false).await;
}

#[tokio::test]
async fn deletions_while_the_watch_is_down_are_found_in_the_next_list() {
    deletions_while_the_watch_is_down(true).await;
}

#[tokio::test]
async fn nothing_is_lost_while_the_platform_answers_503() {
    let simulation = fleet(40, RESOURCES, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, 160).await;
    runtime.idle(40).await;
    simulation.platform.faults().add(refuse(503));
    let mut chance = fastrand::Rng::with_seed(3);
    let mut newest = std::collections::BTreeMap::new();
    let mut change = |index: u32| {
        let state = simulation.fleet.as_ref().unwrap();
        let changed = state.change_one(index, Change::Drift, &mut chance).unwrap();
        let version = simulation.kube.apply_generated(&state.key(index).unwrap(), changed.state);
        newest.insert(index, version);
    };
    (0..20).for_each(&mut change);
    runtime.until("the circuit to open", |status| status.circuit.state == "open").await;
    // Some once more, others for the first time, one of them gone for good.
    (10..30).for_each(&mut change);
    assert!(simulation.delete(39).unwrap());
    let status = runtime.until("all changes to wait", |status| status.total.observed >= 40 + 41).await;
    assert_eq!(status.total.parked, 0);
    assert_eq!(simulation.platform.totals().taken, 160);

    simulation.platform.faults().clear();
    runtime.says("the sink takes reports again").await;
    runtime.idle(40 + 41).await;
    assert_eq!(runtime.status().await.total.parked, 0);
    let log = runtime.stop().await;
    let down = log.iter().filter(|line| line.message == "the sink is down, reports wait").count();
    assert_eq!(down, 1, "an outage is said once");
    for (index, version) in newest {
        assert_eq!(last(&simulation, index).unwrap().version, Some(version), "application {index}");
    }
    assert!(is_deleted(&simulation, 39));
    assert_eq!(simulation.platform.totals().out_of_order, 0);
}

#[tokio::test]
async fn a_platform_that_is_not_there_is_named_once() {
    let simulation = fleet(3, RESOURCES, |_| {}).await;
    // Nobody listens on it.
    let settings = json!({"platform": {"url": "http://127.0.0.1:1"}});
    let runtime = Runtime::start(&simulation, &settings).await;
    runtime.says("the platform cannot be reached").await;
    let again = |status: &loadtest::reporter::Status| status.total.retried >= 6;
    runtime.until("each to be tried again", again).await;
    let log = runtime.stop().await;
    let said: Vec<_> = log.iter().filter(|line| line.message == "the platform cannot be reached").collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(format!("{said:?}").contains("127.0.0.1"), "{said:?}");
}

#[tokio::test]
async fn a_platform_that_answers_404_from_the_start_is_probed_and_nothing_is_parked() {
    let simulation = fleet(40, RESOURCES, |setup| setup.platform_latency = Duration::from_millis(100)).await;
    simulation.platform.faults().add(refuse(404));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    let open = |status: &loadtest::reporter::Status| {
        status.total.observed >= 40 && status.circuit.state == "open" && status.total.in_flight == 0
    };
    runtime.until("everything to wait for the circuit", open).await;
    let before = simulation.platform.totals().posts;
    let began = Instant::now();
    // Three probes, which wait 0.5 s, 1 s and 2 s at least.
    while simulation.platform.totals().posts < before + 3 {
        let status = runtime.status().await;
        assert!(status.total.in_flight <= 1, "more than a probe: {status:?}");
        assert_eq!(status.total.parked, 0);
        assert!(began.elapsed() < SOON, "no probes: {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() > Duration::from_millis(500), "not a probe at a time");
    simulation.platform.faults().clear();
    taken(&simulation, 160).await;
    let status = runtime.idle(40).await;
    assert_eq!((status.total.parked, status.total.acked), (0, 40));
    let log = runtime.stop().await;
    let said = |line: &&Line| line.message == "the sink refuses everything: check its address and token";
    let said: Vec<_> = log.iter().filter(said).collect();
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].level.as_str(), said[0].field("reason")), ("ERROR", "not_found"));
}

#[tokio::test]
async fn a_wrong_token_is_said_once_and_the_right_one_is_read_from_its_file() {
    let simulation = fleet(20, RESOURCES, |_| {}).await;
    let file = simulation.directory().join("platform-token");
    let right = std::fs::read_to_string(&file).unwrap();
    replace(&file, "expired-token");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    let refused = "the sink refuses everything: check its address and token";
    let line = runtime.says(refused).await;
    assert_eq!((line.level.as_str(), line.field("reason")), ("ERROR", "unauthorized"));
    let open = |status: &loadtest::reporter::Status| {
        status.total.observed >= 20 && status.circuit.state == "open" && status.total.in_flight == 0
    };
    runtime.until("everything to wait for another token", open).await;
    let refusals = simulation.platform.totals().unauthorized;
    replace(&file, &right);
    // Minutes before the next probe is due.
    taken(&simulation, 80).await;
    runtime.says("the sink takes reports again").await;
    let status = runtime.idle(20).await;
    assert!(simulation.platform.totals().unauthorized <= refusals + 3, "a storm with the old token");
    assert_eq!((status.total.parked, status.total.acked), (0, 20));
    let log = runtime.stop().await;
    assert_eq!(log.iter().filter(|line| line.message == refused).count(), 1);
    assert!(!log.iter().any(|line| line.fields.to_string().contains("expired-token")));
    assert_eq!(simulation.kube.len(Collection::Applications), 20);
}

#[tokio::test]
async fn a_refused_report_is_parked_alone_and_the_next_change_is_reported() {
    let simulation = fleet(10, RESOURCES, |_| {}).await;
    let refused = simulation.platform.faults().add(refuse(422).of(&Fleet::name(3)));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    let line = runtime.says("an event was refused for good and is parked").await;
    assert_eq!(
        (line.level.as_str(), line.field("key"), line.field("reason")),
        ("WARN", "argocd/app-00003", "refused")
    );
    taken(&simulation, 36).await;
    let status = runtime.idle(10).await;
    assert_eq!((status.total.parked, status.total.acked, status.circuit.state.as_str()), (1, 9, "closed"));
    runtime.counts("gitops_runtime_parked_total", &[("reason", "refused")], 1.0).await;

    simulation.platform.faults().remove(refused);
    let fleet = simulation.fleet.as_ref().unwrap();
    let changed = fleet.change_one(3, Change::Drift, &mut fastrand::Rng::with_seed(1)).unwrap();
    let version = simulation.kube.apply_generated(&fleet.key(3).unwrap(), changed.state);
    taken(&simulation, 40).await;
    runtime.idle(11).await;
    assert_eq!(last(&simulation, 3).unwrap().version, Some(version));
    assert_eq!(runtime.counted("gitops_runtime_keys_parked", &[]).await, 0.0);
    runtime.stop().await;
    assert_eq!(simulation.platform.totals().taken, 40);
}

/// One life ends and the next begins under the same name, unseen.
async fn made_anew(forget: bool) {
    let simulation = told::world(|setup| setup.keep.reports = 1_000).await;
    let life = |uid: &str| {
        let mut object = told::application("web", &told::thing());
        object["metadata"]["uid"] = json!(uid);
        object
    };
    told::put_object(&simulation, life("first"));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, told::REPORTS).await;
    runtime.idle(1).await;
    simulation.kube.down().await;
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "web").unwrap()));
    told::put_object(&simulation, life("second"));
    if forget {
        simulation.kube.compact();
    }
    simulation.kube.up().await.unwrap();
    // The end of the first, and all of the second.
    taken(&simulation, 2 * told::REPORTS + 1).await;
    runtime.stop().await;
    let of_application = |kept: &KeptReport| {
        let object = kept.entity.resource.is_none().then(|| object(&kept.payload))?;
        let metadata = &object["metadata"];
        Some((metadata["uid"].as_str()?.to_owned(), metadata["deletionTimestamp"].is_string()))
    };
    let lives: Vec<(String, bool)> = simulation.platform.kept().iter().filter_map(of_application).collect();
    let first = "first".to_owned();
    assert_eq!(lives, [(first.clone(), false), (first, true), ("second".to_owned(), false)]);
}

#[tokio::test]
async fn an_application_made_anew_while_the_watch_is_down_ends_and_begins_when_it_is_resumed() {
    made_anew(false).await;
}

#[tokio::test]
async fn an_application_made_anew_while_the_watch_is_down_ends_and_begins_in_the_next_list() {
    made_anew(true).await;
}
