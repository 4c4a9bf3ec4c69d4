//! Kubernetes objects of any kind, as data.
//!
//! takes: YAML or references - gives: objects as JSON
//! calls: the API server: discovery of a kind once, then `PATCH` (server-side apply, merge, JSON), `GET`, `DELETE` -
//! fails: when the API server refuses; a kind that is not served yet is waited for

mod reference;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use loadtest_sim::{PATIENCE, until};
pub use reference::Reference;

/// Who applies, for the API server's record of who set which field.
const OWNER: &str = "cluster";
/// Its schemas are so large that the API server takes seconds to apply one, and a fraction of that to create it.
const DEFINITION: &str = "CustomResourceDefinition";
const ASK: Duration = Duration::from_millis(50);

/// Reads and writes objects with the rights of its client.
#[derive(Clone)]
pub struct Objects {
    client: kube::Client,
    /// By `apiVersion` and kind; shared by clones.
    kinds: Arc<Mutex<HashMap<(String, String), Kind>>>,
}

/// How the API server calls a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    plural: String,
    is_namespaced: bool,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Objects {
    /// Objects through `client`.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, kinds: Arc::default() }
    }

    /// Applies (server-side, by force) every object of YAML documents, in their order; those without a namespace, of
    /// kinds that have one, go to `namespace`. A kind that is not served yet is waited for, and so are all
    /// CustomResourceDefinitions until they are established. Tells what was applied.
    pub async fn apply(&self, yaml: &str, namespace: &str) -> anyhow::Result<Vec<Reference>> {
        let mut applied = Vec::new();
        let yaml = yaml.to_owned();
        // Definitions are read for a good part of a second in a debug build.
        let objects =
            tokio::task::spawn_blocking(move || documents(&yaml)).await.context("read YAML documents")??;
        for object in objects {
            applied.push(self.apply_object(object, namespace).await?);
        }
        for reference in &applied {
            if reference.kind == DEFINITION {
                self.established(reference).await?;
            }
        }
        Ok(applied)
    }

    /// The same of an object as data, or of those of a `List`.
    pub async fn apply_value(&self, object: &Value, namespace: &str) -> anyhow::Result<()> {
        // JSON is YAML.
        self.apply(&object.to_string(), namespace).await.map(drop)
    }

    /// Applies every `*.yaml` of a folder (not of folders in it, nor a `kustomization.yaml`), in the order of names.
    pub async fn apply_folder(&self, folder: &Path, namespace: &str) -> anyhow::Result<Vec<Reference>> {
        let act = || format!("read {}", folder.display());
        let mut entries = tokio::fs::read_dir(folder).await.with_context(act)?;
        let mut files = Vec::new();
        while let Some(entry) = entries.next_entry().await.with_context(act)? {
            let path = entry.path();
            let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
            if is_yaml && !path.ends_with("kustomization.yaml") {
                files.push(path);
            }
        }
        files.sort();
        let mut all = String::new();
        for file in files {
            let text = tokio::fs::read_to_string(&file).await;
            all.push_str("\n---\n");
            all.push_str(&text.with_context(|| format!("read {}", file.display()))?);
        }
        self.apply(&all, namespace).await
    }

    /// The object; `None` when there is none.
    pub async fn get(&self, reference: &Reference) -> anyhow::Result<Option<Value>> {
        let act = || format!("get {reference}");
        let path = self.path(reference).await.with_context(act)?;
        match self.ask(Method::GET, &path, None).await {
            Err(why) if is_answer(&why, StatusCode::NOT_FOUND) => Ok(None),
            answer => answer.map(Some).with_context(act),
        }
    }

    /// The object as it was at `version` (a `resourceVersion` that it had); `None` when the API server does not know
    /// any more.
    pub async fn get_at(&self, reference: &Reference, version: &str) -> anyhow::Result<Option<Value>> {
        let act = || format!("get {reference} as it was");
        let path = self.path(reference).await.with_context(act)?;
        let all = path.rsplit_once('/').map_or(path.as_str(), |(all, _)| all);
        let one = format!("fieldSelector=metadata.name%3D{}", reference.name);
        let path = format!("{all}?{one}&resourceVersion={version}&resourceVersionMatch=Exact");
        let mut list = match self.ask(Method::GET, &path, None).await {
            Err(why) if is_answer(&why, StatusCode::GONE) => return Ok(None),
            answer => answer.with_context(act)?,
        };
        let Some(object) = list.pointer_mut("/items/0").map(Value::take) else { return Ok(None) };
        // The items of a list do not repeat what the list says of all.
        let mut named = json!({ "apiVersion": reference.api_version, "kind": reference.kind });
        if let (Value::Object(named), Value::Object(object)) = (&mut named, object) {
            named.extend(object);
        }
        Ok(Some(named))
    }

    /// Patches the object, or its subresource (`status`, `scale`), and gives what the API server answers: the object,
    /// or that of the subresource. A list is a JSON patch (RFC 6902), an object a merge patch (RFC 7386).
    pub async fn patch(
        &self,
        reference: &Reference,
        patch: &Value,
        subresource: Option<&str>,
    ) -> anyhow::Result<Value> {
        let act = || format!("patch {reference}");
        let mut path = self.path(reference).await.with_context(act)?;
        if let Some(subresource) = subresource {
            path = format!("{path}/{subresource}");
        }
        let path = format!("{path}?fieldManager={OWNER}");
        let media =
            if patch.is_array() { "application/json-patch+json" } else { "application/merge-patch+json" };
        self.ask(Method::PATCH, &path, Some((media, patch))).await.with_context(act)
    }

    /// Asks for its deletion, after which what it owns goes too, and tells whether there was one to delete; finalizers may hold
    /// it for a while.
    pub async fn delete(&self, reference: &Reference) -> anyhow::Result<bool> {
        let act = || format!("delete {reference}");
        let path = self.path(reference).await.with_context(act)?;
        let body = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" });
        match self.ask(Method::DELETE, &path, Some(("application/json", &body))).await {
            Err(why) if is_answer(&why, StatusCode::NOT_FOUND) => Ok(false),
            answer => answer.map(|_| true).with_context(act),
        }
    }

    async fn apply_object(&self, mut object: Value, namespace: &str) -> anyhow::Result<Reference> {
        let mut reference =
            Reference::of(&object).context("an object needs apiVersion, kind and metadata.name")?;
        let act = |reference: &Reference| format!("apply {reference}");
        let kind = self.kind(&reference).await.with_context(|| act(&reference))?;
        if kind.is_namespaced && reference.namespace.is_none() {
            reference.namespace = Some(namespace.to_owned());
            object["metadata"]["namespace"] = Value::from(namespace);
        }
        if reference.kind == DEFINITION && self.create(&reference, &kind, &object).await? {
            return Ok(reference);
        }
        let path = format!("{}?fieldManager={OWNER}&force=true", path(&reference, &kind));
        let body = Some(("application/apply-patch+yaml", &object));
        let began = Instant::now();
        loop {
            match self.ask(Method::PATCH, &path, body).await {
                // A kind may be named by discovery a moment before it is served.
                Err(why) if is_answer(&why, StatusCode::NOT_FOUND) && is_soon(&why, began) => {
                    tokio::time::sleep(ASK).await;
                }
                answer => return answer.map(|_| ()).with_context(|| act(&reference)).map(|()| reference),
            }
        }
    }

    /// Tells whether there was none before.
    async fn create(&self, reference: &Reference, kind: &Kind, object: &Value) -> anyhow::Result<bool> {
        let path = format!("{}?fieldManager={OWNER}", collection(reference, kind));
        match self.ask(Method::POST, &path, Some(("application/json", object))).await {
            Err(why) if is_answer(&why, StatusCode::CONFLICT) => Ok(false),
            answer => answer.map(|_| true).with_context(|| format!("create {reference}")),
        }
    }

    async fn established(&self, definition: &Reference) -> anyhow::Result<()> {
        let look = async || {
            let found = self.get(definition).await?;
            Ok(found.is_some_and(|found| condition(&found, "Established") == Some("True")))
        };
        if !until(PATIENCE, ASK, look, |is_met| *is_met).await? {
            bail!("{definition} is not established after {PATIENCE:?}");
        }
        Ok(())
    }

    async fn path(&self, reference: &Reference) -> anyhow::Result<String> {
        Ok(path(reference, &self.kind(reference).await?))
    }

    /// How the kind is called, asked for until it is served.
    async fn kind(&self, reference: &Reference) -> anyhow::Result<Kind> {
        let key = (reference.api_version.clone(), reference.kind.clone());
        let began = Instant::now();
        loop {
            if let Some(known) = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
                return Ok(known.clone());
            }
            let list = match self.ask(Method::GET, &version_path(&reference.api_version), None).await {
                Err(why) if is_answer(&why, StatusCode::NOT_FOUND) => Value::Null,
                answer => {
                    answer.with_context(|| format!("ask for the kinds of {}", reference.api_version))?
                }
            };
            let found = kinds(&reference.api_version, &list);
            let is_served = found.contains_key(&key);
            self.kinds.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
            if !is_served {
                if began.elapsed() > PATIENCE {
                    bail!("the API server does not serve {} {}", reference.api_version, reference.kind);
                }
                tokio::time::sleep(ASK).await;
            }
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, kube::Error> {
        let request = Request::builder().method(method).uri(path);
        let request = match body {
            Some((media, body)) => request.header("Content-Type", media).body(body.to_string().into_bytes()),
            None => request.body(Vec::new()),
        };
        self.client.request(request.map_err(kube::Error::HttpError)?).await
    }
}

