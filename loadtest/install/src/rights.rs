//! What pods of the release asked the API server for, by its audit log, beside what the chart grants their account.
//!
//! takes: a release whose components have done their work - gives: a request that was refused, or answered beyond the rights of
//! its account; a right that nobody used and nothing speaks for; an account that should ask for nothing, and did
//! calls: `helm` for what it installed; reads the audit log - fails: when a component asked for nothing at all

use std::time::Duration;

use anyhow::Context as _;
use loadtest_cluster::audit::{self, UNUSED};
use loadtest_judge::screen::say;
use tokio::time::{Instant, sleep};

use crate::LOOK;
use crate::ground::{Ground, NAME, NAMESPACE};
use crate::hook::only_of;

/// How long a right may take to be used that somebody asked for the use of.
const USED_WITHIN: Duration = Duration::from_secs(90);
/// The components whose pods have an account of their own; those of all others have none that they could ask with.
const ASKING: [&str; 6] =
    ["app-proxy", "change-revision", "reporter", "resource-reporter", "source-server", "validation"];
/// Rights that nothing here can use, or that leave no line of their own: whose they are, what their text begins with, and why they
/// are granted.
const ARGUED: [(&str, &str, &str); 6] = [
    (
        "app-proxy",
        "create secrets called ",
        "a Secret is made by a patch, for which the API server looks at this right as well, and logs the patch",
    ),
    (
        "app-proxy",
        "patch secrets called codefresh-token ",
        "somebody registers with a provider of Git, which is not here, or the runtime with a platform",
    ),
    (
        "app-proxy",
        "patch secrets called runtime-repo-creds-secret ",
        "the runtime is given a Git token, which its provider is asked about: that is not here",
    ),
    ("change-revision", "get applications", "an object is read again after a queue was full, or it was lost"),
    (
        "change-revision",
        "watch applications",
        "no reporter is on its bus, or all of them are away: it follows one here",
    ),
    ("resource-reporter", "get ", "an object is read again after a queue was full, or it was lost"),
];

/// What is wrong with what the pods of a component asked for.
pub(crate) async fn judged(ground: &Ground, component: &str) -> anyhow::Result<Vec<String>> {
    let manifest = only_of(&ground.manifest(NAMESPACE).await?, component);
    let (user, granted) = (audit::user(&manifest)?, audit::granted(&manifest)?);
    let end = Instant::now() + USED_WITHIN;
    loop {
        let verdict = audit::verdict(&log(ground).await?, &user, &granted)?;
        let (argued, mut wrong): (Vec<_>, Vec<_>) =
            verdict.failures.iter().cloned().partition(|failure| why(component, failure).is_some());
        // A right that nobody used may be used yet; what was refused stays so.
        let may_come = wrong.iter().any(|failure| failure.starts_with(UNUSED)) || verdict.requests == 0;
        if may_come && Instant::now() < end {
            sleep(LOOK).await;
            continue;
        }
        let used = format!("{} of {} rights used", verdict.used.len(), granted.len());
        say(&format!("  {user}: {} requests, {used}, {} argued", verdict.requests, argued.len()));
        for failure in &argued {
            let right = failure.strip_prefix(UNUSED).unwrap_or(failure);
            say(&format!("    {right}: {}", why(component, failure).unwrap_or_default()));
        }
        if verdict.requests == 0 {
            wrong.push("the audit log holds no request of it".to_owned());
        }
        return Ok(wrong.into_iter().map(|failure| format!("{user}: {failure}")).collect());
    }
}

/// Accounts of the namespace that asked for something, and should not have.
pub(crate) async fn strangers(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let users = audit::users(&log(ground).await?)?;
    let prefix = format!("system:serviceaccount:{NAMESPACE}:");
    let accounts: Vec<&str> = users.iter().filter_map(|user| user.strip_prefix(&prefix)).collect();
    say(&format!(
        "  accounts of {NAMESPACE} that asked the API server for something: {}",
        accounts.join(", ")
    ));
    let may = |account: &&str| ASKING.iter().any(|component| **account == format!("{NAME}-{component}"));
    let strange = accounts.into_iter().filter(|account| !may(account));
    Ok(strange.map(|account| format!("{account} asked the API server for something")).collect())
}

/// Why a right is granted that was not used; `None`: nothing speaks for it.
fn why(component: &str, failure: &str) -> Option<&'static str> {
    let right = failure.strip_prefix(UNUSED)?;
    let argued = ARGUED.iter().find(|(of, begins, _)| *of == component && right.starts_with(begins));
    argued.map(|(_, _, why)| *why)
}

async fn log(ground: &Ground) -> anyhow::Result<String> {
    let log = tokio::fs::read_to_string(ground.cluster.control.audit_log()).await;
    log.context("read the audit log")
}

#[cfg(test)]
mod tests {
    use super::why;

    #[test]
    fn what_speaks_for_a_right_speaks_for_that_of_its_component_alone() {
        let unused = "granted and never used: create secrets called git-default-default in runtime";
        assert!(why("app-proxy", unused).is_some());
        assert_eq!(why("reporter", unused), None);
        assert_eq!(why("app-proxy", "granted and never used: list pods in runtime"), None);
        assert_eq!(
            why("app-proxy", "answered 403: create secrets called git-default-default in runtime"),
            None
        );
    }
}
