//! `gitops-runtime app sync`, `rollback` and `terminate`: operations of an application, and how they end.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::AppConnection;
use super::diff::unified;
use super::find::AppName;
use super::history::history_of;
use crate::act::{Act, Progress, wait};
use crate::arguments::act::{ChangeArgs, WaitArgs};
use crate::arguments::app::{Rollback, Sync};
use crate::error::RemoteError;
use crate::platform::Platform;
use crate::proxy::Proxy;
use crate::resource::{Node, meant, title_in};
use crate::show::{Screen, plain, word};

/// An operation that the platform knows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    started_at: String,
    phase: String,
    ended: bool,
}

/// What is read of an application while an operation of it is waited for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    deployments: Vec<Operation>,
    health_status: Option<String>,
    health_message: Option<String>,
    sync_status: Option<String>,
    operation_message: Option<String>,
}

impl Standing {
    async fn of(platform: &Platform, name: &AppName) -> Result<Self, RemoteError> {
        let query = "query Standing($runtime: String!, $namespace: String!, $name: String!) { application(runtime: $runtime, namespace: $namespace, name: $name) { deployments { startedAt phase ended } healthStatus healthMessage syncStatus operationMessage } }";
        platform.get("read an application", query, name.variables(), "application").await
    }

    /// The operation that was the first to start after that moment, and whether it is the newest. Of several that did the others
    /// were begun later, by somebody else.
    fn first_after(&self, before: Option<Timestamp>) -> Option<(&Operation, bool)> {
        let all = self.deployments.iter().enumerate().rev();
        let mut later = all.filter(|(_, one)| parse_time(&one.started_at) > before);
        later.next().map(|(place, one)| (one, place == 0))
    }

    /// How far the first operation is that started after `before`, and the application with it.
    fn look(&self, name: &AppName, before: Option<Timestamp>) -> Progress {
        let state = |state: &Option<String>| word(state.as_deref().unwrap_or("UNKNOWN"));
        let (sync, health) = (state(&self.sync_status), state(&self.health_status));
        let Some((operation, is_newest)) = self.first_after(before) else {
            return Progress::Pending("the operation has not been reported yet".to_owned());
        };
        let said = self.operation_message.as_deref().filter(|_| is_newest);
        let said = said.and_then(|said| said.lines().next()).unwrap_or_default();
        if !operation.ended {
            return Progress::Pending(format!(
                "operation {}, sync {sync}, health {health}",
                plain(&operation.phase)
            ));
        }
        if operation.phase != "Succeeded" {
            let why = if said.is_empty() { String::new() } else { format!(": {}", plain(said)) };
            return Progress::Failed(format!(
                "the operation of {name} ended as {}{why}",
                plain(&operation.phase)
            ));
        }
        match self.health_status.as_deref() {
            Some("HEALTHY") => Progress::Done(format!("{name} is {sync} and {health}")),
            Some("DEGRADED" | "MISSING" | "SUSPENDED") => {
                let why = self.health_message.as_deref().unwrap_or_default();
                let why = if why.is_empty() { String::new() } else { format!(": {}", plain(why)) };
                Progress::Pending(format!("operation Succeeded, sync {sync}, health {health}{why}"))
            }
            _ => Progress::Pending(format!("operation Succeeded, sync {sync}, health {health}")),
        }
    }

    /// How far the end of the operation is that started at `started_at`, or of the newest where the runtime could not say that.
    fn look_at_end(&self, name: &AppName, started_at: Option<Timestamp>) -> Progress {
        let mut all = self.deployments.iter();
        let operation = match started_at {
            Some(_) => all.find(|one| parse_time(&one.started_at) == started_at),
            None => all.next(),
        };
        match operation {
            Some(operation) if !operation.ended => {
                Progress::Pending(format!("operation {}", plain(&operation.phase)))
            }
            Some(operation) => {
                Progress::Done(format!("the operation of {name} ended as {}", plain(&operation.phase)))
            }
            None if started_at.is_some() => {
                Progress::Pending("the operation has not been reported yet".to_owned())
            }
            None => Progress::Done(format!("no operation of {name} is under way")),
        }
    }
}

fn parse_time(at: &str) -> Option<Timestamp> {
    at.parse().ok()
}

/// When the newest operation that was reported started.
async fn newest_start(platform: &Platform, name: &AppName) -> Result<Option<Timestamp>, RemoteError> {
    Ok(Standing::of(platform, name)
        .await?
        .deployments
        .first()
        .and_then(|newest| parse_time(&newest.started_at)))
}

