//! `gitops-runtime rollout`: Rollouts of an application.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act::{Act, Look, wait};
use crate::app::find::AppName;
use crate::arguments::rollout::{Done, Meant, RolloutCommand};
use crate::ask::{Platform, read};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::resource::{Node, meant};
use crate::show::{Cell, Column, Output, Screen, age, count, document, facts, plain, table};
use crate::watch::Watched;

const FIELDS: &str = "metadata { name namespace } uid phase message paused aborted strategy currentStepIndex steps revision stableRevision replicas readyReplicas updatedReplicas availableReplicas revisions { revision replicaSet images createdAt replicas }";

const REVISIONS: &[Column] = &[
    Column::new("REVISION").right(),
    Column::new("REPLICAS").right(),
    Column::new("AGE").rank(2),
    Column::new("IMAGES").path(),
    Column::new("REPLICASET").path().rank(1),
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rollout {
    phase: Option<String>,
    message: Option<String>,
    paused: bool,
    aborted: bool,
    strategy: Option<String>,
    current_step_index: Option<i64>,
    steps: i64,
    revision: Option<i64>,
    replicas: Option<i64>,
    ready_replicas: Option<i64>,
    updated_replicas: Option<i64>,
    available_replicas: Option<i64>,
    restarting: Option<bool>,
    #[serde(default)]
    revisions: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Revision {
    revision: i64,
    replica_set: String,
    images: Vec<String>,
    created_at: Option<String>,
    replicas: Option<i64>,
}

/// A Rollout of an application, and who is asked about it.
struct Of {
    proxy: Proxy,
    app: AppName,
    node: Node,
}

/// What is done to a Rollout, and by what it is told to have taken effect.
struct What<'a> {
    act: &'static str,
    does: &'a str,
    done: &'a str,
    destroys: bool,
    query: &'a str,
    more: Value,
    /// What is read of it besides [`FIELDS`].
    fields: &'static str,
    /// What would become of one, as it is now.
    plan: &'a dyn Fn(&Rollout) -> String,
    is_so: &'a dyn Fn(&Rollout, &Rollout) -> bool,
}

impl Rollout {
    fn is(&self, phase: &str) -> bool {
        self.phase.as_deref() == Some(phase)
    }

    /// How the images of a revision differ from those that it has, the newest; of none that is named, the one before.
    fn images(&self, to: Option<i64>) -> String {
        let meant = match to {
            Some(number) => self.revisions.iter().find(|one| one.revision == number),
            None => self.revisions.get(1),
        };
        let Some(meant) = meant else {
            return "that revision is not there any more: nothing could be done\n".to_owned();
        };
        let now = self.revisions.first().map(|one| &*one.images).unwrap_or_default();
        let line = |sign: char| move |image: &String| plain(&format!("{sign} image {image}")) + "\n";
        let gone = now.iter().filter(|image| !meant.images.contains(image)).map(line('-'));
        let come = meant.images.iter().filter(|image| !now.contains(image)).map(line('+'));
        let text: String = gone.chain(come).collect();
        if text.is_empty() { "the images are the same\n".to_owned() } else { text }
    }

    /// From the step that it is at to another, which is none behind the last.
    fn steps(&self, to: i64) -> String {
        let (at, steps) = (self.current_step_index.unwrap_or_default(), self.steps);
        match steps {
            0 => "- not promoted\n+ promoted\n".to_owned(),
            _ => format!("- step {} of {steps}\n+ step {} of {steps}\n", at.min(steps), to.min(steps)),
        }
    }

    /// As [`Self::steps`], of the next.
    fn next(&self) -> String {
        self.steps(self.current_step_index.unwrap_or_default().saturating_add(1))
    }

    /// As [`Self::next`], of one that is paused.
    fn goes_on(&self) -> String {
        if self.paused { self.next() } else { "it is not paused: nothing could be done\n".to_owned() }
    }

    /// How far it is.
    fn standing(&self) -> String {
        let phase = self.phase.as_deref().unwrap_or("of no phase yet");
        let step = match self.current_step_index {
            Some(step) if self.steps > 0 => format!(", step {} of {}", step.min(self.steps), self.steps),
            _ => String::new(),
        };
        let updated = self.updated_replicas.unwrap_or_default();
        plain(&format!(
            "it is {phase}{step}, {updated} of {} replicas updated",
            self.replicas.unwrap_or_default()
        ))
    }
}

impl Of {
    async fn find(
        meant_by: &Meant,
        way: &crate::arguments::act::Way,
        environment: &Environment,
    ) -> Result<Self, RemoteError> {
        let platform = Platform::find(&way.place, environment).await?;
        let (app, _) = platform.application(&meant_by.named, "uid").await?;
        let proxy = Proxy::find(way, &app.runtime, environment).await?;
        let is_rollout = |one: &Node| one.kind == "Rollout" && one.group.as_deref() == Some("argoproj.io");
        let mut all = proxy.tree(&app).await?;
        all.retain(is_rollout);
        let node = match &meant_by.rollout {
            Some(name) => {
                let text = match name.split_once('/') {
                    Some((namespace, name)) => format!("{namespace}/Rollout/{name}"),
                    None => format!("Rollout/{name}"),
                };
                meant(all, &app, &text)?
            }
            None => match all.len() {
                1 => all.remove(0),
                0 => return Err(RemoteError::Missing(format!("{app} has no Rollout"))),
                _ => {
                    let names: Vec<String> = all.iter().map(|one| plain(&one.name)).collect();
                    let said = format!("{app} has several Rollouts: name one, of {}", names.join(", "));
                    return Err(RemoteError::Missing(said));
                }
            },
        };
        Ok(Self { proxy, app, node })
    }

    fn variables(&self) -> Value {
        let namespace = self.node.namespace.clone().unwrap_or_default();
        json!({"application": self.app.variables(), "rollout": {"namespace": namespace, "name": self.node.name}})
    }

    async fn read(&self, more: &str) -> Result<Value, RemoteError> {
        let query = format!(
            "query Rollout($application: ApplicationId!, $rollout: ObjectId!) {{ rollout(application: $application, rollout: $rollout) {{ {FIELDS} {more} }} }}"
        );
        self.proxy.get("read a Rollout", &query, self.variables(), "rollout").await
    }

    async fn act(&self, what: &What<'_>, done: &Done, screen: &Screen) -> Result<(), RemoteError> {
        let title = format!("{} of {}", self.node.title(), self.app);
        let mut variables = self.variables();
        if let (Some(variables), Value::Object(more)) = (variables.as_object_mut(), &what.more) {
            variables.extend(more.clone());
        }
        let before: Option<Rollout> = match done.waiting.wait {
            true => Some(read(self.read("").await?)?),
            false => None,
        };
        let act = Act {
            act: what.act,
            does: format!("{} {title}", what.does),
            done: format!("{title} {}", what.done),
            destroys: what.destroys,
            query: what.query,
            variables,
        };
        let carried = act.carry_out(&self.proxy, &done.careful, screen).await?;
        if carried.is_none() {
            return screen.say(&(what.plan)(&read(self.read("").await?)?));
        }
        let (Some(_), Some(before)) = (carried, before) else { return Ok(()) };
        let look = async || {
            let now = match self.read(what.fields).await {
                Err(RemoteError::Refused { said, .. }) if said.contains("Unknown field") => {
                    let said = "it is asked for, and this runtime is of a version that does not tell when it is through";
                    return Ok(Look::Failed(said.to_owned()));
                }
                now => read::<Rollout>(now?)?,
            };
            Ok(match (what.is_so)(&before, &now) {
                true => Look::Done(format!("{title}: {}", now.standing())),
                false => Look::Not(now.standing()),
            })
        };
        wait(&done.waiting, screen, look).await
    }
}

pub(crate) async fn run(
    command: &RolloutCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    if let RolloutCommand::Get { meant, watch, shown, way } = command {
        let of = Of::find(meant, way, environment).await?;
        let show = |rows: &[Value], _| match rows {
            [one] => get(&of, one, shown.output, screen),
            _ => Ok(String::new()),
        };
        if *watch {
            let id = |one: &Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let watched = Watched { screen, output: shown.output, id, show: &show };
            return watched.run(async || Ok(vec![of.read("").await?].into())).await;
        }
        return screen.say(&show(&[of.read("").await?], true)?);
    }
    let moved = |before: &Rollout, now: &Rollout| {
        now.is("Healthy")
            || now.current_step_index != before.current_step_index
            || (before.paused && !now.paused)
    };
    let (done, what) = match command {
        RolloutCommand::Get { .. } => return Ok(()),
        RolloutCommand::Promote { done, full } => {
            let healthy = |_: &Rollout, now: &Rollout| now.is("Healthy");
            let what = What {
                act: "promote a Rollout",
                does: if *full { "end all that is left of" } else { "end the pause of" },
                done: "is promoted",
                destroys: false,
                query: "mutation Promote($application: ApplicationId!, $rollout: ObjectId!, $full: Boolean!) { promoteRollout(application: $application, rollout: $rollout, full: $full) { metadata { name } } }",
                more: json!({"full": full}),
                fields: "",
                plan: &|now| if *full { now.steps(now.steps) } else { now.goes_on() },
                is_so: if *full { &healthy } else { &moved },
            };
            return act(done, &what, screen, environment).await;
        }
        RolloutCommand::Rollback { done, to } => {
            let does = match to {
                Some(to) => format!("go back to revision {to} of"),
                None => "go back to the revision before of".to_owned(),
            };
            let changed = |before: &Rollout, now: &Rollout| now.revision != before.revision;
            let what = What {
                act: "roll a Rollout back",
                does: &does,
                done: "is being rolled back",
                destroys: true,
                query: "mutation Rollback($application: ApplicationId!, $rollout: ObjectId!, $revision: Int) { rollbackRollout(application: $application, rollout: $rollout, revision: $revision) { rollout newRevision } }",
                more: json!({"revision": to}),
                fields: "",
                plan: &|now| now.images(*to),
                is_so: &changed,
            };
            return act(done, &what, screen, environment).await;
        }
        RolloutCommand::Pause(done) => (
            done,
            What {
                act: "pause a Rollout",
                does: "pause",
                done: "is paused",
                destroys: false,
                query: "mutation Pause($application: ApplicationId!, $rollout: ObjectId!) { pauseRollout(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                fields: "",
                plan: &|now| match now.paused {
                    true => "it is paused already\n".to_owned(),
                    false => "- not paused\n+ paused\n".to_owned(),
                },
                is_so: &|_, now| now.paused || now.is("Paused"),
            },
        ),
        RolloutCommand::Resume(done) => (
            done,
            What {
                act: "resume a Rollout",
                does: "resume",
                done: "is resumed",
                destroys: false,
                query: "mutation Resume($application: ApplicationId!, $rollout: ObjectId!) { resumeRollout(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                fields: "",
                plan: &Rollout::goes_on,
                is_so: &|_, now| !now.paused && !now.is("Paused"),
            },
        ),
        RolloutCommand::Abort(done) => (
            done,
            What {
                act: "abort a Rollout",
                does: "give up",
                done: "is aborted",
                destroys: true,
                query: "mutation Abort($application: ApplicationId!, $rollout: ObjectId!) { abortRollout(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                fields: "",
                plan: &|now| match now.aborted {
                    true => "it is aborted already\n".to_owned(),
                    false => format!(
                        "- revision {}\n+ the revision that is stable\n",
                        now.revision.unwrap_or_default()
                    ),
                },
                is_so: &|_, now| now.aborted,
            },
        ),
        RolloutCommand::Retry(done) => (
            done,
            What {
                act: "retry a Rollout",
                does: "try again",
                done: "is tried again",
                destroys: false,
                query: "mutation Retry($application: ApplicationId!, $rollout: ObjectId!) { retryRollout(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                fields: "",
                plan: &|now| match now.aborted {
                    true => "- aborted\n+ not aborted\n".to_owned(),
                    false => "it was not aborted: nothing could be done\n".to_owned(),
                },
                is_so: &|_, now| !now.aborted,
            },
        ),
        RolloutCommand::Restart(done) => (
            done,
            What {
                act: "restart a Rollout",
                does: "restart",
                done: "is being restarted",
                destroys: false,
                query: "mutation Restart($application: ApplicationId!, $rollout: ObjectId!) { restartRollout(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                // A runtime of a former version does not know.
                fields: "restarting",
                plan: &|now| {
                    let pods = now.replicas.and_then(|replicas| usize::try_from(replicas).ok());
                    format!("{} would be replaced\n", count(pods.unwrap_or_default(), "pod"))
                },
                is_so: &|_, now| {
                    let is_done = now.restarting == Some(false) && now.available_replicas == now.replicas;
                    is_done && now.is("Healthy")
                },
            },
        ),
        RolloutCommand::Skip(done) => (
            done,
            What {
                act: "skip a step of a Rollout",
                does: "skip the step of",
                done: "leaves out the step that it was at",
                destroys: false,
                query: "mutation Skip($application: ApplicationId!, $rollout: ObjectId!) { skipCurrentStep(application: $application, rollout: $rollout) { metadata { name } } }",
                more: Value::Null,
                fields: "",
                plan: &|now| match now.current_step_index.unwrap_or_default() < now.steps {
                    true => now.next(),
                    false => "it has no step left: nothing could be done\n".to_owned(),
                },
                is_so: &moved,
            },
        ),
    };
    act(done, &what, screen, environment).await
}

async fn act(
    done: &Done,
    what: &What<'_>,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    Of::find(&done.meant, &done.way, environment).await?.act(what, done, screen).await
}

fn get(of: &Of, found: &Value, output: Output, screen: &Screen) -> Result<String, RemoteError> {
    if matches!(output, Output::Json | Output::Yaml) {
        return document(found, output);
    }
    if output == Output::Name {
        return Ok(plain(&of.node.name) + "\n");
    }
    let (one, now): (Rollout, _) = (read(found.clone())?, Timestamp::now());
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let step = one.current_step_index.filter(|_| one.steps > 0);
    let state = match (one.aborted, one.paused) {
        (true, _) => "aborted",
        (false, true) => "paused",
        _ => "",
    };
    let phase = one.phase.clone().unwrap_or_default();
    let mut text = facts(
        &[
            ("Name", of.node.name.clone()),
            ("Namespace", of.node.namespace.clone().unwrap_or_default()),
            ("Application", of.app.to_string()),
            (
                "Phase",
                if state.is_empty() || phase.eq_ignore_ascii_case(state) {
                    phase
                } else {
                    format!("{phase}, {state}")
                },
            ),
            ("Message", one.message.clone().unwrap_or_default()),
            ("Strategy", one.strategy.clone().unwrap_or_default()),
            (
                "Step",
                step.map(|step| format!("{} of {}", step.min(one.steps), one.steps)).unwrap_or_default(),
            ),
            ("Revision", number(one.revision)),
            (
                "Replicas",
                format!(
                    "{}, {} updated, {} ready, {} available",
                    one.replicas.unwrap_or_default(),
                    one.updated_replicas.unwrap_or_default(),
                    one.ready_replicas.unwrap_or_default(),
                    one.available_replicas.unwrap_or_default()
                ),
            ),
        ],
        screen,
    );
    if !one.revisions.is_empty() {
        let row = |one: &Revision| -> Vec<Cell> {
            vec![
                one.revision.to_string().into(),
                number(one.replicas).into(),
                age(one.created_at.as_deref(), now).into(),
                one.images.join(" ").into(),
                (&*one.replica_set).into(),
            ]
        };
        let rows: Vec<_> = one.revisions.iter().map(row).collect();
        text += &format!("\n{}", table(REVISIONS, &rows, output == Output::Wide, true, screen));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_revision_would_change_is_told_by_its_images() {
        let revision = |number: i64, images: &[&str]| json!({"revision": number, "replicaSet": "r", "images": images, "createdAt": null, "replicas": 0});
        let rollout: Rollout = serde_json::from_value(json!({
            "phase": "Healthy", "message": null, "paused": false, "aborted": false, "strategy": null, "currentStepIndex": null,
            "steps": 0, "revision": 4, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "revisions": [revision(4, &["web:2", "side:1"]), revision(3, &["web:1", "side:1"]), revision(1, &["web:2", "side:1"])],
        }))
        .unwrap();
        assert_eq!(rollout.images(None), "- image web:2\n+ image web:1\n");
        assert_eq!(rollout.images(Some(3)), rollout.images(None));
        assert_eq!(rollout.images(Some(1)), "the images are the same\n");
        assert_eq!(rollout.images(Some(2)), "that revision is not there any more: nothing could be done\n");
    }

    #[test]
    fn what_would_become_of_a_rollout_is_told_and_where_nothing_could_be_done() {
        let of = |paused: bool, step: Option<i64>, steps: i64| Rollout {
            phase: None,
            message: None,
            paused,
            aborted: false,
            strategy: None,
            current_step_index: step,
            steps,
            revision: Some(4),
            replicas: Some(1),
            ready_replicas: None,
            updated_replicas: None,
            available_replicas: None,
            restarting: None,
            revisions: Vec::new(),
        };
        assert_eq!(of(true, Some(1), 3).goes_on(), "- step 1 of 3\n+ step 2 of 3\n");
        assert_eq!(of(false, Some(1), 3).goes_on(), "it is not paused: nothing could be done\n");
        assert_eq!(of(true, None, 0).goes_on(), "- not promoted\n+ promoted\n");
        assert_eq!(of(true, Some(1), 3).steps(3), "- step 1 of 3\n+ step 3 of 3\n");
        assert_eq!(of(true, Some(9), 3).next(), "- step 3 of 3\n+ step 3 of 3\n");
    }
}
