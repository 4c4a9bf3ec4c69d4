use std::sync::Arc;

use loadtest_sim::generate::{Fleet, Shape};
use loadtest_sim::kube::{Collection, Config, KubeSim};
use pipeline_core::Key;
use serde_json::{Value, json};

use super::json;

const APPS: &str = "/apis/argoproj.io/v1alpha1/applications";

pub(crate) fn application(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": namespace, "name": name}, "spec": {"project": "default"},
    })
}

pub(crate) async fn with(names: &[&str]) -> KubeSim {
    let kube = KubeSim::start(Config::default()).await.unwrap();
    for name in names {
        kube.apply(Collection::Applications, application("argocd", name)).unwrap();
    }
    kube
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn key(name: &str) -> Key {
    Key::new("argocd", name).unwrap()
}

#[tokio::test]
async fn pages_show_one_moment_whatever_happens_between_them() {
    let kube = with(&["a", "b", "c", "d", "e"]).await;
    let url = format!("{}{APPS}", kube.url());
    let (status, first) = json(&format!("{url}?limit=2")).await;
    assert_eq!((status, names(&first)), (200, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(first["kind"], "ApplicationList");
    assert_eq!(first["items"][0]["kind"], "Application");
    assert_eq!(first["metadata"]["resourceVersion"], "6");
    assert_eq!(first["metadata"]["remainingItemCount"], 3);

    assert!(kube.delete(Collection::Applications, &key("c")));
    let mut changed = application("argocd", "d");
    changed["spec"]["project"] = json!("other");
    kube.apply(Collection::Applications, changed).unwrap();
    kube.apply(Collection::Applications, application("argocd", "bb")).unwrap();

    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = json(&format!("{url}?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["spec"]["project"], "default");
    assert_eq!(second["metadata"]["resourceVersion"], "6");
    let token = second["metadata"]["continue"].as_str().unwrap();
    let (_, third) = json(&format!("{url}?limit=2&continue={token}")).await;
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third["metadata"]["continue"], "");
    assert!(third["metadata"].get("remainingItemCount").is_none());

    let (_, now) = json(&url).await;
    assert_eq!(names(&now), ["a", "b", "bb", "d", "e"]);
    assert_eq!(now["metadata"]["resourceVersion"], "9");
    assert_eq!(kube.counts().lists, 4);
}

#[tokio::test]
async fn a_token_whose_moment_is_compacted_meets_410_and_a_way_on() {
    let kube = with(&["a", "b", "c"]).await;
    let url = format!("{}{APPS}", kube.url());
    let (_, first) = json(&format!("{url}?limit=1")).await;
    kube.apply(Collection::Applications, application("argocd", "bb")).unwrap();
    kube.compact();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (status, expired) = json(&format!("{url}?limit=1&continue={token}")).await;
    assert_eq!((status, expired["reason"].as_str()), (410, Some("Expired")));
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let (status, rest) = json(&format!("{url}?continue={token}")).await;
    assert_eq!((status, names(&rest)), (200, vec!["b".to_owned(), "bb".to_owned(), "c".to_owned()]));
}

#[tokio::test]
async fn resource_versions_mean_what_they_mean_to_the_real_one() {
    let kube = with(&["a", "b", "c"]).await;
    let url = format!("{}{APPS}", kube.url());
    let (_, any) = json(&format!("{url}?limit=1&resourceVersion=0")).await;
    assert_eq!(names(&any).len(), 3);
    let (_, exact) = json(&format!("{url}?resourceVersion=3&resourceVersionMatch=Exact")).await;
    assert_eq!(names(&exact), ["a", "b"]);
    let (_, newer) =
        json(&format!("{url}?resourceVersion=3&resourceVersionMatch=NotOlderThan&limit=2")).await;
    assert_eq!((names(&newer).len(), newer["metadata"]["resourceVersion"].as_str()), (2, Some("4")));
    let (status, large) = json(&format!("{url}?resourceVersion=9")).await;
    assert_eq!(status, 504);
    assert_eq!(large["message"], "Timeout: Too large resource version: 9, current: 4");
    assert_eq!(large["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    kube.compact();
    let (status, old) = json(&format!("{url}?resourceVersion=3&resourceVersionMatch=Exact")).await;
    assert_eq!((status, old["message"].as_str()), (410, Some("too old resource version: 3 (4)")));
    for (query, message) in [
        (
            "limit=1&continue=x&resourceVersion=3",
            "resourceVersion: Forbidden: may not be specified when continue is set",
        ),
        ("continue=x", "continue key is not valid"),
        ("resourceVersion=x", "resourceVersion: Invalid value"),
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        ("labelSelector=a%20b", "unable to parse requirement: a b"),
        ("fieldSelector=spec.x%3Db", "field label not supported: spec.x=b"),
    ] {
        let (status, refused) = json(&format!("{url}?{query}")).await;
        assert_eq!((status, refused["message"].as_str()), (400, Some(message)));
    }
}

#[tokio::test]
async fn one_object_is_read_not_older_than_asked() {
    let kube = with(&["a"]).await;
    let url = format!("{}/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", kube.url());
    let (status, object) = json(&format!("{url}/a?resourceVersion=2")).await;
    assert_eq!((status, object["metadata"]["resourceVersion"].as_str()), (200, Some("2")));
    assert!(!object["metadata"]["uid"].as_str().unwrap().is_empty());
    assert_eq!(json(&format!("{url}/a?resourceVersion=3")).await.0, 504);
    let (status, missing) = json(&format!("{url}/b")).await;
    assert_eq!((status, missing["kind"].as_str()), (404, Some("Status")));
    assert_eq!(missing["message"], "applications.argoproj.io \"b\" not found");
    assert_eq!(missing["details"], json!({"name": "b", "group": "argoproj.io", "kind": "applications"}));
    assert_eq!(json(&format!("{}/api/v1/namespaces/x/pods", kube.url())).await.0, 404);
    assert_eq!(kube.counts().gets, 3);
}

#[tokio::test]
async fn namespaces_and_fields_select() {
    let kube = with(&["a", "b"]).await;
    kube.apply(Collection::Applications, application("team", "a")).unwrap();
    let secret = json!({"metadata": {"namespace": "argocd", "name": "a"}, "data": {}});
    kube.apply(Collection::Secrets, secret).unwrap();
    let base = format!("{}/apis/argoproj.io/v1alpha1", kube.url());
    let (_, own) = json(&format!("{base}/namespaces/team/applications")).await;
    assert_eq!(names(&own), ["a"]);
    let (_, named) = json(&format!("{base}/applications?fieldSelector=metadata.name%3Da")).await;
    assert_eq!(named["items"].as_array().unwrap().len(), 2);
    let (status, _) = json(&format!("{}/api/v1/namespaces/argocd/secrets/a", kube.url())).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn any_text_can_stand_for_an_object() {
    let kube = with(&["a"]).await;
    let version = kube.apply_text(Collection::Applications, &key("odd"), |version| {
        format!(
            r#"{{"metadata":{{"name":"odd","namespace":"argocd","resourceVersion":"{version}"}},"spec":7}}"#
        )
        .into()
    });
    assert_eq!(version, 3);
    let (_, list) = json(&format!("{}{APPS}", kube.url())).await;
    assert_eq!(
        (names(&list), &list["items"][1]["spec"]),
        (vec!["a".to_owned(), "odd".to_owned()], &json!(7))
    );
}

#[tokio::test]
async fn thousands_of_generated_applications_come_in_pages() {
    let fleet = Arc::new(Fleet::new(Shape { applications: 1_200, ..Shape::default() }).unwrap());
    let kube = KubeSim::start(Config { fleet: Some(fleet.clone()), history: 10, ..Config::default() })
        .await
        .unwrap();
    for state in fleet.snapshot() {
        kube.apply_generated(&fleet.key(state.index).unwrap(), state);
    }
    let url = format!("{}{APPS}", kube.url());
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let (status, page) = json(&format!("{url}?limit=500&continue={token}")).await;
        assert_eq!(status, 200);
        seen.extend(names(&page));
        page["metadata"]["continue"].as_str().unwrap().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 1_200);
    assert!(seen.is_sorted());
    assert_eq!(kube.counts().lists, 3);
    assert_eq!(kube.len(Collection::Applications), 1_200);
}

#[tokio::test]
async fn the_server_goes_down_and_comes_up_with_its_objects() {
    let kube = with(&["a"]).await;
    let url = format!("{}{APPS}", kube.url());
    kube.down().await;
    assert!(super::client().get(&url).send().await.unwrap_err().is_connect());
    let address = kube.url().trim_start_matches("http://").parse().unwrap();
    let other = tokio::net::TcpSocket::new_v4().unwrap().bind(address).unwrap_err();
    assert_eq!(other.kind(), std::io::ErrorKind::AddrInUse, "its port stays its own");
    kube.up().await.unwrap();
    assert_eq!(names(&json(&url).await.1), ["a"]);
}
