//! Routes of the role `resource-reporter`: which objects go where, and that each goes its own way.

mod nats;
mod resumed;

use std::path::Path;

use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::platform::{Config, Keep, PlatformSim};
use loadtest::sim::{Simulation, wait_for};
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::ask::{answer, ask, follow, json};
use crate::resources::world;
use crate::runtime::{LOOK, Runtime, eventually};

const TOKEN: &str = "the token of the other platform";

/// Another platform, with a token of its own.
async fn other(simulation: &Simulation) -> (PlatformSim, Value) {
    let keep = Keep { reports: 10_000, ..Keep::default() };
    let config = Config { token: Some(TOKEN.to_owned()), keep, ..Config::default() };
    let platform = PlatformSim::start(config).await.unwrap();
    let token = simulation.directory().join("other-token");
    std::fs::write(&token, TOKEN).unwrap();
    let sink = json!({"kind": "platform", "url": platform.url(), "tokenFile": token});
    (platform, sink)
}

async fn launch(simulation: &Simulation, resources: &Value) -> Runtime {
    crate::resources::launch(simulation, &json!({"resources": resources})).await
}

/// `kind/namespace/name` of an object, and `gone` of its end.
fn named(payload: &Value) -> String {
    let object = &payload["object"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let metadata = &object["metadata"];
    let name = [text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"])].join("/");
    if payload["deleted"] == true { format!("{name} gone") } else { name }
}

/// What a platform was sent, sorted.
fn sent(platform: &PlatformSim) -> Vec<String> {
    let kept = platform.kept();
    let mut names: Vec<String> =
        kept.iter().map(|report| named(&serde_json::from_slice(&report.payload).unwrap())).collect();
    names.sort();
    names
}

/// Waits until a platform was sent this, sorted, and nothing else.
async fn is_sent(platform: &PlatformSim, expected: &[String]) {
    comes(|| sent(platform), expected).await;
}

/// Waits until this and nothing else was sent.
async fn comes(sent: impl Fn() -> Vec<String>, expected: &[String]) {
    wait_for(&format!("{expected:?} to be sent"), async || sent(), |sent| sent == expected).await;
}

/// States that a platform was sent more than once.
fn twice(platform: &PlatformSim) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let kept = platform.kept();
    let payloads = kept.iter().map(|report| serde_json::from_slice::<Value>(&report.payload).unwrap());
    let states = payloads
        .map(|payload| format!("{} {}", named(&payload), payload["object"]["metadata"]["resourceVersion"]));
    states.filter(|state| !seen.insert(state.clone())).collect()
}

/// What was written to a file, sorted.
fn written(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap());
    let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut names: Vec<String> =
        lines.filter(|line| line["data"]["object"].is_object()).map(|line| named(&line["data"])).collect();
    names.sort();
    names
}

/// Waits until nothing is left to do on any route, for all that is there.
async fn rests(runtime: &Runtime) {
    runtime.answers("/readyz", |status, _| status == 200).await;
    let rests = |route: &Value| {
        ["queued", "waiting", "in_flight", "dirty", "reading"].iter().all(|count| route["total"][count] == 0)
    };
    let all = |status: &Value| rests(status) && status["routes"].as_array().into_iter().flatten().all(rests);
    runtime.answers("/status", |_, text| all(&serde_json::from_str(text).unwrap())).await;
}

fn rollout(namespace: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas}, "status": {"phase": "Healthy"},
    })
}

fn replica_set(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2}, "status": {"replicas": 2},
    })
}

fn put(simulation: &Simulation, object: Value) {
    let collection = match object["kind"].as_str() {
        Some("Rollout") => Collection::Rollouts,
        Some("ReplicaSet") => Collection::ReplicaSets,
        _ => Collection::Applications,
    };
    simulation.kube.apply(collection, object).unwrap();
}

