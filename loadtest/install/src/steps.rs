//! What each step does, and what is wrong in its end.

use anyhow::Context as _;
use loadtest_cluster::argocd::ArgoCd;
use loadtest_judge::screen::say;
use serde_json::{Value, json};

use crate::flux;
use crate::ground::{Ground, NAME, NAMESPACE, name_of};
use crate::step::Step;
use crate::until;
use crate::{access, argocd, backup, before, connections, hook, neighbour, new_argocd, power, rights};

/// Commits that a load makes at the least, while something happens and after it.
const COMMITS: u64 = 2;
/// An application, by its name.
const APPLICATION: &str = "shop-one";
/// The Secret with the login of the registry.
const LOGIN: &str = "registry-login";

/// Takes a step; what is wrong is told, a line each.
pub(crate) async fn take(ground: &mut Ground, step: Step) -> anyhow::Result<Vec<String>> {
    match step {
        Step::Install => install(ground).await,
        Step::Change => change(ground).await,
        Step::Argocd => Box::pin(argocd::take(ground)).await,
        Step::Flux => Box::pin(flux::take(ground)).await,
        Step::Test => test(ground).await,
        Step::Upgrade => upgrade(ground).await,
        Step::Kill => kill(ground).await,
        Step::Power => Box::pin(power::take(ground)).await,
        Step::Registry => registry(ground).await,
        Step::Replicas => replicas(ground).await,
        Step::Rollback => rollback(ground).await,
        Step::Hook => Box::pin(hook::take(ground)).await,
        Step::Rights => used(ground).await,
        Step::Neighbour => Box::pin(neighbour::take(ground)).await,
        Step::NewArgocd => Box::pin(new_argocd::take(ground)).await,
        Step::Before => Box::pin(before::take(ground)).await,
        Step::Backup => Box::pin(backup::take(ground)).await,
        Step::Access => Box::pin(access::take(ground)).await,
        Step::Connections => Box::pin(connections::take(ground)).await,
        Step::Uninstall => uninstall(ground).await,
    }
}

async fn install(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    ground.upgrade(&json!({})).await?;
    ground.applications.lacking().await
}

async fn change(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let (wrong, told) = ground.applications.follow().await?;
    for line in told {
        say(&format!("  reported: {line}"));
    }
    Ok(wrong)
}

async fn test(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let said = ground.helm("test", &[]).await?;
    let passed = said.contains("Phase:          Succeeded");
    let mut wrong = if passed { Vec::new() } else { vec![format!("helm test says: {}", said.trim())] };
    let (is_well, said) = ground.checked().await?;
    say(&format!("  gitops-runtime check says: {}", said.lines().last().unwrap_or_default()));
    if !is_well {
        wrong.push(format!("gitops-runtime check says: {}", said.trim()));
    }
    Ok(wrong)
}

async fn upgrade(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let load = ground.applications.load();
    let values = json!({"reporter": {
        "podAnnotations": {"example.com/upgraded": "yes"}, "resources": {"limits": {"memory": "600Mi"}},
    }});
    ground.upgrade(&values).await?;
    ground.ready("reporter", 1, &[]).await?;
    say(&format!("  {} commits meanwhile", load.stop(COMMITS).await?));
    let mut wrong = ground.applications.lacking().await?;
    let pods = ground.pods("reporter").await?;
    if !pods.iter().all(|pod| pod["metadata"]["annotations"]["example.com/upgraded"] == "yes") {
        wrong.push("the pods are those from before the upgrade".to_owned());
    }
    Ok(wrong)
}

async fn kill(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let load = ground.applications.load();
    let killed = ground.kill_all("reporter").await?;
    ground.ready("reporter", killed.len(), &killed).await?;
    say(&format!("  {} commits meanwhile", load.stop(COMMITS).await?));
    ground.applications.lacking().await
}

async fn registry(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let digests = ground.push().await?;
    let host = ground.registry.host();
    let image = json!({"registry": host, "digest": digests[0], "pullPolicy": "Always"});
    ground.begin_upgrade(&json!({"image": image, "global": {"imagePullSecrets": []}})).await?;
    let refusal = ground.image_refused("reporter").await?;
    if !refusal.contains("401 Unauthorized") {
        wrong.push(format!("without a Secret the image is refused with: {refusal}"));
    }
    ground.give_login(LOGIN).await?;
    ground.upgrade(&json!({"global": {"imagePullSecrets": [{"name": LOGIN}]}})).await?;
    wrong.extend(change(ground).await?);
    Ok(wrong)
}

async fn replicas(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let values = json!({
        "nats": {"mode": "embedded", "replicaCount": 3, "resources": {"requests": {"cpu": "10m"}}},
        "reporter": {"replicaCount": 3, "resources": {"requests": {"cpu": "10m"}}},
    });
    ground.upgrade(&values).await?;
    ground.ready("nats", 3, &[]).await?;
    ground.ready("reporter", 3, &[]).await?;
    let mut wrong = change(ground).await?;
    let load = ground.applications.load();
    for component in ["nats", "reporter"] {
        let first = ground.pods(component).await?.first().map(name_of).context("find a pod to kill")?;
        let uid = uid_of(ground, &first).await?;
        ground.kill(&first).await?;
        // A pod of a StatefulSet comes back by its name.
        gone(ground, &first, &uid).await?;
        ground.ready(component, 3, &[]).await?;
    }
    say(&format!("  {} commits meanwhile", load.stop(COMMITS).await?));
    wrong.extend(ground.applications.lacking().await?);
    Ok(wrong)
}

