//! What Argo CD knows of an application, as it is told: shapes are those of its own answers.

use async_graphql::SimpleObject;
use jiff::Timestamp;
use pipeline_redact::Redactor;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::rendered::{ObjectName, Rendered, moved, names};

/// How a resource is.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(default)]
pub(crate) struct HealthStatus {
    status: Option<String>,
    message: Option<String>,
}

/// Something that Argo CD says of a resource.
#[derive(SimpleObject, Deserialize)]
pub(crate) struct ResourceInfo {
    name: String,
    value: String,
}

/// A resource, by its names.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(default)]
pub(crate) struct ResourceRef {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// A node of the tree.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceNode {
    group: Option<String>,
    version: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
    #[serde(deserialize_with = "or_none")]
    parent_refs: Vec<ResourceRef>,
    #[serde(deserialize_with = "or_none")]
    info: Vec<ResourceInfo>,
    #[serde(deserialize_with = "or_none")]
    images: Vec<String>,
    health: Option<HealthStatus>,
    resource_version: Option<String>,
    created_at: Option<String>,
}

/// What an application has, and what that has.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ApplicationTree {
    #[serde(deserialize_with = "or_none")]
    nodes: Vec<ResourceNode>,
    #[serde(deserialize_with = "or_none")]
    orphaned_nodes: Vec<ResourceNode>,
}

/// Live and target state of a resource, as JSON texts with secrets taken out.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ManagedResource {
    group: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
    target_state: Option<String>,
    live_state: Option<String>,
    normalized_live_state: Option<String>,
    predicted_live_state: Option<String>,
    hook: bool,
    modified: bool,
}

/// An answer that is a list.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(crate) struct Items<T> {
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) items: Vec<T>,
}

/// A resource that is not as Git says.
#[derive(SimpleObject)]
pub(crate) struct ResourceDiff {
    group: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
    /// What is there, as YAML; null: nothing.
    live: Option<String>,
    /// What a sync would make of it, as YAML; null: nothing.
    target: Option<String>,
}

/// A deployment of an application.
#[derive(SimpleObject)]
pub(crate) struct HistoryEntry {
    id: i64,
    revision: Option<String>,
    revisions: Vec<String>,
    deploy_started_at: Option<String>,
    deployed_at: Option<String>,
    initiated_by: Option<String>,
    automated: bool,
}

/// An event of Kubernetes.
#[derive(SimpleObject)]
pub(crate) struct Event {
    r#type: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    count: Option<i64>,
    first_timestamp: Option<String>,
    last_timestamp: Option<String>,
    involved_object: Option<ResourceRef>,
    source: Option<String>,
}

/// An action that a resource offers.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceAction {
    name: String,
    display_name: Option<String>,
    disabled: bool,
}

/// A link that Argo CD is set to show.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeepLink {
    title: String,
    /// `http` or `https`.
    url: String,
    description: Option<String>,
    icon_class: Option<String>,
}

/// What a resource offers.
#[derive(Deserialize)]
pub(crate) struct Actions {
    #[serde(default, deserialize_with = "or_none")]
    pub(crate) actions: Vec<ResourceAction>,
}

