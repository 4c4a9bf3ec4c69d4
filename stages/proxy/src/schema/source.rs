//! Sources of applications, as they are asked for and told: names and shapes are those of the incumbent, as far as Argo CD knows them.

use async_graphql::{InputObject, SimpleObject};
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::{Value, json};

use super::application::or_none;
use super::inputs::ApplicationId;
use crate::error::ActError;
use crate::validation::ProposedApplication;

/// The project of an application that names none.
const PROJECT: &str = "default";

/// Where an application comes from.
#[derive(InputObject)]
pub(crate) struct ApplicationDetailsSourceInput {
    /// The application's own name: of one that is there, and Argo CD looks whether the source is its own. None: of one that is to be.
    app_name: Option<String>,
    /// The name of a chart, where the repository is one of Helm.
    chart: Option<String>,
    /// A directory of the repository.
    path: Option<String>,
    #[graphql(name = "repoURL")]
    pub(crate) repo_url: String,
    /// A branch, a tag or a commit; of a chart, its version.
    target_revision: String,
}

/// Where an application is to be.
#[derive(InputObject)]
pub(crate) struct ApplicationDestinationInput {
    /// The name of the cluster, or else its address.
    name: Option<String>,
    server: Option<String>,
    namespace: Option<String>,
}

/// An application that is to be.
#[derive(InputObject)]
pub(crate) struct ValidateApplicationArgs {
    /// None: `default`.
    project: Option<String>,
    source: ApplicationDetailsSourceInput,
    destination: ApplicationDestinationInput,
}

/// What a source is made of.
#[derive(SimpleObject, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepositoryAppDetailsOutput {
    /// Such as `Helm`, `Kustomize` or `Directory`.
    r#type: String,
    helm: Option<RepositoryAppHelmOutput>,
    kustomize: Option<RepositoryAppKustomizeOutput>,
}

/// Of a chart of Helm, without secrets.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RepositoryAppHelmOutput {
    #[serde(deserialize_with = "or_none")]
    value_files: Vec<String>,
    /// What stands in `values.yaml`.
    values: Option<String>,
    #[serde(deserialize_with = "or_none")]
    parameters: Vec<RepositoryAppHelmParameterOutput>,
    #[serde(deserialize_with = "or_none")]
    file_parameters: Vec<RepositoryAppHelmFileParameterOutput>,
}

/// A value of a chart.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RepositoryAppHelmParameterOutput {
    name: Option<String>,
    value: Option<String>,
    force_string: Option<bool>,
}

/// A value of a chart that stands in a file.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(default)]
struct RepositoryAppHelmFileParameterOutput {
    name: Option<String>,
    path: Option<String>,
}

/// Of a kustomization.
#[derive(SimpleObject, Deserialize, Default)]
#[serde(default)]
struct RepositoryAppKustomizeOutput {
    #[serde(deserialize_with = "or_none")]
    images: Vec<String>,
}

impl ApplicationDetailsSourceInput {
    /// As Argo CD is asked what it is made of.
    pub(crate) fn details(
        &self,
        application: &ApplicationId,
        project: Option<&str>,
    ) -> Result<Value, ActError> {
        let Self { app_name, chart, path, repo_url, target_revision } = self;
        if app_name.as_ref().is_some_and(|name| *name != application.name) {
            return Err(ActError::Wrong(
                "source.appName is to be the application's own name, or left out".to_owned(),
            ));
        }
        if repo_url.is_empty() {
            return Err(ActError::Wrong("source.repoURL is to be the address of a repository".to_owned()));
        }
        let mut source = json!({"repoURL": repo_url, "targetRevision": target_revision});
        for (key, value) in [("chart", chart), ("path", path)] {
            if let Some(value) = value {
                source[key] = json!(value);
            }
        }
        let name = app_name.as_ref().map(|name| format!("{}/{name}", application.namespace));
        Ok(json!({
            "source": source, "appName": name.unwrap_or_default(), "appProject": project.unwrap_or(PROJECT),
        }))
    }
}

impl ValidateApplicationArgs {
    pub(crate) fn proposed(self, application: &ApplicationId) -> Result<ProposedApplication, ActError> {
        let Self { project, source, destination } = self;
        let details = source.details(application, project.as_deref())?;
        let ApplicationDestinationInput { name, server, namespace } = destination;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(ProposedApplication {
            project: project.unwrap_or_else(|| PROJECT.to_owned()),
            repository: source.repo_url,
            details,
            server: given(server),
            cluster: given(name),
            namespace: namespace.unwrap_or_default(),
        })
    }
}

impl RepositoryAppDetailsOutput {
    /// Without secrets.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        if let Some(helm) = &mut self.helm {
            helm.values = helm.values.take().map(|values| redactor.raw(&values).into_owned());
            for parameter in &mut helm.parameters {
                if let (Some(name), Some(value)) = (&parameter.name, &mut parameter.value) {
                    // The name says whether it is one.
                    let mut object = json!({ name.as_str(): value.as_str() });
                    if redactor.value(&mut object) {
                        object[name.as_str()].as_str().unwrap_or_default().clone_into(value);
                    }
                }
            }
        }
        self
    }
}
