//! The runtimes of the fleet: each with a token of its own, by which its reports are taken.

use anyhow::Context as _;
use loadtest_sim::people::Admin;
use serde_json::json;

use super::fleet::{Sent, runtime};
use crate::platform::Platform;
use crate::senders::Requests;

/// Their tokens, by number.
pub(super) struct Reporters(Vec<String>);

impl Reporters {
    /// Registers so many.
    pub(super) async fn register(admin: &Admin, runtimes: usize) -> anyhow::Result<Self> {
        let mut tokens = Vec::new();
        for number in 0..runtimes {
            let query = "mutation($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { newAccessToken } }";
            let asked = json!({"query": query, "variables": {"args": {"runtimeName": runtime(number)}}});
            let made = admin.0.ask(&asked).await.with_context(|| format!("register {}", runtime(number)))?;
            let token = made["createRuntime"]["newAccessToken"].as_str().context("there is no token")?;
            tokens.push(token.to_owned());
        }
        Ok(Self(tokens))
    }

    /// The requests of these reports, each by its own runtime.
    pub(super) fn requests(&self, platform: &Platform, reports: &[Sent]) -> anyhow::Result<Requests> {
        let token = |sent: &Sent| self.0.get(sent.runtime).context("a runtime that is registered");
        let all = reports.iter().map(|sent| Ok((token(sent)?.as_str(), &sent.body)));
        Ok(Requests::of(platform.senders().address, all.collect::<anyhow::Result<Vec<_>>>()?))
    }

    /// Sends these, and waits until all are acknowledged.
    pub(super) async fn send(&self, platform: &Platform, reports: &[Sent]) -> anyhow::Result<()> {
        self.requests(platform, reports)?.at_once().await.map(drop)
    }
}
