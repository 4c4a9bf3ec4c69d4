//! Plays one recorded case to the real binary, one event after the other.
//!
//! An event is played when the reporter has done with the one before, so that every call is made in the turn that it
//! was recorded in. Where the recorded reporter looked a second time at a state (a tree that had been read just
//! before is read again after ten seconds), the next event of that application waits for it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::taken;
use loadtest_judge::oracle;
use loadtest_sim::platform::{Keep, Kept};
use loadtest_sim::recordings::{CallLine, Case};
use loadtest_sim::reporter::{REDACTION_KEY, Reporter, Status};
use loadtest_sim::{Load, Player, Setup, Simulation};

/// How often the reporter is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long the reporter may take to be ready, or to be done with an event.
const SOON: Duration = Duration::from_secs(60);
/// How long a second look may take: a fact that could not be had is asked for again after a minute.
const PATIENCE: Duration = Duration::from_secs(75);
/// After so long without a sign of it, an event counts as taken in: a read that found nothing hid it in the figures.
const HIDDEN: Duration = Duration::from_secs(2);
/// Reports that are kept; more than any case has.
const KEPT: usize = 1_000_000;

/// What came of a replay.
#[derive(Debug)]
pub(super) struct Played {
    /// Watch events that were played.
    pub(super) events: usize,
    /// The reports, in the order in which they came.
    pub(super) reports: Vec<Kept>,
    /// What the reporter logged.
    pub(super) log: Vec<String>,
    /// What is not as the cluster was, or came out of order.
    pub(super) problems: Vec<String>,
}

struct Play<'a> {
    simulation: &'a Simulation,
    reporter: &'a Reporter,
    played: u64,
    /// Events that the figures do not show.
    hidden: u64,
}

/// Plays `case` to `program`; `among` are the cases of the same recording.
pub(super) async fn play(case: &Case, among: &[Case], program: &Path) -> anyhow::Result<Played> {
    let mut taken = taken::taken_up(case)?;
    learn_commits(&mut taken, among);
    let events = taken.watch.len();
    let mut simulation = Simulation::start(Setup {
        load: Load::Reported(vec![taken]),
        tls: [None; 3],
        keep: Keep { last: true, reports: KEPT },
        ..Setup::default()
    })
    .await?;
    let mut player = simulation.player.take().context("a player of the recording")?;
    let key = simulation.directory().join("redaction-key");
    tokio::fs::write(&key, REDACTION_KEY).await.with_context(|| format!("write {}", key.display()))?;
    let settings = json!({
        "redaction": {"keyFile": key.display().to_string()},
        "reporter": {"lanes": {"retry": {"min": "100ms"}}},
    });
    let reporter = Reporter::start(program, &simulation, &settings).await?;
    reporter.ready(SOON).await?;
    let mut play = Play { simulation: &simulation, reporter: &reporter, played: 0, hidden: 0 };
    play.all(&mut player, &case.meta.applications).await?;
    let problems = problems(case, &simulation)?;
    let log = reporter.process().lines().all();
    reporter.stop().await?;
    let reports = simulation.platform.kept();
    simulation.stop().await?;
    Ok(Played { events, reports, log, problems })
}

/// Adds what other cases were told of commits. A reporter asks for a commit of a repository once, for whichever
/// application needs it first, and what it is told never changes.
fn learn_commits(case: &mut Case, among: &[Case]) {
    for other in among.iter().filter(|other| other.name != case.name) {
        let asks = |call: &&CallLine| call.path.contains("/revisions/") && call.status == 200;
        for call in other.calls.iter().filter(asks) {
            let Some(body) = other.bodies.get(&call.body) else { continue };
            // Two cases may name different answers alike.
            let name = format!("{}/{}", other.name, call.body);
            case.bodies.insert(name.clone(), body.clone());
            case.calls.push(CallLine { body: name, ..call.clone() });
        }
    }
}

impl Play<'_> {
    async fn all(&mut self, player: &mut Player, applications: &[String]) -> anyhow::Result<()> {
        while let Some(application) = player.whose()? {
            self.second_look(player, &application).await?;
            player.step(&self.simulation.kube)?;
            self.played += 1;
            self.idle().await?;
        }
        for application in applications {
            self.second_look(player, application).await?;
        }
        let settled = |status: &Status| status.total.idle() && status.total.owed == 0;
        let deadline = Instant::now() + PATIENCE;
        while !settled(&self.reporter.status().await?) && Instant::now() < deadline {
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until the reporter has taken in every event that was played and is done with it.
    async fn idle(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let total = self.reporter.status().await?.total;
            let taken_in = (total.observed + self.hidden).saturating_sub(total.reads);
            if total.idle() && taken_in >= self.played {
                return Ok(());
            }
            if total.idle() && began.elapsed() > HIDDEN {
                self.hidden += self.played - taken_in;
                return Ok(());
            }
            if began.elapsed() > SOON {
                bail!("the reporter is not done with an event after {SOON:?}: {total:?}");
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until the reporter has looked at the state of an application as often as the recorded one.
    async fn second_look(&mut self, player: &Player, application: &str) -> anyhow::Result<()> {
        let recorded = player.recorded();
        let deadline = Instant::now() + PATIENCE;
        while recorded.lacks_tree(application) && Instant::now() < deadline {
            let total = self.reporter.status().await?.total;
            if total.idle() && total.owed == 0 {
                break;
            }
            sleep(LOOK).await;
        }
        self.idle().await
    }
}

/// What the oracle has against the reports: facts of the cluster that the last of them do not show, and their order.
fn problems(case: &Case, simulation: &Simulation) -> anyhow::Result<Vec<String>> {
    let mut expected = oracle::expected(case)?;
    // That a life is over is worth a report only if somebody heard of it.
    let reported = super::lives(case);
    expected.retain(|expected| {
        let over = expected.facts.get("deleted") == Some(&Value::Bool(true));
        let uid = expected.facts.get("uid").and_then(Value::as_str).unwrap_or_default();
        !over || reported.contains(uid)
    });
    let mut problems: Vec<String> = oracle::check(&expected, &simulation.platform.last())
        .iter()
        .map(|difference| format!("not as the cluster was: {difference}"))
        .collect();
    let kept = simulation.platform.kept();
    let applications: Vec<Kept> =
        kept.into_iter().filter(|report| report.entity.resource.is_none()).collect();
    problems.extend(oracle::order(&applications).iter().map(|late| format!("not in order: {late}")));
    let totals = simulation.platform.totals();
    if totals.out_of_order + totals.malformed + totals.without_key > 0 {
        problems.push(format!(
            "{} reports out of order, {} malformed, {} without a key",
            totals.out_of_order, totals.malformed, totals.without_key
        ));
    }
    Ok(problems)
}
