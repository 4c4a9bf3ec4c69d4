//! Services whose names are not there yet, move, or are gone.

use http::Response;
use stages_router::{Allowed, NamesConfig, RouterConfig, Webhooks};

use crate::dns::Dns;
use crate::support::{Running, Upstream, config, eventually, full, limits, proxied};

async fn saying(address: &str, text: &'static str) -> Upstream {
    Upstream::start(address, move |_| async move { Response::new(full(text)) }).await
}

fn asking(dns: &Dns) -> NamesConfig {
    NamesConfig {
        servers: vec![dns.address],
        cluster_domain: Some("corp.example".to_owned()),
        namespace: Some("runtime".to_owned()),
    }
}

async fn before(dns: &Dns, port: u16) -> Running {
    let app_proxy = Some(proxied(&format!("http://cap-app-proxy:{port}")));
    Running::start(RouterConfig { names: asking(dns), app_proxy, ..config() }).await
}

const NAME: &str = "cap-app-proxy.runtime.svc.corp.example.";

#[tokio::test]
async fn it_starts_without_a_service_and_finds_it_when_it_is_there() {
    let (dns, service) = (Dns::start().await, saying("127.0.0.1:0", "here").await);
    let running = before(&dns, service.address.port()).await;
    assert_eq!(running.get("/readyz").await, (200, "ok".to_owned()));
    assert_eq!(running.get("/app-proxy").await, (503, "the service is not there\n".to_owned()));
    running.counts(r#"gitops_runtime_router_failures_total{reason="unresolved",route="app_proxy"} 1"#).await;
    assert_eq!(running.get("/readyz").await.0, 200);
    dns.set(NAME, &["127.0.0.1"], 1);
    eventually("the service", async || running.get("/app-proxy").await == (200, "here".to_owned())).await;
    assert!(dns.asked().iter().all(|name| name == NAME), "{:?}", dns.asked());
    running.end().await;
}

#[tokio::test]
async fn an_address_that_changes_is_followed_while_the_former_one_still_answers() {
    let (dns, old) = (Dns::start().await, saying("127.0.0.1:0", "old").await);
    let port = old.address.port();
    let new = saying(&format!("127.0.0.2:{port}"), "new").await;
    dns.set(NAME, &["127.0.0.1"], 1);
    let running = before(&dns, port).await;
    assert_eq!(running.get("/app-proxy").await.1, "old");
    dns.set(NAME, &["127.0.0.2"], 3_600);
    eventually("the new address", async || running.get("/app-proxy").await.1 == "new").await;
    let asked = old.lines().len();
    for _ in 0..5 {
        assert_eq!(running.get("/app-proxy").await.1, "new");
    }
    assert_eq!(old.lines().len(), asked, "connections to the former address are not used any more");
    // It is known for an hour, and nobody is there any more.
    dns.set(NAME, &["127.0.0.3"], 3_600);
    let third = saying(&format!("127.0.0.3:{port}"), "third").await;
    drop(new);
    eventually("the third address", async || running.get("/app-proxy").await.1 == "third").await;
    drop(third);
    running.end().await;
}

#[tokio::test]
async fn a_service_may_have_an_address_of_the_sixth_version_alone_and_so_may_the_router() {
    let (dns, service) = (Dns::start().await, saying("[::1]:0", "six").await);
    dns.set(NAME, &["::1"], 60);
    let app_proxy = Some(proxied(&format!("http://cap-app-proxy:{}", service.address.port())));
    let listen = "[::1]:0".parse().unwrap();
    let running = Running::start(RouterConfig { listen, names: asking(&dns), app_proxy, ..config() }).await;
    assert_eq!(running.get("/app-proxy").await, (200, "six".to_owned()));
    let forwarded = service.last().headers["forwarded"].to_str().unwrap().to_owned();
    assert_eq!(forwarded, "for=\"[::1]\";host=\"router\";proto=http");
    running.end().await;
}

#[tokio::test]
async fn a_webhook_reaches_the_service_of_its_event_source_with_its_path() {
    let (dns, service) = (Dns::start().await, Upstream::recording().await);
    dns.set("push-eventsource-svc.runtime.svc.corp.example.", &["127.0.0.1"], 60);
    let allowed = vec![Allowed { namespace: Some("runtime".to_owned()), name: None }];
    let webhooks = Webhooks { allowed, port: service.address.port(), limits: limits() };
    let running = Running::start(RouterConfig { names: asking(&dns), webhooks, ..config() }).await;
    assert_eq!(running.get("/webhooks/runtime/push/github?a=b").await, (200, "ok".to_owned()));
    assert_eq!(service.lines(), ["GET /webhooks/runtime/push/github?a=b"]);
    let host = format!("push-eventsource-svc.runtime.svc.corp.example:{}", service.address.port());
    assert_eq!(service.last().headers["host"], host.as_str());
    let gone = running.get("/webhooks/runtime/pull").await;
    assert_eq!(gone, (503, "the service is not there\n".to_owned()));
    let elsewhere = running.get("/webhooks/kube-system/push").await;
    assert_eq!(elsewhere, (404, "this webhook is not one that may be reached\n".to_owned()));
    running.end().await;
}