/// Waits for the operation that was begun, which is the first after the one before it: as the runtime knows that, or, of an
/// application that was made anew, what was reported of it.
async fn wait_for_operation(
    platform: &Platform,
    name: &AppName,
    (reported, begun): (Option<Timestamp>, Option<&Value>),
    waiting: &WaitArgs,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let previous = begun.and_then(|begun| begun["previousStartedAt"].as_str());
    let before = reported.max(previous.and_then(parse_time));
    let look = async || Ok(Standing::of(platform, name).await?.look(name, before));
    wait(waiting, screen, look).await
}

/// The fields that are asked for when an operation is begun. An older runtime does not know the start of the operation before.
fn operation_fields(waiting: &WaitArgs) -> &'static str {
    if waiting.wait { "{ metadata { name } previousStartedAt }" } else { "{ metadata { name } }" }
}

pub(super) async fn sync(
    connection: &AppConnection,
    sync: &Sync,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { platform, proxy, name } = connection;
    let ChangeArgs { careful, waiting, .. } = &sync.change;
    let resources = named_resources(proxy, name, &sync.resources).await?;
    let mut options = json!({"prune": sync.prune});
    if let Some(revision) = &sync.revision {
        options["revision"] = json!(revision);
    }
    if !resources.is_empty() {
        let one = |one: &Node| json!({"group": one.group, "kind": one.kind, "namespace": one.namespace, "name": one.name});
        options["resources"] = resources.iter().map(one).collect();
    }
    if sync.force || sync.apply_only {
        let way = if sync.apply_only { "apply" } else { "hook" };
        options["strategy"] = json!({way: {"force": sync.force}});
    }
    if !sync.options.is_empty() {
        options["syncOptions"] = json!({"items": sync.options});
    }
    if let Some(limit) = sync.retry {
        options["retryStrategy"] = json!({"limit": limit});
    }
    let to = sync.revision.as_ref().map(|revision| format!(" to {revision}")).unwrap_or_default();
    let of = match resources.len() {
        0 => String::new(),
        _ => format!(", of it {}", resources.iter().map(Node::title).collect::<Vec<_>>().join(", ")),
    };
    let pruned = if sync.prune { ", and delete what Git does not have" } else { "" };
    let query = format!(
        "mutation Sync($application: ApplicationId!, $options: SyncOptions) {{ syncApplication(application: $application, options: $options) {} }}",
        operation_fields(waiting)
    );
    let act = Act {
        act: "sync an application",
        does: format!("sync {name}{to}{of}{pruned}"),
        done: format!("{name} is being synced{to}"),
        destroys: sync.prune || sync.force,
        query: &query,
        variables: json!({"application": name.variables(), "options": options}),
    };
    let reported = if waiting.wait { newest_start(platform, name).await? } else { None };
    match act.carry_out(proxy, careful, screen).await? {
        None => {
            let revisions: Vec<&str> = sync.revision.as_deref().into_iter().collect();
            let wanted = DiffScope { revisions: &revisions, deletes: sync.prune };
            show_plan((proxy, name), wanted, &resources, screen).await
        }
        Some(done) if waiting.wait => {
            let begun = (reported, done.get("syncApplication"));
            wait_for_operation(platform, name, begun, waiting, screen).await
        }
        Some(_) => Ok(()),
    }
}

/// The resources that Git or the cluster has of an application.
pub(super) async fn managed_resources(proxy: &Proxy, name: &AppName) -> Result<Vec<Node>, RemoteError> {
    let query = "query ManagedResources($application: ApplicationId!) { managedResources(application: $application) { group kind namespace name } }";
    let variables = json!({"application": name.variables()});
    proxy.get("read what belongs to an application", query, variables, "managedResources").await
}

/// The managed resources that are named.
async fn named_resources(proxy: &Proxy, name: &AppName, wanted: &[String]) -> Result<Vec<Node>, RemoteError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all = managed_resources(proxy, name).await?;
    wanted.iter().map(|text| meant(all.clone(), name, text)).collect()
}

/// A resource that is not as Git says.
#[derive(Debug, Deserialize)]
struct Difference {
    group: Option<String>,
    kind: String,
    namespace: Option<String>,
    name: String,
    live: Option<String>,
    target: Option<String>,
}

/// Which sync the live state is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiffScope<'a> {
    /// To which revisions, one for each source; none: those that the application follows.
    pub(super) revisions: &'a [&'a str],
    /// Whether it deletes what Git does not have.
    pub(super) deletes: bool,
}

/// How many differences were shown.
#[derive(Debug, Default)]
pub(super) struct DiffCounts {
    /// Resources that the sync would change.
    pub(super) differing: usize,
    /// Resources that Git does not have, and that the sync would leave.
    kept: usize,
}

