//! What a drift was, in words: of an application how often, what differs of which resource, and who changed it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use stages_platform_store::{DriftManifests, Drifting, StoreError};

use crate::view::home::Said;

/// Who changed an object last is whoever began its drift where both are no further apart.
const APART: SignedDuration = SignedDuration::from_mins(10);
/// The longest value that is told.
const VALUE: usize = 40;
/// The longest path to a value.
const PATH: usize = 200;
/// What Argo CD calls itself: what it changes is no drift.
const ARGO_CD: &str = "argocd-";
/// Comparisons that are remembered; beyond them all are made anew.
const REMEMBERED: usize = 1_000;

/// What a manifest that runs and one that should say of a drift.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Who last changed what differs, or, where that is not known, what runs; and when.
    changed: Option<(Timestamp, String)>,
    /// The first field that differs.
    differs: Option<Difference>,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Difference {
    /// The way to it, in words.
    path: String,
    /// What it should be.
    desired: String,
    /// What it is.
    actual: String,
}

/// A step on the way to a field.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// The field of an object.
    Field(&'a str),
    /// An item of a list as it runs, by its place.
    Item(usize, &'a Value),
}

/// Comparisons that were made, by the digests of their manifests: pages tell of the same drifts again and again. Cloning shares.
#[derive(Debug, Clone, Default)]
pub(super) struct Comparisons(Arc<Mutex<HashMap<DriftManifests, Arc<Comparison>>>>);

impl Comparisons {
    /// That of two manifests, which are read where it is not remembered.
    pub(super) async fn of(
        &self,
        manifests: &DriftManifests,
        read: impl AsyncFnOnce(&DriftManifests) -> Result<(Option<String>, Option<String>), StoreError>,
    ) -> Result<Arc<Comparison>, StoreError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(manifests).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let (actual, desired) = read(manifests).await?;
        let made = Arc::new(Comparison::of(actual.as_deref(), desired.as_deref()));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(manifests.clone(), made.clone());
        Ok(made)
    }
}

/// Who manages what of an object, and since when.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Managed {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    managed_fields: Vec<Fields>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    manager: String,
    time: String,
    subresource: String,
    /// Which fields, as the API server writes it; null where that is not told.
    #[serde(rename = "fieldsV1")]
    fields: Value,
}

impl Comparison {
    fn of(actual: Option<&str>, desired: Option<&str>) -> Self {
        let read = |text: Option<&str>| serde_json::from_str::<Value>(text?).ok();
        let (actual, desired) = (read(actual), read(desired));
        let Some(actual) = actual else { return Self::default() };
        let mut path = Vec::new();
        let differs = desired.as_ref().and_then(|desired| differs(&actual, desired, &mut path));
        Self { changed: changed(&actual, &path), differs }
    }

    /// Who changed what runs when its drift began, as the API server keeps it.
    fn by(&self, onset: i64) -> Option<&str> {
        let (at, manager) = self.changed.as_ref()?;
        let onset = Timestamp::from_millisecond(onset).ok()?;
        (onset.duration_since(*at).abs() <= APART).then_some(manager)
    }
}

/// What is told of an application that is not as Git says, the comparison being that of what began last. For how long stands
/// beside it.
pub(super) fn sentence(drifting: &Drifting, comparison: &Comparison) -> Vec<Said> {
    let last = drifting.last.as_ref();
    let by = last.and_then(|last| comparison.by(last.onset));
    let mut said = match (drifting.times, by.is_some()) {
        (0 | 1, true) => vec![Said::text("Drifted")],
        (0 | 1, false) => vec![Said::text("Out of sync with Git")],
        (times, true) => vec![Said::text(format!("Drifted {times} times this week"))],
        (times, false) => vec![Said::text(format!("Out of sync {times} times this week"))],
    };
    if let Some(one) = last {
        said.push(Said::text(": "));
        let name = format!("{}/{}", one.kind, one.name);
        match &comparison.differs {
            Some(Difference { path, desired, actual }) => {
                said.push(Said::Code(format!("{name} {path}")));
                said.push(Said::text(format!(" {desired} → {actual}")));
            }
            None => said.push(Said::Code(name)),
        }
    }
    said.extend(by.into_iter().flat_map(|by| [Said::text(", by "), Said::Code(by.to_owned())]));
    said
}

