//! What the cluster and Argo CD say of an application now.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::Judge;
use super::told::Told;
use super::witness::{self, Life};
use crate::objects::{Objects, Reference};
use loadtest_judge::report::{Report, text};
use loadtest_sim::platform::ResourceKey;

/// One answer of Argo CD.
const ANSWER: Duration = Duration::from_secs(20);
/// One answer of the API server; longer, and the kind is not served.
const SERVED: Duration = Duration::from_secs(3);

/// An application, as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Application {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Its lives, oldest first.
    pub(super) lives: Vec<Life>,
    /// Itself; `None` when there is none (any more).
    pub(super) object: Option<Value>,
    /// Argo CD's `managed-resources`.
    pub(super) managed: Option<Value>,
    /// Argo CD's `resource-tree`.
    pub(super) tree: Option<Value>,
    /// What it lists and is there, by the entry's name.
    pub(super) live: BTreeMap<ResourceKey, Value>,
    /// The same as they were when they were reported last, where that was not as they are now and is still known.
    pub(super) past: BTreeMap<ResourceKey, Value>,
    /// Author and message of the commit it was synced with; `None` where reports have none.
    pub(super) commit: Option<(String, String)>,
    /// The application that it is a resource of, and whether that is there.
    pub(super) parent: Option<(String, bool)>,
    /// The version at which that parent was gone, if it was seen to go.
    pub(super) parent_end: Option<u64>,
    /// What could not be read, although it must be readable.
    pub(super) troubles: Vec<String>,
}

impl Application {
    /// Its version, 0 when there is none.
    pub(super) fn version(&self) -> u64 {
        self.object.as_ref().map(version).unwrap_or_default()
    }

    /// `status.resources`, without nested Applications.
    pub(super) fn entries(&self) -> impl Iterator<Item = (ResourceKey, &Value)> {
        let entries = self.object.as_ref().and_then(|object| object.pointer("/status/resources")?.as_array());
        entries
            .into_iter()
            .flatten()
            .map(|entry| (witness::key_of(entry), entry))
            .filter(|(key, _)| !(key.kind == "Application" && key.api_version.starts_with("argoproj.io/")))
    }
}

/// What an object was at one of its versions.
type Past = HashMap<(Reference, String), Value>;

/// Reads both peers.
pub(super) struct Reader {
    objects: Objects,
    http: reqwest::Client,
    /// States that do not change any more.
    past: Mutex<Past>,
}

impl Reader {
    pub(super) fn new(judge: &Judge<'_>) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(ANSWER).no_proxy().build().context("make a client")?;
        Ok(Self { objects: Objects::new(judge.kubernetes.clone()), http, past: Mutex::default() })
    }

    /// Reads an application, and what it lists as it is and as it was `told`.
    pub(super) async fn application(
        &self,
        judge: &Judge<'_>,
        name: &str,
        told: &Told,
    ) -> anyhow::Result<Application> {
        let namespace = judge.namespace.clone();
        let reference = Reference::new("argoproj.io/v1alpha1", "Application", Some(namespace.as_str()), name);
        let object = self.objects.get(&reference).await?;
        let mut application =
            Application { namespace, name: name.to_owned(), object, ..Application::default() };
        let entries: Vec<ResourceKey> = application.entries().map(|(key, _)| key).collect();
        if let Some(object) = application.object.clone() {
            for call in ["managed-resources", "resource-tree"] {
                match self.ask(judge, &format!("{name}/{call}")).await? {
                    Ok(answer) if call == "managed-resources" => application.managed = Some(answer),
                    Ok(answer) => application.tree = Some(answer),
                    // Of an application that lists nothing Argo CD may know nothing.
                    Err(_) if entries.is_empty() => {}
                    Err(status) => application.troubles.push(format!("Argo CD answers {status} to {call}")),
                }
            }
            if let Some(revision) = revision(&object) {
                let path = format!("{name}/revisions/{revision}/metadata");
                match self.ask(judge, &path).await? {
                    Ok(commit) => {
                        application.commit = Some((text(commit.get("author")), text(commit.get("message"))));
                    }
                    Err(status) => {
                        let trouble = format!("Argo CD answers {status} to metadata of {revision}");
                        application.troubles.push(trouble);
                    }
                }
            }
            let settings = match self.get(judge, "settings").await? {
                Ok(settings) => settings,
                Err(status) => bail!("Argo CD answers {status} to settings"),
            };
            if let Some(parent) = parent(&object, &settings).filter(|parent| parent != name) {
                let reference = Reference { name: parent.clone(), ..reference };
                let is_there = self.objects.get(&reference).await?.is_some();
                let lives = judge.witness.lives(&application.namespace, &parent);
                let ended = lives.last().filter(|life| life.gone);
                application.parent_end = ended.map(|life| version(&life.object));
                application.parent = Some((parent, is_there));
            }
        }
        for key in entries {
            let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
            let reference = Reference::new(&key.api_version, &key.kind, namespace, &key.name);
            // A kind that is not served has no objects; `get` would wait for it.
            if let Ok(found) = tokio::time::timeout(SERVED, self.objects.get(&reference)).await
                && let Some(object) = found?
            {
                if let Some(past) =
                    self.past(&reference, &object, told.of_resource(&key, Some(&object))).await?
                {
                    application.past.insert(key.clone(), past);
                }
                application.live.insert(key, object);
            }
        }
        // Read last: the witness may not know less than what was just read.
        application.lives = judge.witness.lives(&application.namespace, name);
        Ok(application)
    }

