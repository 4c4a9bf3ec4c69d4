//! The questions of the source server, and who answers them: the same over HTTP and over a bus.

use std::borrow::Cow;

use axum::http::StatusCode;
use pipeline_core::Families;
use prometheus::{IntCounterVec, Registry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stages_git::{SyncedSources, synced_sources};

use crate::changed::ChangesRequest;
use crate::library::Library;
use crate::manifests::{ManifestsRequest, RequestedSource};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::versions::Versions;

/// A question to the source server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// Which file makes each compiled manifest, and what the application packages.
    Manifests(ManifestsRequest),
    /// Author, message, date and tags of a commit.
    Commit(CommitRequest),
    /// The files that differ between two revisions.
    Files(FilesRequest),
    /// The commits that changed an application between two revisions, and its files that differ.
    Changes(ChangesRequest),
    /// The version of an application, as other programs ask for it: an Application and a revision, or the Application alone.
    AppVersion(Value),
}

/// A question about a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitRequest {
    /// Its repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// A branch, a tag or a commit's id; empty is `HEAD`.
    #[serde(default)]
    pub revision: String,
}

/// A question which files differ between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesRequest {
    /// Their repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The older one.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// Directories or files with `;` between them; empty is the whole repository.
    #[serde(default)]
    pub paths: String,
}

impl Question {
    /// The operation that it is counted and authorized as.
    pub(crate) const fn operation(&self) -> Operation {
        match self {
            Self::Manifests(_) => Operation::Manifests,
            Self::Commit(_) => Operation::Commit,
            Self::Files(_) | Self::Changes(_) => Operation::Changes,
            Self::AppVersion(_) => Operation::AppVersion,
        }
    }
}

/// Answers questions, over whatever they come, and counts them. Cloning shares everything.
#[derive(Debug, Clone)]
pub struct SourceApi {
    library: Library,
    answered: IntCounterVec,
}

impl SourceApi {
    /// Answers from this library, and counts in this registry.
    #[must_use]
    pub fn new(library: Library, registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_source_");
        let help = "Questions, by operation and status.";
        Self { library, answered: make.counters("requests_total", help, ["operation", "status"]) }
    }

    /// The answer, as JSON.
    pub(crate) async fn answer(&self, question: Question) -> Result<Vec<u8>, Refusal> {
        let library = &self.library;
        match question {
            Question::Manifests(asked) => written(library.describe(asked).await.as_deref()),
            Question::Commit(asked) => {
                written(library.commit(&asked.repo_url, &asked.revision).await.as_ref())
            }
            Question::Files(asked) => {
                let paths = asked.paths.split(';').map(str::trim).filter(|path| !path.is_empty());
                let paths = paths.map(str::to_owned).collect();
                written(library.changes(&asked.repo_url, &asked.from, &asked.to, paths).await.as_ref())
            }
            Question::Changes(asked) => written(library.changed(asked).await.as_ref()),
            Question::AppVersion(asked) => {
                let (app, revision) = match asked.get("app") {
                    Some(app) => (app, asked["revision"].as_str().unwrap_or_default()),
                    None => (&asked, ""),
                };
                let versions = library
                    .versions(
                        &app["metadata"],
                        app["spec"]["project"].as_str().unwrap_or_default(),
                        &sources_of(app, revision),
                    )
                    .await;
                written(versions.map(app_version_of).as_ref())
            }
        }
    }

    /// Counts a question of an operation by the status of its answer.
    pub(crate) fn count(&self, operation: &str, status: StatusCode) {
        self.answered.with_label_values(&[operation, shown(status)]).inc();
    }
}

fn written<T: Serialize>(answer: Result<&T, &crate::library::SourceError>) -> Result<Vec<u8>, Refusal> {
    let answer = answer.map_err(Refusal::from)?;
    serde_json::to_vec(answer)
        .map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "write the answer"))
}

/// The metric's label of a status.
const fn shown(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..300 => "ok",
        304 => "not_modified",
        401 | 403 => "refused",
        400..500 => "wrong",
        503 => "busy",
        _ => "failed",
    }
}

/// The sources of an Application: at `revision` where it has but one, else at what it was compared with.
fn sources_of(app: &Value, revision: &str) -> Vec<RequestedSource> {
    let compared = &app["status"]["sync"];
    let SyncedSources { all, are_several, .. } = synced_sources(&app["spec"]);
    let at = |(place, source): (usize, Cow<'_, Value>)| {
        let compared = if are_several { &compared["revisions"][place] } else { &compared["revision"] };
        let given = Some(revision).filter(|revision| !are_several && !revision.is_empty());
        RequestedSource {
            source: source.into_owned(),
            revision: given.or(compared.as_str()).unwrap_or_default().to_owned(),
            elsewhere: false,
        }
    };
    all.into_iter().enumerate().map(at).collect()
}

/// Versions in the form of `getAppVersion`; an empty object where the application packages nothing.
fn app_version_of(versions: Option<Versions>) -> Value {
    let Some(Versions { app_version, dependencies }) = versions else { return json!({}) };
    let files = [
        ("helm/Chart.lock", dependencies.lock),
        ("helm/dependencies", dependencies.deps),
        ("helm/requirements.yaml", dependencies.requirements),
    ];
    let files = files.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?))));
    json!({"appVersion": app_version, "dependencies": files.collect::<Map<String, Value>>()})
}
