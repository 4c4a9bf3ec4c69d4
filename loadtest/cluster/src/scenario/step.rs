//! The steps of a scenario, as they stand in its file.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::time::{duration, within};

/// One step. What is waited for must come within the step's `within`, 300 s where nothing is said.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Makes an application, or all of them alike.
    Create(Create),
    /// Applies YAML documents, into the scenario's namespace where they name none.
    Apply(String),
    /// Commits to the scenario's repository.
    Commit(Commit),
    /// Makes Argo CD look at the repository again.
    Refresh(Refresh),
    /// Starts a sync and waits for its end.
    Sync(Sync),
    /// Rolls back to an earlier entry of the application's history and waits for its end.
    Rollback(Rollback),
    /// Ends the running operation.
    Terminate(Target),
    /// Waits for what the Application object says.
    Wait(Wait),
    /// Waits for what a live object says.
    Observe(Observe),
    /// Changes live objects by hand.
    Patch(Patch),
    /// Deletes an application or an object.
    Delete(Delete),
    /// Takes the platform away, or gives it back.
    Platform(Link),
    /// Stops, kills or starts the reporter.
    Reporter(Lifecycle),
    /// Judges what was reported so far; the end of a scenario does so by itself.
    Check(Target),
}

/// Which application: its name, `*` for all, nothing for the first.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name.
    pub application: Option<String>,
}

/// Makes an application.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Create {
    /// Its name; see [`Target`].
    pub application: Option<String>,
    /// Whether its resources go when it is deleted.
    #[serde(default)]
    pub finalizer: bool,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Its spec, in which `$APPLICATION` is its name. What it lacks is filled in: project `default`, the scenario's namespace in this cluster, the
    /// repository's branch `main` for every source, and the option to create the namespace.
    pub spec: Map<String, Value>,
}

/// Commits to the repository.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// `Name <address>`.
    #[serde(default = "author")]
    pub author: String,
    /// The commit's message.
    pub message: String,
    /// Whole files by path; `null` removes one.
    #[serde(default)]
    pub files: BTreeMap<String, Option<String>>,
    /// Changes within files.
    #[serde(default)]
    pub edits: Vec<Edit>,
}

fn author() -> String {
    "Grace Example <grace@example.com>".to_owned()
}

impl Commit {
    /// Name and address of the author.
    #[must_use]
    pub fn signature(&self) -> Option<(&str, &str)> {
        let (name, address) = self.author.split_once(" <")?;
        let address = address.strip_suffix('>')?;
        (!name.is_empty() && address.contains('@')).then_some((name, address))
    }
}

/// Replaces a text that stands in a file exactly once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// What stands there.
    pub from: String,
    /// What is to stand there.
    pub to: String,
}

/// Makes Argo CD look again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// See [`Target`].
    pub application: Option<String>,
    /// Whether manifests are generated anew.
    #[serde(default)]
    pub hard: bool,
}

/// How an operation is to stand when the step is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Ends {
    /// It succeeded.
    #[default]
    Succeeded,
    /// It failed.
    Failed,
    /// It could not be carried out.
    Error,
    /// It runs; nothing is waited for but its start.
    Running,
}

impl Ends {
    /// As Argo CD writes it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Running => "Running",
        }
    }
}

/// Starts a sync.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sync {
    /// See [`Target`].
    pub application: Option<String>,
    /// Whether what is no longer wanted goes.
    #[serde(default)]
    pub prune: bool,
    /// Only these resources, as `{group, kind, name}`.
    #[serde(default)]
    pub resources: Vec<Value>,
    /// Options such as `Replace=true`.
    #[serde(default)]
    pub options: Vec<String>,
    /// How it must end.
    #[serde(default)]
    pub ends: Ends,
    /// How long that may take.
    #[serde(default = "within", deserialize_with = "duration")]
    pub within: Duration,
}

/// Rolls back.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rollback {
    /// See [`Target`].
    pub application: Option<String>,
    /// So many entries of the history before the last.
    pub back: usize,
    /// How it must end.
    #[serde(default)]
    pub ends: Ends,
    /// How long that may take.
    #[serde(default = "within", deserialize_with = "duration")]
    pub within: Duration,
}

/// Waits until everything that is said here holds at once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Wait {
    /// See [`Target`].
    pub application: Option<String>,
    /// `status.health.status`.
    pub health: Option<String>,
    /// `status.sync.status`.
    pub sync: Option<String>,
    /// `status.operationState.phase`.
    pub phase: Option<String>,
    /// How many entries `status.resources` has.
    pub resources: Option<usize>,
    /// The newest commit was compared with; Argo CD is asked again while it was not.
    #[serde(default)]
    pub head: bool,
    /// A condition of this type is there.
    pub condition: Option<String>,
    /// A text in the message of a condition or of the operation.
    pub message: Option<String>,
    /// The application is gone.
    #[serde(default)]
    pub gone: bool,
    /// How long that may take.
    #[serde(default = "within", deserialize_with = "duration")]
    pub within: Duration,
}