/// The status of a condition of an object.
#[must_use]
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|one| one["type"] == kind)?["status"].as_str()
}

/// Every object of YAML documents; the items of a `List` stand for themselves.
fn documents(yaml: &str) -> anyhow::Result<Vec<Value>> {
    // Definitions of custom resources are larger than what strangers may send.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(yaml, options).context("read YAML documents")?;
    let mut objects = Vec::new();
    for mut document in documents {
        if document["kind"] == "List"
            && let Some(items) = document["items"].as_array_mut()
        {
            objects.append(items);
        } else {
            objects.push(document);
        }
    }
    Ok(objects)
}

fn version_path(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

fn path(reference: &Reference, kind: &Kind) -> String {
    format!("{}/{}", collection(reference, kind), reference.name)
}

fn collection(reference: &Reference, kind: &Kind) -> String {
    let (version, plural) = (version_path(&reference.api_version), &kind.plural);
    match reference.namespace.as_deref().filter(|_| kind.is_namespaced) {
        Some(namespace) => format!("{version}/namespaces/{namespace}/{plural}"),
        None => format!("{version}/{plural}"),
    }
}

/// The kinds of an `APIResourceList`, without subresources.
fn kinds(api_version: &str, list: &Value) -> HashMap<(String, String), Kind> {
    let resources = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kinds = resources.iter().filter_map(|resource| {
        let (plural, kind) = (resource["name"].as_str()?, resource["kind"].as_str()?);
        let is_namespaced = resource["namespaced"].as_bool()?;
        let named =
            ((api_version.to_owned(), kind.to_owned()), Kind { plural: plural.to_owned(), is_namespaced });
        (!plural.contains('/')).then_some(named)
    });
    kinds.collect()
}

fn is_answer(why: &kube::Error, code: StatusCode) -> bool {
    matches!(why, kube::Error::Api(status) if status.code == code.as_u16())
}

fn is_soon(why: &kube::Error, began: Instant) -> bool {
    // A missing namespace is answered 404 as well, and says its name.
    let names_one = matches!(why, kube::Error::Api(status) if status.details.as_ref().is_some_and(|one| !one.name.is_empty()));
    !names_one && began.elapsed() < PATIENCE
}
