//! `loadtest demo`: the real binary against recorded traffic of a real cluster, before one's eyes.
//!
//! takes: recordings - gives: what is reported while it runs, a table by application at its end, the whole stream of
//! reports in a file, and the platform that keeps and shows them
//! calls: the binary, which it builds first, as reporter and as platform; the simulators - fails: exit code 1 when an application was not
//! reported, or the last report of anything is not what the recording ends with

mod fleet;
mod outcome;
mod platform;
mod story;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use loadtest_judge::interrupt::{INTERRUPTED, Interrupt};
use loadtest_judge::oracle::{self, Expected};
use loadtest_judge::screen::{judged, say};
use loadtest_sim::platform::Keep;
use loadtest_sim::platform_process::PlatformProcess;
use loadtest_sim::recordings::{self, Case};
use loadtest_sim::reporter::Reporter;
use loadtest_sim::{Load, Setup, Simulation, process};
use serde_json::json;

use fleet::Fleet;
pub use outcome::Outcome;
use story::Story;

const EXAMPLES: &str = "\
Examples:
All recordings of the incumbent's Argo CD, with an outage in the middle:
  loadtest demo
Those of Argo CD 3.2, slower, the stream of reports in a folder of yours:
  loadtest demo --recordings argocd-3.2 --speed 5 --out reports
Leave everything up to look at (end with Ctrl-C):
  loadtest demo --keep-running";

/// What the recorded runtime is called on the platform.
const RUNTIME: &str = "recorded";
/// Reports that are kept to look at their order; recordings make some hundreds.
const KEPT: usize = 20_000;

/// Arguments of `loadtest demo`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recordings to play: a packed set, or a folder of cases of one cluster
    #[arg(long, value_name = "SET|DIR", default_value = "incumbent-2.12")]
    pub recordings: String,
    /// Play so many times as fast as it was recorded, with pauses of at most a second
    #[arg(long, value_name = "X", default_value_t = 30.0)]
    pub speed: f64,
    /// Write the stream of reports into this folder; without it, into a new one under the temporary directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Leave all of it up at the end, until Ctrl-C, beside a second runtime whose 300 applications move
    #[arg(long)]
    pub keep_running: bool,
    /// No outage in the middle
    #[arg(long)]
    pub no_fault: bool,
    /// Events that one shard's queue holds, in place of the reporter's default. With few, such as 10, an outage
    /// fills the queues and states are coalesced; an application that comes and goes meanwhile may never be seen
    #[arg(long, value_name = "EVENTS")]
    pub queue: Option<u32>,
    /// How many seconds the last report may be waited for; a fact that could not be had is asked for again after
    /// a minute
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    pub patience: u64,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// Runs `loadtest demo`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let outcome = runtime.block_on(demo(args))?;
    Ok(match outcome {
        Some(outcome) if outcome.is_good() => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::from(INTERRUPTED),
    })
}

/// Runs it to its end; what it found was printed. `None` when it was interrupted before.
pub async fn demo(args: &Args) -> anyhow::Result<Option<Outcome>> {
    let mut interrupt = Interrupt::listen()?;
    let cases = cases(&args.recordings)?;
    let mut expected: Vec<Expected> = Vec::new();
    for case in &cases {
        expected.extend(oracle::expected(case)?);
    }
    if args.program.is_none() {
        say("building gitops-runtime");
    }
    let program = process::program(args.program.as_deref()).await?;
    let folder = folder(args.out.as_deref())?;
    let reports = folder.join("reports.ndjson");
    let platform = PlatformProcess::start(&program, &folder).await?;
    let token = platform.token(RUNTIME).await?;
    let mut simulation = Simulation::start(Setup {
        load: Load::Recording(cases),
        argocd_latency: story::LATENCY,
        platform_latency: Duration::from_millis(5),
        keep: Keep { last: true, reports: KEPT },
        ..Setup::default()
    })
    .await?;
    simulation.platform.write_to(&reports).await?;
    // What is judged stands in between, and is what fails.
    simulation.platform.pass_on(platform.url(), &token)?;
    let player = simulation.player.take().context("there is nothing to play")?;
    let mut more = json!({"reporter": {"lanes": {"retry": {"min": "250ms", "max": "2s"}}}});
    if let Some(events) = args.queue {
        more["reporter"]["queue"] = json!({"events": events});
    }
    let reporter = Reporter::start(&program, &simulation, &more).await?;
    say(&format!(
        "playing {} watch events of {}, {} times as fast as they were recorded, against the real binary",
        player.remaining(),
        args.recordings,
        args.speed
    ));
    for (name, url) in [
        ("gitops-runtime", reporter.url().to_owned()),
        ("Kubernetes API", simulation.kube.url()),
        ("Argo CD", simulation.argocd.url()),
        ("platform", platform.url().to_owned()),
    ] {
        say(&format!("  {name:<15} {url}"));
    }

    let story = Story {
        simulation: &simulation,
        reporter: &reporter,
        expected: &expected,
        args,
        platform: (&platform, &token),
    };
    let outcome = tokio::select! {
        outcome = story.tell(player) => Some(outcome?),
        () = interrupt.wait() => None,
    };
    simulation.platform.close_file().await?;
    match &outcome {
        Some(outcome) => {
            say(&outcome.text());
            say(&format!("all reports: {}", reports.display()));
            say(&judged(&outcome.line(), outcome.is_good()));
        }
        None => say(&format!("interrupted; reports so far: {}", reports.display())),
    }
    if args.keep_running && outcome.is_some() {
        say("starting a second runtime");
        let fleet = Fleet::start(&program, &platform).await?;
        let link = platform::first_link(&platform);
        tokio::select! {
            ended = stay(&simulation, &reporter, &link) => ended?,
            ended = fleet.moves() => ended?,
            () = interrupt.wait() => {}
        }
        fleet.stop().await?;
    }
    reporter.stop().await?;
    simulation.stop().await?;
    let again = platform.again();
    platform.stop().await?;
    say(&format!("see what the platform kept: {again}"));
    Ok(outcome)
}

/// The cases of a packed set or of a folder.
fn cases(set: &str) -> anyhow::Result<Vec<Case>> {
    let packed = recordings::SETS.iter().any(|(name, _)| *name == set);
    if packed { recordings::packed(set) } else { recordings::load_dir(set.as_ref()) }
}

/// Where the stream of reports goes; it stays when the demo has ended.
fn folder(out: Option<&Path>) -> anyhow::Result<PathBuf> {
    match out {
        Some(out) => {
            std::fs::create_dir_all(out).with_context(|| format!("make folder {}", out.display()))?;
            Ok(out.to_path_buf())
        }
        None => {
            let made = tempfile::Builder::new().prefix("gitops-runtime-demo-").tempdir();
            Ok(made.context("make a folder for the reports")?.keep())
        }
    }
}

async fn stay(simulation: &Simulation, reporter: &Reporter, link: &str) -> anyhow::Result<()> {
    say("\nStill running; end with Ctrl-C. Make an account and look, within 15 minutes:");
    say(&format!("  {link}"));
    say("and at the reporter:");
    for page in ["/healthz?full=true", "/status", "/metrics", "/app-distribution?shardings=jump:6"] {
        say(&format!("  {}{page}", reporter.url()));
    }
    say(&format!("  KUBECONFIG={}", simulation.directory().join("kubeconfig").display()));
    let mut look = tokio::time::interval(Duration::from_secs(1));
    loop {
        look.tick().await;
        reporter.usage()?;
    }
}
