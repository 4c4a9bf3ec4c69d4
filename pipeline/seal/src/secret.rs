//! A Secret, and the SealedSecret that is made of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value, json};

use crate::{Certificate, SealError, value};

/// Kubernetes keeps no larger object.
const LONGEST: usize = 1 << 20;
/// Each value costs an encryption of RSA.
const VALUES: usize = 1_000;
/// What says the scope, on the Secret and on what is made of it.
const CLUSTER: &str = "sealedsecrets.bitnami.com/cluster-wide";
const NAMESPACE: &str = "sealedsecrets.bitnami.com/namespace-wide";
/// What `kubectl apply` keeps: the whole Secret.
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
    /// What the annotations of a Secret say.
    fn of(annotations: &Map<String, Value>) -> Self {
        let says = |key| annotations.get(key).and_then(Value::as_str) == Some("true");
        match (says(CLUSTER), says(NAMESPACE)) {
            (true, _) => Self::Cluster,
            (false, true) => Self::Namespace,
            (false, false) => Self::Strict,
        }
    }

    const fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Strict => None,
            Self::Namespace => Some(NAMESPACE),
            Self::Cluster => Some(CLUSTER),
        }
    }

    fn label(self, namespace: &str, name: &str) -> String {
        match self {
            Self::Strict => format!("{namespace}/{name}"),
            Self::Namespace => namespace.to_owned(),
            Self::Cluster => String::new(),
        }
    }
}

/// A name of an object; with dots unless it is that of a namespace.
fn is_name(text: &str, dots: bool) -> bool {
    let longest = if dots { 253 } else { 63 };
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=longest).contains(&text.len())
        && text.chars().all(|c| ends(c) || c == '-' || (dots && c == '.'))
        && text.starts_with(ends)
        && text.ends_with(ends)
}

fn fields(object: &Value, key: &str) -> Map<String, Value> {
    object.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Seals a Secret, given as YAML or JSON, for a namespace (none: that which it says); gives the SealedSecret as YAML. Without a scope
/// it is what the Secret's annotations say, and else strict.
///
/// # Errors
/// [`SealError`], in which nothing of the Secret stands.
pub fn seal(
    secret: &str,
    namespace: Option<&str>,
    scope: Option<Scope>,
    certificate: &Certificate,
) -> Result<String, SealError> {
    if secret.len() > LONGEST {
        return Err(SealError::Long);
    }
    // Documents that are empty are none.
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

/// Every value, sealed; of one under both data and stringData the latter counts, as in Kubernetes.
fn values(secret: &Value, label: &str, certificate: &Certificate) -> Result<Map<String, Value>, SealError> {
    let (data, texts) = (fields(secret, "data"), fields(secret, "stringData"));
    if data.len() + texts.len() > VALUES {
        return Err(SealError::Many);
    }
    let mut all = Map::new();
    for (key, value) in data {
        let text = match &value {
            Value::Null => "",
            value => value.as_str().ok_or(SealError::NoText)?,
        };
        // As long texts in YAML are folded.
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
