//! `gitops-runtime app diff`: how what runs differs from what should, resource by resource, as they were last reported.

use std::cell::RefCell;
use std::time::Duration;

use crossterm::style::Stylize as _;
use serde::Deserialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::AppConnection;
use super::find::AppName;
use super::resource_name::ResourceName;
use super::sync::{DiffScope, managed_resources, show_differences};
use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read};
use crate::resource::Node;
use crate::show::{Screen, lines};

/// Resources whose manifests are read.
const MOST: usize = 500;
/// A manifest of a megabyte is compared more coarsely rather than late.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedResource {
    resource: ResourceName,
    sync_status: Option<String>,
}

#[derive(Deserialize)]
struct Manifests {
    live: Option<String>,
    desired: Option<String>,
    git: Option<String>,
}

fn missing(app: &AppName, text: &str) -> RemoteError {
    RemoteError::Missing(format!(
        "{app} has no resource '{text}': `gitops-runtime app tree {app}` shows those that there are"
    ))
}

/// Prints the differences; whether there are any.
pub(super) async fn run(
    platform: &Platform,
    named: &AppNameArgs,
    wanted: &[String],
    screen: &Screen,
) -> Result<bool, RemoteError> {
    let fields = "resources { resource { apiVersion kind namespace name } syncStatus }";
    let (name, mut found) = platform.application(named, fields).await?;
    let mut all: Vec<ReportedResource> = read(found["resources"].take())?;
    for text in wanted {
        if !all.iter().any(|one| one.resource.node().is_named(text)) {
            return Err(missing(&name, text));
        }
    }
    let is_wanted = |one: &ReportedResource| match wanted.is_empty() {
        true => one.sync_status.as_deref() != Some("SYNCED"),
        false => wanted.iter().any(|text| one.resource.node().is_named(text)),
    };
    all.retain(is_wanted);
    let mut differing = 0;
    for one in all.iter().take(MOST) {
        if let Some(text) = differences(platform, &name, &one.resource, screen.colour).await? {
            differing += 1;
            screen.say(&text)?;
        }
    }
    if all.len() > MOST {
        screen.note(&format!("{} more are not shown: name them with --resource", all.len() - MOST));
    }
    said(differing, &name, "as it was last reported", screen);
    Ok(differing > 0)
}

/// The same, as the runtime compares it now.
pub(super) async fn run_live(
    connection: &AppConnection,
    wanted: &[String],
    revisions: &[String],
    screen: &Screen,
) -> Result<bool, RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let unseen: RefCell<Vec<&String>> = RefCell::new(wanted.iter().collect());
    let is_wanted = |group: &str, kind: &str, namespace: &str, own: &str| {
        let node = Node::named(group, kind, namespace, own);
        unseen.borrow_mut().retain(|text| !node.is_named(text));
        wanted.is_empty() || wanted.iter().any(|text| node.is_named(text))
    };
    let revisions: Vec<&str> = revisions.iter().map(String::as_str).collect();
    let whole = DiffScope { revisions: &revisions, deletes: true };
    let differing = show_differences((proxy, name), whole, is_wanted, screen).await?.differing;
    let unseen = unseen.take();
    if !unseen.is_empty() {
        // What does not differ is there all the same, or was mistyped.
        let all = managed_resources(proxy, name).await?;
        if let Some(text) = unseen.into_iter().find(|text| !all.iter().any(|one| one.is_named(text))) {
            return Err(missing(name, text));
        }
    }
    said(differing, name, "as its runtime compares it now", screen);
    Ok(differing > 0)
}

fn said(differing: usize, name: &AppName, when: &str, screen: &Screen) {
    match differing {
        0 => screen.note(&format!("nothing of {name} differs, {when}")),
        1 => screen.note(&format!("1 resource of {name} differs")),
        number => screen.note(&format!("{number} resources of {name} differ")),
    }
}

