//! `loadtest sim`: the simulators in the foreground.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pipeline_core::Peer;
use tokio::signal::unix::{SignalKind, signal};

use super::fault::Rule;
use super::generate::{Line, Mix, Shape};
use super::simulation::{Load, Setup, Simulation};
use crate::recordings;

/// Arguments of `loadtest sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    load: LoadArgs,
    /// Port of the Kubernetes API
    #[arg(long, default_value_t = 0)]
    kube_port: u16,
    /// Port of Argo CD
    #[arg(long, default_value_t = 0)]
    argocd_port: u16,
    /// Port of the platform
    #[arg(long, default_value_t = 0)]
    platform_port: u16,
    /// Argo CD answers so many milliseconds later
    #[arg(long, default_value_t = 20)]
    argocd_latency: u64,
    /// The platform answers so many milliseconds later
    #[arg(long, default_value_t = 5)]
    platform_latency: u64,
    /// A rule that spoils answers: `PEER=RULE`, with PEER kube, argocd or platform and RULE as JSON, e.g.
    /// `platform={"fault":{"status":{"status":503}},"rate":0.1}`
    #[arg(long = "fault", value_name = "PEER=RULE")]
    faults: Vec<String>,
    /// Write the stream of reports into this file
    #[arg(long)]
    reports: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct LoadArgs {
    /// Replay recordings: a packed set, or a folder of cases
    #[arg(long, conflicts_with = "apps")]
    recordings: Option<String>,
    /// Replay so many times as fast as it was recorded; 0 without pauses
    #[arg(long, default_value_t = 10.0)]
    speed: f64,
    /// Generate so many applications
    #[arg(long, default_value_t = 100)]
    apps: u32,
    /// Resources of a generated application
    #[arg(long, default_value_t = 10)]
    resources: u32,
    /// Changes a second to generated applications
    #[arg(long, default_value_t = 1)]
    changes: u32,
    /// Which Argo CD answers about generated applications
    #[arg(long, value_enum, default_value = "v3")]
    line: Line,
    /// Decides everything that looks random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl LoadArgs {
    fn load(&self) -> anyhow::Result<Load> {
        let Some(set) = &self.recordings else {
            return Ok(Load::Generated(Shape {
                applications: self.apps,
                resources: self.resources,
                line: self.line,
                seed: self.seed,
                ..Shape::default()
            }));
        };
        let packed = recordings::SETS.iter().any(|(name, _)| name == set);
        let cases = if packed { recordings::packed(set)? } else { recordings::load_dir(set.as_ref())? };
        Ok(Load::Recording(cases))
    }
}

/// Runs `loadtest sim` until it is interrupted.
///
/// # Errors
/// When the simulators cannot be started or the load cannot be played.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the answer of a command")]
async fn serve(args: &Args) -> anyhow::Result<()> {
    let mut simulation = Simulation::start(Setup {
        load: args.load.load()?,
        ports: [args.kube_port, args.argocd_port, args.platform_port],
        argocd_latency: Duration::from_millis(args.argocd_latency),
        platform_latency: Duration::from_millis(args.platform_latency),
        ..Setup::default()
    })
    .await?;
    for text in &args.faults {
        let (peer, rule) = fault(text)?;
        let faults = match peer {
            Peer::Kubernetes => simulation.kube.faults(),
            Peer::ArgoCd => simulation.argocd.faults(),
            Peer::Platform => simulation.platform.faults(),
        };
        faults.add(rule);
    }
    if let Some(path) = &args.reports {
        simulation.platform.write_to(path).await?;
    }
    println!("Kubernetes API  {}", simulation.kube.url());
    println!("Argo CD         {}", simulation.argocd.url());
    println!("platform        {}", simulation.platform.url());
    println!("\nPoint the runtime at them, in another terminal:\n");
    for (name, value) in simulation.environment(&serde_json::json!({}))? {
        println!("  export {name}={value}");
    }
    println!("  gitops-runtime reporter\n\nEnd with Ctrl-C.");
    let played = play(&mut simulation, &args.load);
    tokio::select! {
        played = played => played?,
        interrupted = interrupted() => interrupted?,
    }
    let totals = simulation.platform.totals();
    println!(
        "{} reports of applications, {} of resources, {} duplicates, {} out of order; {} Argo CD calls",
        totals.applications,
        totals.resources,
        totals.duplicates,
        totals.out_of_order,
        simulation.argocd.calls()
    );
    simulation.stop().await
}

/// Plays the load; ends only with an error.
async fn play(simulation: &mut Simulation, load: &LoadArgs) -> anyhow::Result<()> {
    if let Some(player) = &mut simulation.player {
        player.play(&simulation.kube, load.speed, Duration::from_secs(5)).await?;
    }
    simulation.populate()?;
    let mut chance = fastrand::Rng::with_seed(load.seed);
    let Some(pause) = Duration::from_secs(1).checked_div(load.changes) else {
        return std::future::pending().await;
    };
    let mut tick = tokio::time::interval(pause);
    loop {
        tick.tick().await;
        if simulation.change(Mix::default(), &mut chance)?.is_none() {
            return std::future::pending().await;
        }
    }
}

/// Reads `PEER=RULE`.
fn fault(text: &str) -> anyhow::Result<(Peer, Rule)> {
    let (peer, rule) = text.split_once('=').context("read --fault: it is PEER=RULE")?;
    let peer = match peer {
        "kube" => Peer::Kubernetes,
        "argocd" => Peer::ArgoCd,
        "platform" => Peer::Platform,
        _ => bail!("read --fault: there is no peer {peer}, only kube, argocd and platform"),
    };
    Ok((peer, serde_json::from_str(rule).context("read the rule of --fault")?))
}

/// Ends when the process is asked to end.
async fn interrupted() -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("wait for the interruption")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("wait for the interruption"),
        _ = terminated.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::fault::Fault;

    #[test]
    fn faults_are_read_or_refused() {
        let (peer, rule) = fault(r#"argocd={"fault":"hang","times":2}"#).unwrap();
        assert_eq!((peer, rule), (Peer::ArgoCd, Rule::always(Fault::Hang).times(2)));
        for (text, message) in [
            ("hang", "read --fault: it is PEER=RULE"),
            ("git={}", "read --fault: there is no peer git, only kube, argocd and platform"),
            ("kube={}", "read the rule of --fault: missing field `fault` at line 1 column 2"),
        ] {
            assert_eq!(format!("{:#}", fault(text).unwrap_err()), message);
        }
    }
}
