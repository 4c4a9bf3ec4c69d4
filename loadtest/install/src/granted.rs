//! What each right of the app proxy is for, asked for by an admin: Rollouts, workflows, Git integrations, and the look that the app
//! proxy takes at its own runtime.
//!
//! takes: a release whose app proxy runs - gives: what is wrong with what an admin is told
//! calls: Argo CD, which makes a Rollout from Git; the app proxy, by the way in - fails: when one of them cannot be asked
//!
//! No controller of Rollouts or of workflows runs: what is changed is an object, which nobody carries out.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use loadtest_cluster::argocd::ArgoCd;
use loadtest_cluster::git::BRANCH;
use loadtest_cluster::objects::Reference;
use loadtest_cluster::progress::Progress;
use loadtest_judge::screen::say;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::access::World;
use crate::applications::State;
use crate::ground::{Ground, NAMESPACE, secret};
use crate::until;

const ARGO: &str = "argoproj.io/v1alpha1";
/// The application that has a Rollout in the namespace of the release, and its folder in Git.
const ROLLS: &str = "rolls";
const ROLLOUT: &str = "apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary}
spec:
  replicas: 1
  selector: {matchLabels: {app: canary}}
  strategy: {canary: {steps: [{pause: {}}]}}
  template:
    metadata: {labels: {app: canary}}
    spec: {containers: [{name: canary, image: \"example.com/canary:1\"}]}
";
const TEMPLATE: &str = "greet";
/// The Application of what the runtime itself is made of, and the Secret that Argo CD reads its repositories with.
const CONFIGURATION: &str = "prod-isc";
const REPOSITORIES: &str = "runtime-repo-creds-secret";
/// Between two questions to Argo CD.
const AGAIN: Duration = Duration::from_secs(5);
/// Where the app proxy keeps Git integrations: they are people's, and stay.
const KEPT: &str = "git-default-default";

/// What is asked for, and what is told: `APP` and `ROLLOUT` are filled in.
const ASKED: [(&str, &str); 11] = [
    ("{ rollout(application: APP, rollout: ROLLOUT) { metadata { name } } }", "canary"),
    ("{ analysisRuns(application: APP, rollout: ROLLOUT) { phase } }", r#"{"analysisRuns":[]}"#),
    (
        "mutation { restartRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        r#"{"restartRollout":{"metadata""#,
    ),
    (
        "mutation { abortRollout(application: APP, rollout: ROLLOUT) { metadata { name } } }",
        r#"{"abortRollout":{"metadata""#,
    ),
    (
        "mutation { rollbackRollout(application: APP, rollout: ROLLOUT) { newRevision } }",
        "the Rollout has no revision before this one",
    ),
    (
        r#"mutation { createWorkflowFromTemplate(args: {namespace: "runtime", workflowTemplateName: "greet"}) { newWorkflowName } }"#,
        "greet",
    ),
    (r#"{ workflows(namespace: "runtime") { metadata { name } } }"#, "greet"),
    (
        r#"mutation { suspendWorkflow(namespace: "runtime", workflowName: "WORKFLOW") { metadata { name } } }"#,
        r#"{"suspendWorkflow":{"metadata""#,
    ),
    (
        r#"mutation { addGitIntegration(args: {provider: GITHUB, sharingPolicy: ALL_USERS_IN_ACCOUNT}) { name } }"#,
        "default",
    ),
    ("{ gitIntegrations { name } }", "default"),
    ("{ runtimeStatus { __typename } }", "RuntimeStatus"),
];

/// Makes what is asked for, before the app proxy looks at its runtime for the first time.
pub(crate) async fn prepare(ground: &Ground) -> anyhow::Result<()> {
    Progress.step("definitions of Rollouts and workflows", ground.define_argo()).await?;
    ground.applications.file(&format!("{ROLLS}/rollout.yaml"), ROLLOUT).await?;
    // What was not synced at the newest revision, Argo CD syncs by itself as soon as anything of it differs: people's own syncs would
    // meet that.
    let (_, revision) = ground.applications.commit().await?;
    ground.applications.synced(&revision).await?;
    let template = json!({"apiVersion": ARGO, "kind": "WorkflowTemplate", "metadata": {"name": TEMPLATE}, "spec": {
        "entrypoint": "all",
        "templates": [{"name": "all", "container": {"image": "example.com/greet:1"}}],
    }});
    for (object, namespace) in [
        (rolls(ground), ArgoCd::NAMESPACE),
        (application(ground, CONFIGURATION), ArgoCd::NAMESPACE),
        (secret(REPOSITORIES, "Opaque", "url", "https://git.example.com/"), ArgoCd::NAMESPACE),
        (template, NAMESPACE),
    ] {
        ground.objects.apply_value(&object, namespace).await?;
    }
    let (begun, mut asked) = (Instant::now(), 0);
    let reference = Reference::new(ARGO, "Application", Some(ArgoCd::NAMESPACE), ROLLS);
    let client = ground.cluster.argocd.client();
    let look = async || {
        // Argo CD may have looked before it knew of the kind.
        if begun.elapsed() > AGAIN * asked {
            client.refreshed(ROLLS, "normal").await?;
            asked += 1;
        }
        let found = ground.objects.get(&reference).await?.with_context(|| format!("find {reference}"))?;
        Ok(State::of(&found))
    };
    let state = until(look, |state| state.is_synced(&revision)).await?;
    ensure!(state.is_synced(&revision), "{reference} is not synced: {state:?}");
    Ok(())
}

/// Asks for all of it as an admin.
pub(crate) async fn take(world: &World, key: &str) -> anyhow::Result<Vec<String>> {
    let (mut wrong, mut workflow) = (Vec::new(), String::new());
    for (query, expected) in ASKED {
        let query = query
            .replace("APP", &format!("{{namespace: \"{}\", name: \"{ROLLS}\"}}", ArgoCd::NAMESPACE))
            .replace("ROLLOUT", &format!("{{namespace: \"{NAMESPACE}\", name: \"canary\"}}"))
            .replace("WORKFLOW", &workflow);
        let said = world.answer(key, &query).await?;
        if let Some(name) =
            said.pointer("/data/createWorkflowFromTemplate/newWorkflowName").and_then(Value::as_str)
        {
            name.clone_into(&mut workflow);
        }
        if !said.to_string().contains(expected) {
            wrong.push(format!("an admin who asks {query} is told {said}"));
        }
    }
    say(&format!("  an admin asked for {} things that rights of the app proxy are for", ASKED.len()));
    Ok(wrong)
}

/// Takes away what was made; what the app proxy keeps for people stays, also when the release goes.
pub(crate) async fn clear(ground: &mut Ground) -> anyhow::Result<()> {
    for name in [ROLLS, CONFIGURATION] {
        let reference = Reference::new(ARGO, "Application", Some(ArgoCd::NAMESPACE), name);
        ground.objects.delete(&reference).await?;
    }
    let kinds = "rollouts.argoproj.io,workflows.argoproj.io,workflowtemplates.argoproj.io";
    ground.tools.run("kubectl", &["delete", kinds, "--all", "--namespace", NAMESPACE]).await?;
    let made = Reference::new("v1", "Secret", Some(ArgoCd::NAMESPACE), REPOSITORIES);
    ground.objects.delete(&made).await?;
    ground.before.push(format!("Secret {NAMESPACE}/{KEPT}"));
    Ok(())
}

/// The Application that Argo CD syncs.
fn rolls(ground: &Ground) -> Value {
    let mut application = application(ground, ROLLS);
    application["spec"]["syncPolicy"] = json!({"automated": {}});
    application
}

/// An Application of that folder of the repository, whose objects stand in the namespace of the release; nobody syncs it. It has
/// no field that is null: with the definitions of a whole Argo CD the API server refuses one.
fn application(ground: &Ground, name: &str) -> Value {
    json!({
        "apiVersion": ARGO, "kind": "Application", "metadata": {"name": name},
        "spec": {
            "project": "default",
            "source": {"repoURL": ground.applications.url(), "path": ROLLS, "targetRevision": BRANCH},
            "destination": {"server": ArgoCd::DESTINATION, "namespace": NAMESPACE},
        },
    })
}