/// Go writes a list of nothing as null.
pub(super) fn or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl ManagedResource {
    /// Without secrets.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let states = [
            &mut self.target_state,
            &mut self.live_state,
            &mut self.normalized_live_state,
            &mut self.predicted_live_state,
        ];
        for state in states {
            // Argo CD writes what is not there as null.
            let kept = state.take().filter(|text| !text.is_empty() && text != "null");
            *state = kept.map(|text| redactor.manifest(&text).into_owned());
        }
        self
    }

    /// As a sync to another revision would have it, of which these are the manifests.
    pub(crate) fn at(mut self, rendered: &mut Rendered, redactor: &Redactor) -> Self {
        let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
        let (group, namespace) = (text(&self.group), text(&self.namespace));
        let called = ObjectName { group: &group, kind: &self.kind, namespace: &namespace, name: &self.name };
        let Some(then) = rendered.take(called) else {
            return Self { target_state: None, predicted_live_state: None, ..self };
        };
        if group.is_empty() && self.kind == "Secret" {
            // Its values are hidden by Argo CD, each time in another way: what of it is compared is that it is there.
            return self;
        }
        let then = redactor.manifest(&then.to_string()).into_owned();
        let read = |text: Option<&String>| text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let made = self.predicted_live_state.as_ref().or(self.target_state.as_ref());
        let made = match (read(made), read(self.target_state.as_ref()), read(Some(&then))) {
            (Some(mut made), Some(now), Some(then)) => {
                moved(&mut made, &now, &then);
                made.to_string()
            }
            _ => then.clone(),
        };
        self.predicted_live_state = Some(made);
        self.target_state = Some(then);
        self
    }

    /// What another revision has, and this application has not yet.
    pub(crate) fn new_at(manifest: &Value, redactor: &Redactor) -> Self {
        let [group, kind, namespace, name] = names(manifest);
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let target_state = Some(redactor.manifest(&manifest.to_string()).into_owned());
        Self { group: text(group), kind, namespace: text(namespace), name, target_state, ..Self::default() }
    }

    /// What is not as Git says; `None`: nothing of it.
    pub(crate) fn diff(self) -> Option<ResourceDiff> {
        if self.hook {
            return None;
        }
        let live = self.normalized_live_state.or(self.live_state);
        let target = match &self.target_state {
            // It is there and Git does not have it: a sync with prune takes it away.
            None => None,
            Some(_) => self.predicted_live_state.or(self.target_state),
        };
        if live == target {
            return None;
        }
        let (live, target) = (yaml(live), yaml(target));
        let Self { group, kind, namespace, name, .. } = self;
        // The same may be written in two ways.
        (live != target).then_some(ResourceDiff { group, kind, namespace, name, live, target })
    }
}

fn yaml(json: Option<String>) -> Option<String> {
    let value: Value = serde_json::from_str(&json?).ok()?;
    serde_saphyr::to_string(&value).ok()
}

impl DeepLink {
    /// Without secrets; `None`: it is none that a browser is to follow.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Option<Self> {
        let is_web = self.url.starts_with("https://") || self.url.starts_with("http://");
        for text in [&mut self.title, &mut self.url] {
            *text = redactor.text(text).into_owned();
        }
        self.description = self.description.map(|text| redactor.text(&text).into_owned());
        is_web.then_some(self)
    }
}

impl HistoryEntry {
    pub(crate) fn all(application: &Value) -> Vec<Self> {
        let entries = application.pointer("/status/history").and_then(Value::as_array);
        let one = |entry: &Value| {
            let revisions = entry.get("revisions").and_then(Value::as_array);
            Some(Self {
                id: super::number(entry, "/id")?,
                revision: super::text(entry, "/revision"),
                revisions: revisions
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it.as_str().map(str::to_owned))
                    .collect(),
                deploy_started_at: super::text(entry, "/deployStartedAt"),
                deployed_at: super::text(entry, "/deployedAt"),
                initiated_by: super::text(entry, "/initiatedBy/username"),
                automated: super::is_true(entry, "/initiatedBy/automated"),
            })
        };
        entries.into_iter().flatten().rev().filter_map(one).collect()
    }
}

impl Event {
    pub(crate) fn of(event: &Value, redactor: &Redactor) -> Self {
        let text = |pointer| super::text(event, pointer);
        let involved = event.get("involvedObject").cloned();
        Self {
            r#type: text("/type"),
            reason: text("/reason"),
            message: text("/message").map(|message| redactor.text(&message).into_owned()),
            count: super::number(event, "/count"),
            first_timestamp: text("/firstTimestamp"),
            last_timestamp: text("/lastTimestamp").or_else(|| text("/eventTime")),
            involved_object: involved.and_then(|it| serde_json::from_value(it).ok()),
            source: text("/source/component").or_else(|| text("/reportingComponent")),
        }
    }

    /// When it was seen last, whatever form that is written in.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        self.last_timestamp.as_deref()?.parse().ok()
    }
}
