use std::time::{Duration, Instant};

use loadtest_sim::argocd::{ArgoCdSim, Config, Content, Kind};
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::kube::KubeSim;
use serde_json::Value;

use super::{client, json};

async fn argocd() -> ArgoCdSim {
    let config =
        Config { listen: Default::default(), root: String::new(), token: None, content: Content::Told };
    let argocd = ArgoCdSim::start(config).await.unwrap();
    for name in ["a", "b"] {
        argocd.set(Kind::ResourceTree, name, 200, r#"{"nodes":[]}"#);
    }
    argocd
}

fn tree(argocd: &ArgoCdSim, application: &str) -> String {
    format!("{}/api/v1/applications/{application}/resource-tree?appNamespace=argocd", argocd.url())
}

#[tokio::test]
async fn a_status_is_told_in_the_peers_own_words() {
    let argocd = argocd().await;
    argocd.faults().add(Rule::always(Fault::Status { status: 503, retry_after: Some(7) }).times(1));
    let response = super::get(&tree(&argocd, "a")).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "7");
    let body: Value = response.json().await.unwrap();
    assert_eq!((body["code"].as_u64(), body["message"].as_str()), (Some(14), Some("told to fail")));
    assert_eq!(json(&tree(&argocd, "a")).await.0, 200);
    assert_eq!(argocd.faults().hits(), 1);

    let kube: KubeSim = super::kube::with(&["a"]).await;
    kube.faults().add(Rule::always(Fault::Status { status: 429, retry_after: None }).on("list"));
    let (status, body) = json(&format!("{}/apis/argoproj.io/v1alpha1/applications", kube.url())).await;
    assert_eq!((status, body["reason"].as_str()), (429, Some("TooManyRequests")));
    let one = format!("{}/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a", kube.url());
    assert_eq!(json(&one).await.0, 200);
}

#[tokio::test]
async fn a_rule_meets_one_call_or_one_application() {
    let argocd = argocd().await;
    let fault = Fault::Status { status: 500, retry_after: None };
    let of_a = argocd.faults().add(Rule::always(fault.clone()).of("a"));
    argocd.faults().add(Rule::always(fault).on("manifests"));
    assert_eq!(json(&tree(&argocd, "a")).await.0, 500);
    assert_eq!(json(&tree(&argocd, "b")).await.0, 200);
    argocd.faults().remove(of_a);
    assert_eq!(json(&tree(&argocd, "a")).await.0, 200);
    let manifests = format!("{}/api/v1/applications/a/manifests", argocd.url());
    assert_eq!(json(&manifests).await.0, 500);
    argocd.faults().clear();
    assert_eq!(json(&manifests).await.0, 404);
}

#[tokio::test]
async fn bodies_are_cut_short_and_connections_close() {
    let argocd = argocd().await;
    argocd.set(Kind::ResourceTree, "a", 200, "x".repeat(100_000));
    argocd.faults().add(Rule::always(Fault::Cut { after: 60_000 }).times(1));
    let mut response = super::get(&tree(&argocd, "a")).await;
    assert_eq!((response.status().as_u16(), response.content_length()), (200, Some(100_000)));
    let mut got = 0;
    let broke = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => got += chunk.len(),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broke);
    assert_eq!(got, 60_000);
    argocd.faults().add(Rule::always(Fault::Close).times(1));
    assert!(client().get(tree(&argocd, "a")).send().await.unwrap_err().is_request());
    assert_eq!(super::get(&tree(&argocd, "a")).await.status(), 200);
}

#[tokio::test]
async fn nonsense_redirects_delays_and_hangs() {
    let argocd = argocd().await;
    argocd.faults().add(Rule::always(Fault::Nonsense).times(1));
    let nonsense = super::get(&tree(&argocd, "a")).await;
    assert_eq!(nonsense.status(), 200);
    assert!(serde_json::from_slice::<Value>(&nonsense.bytes().await.unwrap()).is_err());

    argocd.faults().add(Rule::always(Fault::Redirect { to: "http://127.0.0.1:1/x".to_owned() }).times(1));
    let elsewhere = super::get(&tree(&argocd, "a")).await;
    assert_eq!(
        (elsewhere.status().as_u16(), elsewhere.headers()["location"].to_str().unwrap()),
        (302, "http://127.0.0.1:1/x")
    );

    argocd.faults().set_latency(Duration::from_millis(30));
    argocd.faults().add(Rule::always(Fault::Delay { ms: 50 }).times(1));
    let began = Instant::now();
    assert_eq!(json(&tree(&argocd, "a")).await.0, 200);
    assert!(began.elapsed() >= Duration::from_millis(80));

    argocd.faults().add(Rule::always(Fault::Hang).times(1));
    let hung = client().get(tree(&argocd, "a")).timeout(Duration::from_millis(150)).send().await;
    assert!(hung.unwrap_err().is_timeout());
    // It may have given up before it asked.
    argocd.faults().clear();
    assert_eq!(json(&tree(&argocd, "a")).await.0, 200);
}

#[tokio::test]
async fn a_rate_meets_about_that_part() {
    let argocd = argocd().await;
    argocd.faults().add(Rule::always(Fault::Status { status: 500, retry_after: None }).rate(0.3));
    let client = client();
    let mut failed = 0;
    // Six standard deviations to each side: one run in half a billion is outside.
    for _ in 0..300 {
        failed += u32::from(client.get(tree(&argocd, "a")).send().await.unwrap().status() == 500);
    }
    assert!((42..=138).contains(&failed), "{failed}");
    assert_eq!(argocd.count(Kind::ResourceTree), 300);
}

#[test]
fn rules_are_data() {
    let text = r#"{"fault": {"status": {"status": 503, "retry_after": 2}}, "call": "report", "application": "a",
        "times": 3, "rate": 0.5, "effect": true}"#;
    let rule: Rule = serde_json::from_str(text).unwrap();
    let same = Rule::always(Fault::Status { status: 503, retry_after: Some(2) });
    assert_eq!(rule, same.on("report").of("a").times(3).rate(0.5).after_effect());
    let hang: Rule = serde_json::from_str(r#"{"fault": "hang"}"#).unwrap();
    assert_eq!(hang, Rule::always(Fault::Hang));
    assert!(serde_json::from_str::<Rule>(r#"{"fault": "hang", "time": 1}"#).is_err());
}

#[tokio::test]
async fn open_requests_are_counted_at_their_peak() {
    let argocd = argocd().await;
    argocd.faults().add(Rule::always(Fault::Hang));
    let (client, url) = (client(), tree(&argocd, "a"));
    let open = futures::future::join_all((0..5).map(|_| client.get(&url).send()));
    let all_are_open = async {
        while argocd.traffic().peak() < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answers = open => panic!("{answers:?}"),
        () = all_are_open => {}
    }
    assert_eq!(argocd.traffic().peak(), 5);
    assert!(argocd.traffic().kept().is_empty());
}
