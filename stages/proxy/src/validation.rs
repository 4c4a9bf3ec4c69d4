//! Whether Argo CD would take a proposed application: it is asked for the project, the source and the cluster, and nothing is
//! changed.
//!
//! takes: an application that is to be - gives: what is wrong with it, by its parts - calls: Argo CD - fails: when Argo CD cannot be
//! asked; what it refuses is no failure, but what is wrong

use async_graphql::{Enum, SimpleObject};
use globset::GlobBuilder;
use serde_json::Value;

use crate::argocd::ArgoCd;
use crate::error::ActError;

/// A part of an application.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApplicationPart {
    Project,
    Source,
    Destination,
}

/// What is wrong with an application.
#[derive(Debug, SimpleObject, PartialEq, Eq)]
pub(crate) struct ApplicationProblem {
    /// The part that it is wrong with.
    entity: ApplicationPart,
    error: String,
}

/// An application that is to be.
pub(crate) struct ProposedApplication {
    pub(crate) project: String,
    pub(crate) repository: String,
    /// As Argo CD is asked for what it is made of.
    pub(crate) details: Value,
    /// The address of its cluster, or else its name.
    pub(crate) server: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) namespace: String,
}

/// A part of the application as Argo CD answers it, or what is wrong with it.
type CheckedPart = Result<Value, ApplicationProblem>;

fn problem(entity: ApplicationPart, error: impl Into<String>) -> ApplicationProblem {
    ApplicationProblem { entity, error: error.into() }
}

/// A refusal of Argo CD is a problem of the application, unless the app proxy itself is refused.
fn checked(entity: ApplicationPart, answer: Result<Value, ActError>) -> Result<CheckedPart, ActError> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(error @ ActError::Peer { status, .. }) if status != 401 => {
            Ok(Err(problem(entity, error.to_string())))
        }
        Err(error) => Err(error),
    }
}

impl ProposedApplication {
    /// What is wrong with it; nothing: Argo CD would take it.
    pub(crate) async fn problems(&self, argocd: &ArgoCd) -> Result<Vec<ApplicationProblem>, ActError> {
        let destination = async {
            let asked = match (self.server.as_deref(), self.cluster.as_deref()) {
                (Some(server), None) => ("url", server),
                (None, Some(name)) => ("name", name),
                (Some(_), Some(_)) => return Ok(Err("a destination has a server or a name, and not both")),
                (None, None) => {
                    return Ok(Err("say in which cluster: destination.server, or destination.name"));
                }
            };
            argocd.cluster(asked).await.map(Ok)
        };
        let (project, source, destination) = tokio::join!(
            argocd.project(&self.project),
            argocd.details::<Value>(&self.repository, self.details.clone()),
            destination,
        );
        let project = checked(ApplicationPart::Project, project)?;
        let source = checked(ApplicationPart::Source, source)?;
        let destination = match destination {
            Ok(Ok(cluster)) => Ok(cluster),
            Ok(Err(why)) => Err(problem(ApplicationPart::Destination, why)),
            Err(error) => checked(ApplicationPart::Destination, Err(error))?,
        };
        let forbidden = match (&project, &destination) {
            (Ok(project), Ok(cluster)) if !self.is_permitted(project, cluster) => {
                let why = format!(
                    "the project {} permits no application in the namespace '{}' of this cluster",
                    self.project, self.namespace
                );
                Some(problem(ApplicationPart::Destination, why))
            }
            _ => None,
        };
        let wrong = [project.err(), source.err(), destination.err(), forbidden];
        Ok(wrong.into_iter().flatten().collect())
    }

    /// Whether the project permits the destination, as Argo CD decides it: some pattern matches it, and none that begins with `!` denies it.
    fn is_permitted(&self, project: &Value, cluster: &Value) -> bool {
        let text = |object: &Value, key: &str| {
            object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (name, server) = (text(cluster, "name"), text(cluster, "server"));
        let spec = project.get("spec");
        let destinations = spec.and_then(|spec| spec.get("destinations")?.as_array());
        let mut is_permitted = false;
        for one in destinations.into_iter().flatten() {
            let (of_name, of_server, of_namespace) =
                (text(one, "name"), text(one, "server"), text(one, "namespace"));
            let is_name = !name.is_empty() && matches(&of_name, &name);
            let is_server = !server.is_empty() && matches(&of_server, &server);
            let is_namespace = matches(&of_namespace, &self.namespace);
            let denies = |pattern: &str| pattern.starts_with('!');
            if (is_server || is_name) && is_namespace {
                is_permitted = true;
            } else if (!is_name && denies(&of_name))
                || (!is_server && denies(&of_server) && is_namespace)
                || (!is_namespace && denies(&of_namespace) && is_server)
            {
                return false;
            }
        }
        let own_clusters = spec.and_then(|spec| spec.get("permitOnlyProjectScopedClusters"));
        let is_own = text(cluster, "project") == self.project;
        is_permitted && (own_clusters != Some(&Value::Bool(true)) || is_own)
    }
}

/// Whether a pattern of a project matches a value.
fn matches(pattern: &str, value: &str) -> bool {
    match pattern.strip_prefix('!') {
        Some(pattern) => !matches(pattern, value),
        None if pattern == "*" => true,
        None => GlobBuilder::new(pattern).build().is_ok_and(|glob| glob.compile_matcher().is_match(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ProposedApplication;

    fn permitted(destinations: &Value, namespace: &str) -> bool {
        let proposed = ProposedApplication {
            project: "shop".to_owned(),
            repository: String::new(),
            details: Value::Null,
            server: None,
            cluster: None,
            namespace: namespace.to_owned(),
        };
        let cluster = json!({"name": "in-cluster", "server": "https://kubernetes.default.svc"});
        proposed.is_permitted(&json!({"spec": {"destinations": destinations}}), &cluster)
    }

    #[test]
    fn a_destination_is_permitted_where_a_pattern_of_the_project_names_it_and_none_denies_it() {
        for (destinations, namespace, is) in [
            (json!(null), "shop", false),
            (json!([]), "shop", false),
            (json!([{"server": "*", "namespace": "*"}]), "shop", true),
            (json!([{"name": "in-*", "namespace": "shop-*"}]), "shop-eu", true),
            (json!([{"name": "in-*", "namespace": "shop-*"}]), "till", false),
            (json!([{"server": "https://elsewhere", "namespace": "*"}]), "shop", false),
            (json!([{"server": "https://*.svc", "namespace": "{shop,till}"}]), "till", true),
            (
                json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}]),
                "kube-system",
                false,
            ),
            (
                json!([{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}]),
                "shop",
                true,
            ),
            (
                json!([{"server": "*", "namespace": "*"}, {"server": "!https://kubernetes.default.svc", "namespace": "shop"}]),
                "shop",
                false,
            ),
            (json!([{"server": "[", "namespace": "*"}]), "shop", false),
        ] {
            assert_eq!(permitted(&destinations, namespace), is, "{namespace} of {destinations}");
        }
    }

    #[test]
    fn a_project_may_permit_its_own_clusters_alone() {
        let project = json!({"spec": {
            "destinations": [{"server": "*", "namespace": "*"}], "permitOnlyProjectScopedClusters": true,
        }});
        let proposed = ProposedApplication {
            project: "shop".to_owned(),
            repository: String::new(),
            details: Value::Null,
            server: None,
            cluster: None,
            namespace: "shop".to_owned(),
        };
        let cluster = |project: &str| json!({"server": "https://a", "project": project});
        assert!(proposed.is_permitted(&project, &cluster("shop")));
        assert!(!proposed.is_permitted(&project, &cluster("")));
    }
}
