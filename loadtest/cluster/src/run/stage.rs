//! Everything that a scenario needs, running: the cluster, the platform, who looks on, and the reporter.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde_json::json;
use tokio::process::Command;

use super::Outcome;
use super::restart::{Launch, Restart};
use super::verify;
use crate::argocd::ArgoCd;
use crate::audit;
use crate::objects::Objects;
use crate::oracle::{self, Judge, Witness};
use crate::platform::Platform;
use crate::play::Player;
use crate::role::write;
use crate::scenario::{Controller, Lifecycle, Scenario};
use crate::{Cluster, Options};
use loadtest_sim::command::printed;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::reporter::REDACTION_KEY;

/// The ServiceAccount of the reporter.
const ACCOUNT: &str = "event-reporter";
/// Reports that are kept to look for what should not be in them; all scenarios make some thousands.
const KEPT: usize = 100_000;
/// Events that a shard's queue holds: few, so that it overflows when the platform is away.
const QUEUE: u32 = 20;
/// So long nothing may change before a verdict counts.
const QUIET: Duration = Duration::from_millis(500);
/// How the values of the template's Secrets begin, those that a commit replaced included.
const CANARIES: [&str; 4] = ["canary-user-", "canary-password-", "canary-key-", "canary-token-"];
const PLATFORM_TOKEN: &str = "cluster-platform-token";

/// What is to run.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The folder of the cluster's programs, where it is not to be found out.
    pub binaries: Option<&'a Path>,
    /// The reporter.
    pub program: &'a Path,
    /// A folder for all state and all logs.
    pub directory: &'a Path,
    /// What will be played.
    pub scenarios: &'a [Scenario],
    /// With a real platform, which keeps and shows what is reported.
    pub on_platform: bool,
}

/// All of it, running.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub cluster: Cluster,
    /// The platform.
    pub platform: PlatformSim,
    /// The real one behind it, if it was asked for.
    behind: Option<Platform>,
    /// The token that the reporter has for either.
    token: String,
    /// Who looks on.
    pub witness: Witness,
    /// The reporter.
    pub reporter: Restart,
    /// When the API server was started again.
    pub starts: Vec<Timestamp>,
    /// What the reporter may do, as it was applied.
    rights: String,
    /// The tokens and the key that the reporter has, which must be in nothing that it says.
    secrets: Vec<String>,
}

/// What was found when all was over.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// What the reader wants to know.
    pub said: Vec<String>,
    /// What is wrong, a line each.
    pub wrong: Vec<String>,
}

impl Stage {
    /// Starts everything.
    pub async fn start(setup: &Setup<'_>) -> anyhow::Result<Self> {
        let needs = |controller| setup.scenarios.iter().any(|own| own.controllers.contains(&controller));
        let cluster = Cluster::start(&Options {
            binaries: setup.binaries.map(Path::to_path_buf),
            directory: Some(setup.directory.join("cluster")),
            rollouts: needs(Controller::Rollouts),
            workflows: needs(Controller::Workflows),
            node: false,
        })
        .await?;
        let platform = PlatformSim::start(platform::Config {
            token: Some(PLATFORM_TOKEN.to_owned()),
            keep: Keep { last: true, reports: KEPT },
            ..platform::Config::default()
        })
        .await?;
        let (behind, token) = if setup.on_platform {
            let (behind, token) =
                Platform::start(setup.program, &setup.directory.join("platform"), &platform).await?;
            (Some(behind), token)
        } else {
            (None, PLATFORM_TOKEN.to_owned())
        };
        let kubernetes = cluster.control.client();
        let witness = Witness::start(kubernetes.clone(), ArgoCd::NAMESPACE).await?;
        let rights = rights(setup.program).await?;
        Objects::new(kubernetes.clone()).apply(&rights, ArgoCd::NAMESPACE).await?;
        let (launch, secrets) = prepare(setup, &cluster, (&platform.url(), &token)).await?;
        let reporter = launch.begin().await?;
        Ok(Self { cluster, platform, behind, token, witness, reporter, starts: Vec::new(), rights, secrets })
    }

