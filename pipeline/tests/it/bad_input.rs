//! Peers that answer what they should not: each is said clearly, counted where it belongs, and holds up nothing
//! else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loadtest::sim::Simulation;
use loadtest::sim::certificate::Identity;
use loadtest::sim::fault::{Fault, Rule};
use serde_json::{Value, json};

use crate::runtime::{Line, Runtime, eventually, taken};
use crate::told::{self, REPORTS};

const FAILURES: &str = "gitops_runtime_call_failures_total";

/// A host that nobody is to be sent to: counts who comes nevertheless.
struct Elsewhere {
    address: SocketAddr,
    visitors: Arc<AtomicUsize>,
}

impl Elsewhere {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let visitors = Arc::new(AtomicUsize::new(0));
        let count = visitors.clone();
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, visitors }
    }

    fn fault(&self) -> Fault {
        Fault::Redirect { to: format!("http://{}/take-your-token-here", self.address) }
    }

    fn assert_alone(&self) {
        assert_eq!(self.visitors.load(Ordering::SeqCst), 0, "a redirect was followed");
    }
}

fn host(url: &str) -> &str {
    url.split_once("://").unwrap().1
}

/// Retries that a test can wait for.
fn quick() -> Value {
    json!({"reporter": {"lanes": {"retry": {"min": "100ms", "max": "1s"}}}})
}

async fn said(runtime: &Runtime, message: &str, error: &str) -> Line {
    let what = format!("{message:?} with {error:?}");
    runtime.logs(&what, |line| line.message == message && line.field("error") == error).await
}

/// Five applications, all of them reported.
async fn five(simulation: &Simulation) {
    for name in ["a", "b", "c", "d", "e"] {
        told::put(simulation, name);
    }
}

// The Kubernetes API server.

/// The first list goes wrong; the second does not.
async fn bad_list(fault: Fault, reason: &str, error: &str, counted_as_call: bool) {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    simulation.kube.faults().add(Rule::always(fault).on("list").times(1));
    let runtime = Runtime::start(&simulation, &quick()).await;
    let line = said(&runtime, "the watch broke and is begun again", error).await;
    assert_eq!((line.level.as_str(), line.field("reason")), ("WARN", reason));
    taken(&simulation, 5 * REPORTS).await;
    runtime.counts("gitops_runtime_watch_restarts_total", &[], 1.0).await;
    let failures = runtime.counted(FAILURES, &[("peer", "kubernetes"), ("reason", reason)]).await;
    assert_eq!(failures, f64::from(counted_as_call));
    runtime.stop().await;
}

#[tokio::test]
async fn a_list_that_is_no_json() {
    bad_list(Fault::Nonsense, "malformed", "list applications: the answer is not a list in json", false)
        .await;
}

#[tokio::test]
async fn a_list_cut_short() {
    let fault = Fault::Cut { after: 100 };
    bad_list(fault, "cut_short", "list applications: the answer ended before its end", true).await;
}

#[tokio::test]
async fn a_list_redirected() {
    let elsewhere = Elsewhere::open().await;
    bad_list(elsewhere.fault(), "redirect", "list applications: the api server answered 302", true).await;
    elsewhere.assert_alone();
}

#[tokio::test]
async fn a_watch_cut_short_or_redirected() {
    let elsewhere = Elsewhere::open().await;
    for (fault, reason, error) in [
        (Fault::Cut { after: 100 }, "cut_short", "watch applications: the answer ended before its end"),
        (elsewhere.fault(), "redirect", "watch applications: the api server answered 302"),
    ] {
        let simulation = told::world(|_| {}).await;
        five(&simulation).await;
        simulation.kube.faults().add(Rule::always(fault).on("watch").times(1));
        let runtime = Runtime::start(&simulation, &quick()).await;
        let line = said(&runtime, "the watch broke and is begun again", error).await;
        assert_eq!(line.field("reason"), reason);
        eventually("a watch", || simulation.kube.open_watches() > 0).await;
        told::put(&simulation, "late");
        taken(&simulation, 6 * REPORTS).await;
        runtime.stop().await;
    }
    elsewhere.assert_alone();
}

#[tokio::test]
async fn lines_of_a_watch_that_are_no_json() {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    let runtime = Runtime::start(&simulation, &quick()).await;
    taken(&simulation, 5 * REPORTS).await;
    eventually("a watch", || simulation.kube.open_watches() > 0).await;
    simulation.kube.inject("{\"type\": \"MODIFIED\", \"object\": {nonsense");
    simulation.kube.inject("{\"type\": \"SURPRISING\", \"object\": {}}");
    runtime.counts("gitops_runtime_malformed_objects_total", &[], 2.0).await;
    told::put(&simulation, "late");
    taken(&simulation, 6 * REPORTS).await;
    let message = "something in the watch cannot be read and was skipped";
    let log = runtime.stop().await;
    let parts: Vec<&str> =
        log.iter().filter(|line| line.message == message).map(|line| line.field("part")).collect();
    assert_eq!(parts, ["line", "type"]);
}

