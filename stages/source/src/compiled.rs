//! An object as Argo CD compiled it, as far as it says what made it.

use serde_json::Value;
use stages_git::yaml;

/// What `helm template` writes before each object.
const SOURCE: &str = "# Source: ";

/// A compiled object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compiled {
    /// The API's group; empty is the core's.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Empty for an object of the whole cluster, or of the application's own namespace.
    pub namespace: String,
    /// Its name; empty when the cluster is to generate one.
    pub name: String,
    /// What its name is generated from.
    pub generate_name: String,
    /// The template that made it, as Helm's comment names it: `chart/templates/file.yaml`.
    pub template: Option<String>,
    /// All of it; null where nothing but the name is known.
    pub object: Value,
}

impl Compiled {
    /// Reads a manifest, JSON or YAML, with Helm's comment or without; `None` when it is no Kubernetes object.
    pub fn read(text: &str) -> Option<Self> {
        let template =
            text.lines().take_while(|line| is_before(line)).find_map(|line| line.strip_prefix(SOURCE));
        let object = match serde_json::from_str(text) {
            Ok(object) => object,
            Err(_) => yaml::first(text).ok()?,
        };
        let mut read = Self::of(object)?;
        read.template = template.map(|name| name.trim().to_owned());
        Some(read)
    }

    /// The same of an object that was read already.
    pub fn of(object: Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = object["apiVersion"].as_str()?;
        let metadata = &object["metadata"];
        Some(Self {
            group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: object["kind"].as_str()?.to_owned(),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            generate_name: text(&metadata["generateName"]),
            template: None,
            object,
        })
    }

    /// Whether all that a manifest says stands in this one, which may say more: a tracking id, a namespace.
    pub(crate) fn says_all_of(&self, manifest: &Value) -> bool {
        contains(&self.object, manifest)
    }
}

fn is_before(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#') || line.trim_end() == "---"
}

fn contains(all: &Value, part: &Value) -> bool {
    match (all, part) {
        (Value::Object(all), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| part.is_null() || all.get(name).is_some_and(|all| contains(all, part))),
        (Value::Array(all), Value::Array(part)) => {
            all.len() == part.len() && all.iter().zip(part).all(|(all, part)| contains(all, part))
        }
        _ => all == part,
    }
}

#[cfg(test)]
mod tests {
    use super::Compiled;

    #[test]
    fn the_comment_of_helm_names_the_template() {
        let text = "---\n# Source: shop/templates/web.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";
        let read = Compiled::read(text).unwrap();
        assert_eq!(read.template.as_deref(), Some("shop/templates/web.yaml"));
        assert_eq!(
            (read.group.as_str(), read.kind.as_str(), read.name.as_str()),
            ("apps", "Deployment", "web")
        );
        let json =
            r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "namespace": "n"}}"#;
        let read = Compiled::read(json).unwrap();
        assert_eq!((read.template, read.generate_name.as_str()), (None, "p-"));
        for none in ["", "a: [", "kind: Pod", "apiVersion: v1"] {
            assert_eq!(Compiled::read(none), None, "{none}");
        }
    }

    #[test]
    fn a_comment_within_the_object_names_nothing() {
        let text =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n# Source: y\n    z\n";
        assert_eq!(Compiled::read(text).and_then(|read| read.template), None);
    }
}