/// A live object, or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ObjectName {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its name; one that ends with `*` stands for every name that begins so, of which there must be one.
    pub name: String,
    /// Its namespace: the scenario's where nothing is said, `""` for a cluster-scoped object.
    pub namespace: Option<String>,
}

/// Waits for what a live object says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Observe {
    /// Which.
    pub object: ObjectName,
    /// A JSON pointer into it; nothing for its being there.
    pub pointer: Option<String>,
    /// What must stand there.
    pub is: Option<Value>,
    /// It must be gone.
    #[serde(default)]
    pub gone: bool,
    /// How long that may take.
    #[serde(default = "within", deserialize_with = "duration")]
    pub within: Duration,
}

/// Changes live objects by hand.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Patch {
    /// Which; waited for until it is there.
    pub object: ObjectName,
    /// A merge patch.
    pub merge: Option<Value>,
    /// A JSON patch.
    pub json: Option<Value>,
    /// Such as `status`.
    pub subresource: Option<String>,
    /// So often, with `$ROUND` for the number of the time, from 1.
    #[serde(default = "once")]
    pub rounds: u16,
}

fn once() -> u16 {
    1
}

/// Deletes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Delete {
    /// An application; see [`Target`].
    pub application: Option<String>,
    /// Whether its resources go with it.
    pub cascade: Option<bool>,
    /// Or an object.
    pub object: Option<ObjectName>,
}

/// Whether the platform can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// It refuses connections.
    Away,
    /// It answers.
    Back,
}

/// What is done to the reporter's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// It is asked to end (SIGTERM), and ends with success.
    Stop,
    /// It is killed (SIGKILL).
    Kill,
    /// It is started on what the one before it has left; it has listed when the step is over.
    Start,
}

impl Step {
    /// Its name, as the file has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Apply(_) => "apply",
            Self::Commit(_) => "commit",
            Self::Refresh(_) => "refresh",
            Self::Sync(_) => "sync",
            Self::Rollback(_) => "rollback",
            Self::Terminate(_) => "terminate",
            Self::Wait(_) => "wait",
            Self::Observe(_) => "observe",
            Self::Patch(_) => "patch",
            Self::Delete(_) => "delete",
            Self::Platform(_) => "platform",
            Self::Reporter(_) => "reporter",
            Self::Check(_) => "check",
        }
    }

    /// The application that it names.
    #[must_use]
    pub fn application(&self) -> Option<&str> {
        match self {
            Self::Create(step) => step.application.as_deref(),
            Self::Refresh(step) => step.application.as_deref(),
            Self::Sync(step) => step.application.as_deref(),
            Self::Rollback(step) => step.application.as_deref(),
            Self::Terminate(step) | Self::Check(step) => step.application.as_deref(),
            Self::Wait(step) => step.application.as_deref(),
            Self::Delete(step) => step.application.as_deref(),
            Self::Apply(_)
            | Self::Commit(_)
            | Self::Observe(_)
            | Self::Patch(_)
            | Self::Platform(_)
            | Self::Reporter(_) => None,
        }
    }

    /// Refuses what the shape alone allows.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Create(step) => {
                if step.spec.contains_key("source") == step.spec.contains_key("sources") {
                    bail!("spec needs either source or sources");
                }
            }
            Self::Commit(step) => {
                if step.signature().is_none() {
                    bail!("author {:?} is not of the form Name <address>", step.author);
                }
                if step.files.is_empty() && step.edits.is_empty() {
                    bail!("it needs files or edits");
                }
            }
            Self::Wait(step) => {
                let of_object = step.health.is_some()
                    || step.sync.is_some()
                    || step.phase.is_some()
                    || step.resources.is_some()
                    || step.head
                    || step.condition.is_some()
                    || step.message.is_some();
                if of_object == step.gone {
                    bail!("it needs either something to wait for, or gone: true");
                }
            }
            Self::Observe(step) => {
                if step.is.is_some() != step.pointer.is_some() || (step.gone && step.is.is_some()) {
                    bail!("it needs pointer and is, or gone: true, or none of them");
                }
            }
            Self::Patch(step) => {
                if step.merge.is_some() == step.json.is_some() {
                    bail!("it needs either merge or json");
                }
                if !(1..=100).contains(&step.rounds) {
                    bail!("rounds is no number from 1 to 100");
                }
            }
            Self::Delete(step) => {
                if step.object.is_some() == step.cascade.is_some()
                    || (step.object.is_some() && step.application.is_some())
                {
                    bail!("it needs either cascade for an application, or an object");
                }
            }
            Self::Apply(_)
            | Self::Refresh(_)
            | Self::Sync(_)
            | Self::Rollback(_)
            | Self::Terminate(_)
            | Self::Platform(_)
            | Self::Reporter(_)
            | Self::Check(_) => {}
        }
        Ok(())
    }
}