#[tokio::test]
async fn a_sink_that_is_away_delays_its_own_route_alone_and_no_restart_loses_or_repeats_anything() {
    let simulation = world().await;
    let (audit, sink) = other(&simulation).await;
    let resources = json!({
        "kinds": ["rollouts.argoproj.io", "replicasets.apps"], "applications": false,
        "match": {"kinds": ["rollouts.argoproj.io"]},
        "routes": [{"name": "audit", "match": {"namespaces": ["shop"]}, "sink": sink}],
    });
    let mut of_first: Vec<String> = (0..20).map(|number| format!("Rollout/shop/web-{number}")).collect();
    (0..20).for_each(|number| put(&simulation, rollout("shop", &format!("web-{number}"), 3)));
    let mut of_audit = of_first.clone();
    put(&simulation, rollout("ops", "proxy", 1));
    of_first.push("Rollout/ops/proxy".to_owned());
    put(&simulation, replica_set("shop", "set"));
    of_audit.push("ReplicaSet/shop/set".to_owned());
    of_first.sort();
    of_audit.sort();

    // One that never answers.
    let hanging = audit.faults().add(Rule::always(Fault::Hang));
    let runtime = launch(&simulation, &resources).await;
    is_sent(&simulation.platform, &of_first).await;
    assert_eq!(sent(&audit), [] as [String; 0]);
    runtime.kill().await;

    // One that says that it is away.
    audit.faults().remove(hanging);
    let away = audit.faults().add(Rule::always(Fault::Status { status: 503, retry_after: None }));
    let runtime = launch(&simulation, &resources).await;
    put(&simulation, rollout("shop", "web-0", 4));
    of_first.push("Rollout/shop/web-0".to_owned());
    of_first.sort();
    is_sent(&simulation.platform, &of_first).await;
    runtime.answers("/readyz", |status, _| status == 200).await;
    let degraded = "degraded: route audit: sink: the circuit has been open for ";
    runtime.answers("/healthz", |status, text| status == 200 && text.starts_with(degraded)).await;
    runtime.counts("gitops_runtime_circuit_state", &[("route", "audit")], 1.0).await;
    assert!(runtime.counted("gitops_runtime_circuit_state", &[("route", "default")]).await < 1.0);
    let status: Value = serde_json::from_str(&runtime.page("/status").await.1).unwrap();
    let route = &status["routes"][0];
    assert_eq!((&route["route"], &route["ledger"]["storage"]), (&json!("audit"), &json!("file")));
    assert_eq!((&status["circuit"]["state"], &status["total"]["paused"]), (&json!("closed"), &json!(false)));
    assert_eq!(sent(&audit), [] as [String; 0]);
    runtime.kill().await;

    // One that is back: what changed while it was away it may be told in each state that it had, and of none twice.
    audit.faults().remove(away);
    let of_back = || {
        let mut told = sent(&audit);
        told.dedup_by(|later, name| later == name && name == "Rollout/shop/web-0");
        told
    };
    let runtime = launch(&simulation, &resources).await;
    comes(of_back, &of_audit).await;
    rests(&runtime).await;
    assert_eq!((of_back(), sent(&simulation.platform)), (of_audit.clone(), of_first.clone()));
    let newest = audit.kept().iter().any(|report| {
        let payload: Value = serde_json::from_slice(&report.payload).unwrap();
        payload["object"]["metadata"]["name"] == "web-0" && payload["object"]["spec"]["replicas"] == 4
    });
    assert!(newest, "the state that it has by now is told");
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "web-1").unwrap()));
    for names in [&mut of_first, &mut of_audit] {
        names.push("Rollout/shop/web-1 gone".to_owned());
        names.sort();
    }
    comes(of_back, &of_audit).await;
    is_sent(&simulation.platform, &of_first).await;
    rests(&runtime).await;
    runtime.stop().await;
    for name in ["resource-reporter-ledger.redb", "resource-reporter-ledger-audit.redb"] {
        assert!(simulation.directory().join("state").join(name).exists(), "{name}");
    }

    // Neither says anything twice.
    put(&simulation, rollout("shop", "last", 1));
    for names in [&mut of_first, &mut of_audit] {
        names.push("Rollout/shop/last".to_owned());
        names.sort();
    }
    let runtime = launch(&simulation, &resources).await;
    comes(of_back, &of_audit).await;
    is_sent(&simulation.platform, &of_first).await;
    rests(&runtime).await;
    runtime.stop().await;
    assert_eq!((of_back(), sent(&simulation.platform)), (of_audit, of_first));
    for platform in [&audit, &simulation.platform] {
        assert_eq!(platform.totals().malformed, 0);
        assert_eq!(twice(platform), [] as [String; 0]);
    }
}

/// An application of a project.
fn application(name: &str, project: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": project}, "status": {"sync": {"revision": "abc"}},
    })
}

