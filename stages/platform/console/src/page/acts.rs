//! Acts: buttons that say what they do, and why one may not be used.

use maud::{Markup, html};
use stages_platform_store::{Action, Entity};

use super::rollout::Standing;
use super::workflow::Run;
use crate::view::resource::ResourceKey;

/// An act, as it may be asked for.
struct Act {
    /// Of the script.
    word: &'static str,
    title: &'static str,
    /// Rules of what decide about it.
    entity: Entity,
    action: Action,
    /// Within "no rule of your teams lets you …".
    verb: &'static str,
}

const fn act(word: &'static str, title: &'static str, action: Action, verb: &'static str) -> Act {
    Act { word, title, entity: Entity::GitopsApplications, action, verb }
}

const fn on_workflows(word: &'static str, title: &'static str, action: Action, verb: &'static str) -> Act {
    Act { entity: Entity::Workflows, ..act(word, title, action, verb) }
}

static SYNC: Act = act("sync", "Sync", Action::Sync, "sync it");
static OF_APPLICATION: [Act; 2] = [
    act("refresh", "Refresh", Action::Refresh, "refresh it"),
    act("rollback", "Roll back…", Action::AppRollback, "roll it back"),
];
static TERMINATE: Act = act("terminate", "Terminate", Action::TerminateSync, "terminate its sync");
static OF_ROLLOUT: [Act; 8] = [
    act("promote", "Promote", Action::RolloutResume, "let its rollouts go on"),
    act("promote-full", "Promote fully", Action::RolloutPromoteFull, "promote its rollouts fully"),
    act("pause", "Pause", Action::RolloutPause, "pause its rollouts"),
    act("resume", "Resume", Action::RolloutResume, "let its rollouts go on"),
    act("skip", "Skip step", Action::RolloutSkipCurrentStep, "skip steps of its rollouts"),
    act("abort", "Abort", Action::RolloutAbort, "abort its rollouts"),
    act("retry", "Retry", Action::RolloutRetry, "retry its rollouts"),
    act("restart", "Restart", Action::RolloutRestart, "restart its rollouts"),
];
static OF_WORKFLOW: [Act; 7] = [
    on_workflows(
        "resubmit-workflow",
        "Resubmit",
        Action::Resubmit,
        "begin workflows of this namespace again",
    ),
    on_workflows("retry-workflow", "Retry", Action::Resubmit, "retry workflows of this namespace"),
    on_workflows("suspend-workflow", "Suspend", Action::Stop, "suspend workflows of this namespace"),
    on_workflows("resume-workflow", "Resume", Action::Stop, "resume workflows of this namespace"),
    on_workflows("stop-workflow", "Stop", Action::Stop, "stop workflows of this namespace"),
    on_workflows(
        "terminate-workflow",
        "Terminate",
        Action::Terminate,
        "terminate workflows of this namespace",
    ),
    on_workflows("workflow-logs", "Logs", Action::AccessLogs, "see logs of workflows of this namespace"),
];
static LOGS: Act = act("logs", "Logs", Action::ViewPodLogs, "see logs of its pods");

/// What has pods, or is one.
const WITH_LOGS: [&str; 7] =
    ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Rollout"];

/// What whoever looks may do to an application.
pub(crate) struct Acts {
    /// What keeps everybody from it, if anything does.
    pub(crate) none: Option<String>,
    /// What they may: to the application, and to workflows of the namespace of the one that is looked at.
    pub(crate) allowed: Vec<(Entity, Action)>,
    /// Whether they may commit by the runtime.
    pub(crate) may_commit: bool,
}

/// Whether a resource is a Workflow of Argo Workflows.
pub(crate) fn is_workflow(key: &ResourceKey) -> bool {
    key.group == "argoproj.io" && key.kind == "Workflow"
}

/// Why a button is there and may not be used.
pub(crate) fn refused(verb: &str) -> String {
    format!("No rule of your teams lets you {verb}: an admin can add one.")
}

impl Acts {
    /// What is asked about.
    pub(crate) fn asked_about() -> impl Iterator<Item = (Entity, Action)> {
        let all =
            OF_APPLICATION.iter().chain([&SYNC, &TERMINATE, &LOGS]).chain(&OF_ROLLOUT).chain(&OF_WORKFLOW);
        all.map(|act| (act.entity, act.action))
    }

    fn why(&self, act: &Act) -> Option<String> {
        let is_allowed = self.allowed.contains(&(act.entity, act.action));
        self.none.clone().or_else(|| (!is_allowed).then(|| refused(act.verb)))
    }

    /// `senseless` says why the act makes no sense now, if it makes none: whoever may not hears that first.
    fn button(&self, act: &Act, senseless: Option<&str>) -> Markup {
        let why = self.why(act).or_else(|| senseless.map(str::to_owned));
        // Not `disabled`: the reason is to be reached by the keyboard, too.
        html! {
            button type="button" data-act=(act.word) aria-disabled=[why.as_ref().map(|_| "true")] data-why=[why.as_ref()] title=[why.as_ref()] {
                (act.title) @if act.word == SYNC.word { " " kbd aria-hidden="true" { "s" } }
            }
        }
    }

    /// Why they may commit nothing.
    pub(crate) fn why_no_commit(&self) -> Option<String> {
        (!self.may_commit).then(|| refused("commit"))
    }

    /// Those of an application; one that is under way can be terminated.
    pub(crate) fn of_application(&self, is_running: bool) -> Markup {
        html! {
            (self.button(&SYNC, None))
            @for act in &OF_APPLICATION { (self.button(act, None)) }
            @if is_running { (self.button(&TERMINATE, None)) }
        }
    }

    /// Those of one of its resources, of which a manifest says what it stands at.
    pub(crate) fn of_resource(&self, key: &ResourceKey, live: Option<&str>) -> Markup {
        let ResourceKey { group, kind, namespace, name } = key;
        let is_rollout = group == "argoproj.io" && kind == "Rollout";
        let standing = live.filter(|_| is_rollout).and_then(Standing::read);
        let is_workflow = is_workflow(key);
        let run = live.filter(|_| is_workflow).and_then(Run::read);
        html! {
            span.acts data-key={"acts/" (key)} data-group=(group) data-kind=(kind) data-namespace=(namespace) data-name=(name) {
                @if is_rollout { @for act in &OF_ROLLOUT { (self.button(act, standing.and_then(|standing| standing.why_not(act.action)))) } }
                @if is_workflow { @for act in &OF_WORKFLOW { (self.button(act, run.and_then(|run| run.why_not(act.word)))) } }
                @if WITH_LOGS.contains(&&**kind) { (self.button(&LOGS, None)) }
            }
        }
    }
}