/// What of a resource differed when its drift began, and who had changed it; nothing where neither is known.
pub(super) fn what(comparison: &Comparison, onset: i64) -> Vec<Said> {
    let mut said = Vec::new();
    if let Some(Difference { path, desired, actual }) = &comparison.differs {
        said.push(Said::Code(path.clone()));
        said.push(Said::text(format!(" {desired} → {actual}")));
    }
    if let Some(by) = comparison.by(onset) {
        said.push(Said::text(if said.is_empty() { "changed by " } else { ", by " }));
        said.push(Said::Code(by.to_owned()));
    }
    said
}

/// Who changed the field that a way leads to last and when, unless that is Argo CD: whoever changed something else, however lately,
/// did not make it differ.
fn changed(actual: &Value, path: &[Step<'_>]) -> Option<(Timestamp, String)> {
    let all = Managed::deserialize(actual).ok()?.metadata.managed_fields.into_iter();
    // A status is the cluster's own; `kubectl scale` changes an object by the subresource of that name.
    let all = all.filter(|fields| fields.subresource != "status");
    let all = all.filter(|fields| fields.fields.is_null() || holds(&fields.fields, path));
    let at = |fields: &Fields| fields.time.parse::<Timestamp>().ok();
    let (at, last) = all.filter_map(|fields| Some((at(&fields)?, fields))).max_by_key(|(at, _)| *at)?;
    let manager = last.manager.split(['/', ' ']).next().unwrap_or_default();
    let is_told = !manager.is_empty() && manager.len() <= PATH && !manager.starts_with(ARGO_CD);
    is_told.then(|| (at, manager.to_owned()))
}

/// Whether a field is one of those that somebody manages, or within one of which they manage all.
fn holds(fields: &Value, path: &[Step<'_>]) -> bool {
    let (Some((step, rest)), Some(fields)) = (path.split_first(), fields.as_object()) else { return true };
    let is_item = |key: &str, item: &Value| {
        let keys = key.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Value>(keys).ok());
        keys.as_ref()
            .and_then(Value::as_object)
            .is_some_and(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value)))
    };
    if fields.is_empty() {
        return true;
    }
    match step {
        Step::Field(name) => fields.get(&format!("f:{name}")).is_some_and(|within| holds(within, rest)),
        Step::Item(_, item) => fields.iter().any(|(key, within)| is_item(key, item) && holds(within, rest)),
    }
}

/// The first field of what should run that is another in what runs; `path` is the way to it then, and empty where there is none.
fn differs<'a>(actual: &'a Value, desired: &'a Value, path: &mut Vec<Step<'a>>) -> Option<Difference> {
    // What is told of an object beside what it is to do may have been changed by the cluster.
    let parts = desired.as_object()?.iter();
    let mut parts =
        parts.filter(|(name, _)| !["metadata", "status", "apiVersion", "kind"].contains(&name.as_str()));
    parts.find_map(|(name, part)| beyond(Step::Field(name), part, actual.get(name)?, path))
}

/// As [`within`], one step further.
fn beyond<'a>(
    step: Step<'a>,
    desired: &'a Value,
    actual: &'a Value,
    path: &mut Vec<Step<'a>>,
) -> Option<Difference> {
    path.push(step);
    let found = within(desired, actual, path);
    if found.is_none() {
        path.pop();
    }
    found
}

fn within<'a>(desired: &'a Value, actual: &'a Value, path: &mut Vec<Step<'a>>) -> Option<Difference> {
    match (desired, actual) {
        (Value::Object(fields), Value::Object(others)) => {
            // Amounts are written in several ways.
            let mut fields = fields.iter().filter(|(name, _)| *name != "resources");
            fields.find_map(|(name, field)| beyond(Step::Field(name), field, others.get(name)?, path))
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(index, (item, other))| beyond(Step::Item(index, other), item, other, path))
        }
        (Value::Number(_) | Value::Bool(_) | Value::String(_), _)
            if std::mem::discriminant(desired) == std::mem::discriminant(actual) && desired != actual =>
        {
            let path = in_words(path);
            let (desired, actual) = (shown(desired)?, shown(actual)?);
            (path.len() <= PATH).then_some(Difference { path, desired, actual })
        }
        _ => None,
    }
}