/// A Rollout of an application, with a label.
fn tracked(namespace: &str, application: &str, team: Option<&str>) -> Value {
    let mut object = rollout(namespace, "web", 3);
    let id = format!("{application}:argoproj.io/Rollout:{namespace}/web");
    object["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": id});
    if let Some(team) = team {
        object["metadata"]["labels"] = json!({"team": team});
    }
    object
}

#[tokio::test]
async fn a_route_takes_what_its_kinds_namespaces_labels_and_applications_say() {
    let simulation = world().await;
    put(&simulation, application("shop", "retail"));
    put(&simulation, application("tools", "infra"));
    put(&simulation, tracked("shop", "shop", Some("a")));
    put(&simulation, tracked("ops", "tools", None));
    let mut free = rollout("shop", "free", 1);
    free["metadata"]["labels"] = json!({"team": "b"});
    put(&simulation, free);
    let text = simulation.kube.text(Collection::Rollouts, &Key::new("shop", "web").unwrap()).unwrap();
    let uid = serde_json::from_slice::<Value>(&text).unwrap()["metadata"]["uid"].clone();
    let mut owned = replica_set("shop", "web-1");
    let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": uid});
    owned["metadata"]["ownerReferences"] = json!([owner]);
    put(&simulation, owned);

    let file = |name: &str| simulation.directory().join(format!("{name}.ndjson"));
    let route = |name: &str, matching: Value| json!({"name": name, "match": matching, "sink": {"kind": "file", "path": file(name)}});
    let resources = json!({
        "kinds": ["rollouts.argoproj.io", "replicasets.apps"],
        "match": {"labelSelector": "!team"},
        "routes": [
            route("kinds", json!({"kinds": ["replicasets.apps"]})),
            route("namespaces", json!({"namespaces": ["sh*"]})),
            route("labels", json!({"labelSelector": "team in (a)"})),
            route("applications", json!({"applications": ["sho?"]})),
            route("projects", json!({"projects": ["infra", "none"], "kinds": ["rollouts.argoproj.io"]})),
            route("all", json!({})),
        ],
    });
    let runtime = launch(&simulation, &resources).await;
    let [set, web, tools, free] =
        ["ReplicaSet/shop/web-1", "Rollout/shop/web", "Rollout/ops/web", "Rollout/shop/free"];
    let expected: [(&str, &[&str]); 6] = [
        ("kinds", &[set]),
        ("namespaces", &[set, free, web]),
        ("labels", &[web]),
        ("applications", &[set, web]),
        ("projects", &[tools]),
        ("all", &[set, tools, free, web]),
    ];
    for (name, objects) in expected {
        eventually(name, || written(&file(name)) == objects).await;
    }
    eventually("the first route's", || sent(&simulation.platform) == [set, tools]).await;
    rests(&runtime).await;
    for (name, objects) in expected {
        assert_eq!(written(&file(name)), objects, "{name}");
    }
    assert_eq!(sent(&simulation.platform), [set, tools]);
    let other = [("reason", "other-application"), ("route", "applications")];
    assert!(runtime.counted("gitops_runtime_filtered_total", &other).await >= 2.0);

    // What leaves a route is brought up to date there, and its end is told.
    put(&simulation, tracked("shop", "tools", Some("b")));
    for (name, objects) in
        [("labels", vec![web, web]), ("applications", vec![set, web, web]), ("projects", vec![tools, web])]
    {
        eventually(name, || written(&file(name)) == objects).await;
    }
    assert!(simulation.kube.delete(Collection::Rollouts, &Key::new("shop", "web").unwrap()));
    eventually("its end", || written(&file("labels")) == [web, web, "Rollout/shop/web gone"]).await;
    runtime.stop().await;
    assert_eq!(sent(&simulation.platform), [set, tools]);
}

