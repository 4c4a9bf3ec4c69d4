//! The `gitops-runtime` binary: reads the command line and the settings, runs one role or asks a
//! running one, and says by its exit code how that went.

mod app;
mod ask;
mod cli;
mod config;

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let variables = config::variables();
    match cli::Cli::read(&variables) {
        cli::Command::Ask(ask) => match ask::run(&ask, &variables) {
            Ok(code) => code,
            Err(error) => fail(format!("gitops-runtime: {error:#}")),
        },
        cli::Command::Config(command) => config::run(&command, &variables),
        cli::Command::Rbac(command) => match app::rbac(&command, &variables) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(format!("{error:#}")),
        },
        cli::Command::Reporter(settings) => match config::Config::load(&settings.given(), &variables) {
            Ok(loaded) => match app::reporter(loaded) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(format!("gitops-runtime: {error:#}")),
            },
            Err(problems) => fail(problems),
        },
    }
}

fn fail(why: impl Display) -> ExitCode {
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{why}");
    ExitCode::FAILURE
}