/// Prints what a sync would change of the resources that `is_wanted` takes by group, kind, namespace and name.
pub(super) async fn show_differences(
    (proxy, name): (&Proxy, &AppName),
    wanted: DiffScope<'_>,
    is_wanted: impl Fn(&str, &str, &str, &str) -> bool,
    screen: &Screen,
) -> Result<DiffCounts, RemoteError> {
    let act = "compare an application";
    let fields = "{ group kind namespace name live target }";
    let mut variables = json!({"application": name.variables()});
    // An older runtime does not know the arguments `revision` and `revisions`.
    let query = match wanted.revisions {
        [] => format!(
            "query Diff($application: ApplicationId!) {{ applicationDiff(application: $application) {fields} }}"
        ),
        [revision] => {
            variables["revision"] = json!(revision);
            format!(
                "query Diff($application: ApplicationId!, $revision: String) {{ applicationDiff(application: $application, revision: $revision) {fields} }}"
            )
        }
        several => {
            variables["revisions"] = json!(several);
            format!(
                "query Diff($application: ApplicationId!, $revisions: [String!]) {{ applicationDiff(application: $application, revisions: $revisions) {fields} }}"
            )
        }
    };
    let all: Vec<Difference> = proxy.get(act, &query, variables, "applicationDiff").await?;
    let mut counts = DiffCounts::default();
    for one in &all {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (group, namespace) = (text(&one.group), text(&one.namespace));
        if !is_wanted(&group, &one.kind, &namespace, &one.name) {
            continue;
        }
        if one.target.is_none() && !wanted.deletes {
            counts.kept += 1;
            continue;
        }
        let title = title_in(&namespace, &one.kind, &one.name);
        if let Some(text) = unified(one.live.as_deref(), one.target.as_deref(), &title, screen.colour) {
            counts.differing += 1;
            screen.say(&text)?;
        }
    }
    Ok(counts)
}

async fn show_plan(
    of: (&Proxy, &AppName),
    wanted: DiffScope<'_>,
    resources: &[Node],
    screen: &Screen,
) -> Result<(), RemoteError> {
    let is_wanted = |group: &str, kind: &str, namespace: &str, own: &str| {
        let same = |one: &Node| {
            let of = |text: &Option<String>, own: &str| text.as_deref().unwrap_or_default() == own;
            of(&one.group, group) && one.kind == kind && of(&one.namespace, namespace) && one.name == own
        };
        resources.is_empty() || resources.iter().any(same)
    };
    let shown = show_differences(of, wanted, is_wanted, screen).await?;
    match shown.differing {
        0 => screen.note("nothing would be changed"),
        1 => screen.note("1 resource would be changed"),
        number => screen.note(&format!("{number} resources would be changed")),
    }
    match shown.kept {
        0 => {}
        1 => screen.note("1 resource that Git does not have would stay: --prune deletes it"),
        number => {
            screen
                .note(&format!("{number} resources that Git does not have would stay: --prune deletes them"));
        }
    }
    Ok(())
}

pub(super) async fn rollback(
    connection: &AppConnection,
    rollback: &Rollback,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { platform, proxy, name } = connection;
    let ChangeArgs { careful, waiting, .. } = &rollback.change;
    let history = history_of(proxy, name).await?;
    let to = match rollback.id {
        Some(id) => history.iter().find(|one| one.id == id).ok_or_else(|| {
            RemoteError::Missing(format!(
                "{name} has no deployment {id}: `gitops-runtime app history {name} --live` shows those that it has"
            ))
        })?,
        None => history.get(1).ok_or_else(|| {
            RemoteError::Missing(format!("{name} was deployed once at most: there is nothing to go back to"))
        })?,
    };
    let at = to.short_revisions();
    let query = format!(
        "mutation Rollback($application: ApplicationId!, $options: RollbackOptions!) {{ rollbackApplication(application: $application, options: $options) {} }}",
        operation_fields(waiting)
    );
    let act = Act {
        act: "roll an application back",
        does: format!("roll {name} back to deployment {}, of {at}", to.id),
        done: format!("{name} is being rolled back to deployment {}, of {at}", to.id),
        destroys: true,
        query: &query,
        variables: json!({"application": name.variables(), "options": {"id": to.id, "prune": rollback.prune}}),
    };
    let reported = if waiting.wait { newest_start(platform, name).await? } else { None };
    let done = act.carry_out(proxy, careful, screen).await?;
    match (done, history.first()) {
        (Some(done), _) if waiting.wait => {
            let begun = (reported, done.get("rollbackApplication"));
            wait_for_operation(platform, name, begun, waiting, screen).await
        }
        (None, Some(now)) => {
            screen.tell(&format!("instead of deployment {}, of {}", now.id, now.short_revisions()))?;
            let revisions = to.all_revisions();
            if revisions.is_empty() {
                screen.note("the runtime does not remember of which revision that was: what would be changed is not known");
                return Ok(());
            }
            let wanted = DiffScope { revisions: &revisions, deletes: rollback.prune };
            show_plan((proxy, name), wanted, &[], screen).await
        }
        _ => Ok(()),
    }
}

