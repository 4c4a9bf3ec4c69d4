//! Several kinds as one source: versions that are served, many at once, what is selected, and objects that are large.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::{
    Emitter, Event, Key, ObjectIndex, Reason, Shutdown, Source as _, SourceNote, Survey as _, Version,
};
use serde_json::json;
use stages_kube::{Config, Deps, Kind, Mapping, Selector, Wanted, Watches};
use tokio::sync::mpsc;

use crate::fake::{Answer, Asked, Fake};
use crate::harness::{Samples, config};

const PATIENCE: Duration = Duration::from_secs(120);

/// Any kind.
struct Any(Kind);

impl Mapping for Any {
    type Status = serde::de::IgnoredAny;

    fn kind(&self) -> Kind {
        self.0
    }

    fn named(&self) -> &'static str {
        self.0.singular
    }

    fn event(&self, event: Event, _: Option<&Self::Status>) -> Event {
        event
    }

    fn may_drift(&self, _: Option<&Self::Status>) -> bool {
        false
    }
}

fn wanted(plural: &str, pinned: Option<&str>, selector: Selector) -> Wanted<Any> {
    let kind = Kind::interned("example.org", pinned.unwrap_or("v1"), plural, plural);
    Wanted {
        kind,
        pinned: pinned.is_some(),
        only: Vec::new(),
        except: Vec::new(),
        selector,
        mapping: Box::new(Any),
    }
}

/// A running source of several kinds.
struct Run {
    source: Arc<Watches<Any>>,
    events: mpsc::UnboundedReceiver<Event>,
    listed: mpsc::UnboundedReceiver<usize>,
    stop: Shutdown,
}

impl Run {
    async fn start(fake: &Fake, wanted: Vec<Wanted<Any>>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Config { namespaces: vec!["*".to_owned()], ..config(fake.address) };
        let deps =
            Deps { seen: ObjectIndex::default(), meter: Arc::new(Samples::default()), unwatched: None };
        let source = Arc::new(config.build_kinds(wanted, Duration::from_millis(20), deps).await.unwrap());
        let (to_events, events) = mpsc::unbounded_channel();
        let (to_listed, listed) = mpsc::unbounded_channel();
        let out = Emitter::new(
            |_| true,
            move |event| {
                let sent = to_events.send(event).is_ok();
                Box::pin(async move { sent })
            },
            move |note| {
                if let SourceNote::Listed { objects } = note {
                    let _ = to_listed.send(objects);
                }
            },
        );
        let stop = Shutdown::new();
        let (running, stopped) = (source.clone(), stop.clone());
        tokio::spawn(async move { running.run(out, stopped).await });
        Self { source, events, listed, stop }
    }

