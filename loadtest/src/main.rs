//! `loadtest`: simulators, replay, demo and benchmarks for the GitOps runtime.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "loadtest", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the real binary against recorded traffic and shows what it does
    Demo(loadtest::demo::Args),
    /// Measures the real binary, or any reporter, under generated load
    Bench(loadtest_bench::Args),
    /// Breaks the real binary and its peers, and judges what the platform was told
    Faults(loadtest::faults::Args),
    /// Breaks replicas of the real binary and the NATS server between them, and judges what the platform was told
    Replicas(loadtest::replicas::Args),
    /// Runs every suite in its long form
    Full(loadtest::full::Args),
    /// Runs a real Kubernetes API server and a real Argo CD, and the real binary against them
    Cluster(loadtest_cluster::Args),
    /// Installs the chart on a real node, and judges what its pods report
    Install(loadtest_install::Args),
    /// Measures the tunnel beside a direct connection and others' tunnels
    Tunnel(loadtest_bench::tunnel::Args),
    /// Measures the router: an event stream, large bodies, thousands of connections
    Router(loadtest_bench::router::Args),
    /// Kills and replaces what visitors come through, and says for how long they were not led
    Entrance(loadtest_bench::entrance::Args),
    /// Replays recorded rounds through the product's own code and compares the reports
    Replay(loadtest::replay::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Demo(args) => loadtest::demo::run(&args),
        Command::Bench(args) => loadtest_bench::run(&args),
        Command::Faults(args) => loadtest::faults::run(&args),
        Command::Replicas(args) => loadtest::replicas::run(&args),
        Command::Full(args) => loadtest::full::run(&args),
        Command::Cluster(args) => loadtest_cluster::run(&args),
        Command::Install(args) => loadtest_install::run(&args),
        Command::Tunnel(args) => loadtest_bench::tunnel::run(&args),
        Command::Router(args) => loadtest_bench::router::run(&args),
        Command::Entrance(args) => loadtest_bench::entrance::run(&args),
        Command::Replay(args) => loadtest::replay::run(&args),
    }
}