    /// The state that was told of an object, where it is an older one of the same life.
    async fn past(
        &self,
        reference: &Reference,
        is: &Value,
        told: Option<Report>,
    ) -> anyhow::Result<Option<Value>> {
        let part = |object: &Value, name: &str| text(object.pointer(&format!("/metadata/{name}")));
        let Some(told) = told.map(|report| report.object) else { return Ok(None) };
        let version = part(&told, "resourceVersion");
        if part(&told, "uid") != part(is, "uid") || version == part(is, "resourceVersion") {
            return Ok(None);
        }
        let key = (reference.clone(), version);
        if let Some(past) = self.past.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Some(past.clone()));
        }
        let past = self.objects.get_at(reference, &key.1).await?;
        if let Some(past) = &past {
            self.past.lock().unwrap_or_else(PoisonError::into_inner).insert(key, past.clone());
        }
        Ok(past)
    }

    /// An answer of Argo CD about an application, or its status.
    async fn ask(&self, judge: &Judge<'_>, what: &str) -> anyhow::Result<Result<Value, u16>> {
        self.get(judge, &format!("applications/{what}?appNamespace={}", judge.namespace)).await
    }

    async fn get(&self, judge: &Judge<'_>, what: &str) -> anyhow::Result<Result<Value, u16>> {
        let url = format!("{}/api/v1/{what}", judge.argocd_url);
        let request = self.http.get(url).bearer_auth(&judge.argocd_token);
        let answer = request.send().await.context("ask Argo CD")?;
        let status = answer.status().as_u16();
        if status == 401 {
            bail!("Argo CD does not know the token");
        }
        if status != 200 {
            return Ok(Err(status));
        }
        answer.json().await.map(Ok).context("read an answer of Argo CD")
    }
}

/// The revision whose commit is reported: of the first that there is of the operation that ran, the one that runs, and
/// what is compared with. `None` for charts and for several sources, whose commits are not looked at here.
fn revision(object: &Value) -> Option<String> {
    let source = object.pointer("/spec/source")?;
    if source.get("chart").is_some() || object.pointer("/spec/sources").is_some() {
        return None;
    }
    let from = ["/status/operationState/operation/sync", "/operation/sync", "/status/sync"];
    let sync = from.iter().find_map(|pointer| object.pointer(pointer))?;
    let revision = text(sync.get("revision"));
    (revision.len() == 40).then_some(revision)
}

/// The application that one is a resource of, as Argo CD's settings say that it is marked.
fn parent(object: &Value, settings: &Value) -> Option<String> {
    if text(settings.get("trackingMethod")) == "label" {
        let key = text(settings.get("appLabelKey"));
        return object.pointer("/metadata/labels")?.get(&key)?.as_str().map(str::to_owned);
    }
    let id = object.pointer("/metadata/annotations")?.get("argocd.argoproj.io/tracking-id")?.as_str()?;
    id.split_once(':').map(|(parent, _)| parent.to_owned())
}

/// The version of an object, 0 when it has none.
pub(super) fn version(object: &Value) -> u64 {
    text(object.pointer("/metadata/resourceVersion")).parse().unwrap_or_default()
}