fn in_words(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.extend([".", *name]),
            Step::Item(index, _) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// A value that is short and no secret's.
fn shown(value: &Value) -> Option<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let well = text.len() <= VALUE && !text.contains('\n') && !text.starts_with("redacted:");
    (well && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stages_platform_store::DriftingResource;

    use super::*;

    const ONSET: &str = "2026-11-26T10:00:00Z";

    fn told(times: u64, actual: &Value, desired: Option<&Value>) -> String {
        let last = DriftingResource {
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            onset: ONSET.parse::<Timestamp>().unwrap().as_millisecond(),
            manifests: DriftManifests::default(),
        };
        let comparison = Comparison::of(Some(&actual.to_string()), desired.map(Value::to_string).as_deref());
        let said = sentence(&Drifting { times, last: Some(last) }, &comparison);
        said.iter()
            .map(|one| match one {
                Said::Text(text) => text.clone(),
                Said::Code(code) => format!("`{code}`"),
            })
            .collect()
    }

    fn live(managers: &[(&str, &str, &str)], spec: &Value) -> Value {
        let fields: Vec<Value> = managers
            .iter()
            .map(|(manager, time, subresource)| json!({"manager": manager, "time": time, "subresource": subresource}))
            .collect();
        json!({"metadata": {"name": "web", "managedFields": fields}, "spec": spec})
    }

    #[test]
    fn how_often_what_and_by_whom_is_told_as_far_as_it_is_known() {
        let desired = json!({"metadata": {"name": "w"}, "spec": {"paused": false, "replicas": 6}});
        let kubectl = [
            ("argocd-controller", "2026-11-20T10:00:00Z", ""),
            ("kubectl", "2026-11-26T09:58:30Z", ""),
            ("kube-controller-manager", "2026-11-26T09:59:30Z", "status"),
        ];
        let changed = json!({"paused": false, "replicas": 9, "more": true});
        for (times, actual, expected) in [
            (
                3,
                live(&kubectl, &changed),
                "Drifted 3 times this week: `Deployment/web spec.replicas` 6 → 9, by `kubectl`",
            ),
            (1, live(&kubectl, &changed), "Drifted: `Deployment/web spec.replicas` 6 → 9, by `kubectl`"),
            (
                1,
                live(&[kubectl[0], ("kubectl", "2026-11-26T09:58:30Z", "scale"), kubectl[2]], &changed),
                "Drifted: `Deployment/web spec.replicas` 6 → 9, by `kubectl`",
            ),
            // Somebody changed it, and long before: a commit that waits is no drift.
            (
                2,
                live(&[("kubectl", "2026-11-20T10:00:00Z", "")], &changed),
                "Out of sync 2 times this week: `Deployment/web spec.replicas` 6 → 9",
            ),
            (1, live(&kubectl[..1], &changed), "Out of sync with Git: `Deployment/web spec.replicas` 6 → 9"),
            (0, live(&[], &json!({"replicas": 6})), "Out of sync with Git: `Deployment/web`"),
            (1, json!("no object"), "Out of sync with Git: `Deployment/web`"),
        ] {
            assert_eq!(told(times, &actual, Some(&desired)), expected);
        }
        assert_eq!(told(1, &live(&[], &changed), None), "Out of sync with Git: `Deployment/web`");
        let nothing = sentence(&Drifting::default(), &Comparison::default());
        assert_eq!(nothing, [Said::text("Out of sync with Git")]);
    }

    #[test]
    fn who_changed_another_field_is_not_told_to_have_made_this_one_differ() {
        let at = |minute: u32| format!("2026-11-26T09:{minute}:00Z");
        let owner = |manager: &str, minute, fields: Value| json!({"manager": manager, "time": at(minute), "fieldsV1": fields});
        let replicas = || json!({"f:spec": {"f:replicas": {}}});
        let image = || {
            json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}},
                "k:{\"name\":\"side\"}": {".": {}, "f:command": {}}}}})
        };
        let all = || json!({"f:spec": {}});
        let spec = |replicas: u32, image: &str| json!({"replicas": replicas, "containers": [{"name": "side", "image": "s"}, {"name": "web", "image": image}]});
        let by = |owners: Vec<Value>, actual: Value| {
            let actual = json!({"metadata": {"managedFields": owners}, "spec": actual});
            let desired = json!({"spec": spec(6, "web:1")});
            Comparison::of(Some(&actual.to_string()), Some(&desired.to_string())).changed.map(|(_, by)| by)
        };
        let named = |name: &str| Some(name.to_owned());
        let restarted = || owner("kubectl-rollout", 59, json!({"f:spec": {"f:template": {}}}));
        // Git says another number: whoever restarted it meanwhile did not change that.
        let argo = || owner("argocd-controller", 50, replicas());
        assert_eq!(by(vec![argo(), restarted()], spec(9, "web:1")), None);
        assert_eq!(
            by(vec![argo(), owner("kubectl", 55, replicas()), restarted()], spec(9, "web:1")),
            named("kubectl")
        );
        let scaled =
            json!({"manager": "hpa", "time": at(55), "subresource": "scale", "fieldsV1": replicas()});
        assert_eq!(by(vec![argo(), scaled, restarted()], spec(9, "web:1")), named("hpa"));
        // Of a list, whoever has the field of that item; of what is managed whole, whoever has all of it.
        let edited = || owner("kubectl-edit", 52, image());
        assert_eq!(by(vec![argo(), edited(), restarted()], spec(6, "web:2")), named("kubectl-edit"));
        let other = json!({"replicas": 6, "containers": [{"name": "side", "image": "t"}, {"name": "web", "image": "web:1"}]});
        assert_eq!(by(vec![edited(), restarted()], other), None);
        assert_eq!(by(vec![owner("helm", 51, all())], spec(6, "web:2")), named("helm"));
        // Where no field is known to differ, whoever was the last.
        assert_eq!(by(vec![argo(), restarted()], spec(6, "web:1")), named("kubectl-rollout"));
    }

    #[test]
    fn a_drift_of_the_past_is_told_by_what_differed_and_who_changed_it_as_far_as_that_is_known() {
        let said = |actual: Value, desired: Value, onset: &str| {
            let comparison = Comparison::of(Some(&actual.to_string()), Some(&desired.to_string()));
            let onset = onset.parse::<Timestamp>().unwrap().as_millisecond();
            what(&comparison, onset).iter().map(Said::as_str).collect::<String>()
        };
        let kubectl = [("kubectl", "2026-11-26T09:58:30Z", "")];
        let nine = || live(&kubectl, &json!({"replicas": 9}));
        let six = || json!({"spec": {"replicas": 6}});
        assert_eq!(said(nine(), six(), ONSET), "spec.replicas 6 → 9, by kubectl");
        assert_eq!(said(nine(), six(), "2026-11-27T10:00:00Z"), "spec.replicas 6 → 9");
        assert_eq!(said(nine(), json!({"spec": {}}), ONSET), "changed by kubectl");
        assert_eq!(said(json!("odd"), json!([]), ONSET), "");
    }

    #[test]
    fn what_differs_is_told_of_fields_that_git_says_and_of_no_secret() {
        let differs = |desired: Value, actual: Value| {
            let text = told(1, &json!({"spec": actual}), Some(&json!({"spec": desired})));
            text.split_once("Deployment/web").unwrap().1.to_owned()
        };
        let containers = |image: &str| json!({"containers": [{"name": "web", "image": image, "resources": {"cpu": image}}]});
        assert_eq!(
            differs(containers("web:1"), containers("web:2")),
            " spec.containers[0].image` web:1 → web:2"
        );
        // Of a list with another number of items nothing is told.
        assert_eq!(differs(json!({"args": ["a"]}), json!({"args": ["a", "b"]})), "`");
        assert_eq!(differs(json!({"cpu": "1"}), json!({"cpu": 1})), "`");
        assert_eq!(
            differs(json!({"key": "redacted:hmac-sha256:00"}), json!({"key": "redacted:hmac-sha256:11"})),
            "`"
        );
        assert_eq!(differs(json!({"key": "a".repeat(41)}), json!({"key": "b"})), "`");
        let long = "a".repeat(PATH);
        assert_eq!(differs(json!({(&*long): 1}), json!({(&*long): 2})), "`");
    }

    #[tokio::test]
    async fn manifests_are_read_once_however_often_a_page_tells_of_them_and_few_are_remembered() {
        let comparisons = Comparisons::default();
        let of = |number: usize| {
            let digest = number.to_be_bytes().to_vec();
            DriftManifests { actual: Some(digest.clone()), desired: Some(digest) }
        };
        let texts = |replicas: usize| Some(json!({"spec": {"replicas": replicas}}).to_string());
        let mut reads = 0;
        for _ in 0..3 {
            let read = async |_: &DriftManifests| {
                reads += 1;
                Ok((texts(9), texts(6)))
            };
            let made = comparisons.of(&of(0), read).await.unwrap();
            let [path, desired, actual] = ["spec.replicas", "6", "9"].map(str::to_owned);
            assert_eq!(made.differs, Some(Difference { path, desired, actual }));
        }
        assert_eq!(reads, 1);
        for number in 1..=REMEMBERED {
            comparisons.of(&of(number), async |_| Ok((None, None))).await.unwrap();
            assert!(comparisons.0.lock().unwrap().len() <= REMEMBERED);
        }
        // What cannot be read now is read the next time.
        comparisons.of(&of(0), async |_| Err(StoreError::Closed)).await.unwrap_err();
        comparisons.of(&of(0), async |_| Ok((None, None))).await.unwrap();
    }
}
