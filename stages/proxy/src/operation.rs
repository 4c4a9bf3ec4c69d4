//! What may be asked for, and what each of it needs to be allowed: the names of actions and entities are those of rules.

/// A field of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// As the schema calls it.
    pub name: &'static str,
    /// What a rule must grant; `None`: no rule can, it is for admins.
    pub action: Option<&'static str>,
    /// Of what.
    pub entity: &'static str,
    /// Whether it is an act, which stands in the audit log when it was done too. What was refused always does.
    pub is_act: bool,
}

const APPLICATIONS: &str = "gitopsApplications";
const WORKFLOWS: &str = "workflows";
const GIT: &str = "gitContexts";

const fn reads(name: &'static str, entity: &'static str) -> Operation {
    Operation { name, action: Some("VIEW"), entity, is_act: false }
}

/// Reads what only whoever may make something is to know.
const fn looks(name: &'static str, action: &'static str, entity: &'static str) -> Operation {
    Operation { name, action: Some(action), entity, is_act: false }
}

const fn acts(name: &'static str, action: &'static str, entity: &'static str) -> Operation {
    Operation { name, action: Some(action), entity, is_act: true }
}

#[expect(missing_docs, reason = "each is named after the field that it is")]
impl Operation {
    pub const VERSION_INFO: Self = reads("versionInfo", APPLICATIONS);
    pub const RUNTIME_STATUS: Self = reads("runtimeStatus", APPLICATIONS);
    pub const RESOURCE_TREE: Self = reads("resourceTree", APPLICATIONS);
    pub const MANAGED_RESOURCES: Self = reads("managedResources", APPLICATIONS);
    pub const APPLICATION_DIFF: Self = reads("applicationDiff", APPLICATIONS);
    pub const APPLICATION_HISTORY: Self = reads("applicationHistory", APPLICATIONS);
    pub const APPLICATION_EVENTS: Self = reads("applicationEvents", APPLICATIONS);
    pub const RESOURCE_ACTIONS: Self = reads("resourceActions", APPLICATIONS);
    pub const APPLICATION_LINKS: Self = reads("applicationLinks", APPLICATIONS);
    // Argo CD is asked about whatever project and repository are named, with the account of the runtime: no rule knows of these.
    pub const REPOSITORY_APP_DETAILS: Self =
        looks("repositoryAppDetails", "CREATE", APPLICATIONS).of_admins();
    pub const VALIDATE_APPLICATION: Self = looks("validateApplication", "CREATE", APPLICATIONS).of_admins();
    pub const ROLLOUT: Self = reads("rollout", APPLICATIONS);
    pub const ANALYSIS_RUNS: Self = reads("analysisRuns", APPLICATIONS);
    pub const WORKFLOW_LIST: Self = reads("workflows", WORKFLOWS);
    pub const WORKFLOW: Self = reads("workflow", WORKFLOWS);

    pub const GIT_INTEGRATIONS: Self = reads("gitIntegrations", GIT);
    pub const GIT_INTEGRATION: Self = reads("gitIntegration", GIT);
    pub const GIT_TOKEN: Self = reads("gitToken", GIT);
    pub const VALIDATE_GIT: Self = looks("validateGitProvider", "CREATE", GIT);
    pub const GIT_REPOSITORIES: Self = reads("gitRepositories", GIT);
    pub const GIT_ORGANIZATIONS: Self = reads("gitOrganizations", GIT);
    pub const REPOSITORY_BRANCHES: Self = reads("repositoryBranchesAndTags", GIT);
    pub const REPOSITORY_FILES: Self = reads("repositoryFiles", GIT);
    pub const READ_FILE: Self = reads("readFile", GIT);

    pub const SEALING_CERTIFICATE: Self = reads("sealingCertificate", GIT);

