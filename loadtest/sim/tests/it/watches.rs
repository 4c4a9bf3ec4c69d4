use std::time::Duration;

use loadtest_sim::kube::{Collection, Config, KubeSim};
use pipeline_core::Key;
use reqwest::Response;
use serde_json::{Value, json};

use super::kube::{application, with};

const APPS: &str = "/apis/argoproj.io/v1alpha1/applications";

/// The lines of a watch, as they come.
struct Watch {
    response: Response,
    text: Vec<u8>,
}

impl Watch {
    async fn open(kube: &KubeSim, query: &str) -> Self {
        let response = super::get(&format!("{}{APPS}?watch=true&{query}", kube.url())).await;
        assert_eq!(response.status(), 200);
        Self { response, text: Vec::new() }
    }

    async fn line(&mut self) -> Result<Option<String>, reqwest::Error> {
        loop {
            if let Some(end) = self.text.iter().position(|&byte| byte == b'\n') {
                let line = self.text.drain(..=end).collect();
                return Ok(Some(String::from_utf8(line).unwrap().trim_end().to_owned()));
            }
            match self.response.chunk().await? {
                Some(chunk) => self.text.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    async fn event(&mut self) -> (String, String, String) {
        let line = self.line().await.unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &event["object"]["metadata"];
        (text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]))
    }
}

fn event(kind: &str, name: &str, version: &str) -> (String, String, String) {
    (kind.to_owned(), name.to_owned(), version.to_owned())
}

#[tokio::test]
async fn changes_come_in_order_with_their_versions() {
    let kube = with(&["a", "b"]).await;
    let mut watch = Watch::open(&kube, "resourceVersion=2").await;
    assert_eq!(watch.event().await, event("ADDED", "b", "3"));
    kube.apply(Collection::Applications, application("argocd", "a")).unwrap();
    kube.apply(Collection::ConfigMaps, json!({"metadata": {"namespace": "argocd", "name": "cm"}})).unwrap();
    kube.delete(Collection::Applications, &Key::new("argocd", "b").unwrap());
    assert_eq!(watch.event().await, event("MODIFIED", "a", "4"));
    assert_eq!(watch.event().await, event("DELETED", "b", "6"));
    assert_eq!(kube.counts().watches, 1);
}

#[tokio::test]
async fn without_a_version_the_present_state_comes_first() {
    let kube = with(&["a", "b"]).await;
    let mut watch = Watch::open(&kube, "").await;
    assert_eq!(watch.event().await, event("ADDED", "a", "2"));
    assert_eq!(watch.event().await, event("ADDED", "b", "3"));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut streaming = Watch::open(&kube, query).await;
    streaming.event().await;
    streaming.event().await;
    let line: Value = serde_json::from_str(&streaming.line().await.unwrap().unwrap()).unwrap();
    assert_eq!(line["type"], "BOOKMARK");
    let metadata = &line["object"]["metadata"];
    assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(metadata["resourceVersion"], "3");
}

#[tokio::test]
async fn bookmarks_come_to_those_who_want_them() {
    let config = Config { bookmark_every: Duration::from_millis(20), ..Config::default() };
    let kube = KubeSim::start(config).await.unwrap();
    kube.apply(Collection::Applications, application("argocd", "a")).unwrap();
    kube.apply(Collection::ConfigMaps, json!({"metadata": {"namespace": "argocd", "name": "cm"}})).unwrap();
    let mut regular = Watch::open(&kube, "resourceVersion=2&allowWatchBookmarks=true").await;
    assert_eq!(regular.event().await, event("BOOKMARK", "", "3"));

    let kube = with(&["a"]).await;
    let mut wants = Watch::open(&kube, "resourceVersion=2&allowWatchBookmarks=true").await;
    let mut not = Watch::open(&kube, "resourceVersion=2").await;
    kube.bookmark();
    assert_eq!(wants.event().await, event("BOOKMARK", "", "2"));
    kube.apply(Collection::Applications, application("argocd", "b")).unwrap();
    assert_eq!(not.event().await, event("ADDED", "b", "3"));
}

#[tokio::test]
async fn what_is_too_old_meets_410_in_the_stream() {
    let kube = with(&["a", "b", "c"]).await;
    kube.compact();
    let mut watch = Watch::open(&kube, "resourceVersion=3").await;
    let line: Value = serde_json::from_str(&watch.line().await.unwrap().unwrap()).unwrap();
    assert_eq!((&line["type"], &line["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(line["object"]["message"], "too old resource version: 3 (4)");
    assert_eq!(watch.line().await.unwrap(), None);

    let kube = KubeSim::start(Config { history: 2, ..Config::default() }).await.unwrap();
    for name in ["a", "b", "c"] {
        kube.apply(Collection::Applications, application("argocd", name)).unwrap();
    }
    assert_eq!(Watch::open(&kube, "resourceVersion=2").await.event().await, event("ADDED", "b", "3"));
    let (kind, ..) = Watch::open(&kube, "resourceVersion=1").await.event().await;
    assert_eq!(kind, "ERROR");
}

#[tokio::test]
async fn streams_end_break_and_carry_nonsense_as_told() {
    let kube = with(&["a"]).await;
    let mut timed = Watch::open(&kube, "resourceVersion=2&timeoutSeconds=1").await;
    assert_eq!(timed.line().await.unwrap(), None);

    let mut broken = Watch::open(&kube, "resourceVersion=2").await;
    kube.inject("{nonsense");
    assert_eq!(broken.line().await.unwrap().as_deref(), Some("{nonsense"));
    kube.drop_watches();
    assert!(broken.line().await.is_err());
}

#[tokio::test]
async fn a_stalled_stream_says_nothing_until_it_goes_on() {
    let kube = with(&["a"]).await;
    kube.stall_watches(true);
    let mut watch = Watch::open(&kube, "resourceVersion=2").await;
    kube.apply(Collection::Applications, application("argocd", "b")).unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(100), watch.event()).await;
    assert!(waited.is_err());
    kube.stall_watches(false);
    assert_eq!(watch.event().await, event("ADDED", "b", "3"));
}

#[tokio::test]
async fn a_watch_keeps_up_with_thousands_of_changes() {
    let kube = with(&[]).await;
    let mut watch = Watch::open(&kube, "resourceVersion=1").await;
    for number in 0..3_000 {
        kube.apply(Collection::Applications, application("argocd", &format!("app-{number}"))).unwrap();
    }
    for number in 0..3_000 {
        let version = (number + 2).to_string();
        assert_eq!(watch.event().await, event("ADDED", &format!("app-{number}"), &version));
    }
}

fn labelled(name: &str, labels: &Value) -> Value {
    let mut object = application("argocd", name);
    object["metadata"]["labels"] = labels.clone();
    object
}

#[tokio::test]
async fn a_watch_of_labels_shows_what_gets_them_as_added_and_what_loses_them_as_deleted() {
    let kube = with(&["a"]).await;
    let put =
        |name: &str, labels: Value| kube.apply(Collection::Applications, labelled(name, &labels)).unwrap();
    put("b", json!({"team": "x"}));
    let mut watch = Watch::open(&kube, "resourceVersion=3&labelSelector=team%20in%20(x,y),!test").await;
    put("a", json!({"team": "y"}));
    put("c", json!({"team": "z"}));
    put("b", json!({"team": "x", "tier": "1"}));
    put("b", json!({"team": "z"}));
    put("b", json!({"team": "x", "test": "yes"}));
    kube.delete(Collection::Applications, &Key::new("argocd", "c").unwrap());
    kube.delete(Collection::Applications, &Key::new("argocd", "a").unwrap());
    assert_eq!(watch.event().await, event("ADDED", "a", "4"));
    assert_eq!(watch.event().await, event("MODIFIED", "b", "6"));
    let left: Value = serde_json::from_str(&watch.line().await.unwrap().unwrap()).unwrap();
    assert_eq!(left["type"], "DELETED");
    let metadata = &left["object"]["metadata"];
    // The content of before, with the version of now.
    assert_eq!(
        (&metadata["labels"], &metadata["resourceVersion"]),
        (&json!({"team": "x", "tier": "1"}), &json!("7"))
    );
    assert_eq!(watch.event().await, event("DELETED", "a", "10"));
}

#[tokio::test]
async fn a_list_of_labels_shows_those_that_are_selected_at_its_version() {
    let kube = with(&[]).await;
    for (name, labels) in
        [("a", json!({"team": "x"})), ("b", json!({"team": "y", "tier": ""})), ("c", json!({}))]
    {
        kube.apply(Collection::Applications, labelled(name, &labels)).unwrap();
    }
    let names = async |query: &str| {
        let list = super::json(&format!("{}{APPS}?{query}", kube.url())).await.1;
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (selector, selected) in [
        ("", "abc"),
        ("team", "ab"),
        ("!team", "c"),
        ("team=x", "a"),
        ("team==y,tier=", "b"),
        ("team!=x", "bc"),
        ("team in (x,y),tier", "b"),
        ("team notin (x)", "bc"),
    ] {
        let query = format!("labelSelector={}", selector.replace(' ', "%20"));
        assert_eq!(names(&query).await, selected, "{selector}");
    }
    kube.apply(Collection::Applications, labelled("a", &json!({}))).unwrap();
    assert_eq!(names("labelSelector=team").await, "b");
    assert_eq!(names("labelSelector=team&resourceVersion=4&resourceVersionMatch=Exact").await, "ab");
}
