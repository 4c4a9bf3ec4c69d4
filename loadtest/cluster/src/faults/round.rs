//! One round: something is killed while changes go on, comes back, and everything works again.
//!
//! takes: what to kill, when and for how long - gives: how it went
//! calls: the parts of the cluster, by signals; the API server and Argo CD as administrator; the pages of the
//! reporter - fails: when something cannot be started again; what does not work again is told in the outcome
//!
//! While it is away an application is deleted that nobody else changes, and made anew. It works again when the
//! platform has heard of the end of the old life and of the new one, compared by Argo CD.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::application::MORTAL;
use super::driver::Driver;
use super::known::Known;
use super::plan::{Round, Victim};
use super::reports;
use crate::argocd::Part;
use crate::git::Repository;
use crate::run::Stage;
use crate::scenario::Lifecycle;
use loadtest_sim::{PATIENCE, until};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// What the reporter logs when its watch breaks, and what the API server answers when a version is too old.
const BROKEN: &str = "the watch broke";
const EXPIRED: &str = "the api server answered 410";
/// The reporter's counter of completed lists.
const LISTS: &str = "gitops_runtime_lists_total";

/// How a round went.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    /// When it began, after the first.
    pub(super) at: Duration,
    /// How long it was away.
    pub(super) away: Duration,
    /// From its start until all worked again.
    pub(super) recovered: Duration,
    /// The reporter's watch found its version too old, and it listed anew.
    pub(super) expired: bool,
    /// What went wrong, a line each.
    pub(super) wrong: Vec<String>,
}

/// Carries rounds out.
pub(super) struct Rounds<'a> {
    /// What is killed, and who listens.
    pub(super) stage: &'a mut Stage,
    /// Who deletes.
    pub(super) driver: &'a Driver,
    /// What the platform has heard of.
    pub(super) known: &'a Known,
    /// The repository of the application that is deleted.
    pub(super) repository: Repository,
    /// When the first round began.
    pub(super) began: Instant,
}