    async fn event(&mut self) -> Event {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event in time").unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn object(kind: &str, name: &str, version: u64, more: &str) -> String {
    let metadata =
        json!({"name": name, "namespace": "home", "uid": name, "resourceVersion": version.to_string()});
    format!(
        r#"{{"kind":"{kind}","apiVersion":"example.org/v1","metadata":{metadata},"spec":{{"text":"{more}"}}}}"#
    )
}

fn list(items: &[String]) -> Answer {
    let items = items.join(",");
    Answer::Json(format!(
        r#"{{"kind":"SomeList","apiVersion":"example.org/v1","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
    ))
}

/// What is served of the group: these versions, the first preferred, each with these kinds.
fn discovery(asked: &Asked, versions: &[&str], plurals: &[String]) -> Option<Answer> {
    let version =
        |version: &&str| json!({"groupVersion": format!("example.org/{version}"), "version": version});
    if asked.path == "/apis/example.org" {
        let all: Vec<_> = versions.iter().map(version).collect();
        let group =
            json!({"kind": "APIGroup", "name": "example.org", "versions": all, "preferredVersion": all[0]});
        return Some(Answer::Json(group.to_string()));
    }
    let of = asked.path.strip_prefix("/apis/example.org/")?;
    versions.contains(&of).then(|| {
        let resources: Vec<_> =
            plurals.iter().map(|plural| json!({"name": plural, "verbs": ["get", "list", "watch"]})).collect();
        Answer::Json(json!({"kind": "APIResourceList", "resources": resources}).to_string())
    })
}

#[tokio::test]
async fn of_two_versions_the_preferred_one_is_watched_unless_one_is_pinned() {
    for (pinned, expected) in
        [(None, "/apis/example.org/v2beta1/gears"), (Some("v1"), "/apis/example.org/v1/gears")]
    {
        let fake = Fake::start(|asked| {
            let plurals = ["gears".to_owned()];
            discovery(asked, &["v2beta1", "v1"], &plurals).unwrap_or_else(|| match asked.kind() {
                "watch" => Answer::Hang,
                _ => list(&[object("Gear", "a", 1, "")]),
            })
        })
        .await;
        let mut run = Run::start(&fake, vec![wanted("gears", pinned, Selector::default())]).await;
        assert_eq!(run.event().await.key.to_string(), "gears/home/a");
        let lists: BTreeSet<_> = fake
            .asked("get")
            .into_iter()
            .map(|asked| asked.path)
            .filter(|path| path.ends_with("/gears"))
            .collect();
        assert_eq!(lists, BTreeSet::from([expected.to_owned()]));
    }
}

#[tokio::test]
async fn a_hundred_kinds_are_watched_at_once_and_told_of_as_one() {
    let plurals: Vec<String> = (0..100).map(|number| format!("kind{number}s")).collect();
    let served = plurals.clone();
    let fake = Fake::start(move |asked| {
        discovery(asked, &["v1"], &served).unwrap_or_else(|| match asked.kind() {
            "watch" => Answer::Hang,
            _ => list(&[object("Some", "a", 1, ""), object("Some", "b", 2, "")]),
        })
    })
    .await;
    let wanted = plurals.iter().map(|plural| wanted(plural, None, Selector::default())).collect();
    let mut run = Run::start(&fake, wanted).await;
    let objects = tokio::time::timeout(PATIENCE, run.listed.recv()).await.expect("all is listed in time");
    assert_eq!(objects, Some(200));
    let mut keys = BTreeSet::new();
    for _ in 0..200 {
        keys.insert(run.event().await.key);
    }
    assert_eq!(keys.len(), 200);
    assert_eq!(run.source.keys().len(), 200);
}

#[tokio::test]
async fn what_is_selected_is_asked_for_so_and_one_of_it_is_read_as_a_list_of_it_alone() {
    let selected = Arc::new(Mutex::new(true));
    let answer = selected.clone();
    let fake = Fake::start(move |asked| {
        discovery(asked, &["v1"], &["gears".to_owned()]).unwrap_or_else(|| match asked.kind() {
            "watch" => Answer::Hang,
            _ if *answer.lock().unwrap() => list(&[object("Gear", "a", 3, "")]),
            _ => list(&[]),
        })
    })
    .await;
    let selector = Selector::new("team in (a,b)", "spec.size!=7").unwrap();
    let mut run = Run::start(&fake, vec![wanted("gears", None, selector)]).await;
    run.event().await;
    let key = Key::of_kind("gears", "home", "a").unwrap();
    let read = run.source.read(&key, Version(2)).await.unwrap().unwrap();
    assert_eq!((read.version, read.key.name()), (Version(3), "a"));
    *selected.lock().unwrap() = false;
    assert_eq!(run.source.read(&key, Version(2)).await.unwrap(), None, "what is selected no more is gone");
    let lists: Vec<_> =
        fake.asked("get").into_iter().filter(|asked| asked.path.ends_with("/gears")).collect();
    let of = |at: usize| {
        ["labelSelector", "fieldSelector", "resourceVersion"]
            .map(|name| lists[at].get(name).unwrap_or_default())
    };
    assert_eq!(of(0), ["team in (a,b)", "spec.size!=7", ""]);
    assert_eq!(of(1), ["team in (a,b)", "metadata.name=a,spec.size!=7", "2"]);
    assert_eq!(lists[1].path, "/apis/example.org/v1/namespaces/home/gears");
    let watches: Vec<_> = fake.asked("watch");
    assert!(watches.iter().all(|asked| asked.get("labelSelector") == Some("team in (a,b)")));
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_is_left_out_of_a_survey_of_the_others() {
    let refused = Arc::new(Mutex::new(vec!["wheels"]));
    let answer = refused.clone();
    let fake = Fake::start(move |asked| {
        discovery(asked, &["v1"], &["gears".to_owned(), "wheels".to_owned()]).unwrap_or_else(|| {
            let is_refused = answer.lock().unwrap().iter().any(|plural| asked.path.ends_with(plural));
            match asked.kind() {
                _ if is_refused => Answer::Status(403),
                "watch" => Answer::Hang,
                _ => list(&[object("Some", "a", 1, "")]),
            }
        })
    })
    .await;
    let wanted = ["wheels", "gears"].map(|plural| wanted(plural, None, Selector::default()));
    let mut run = Run::start(&fake, wanted.into()).await;
    tokio::time::timeout(PATIENCE, run.listed.recv()).await.expect("all that can be is listed in time");
    let found = run.source.survey(Vec::new()).await.unwrap();
    let keys: Vec<String> = found.objects.iter().map(|found| found.key.to_string()).collect();
    assert_eq!((keys, found.unlisted), (vec!["gears/home/a".to_owned()], BTreeSet::from(["wheels"])));
    let wheel = Key::of_kind("wheels", "home", "a").unwrap();
    assert!(run.source.watches(&wheel), "it is watched all the same, and waited for");
    refused.lock().unwrap().push("gears");
    let error = run.source.survey(Vec::new()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Forbidden, "nothing could be listed");
    refused.lock().unwrap().clear();
    let found = run.source.survey(Vec::new()).await.unwrap();
    assert_eq!((found.objects.len(), found.unlisted.len()), (2, 0));
}

#[tokio::test]
async fn an_object_of_five_megabytes_comes_whole() {
    let text = "x".repeat(5 << 20);
    let fake = Fake::start(move |asked| {
        discovery(asked, &["v1"], &["gears".to_owned()]).unwrap_or_else(|| match asked.kind() {
            "watch" => {
                let (feed, answer) = crate::fake::stream();
                feed.change("MODIFIED", &object("Gear", "a", 12, &text));
                answer
            }
            _ => list(&[object("Gear", "a", 1, &text)]),
        })
    })
    .await;
    let mut run = Run::start(&fake, vec![wanted("gears", None, Selector::default())]).await;
    for version in [1, 12] {
        let event = run.event().await;
        assert_eq!(event.version, Version(version));
        assert!(event.body().is_some_and(|body| body.len() > 5 << 20));
    }
}
