//! Resources of an application, as its runtime knows them now, and which of them is meant by a name.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::find::AppName;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::plain;

/// A resource that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Node {
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) parent_refs: Vec<Parent>,
    pub(crate) health: Option<Health>,
    pub(crate) resource_version: Option<String>,
    pub(crate) created_at: Option<String>,
}

/// What it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Parent {
    pub(crate) uid: Option<String>,
}

/// How it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Health {
    pub(crate) status: Option<String>,
    pub(crate) message: Option<String>,
}

/// How people call an object, with its namespace; a cluster-scoped one has an empty namespace.
pub(crate) fn title_in(namespace: &str, kind: &str, name: &str) -> String {
    match namespace.is_empty() {
        true => format!("{kind}/{name}"),
        false => format!("{kind}/{name} in {namespace}"),
    }
}

impl Node {
    /// One of which no more than its name is known.
    pub(crate) fn named(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [group, namespace] = [group, namespace].map(|text| Some(text.to_owned()));
        Self { group, namespace, kind: kind.to_owned(), name: name.to_owned(), ..Self::default() }
    }

    /// As variables of a query.
    pub(crate) fn variables(&self) -> Value {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        json!({
            "group": text(&self.group), "version": text(&self.version), "kind": self.kind,
            "namespace": text(&self.namespace), "name": self.name,
        })
    }

    /// How people call it.
    pub(crate) fn title(&self) -> String {
        plain(&format!("{}/{}", self.kind, self.name))
    }

    /// How it is called where its kind and name are not enough.
    pub(crate) fn whole(&self) -> String {
        let group = self.group.as_deref().filter(|group| !group.is_empty());
        let kind = group.map_or(self.kind.clone(), |group| format!("{}.{group}", self.kind));
        match self.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => plain(&format!("{namespace}/{kind}/{}", self.name)),
            None => plain(&format!("{kind}/{}", self.name)),
        }
    }

    /// What belongs to it, and to that, of all that there is.
    pub(crate) fn owned<'a>(&self, all: &'a [Self]) -> Vec<&'a Self> {
        let mut owners: Vec<&str> = self.uid.as_deref().into_iter().collect();
        let mut found: Vec<&Self> = Vec::new();
        while let Some(owner) = owners.pop() {
            let is_of =
                |one: &Self| one.parent_refs.iter().any(|parent| parent.uid.as_deref() == Some(owner));
            for one in all.iter().filter(|one| is_of(one) && one.uid != self.uid) {
                // What belongs to several is named once.
                if !found.iter().any(|known| known.uid == one.uid) {
                    found.push(one);
                    owners.extend(one.uid.as_deref());
                }
            }
        }
        found
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.kind == "Pod" && self.group.as_deref().unwrap_or_default().is_empty()
    }

    /// Whether it is meant by `KIND/NAME`, `KIND.GROUP/NAME` or `NAMESPACE/KIND/NAME`.
    pub(crate) fn is_named(&self, text: &str) -> bool {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [kind, name] => (None, kind, name),
            [namespace, kind, name] => (Some(namespace), kind, name),
            _ => return false,
        };
        let (kind, group) = kind.split_once('.').map_or((kind, None), |(kind, group)| (kind, Some(group)));
        self.kind.eq_ignore_ascii_case(kind)
            && self.name == name
            && group.is_none_or(|group| self.group.as_deref() == Some(group))
            && namespace.is_none_or(|namespace| self.namespace.as_deref() == Some(namespace))
    }

    /// The state of its health, as people know it.
    pub(crate) fn state(&self) -> &str {
        self.health.as_ref().and_then(|health| health.status.as_deref()).unwrap_or_default()
    }
}

