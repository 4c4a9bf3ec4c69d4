//! Who looks on from the start: which applications there were, which lives they had, and what they listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, pin_mut};
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use loadtest_judge::report::text;
use loadtest_sim::PATIENCE;
use loadtest_sim::platform::ResourceKey;

/// How soon a watch that failed goes on.
const AGAIN: Duration = Duration::from_millis(200);

/// One life of an application: from its creation to its deletion.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// `metadata.uid`.
    pub uid: String,
    /// Its last state that was seen.
    pub object: Value,
    /// Whether it ended.
    pub gone: bool,
    /// What it ever listed as its resources.
    pub resources: BTreeSet<ResourceKey>,
}

/// Namespace and name of an application, and its lives, oldest first.
#[derive(Debug, Default)]
struct Lives(BTreeMap<(String, String), Vec<Life>>);

/// Looks on from the start, with an administrator's rights: every application that there is, and what it lists. To be
/// started before the reporter, so that it sees all that the reporter can see.
#[derive(Debug)]
pub struct Witness {
    seen: Arc<Mutex<Lives>>,
    _stop: DropGuard,
}

impl Witness {
    /// Starts to look on; ends with this value. Returns when the first list is complete.
    pub async fn start(kubernetes: kube::Client, namespace: &str) -> anyhow::Result<Self> {
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Application"));
        let api: Api<DynamicObject> = Api::namespaced_with(kubernetes, namespace, &resource);
        let seen = Arc::new(Mutex::new(Lives::default()));
        let stop = CancellationToken::new();
        let (listed, first) = tokio::sync::oneshot::channel();
        let (of_task, stopped) = (seen.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = follow(api, &of_task, listed) => {}
            }
        });
        match tokio::time::timeout(PATIENCE, first).await {
            Ok(Ok(())) => Ok(Self { seen, _stop: stop.drop_guard() }),
            _ => bail!("the applications were not listed within {PATIENCE:?}"),
        }
    }

    /// The lives of an application, oldest first; empty if there never was one.
    #[must_use]
    pub fn lives(&self, namespace: &str, name: &str) -> Vec<Life> {
        lock(&self.seen).0.get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
    }
}

fn lock(seen: &Mutex<Lives>) -> MutexGuard<'_, Lives> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes every event, for ever.
async fn follow(api: Api<DynamicObject>, seen: &Mutex<Lives>, listed: tokio::sync::oneshot::Sender<()>) {
    let mut listed = Some(listed);
    // What a new list holds; what it lacks was deleted while nobody watched.
    let mut list: Option<BTreeSet<(String, String)>> = None;
    let events = watcher(api, watcher::Config::default());
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let change = |object: &DynamicObject, gone| {
            let object = serde_json::to_value(object).context("read an application").unwrap_or_default();
            lock(seen).take(object, gone)
        };
        match event {
            Ok(Event::Init) => list = Some(BTreeSet::new()),
            Ok(Event::InitApply(object)) => {
                let key = change(&object, false);
                list.get_or_insert_default().insert(key);
            }
            Ok(Event::InitDone) => {
                let there = list.take().unwrap_or_default();
                lock(seen).end(&there);
                if let Some(listed) = listed.take() {
                    // Nobody waits any more: the first list took too long.
                    let _ = listed.send(());
                }
            }
            Ok(Event::Apply(object)) => drop(change(&object, false)),
            Ok(Event::Delete(object)) => drop(change(&object, true)),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

impl Lives {
    /// Takes note of one state; gives the application's namespace and name.
    fn take(&mut self, object: Value, gone: bool) -> (String, String) {
        let part = |pointer: &str| text(object.pointer(pointer));
        let key = (part("/metadata/namespace"), part("/metadata/name"));
        let uid = part("/metadata/uid");
        let all = self.0.entry(key.clone()).or_default();
        if all.last().is_none_or(|life| life.uid != uid) {
            if let Some(before) = all.last_mut() {
                before.gone = true;
            }
            all.push(Life { uid, object: Value::Null, gone: false, resources: BTreeSet::new() });
        }
        if let Some(life) = all.last_mut() {
            life.resources.extend(listed(&object));
            life.object = object;
            life.gone |= gone;
        }
        key
    }

    /// Ends the lives of those that a whole list lacks.
    fn end(&mut self, there: &BTreeSet<(String, String)>) {
        let lacking = self.0.iter_mut().filter(|(key, _)| !there.contains(key));
        for life in lacking.filter_map(|(_, all)| all.last_mut()) {
            life.gone = true;
        }
    }
}

/// What an Application lists as its resources; nested Applications speak for themselves.
pub(super) fn listed(object: &Value) -> impl Iterator<Item = ResourceKey> {
    let entries = object.pointer("/status/resources").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .map(key_of)
        .filter(|key| !(key.kind == "Application" && key.api_version.starts_with("argoproj.io/")))
}

/// The resource that an entry of `status.resources` names.
pub(super) fn key_of(entry: &Value) -> ResourceKey {
    let (group, version) = (text(entry.get("group")), text(entry.get("version")));
    ResourceKey {
        api_version: if group.is_empty() { version } else { format!("{group}/{version}") },
        kind: text(entry.get("kind")),
        namespace: text(entry.get("namespace")),
        name: text(entry.get("name")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(uid: &str, resources: &Value) -> Value {
        json!({"metadata": {"namespace": "argocd", "name": "web", "uid": uid}, "status": {"resources": resources}})
    }

    fn key(kind: &str, name: &str) -> ResourceKey {
        ResourceKey {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: "web".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn lives_follow_each_other_and_remember_what_they_listed() {
        let mut seen = Lives::default();
        let entry =
            |name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": name});
        let child =
            json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "name": "child"});
        let key_of_app = seen.take(app("u1", &json!([entry("a"), child])), false);
        seen.take(app("u1", &json!([entry("b")])), true);
        seen.take(app("u2", &json!([entry("c")])), false);
        let all = seen.0[&key_of_app].clone();
        let shown: Vec<_> = all.iter().map(|life| (life.uid.as_str(), life.gone)).collect();
        assert_eq!(shown, [("u1", true), ("u2", false)]);
        assert_eq!(all[0].resources, BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
        assert_eq!(all[1].resources, BTreeSet::from([key("ConfigMap", "c")]));
        // A new life whose predecessor's end nobody saw ends it.
        seen.take(app("u3", &json!([])), false);
        assert!(seen.0[&key_of_app][1].gone);
        seen.end(&BTreeSet::from([key_of_app.clone()]));
        assert!(!seen.0[&key_of_app][2].gone);
        seen.end(&BTreeSet::new());
        assert!(seen.0[&key_of_app][2].gone);
    }
}
