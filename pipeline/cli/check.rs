//! `gitops-runtime check`: whether an installation is well, part by part; and `gitops-runtime check URL`, whether a reporter is
//! ready, for `helm test` and scripts: the image has no other program.
//!
//! takes: the namespace of an installation, or where a process serves health - gives: each part and what to do about it, or what
//! the process says of itself
//! calls: the API server of the kubeconfig, to read; or `GET /readyz` - fails: when there is no cluster to ask; or when nobody
//! answers, or is not ready in time, with what was said last

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pipeline_doctor::{Cluster, Installation, Looked};
use tokio::time::{Instant, sleep};

use url::Url;

use super::ask::complain;
use super::values::{KubeconfigCluster, unreached};
use super::{AccessShape, Check, CheckCommand, print, single_thread};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait between two requests.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most characters of an answer that are shown.
const MAX_SHOWN: usize = 2_000;
/// The exit code if the state of an installation is not known.
const UNSEEN: u8 = 3;

/// Checks an installation, a URL or the way in, as the command says.
pub(crate) fn run(check: &Check) -> anyhow::Result<ExitCode> {
    if let Some(CheckCommand::Access(given)) = &check.command {
        return super::access::run(given);
    }
    if let Some(namespace) = &check.namespace {
        return installed(check, namespace);
    }
    let url = check.url.as_ref().context("an address is missing")?;
    single_thread()?.block_on(ask(check, url))
}

/// Checks every part of an installation, until there is nothing to wait for or the time is over.
fn installed(check: &Check, namespace: &str) -> anyhow::Result<ExitCode> {
    let until = std::time::Instant::now() + check.within;
    let mut waits_for = None;
    loop {
        let asked = KubeconfigCluster::find(check.kubeconfig.clone(), check.context.clone())?;
        let found = pipeline_doctor::installation(&Looked {
            cluster: asked.as_ref().map(|asked| asked as &dyn Cluster).ok_or("there is no kubeconfig"),
            namespace,
            release: check.release.as_deref(),
            version: env!("CARGO_PKG_VERSION"),
        });
        let unsettled = found.unsettled();
        if unsettled.is_none() || std::time::Instant::now() >= until {
            print(&match check.format {
                AccessShape::Table => found.table(),
                AccessShape::Json => found.json(),
            })?;
            return Ok(code(&found, !check.within.is_zero()).into());
        }
        if let Some(part) = unsettled {
            waiting(&mut waits_for, format!("{} ({})", part.part, part.found));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// The exit code of a check: 0 if nothing fails, 1 if something does, or is not done in time where it was waited for, and 3 if the state
/// is not known.
fn code(found: &Installation, is_waited_for: bool) -> u8 {
    match (found.failing(), found.is_seen()) {
        (Some(_), _) => 1,
        (None, false) => UNSEEN,
        (None, true) => u8::from(is_waited_for && found.unsettled().is_some()),
    }
}

/// Prints on standard error what is waited for, whenever that changes.
fn waiting(before: &mut Option<String>, now: String) {
    if before.as_ref() != Some(&now) {
        complain(&format!("waiting: {now}"));
        *before = Some(now);
    }
}

/// A URL without user and password.
fn without_user(url: &Url) -> Url {
    let mut url = url.clone();
    // An address without a host has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

async fn ask(check: &Check, base: &Url) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("make an HTTP client")?;
    let url = base.join("/readyz").context("the address")?;
    let base = without_user(base);
    let until = Instant::now() + check.within;
    let mut waits_for = None;
    loop {
        let said = match client.get(url.clone()).send().await {
            Ok(answer) => {
                let is_ready = answer.status().is_success();
                let text = answer.text().await.unwrap_or_default();
                let text: String = text.trim().chars().take(MAX_SHOWN).collect();
                if is_ready {
                    print(&format!("{text}\n"))?;
                    return Ok(ExitCode::SUCCESS);
                }
                format!("is not ready: {text}")
            }
            Err(error) if error.is_timeout() => "does not answer in time".to_owned(),
            Err(error) => format!("does not answer: {}", unreached(&error)),
        };
        if Instant::now() >= until {
            bail!("{base} {said}");
        }
        waiting(&mut waits_for, format!("{base} {}", said.lines().next().unwrap_or_default()));
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Answers with these Deployments, and with their pods, which are none; or with 403.
    struct Simulated(Result<Value, &'static str>);

    impl Cluster for Simulated {
        fn get(&self, path: &str) -> Result<Option<Value>, String> {
            match &self.0 {
                _ if path == "/version" => Ok(Some(json!({"gitVersion": "v1.34.1"}))),
                Ok(all) if path.contains("/deployments") => Ok(Some(json!({ "items": all }))),
                Ok(_) => Ok(None),
                Err(why) => Err((*why).to_owned()),
            }
        }

        fn metadata(&self, path: &str) -> Result<Option<Value>, String> {
            self.get(path)
        }

        fn may(&self, _: &str, _: &str, _: &str, _: Option<&str>) -> Result<bool, String> {
            Ok(true)
        }
    }

    fn ends(all: Result<Value, &'static str>) -> [u8; 2] {
        let cluster = Simulated(all);
        let looked = Looked { cluster: Ok(&cluster), namespace: "runtime", release: None, version: "0.1.0" };
        let found = pipeline_doctor::installation(&looked);
        [false, true].map(|is_waited_for| code(&found, is_waited_for))
    }

    #[test]
    fn an_installation_ends_with_zero_only_where_somebody_knows_that_nothing_fails() {
        let one = |status: Value| Ok(json!([{"metadata": {"name": "a"}, "status": status}]));
        assert_eq!(ends(one(json!({"readyReplicas": 1, "updatedReplicas": 1}))), [0, 0]);
        assert_eq!(ends(one(json!({"updatedReplicas": 1}))), [1, 1]);
        // It works while it is updated, and whoever waits for the update has not seen the end of it.
        assert_eq!(ends(one(json!({"readyReplicas": 1}))), [0, 1]);
        assert_eq!(ends(Ok(json!([]))), [1, 1]);
        assert_eq!(ends(Err("the API server answered 403")), [UNSEEN, UNSEEN]);
    }
}
