//! `gitops-runtime app refresh`, `restart`, `delete-resource` and `action`: what is done to an application's resources.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AppConnection;
use super::find::AppName;
use crate::act::{Act, Progress, wait};
use crate::arguments::act::{ChangeArgs, ConfirmArgs};
use crate::arguments::app::{Action, DeleteResource};
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::resource::{Node, meant};
use crate::show::{Cell, Column, Output, Screen, document, plain, table};

const ACTIONS: &[Column] = &[Column::new("ACTION"), Column::new("AVAILABLE"), Column::new("CALLED").long()];

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceAction {
    name: String,
    display_name: Option<String>,
    disabled: bool,
}

pub(super) async fn refresh(
    connection: &AppConnection,
    hard: bool,
    careful: &ConfirmArgs,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let how = if hard { ", manifests made anew" } else { "" };
    let act = Act {
        act: "refresh an application",
        does: format!("compare {name} with Git anew{how}"),
        done: format!("{name} was compared with Git anew{how}"),
        destroys: false,
        query: "mutation Refresh($application: ApplicationId!, $type: RefreshType!) { refreshApplication(application: $application, type: $type) { metadata { name } } }",
        variables: json!({"application": name.variables(), "type": if hard { "hard" } else { "normal" }}),
    };
    act.carry_out(proxy, careful, screen).await.map(drop)
}

pub(super) async fn restart(
    connection: &AppConnection,
    resource: &str,
    ChangeArgs { careful, waiting, .. }: &ChangeArgs,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let node = proxy.resource(name, resource).await?;
    let title = node.title();
    let act = Act {
        act: "restart a resource",
        does: format!("restart {title} of {name}"),
        done: format!("{title} of {name} is being restarted"),
        destroys: false,
        query: "mutation Restart($application: ApplicationId!, $resource: ResourceId!) { restartResource(application: $application, resource: $resource) }",
        variables: json!({"application": name.variables(), "resource": node.variables()}),
    };
    if act.carry_out(proxy, careful, screen).await?.is_none() || !waiting.wait {
        return Ok(());
    }
    let look = async || {
        let all = proxy.tree(name).await?;
        let Some(now) = all.iter().find(|one| one.uid == node.uid) else {
            return Ok(Progress::Failed(format!("{title} of {name} is gone")));
        };
        let changed = now.resource_version != node.resource_version;
        Ok(match now.state() {
            "Healthy" if changed => Progress::Done(format!("{title} of {name} is restarted and Healthy")),
            state => Progress::Pending(format!("{title} is {}", plain(state))),
        })
    };
    wait(waiting, screen, look).await
}

pub(super) async fn delete(
    connection: &AppConnection,
    given: &DeleteResource,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let all = proxy.tree(name).await?;
    let node = meant(all.clone(), name, &given.resource)?;
    let title = node.title();
    let owned = if given.orphan { ", and leave what it owns" } else { ", and what it owns" };
    let act = Act {
        act: "delete a resource",
        does: format!("delete {title} of {name}{owned}"),
        done: format!("{title} of {name} is being deleted"),
        destroys: true,
        query: "mutation Delete($application: ApplicationId!, $resource: ResourceId!, $options: DeleteResourceOptions) { deleteResource(application: $application, resource: $resource, options: $options) }",
        variables: json!({
            "application": name.variables(), "resource": node.variables(),
            "options": {"force": given.force, "orphan": given.orphan},
        }),
    };
    let is_done = act.carry_out(proxy, &given.change.careful, screen).await?.is_some();
    if !is_done && !given.orphan {
        let line = |one: &Node| format!("  {}\n", one.whole());
        screen.say(&node.owned(&all).into_iter().map(line).collect::<String>())?;
    }
    if !is_done || !given.change.waiting.wait {
        return Ok(());
    }
    let look = async || {
        let all = proxy.tree(name).await?;
        Ok(match all.iter().any(|one| one.uid == node.uid && one.uid.is_some()) {
            true => Progress::Pending(format!("{title} is still there")),
            false => Progress::Done(format!("{title} of {name} is gone")),
        })
    };
    wait(&given.change.waiting, screen, look).await
}

pub(super) async fn action(
    connection: &AppConnection,
    given: &Action,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let node = proxy.resource(name, &given.resource).await?;
    let offered = offered(proxy, name, &node).await?;
    let title = node.title();
    let Some(action) = &given.action else {
        match given.shown.output {
            output @ (Output::Json | Output::Yaml) => return screen.say(&document(&offered, output)?),
            Output::Name => {
                let line = |one: &ResourceAction| plain(&one.name) + "\n";
                return screen.say(&offered.iter().map(line).collect::<String>());
            }
            Output::Table | Output::Wide => {}
        }
        if offered.is_empty() {
            screen.note(&format!("nothing can be done to {title}"));
            return Ok(());
        }
        let row = |one: &ResourceAction| -> Vec<Cell> {
            let called = one.display_name.clone().unwrap_or_default();
            vec![(&*one.name).into(), if one.disabled { "no" } else { "yes" }.into(), called.into()]
        };
        let rows: Vec<_> = offered.iter().map(row).collect();
        return screen.say(&table(ACTIONS, &rows, false, true, screen));
    };
    let names = || offered.iter().map(|one| plain(&one.name)).collect::<Vec<_>>().join(", ");
    match offered.iter().find(|one| one.name == *action) {
        None if offered.is_empty() => {
            return Err(RemoteError::Missing(format!("nothing can be done to {title} of {name}")));
        }
        None => {
            let said = format!("{title} of {name} has no action '{action}': it has {}", names());
            return Err(RemoteError::Missing(said));
        }
        Some(one) if one.disabled => {
            let said = format!("{title} of {name} is in no state for the action '{action}' now");
            return Err(RemoteError::Missing(said));
        }
        Some(_) => {}
    }
    let act = Act {
        act: "run an action",
        does: format!("do {action} to {title} of {name}"),
        done: format!("{action} was done to {title} of {name}"),
        destroys: false,
        query: "mutation Action($application: ApplicationId!, $resource: ResourceId!, $action: String!) { runResourceAction(application: $application, resource: $resource, action: $action) }",
        variables: json!({"application": name.variables(), "resource": node.variables(), "action": action}),
    };
    act.carry_out(proxy, &given.careful, screen).await.map(drop)
}

/// The names of what can be done to a resource now.
pub(crate) async fn actions(proxy: &Proxy, name: &AppName, node: &Node) -> Result<Vec<String>, RemoteError> {
    let all = offered(proxy, name, node).await?;
    Ok(all.into_iter().filter(|one| !one.disabled).map(|one| one.name).collect())
}

async fn offered(proxy: &Proxy, name: &AppName, node: &Node) -> Result<Vec<ResourceAction>, RemoteError> {
    let query = "query Actions($application: ApplicationId!, $resource: ResourceId!) { resourceActions(application: $application, resource: $resource) { name displayName disabled } }";
    let variables: Value = json!({"application": name.variables(), "resource": node.variables()});
    proxy.get("read what can be done to a resource", query, variables, "resourceActions").await
}