    pub const SYNC: Self = acts("syncApplication", "SYNC", APPLICATIONS);
    pub const TERMINATE_OPERATION: Self = acts("terminateOperation", "TERMINATE_SYNC", APPLICATIONS);
    pub const REFRESH: Self = acts("refreshApplication", "REFRESH", APPLICATIONS);
    pub const ROLLBACK: Self = acts("rollbackApplication", "APP_ROLLBACK", APPLICATIONS);
    pub const DELETE_RESOURCE: Self = acts("deleteResource", "DELETE_RESOURCE", APPLICATIONS);
    pub const RESTART: Self = acts("restartResource", "RESTART", APPLICATIONS);
    pub const RUN_ACTION: Self =
        Self { name: "runResourceAction", action: None, entity: APPLICATIONS, is_act: true };
    pub const PROMOTE: Self = acts("promoteRollout", "ROLLOUT_RESUME", APPLICATIONS);
    pub const PAUSE: Self = acts("pauseRollout", "ROLLOUT_PAUSE", APPLICATIONS);
    pub const RESUME: Self = acts("resumeRollout", "ROLLOUT_RESUME", APPLICATIONS);
    pub const ABORT: Self = acts("abortRollout", "ROLLOUT_ABORT", APPLICATIONS);
    pub const RETRY: Self = acts("retryRollout", "ROLLOUT_RETRY", APPLICATIONS);
    pub const RESTART_ROLLOUT: Self = acts("restartRollout", "ROLLOUT_RESTART", APPLICATIONS);
    pub const SKIP_STEP: Self = acts("skipCurrentStep", "ROLLOUT_SKIP_CURRENT_STEP", APPLICATIONS);
    pub const ROLLBACK_ROLLOUT: Self = acts("rollbackRollout", "APP_ROLLBACK", APPLICATIONS);

    pub const CREATE_WORKFLOW: Self = acts("createWorkflowFromTemplate", "CREATE", WORKFLOWS);
    pub const RETRY_WORKFLOW: Self = acts("retryWorkflow", "RESUBMIT", WORKFLOWS);
    pub const RESUBMIT_WORKFLOW: Self = acts("resubmitWorkflow", "RESUBMIT", WORKFLOWS);
    pub const TERMINATE_WORKFLOW: Self = acts("terminateWorkflow", "TERMINATE", WORKFLOWS);
    pub const STOP_WORKFLOW: Self = acts("stopWorkflow", "STOP", WORKFLOWS);
    pub const SUSPEND_WORKFLOW: Self = acts("suspendWorkflow", "STOP", WORKFLOWS);
    pub const RESUME_WORKFLOW: Self = acts("resumeWorkflow", "STOP", WORKFLOWS);

    pub const ADD_GIT: Self = acts("addGitIntegration", "CREATE", GIT).of_admins();
    pub const EDIT_GIT: Self = acts("editGitIntegration", "CREATE", GIT).of_admins();
    pub const REMOVE_GIT: Self = acts("removeGitIntegration", "CREATE", GIT).of_admins();
    pub const REGISTER_GIT: Self = acts("registerToGitIntegration", "CREATE", GIT);
    pub const BEGIN_GIT_AUTH: Self = acts("beginGitAuth", "CREATE", GIT);
    pub const FINISH_GIT_AUTH: Self = acts("finishGitAuth", "CREATE", GIT);
    pub const DEREGISTER_GIT: Self = acts("deregisterFromGitIntegration", "CREATE", GIT);
    pub const UPDATE_RUNTIME_GIT_TOKEN: Self = acts("updateRuntimeGitToken", "CREATE", GIT).of_admins();
    pub const COMMIT_FILES: Self = acts("commitFiles", "CREATE", GIT);
    pub const DELETE_FILES: Self = acts("deleteFiles", "CREATE", GIT);
    pub const CREATE_PULL_REQUEST: Self = acts("createPullRequest", "CREATE", GIT);

    pub const SEAL_SECRET: Self = acts("sealSecret", "CREATE", GIT);

    pub const APPLICATION_LOGS: Self =
        Self { name: "applicationLogs", action: Some("VIEW_POD_LOGS"), entity: APPLICATIONS, is_act: true };
    pub const WORKFLOW_LOGS: Self =
        Self { name: "workflowLogs", action: Some("ACCESS_LOGS"), entity: WORKFLOWS, is_act: true };

    pub const COMPONENT_LOGS: Self =
        Self { name: "componentLogs", action: None, entity: APPLICATIONS, is_act: true };

    /// Beside the schema: the archive of the runtime's own logs.
    pub const DOWNLOAD_LOGS: Self =
        Self { name: "downloadLogs", action: None, entity: APPLICATIONS, is_act: true };

