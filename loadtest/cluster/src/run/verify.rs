//! Whether cluster, ledger and platform hold the same in the end, as `gitops-runtime verify` says.
//!
//! takes: the running reporter - gives: what differs, a line each, or why it cannot be said - calls: the command, which changes
//! nothing - fails: never

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use super::restart::Restart;
use loadtest_sim::{PATIENCE, until};

/// Between two looks.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks until nothing differs, and gives what still does when there is no patience left.
pub(super) async fn until_clean(reporter: &Restart) -> anyhow::Result<Vec<String>> {
    // It may be asked in the middle of a verification that the reporter makes by itself: then it refuses.
    let look = async || match asked(reporter).await {
        Ok(verified) => Ok(findings(&verified)),
        Err(error) => Ok(vec![format!("{error:#}")]),
    };
    until(PATIENCE, AGAIN, look, Vec::is_empty).await
}

async fn asked(reporter: &Restart) -> anyhow::Result<Value> {
    let mut command = reporter.command();
    let output = command.args(["verify", "--dry-run", "--json"]).output().await.context("run verify")?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!("verify prints no JSON: {}", String::from_utf8_lossy(&output.stderr).trim_end())
    })
}

/// What differs, by the name of each finding; that the platform did not compare is one too.
fn findings(verified: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if verified["receiverDiffers"]["total"].as_u64().is_none() {
        found.push(format!("verify: the platform did not compare: {}", verified["receiverFailed"]));
    }
    for (name, finding) in verified.as_object().into_iter().flatten() {
        if finding.get("total").and_then(Value::as_u64).is_some_and(|total| total > 0) {
            found.push(format!("verify: {name}: {}", finding["keys"]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_told_by_its_name_and_so_is_a_platform_that_does_not_compare() {
        let nothing = json!({"total": 0, "keys": []});
        let clean = json!({"objects": 3, "missing": nothing, "receiverDiffers": nothing});
        assert_eq!(findings(&clean), [""; 0]);
        let mut differs = clean;
        differs["missing"] = json!({"total": 1, "keys": ["argocd/web"]});
        assert_eq!(findings(&differs), [r#"verify: missing: ["argocd/web"]"#]);
        let failed = json!({"missing": nothing, "receiverFailed": "401"});
        assert_eq!(findings(&failed), [r#"verify: the platform did not compare: "401""#]);
    }
}