    /// Who plays scenarios.
    #[must_use]
    pub fn player(&self) -> Player<'_> {
        let kubernetes = self.cluster.control.client();
        Player {
            objects: Objects::new(kubernetes.clone()),
            kubernetes,
            argocd: self.cluster.argocd.client(),
            git: &self.cluster.git,
            platform: &self.platform,
            behind: self.behind.as_ref(),
        }
    }

    /// Who judges what was reported.
    pub fn judge(&self) -> anyhow::Result<Judge<'_>> {
        judge(&self.cluster, &self.platform, &self.witness)
    }

    /// Plays a scenario and judges it.
    pub async fn play(&self, scenario: &Scenario, patience: Duration) -> Outcome {
        let began = Instant::now();
        let lines =
            |error: anyhow::Error| format!("{error:#}").lines().map(str::to_owned).collect::<Vec<_>>();
        let mut wrong = self.play_and_judge(scenario, patience).await.err().map(lines).unwrap_or_default();
        if !wrong.is_empty() && scenario.alone {
            wrong.extend(self.restore().await.err().map(lines).unwrap_or_default());
        }
        let last = self.platform.last();
        let own = last.iter().filter(|(entity, _)| scenario.applications.contains(&entity.app_name));
        Outcome {
            name: scenario.name.clone(),
            took: began.elapsed(),
            reports: own.map(|(_, last)| last.reports).sum(),
            applications: scenario.applications.len(),
            wrong,
        }
    }

    /// Gives back what a scenario that failed has taken away, so that the next one fails only by its own fault.
    async fn restore(&self) -> anyhow::Result<()> {
        match &self.behind {
            Some(behind) => behind.back(&self.platform).await?,
            None => self.platform.up().await?,
        }
        if self.reporter.is_up().await { Ok(()) } else { self.reporter.change(Lifecycle::Start).await }
    }

    async fn play_and_judge(&self, scenario: &Scenario, patience: Duration) -> anyhow::Result<()> {
        let check = async |applications: &[String]| {
            let mut judge = self.judge()?;
            if let Some(behind) = &self.behind {
                judge.shown_by = Some(behind.door(&self.token).await?);
            }
            let differences = oracle::judge(&judge, applications, patience).await?;
            if differences.is_empty() {
                return Ok(());
            }
            bail!("the reports are wrong:\n{}", differences.join("\n"))
        };
        self.player().play(scenario, &check, async |step| self.reporter.change(step).await).await?;
        check(&scenario.applications).await.context("at the end")
    }

    /// Judges what no single scenario is about, and ends everything; `complete` says that every right must have been
    /// used.
    pub async fn end(self, complete: bool) -> anyhow::Result<End> {
        let Self { cluster, platform, behind, token: _, witness, reporter, starts, rights, secrets } = self;
        let mut end = End::default();
        let log = reporter.directory().join("reporter.log");
        // It is wanted most when something fails below.
        write(&log, &reporter.logged().await.join("\n")).await?;
        let status = reporter.running().await?.status().await?;
        for shard in status.shards.iter().filter(|shard| shard.balance() != 0) {
            end.wrong.push(format!("shard {} has lost or invented {} events", shard.shard, shard.balance()));
        }
        end.wrong.extend(platform.totals().wrong());
        if status.total.parked > 0 {
            end.wrong.push(format!("{} events were parked", status.total.parked));
        }
        if behind.is_some() {
            end.said.push(format!("the platform acknowledged {} reports", platform.totals().taken));
            end.wrong.extend(verify::until_clean(&reporter).await?);
        }
        reporter.change(Lifecycle::Stop).await?;
        write(&log, &reporter.logged().await.join("\n")).await?;
        let mut logs = vec![log];
        if let Some(behind) = behind {
            let log = behind.directory().join("platform.log");
            write(&log, &behind.stop().await?.join("\n")).await?;
            logs.push(log);
        }
        let mut judge = judge(&cluster, &platform, &witness)?;
        judge.canaries.extend(secrets);
        end.wrong.extend(
            oracle::judge_rest(&judge, &logs.iter().map(PathBuf::as_path).collect::<Vec<_>>()).await?,
        );
        let log = tokio::fs::read_to_string(cluster.control.audit_log()).await;
        let log = log.context("read the audit log")?;
        let (user, granted) = (audit::user(&rights)?, audit::granted(&rights)?);
        let verdict = audit::verdict_over_starts(&log, &user, &granted, &starts)?;
        end.said.push(format!("rights: {}", verdict.summary()));
        end.wrong.extend(verdict.wrong(|failure| !complete && failure.starts_with(audit::UNUSED)));
        cluster.stop().await?;
        Ok(end)
    }
}

