//! `gitops-runtime rollout`: Rollouts of an application.

mod change;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use self::change::RolloutChange;
use crate::act::{Act, Progress, wait};
use crate::app::AppConnection;
use crate::app::find::AppName;
use crate::arguments::AppProxyArgs;
use crate::arguments::rollout::{RolloutArgs, RolloutChangeArgs, RolloutCommand};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::read;
use crate::proxy::Proxy;
use crate::resource::{Node, meant};
use crate::show::{Cell, Column, Output, Screen, age, document, facts, plain, table};
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

/// A Rollout of an application, and the app proxy that knows it.
struct FoundRollout {
    proxy: Proxy,
    app: AppName,
    node: Node,
}

impl Rollout {
    fn is(&self, phase: &str) -> bool {
        self.phase.as_deref() == Some(phase)
    }

    /// How going back to a revision, or to the one before, would change the images that it runs: a line each.
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

    /// How going on to a step, at most the last one, would change the step that it is at.
    fn steps(&self, to: i64) -> String {
        let (at, steps) = (self.current_step_index.unwrap_or_default(), self.steps);
        match steps {
            0 => "- not promoted\n+ promoted\n".to_owned(),
            _ => format!("- step {} of {steps}\n+ step {} of {steps}\n", at.min(steps), to.min(steps)),
        }
    }

    /// How going on to the next step would change it.
    fn next(&self) -> String {
        self.steps(self.current_step_index.unwrap_or_default().saturating_add(1))
    }

    /// How the end of its pause would change it, if it is paused.
    fn goes_on(&self) -> String {
        if self.paused { self.next() } else { "it is not paused: nothing could be done\n".to_owned() }
    }

    /// How far it is, as a sentence: its phase, its step, and the replicas that are updated.
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

impl FoundRollout {
    /// The Rollout that is named, or the only one of its application.
    async fn find(
        args: &RolloutArgs,
        way: &AppProxyArgs,
        environment: &Environment,
    ) -> Result<Self, RemoteError> {
        let AppConnection { proxy, name: app, .. } =
            AppConnection::find(&args.named, way, environment).await?;
        let is_rollout = |one: &Node| one.kind == "Rollout" && one.group.as_deref() == Some("argoproj.io");
        let mut all = proxy.tree(&app).await?;
        all.retain(is_rollout);
        let node = match &args.rollout {
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

    /// The Rollout as it is now, with [`FIELDS`] and these besides.
    async fn read(&self, more: &str) -> Result<Value, RemoteError> {
        let query = format!(
            "query Rollout($application: ApplicationId!, $rollout: ObjectId!) {{ rollout(application: $application, rollout: $rollout) {{ {FIELDS} {more} }} }}"
        );
        self.proxy.get("read a Rollout", &query, self.variables(), "rollout").await
    }

    /// Changes it, says so, and waits until that has taken effect if that is asked for; or says only what would be changed.
    async fn change(
        &self,
        change: &RolloutChange,
        args: &RolloutChangeArgs,
        screen: &Screen,
    ) -> Result<(), RemoteError> {
        let title = format!("{} of {}", self.node.title(), self.app);
        let mut variables = self.variables();
        if let (Some(variables), Value::Object(more)) = (variables.as_object_mut(), &change.more) {
            variables.extend(more.clone());
        }
        let before: Option<Rollout> = match args.change.waiting.wait {
            true => Some(read(self.read("").await?)?),
            false => None,
        };
        let act = Act {
            act: change.act,
            does: format!("{} {title}", change.does),
            done: format!("{title} {}", change.done),
            destroys: change.destroys,
            query: change.query,
            variables,
        };
        let carried = act.carry_out(&self.proxy, &args.change.careful, screen).await?;
        if carried.is_none() {
            return screen.say(&(change.plan)(&read(self.read("").await?)?));
        }
        let (Some(_), Some(before)) = (carried, before) else { return Ok(()) };
        let look = async || {
            let now = match self.read(change.fields).await {
                Err(RemoteError::Refused { said, .. }) if said.contains("Unknown field") => {
                    let said = "it is asked for, and this runtime is of a version that does not tell when it is through";
                    return Ok(Progress::Failed(said.to_owned()));
                }
                now => read::<Rollout>(now?)?,
            };
            Ok(match (change.has_taken_effect)(&before, &now) {
                true => Progress::Done(format!("{title}: {}", now.standing())),
                false => Progress::Pending(now.standing()),
            })
        };
        wait(&args.change.waiting, screen, look).await
    }
}

pub(crate) async fn run(
    command: &RolloutCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let (args, change) = match command {
        RolloutCommand::Get { meant, watch, shown: given, way } => {
            let found = FoundRollout::find(meant, way, environment).await?;
            let show = |rows: &[Value], _| match rows {
                [one] => shown(&found, one, given.output, screen),
                _ => Ok(String::new()),
            };
            if *watch {
                let id = |one: &Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let watched = Watched { screen, output: given.output, id, show: &show };
                return watched.run(async || Ok(vec![found.read("").await?].into())).await;
            }
            return screen.say(&show(&[found.read("").await?], true)?);
        }
        RolloutCommand::Promote { done, full } => (done, RolloutChange::promote(*full)),
        RolloutCommand::Rollback { done, to } => (done, RolloutChange::rollback(*to)),
        RolloutCommand::Pause(done) => (done, RolloutChange::pause()),
        RolloutCommand::Resume(done) => (done, RolloutChange::resume()),
        RolloutCommand::Abort(done) => (done, RolloutChange::abort()),
        RolloutCommand::Retry(done) => (done, RolloutChange::retry()),
        RolloutCommand::Restart(done) => (done, RolloutChange::restart()),
        RolloutCommand::Skip(done) => (done, RolloutChange::skip()),
    };
    let found = FoundRollout::find(&args.meant, &args.change.way, environment).await?;
    found.change(&change, args, screen).await
}

/// A Rollout, and its revisions, as they are shown.
fn shown(of: &FoundRollout, found: &Value, output: Output, screen: &Screen) -> Result<String, RemoteError> {
    if matches!(output, Output::Json | Output::Yaml) {
        return document(found, output);
    }
    if output == Output::Name {
        return Ok(plain(&of.node.name) + "\n");
    }
    let (one, now): (Rollout, _) = (read(found.clone())?, Timestamp::now());
    let step = one.current_step_index.filter(|_| one.steps > 0);
    let state = match (one.aborted, one.paused) {
        (true, _) => "aborted",
        (false, true) => "paused",
        _ => "",
    };
    let phase = match one.phase.clone().unwrap_or_default() {
        phase if state.is_empty() || phase.eq_ignore_ascii_case(state) => phase,
        phase => format!("{phase}, {state}"),
    };
    let mut text = facts(
        &[
            ("Name", of.node.name.clone()),
            ("Namespace", of.node.namespace.clone().unwrap_or_default()),
            ("Application", of.app.to_string()),
            ("Phase", phase),
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
        text += &format!("\n{}", revisions(&one.revisions, now, output, screen));
    }
    Ok(text)
}

fn revisions(all: &[Revision], now: Timestamp, output: Output, screen: &Screen) -> String {
    let row = |one: &Revision| -> Vec<Cell> {
        vec![
            one.revision.to_string().into(),
            number(one.replicas).into(),
            age(one.created_at.as_deref(), now).into(),
            one.images.join(" ").into(),
            (&*one.replica_set).into(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table(REVISIONS, &rows, output == Output::Wide, true, screen)
}

fn number(of: Option<i64>) -> String {
    of.map(|number| number.to_string()).unwrap_or_default()
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
