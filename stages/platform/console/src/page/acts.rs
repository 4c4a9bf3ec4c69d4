//! Acts: buttons that say what they do, and why one may not be used.

use maud::{Markup, html};
use stages_platform_store::{Action, Entity};

use super::rollout::Standing;
use super::submit;
use super::workflow::Run;
use crate::view::resource::ResourceKey;

/// An act, as it may be asked for.
struct Act {
    /// Of the script.
    word: &'static str,
    /// What the runtime is asked, as the platform knows it by name.
    query: &'static str,
    title: &'static str,
    /// Rules of what decide about it.
    entity: Entity,
    action: Action,
    /// Within "no rule of your teams lets you …".
    verb: &'static str,
    /// What it will do, where `{}` stands for what it is done to; empty where it changes nothing.
    what: &'static str,
}

/// Of what rules say whether it may be done.
const APPLICATIONS: Entity = Entity::GitopsApplications;
const WORKFLOWS: Entity = Entity::Workflows;

const fn act(
    entity: Entity,
    (word, query): (&'static str, &'static str),
    title: &'static str,
    action: Action,
    verb: &'static str,
    what: &'static str,
) -> Act {
    Act { word, query, title, entity, action, verb, what }
}

static SYNC: Act = act(
    APPLICATIONS,
    ("sync", "syncApplication"),
    "Sync",
    Action::Sync,
    "sync it",
    "This makes the cluster what Git says of {}.",
);
static OF_APPLICATION: [Act; 2] = [
    act(
        APPLICATIONS,
        ("refresh", "refreshApplication"),
        "Refresh",
        Action::Refresh,
        "refresh it",
        "Argo CD reads Git and the cluster again for {}. Nothing in the cluster changes, unless it syncs by itself.",
    ),
    act(
        APPLICATIONS,
        ("rollback", "rollbackApplication"),
        "Roll back…",
        Action::AppRollback,
        "roll it back",
        "This deploys an earlier state of {} once more. Git stays as it is: the application is out of sync until Git says the same.",
    ),
];
static TERMINATE: Act = act(
    APPLICATIONS,
    ("terminate", "terminateOperation"),
    "Terminate",
    Action::TerminateSync,
    "terminate its sync",
    "The operation of {} that runs now ends. What it has applied by then stays.",
);
static OF_ROLLOUT: [Act; 8] = [
    act(
        APPLICATIONS,
        ("promote", "promoteRollout"),
        "Promote",
        Action::RolloutResume,
        "let its rollouts go on",
        "{} goes on from the pause that it stands at to its next step.",
    ),
    act(
        APPLICATIONS,
        ("promote-full", "promoteRollout"),
        "Promote fully",
        Action::RolloutPromoteFull,
        "promote its rollouts fully",
        "{} skips all steps and analyses that are left: the new version takes everything at once.",
    ),
    act(
        APPLICATIONS,
        ("pause", "pauseRollout"),
        "Pause",
        Action::RolloutPause,
        "pause its rollouts",
        "{} stays at the step that it is at until somebody lets it go on.",
    ),
    act(
        APPLICATIONS,
        ("resume", "resumeRollout"),
        "Resume",
        Action::RolloutResume,
        "let its rollouts go on",
        "{} is held no longer: it goes on from where it stands.",
    ),
    act(
        APPLICATIONS,
        ("skip", "skipCurrentStep"),
        "Skip step",
        Action::RolloutSkipCurrentStep,
        "skip steps of its rollouts",
        "{} leaves the step that it is at, whatever of it is not done, and goes on with the next one.",
    ),
    act(
        APPLICATIONS,
        ("abort", "abortRollout"),
        "Abort",
        Action::RolloutAbort,
        "abort its rollouts",
        "{} goes back to the stable version at once. Git still says the new one.",
    ),
    act(
        APPLICATIONS,
        ("retry", "retryRollout"),
        "Retry",
        Action::RolloutRetry,
        "retry its rollouts",
        "{}, which was aborted, begins anew.",
    ),
    act(
        APPLICATIONS,
        ("restart", "restartRollout"),
        "Restart",
        Action::RolloutRestart,
        "restart its rollouts",
        "{} makes its pods anew, some at a time. Their version stays.",
    ),
];
static OF_WORKFLOW: [Act; 7] = [
    act(
        WORKFLOWS,
        ("resubmit-workflow", "resubmitWorkflow"),
        "Resubmit",
        Action::Resubmit,
        "begin workflows of this namespace again",
        "A workflow like {} begins anew. This one stays as it is.",
    ),
    act(
        WORKFLOWS,
        ("retry-workflow", "retryWorkflow"),
        "Retry",
        Action::Resubmit,
        "retry workflows of this namespace",
        "What failed of {} is done once more. What succeeded stays as it is.",
    ),
    act(
        WORKFLOWS,
        ("suspend-workflow", "suspendWorkflow"),
        "Suspend",
        Action::Stop,
        "suspend workflows of this namespace",
        "{} begins no further step. What runs goes on to its end.",
    ),
    act(
        WORKFLOWS,
        ("resume-workflow", "resumeWorkflow"),
        "Resume",
        Action::Stop,
        "resume workflows of this namespace",
        "{} goes on, and so do its steps that wait for somebody.",
    ),
    act(
        WORKFLOWS,
        ("stop-workflow", "stopWorkflow"),
        "Stop",
        Action::Stop,
        "stop workflows of this namespace",
        "{} ends. Its exit handlers still run.",
    ),
    act(
        WORKFLOWS,
        ("terminate-workflow", "terminateWorkflow"),
        "Terminate",
        Action::Terminate,
        "terminate workflows of this namespace",
        "{} ends at once, without its exit handlers.",
    ),
    act(
        WORKFLOWS,
        ("workflow-logs", "workflowLogs"),
        "Logs",
        Action::AccessLogs,
        "see logs of workflows of this namespace",
        "",
    ),
];
static OF_TEMPLATE: Act = act(
    WORKFLOWS,
    ("submit-workflow", "createWorkflowFromTemplate"),
    "Submit…",
    Action::Create,
    "begin workflows in this namespace",
    "This begins a workflow of {}, which stays as it is.",
);
static LOGS: Act =
    act(APPLICATIONS, ("logs", "applicationLogs"), "Logs", Action::ViewPodLogs, "see logs of its pods", "");
