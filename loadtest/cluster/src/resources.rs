//! `loadtest cluster resources`: Rollouts, AnalysisRuns, Workflows and CronWorkflows go through what can happen to them, under
//! their real controllers; the resource reporter, with exactly the rights that it prints, is killed and started meanwhile.
//!
//! takes: nothing - gives: a line for each step of the story, how much was judged, what the rights were used for, what is wrong
//! calls: a control plane, the controllers and the binary, which it starts and ends - fails: exit code 1 unless every phase and
//! step that the API server showed was reported, in its order, under one key each, and no right was missing or is one too many

mod oracle;
mod play;
mod reporter;
mod story;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use axum::Json;
use axum::Router;
use axum::routing::get;
use serde_json::json;
use tokio::time::Instant;

use self::oracle::{Oracle, reports};
use self::play::Player;
use self::reporter::Reporter;
use self::story::Step;
use super::argo::Controller;
use super::binaries::Binaries;
use super::control::Control;
use super::objects::Objects;
use super::progress::Progress;
use loadtest_judge::screen::say;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::server::serve;
use loadtest_sim::until;

/// Where everything of the story is.
const NAMESPACE: &str = "shop";
/// How long what is missing may take to be reported once the story is over.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
const PLATFORM_TOKEN: &str = "cluster-platform-token";
/// Reports that are kept: the story makes some hundreds.
const KEPT: usize = 100_000;
/// Bytes from which on the controller packs what a Workflow says of its nodes.
const LARGE_WORKFLOW: u32 = 6_000;
/// What the story begins with: Applications as they are written here, since Argo CD's own definition is large and nothing of it
/// matters, and one that owns what is made.
const GROUND: &str = include_str!("../resources/ground.yaml");
const STORY: &str = include_str!("../resources/story.yaml");

/// What is wrong in the end.
pub(super) async fn played(
    program: &Path,
    binaries: &Binaries,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let story = story::read(STORY)?;
    let part = async |name: &str| super::made(&folder.join(name)).await;
    let (plane, for_rollouts, for_workflows) =
        (part("control").await?, part("rollouts").await?, part("workflows").await?);
    let control = Box::pin(Control::start(binaries, &plane, None)).await?;
    let objects = Objects::new(control.client());
    let (rollouts, workflows, _) = futures::try_join!(
        Box::pin(Controller::rollouts(binaries, &control, &for_rollouts)),
        Box::pin(Controller::workflows(binaries, &control, &for_workflows, Some(LARGE_WORKFLOW))),
        Progress.step("application", objects.apply(GROUND, NAMESPACE)),
    )?;
    let config = platform::Config {
        token: Some(PLATFORM_TOKEN.to_owned()),
        keep: Keep { last: false, reports: KEPT },
        ..platform::Config::default()
    };
    let platform = PlatformSim::start(config).await?;
    let oracle = Oracle::start(&control.client(), NAMESPACE).await?;
    let mut reporter = Reporter::start(program, &control, (&platform.url(), PLATFORM_TOKEN), folder).await?;
    let player = Player::new(control.client(), NAMESPACE, failing_check().await?);
    let mut wrong = Vec::new();
    for (at, told) in story.iter().enumerate() {
        let began = Instant::now();
        let done = match &told.step {
            Step::Reporter(change) => reporter.change(*change).await,
            step => player.play(step).await,
        };
        done.with_context(|| format!("step {} of {}: {}", at + 1, story.len(), told.about))?;
        say(&format!(
            "{:>2}/{} {} ... {:.1} s",
            at + 1,
            story.len(),
            told.about,
            began.elapsed().as_secs_f64()
        ));
    }
    wrong.extend(judged(&oracle, &platform).await?);
    wrong.extend(platform.totals().wrong());
    wrong.extend(reporter.end(&control).await?);
    futures::try_join!(rollouts.kill(), workflows.kill())?;
    control.stop().await?;
    Ok(wrong)
}

/// What differs between what the API server showed and what was reported, once nothing does or the time is over.
async fn judged(oracle: &Oracle, platform: &PlatformSim) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let look = async || oracle.verdict(&reports(&platform.kept())?);
    let verdict = until(PATIENCE, LOOK, look, |verdict| verdict.wrong.is_empty()).await?;
    say(&format!("{verdict} after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(verdict.wrong)
}

/// The address of what an analysis asks, and is never content with.
async fn failing_check() -> anyhow::Result<String> {
    let router = Router::new().route("/", get(async || Json(json!({"healthy": false}))));
    let url = serve(router).await.context("listen for an analysis")?;
    Ok(format!("{url}/"))
}
