//! Acts: buttons that say what they do, and why one may not be used.

use maud::{Markup, html};
use stages_platform_store::Action;

use super::rollout::Standing;
use crate::view::resource::ResourceKey;

/// An act, as it may be asked for.
struct Act {
    /// Of the script.
    word: &'static str,
    title: &'static str,
    action: Action,
    /// Within "no rule of your teams lets you …".
    verb: &'static str,
}

const fn act(word: &'static str, title: &'static str, action: Action, verb: &'static str) -> Act {
    Act { word, title, action, verb }
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
static LOGS: Act = act("logs", "Logs", Action::ViewPodLogs, "see logs of its pods");

/// What has pods, or is one.
const WITH_LOGS: [&str; 7] =
    ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Rollout"];

/// What whoever looks may do to an application.
pub(crate) struct Acts {
    /// What keeps everybody from it, if anything does.
    pub(crate) none: Option<String>,
    /// What they may.
    pub(crate) allowed: Vec<Action>,
}

impl Acts {
    /// What is asked about.
    pub(crate) fn actions() -> impl Iterator<Item = Action> {
        OF_APPLICATION.iter().chain([&SYNC, &TERMINATE, &LOGS]).chain(&OF_ROLLOUT).map(|act| act.action)
    }

    fn why(&self, act: &Act) -> Option<String> {
        self.none.clone().or_else(|| {
            let verb = act.verb;
            let refused = || format!("No rule of your teams lets you {verb}: an admin can add one.");
            (!self.allowed.contains(&act.action)).then(refused)
        })
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
        html! {
            span.acts data-key={"acts/" (key)} data-group=(group) data-kind=(kind) data-namespace=(namespace) data-name=(name) {
                @if is_rollout { @for act in &OF_ROLLOUT { (self.button(act, standing.and_then(|standing| standing.why_not(act.action)))) } }
                @if WITH_LOGS.contains(&&**kind) { (self.button(&LOGS, None)) }
            }
        }
    }
}
