//! `loadtest bench` and `loadtest overload`: the real binary under generated load, measured beside the incumbent.
//!
//! takes: a number of applications, peers' latencies, a rate - gives: changes per second, calls per change,
//! latencies, memory, and beside each what was lost, repeated or out of order
//! calls: the binary, which it builds first; the simulators, in this process: both share the machine's cores -
//! fails: exit code 1 when anything was lost, repeated, out of order or wrong

mod cold;
mod drive;
pub mod overload;
mod result;
mod steady;
mod track;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::process;
use crate::reporter::{Reporter, Usage};
use crate::screen::say;
use crate::sim::generate::{Line, Shape};
use crate::sim::{Load, Setup, Simulation};
use drive::Driver;
pub use result::Measured;

const EXAMPLES: &str = "\
Examples:
  The table: 10,000 applications at start, then as many changes a second as it takes, then half of that:
    loadtest bench
  The same for tools, one JSON object:
    loadtest bench --json
  Smaller and shorter:
    loadtest bench --apps 500 --seconds 5
  At a rate of one's own, in open loop, with a slower Argo CD:
    loadtest bench --rate 200 --argocd-latency 80ms";

/// Arguments of `loadtest bench`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Applications that are there at the start
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub apps: u32,
    /// Resources of each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub resources: u32,
    /// How late Argo CD answers
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    pub argocd_latency: Duration,
    /// How late the platform answers
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration)]
    pub platform_latency: Duration,
    /// Seconds of each measured window; some before it are not measured
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Changes a second in open loop; `max` finds the maximum in closed loop and then takes half of it
    #[arg(long, value_name = "max|N", default_value = "max", value_parser = rate)]
    pub rate: Rate,
    /// Changes that are under way at once in closed loop, each of another application
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub outstanding: u32,
    /// Which Argo CD answers
    #[arg(long, value_enum, default_value = "v3")]
    pub line: Line,
    /// Decides everything that looks random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 also when a target is missed
    #[arg(long)]
    pub enforce: bool,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// How often applications change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As often as they are reported.
    Max,
    /// So many times a second, reported or not.
    PerSecond(f64),
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(Rate::PerSecond(rate)),
        _ => Err("a rate is `max`, or a number of changes a second above 0".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = text.parse::<jiff::SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    read.ok_or_else(|| "a time is written as 5ms, 20ms or 1s".to_owned())
}

/// Runs `loadtest bench`.
///
/// # Errors
/// When the binary cannot be built or started, or ends.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    until_interrupted(async {
        let measured = measure(args).await?;
        say(&if args.json { format!("{:#}", measured.json()) } else { measured.table() });
        let good = measured.is_correct() && (!args.enforce || measured.meets_targets());
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

pub(crate) fn until_interrupted(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        tokio::select! {
            done = work => done,
            () = interrupt.wait() => {
                say("interrupted");
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    })
}

/// Measures and gives what it found.
///
/// # Errors
/// As [`run`].
pub async fn measure(args: &Args) -> anyhow::Result<Measured> {
    let program = process::program(args.program.as_deref()).await?;
    let shape = Shape {
        applications: args.apps,
        resources: args.resources,
        line: args.line,
        seed: args.seed,
        ..Shape::default()
    };
    let simulation = Simulation::start(Setup {
        load: Load::Generated(shape),
        argocd_latency: args.argocd_latency,
        platform_latency: args.platform_latency,
        ..Setup::default()
    })
    .await?;
    simulation.populate()?;
    let reporter = Reporter::start(&program, &simulation, &json!({})).await?;
    let cold = cold::start(&simulation, &reporter, args.apps, args.resources).await?;
    let mut driver = Driver::new(&simulation, args.seed)?;
    let window = Duration::from_secs(args.seconds);
    let (maximum, rate) = match args.rate {
        Rate::Max => {
            let maximum = steady::closed(&mut driver, &reporter, args.outstanding, window).await?;
            let half = maximum.per_second() / 2.0;
            (Some(maximum), half)
        }
        Rate::PerSecond(rate) => (None, rate),
    };
    // Nothing can be timed where nothing was reported at all.
    let timed = steady::open(&mut driver, &reporter, rate.max(1.0), window).await?;
    let usage = reporter.usage()?;
    let totals = simulation.platform.totals();
    let wrong = driver.wrong();
    let measured = Measured {
        args: args.clone(),
        cold,
        maximum,
        timed,
        usage,
        own: Usage::own(),
        totals,
        repeated: driver.repeated(),
        wrong,
    };
    reporter.stop().await?;
    simulation.stop().await?;
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_read() {
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("-1s"), Err("a time is written as 5ms, 20ms or 1s".to_owned()));
        assert_eq!(duration("20"), Err("a time is written as 5ms, 20ms or 1s".to_owned()));
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("12.5"), Ok(Rate::PerSecond(12.5)));
        for bad in ["0", "-3", "fast", "NaN", "inf"] {
            let told = "a rate is `max`, or a number of changes a second above 0";
            assert_eq!(rate(bad), Err(told.to_owned()), "{bad}");
        }
    }
}