async fn differences(
    platform: &Platform,
    name: &AppName,
    resource: &ResourceName,
    colour: bool,
) -> Result<Option<String>, RemoteError> {
    let query = "query Manifests($runtime: String!, $namespace: String!, $name: String!, $resource: ResourceArgs!) { application(runtime: $runtime, namespace: $namespace, name: $name) { manifests(resource: $resource) { live desired git } } }";
    let mut variables = name.variables();
    variables["resource"] = json!({
        "group": resource.group(), "kind": resource.kind, "namespace": resource.namespace, "name": resource.name,
    });
    let mut found: Value = platform.get("read manifests", query, variables, "application").await?;
    let Some(Manifests { live, desired, git }) = read(found["manifests"].take())? else { return Ok(None) };
    // Where nobody rendered it, what stands in Git is what should be.
    let desired = desired.or(git);
    Ok(unified(live.as_deref(), desired.as_deref(), &resource.title(), colour))
}

/// A manifest as YAML, without what the API server writes for itself.
fn yaml(manifest: &str) -> String {
    let read = serde_json::from_str::<Value>(manifest).ok().or_else(|| serde_saphyr::from_str(manifest).ok());
    let Some(mut value) = read else { return manifest.to_owned() };
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for own in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"]
        {
            metadata.remove(own);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        metadata.retain(|name, value| {
            name != "annotations" || value.as_object().is_none_or(|all| !all.is_empty())
        });
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|_| manifest.to_owned())
}

/// The differences as `diff -u` tells them; `None`: there are none.
pub(crate) fn unified(
    live: Option<&str>,
    desired: Option<&str>,
    title: &str,
    colour: bool,
) -> Option<String> {
    let (before, after) = (live.map(yaml).unwrap_or_default(), desired.map(yaml).unwrap_or_default());
    if before == after {
        return None;
    }
    let compared = TextDiff::configure().timeout(PATIENCE).diff_lines(&before, &after);
    let named = |side: &str, is_there: bool| match is_there {
        true => format!("{side} {title}"),
        false => format!("{side} {title}, which is not there"),
    };
    let mut text = String::new();
    let mut line = |sign: &str, said: &str| {
        let said = lines(&format!("{sign}{said}"));
        text += &match sign {
            "-" | "--- " if colour => said.dark_red().to_string(),
            "+" | "+++ " if colour => said.dark_green().to_string(),
            "@@" if colour => said.dark_cyan().to_string(),
            _ => said,
        };
        text.push('\n');
    };
    line("--- ", &named("live", live.is_some()));
    line("+++ ", &named("desired", desired.is_some()));
    for hunk in compared.unified_diff().context_radius(3).iter_hunks() {
        line("@@", hunk.header().to_string().trim_start_matches("@@"));
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => "-",
                ChangeTag::Insert => "+",
                ChangeTag::Equal => " ",
            };
            line(sign, change.value().trim_end_matches('\n'));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_as_diff_does_and_without_what_the_api_server_writes() {
        let live = r#"{"kind":"Deployment","metadata":{"name":"web","resourceVersion":"9","uid":"u"},"spec":{"replicas":2},"status":{"replicas":2}}"#;
        let desired = r#"{"kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}"#;
        let expected = "\
--- live Deployment/web
+++ desired Deployment/web
@@ -2,4 +2,4 @@
 metadata:
   name: web
 spec:
-  replicas: 2
+  replicas: 3
";
        assert_eq!(unified(Some(live), Some(desired), "Deployment/web", false).as_deref(), Some(expected));
        assert_eq!(unified(Some(desired), Some(desired), "Deployment/web", false), None);
        let coloured = unified(Some(live), Some(desired), "Deployment/web", true).unwrap();
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    }

    #[test]
    fn what_is_not_there_is_all_new_and_nothing_of_it_is_obeyed_by_a_terminal() {
        let desired = "kind: ConfigMap\nmetadata:\n  name: \"a\\e[31mb\"\n";
        let told = unified(None, Some(desired), "ConfigMap/a", false).unwrap();
        assert!(
            told.starts_with("--- live ConfigMap/a, which is not there\n+++ desired ConfigMap/a\n"),
            "{told}"
        );
        assert!(!told.contains('\u{1b}'), "{told:?}");
        assert!(told.lines().skip(3).all(|line| line.starts_with('+')), "{told}");
    }
}
