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
    /// Replays recorded rounds through the product's own code and compares the reports
    Replay(loadtest::replay::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Replay(args) => loadtest::replay::run(&args),
    }
}
