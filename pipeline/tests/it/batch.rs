//! Reports that share requests: nothing is lost, repeated under another key or out of order, whatever the platform
//! makes of batches and of the reports in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::generate::{Fleet, Mix};
use loadtest::sim::platform::{Moment, Totals};
use loadtest::sim::{Setup, Simulation};
use serde_json::{Value, json};

use crate::runtime::{Runtime, eventually, fleet, merge, taken};

const APPLICATIONS: u32 = 60;
const RESOURCES: u32 = 5;
const REPORTS: u64 = APPLICATIONS as u64 * (RESOURCES as u64 + 1);

async fn world(more: impl FnOnce(&mut Setup)) -> Simulation {
    fleet(APPLICATIONS, RESOURCES, more).await
}

fn settings(more: &Value) -> Value {
    let mut settings = json!({"reporter": {
        "lanes": {"retry": {"min": "20ms", "max": "200ms"}},
        "sink": {"platform": {"batch": {"enabled": true, "reports": 20}}},
    }});
    merge(&mut settings, more);
    settings
}

fn well(totals: &Totals) {
    assert_eq!(totals.wrong(), [""; 0]);
    assert_eq!((totals.taken, totals.applications), (REPORTS, u64::from(APPLICATIONS)));
}

#[tokio::test]
async fn a_platform_that_takes_batches_gets_fewer_requests_and_the_same_reports() {
    let simulation = world(|setup| setup.platform_latency = std::time::Duration::from_millis(20)).await;
    let runtime = Runtime::start(&simulation, &settings(&json!({}))).await;
    let totals = taken(&simulation, REPORTS).await;
    runtime.idle(u64::from(APPLICATIONS)).await;
    well(&totals);
    assert_eq!(totals.duplicates, 0);
    assert!(totals.batches > 0 && totals.posts < REPORTS / 2, "{totals:?}");
    let acknowledged = runtime.counted("gitops_runtime_reports_total", &[("result", "acknowledged")]).await;
    assert_eq!(acknowledged as u64, REPORTS);
    runtime.stop().await;
}

#[tokio::test]
async fn reports_that_fail_in_batches_that_break_all_arrive() {
    let simulation = world(|_| {}).await;
    let faults = simulation.platform.faults();
    let refused = Fault::Status { status: 503, retry_after: None };
    faults.add(Rule::always(refused.clone()).on("report").rate(0.2));
    faults.add(Rule::always(refused).on("batch").rate(0.1));
    faults.add(Rule::always(Fault::Cut { after: 10 }).on("batch").rate(0.1).after_effect());
    faults.add(Rule::always(Fault::Close).on("batch").rate(0.1));
    faults.add(Rule::always(Fault::Nonsense).on("batch").rate(0.1).after_effect());
    faults.add(Rule::always(Fault::Status { status: 413, retry_after: None }).on("batch").rate(0.1));
    let runtime = Runtime::start(&simulation, &settings(&json!({}))).await;
    let totals = taken(&simulation, REPORTS).await;
    runtime.idle(u64::from(APPLICATIONS)).await;
    well(&totals);
    assert!(totals.spoilt > 0 && totals.batches > 0, "{totals:?}");
    assert_eq!(runtime.counted("gitops_runtime_parked_total", &[]).await, 0.0);
    runtime.stop().await;
}

#[tokio::test]
async fn a_platform_that_knows_no_batches_is_told_of_once_and_gets_every_report() {
    let simulation = world(|_| {}).await;
    let unknown = Fault::Status { status: 404, retry_after: None };
    simulation.platform.faults().add(Rule::always(unknown).on("batch"));
    let runtime = Runtime::start(&simulation, &settings(&json!({}))).await;
    taken(&simulation, REPORTS).await;
    let status = runtime.idle(u64::from(APPLICATIONS)).await;
    // Nothing is on its way any more, so that this is the last of what was sent before the first answer came.
    let before = simulation.platform.totals();
    well(&before);
    assert!(before.batches > 0, "{before:?}");
    let (deployed, mut chance) = (Mix { deploy: 1, ..Mix::NONE }, fastrand::Rng::with_seed(7));
    let mut newest = BTreeMap::new();
    for _ in 0..APPLICATIONS {
        let (changed, version) = simulation.change(deployed, &mut chance).unwrap().unwrap();
        newest.insert(changed.state.index, version);
    }
    runtime.idle(status.total.observed + u64::from(APPLICATIONS)).await;
    let version = |index| simulation.platform.last_of_application("argocd", &Fleet::name(index))?.version;
    let told = || newest.iter().all(|(index, newest)| version(*index) == Some(*newest));
    eventually("the reports after the fallback", told).await;
    let totals = simulation.platform.totals();
    assert_eq!((totals.wrong(), totals.batches), (vec![], before.batches), "{totals:?}");
    let log = runtime.stop().await;
    let said: Vec<_> = log.iter().filter(|line| line.message.contains("batch")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(
        (said[0].level.as_str(), said[0].message.as_str()),
        ("WARN", "the platform knows no batches: reports are sent one by one from now on")
    );
    assert!(said[0].field("error").starts_with("cannot send a batch of reports at 127.0.0.1:"), "{said:?}");
}

#[tokio::test]
async fn what_was_in_a_batch_when_the_process_was_killed_comes_again_under_its_key() {
    let simulation = world(|_| {}).await;
    let (came, answered) = (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(Mutex::new(BTreeSet::new())));
    let (coming, answering) = (came.clone(), answered.clone());
    simulation.platform.watch_door(move |moment, key| {
        let key = key.unwrap_or_default().to_owned();
        match moment {
            Moment::Received => *coming.lock().unwrap().entry(key).or_insert(0) += 1,
            Moment::Answered(200) => {
                answering.lock().unwrap().insert(key);
            }
            Moment::Answered(_) | Moment::Unanswered => {}
        }
    });
    // They are taken, and nobody ever hears of it.
    let hang = simulation.platform.faults().add(Rule::always(Fault::Hang).on("batch").after_effect());
    let runtime = Runtime::start(&simulation, &settings(&json!({}))).await;
    eventually("reports in batches that hang", || simulation.platform.totals().batches >= 2).await;
    runtime.kill().await;
    let before: BTreeSet<String> = came.lock().unwrap().keys().cloned().collect();
    let unanswered: Vec<String> = before.difference(&answered.lock().unwrap()).cloned().collect();
    assert!(unanswered.len() >= 4, "{unanswered:?}");
    simulation.platform.faults().remove(hang);
    let runtime = Runtime::start(&simulation, &settings(&json!({}))).await;
    runtime.idle(u64::from(APPLICATIONS)).await;
    let totals = simulation.platform.totals();
    runtime.stop().await;
    well(&totals);
    let came = came.lock().unwrap();
    assert!(unanswered.iter().all(|key| came.get(key).is_some_and(|times| *times >= 2)), "{unanswered:?}");
    assert!(totals.duplicates as usize >= unanswered.len(), "{totals:?}");
}