impl Proxy {
    /// Everything that belongs to an application now.
    pub(crate) async fn tree(&self, name: &AppName) -> Result<Vec<Node>, RemoteError> {
        let query = "query ResourceTree($application: ApplicationId!) { resourceTree(application: $application) { nodes { group version kind namespace name uid parentRefs { uid } health { status message } resourceVersion createdAt } } }";
        let variables = json!({"application": name.variables()});
        let mut tree: Value =
            self.get("read what belongs to an application", query, variables, "resourceTree").await?;
        crate::platform::read(tree["nodes"].take())
    }

    /// The resource that is meant by `KIND/NAME`.
    pub(crate) async fn resource(&self, app: &AppName, text: &str) -> Result<Node, RemoteError> {
        meant(self.tree(app).await?, app, text)
    }
}

/// The only one of that name.
pub(crate) fn meant(all: Vec<Node>, app: &AppName, text: &str) -> Result<Node, RemoteError> {
    if !(2..=3).contains(&text.split('/').count()) || text.split('/').any(str::is_empty) {
        let said =
            format!("'{text}' is no name of a resource: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME");
        return Err(RemoteError::Usage(said));
    }
    let mut found: Vec<Node> = all.into_iter().filter(|one| one.is_named(text)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(RemoteError::Missing(format!(
            "{app} has no resource '{text}': `gitops-runtime app tree {app} --live` shows those that there are"
        ))),
        _ => {
            let names: Vec<String> = found.iter().take(10).map(Node::whole).collect();
            Err(RemoteError::Missing(format!(
                "{app} has several resources '{text}': name {}",
                names.join(" or ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(group: &str, kind: &str, namespace: &str, name: &str) -> Node {
        let text = |text: &str| Some(text.to_owned());
        Node {
            group: text(group),
            kind: kind.to_owned(),
            namespace: text(namespace),
            name: name.to_owned(),
            ..Node::default()
        }
    }

    #[test]
    fn what_belongs_to_a_resource_is_named_once_and_whatever_a_runtime_says_of_owners_that_ends() {
        let of = |name: &str, parents: &[&str]| Node {
            uid: Some(name.to_owned()),
            parent_refs: parents.iter().map(|uid| Parent { uid: Some((*uid).to_owned()) }).collect(),
            ..node("", "Pod", "a", name)
        };
        let all = [of("a", &["d"]), of("b", &["a"]), of("c", &["a", "b"]), of("d", &["c"]), of("e", &[])];
        let names = |node: &Node| node.owned(&all).iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&all[0]), ["b", "c", "d"]);
        assert!(names(&all[4]).is_empty() && names(&Node::default()).is_empty());
    }

    #[test]
    fn a_resource_is_meant_by_as_much_of_its_name_as_tells_it_from_others() {
        let app = AppName { runtime: "prod".into(), namespace: "argocd".into(), name: "shop".into() };
        let all = || {
            vec![
                node("apps", "Deployment", "a", "web"),
                node("", "Service", "a", "web"),
                node("", "Service", "b", "web"),
                node("networking.k8s.io", "Ingress", "a", "web"),
                node("extensions", "Ingress", "a", "web"),
            ]
        };
        let of = |text: &str| meant(all(), &app, text).map(|one| one.whole()).map_err(|error| error.line());
        assert_eq!(of("deployment/web"), Ok("a/Deployment.apps/web".to_owned()));
        assert_eq!(of("b/Service/web"), Ok("b/Service/web".to_owned()));
        assert_eq!(of("Ingress.extensions/web"), Ok("a/Ingress.extensions/web".to_owned()));
        let several =
            "prod/argocd/shop has several resources 'Service/web': name a/Service/web or b/Service/web";
        assert_eq!(of("Service/web"), Err(several.to_owned()));
        let none = "prod/argocd/shop has no resource 'Pod/web': `gitops-runtime app tree prod/argocd/shop --live` shows those \
                    that there are";
        assert_eq!(of("Pod/web"), Err(none.to_owned()));
        for wrong in ["web", "/web", "a/b/c/d"] {
            let said = format!(
                "'{wrong}' is no name of a resource: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME"
            );
            assert_eq!(of(wrong), Err(said));
        }
    }
}