    /// All of the schema, in its order.
    pub const ALL: [Self; 62] = [
        Self::VERSION_INFO,
        Self::RUNTIME_STATUS,
        Self::RESOURCE_TREE,
        Self::MANAGED_RESOURCES,
        Self::APPLICATION_DIFF,
        Self::APPLICATION_HISTORY,
        Self::APPLICATION_EVENTS,
        Self::RESOURCE_ACTIONS,
        Self::APPLICATION_LINKS,
        Self::REPOSITORY_APP_DETAILS,
        Self::VALIDATE_APPLICATION,
        Self::ROLLOUT,
        Self::ANALYSIS_RUNS,
        Self::WORKFLOW_LIST,
        Self::WORKFLOW,
        Self::GIT_INTEGRATIONS,
        Self::GIT_INTEGRATION,
        Self::GIT_TOKEN,
        Self::VALIDATE_GIT,
        Self::GIT_REPOSITORIES,
        Self::GIT_ORGANIZATIONS,
        Self::REPOSITORY_BRANCHES,
        Self::REPOSITORY_FILES,
        Self::READ_FILE,
        Self::SEALING_CERTIFICATE,
        Self::SYNC,
        Self::TERMINATE_OPERATION,
        Self::REFRESH,
        Self::ROLLBACK,
        Self::DELETE_RESOURCE,
        Self::RESTART,
        Self::RUN_ACTION,
        Self::PROMOTE,
        Self::PAUSE,
        Self::RESUME,
        Self::ABORT,
        Self::RETRY,
        Self::RESTART_ROLLOUT,
        Self::SKIP_STEP,
        Self::ROLLBACK_ROLLOUT,
        Self::CREATE_WORKFLOW,
        Self::RETRY_WORKFLOW,
        Self::RESUBMIT_WORKFLOW,
        Self::TERMINATE_WORKFLOW,
        Self::STOP_WORKFLOW,
        Self::SUSPEND_WORKFLOW,
        Self::RESUME_WORKFLOW,
        Self::ADD_GIT,
        Self::EDIT_GIT,
        Self::REMOVE_GIT,
        Self::REGISTER_GIT,
        Self::BEGIN_GIT_AUTH,
        Self::FINISH_GIT_AUTH,
        Self::DEREGISTER_GIT,
        Self::UPDATE_RUNTIME_GIT_TOKEN,
        Self::COMMIT_FILES,
        Self::DELETE_FILES,
        Self::CREATE_PULL_REQUEST,
        Self::SEAL_SECRET,
        Self::APPLICATION_LOGS,
        Self::WORKFLOW_LOGS,
        Self::COMPONENT_LOGS,
    ];
}

impl Operation {
    /// The same for admins alone.
    pub(crate) const fn of_admins(self) -> Self {
        Self { action: None, ..self }
    }

    /// What it is about, where that has a name.
    pub(crate) fn of_one(self) -> &'static str {
        if self.entity == WORKFLOWS { "a workflow" } else { "an application" }
    }

    /// [`Self::PROMOTE`] of all that is left.
    pub(crate) const fn promote_full() -> Self {
        Self { action: Some("ROLLOUT_PROMOTE_FULL"), ..Self::PROMOTE }
    }

    /// [`Self::RUN_ACTION`] of that name on a kind: what another operation does needs what that one needs.
    pub(crate) fn run_action(group: &str, kind: &str, name: &str) -> Self {
        let action = match (group, kind, name) {
            ("apps", _, "restart") => Some("RESTART"),
            ("argoproj.io", "Rollout", "restart") => Some("ROLLOUT_RESTART"),
            ("argoproj.io", "Rollout", "resume") => Some("ROLLOUT_RESUME"),
            ("argoproj.io", "Rollout", "pause") => Some("ROLLOUT_PAUSE"),
            ("argoproj.io", "Rollout", "abort") => Some("ROLLOUT_ABORT"),
            ("argoproj.io", "Rollout", "retry") => Some("ROLLOUT_RETRY"),
            ("argoproj.io", "Rollout", "promote-full") => Some("ROLLOUT_PROMOTE_FULL"),
            ("argoproj.io", "Rollout", "skip-current-step") => Some("ROLLOUT_SKIP_CURRENT_STEP"),
            _ => None,
        };
        Self { action, ..Self::RUN_ACTION }
    }
}