/// Whose an object is decides where it goes: while that cannot be found out, it waits.
#[tokio::test]
async fn what_may_be_a_routes_waits_until_its_application_is_known() {
    let simulation = world().await;
    put(&simulation, application("shop", "retail"));
    put(&simulation, tracked("shop", "shop", None));
    let failing = simulation.kube.faults().add(Rule {
        call: Some("get".to_owned()),
        ..Rule::always(Fault::Status { status: 500, retry_after: None })
    });
    let file = simulation.directory().join("retail.ndjson");
    let route =
        json!({"name": "retail", "match": {"projects": ["retail"]}, "sink": {"kind": "file", "path": file}});
    let resources = json!({"kinds": ["rollouts.argoproj.io"], "routes": [route]});
    let runtime = launch(&simulation, &resources).await;
    eventually("the first route's", || sent(&simulation.platform) == ["Rollout/shop/web"]).await;
    runtime
        .counts("gitops_runtime_retries_total", &[("reason", "server_error"), ("route", "retail")], 1.0)
        .await;
    assert_eq!(written(&file), [] as [String; 0]);
    simulation.kube.faults().remove(failing);
    eventually("what waited", || written(&file) == ["Rollout/shop/web"]).await;
    runtime.stop().await;
}

/// Each route is asked by its name, and the first one where none is named.
#[tokio::test]
async fn a_command_asks_about_the_route_that_it_names_and_one_that_there_is_not_is_refused() {
    const WEB: &str = "rollout/shop/web";
    const ON_AUDIT: [&str; 2] = ["--route", "audit"];
    let simulation = world().await;
    let (audit, sink) = other(&simulation).await;
    let refusing = audit.faults().add(Rule::always(Fault::Status { status: 422, retry_after: None }));
    put(&simulation, rollout("shop", "web", 3));
    let resources = json!({
        "kinds": ["rollouts.argoproj.io"], "applications": false, "routes": [{"name": "audit", "sink": sink}],
    });
    let runtime = launch(&simulation, &resources).await;
    let one = ["Rollout/shop/web"];
    eventually("the first route's", || sent(&simulation.platform) == one).await;
    let parked =
        |text: &str| serde_json::from_str::<Value>(text).unwrap()["routes"][0]["total"]["parked"] == 1;
    runtime.answers("/status", |_, text| parked(text)).await;
    rests(&runtime).await;

    // What one refused, another has taken.
    let on = |arguments: &[&'static str]| [arguments, &ON_AUDIT[..]].concat();
    assert_eq!(answer(&simulation, &["parked", "list"]).await, "nothing is parked\n");
    assert_eq!(json(&simulation, &on(&["parked", "list"])).await["parked"][0]["app"], WEB);
    assert!(answer(&simulation, &on(&["parked", "list"])).await.starts_with(" OBJECT            REASON "));
    let shown = json(&simulation, &on(&["parked", "show", WEB])).await;
    assert_eq!((&shown["reason"], &shown["refused"][0]["entity"]), (&json!("refused"), &json!("object")));
    assert!(
        answer(&simulation, &on(&["parked", "show", WEB]))
            .await
            .starts_with(" object           rollout/shop/web\n")
    );
    for named in [&[][..], &["--route", "default"][..]] {
        let text = answer(&simulation, &[&["explain", WEB][..], named].concat()).await;
        assert!(text.starts_with(" object        rollout/shop/web\n"), "{named:?}: {text}");
        assert!(text.contains(" acknowledged  resourceVersion "), "{named:?}: {text}");
        assert!(text.contains(" parked        no\n"), "{named:?}: {text}");
        let busy = answer(&simulation, &[&["top"][..], named].concat()).await;
        assert!(busy.contains("\nhottest objects\n OBJECT            SHARD "), "{named:?}: {busy}");
        let top = json(&simulation, &[&["top"][..], named].concat()).await;
        assert_eq!(
            (top["hottest"][0]["app"].as_str(), &top["hottest"][0]["reports"]),
            (Some(WEB), &json!(1))
        );
        assert_eq!(top["failing"], json!([]), "{named:?}: {top:#}");
    }
    let text = answer(&simulation, &on(&["explain", WEB])).await;
    assert!(text.contains(", in part: 0 reports of its own; "), "{text}");
    assert!(text.contains("; gitops-runtime parked show rollout/shop/web --route audit\n"), "{text}");
    let top = json(&simulation, &on(&["top"])).await;
    assert_eq!(top["failing"][0]["app"], WEB, "{top:#}");

    // What is done on one is done there alone.
    audit.faults().remove(refusing);
    let replayed = answer(&simulation, &on(&["parked", "replay", WEB])).await;
    assert_eq!(replayed, "rollout/shop/web is read again\n");
    eventually("what was parked", || sent(&audit) == one).await;
    rests(&runtime).await;
    let again = answer(&simulation, &on(&["replay", "--app", WEB, "--whole"])).await;
    assert_eq!(again, "1 object is read again\n");
    let twice = ["Rollout/shop/web"; 2];
    eventually("what was asked for again", || sent(&audit) == twice).await;
    rests(&runtime).await;
    let said = answer(&simulation, &on(&["verify"])).await;
    assert!(said.starts_with("1 object in the cluster, 1 acknowledged, compared in "), "{said}");
    let verified = json(&simulation, &on(&["verify"])).await;
    assert_eq!((&verified["objects"], &verified["acknowledged"]), (&json!(1), &json!(1)), "{verified:#}");

    // It listens from some moment on: until then there is something to hear.
    let mut heard = follow(&simulation, &on(&["tail", "--step", "not_taken", "--json"]));
    let refusing = audit.faults().add(Rule::always(Fault::Status { status: 422, retry_after: None }));
    let chatter = async {
        for replicas in 4.. {
            put(&simulation, rollout("shop", "web", replicas));
            tokio::time::sleep(LOOK).await;
        }
    };
    let line = tokio::select! {
        () = chatter => unreachable!("it never ends"),
        line = heard.line() => line,
    };
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["app"], &line["step"]), (&json!(WEB), &json!("not_taken")), "{line}");
    drop(heard);
    audit.faults().remove(refusing);

    let said =
        "gitops-runtime: there is no route `nowhere`: the role resource-reporter has `default` and `audit`\n"
            .to_owned();
    for command in [
        &["explain", WEB][..],
        &["top", "--once"],
        &["tail"],
        &["parked", "list"],
        &["parked", "show", WEB],
        &["replay", "--app", WEB],
        &["verify"],
    ] {
        let refused = ask(&simulation, &[command, &["--route", "nowhere"]].concat()).await;
        assert_eq!(refused, (Some(1), String::new(), said.clone()), "{command:?}");
    }
    runtime.stop().await;
    assert!(sent(&simulation.platform).len() > 1, "the first route took what the other refused");
}