static RESTART: Act = act(
    APPLICATIONS,
    ("restart-workload", "restartResource"),
    "Restart",
    Action::Restart,
    "restart its pods",
    "The cluster replaces the pods of {} as its update strategy says; its manifest stays.",
);

/// What has pods, or is one.
const WITH_LOGS: [&str; 7] =
    ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Rollout"];

/// What makes its pods anew when it is asked to.
const WITH_RESTART: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// What whoever looks may do to an application.
pub(crate) struct Acts {
    /// What keeps everybody from it, if anything does.
    pub(crate) none: Option<String>,
    /// What they may: to the application, and to workflows of the namespace of the one that is looked at.
    pub(crate) allowed: Vec<(Entity, Action)>,
    /// Whether they may commit by the runtime.
    pub(crate) may_commit: bool,
}

/// Whether a resource is of this kind of Argo's.
fn is_argo(key: &ResourceKey, kind: &str) -> bool {
    key.group == "argoproj.io" && key.kind == kind
}

/// Whether what may be done to a resource is asked about as of a workflow.
pub(crate) fn is_of_workflows(key: &ResourceKey) -> bool {
    is_argo(key, "Workflow") || is_argo(key, "WorkflowTemplate")
}

/// Why a button is there and may not be used.
pub(crate) fn refused(verb: &str) -> String {
    format!("No rule of your teams lets you {verb}: an admin can add one.")
}

impl Acts {
    /// What is asked about.
    pub(crate) fn asked_about() -> impl Iterator<Item = (Entity, Action)> {
        let single = [&SYNC, &TERMINATE, &LOGS, &RESTART, &OF_TEMPLATE];
        let all = OF_APPLICATION.iter().chain(single).chain(&OF_ROLLOUT).chain(&OF_WORKFLOW);
        all.map(|act| (act.entity, act.action))
    }

    fn why(&self, act: &Act) -> Option<String> {
        let is_allowed = self.allowed.contains(&(act.entity, act.action));
        self.none.clone().or_else(|| (!is_allowed).then(|| refused(act.verb)))
    }

    /// Of an act on what is called so. `senseless` says why it makes no sense now, if it makes none: whoever may not hears that
    /// first.
    fn button(&self, act: &Act, name: &str, senseless: Option<&str>) -> Markup {
        let why = self.why(act).or_else(|| senseless.map(str::to_owned));
        let what = (!act.what.is_empty()).then(|| act.what.replacen("{}", name, 1));
        // Not `disabled`: the reason is to be reached by the keyboard, too.
        html! {
            button type="button" data-act=(act.word) data-query=(act.query) data-what=[what] aria-disabled=[why.as_ref().map(|_| "true")] data-why=[why.as_ref()] title=[why.as_ref()] {
                (act.title) @if act.word == SYNC.word { " " kbd aria-hidden="true" { "s" } }
            }
        }
    }

    /// Why they may commit nothing.
    pub(crate) fn why_no_commit(&self) -> Option<String> {
        (!self.may_commit).then(|| refused("commit"))
    }

    /// Those of an application; one that is under way can be terminated.
    pub(crate) fn of_application(&self, name: &str, is_running: bool) -> Markup {
        html! {
            (self.button(&SYNC, name, None))
            @for act in &OF_APPLICATION { (self.button(act, name, None)) }
            @if is_running { (self.button(&TERMINATE, name, None)) }
        }
    }

    /// Those of one of its resources, of which a manifest says what it stands at, or what it asks for. What is missing has no pods
    /// to be restarted.
    pub(crate) fn of_resource(&self, key: &ResourceKey, live: Option<&str>, is_missing: bool) -> Markup {
        let ResourceKey { group, kind, namespace, name } = key;
        let called = format!("{kind} {name}");
        let is_rollout = is_argo(key, "Rollout");
        let standing = live.filter(|_| is_rollout).and_then(Standing::read);
        let is_workflow = is_argo(key, "Workflow");
        let run = live.filter(|_| is_workflow).and_then(Run::read);
        let has_restart = group == "apps" && WITH_RESTART.contains(&&**kind) && !is_missing;
        let form =
            live.filter(|_| is_argo(key, "WorkflowTemplate")).and_then(|live| submit::form(live, name));
        html! {
            span.acts data-key={"acts/" (key)} data-group=(group) data-kind=(kind) data-namespace=(namespace) data-name=(name) {
                @if is_rollout { @for act in &OF_ROLLOUT { (self.button(act, &called, standing.and_then(|standing| standing.why_not(act.action)))) } }
                @if is_workflow { @for act in &OF_WORKFLOW { (self.button(act, &called, run.and_then(|run| run.why_not(act.word)))) } }
                @if let Some(form) = form { (self.button(&OF_TEMPLATE, &called, None)) template data-form { (form) } }
                @if has_restart { (self.button(&RESTART, &called, None)) }
                @if WITH_LOGS.contains(&&**kind) { (self.button(&LOGS, &called, None)) }
            }
        }
    }
}