fn judge<'a>(
    cluster: &Cluster,
    platform: &'a PlatformSim,
    witness: &'a Witness,
) -> anyhow::Result<Judge<'a>> {
    Ok(Judge {
        kubernetes: cluster.control.client(),
        argocd_url: cluster.argocd.url().to_owned(),
        argocd_token: cluster.argocd.token(ArgoCd::ADMIN)?,
        namespace: ArgoCd::NAMESPACE.to_owned(),
        witness,
        platform,
        shown_by: None,
        canaries: CANARIES.map(str::to_owned).to_vec(),
        quiet: QUIET,
    })
}

/// Writes the reporter's files; gives how it is started, and the tokens and the key that it has.
async fn prepare(
    setup: &Setup<'_>,
    cluster: &Cluster,
    (platform, platform_token): (&str, &str),
) -> anyhow::Result<(Launch, Vec<String>)> {
    let directory = setup.directory.join("reporter");
    let state = directory.join("state");
    tokio::fs::create_dir_all(&state).await.context("make a folder for the reporter")?;
    let path = |name: &str| directory.join(name).display().to_string();
    let token = cluster.control.account(ArgoCd::NAMESPACE, ACCOUNT).await?;
    cluster.control.kubeconfig(ACCOUNT, &token, &directory.join("kubeconfig")).await?;
    let files = [
        ("argocd-token", cluster.argocd.token(ArgoCd::REPORTER)?),
        ("platform-token", platform_token.to_owned()),
        ("redaction-key", REDACTION_KEY.to_owned()),
    ];
    for (name, text) in &files {
        write(&directory.join(name), text).await?;
    }
    let secrets = files.into_iter().map(|(_, text)| text).chain([token]).collect();
    let settings = json!({
        "kubernetes": {"kubeconfig": path("kubeconfig"), "namespace": ArgoCd::NAMESPACE},
        // Settings of Argo CD change while scenarios are played.
        "argocd": {"url": cluster.argocd.url(), "tokenFile": path("argocd-token"), "settingsInterval": "1s"},
        "platform": {"url": platform, "tokenFile": path("platform-token")},
        "state": {"directory": state.display().to_string()},
        "redaction": {"keyFile": path("redaction-key")},
        "serve": {"address": "127.0.0.1:0", "metricsAddress": ""},
        "reporter": {
            "sink": {"kind": "platform"},
            "queue": {"events": QUEUE},
            "lanes": {"retry": {"min": "250ms", "max": "2s"}},
            "ledger": {"storage": "file"},
        },
    });
    // JSON is YAML.
    write(&directory.join("config.yaml"), &format!("{settings:#}\n")).await?;
    let environment = vec![("GITOPS_RUNTIME_CONFIG".to_owned(), path("config.yaml"))];
    Ok((Launch { program: setup.program.to_path_buf(), environment, directory }, secrets))
}

/// The manifest of the rights that the program says it needs.
async fn rights(program: &Path) -> anyhow::Result<String> {
    let mut print = Command::new(program);
    print.args(["rbac", "print", "--role", "reporter", "--namespace", ArgoCd::NAMESPACE]);
    printed(print.env_clear(), "ask the reporter for the rights it needs").await
}