/// Where both reporters run, a route is one of the resource reporter, whatever it is called.
#[tokio::test]
async fn of_two_reporters_the_one_of_resources_has_the_routes_and_each_says_what_it_counts() {
    let (simulation, applications) = crate::ask::reported(&["shop"]).await;
    put(&simulation, rollout("shop", "web", 3));
    put(&simulation, rollout("ops", "proxy", 1));
    let resources =
        launch(&simulation, &json!({"kinds": ["rollouts.argoproj.io"], "applications": false})).await;
    resources.idle(2).await;
    let verified =
        async |more: &[&str]| answer(&simulation, &[&["verify", "--dry-run"][..], more].concat()).await;
    let said = verified(&[]).await;
    assert!(said.starts_with("1 application in the cluster, 1 acknowledged, compared in "), "{said}");
    let said = verified(&["--route", "default"]).await;
    assert!(said.starts_with("2 objects in the cluster, 2 acknowledged, compared in "), "{said}");
    let said = answer(&simulation, &["replay", "--since", "1h", "--route", "default"]).await;
    assert_eq!(said, "2 objects are read again\n");
    let said = answer(&simulation, &["replay", "--since", "1h"]).await;
    assert_eq!(said, "1 application is read again\n");
    let refused = ask(&simulation, &["verify", "--route", "audit"]).await;
    let said = "gitops-runtime: there is no route `audit`: the role resource-reporter has `default` alone\n"
        .to_owned();
    assert_eq!(refused, (Some(1), String::new(), said));
    resources.stop().await;
    applications.stop().await;
}

/// Where there is one route, it is named by its name alone.
#[tokio::test]
async fn a_reporter_with_one_route_says_so() {
    let (simulation, runtime) = crate::ask::reported(&["shop"]).await;
    let text = answer(&simulation, &["explain", "shop", "--route", "default"]).await;
    assert!(text.contains(" acknowledged  resourceVersion "), "{text}");
    let said =
        "gitops-runtime: there is no route `audit`: the role reporter has `default` alone\n".to_owned();
    let refused = ask(&simulation, &["verify", "--route", "audit"]).await;
    assert_eq!(refused, (Some(1), String::new(), said));
    runtime.stop().await;
}