#[tokio::test]
async fn an_application_read_again_that_is_no_json() {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    // The queue holds one; the others are read again.
    simulation.kube.faults().add(Rule::always(Fault::Nonsense).on("get").times(2));
    simulation.argocd.faults().add(Rule::always(Fault::Delay { ms: 1_000 }).on("managed_resources").times(1));
    let mut more = quick();
    more["reporter"]["sharding"] = json!({"shards": 1});
    more["reporter"]["queue"] = json!({"events": 1});
    more["reporter"]["lanes"]["concurrency"] = json!(1);
    let runtime = Runtime::start(&simulation, &more).await;
    let error = "get application: the answer is not json";
    said(&runtime, "cannot read an object again", error).await;
    taken(&simulation, 5 * REPORTS).await;
    assert!(runtime.counted("gitops_runtime_retries_total", &[("reason", "malformed")]).await >= 1.0);
    runtime.stop().await;
}

// Argo CD.

/// Every call about an application, and what its failure is called.
const CALLS: [(&str, &str); 6] = [
    ("managed_resources", "read managed resources"),
    ("resource_tree", "read the resource tree"),
    ("manifests", "read manifests"),
    ("resource", "read a resource"),
    ("revision_metadata", "read revision metadata"),
    ("application", "read the parent application"),
];

/// Each call about an application of its own goes wrong, and so does one of the settings.
async fn bad_answers(fault: Fault, message: &str, reason: &str, complaint: &str) {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    let argocd = host(&simulation.argocd.url()).to_owned();
    for (call, _) in CALLS {
        let name = call.replace('_', "-");
        // A commit that nobody has asked for yet.
        let mut object = told::application(&name, &told::thing());
        if call == "revision_metadata" {
            object["status"]["sync"]["revision"] = json!("b4f0c1d2e4b5968778695a4b3c2d1e0f00112233");
        }
        let mut victim = name.clone();
        if call == "application" {
            victim = "parent".to_owned();
            told::put_with_parent(&simulation, &name, &victim);
        } else {
            told::put_object(&simulation, object);
        }
        simulation.argocd.faults().add(Rule::always(fault.clone()).on(call).of(&victim));
    }
    simulation.argocd.faults().add(Rule::always(fault).on("settings").times(3));
    let runtime = Runtime::start(&simulation, &quick()).await;
    for (call, act) in CALLS.into_iter().chain([("settings", "read the settings")]) {
        let line = said(&runtime, message, &format!("cannot {act} at {argocd}: {complaint}")).await;
        assert_eq!((line.field("reason"), line.field("subject")), (reason, call));
        let failed = [("peer", "argocd"), ("call", call), ("outcome", "failed")];
        assert!(runtime.counted("gitops_runtime_calls_total", &failed).await >= 1.0, "{call}");
    }
    assert!(runtime.counted(FAILURES, &[("peer", "argocd"), ("reason", reason)]).await >= 7.0);
    let reported = |name: &str| simulation.platform.last_of_application("argocd", name).is_some();
    eventually("the other applications", || ["a", "b", "c", "d", "e"].into_iter().all(reported)).await;
    simulation.argocd.faults().clear();
    for (call, _) in CALLS {
        eventually(call, || reported(&call.replace('_', "-"))).await;
    }
    assert_eq!(runtime.status().await.total.parked, 0);
    let log = runtime.stop().await;
    let said = log.iter().filter(|line| line.message == message).count();
    assert_eq!(said, CALLS.len() + 1, "each is said once");
}

#[tokio::test]
async fn answers_of_argo_cd_that_are_no_json() {
    let complaint = "its answer is not the JSON that was expected (line 1, column 13)";
    bad_answers(Fault::Nonsense, "argo cd refuses calls", "malformed", complaint).await;
}

#[tokio::test]
async fn answers_of_argo_cd_cut_short() {
    let complaint = "its answer ended before its end";
    bad_answers(Fault::Cut { after: 10 }, "argo cd does not answer", "cut_short", complaint).await;
}

#[tokio::test]
async fn answers_of_argo_cd_redirected() {
    let elsewhere = Elsewhere::open().await;
    let complaint = format!("it answered 302, a redirect to {}, which is not followed", elsewhere.address);
    bad_answers(elsewhere.fault(), "argo cd refuses calls", "redirect", &complaint).await;
    elsewhere.assert_alone();
}

// The platform.

#[tokio::test]
async fn answers_of_the_platform_that_are_nonsense_or_cut_short_count_by_their_status() {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    simulation.platform.faults().add(Rule::always(Fault::Nonsense).of("a").after_effect());
    simulation.platform.faults().add(Rule::always(Fault::Cut { after: 1 }).of("b").after_effect());
    let runtime = Runtime::start(&simulation, &quick()).await;
    let status = runtime.idle(5).await;
    assert_eq!((status.total.acked, status.total.retried), (5, 0), "{status:?}");
    let acknowledged = [("result", "acknowledged")];
    assert_eq!(runtime.counted("gitops_runtime_reports_total", &acknowledged).await, 15.0);
    runtime.stop().await;
    let totals = simulation.platform.totals();
    assert_eq!((totals.taken, totals.duplicates, totals.spoilt), (15, 0, 6), "{totals:?}");
}

