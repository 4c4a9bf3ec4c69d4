//! Plays the steps of a scenario on a cluster.
//!
//! takes: a scenario - gives: a cluster in which all of it has happened
//! calls: the API server, Argo CD and Git as administrator; the platform to take it away - fails: with
//! the step and what was waited for in vain, or what was refused

mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::stream::{self, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::argocd::{ArgoCd, Client, SyncRequest};
use super::git::{BRANCH, Commit as GitCommit, Git, Repository};
use super::objects::{Objects, Reference};
use super::platform::Platform;
use super::scenario::{
    Commit, Create, Delete, Ends, Lifecycle, Link, ObjectName, Observe, Patch, Scenario, Step, Sync, Wait,
};
use loadtest_sim::platform::PlatformSim;
use loadtest_sim::{PATIENCE, until};
use state::State;

/// How often something is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(150);
/// How long a commit that was not compared with may have been overlooked before Argo CD is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// The annotation that asks for a comparison; Argo CD takes it away.
pub(super) const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Applications that one step is carried out for at once.
const AT_ONCE: usize = 8;
/// The finalizer by which an application takes its resources with it.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// Where scenarios are played.
pub struct Player<'a> {
    /// The API server.
    pub objects: Objects,
    /// The same, for what [`Objects`] has not.
    pub kubernetes: kube::Client,
    /// Argo CD.
    pub argocd: Client,
    /// The Git server.
    pub git: &'a Git,
    /// The platform that is taken away.
    pub platform: &'a PlatformSim,
    /// The real platform behind it, if there is one.
    pub behind: Option<&'a Platform>,
}

impl std::fmt::Debug for Player<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("git", &self.git).finish_non_exhaustive()
    }
}

/// A scenario that is being played.
struct Play<'a> {
    on: &'a Player<'a>,
    scenario: Scenario,
    repository: Repository,
}

impl Player<'_> {
    /// Plays a scenario to its end; `check` judges what was reported of the applications that it is given, `reporter`
    /// stops, kills and starts the reporter.
    pub async fn play(
        &self,
        scenario: &Scenario,
        check: impl AsyncFn(&[String]) -> anyhow::Result<()>,
        reporter: impl AsyncFn(Lifecycle) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let repository = self.git.repository(&scenario.name).await?;
        let scenario = scenario.filled(repository.url())?;
        let play = Play { on: self, scenario, repository };
        for (at, step) in play.scenario.steps.iter().enumerate() {
            let place = || format!("step {}, {}", at + 1, step.name());
            let done = match step {
                Step::Check(target) => check(play.scenario.selected(target.application.as_deref())).await,
                Step::Reporter(step) => reporter(*step).await,
                step => play.step(step).await,
            };
            done.with_context(place)?;
        }
        Ok(())
    }
}

