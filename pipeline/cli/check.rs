//! `gitops-runtime check URL`: whether a reporter is ready, for `helm test` and scripts: the image has no other program.
//!
//! takes: where it serves health - gives: what it says of itself
//! calls: `GET /readyz` - fails: when it does not answer, or is not ready in time, with what it said last

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use url::Url;

use super::{Check, CheckCommand};

/// The time one request may take.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two requests.
const AGAIN: Duration = Duration::from_secs(1);
/// Bytes of an answer that are shown.
const SHOWN: usize = 2_000;

/// Asks until it is ready or the time is over.
pub(crate) fn run(check: &Check) -> anyhow::Result<ExitCode> {
    if let Some(CheckCommand::Access(given)) = &check.command {
        return super::access::run(given);
    }
    let url = check.url.as_ref().context("an address is missing")?;
    stages_client::install_crypto();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")?;
    runtime.block_on(ask(check, url))
}

async fn ask(check: &Check, base: &Url) -> anyhow::Result<ExitCode> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(ANSWER)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("make an HTTP client")?;
    let url = base.join("/readyz").context("the address")?;
    let until = Instant::now() + check.within;
    loop {
        let said = match client.get(url.clone()).send().await {
            Ok(answer) => {
                let is_ready = answer.status().is_success();
                let text = answer.text().await.unwrap_or_default();
                let text: String = text.trim().chars().take(SHOWN).collect();
                if is_ready {
                    super::values::print(&format!("{text}\n"))?;
                    return Ok(ExitCode::SUCCESS);
                }
                format!("is not ready: {text}")
            }
            Err(error) if error.is_timeout() => "does not answer in time".to_owned(),
            Err(_) => "does not answer".to_owned(),
        };
        if Instant::now() >= until {
            bail!("{base} {said}");
        }
        sleep(AGAIN).await;
    }
}
