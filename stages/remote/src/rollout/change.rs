//! What can be done to a Rollout, as a mutation and in words, and how it is told that it has taken effect.

use serde_json::{Value, json};

use super::Rollout;
use crate::show::count;

/// Something that is done to a Rollout.
pub(super) struct RolloutChange {
    /// Completes "cannot ...".
    pub(super) act: &'static str,
    /// Completes "would ...", before the name of the Rollout.
    pub(super) does: String,
    /// What is so once it was asked for, behind the name of the Rollout.
    pub(super) done: &'static str,
    /// Whether it takes something away that no other command brings back.
    pub(super) destroys: bool,
    /// The mutation, of `$application`, `$rollout` and the variables in `more`.
    pub(super) query: &'static str,
    /// An object of further variables, or null.
    pub(super) more: Value,
    /// Fields of the Rollout that `has_taken_effect` needs and that are not always read.
    pub(super) fields: &'static str,
    /// What would become of a Rollout, as it is now.
    pub(super) plan: Box<dyn Fn(&Rollout) -> String>,
    /// Whether it has taken effect, by the Rollout before it was asked for and as it is now.
    pub(super) has_taken_effect: fn(&Rollout, &Rollout) -> bool,
}

fn is_healthy(_before: &Rollout, now: &Rollout) -> bool {
    now.is("Healthy")
}

/// Whether a Rollout has gone on since, or is through.
fn has_moved(before: &Rollout, now: &Rollout) -> bool {
    now.is("Healthy") || now.current_step_index != before.current_step_index || (before.paused && !now.paused)
}

impl RolloutChange {
    /// Ends the pause that a Rollout stands at, or with `full` all steps that are left.
    pub(super) fn promote(full: bool) -> Self {
        Self {
            act: "promote a Rollout",
            does: if full { "end all that is left of" } else { "end the pause of" }.to_owned(),
            done: "is promoted",
            destroys: false,
            query: "mutation Promote($application: ApplicationId!, $rollout: ObjectId!, $full: Boolean!) { promoteRollout(application: $application, rollout: $rollout, full: $full) { metadata { name } } }",
            more: json!({"full": full}),
            fields: "",
            plan: Box::new(move |now: &Rollout| if full { now.steps(now.steps) } else { now.goes_on() }),
            has_taken_effect: if full { is_healthy } else { has_moved },
        }
    }

    /// Goes back to a revision, or to the one before.
    pub(super) fn rollback(to: Option<i64>) -> Self {
        Self {
            act: "roll a Rollout back",
            does: match to {
                Some(to) => format!("go back to revision {to} of"),
                None => "go back to the revision before of".to_owned(),
            },
            done: "is being rolled back",
            destroys: true,
            query: "mutation Rollback($application: ApplicationId!, $rollout: ObjectId!, $revision: Int) { rollbackRollout(application: $application, rollout: $rollout, revision: $revision) { rollout newRevision } }",
            more: json!({"revision": to}),
            fields: "",
            plan: Box::new(move |now: &Rollout| now.images(to)),
            has_taken_effect: |before, now| now.revision != before.revision,
        }
    }

    pub(super) fn pause() -> Self {
        Self {
            act: "pause a Rollout",
            does: "pause".to_owned(),
            done: "is paused",
            destroys: false,
            query: "mutation Pause($application: ApplicationId!, $rollout: ObjectId!) { pauseRollout(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            fields: "",
            plan: Box::new(|now: &Rollout| match now.paused {
                true => "it is paused already\n".to_owned(),
                false => "- not paused\n+ paused\n".to_owned(),
            }),
            has_taken_effect: |_, now| now.paused || now.is("Paused"),
        }
    }

    pub(super) fn resume() -> Self {
        Self {
            act: "resume a Rollout",
            does: "resume".to_owned(),
            done: "is resumed",
            destroys: false,
            query: "mutation Resume($application: ApplicationId!, $rollout: ObjectId!) { resumeRollout(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            fields: "",
            plan: Box::new(Rollout::goes_on),
            has_taken_effect: |_, now| !now.paused && !now.is("Paused"),
        }
    }

    /// Gives a Rollout up, and goes back to what ran before.
    pub(super) fn abort() -> Self {
        Self {
            act: "abort a Rollout",
            does: "give up".to_owned(),
            done: "is aborted",
            destroys: true,
            query: "mutation Abort($application: ApplicationId!, $rollout: ObjectId!) { abortRollout(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            fields: "",
            plan: Box::new(|now: &Rollout| match now.aborted {
                true => "it is aborted already\n".to_owned(),
                false => format!(
                    "- revision {}\n+ the revision that is stable\n",
                    now.revision.unwrap_or_default()
                ),
            }),
            has_taken_effect: |_, now| now.aborted,
        }
    }

    /// Tries a Rollout again that was aborted.
    pub(super) fn retry() -> Self {
        Self {
            act: "retry a Rollout",
            does: "try again".to_owned(),
            done: "is tried again",
            destroys: false,
            query: "mutation Retry($application: ApplicationId!, $rollout: ObjectId!) { retryRollout(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            fields: "",
            plan: Box::new(|now: &Rollout| match now.aborted {
                true => "- aborted\n+ not aborted\n".to_owned(),
                false => "it was not aborted: nothing could be done\n".to_owned(),
            }),
            has_taken_effect: |_, now| !now.aborted,
        }
    }

    /// Replaces the pods of a Rollout.
    pub(super) fn restart() -> Self {
        Self {
            act: "restart a Rollout",
            does: "restart".to_owned(),
            done: "is being restarted",
            destroys: false,
            query: "mutation Restart($application: ApplicationId!, $rollout: ObjectId!) { restartRollout(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            // The app proxy of an older runtime does not know this field.
            fields: "restarting",
            plan: Box::new(|now: &Rollout| {
                let pods = now.replicas.and_then(|replicas| usize::try_from(replicas).ok());
                format!("{} would be replaced\n", count(pods.unwrap_or_default(), "pod"))
            }),
            has_taken_effect: |_, now| {
                let is_done = now.restarting == Some(false) && now.available_replicas == now.replicas;
                is_done && now.is("Healthy")
            },
        }
    }

    /// Leaves out the step that a Rollout is at.
    pub(super) fn skip() -> Self {
        Self {
            act: "skip a step of a Rollout",
            does: "skip the step of".to_owned(),
            done: "leaves out the step that it was at",
            destroys: false,
            query: "mutation Skip($application: ApplicationId!, $rollout: ObjectId!) { skipCurrentStep(application: $application, rollout: $rollout) { metadata { name } } }",
            more: Value::Null,
            fields: "",
            plan: Box::new(|now: &Rollout| match now.current_step_index.unwrap_or_default() < now.steps {
                true => now.next(),
                false => "it has no step left: nothing could be done\n".to_owned(),
            }),
            has_taken_effect: has_moved,
        }
    }
}