impl Play<'_> {
    async fn step(&self, step: &Step) -> anyhow::Result<()> {
        match step {
            Step::Apply(yaml) => {
                self.on.objects.apply(yaml, &self.scenario.name).await?;
                Ok(())
            }
            Step::Commit(step) => self.commit(step).await,
            Step::Observe(step) => self.observe(step).await,
            Step::Patch(step) => self.patch(step).await,
            Step::Platform(Link::Away) => match self.on.behind {
                Some(behind) => behind.away(self.on.platform).await,
                None => {
                    self.on.platform.down().await;
                    Ok(())
                }
            },
            Step::Platform(Link::Back) => match self.on.behind {
                Some(behind) => behind.back(self.on.platform).await,
                None => self.on.platform.up().await,
            },
            Step::Delete(Delete { object: Some(object), .. }) => {
                for object in self.find(object).await? {
                    self.on.objects.delete(&object).await?;
                }
                Ok(())
            }
            _ => self.each(step).await,
        }
    }

    /// A step about applications, for each of them.
    async fn each(&self, step: &Step) -> anyhow::Result<()> {
        let names = self.scenario.selected(step.application());
        let all = stream::iter(names.iter().map(Ok));
        all.try_for_each_concurrent(AT_ONCE, |name| async move {
            match step {
                Step::Create(step) => self.create(name, step).await,
                Step::Refresh(step) => self.refresh(name, step.hard).await,
                Step::Sync(step) => self.sync(name, step).await,
                Step::Rollback(step) => self.roll_back(name, step.back, step.ends, step.within).await,
                Step::Terminate(_) => self.terminate(name).await,
                Step::Wait(step) => self.wait(name, step).await,
                Step::Delete(step) => self.delete(name, step.cascade.unwrap_or_default()).await,
                _ => bail!("it is about no application"),
            }
        })
        .await
    }

    async fn create(&self, name: &str, step: &Create) -> anyhow::Result<()> {
        let object = application(&self.scenario.name, self.repository.url(), name, step);
        self.on.objects.apply_value(&object, ArgoCd::NAMESPACE).await
    }

    async fn commit(&self, step: &Commit) -> anyhow::Result<()> {
        let (author, email) = step.signature().context("read the author")?;
        let mut files: BTreeMap<String, Option<String>> = step.files.clone();
        for edit in &step.edits {
            let text = match files.get(&edit.path) {
                Some(Some(text)) => text.clone(),
                _ => self.repository.show(&edit.path).await?,
            };
            if text.matches(&edit.from).count() != 1 {
                bail!("{:?} does not stand exactly once in {}", edit.from, edit.path);
            }
            files.insert(edit.path.clone(), Some(text.replace(&edit.from, &edit.to)));
        }
        let commit = GitCommit {
            author: author.to_owned(),
            email: email.to_owned(),
            message: step.message.clone(),
            files,
        };
        self.repository.commit(&commit).await.map(drop)
    }

    /// Asks for a refresh and waits until it is done: Argo CD then takes the request away.
    async fn refresh(&self, name: &str, hard: bool) -> anyhow::Result<()> {
        self.ask(name, hard).await?;
        self.until(name, PATIENCE, "its refresh", |state| !state.is_some_and(State::is_asked_to_refresh))
            .await
    }

    async fn ask(&self, name: &str, hard: bool) -> anyhow::Result<()> {
        let kind = if hard { "hard" } else { "normal" };
        let patch = json!({"metadata": {"annotations": {REFRESH: kind}}});
        self.on.objects.patch(&reference(name), &patch, None).await.map(drop)
    }

    async fn sync(&self, name: &str, step: &Sync) -> anyhow::Result<()> {
        let request = SyncRequest {
            prune: step.prune,
            sync_options: step.options.clone(),
            resources: step.resources.clone(),
            ..SyncRequest::default()
        };
        self.on.argocd.sync(name, &request).await?;
        self.operation(name, step.ends, step.within).await
    }

    async fn roll_back(&self, name: &str, back: usize, ends: Ends, within: Duration) -> anyhow::Result<()> {
        let state = self.state(name).await?.with_context(|| format!("there is no application {name}"))?;
        let id = state.history(back).with_context(|| format!("{name} has no history that long"))?;
        self.on.argocd.rollback(name, id).await?;
        self.operation(name, ends, within).await
    }

    /// Waits for the end of an operation that was just asked for, and so stands in the object until it has ended.
    async fn operation(&self, name: &str, ends: Ends, within: Duration) -> anyhow::Result<()> {
        let over = |state: &State| match ends {
            Ends::Running => state.is_running(),
            _ => !state.is_asked_for() && state.has_ended(),
        };
        let what = format!("its operation to be {}", ends.text());
        self.until(name, within, &what, |state| state.is_some_and(over)).await?;
        let state = self.state(name).await?;
        match state {
            Some(state) if ends == Ends::Running || state.phase() == ends.text() => Ok(()),
            Some(state) => bail!("the operation of {name} was to be {}, but: {state}", ends.text()),
            None => bail!("{name} is gone"),
        }
    }

    async fn wait(&self, name: &str, step: &Wait) -> anyhow::Result<()> {
        let head = if step.head { Some(self.repository.head().await?) } else { None };
        let holds = |state: Option<&State>| match state {
            None => step.gone,
            Some(state) => !step.gone && state.is(step, head.as_deref()),
        };
        let awaited = self.until(name, step.within, "what the step says", holds);
        match &head {
            None => awaited.await,
            Some(head) => tokio::select! {
                ended = awaited => ended,
                failed = self.keep_asking(name, head) => failed,
            },
        }
    }

    /// Asks for a comparison as long as the newest one is not with this commit: Argo CD may answer a request with a
    /// comparison that it began before the commit. Ends when it cannot ask.
    async fn keep_asking(&self, name: &str, head: &str) -> anyhow::Result<()> {
        loop {
            sleep(ASK_AGAIN).await;
            let state = self.state(name).await?;
            if state.is_some_and(|state| !state.is_asked_to_refresh() && !state.is_compared_with(head)) {
                self.ask(name, false).await?;
            }
        }
    }

    async fn delete(&self, name: &str, cascade: bool) -> anyhow::Result<()> {
        let finalizers = if cascade { json!([FINALIZER]) } else { Value::Null };
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let reference = reference(name);
        self.on.objects.patch(&reference, &patch, None).await?;
        self.on.objects.delete(&reference).await.map(drop)
    }

    async fn observe(&self, step: &Observe) -> anyhow::Result<()> {
        let look = async || {
            let mut seen = Vec::new();
            for reference in self.find(&step.object).await? {
                if let Some(object) = self.on.objects.get(&reference).await? {
                    seen.push(match &step.pointer {
                        Some(pointer) => object.pointer(pointer).cloned().unwrap_or_default(),
                        None => Value::Null,
                    });
                }
            }
            Ok(seen)
        };
        let holds = |seen: &Vec<Value>| match step.gone {
            true => seen.is_empty(),
            false => !seen.is_empty() && step.is.as_ref().is_none_or(|is| seen.iter().all(|seen| seen == is)),
        };
        let seen = until(step.within, LOOK, look, holds).await?;
        if !holds(&seen) {
            let ObjectName { kind, name, .. } = &step.object;
            // What stands there may be a Secret's.
            let there = if seen.is_empty() { "is not there" } else { "is there" };
            bail!("waited {:?} for {kind} {name} in vain: it {there}", step.within);
        }
        Ok(())
    }

    async fn patch(&self, step: &Patch) -> anyhow::Result<()> {
        let patch = step.merge.as_ref().or(step.json.as_ref()).context("it says nothing to change")?;
        self.observe(&Observe {
            object: step.object.clone(),
            pointer: None,
            is: None,
            gone: false,
            within: PATIENCE,
        })
        .await?;
        let references = self.find(&step.object).await?;
        for round in 1..=step.rounds {
            let mut patch = patch.clone();
            put(&mut patch, "$ROUND", &round.to_string());
            for reference in &references {
                self.on.objects.patch(reference, &patch, step.subresource.as_deref()).await?;
            }
        }
        Ok(())
    }

    /// Ends the running operation. Argo CD gives up when the object changes meanwhile: it tries ten times, each with
    /// the object that it read at first.
    async fn terminate(&self, name: &str) -> anyhow::Result<()> {
        let is_in_its_way = |error: &anyhow::Error| format!("{error:#}").contains("Too many conflicts");
        let end = async || Ok(self.on.argocd.terminate(name).await);
        until(PATIENCE, LOOK, end, |ended| !ended.as_ref().is_err_and(is_in_its_way)).await?
    }

    /// The objects that a step names: one, or those whose names begin as it says.
    async fn find(&self, object: &ObjectName) -> anyhow::Result<Vec<Reference>> {
        let namespace = match object.namespace.as_deref() {
            None => Some(self.scenario.name.as_str()),
            Some("") => None,
            Some(namespace) => Some(namespace),
        };
        let of = |name: &str| Reference::new(&object.api_version, &object.kind, namespace, name);
        let Some(prefix) = object.name.strip_suffix('*') else { return Ok(vec![of(&object.name)]) };
        let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &object.kind));
        let client = self.on.kubernetes.clone();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let list = api.list(&ListParams::default()).await;
        let list = list.with_context(|| format!("list objects of kind {}", object.kind))?;
        let names = list.items.into_iter().filter_map(|object| object.metadata.name);
        Ok(names.filter(|name| name.starts_with(prefix)).map(|name| of(&name)).collect())
    }

    async fn state(&self, name: &str) -> anyhow::Result<Option<State>> {
        Ok(self.on.objects.get(&reference(name)).await?.map(State::new))
    }

    async fn until(
        &self,
        name: &str,
        within: Duration,
        what: &str,
        holds: impl Fn(Option<&State>) -> bool,
    ) -> anyhow::Result<()> {
        let look = async || self.state(name).await;
        let state = until(within, LOOK, look, |state| holds(state.as_ref())).await?;
        if !holds(state.as_ref()) {
            let state = state.map_or("it is not there".to_owned(), |state| state.to_string());
            bail!("waited {within:?} for {name}, {what}, in vain: {state}");
        }
        Ok(())
    }
}