async fn rollback(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let before = ground.values.clone();
    let load = ground.applications.load();
    let image = json!({"image": {"tag": "not-there", "digest": "", "pullPolicy": "Always"}});
    ground.begin_upgrade(&image).await?;
    let refusal = ground.image_refused("reporter").await?;
    let mut wrong = Vec::new();
    if !refusal.contains("not-there") {
        wrong.push(format!("the image that is not there is refused with: {refusal}"));
    }
    let (_, said) = ground.checked().await?;
    let told = said.lines().find(|line| line.contains("not-there is not pulled"));
    match told {
        Some(line) => say(&format!("  gitops-runtime check says: {}", line.trim())),
        None => {
            wrong.push(format!("gitops-runtime check says of an image that is not there: {}", said.trim()));
        }
    }
    ground.helm("rollback", &["--wait"]).await?;
    ground.values = before;
    say(&format!("  {} commits meanwhile", load.stop(COMMITS).await?));
    wrong.extend(ground.applications.lacking().await?);
    Ok(wrong)
}

async fn used(ground: &Ground) -> anyhow::Result<Vec<String>> {
    read_again(ground).await?;
    rights::judged(ground, "reporter").await
}

/// Has one application read, as it is where a queue was full: asks each replica, of which one has its shard.
async fn read_again(ground: &Ground) -> anyhow::Result<()> {
    let application = format!("{}/{APPLICATION}", ArgoCd::NAMESPACE);
    let replay = ["/gitops-runtime", "replay", "--app", &application, "--whole"];
    let mut refused = None;
    for pod in ground.pods("reporter").await? {
        let name = pod["metadata"]["name"].as_str().context("read the name of a pod")?;
        let exec = ["exec", "--namespace", NAMESPACE, name, "--container", "reporter", "--"];
        match ground.tools.run("kubectl", &[&exec[..], &replay].concat()).await {
            Ok(_) => return Ok(()),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused
        .context("find a pod of the reporter")?
        .context("have an application read again by any replica"))
}

async fn uninstall(ground: &Ground) -> anyhow::Result<Vec<String>> {
    ground.platform.down().await;
    let said = ground.helm("uninstall", &["--wait"]).await?;
    let is_unsaid = |line: &&String| !ground.before.contains(line) && !is_said(&said, line);
    let look = async || ground.found(NAMESPACE).await;
    let found = until(look, |found| !found.iter().any(|line| is_unsaid(&line))).await?;
    let unsaid: Vec<String> = found.iter().filter(is_unsaid).map(|line| format!("left: {line}")).collect();
    if !unsaid.is_empty() {
        return Ok(unsaid);
    }
    for line in found.iter().filter(|line| !ground.before.contains(line)) {
        say(&format!("  kept: {line}"));
    }
    let gone = ground.before.iter().filter(|line| !found.contains(line));
    Ok(gone.map(|line| format!("not the release's, and gone: {line}")).collect())
}

/// Whether what is left is what Helm says that it keeps, or a claim: of the ledger, which Helm speaks of only where the
/// release has one at its end, or of a StatefulSet, which Kubernetes keeps.
fn is_said(said: &str, line: &str) -> bool {
    let Some((kind, name)) = line.split_once(' ') else { return false };
    let name = name.strip_prefix(&format!("{NAMESPACE}/")).unwrap_or(name);
    let claims = ["reporter", "platform", "platform-backup"];
    let is_claim = claims.iter().any(|claim| name == format!("{NAME}-{claim}"))
        || name.starts_with(&format!("data-{NAME}-nats-"));
    said.contains(&format!("[{kind}] {name}\n")) || (kind == "PersistentVolumeClaim" && is_claim)
}

async fn uid_of(ground: &Ground, pod: &str) -> anyhow::Result<Value> {
    let found = ground.object("v1", "Pod", pod).await?;
    Ok(found.map(|pod| pod["metadata"]["uid"].clone()).unwrap_or_default())
}

/// Waits until a pod is another one, or none.
async fn gone(ground: &Ground, pod: &str, uid: &Value) -> anyhow::Result<()> {
    let now = until(async || uid_of(ground, pod).await, |now| now != uid).await?;
    anyhow::ensure!(now != *uid, "the pod {pod} does not go");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helm_keeps_and_claims_of_nats_may_stay_and_nothing_else() {
        let said = "These resources were kept due to the resource policy:\n\
            [Secret] prod-gitops-runtime\n\nrelease \"prod\" uninstalled\n";
        assert!(is_said(said, "Secret runtime/prod-gitops-runtime"));
        assert!(is_said(said, "PersistentVolumeClaim runtime/prod-gitops-runtime-reporter"));
        assert!(is_said(said, "PersistentVolumeClaim runtime/data-prod-gitops-runtime-nats-0"));
        assert!(!is_said(said, "PersistentVolumeClaim runtime/another"));
        assert!(!is_said(said, "Secret runtime/prod-gitops-runtime-redaction"));
        assert!(!is_said(said, "Secret runtime/prod"));
        assert!(!is_said(said, "Role argocd/gitops-runtime:runtime:prod-gitops-runtime-reporter"));
    }
}
