//! `loadtest cluster monorepo`: ten applications of one repository are synced to commits, a merge and an octopus merge, by
//! upstream's Argo CD; reporter, source server and change revision run beside it, each as an account with exactly the rights that
//! it prints. One of the applications is made by an ApplicationSet, whose controller keeps the annotations first, and then does
//! not.
//!
//! takes: nothing - gives: a line for each round, what the rights were used for, what is wrong, and one last line
//! calls: the cluster, which it starts and ends; the binary as three processes, of which one is killed - fails: exit code 1
//! unless every report carries the file in Git, the version and the commits that changed its application, every application is
//! annotated with them, once for each sync, the annotations are gone once the ApplicationSet controller is not told to keep them,
//! what changed an application is reported all the same then, and no account asked for more than it may, or may more than it needs (but for what only a full queue needs)

mod applications;
mod roles;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::time::Instant;

use self::applications::{ANNOTATIONS, APPLICATIONS, Expected, Fleet};
use self::roles::Roles;
use super::objects::Objects;
use super::{Cluster, Ground, Options};
use loadtest_judge::interrupt;
use loadtest_judge::screen::say;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::{PATIENCE, until};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
const PLATFORM_TOKEN: &str = "cluster-platform-token";

pub(super) fn run(ground: &Ground) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(ground.play("monorepo", async |program, folder| played(ground, program, folder).await))
}

/// What is wrong in the end.
async fn played(ground: &Ground, program: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
    let cluster = Cluster::start(&Options {
        binaries: ground.binaries.clone(),
        directory: Some(folder.join("cluster")),
        ..Options::default()
    })
    .await?;
    let platform = PlatformSim::start(platform::Config {
        token: Some(PLATFORM_TOKEN.to_owned()),
        keep: Keep { last: true, reports: 0 },
        ..platform::Config::default()
    })
    .await?;
    let fleet = Fleet::make(&cluster).await?;
    let keeping = cluster.application_sets(&ANNOTATIONS).await?;
    let mut roles =
        Roles::start(program, &cluster, (&platform.url(), PLATFORM_TOKEN), fleet.url(), folder).await?;
    let mut wrong = Vec::new();

    let first = fleet.first().await?;
    fleet.sync(&cluster, &first.revision).await?;
    wrong.extend(settled("ten applications", &cluster, &platform, &fleet, &first).await?);

    let merged = fleet.merge(&first).await?;
    fleet.sync(&cluster, &merged.revision).await?;
    wrong.extend(settled("a merge", &cluster, &platform, &fleet, &merged).await?);

    roles.kill_changes().await?;
    let octopus = fleet.octopus(&merged).await?;
    fleet.sync(&cluster, &octopus.revision).await?;
    roles.start_changes().await?;
    wrong.extend(
        settled("an octopus merge while nobody looked", &cluster, &platform, &fleet, &octopus).await?,
    );

    keeping.kill().await?;
    let forgetting = cluster.application_sets(&[]).await?;
    wrong.extend(lost("an ApplicationSet controller that keeps nothing", &cluster, &fleet).await?);
    let changed = fleet.change_generated().await?;
    fleet.sync_generated(&cluster, &changed).await?;
    // What is told was written before.
    roles.told(&fleet.generated(), &changed).await?;
    wrong.extend(lost("what was written beside it", &cluster, &fleet).await?);
    wrong.extend(asked(&platform, &fleet, &changed).await?);
    forgetting.kill().await?;

    // The kill may have one written once more of each application.
    let syncs = 3 * APPLICATIONS + 1;
    wrong.extend(roles.stop(&cluster, (syncs, APPLICATIONS)).await?);
    cluster.stop().await?;
    Ok(wrong)
}

/// What differs once the report of an application that nothing is annotated with says what changed it, or the time is over.
async fn asked(platform: &PlatformSim, fleet: &Fleet, changed: &str) -> anyhow::Result<Option<String>> {
    let (began, wanted) = (Instant::now(), json!([changed]));
    let look = async || Ok(fleet.reported_changes(platform));
    let is = until(PATIENCE, LOOK, look, |is| *is == wanted).await?;
    let verdict = if is == wanted { "said" } else { "NOT SAID" };
    say(&format!("changes that Git was asked for: {verdict} after {:.1} s", began.elapsed().as_secs_f64()));
    Ok((is != wanted).then(|| format!("changes that Git was asked for are {is}, expected {wanted}")))
}

/// Which annotations are still there once none is, or the time is over.
async fn lost(round: &str, cluster: &Cluster, fleet: &Fleet) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let objects = Objects::new(cluster.control.client());
    let kept = until(PATIENCE, LOOK, async || fleet.kept(&objects).await, Vec::is_empty).await?;
    let verdict = if kept.is_empty() { "gone" } else { "STILL THERE" };
    say(&format!("{round}: annotations {verdict} after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(kept.into_iter().map(|key| format!("{round}: {key} is still there")).collect())
}

/// What differs from what is expected once nothing does, or the time is over.
async fn settled(
    round: &str,
    cluster: &Cluster,
    platform: &PlatformSim,
    fleet: &Fleet,
    expected: &Expected,
) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let objects = Objects::new(cluster.control.client());
    let look =
        async || fleet.differences(&objects, platform, expected).await.context("look at what was said");
    let differences = until(PATIENCE, LOOK, look, Vec::is_empty).await?;
    let verdict = if differences.is_empty() { "as it is" } else { "WRONG" };
    say(&format!("{round}: said {verdict} after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(differences.into_iter().map(|what| format!("{round}: {what}")).collect())
}
