//! A Secret, and the SealedSecret that is made of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value, json};

use crate::{Certificate, SealError, value};

/// How many bytes a Secret may have: Kubernetes keeps no larger object.
const MAX_BYTES: usize = 1 << 20;
/// How many values a Secret may have, as each costs an encryption with RSA.
const MAX_VALUES: usize = 1_000;
/// The annotations that say the scope, both on the Secret and on the SealedSecret.
const CLUSTER: &str = "sealedsecrets.bitnami.com/cluster-wide";
const NAMESPACE: &str = "sealedsecrets.bitnami.com/namespace-wide";
/// The annotation in which `kubectl apply` keeps the whole Secret, which must not be passed on.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where a SealedSecret may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Under its name in its namespace alone.
    Strict,
    /// Under any name in its namespace.
    Namespace,
    /// Anywhere in the cluster.
    Cluster,
}

impl Scope {
    /// The scope that the annotations of a Secret say.
    fn of(annotations: &Map<String, Value>) -> Self {
        let says = |key| annotations.get(key).and_then(Value::as_str) == Some("true");
        match (says(CLUSTER), says(NAMESPACE)) {
            (true, _) => Self::Cluster,
            (false, true) => Self::Namespace,
            (false, false) => Self::Strict,
        }
    }

    /// The annotation that says the scope; the strict one needs none.
    const fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Strict => None,
            Self::Namespace => Some(NAMESPACE),
            Self::Cluster => Some(CLUSTER),
        }
    }

    /// The label of the encryption, which must be the same when a value is opened.
    fn label(self, namespace: &str, name: &str) -> String {
        match self {
            Self::Strict => format!("{namespace}/{name}"),
            Self::Namespace => namespace.to_owned(),
            Self::Cluster => String::new(),
        }
    }
}

/// Whether a text is the name of an object in Kubernetes; `dots` says whether it may have dots, which namespaces may not.
fn is_name(text: &str, dots: bool) -> bool {
    let longest = if dots { 253 } else { 63 };
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=longest).contains(&text.len())
        && text.chars().all(|c| ends(c) || c == '-' || (dots && c == '.'))
        && text.starts_with(ends)
        && text.ends_with(ends)
}

/// The fields of an object under `key`; none where there is no object.
fn fields(object: &Value, key: &str) -> Map<String, Value> {
    object.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Seals a Secret, given as YAML or JSON, and gives the SealedSecret as YAML. Without a namespace it is sealed for the one that it
/// names itself, and without a scope for the one that its annotations say, or else the strict one.
///
/// # Errors
/// [`SealError`], in which nothing of the Secret stands.
pub fn seal(
    secret: &str,
    namespace: Option<&str>,
    scope: Option<Scope>,
    certificate: &Certificate,
) -> Result<String, SealError> {
    if secret.len() > MAX_BYTES {
        return Err(SealError::Long);
    }
    // Empty documents are left out.
    let all: Vec<Value> = serde_saphyr::from_multiple(secret).map_err(|_| SealError::Unread)?;
    let [secret] = all.as_slice() else { return Err(SealError::Unread) };
    if secret.get("apiVersion") != Some(&json!("v1")) || secret.get("kind") != Some(&json!("Secret")) {
        return Err(SealError::OtherKind);
    }
    let metadata = fields(secret, "metadata");
    let said = |key: &str| metadata.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let name = said("name").filter(|name| is_name(name, true)).ok_or(SealError::Name)?;
    let namespace = match (said("namespace"), namespace) {
        (Some(own), Some(given)) if own != given => return Err(SealError::OtherNamespace),
        (own, given) => own.or(given),
    };
    let namespace = namespace.filter(|name| is_name(name, false)).ok_or(SealError::Namespace)?;
    let mut annotations = fields(&secret["metadata"], "annotations");
    let scope = scope.unwrap_or_else(|| Scope::of(&annotations));
    annotations.retain(|key, _| ![CLUSTER, NAMESPACE, LAST_APPLIED].contains(&key.as_str()));
    annotations.extend(scope.annotation().map(|key| (key.to_owned(), json!("true"))));
    let encrypted = values(secret, &scope.label(namespace, name), certificate)?;

    let mut inner = json!({"name": name, "namespace": namespace});
    let mut outer = inner.clone();
    if !annotations.is_empty() {
        inner["annotations"] = annotations.into();
    }
    if let Some(key) = scope.annotation() {
        outer["annotations"] = json!({ key: "true" });
    }
    if let Some(labels) = metadata.get("labels").filter(|labels| labels.is_object()) {
        inner["labels"] = labels.clone();
    }
    let mut template = json!({"metadata": inner});
    for key in ["type", "immutable"] {
        if let Some(value) = secret.get(key).filter(|value| !value.is_null()) {
            template[key] = value.clone();
        }
    }
    let sealed = json!({
        "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": outer,
        "spec": {"encryptedData": encrypted, "template": template},
    });
    serde_saphyr::to_string(&sealed).map_err(|_| SealError::Cipher)
}

/// Seals every value; where a key is under both `data` and `stringData` the latter counts, as in Kubernetes.
fn values(secret: &Value, label: &str, certificate: &Certificate) -> Result<Map<String, Value>, SealError> {
    let (data, texts) = (fields(secret, "data"), fields(secret, "stringData"));
    if data.len() + texts.len() > MAX_VALUES {
        return Err(SealError::Many);
    }
    let mut all = Map::new();
    for (key, value) in data {
        let text = match &value {
            Value::Null => "",
            value => value.as_str().ok_or(SealError::NoText)?,
        };
        // Long texts are folded in YAML, so that base64 may have spaces and line ends in it.
        let text = Zeroizing::new(text.split_ascii_whitespace().collect::<String>());
        let bytes = Zeroizing::new(STANDARD.decode(text.as_bytes()).map_err(|_| SealError::NoBase64)?);
        all.insert(key, value::seal(&bytes, label, certificate)?.into());
    }
    for (key, value) in texts {
        let text = value.as_str().ok_or(SealError::NoText)?;
        all.insert(key, value::seal(text.as_bytes(), label, certificate)?.into());
    }
    if all.is_empty() { Err(SealError::Empty) } else { Ok(all) }
}