fn reference(application: &str) -> Reference {
    Reference::new("argoproj.io/v1alpha1", "Application", Some(ArgoCd::NAMESPACE), application)
}

/// The Application that a step makes.
fn application(namespace: &str, repository: &str, name: &str, step: &Create) -> Value {
    let mut metadata = json!({
        "name": name, "namespace": ArgoCd::NAMESPACE, "labels": step.labels, "annotations": step.annotations,
    });
    if step.finalizer {
        metadata["finalizers"] = json!([FINALIZER]);
    }
    let mut spec = Value::Object(step.spec.clone());
    let defaults = json!({
        "project": "default",
        "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
        "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
    });
    fill(&mut spec, &defaults);
    let source = json!({"repoURL": repository, "targetRevision": BRANCH});
    if let Some(own) = spec.get_mut("source") {
        fill(own, &source);
    }
    for own in spec.get_mut("sources").and_then(Value::as_array_mut).into_iter().flatten() {
        fill(own, &source);
    }
    put(&mut spec, "$APPLICATION", name);
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec})
}

/// Adds what is missing.
fn fill(own: &mut Value, defaults: &Value) {
    let (Value::Object(own), Value::Object(defaults)) = (own, defaults) else { return };
    for (name, value) in defaults {
        fill(own.entry(name.clone()).or_insert_with(|| empty(value)), value);
        if own.get(name).is_some_and(Value::is_null) {
            own.insert(name.clone(), value.clone());
        }
    }
}

fn empty(like: &Value) -> Value {
    if like.is_object() { Value::Object(Map::new()) } else { Value::Null }
}

/// Writes a text where its placeholder stands.
fn put(value: &mut Value, placeholder: &str, text: &str) {
    match value {
        Value::String(own) => *own = own.replace(placeholder, text),
        Value::Array(values) => values.iter_mut().for_each(|value| put(value, placeholder, text)),
        Value::Object(values) => values.values_mut().for_each(|value| put(value, placeholder, text)),
        _ => {}
    }
}