impl Rounds<'_> {
    /// Makes the application that is deleted, and waits until the platform knows it.
    pub(super) async fn begin(&self) -> anyhow::Result<()> {
        self.driver.create(&MORTAL, &self.repository).await?;
        let look = async || Ok(self.is_settled().await);
        let is_settled = until(PATIENCE, LOOK, look, |is_settled| *is_settled).await?;
        anyhow::ensure!(is_settled, "{} is not reported within {PATIENCE:?}", MORTAL.name);
        Ok(())
    }

    /// Carries one out.
    pub(super) async fn carry_out(&mut self, round: &Round) -> anyhow::Result<Outcome> {
        sleep(round.before).await;
        let at = self.began.elapsed();
        let before = self.seen().await?;
        self.kill(round.victim).await.with_context(|| format!("kill {}", round.victim))?;
        let killed = Instant::now();
        let driver = self.driver;
        let repository = self.repository.clone();
        let (renewed, revived) = tokio::join!(renew(driver, &repository, round), async {
            sleep_until(killed + round.away).await;
            let started = Instant::now();
            self.revive(round.victim).await.with_context(|| format!("start {}", round.victim))?;
            anyhow::Ok(started)
        });
        let (old, started) = (renewed?, revived?);
        let mut outcome = Outcome { at, away: started - killed, ..Outcome::default() };
        let end = Instant::now() + PATIENCE;
        let mut renewed = round.at_once;
        loop {
            let is_told = reports::tell_end(&self.stage.platform, MORTAL.name, &old);
            if is_told && !renewed {
                self.driver.create(&MORTAL, &self.repository).await?;
                renewed = true;
            }
            if is_told && renewed && self.is_settled().await {
                break;
            }
            if Instant::now() > end {
                let what = if is_told { "its new life, compared," } else { "its end" };
                outcome.wrong.push(format!("{}: {what} is not reported within {PATIENCE:?}", MORTAL.name));
                break;
            }
            sleep(LOOK).await;
        }
        outcome.recovered = started.elapsed();
        let after = self.seen().await?;
        outcome.expired = after.expired > before.expired && after.lists > before.lists;
        outcome.wrong.extend(self.wrong().await?);
        Ok(outcome)
    }

    /// What is wrong at any moment, whatever goes on.
    async fn wrong(&self) -> anyhow::Result<Vec<String>> {
        let mut wrong = self.stage.platform.totals().wrong();
        let status = self.stage.reporter.running().await?.status().await?;
        for shard in status.shards.iter().filter(|shard| shard.balance() != 0) {
            wrong.push(format!("shard {} has lost or invented {} events", shard.shard, shard.balance()));
        }
        let ended = self.stage.cluster.health().into_iter().filter(|(_, runs)| !runs);
        wrong.extend(ended.map(|(program, _)| format!("{program} has ended by itself")));
        Ok(wrong)
    }

    /// How often the reporter's watch found its version too old, and how many lists it completed.
    async fn seen(&self) -> anyhow::Result<ObjectIndex> {
        let reporter = self.stage.reporter.running().await?;
        let lines = reporter.process().lines().all();
        let expired = lines.iter().filter(|line| line.contains(BROKEN) && line.contains(EXPIRED)).count();
        let lists = reporter.metrics().await?.sum(LISTS, &[]);
        Ok(ObjectIndex { expired, lists })
    }

    async fn kill(&mut self, victim: Victim) -> anyhow::Result<()> {
        let Stage { cluster, .. } = &*self.stage;
        match victim {
            Victim::ApiServer => {
                cluster.control.kill_api_server().await?;
                cluster.control.compact().await.map(drop)
            }
            Victim::ArgoCd(part) => {
                let parts = chosen(part).into_iter().map(|part| cluster.argocd.kill(part));
                try_join_all(parts).await.map(drop)
            }
            Victim::Reporter => {
                self.stage.reporter.change(Lifecycle::Kill).await?;
                self.known.forget_newest();
                Ok(())
            }
        }
    }

    async fn revive(&mut self, victim: Victim) -> anyhow::Result<()> {
        if victim == Victim::ApiServer {
            self.stage.starts.push(Timestamp::now());
        }
        let Stage { cluster, .. } = &*self.stage;
        match victim {
            Victim::ApiServer => cluster.control.start_api_server().await,
            Victim::ArgoCd(part) => {
                let parts = chosen(part).into_iter().map(|part| cluster.argocd.revive(part));
                try_join_all(parts).await.map(drop)
            }
            Victim::Reporter => self.stage.reporter.change(Lifecycle::Start).await,
        }
    }

    /// Whether the application as it is now is known to the platform as compared, and for long enough to be deleted.
    async fn is_settled(&self) -> bool {
        let Ok(Some(object)) = self.driver.get(&MORTAL.reference()).await else { return false };
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        self.known.is_settled(uid) && reports::show_compared(&self.stage.platform, MORTAL.name, uid)
    }
}

/// Figures of the reporter that tell how it lost and found its watch.
struct ObjectIndex {
    expired: usize,
    lists: f64,
}

/// Deletes the application, whatever is away, and makes it anew if that is to be at once. Tells the uid of the life
/// that ended.
async fn renew(driver: &Driver, repository: &Repository, round: &Round) -> anyhow::Result<String> {
    let old = driver.delete(MORTAL.name, round.cascade).await?;
    let old = old.with_context(|| format!("delete {}: it is not there", MORTAL.name))?;
    driver.gone(MORTAL.name, &old).await?;
    if round.at_once {
        driver.create(&MORTAL, repository).await?;
    }
    Ok(old)
}

/// The controller goes with redis: it writes there what has changed since it wrote last, so what redis alone has
/// forgotten is missing for as long as ten minutes, and Argo CD answers 500 meanwhile.
fn chosen(part: Option<Part>) -> Vec<Part> {
    match part {
        None => Part::ALL.to_vec(),
        Some(Part::Redis) => vec![Part::Redis, Part::Controller],
        Some(part) => vec![part],
    }
}