pub(super) async fn terminate(
    connection: &AppConnection,
    ChangeArgs { careful, waiting, .. }: &ChangeArgs,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { platform, proxy, name } = connection;
    // An older runtime does not know the field `startedAt`.
    let told = if waiting.wait { "{ startedAt }" } else { "{ terminated }" };
    let query = format!(
        "mutation Terminate($application: ApplicationId!) {{ terminateOperation(application: $application) {told} }}"
    );
    let act = Act {
        act: "end an operation",
        does: format!("end the operation of {name} that is under way"),
        done: format!("the operation of {name} is being ended"),
        destroys: false,
        query: &query,
        variables: json!({"application": name.variables()}),
    };
    let done = act.carry_out(proxy, careful, screen).await?;
    let Some(done) = done.filter(|_| waiting.wait) else { return Ok(()) };
    let ended = done.get("terminateOperation").and_then(|ended| ended["startedAt"].as_str());
    let started_at = ended.and_then(parse_time);
    let look = async || Ok(Standing::of(platform, name).await?.look_at_end(name, started_at));
    wait(waiting, screen, look).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;
    use crate::arguments::{AppProxyArgs, PlatformArgs};
    use crate::contexts::Contexts;
    use crate::contexts::tests::{environment, kept};
    use crate::platform::ANSWER;
    use crate::server::{Server, ok};

    #[test]
    fn an_operation_is_waited_for_until_it_succeeded_and_what_it_made_is_healthy() {
        let name = AppName { runtime: "prod".into(), namespace: "argocd".into(), name: "shop".into() };
        let of = |deployments: Value, health: &str| {
            let standing: Standing = serde_json::from_value(json!({
                "deployments": deployments, "healthStatus": health, "healthMessage": null, "syncStatus": "SYNCED",
                "operationMessage": "one or more objects failed",
            }))
            .unwrap();
            match standing.look(&name, parse_time("2026-11-25T10:00:00Z")) {
                Progress::Done(text) => format!("done: {text}"),
                Progress::Failed(text) => format!("failed: {text}"),
                Progress::Pending(text) => format!("not: {text}"),
            }
        };
        let one =
            |at: &str, phase: &str, ended: bool| json!([{"startedAt": at, "phase": phase, "ended": ended}]);
        let (old, new) = ("2026-11-25T10:00:00Z", "2026-11-25T10:00:01Z");
        let not_yet = "not: the operation has not been reported yet";
        assert_eq!(of(one(old, "Succeeded", true), "HEALTHY"), not_yet, "the one before is not meant");
        assert_eq!(of(json!([]), "HEALTHY"), not_yet);
        let running = "not: operation Running, sync Synced, health Healthy";
        assert_eq!(of(one(new, "Running", false), "HEALTHY"), running);
        let progressing = "not: operation Succeeded, sync Synced, health Progressing";
        assert_eq!(of(one(new, "Succeeded", true), "PROGRESSING"), progressing);
        assert_eq!(
            of(one(new, "Succeeded", true), "HEALTHY"),
            "done: prod/argocd/shop is Synced and Healthy"
        );
        let failed = "failed: the operation of prod/argocd/shop ended as Failed: one or more objects failed";
        assert_eq!(of(one(new, "Failed", true), "HEALTHY"), failed);
    }

    /// How a sync is waited for, after which these operations are reported beside one that was before: the runtime knows of
    /// another, which started five seconds after that and has ended.
    async fn synced(reported: Value) -> Result<(), String> {
        let begun = json!({"metadata": {"name": "shop"}, "previousStartedAt": "2026-11-25T10:00:05Z"});
        waited_for(json!({"syncApplication": begun}), reported).await
    }

    /// How the end of an operation that started at that second is waited for, after which these operations are reported.
    async fn terminated(second: Option<&str>, reported: Value) -> Result<(), String> {
        let started_at = second.map(|second| format!("2026-11-25T10:00:{second}Z"));
        waited_for(json!({"terminateOperation": {"startedAt": started_at}}), reported).await
    }

    /// How what is answered so is waited for, after which these operations are reported beside one that was before.
    async fn waited_for(answer: Value, reported: Value) -> Result<(), String> {
        let operation = |at: &str, phase: &str| json!({"startedAt": format!("2026-11-25T10:00:{at}Z"), "phase": phase, "ended": phase != "Running"});
        let all: Vec<Value> = reported
            .as_array()
            .unwrap()
            .iter()
            .map(|one| operation(one[0].as_str().unwrap(), one[1].as_str().unwrap()))
            .collect();
        let is_sync = answer.get("syncApplication").is_some();
        let is_begun = AtomicBool::new(false);
        let server = Server::start(move |_, body| {
            let data = if body["query"].as_str().unwrap().starts_with("mutation") {
                is_begun.store(true, Ordering::SeqCst);
                answer.clone()
            } else {
                let mut deployments = if is_begun.load(Ordering::SeqCst) { all.clone() } else { Vec::new() };
                deployments.push(operation("00", "Succeeded"));
                json!({"application": {
                    "deployments": deployments, "healthStatus": "HEALTHY", "healthMessage": null, "syncStatus": "SYNCED",
                    "operationMessage": "of the newest",
                }})
            };
            ok(&json!({"data": data}))
        });
        let (server, folder) = (server.await, tempfile::TempDir::new().unwrap());
        let environment = environment(folder.path());
        Contexts::change(&environment, |all| all.put(kept("prod"))).unwrap();
        let place = PlatformArgs { context: Some("prod".to_owned()) };
        let way = AppProxyArgs { place, app_proxy: Some(server.url.clone()), app_proxy_ca_file: None };
        let proxy = Proxy::find(&way, "prod", &environment).await.unwrap();
        let platform = Platform::at(&server.url, "key".into(), None, false, ANSWER).await.unwrap();
        let name = AppName { runtime: "prod".into(), namespace: "argocd".into(), name: "shop".into() };
        let given = Sync::augment_args(Command::new("sync")).get_matches_from([
            "sync",
            "shop",
            "--wait",
            "--timeout",
            "0s",
        ]);
        let given = Sync::from_arg_matches(&given).unwrap();
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let connection = AppConnection { platform, proxy, name };
        let done = match is_sync {
            true => sync(&connection, &given, &screen).await,
            false => terminate(&connection, &given.change, &screen).await,
        };
        done.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_end_of_the_operation_that_was_ended_is_waited_for_and_not_that_of_another() {
        let not_yet = |how_far| Err(format!("it has not taken effect within 0 s: {how_far}"));
        let unknown = "the operation has not been reported yet";
        assert_eq!(terminated(Some("05"), json!([])).await, not_yet(unknown), "the one before is not meant");
        assert_eq!(terminated(Some("05"), json!([["05", "Running"]])).await, not_yet("operation Running"));
        assert_eq!(terminated(Some("05"), json!([["05", "Failed"]])).await, Ok(()));
        let later = json!([["09", "Running"], ["05", "Failed"]]);
        assert_eq!(terminated(Some("05"), later).await, Ok(()), "another began meanwhile");
        let sooner = json!([["09", "Failed"], ["05", "Running"]]);
        assert_eq!(terminated(Some("05"), sooner).await, not_yet("operation Running"));
        assert_eq!(terminated(None, json!([["05", "Running"]])).await, not_yet("operation Running"));
    }

    #[tokio::test]
    async fn an_operation_before_the_one_that_was_begun_is_not_taken_for_it_however_late_it_is_reported() {
        let not_yet = "it has not taken effect within 0 s: the operation has not been reported yet";
        assert_eq!(synced(json!([])).await, Err(not_yet.to_owned()));
        assert_eq!(synced(json!([["05", "Succeeded"]])).await, Err(not_yet.to_owned()), "it ended before");
        assert_eq!(synced(json!([["09", "Succeeded"], ["05", "Failed"]])).await, Ok(()));
    }

    #[tokio::test]
    async fn an_operation_that_somebody_else_began_afterwards_is_not_taken_for_the_one_that_was_begun() {
        let failed = "the operation of prod/argocd/shop ended as Failed";
        let of_the_newest = format!("{failed}: of the newest");
        assert_eq!(synced(json!([["09", "Failed"], ["05", "Succeeded"]])).await, Err(of_the_newest));
        let later = json!([["12", "Succeeded"], ["09", "Failed"], ["05", "Succeeded"]]);
        assert_eq!(synced(later).await, Err(failed.to_owned()));
    }
}
