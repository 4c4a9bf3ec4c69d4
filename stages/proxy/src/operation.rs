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

/// Reads what no rule grants.
const fn admins_look(name: &'static str, entity: &'static str) -> Operation {
    Operation { name, action: None, entity, is_act: false }
}

/// Does what no rule grants.
const fn admins_act(name: &'static str, entity: &'static str) -> Operation {
    Operation { name, action: None, entity, is_act: true }
}

/// Each operation as a constant of its name, and all of them together.
macro_rules! operations {
    ($($name:ident = $operation:expr;)*) => {
        #[expect(missing_docs, reason = "each is named after the field that it is")]
        impl Operation {
            $(pub const $name: Self = $operation;)*
        }

        impl Operation {
            /// All of the schema, in its order.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];
        }
    };
}

operations! {
    VERSION_INFO = reads("versionInfo", APPLICATIONS);
    RUNTIME_STATUS = reads("runtimeStatus", APPLICATIONS);
    RESOURCE_TREE = reads("resourceTree", APPLICATIONS);
    MANAGED_RESOURCES = reads("managedResources", APPLICATIONS);
    APPLICATION_DIFF = reads("applicationDiff", APPLICATIONS);
    APPLICATION_HISTORY = reads("applicationHistory", APPLICATIONS);
    APPLICATION_EVENTS = reads("applicationEvents", APPLICATIONS);
    RESOURCE_ACTIONS = reads("resourceActions", APPLICATIONS);
    APPLICATION_LINKS = reads("applicationLinks", APPLICATIONS);
    // Argo CD is asked about whatever project and repository are named, with the account of the runtime: no rule knows of these.
    REPOSITORY_APP_DETAILS = admins_look("repositoryAppDetails", APPLICATIONS);
    VALIDATE_APPLICATION = admins_look("validateApplication", APPLICATIONS);
    ROLLOUT = reads("rollout", APPLICATIONS);
    ANALYSIS_RUNS = reads("analysisRuns", APPLICATIONS);
    WORKFLOW_LIST = reads("workflows", WORKFLOWS);
    WORKFLOW = reads("workflow", WORKFLOWS);

    GIT_INTEGRATIONS = reads("gitIntegrations", GIT);
    GIT_INTEGRATION = reads("gitIntegration", GIT);
    GIT_TOKEN = reads("gitToken", GIT);
    VALIDATE_GIT = looks("validateGitProvider", "CREATE", GIT);
    GIT_REPOSITORIES = reads("gitRepositories", GIT);
    GIT_ORGANIZATIONS = reads("gitOrganizations", GIT);
    REPOSITORY_BRANCHES = reads("repositoryBranchesAndTags", GIT);
    REPOSITORY_FILES = reads("repositoryFiles", GIT);
    READ_FILE = reads("readFile", GIT);

    SEALING_CERTIFICATE = reads("sealingCertificate", GIT);

    SYNC = acts("syncApplication", "SYNC", APPLICATIONS);
    TERMINATE_OPERATION = acts("terminateOperation", "TERMINATE_SYNC", APPLICATIONS);
    REFRESH = acts("refreshApplication", "REFRESH", APPLICATIONS);
    ROLLBACK = acts("rollbackApplication", "APP_ROLLBACK", APPLICATIONS);
    DELETE_RESOURCE = acts("deleteResource", "DELETE_RESOURCE", APPLICATIONS);
    RESTART = acts("restartResource", "RESTART", APPLICATIONS);
    RUN_ACTION = admins_act("runResourceAction", APPLICATIONS);
    PROMOTE = acts("promoteRollout", "ROLLOUT_RESUME", APPLICATIONS);
    PAUSE = acts("pauseRollout", "ROLLOUT_PAUSE", APPLICATIONS);
    RESUME = acts("resumeRollout", "ROLLOUT_RESUME", APPLICATIONS);
    ABORT = acts("abortRollout", "ROLLOUT_ABORT", APPLICATIONS);
    RETRY = acts("retryRollout", "ROLLOUT_RETRY", APPLICATIONS);
    RESTART_ROLLOUT = acts("restartRollout", "ROLLOUT_RESTART", APPLICATIONS);
    SKIP_STEP = acts("skipCurrentStep", "ROLLOUT_SKIP_CURRENT_STEP", APPLICATIONS);
    ROLLBACK_ROLLOUT = acts("rollbackRollout", "APP_ROLLBACK", APPLICATIONS);

    CREATE_WORKFLOW = acts("createWorkflowFromTemplate", "CREATE", WORKFLOWS);
    RETRY_WORKFLOW = acts("retryWorkflow", "RESUBMIT", WORKFLOWS);
    RESUBMIT_WORKFLOW = acts("resubmitWorkflow", "RESUBMIT", WORKFLOWS);
    TERMINATE_WORKFLOW = acts("terminateWorkflow", "TERMINATE", WORKFLOWS);
    STOP_WORKFLOW = acts("stopWorkflow", "STOP", WORKFLOWS);
    SUSPEND_WORKFLOW = acts("suspendWorkflow", "STOP", WORKFLOWS);
    RESUME_WORKFLOW = acts("resumeWorkflow", "STOP", WORKFLOWS);

    ADD_GIT = admins_act("addGitIntegration", GIT);
    EDIT_GIT = admins_act("editGitIntegration", GIT);
    REMOVE_GIT = admins_act("removeGitIntegration", GIT);
    REGISTER_GIT = acts("registerToGitIntegration", "CREATE", GIT);
    BEGIN_GIT_AUTH = acts("beginGitAuth", "CREATE", GIT);
    FINISH_GIT_AUTH = acts("finishGitAuth", "CREATE", GIT);
    DEREGISTER_GIT = acts("deregisterFromGitIntegration", "CREATE", GIT);
    UPDATE_RUNTIME_GIT_TOKEN = admins_act("updateRuntimeGitToken", GIT);
    COMMIT_FILES = acts("commitFiles", "CREATE", GIT);
    DELETE_FILES = acts("deleteFiles", "CREATE", GIT);
    CREATE_PULL_REQUEST = acts("createPullRequest", "CREATE", GIT);

    SEAL_SECRET = acts("sealSecret", "CREATE", GIT);

    APPLICATION_LOGS = acts("applicationLogs", "VIEW_POD_LOGS", APPLICATIONS);
    WORKFLOW_LOGS = acts("workflowLogs", "ACCESS_LOGS", WORKFLOWS);

    COMPONENT_LOGS = admins_act("componentLogs", APPLICATIONS);
}

impl Operation {
    /// Beside the schema: the archive of the runtime's own logs.
    pub const DOWNLOAD_LOGS: Self = admins_act("downloadLogs", APPLICATIONS);

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
