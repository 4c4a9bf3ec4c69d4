//! The doctor as the chart's hook, run by Helm in a pod of the restricted namespace: what it says where Helm shows it, what it
//! stops, and what it leaves.
//!
//! takes: an installed release - gives: what is wrong with what Helm shows, and with what the hook did by the API server's
//! audit log
//! calls: `helm`, `kubectl` - fails: when one of them does where it should not

use anyhow::{Context as _, bail};
use loadtest_cluster::audit;
use loadtest_judge::screen::say;
use loadtest_sim::reporter::merge;
use serde_json::{Value, json};

use crate::ground::{Ground, NAMESPACE, RELEASE};

/// A Secret that nobody made.
const MISSING: &str = "nobody-made-this";
/// What stands in the line that the doctor says of it; between the two its log names file and line.
const FINDING: (&str, &str) = ("error GR0102 ", "reporter.redactionKey.secretKeyRef");
/// The component of the hook's objects.
const COMPONENT: &str = "validation";

/// Upgrades with a hook that warns, with one that refuses, and with one that finds nothing.
pub(crate) async fn take(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    // Nobody but the platform of an account answers what the doctor asks of one.
    let hook =
        |enforce: bool| json!({"validation": {"enabled": true, "enforce": enforce, "skip": ["network"]}});
    let lacks = json!({"reporter": {"redactionKey": {"secretKeyRef": {"name": MISSING, "key": "key"}}}});
    let values = |enforce: bool, more: &Value| {
        let mut values = ground.values.clone();
        merge(&mut values, &hook(enforce));
        merge(&mut values, more);
        values
    };

    // It warns, and the upgrade goes on: the pod that lacks its Secret waits for it.
    let said = ground.release(NAMESPACE, &values(false, &lacks), &[]).await?;
    wrong.extend(lacking(&said, "an upgrade with a hook that warns"));
    wrong.extend(remains(ground, "a hook that warned").await?);

    // It refuses, and Helm says why; so does the pod, for a Helm that prints no logs.
    match ground.release(NAMESPACE, &values(true, &lacks), &["--wait"]).await {
        Ok(said) => bail!("an upgrade that the hook should refuse is done: {said}"),
        Err(error) => {
            let said = format!("{error:#}");
            wrong.extend(lacking(&said, "a refused upgrade"));
            let finding = said.lines().find(|line| is_finding(line)).unwrap_or_default();
            say(&format!("  Helm says of the refused upgrade: {}", finding.trim()));
        }
    }
    let pods = ground.pods(COMPONENT).await?;
    let ends = pods.iter().filter_map(|pod| {
        pod.pointer("/status/containerStatuses/0/state/terminated/message").and_then(Value::as_str)
    });
    let ends: Vec<&str> = ends.collect();
    if !ends.iter().any(|message| message.lines().any(is_finding)) {
        wrong.push(format!("the pods of the hook end with {ends:?}"));
    }

    // It finds nothing, the upgrade is done, and nothing of the hook stays.
    ground.release(NAMESPACE, &values(true, &json!({})), &["--wait"]).await?;
    wrong.extend(remains(ground, "a hook that found nothing").await?);
    let hooks = ["get", "hooks", RELEASE, "--namespace", NAMESPACE];
    let manifest = ground.tools.run("helm", &hooks).await?;
    let manifest = only_of(&manifest, COMPONENT);
    let (user, granted) = (audit::user(&manifest)?, audit::granted(&manifest)?);
    let log = tokio::fs::read_to_string(ground.cluster.control.audit_log()).await;
    let mut verdict = audit::verdict(&log.context("read the audit log")?, &user, &granted)?;
    // It also asks for what its two rights do not tell, and says that this is not measured.
    verdict.failures.retain(|failure| failure.starts_with("granted and never used"));
    say(&format!("  {user}: {verdict}"));
    wrong.extend(verdict.failures);

    let off = json!({"validation": {"enabled": false}});
    ground.upgrade(&off).await?;
    wrong.extend(ground.applications.follow().await?.0);
    Ok(wrong)
}

/// What is wrong with what Helm said, where it does not say what the doctor found.
fn lacking(said: &str, of: &str) -> Option<String> {
    let is_said = said.lines().any(is_finding) && said.contains(MISSING);
    (!is_said).then(|| format!("Helm says of {of}, without the finding: {said}"))
}

fn is_finding(line: &str) -> bool {
    line.split_once(FINDING.0).is_some_and(|(_, rest)| rest.contains(FINDING.1))
}

/// Objects of the hook that are there.
async fn remains(ground: &Ground, of: &str) -> anyhow::Result<Vec<String>> {
    let found = ground.found(NAMESPACE).await?;
    let left = found.iter().filter(|line| line.ends_with(COMPONENT) || line.contains("-validation-"));
    Ok(left.map(|line| format!("{of} left {line}")).collect())
}

/// The documents of a manifest that are of a component.
pub(crate) fn only_of(manifest: &str, component: &str) -> String {
    let label = format!("app.kubernetes.io/component: {component}");
    let documents = manifest.split("\n---\n").filter(|document| document.contains(&label));
    documents.collect::<Vec<_>>().join("\n---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helm_says_holds_the_finding_and_the_name() {
        let said = "helm upgrade: error GR0102 /values.yaml:3: reporter.redactionKey.secretKeyRef\n    found  no Secret \
                    nobody-made-this";
        assert_eq!(lacking(said, "this"), None);
        assert_eq!(
            lacking("BackoffLimitExceeded", "this").unwrap(),
            "Helm says of this, without the finding: BackoffLimitExceeded"
        );
    }

    #[test]
    fn documents_of_other_components_are_left_out() {
        let manifest = "metadata:\n  labels:\n    app.kubernetes.io/component: test\n---\nmetadata:\n  labels:\n    \
                        app.kubernetes.io/component: validation";
        let found = only_of(manifest, "validation");
        assert!(found.ends_with("validation") && !found.contains("test"), "{found}");
    }
}