#[tokio::test]
async fn answers_of_the_platform_that_never_come_are_asked_for_again_under_the_same_key() {
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    simulation.platform.faults().add(Rule::always(Fault::Close).of("a").times(2).after_effect());
    let runtime = Runtime::start(&simulation, &quick()).await;
    runtime.counts(FAILURES, &[("peer", "platform"), ("reason", "unreachable")], 2.0).await;
    eventually("two repetitions", || simulation.platform.totals().duplicates == 2).await;
    let status = runtime.idle(5).await;
    assert_eq!((status.total.acked, status.total.parked), (5, 0), "{status:?}");
    runtime.stop().await;
    assert_eq!(simulation.platform.totals().taken, 5 * REPORTS);
}

#[tokio::test]
async fn a_platform_that_redirects_is_told_once_and_nothing_is_parked() {
    let elsewhere = Elsewhere::open().await;
    let simulation = told::world(|_| {}).await;
    five(&simulation).await;
    simulation.platform.faults().add(Rule::always(elsewhere.fault()));
    let mut more = quick();
    more["log"] = json!({"level": "debug"});
    let runtime = Runtime::start(&simulation, &more).await;
    let line = runtime.says("the sink refuses everything: check its address and token").await;
    assert_eq!((line.level.as_str(), line.field("reason")), ("ERROR", "redirect"));
    let platform = simulation.platform.url();
    let error = format!(
        "cannot send a report at {}: it answered 302, a redirect to {}, which is not followed",
        host(&platform),
        elsewhere.address
    );
    said(&runtime, "report not taken", &error).await;
    runtime.counts(FAILURES, &[("peer", "platform"), ("reason", "redirect")], 1.0).await;
    simulation.platform.faults().clear();
    taken(&simulation, 5 * REPORTS).await;
    assert_eq!(runtime.idle(5).await.total.parked, 0);
    runtime.stop().await;
    elsewhere.assert_alone();
}

// Certificates.

#[tokio::test]
async fn certificates_that_verify_are_trusted_by_their_authority() {
    let simulation = told::world(|setup| setup.tls = [Some(Identity::Good); 3]).await;
    five(&simulation).await;
    let runtime = Runtime::start(&simulation, &quick()).await;
    taken(&simulation, 5 * REPORTS).await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_certificate_of_the_api_server_that_does_not_verify() {
    for identity in [Identity::WrongHost, Identity::Expired] {
        let simulation = told::world(|setup| setup.tls[0] = Some(identity)).await;
        let runtime = Runtime::start(&simulation, &quick()).await;
        let message = "the api server's certificate does not verify: name the authority that signed it";
        let line = said(&runtime, message, "list applications: the connection failed").await;
        assert_eq!(line.level, "ERROR");
        runtime.counts(FAILURES, &[("peer", "kubernetes"), ("reason", "tls")], 1.0).await;
        assert_eq!(runtime.page("/readyz").await.0, 503);
        runtime.stop().await;
        let counts = simulation.kube.counts();
        assert_eq!((counts.lists, counts.unauthorized), (0, 0), "something was asked all the same");
    }
}

#[tokio::test]
async fn a_certificate_of_argo_cd_that_does_not_verify() {
    for identity in [Identity::WrongHost, Identity::Expired] {
        let simulation = told::world(|setup| setup.tls[1] = Some(identity)).await;
        five(&simulation).await;
        let runtime = Runtime::start(&simulation, &quick()).await;
        let argocd = simulation.argocd.url();
        let error = format!("cannot read the settings at {}: its certificate does not verify", host(&argocd));
        let line = said(&runtime, "argo cd refuses calls", &error).await;
        assert_eq!((line.level.as_str(), line.field("reason")), ("ERROR", "tls"));
        runtime.counts(FAILURES, &[("peer", "argocd"), ("reason", "tls")], 1.0).await;
        assert_eq!(runtime.status().await.total.parked, 0);
        runtime.stop().await;
        assert_eq!((simulation.argocd.calls(), simulation.argocd.unauthorized()), (0, 0));
    }
}

#[tokio::test]
async fn a_certificate_of_the_platform_that_does_not_verify() {
    for identity in [Identity::WrongHost, Identity::Expired] {
        let simulation = told::world(|setup| setup.tls[2] = Some(identity)).await;
        five(&simulation).await;
        let mut more = quick();
        more["log"] = json!({"level": "debug"});
        let runtime = Runtime::start(&simulation, &more).await;
        let line = runtime.says("the sink refuses everything: check its address and token").await;
        assert_eq!((line.level.as_str(), line.field("reason")), ("ERROR", "tls"));
        let platform = simulation.platform.url();
        let error = format!("cannot send a report at {}: its certificate does not verify", host(&platform));
        said(&runtime, "report not taken", &error).await;
        runtime.counts(FAILURES, &[("peer", "platform"), ("reason", "tls")], 1.0).await;
        assert_eq!(runtime.status().await.total.parked, 0);
        runtime.stop().await;
        assert_eq!(simulation.platform.totals().posts, 0);
    }
}
