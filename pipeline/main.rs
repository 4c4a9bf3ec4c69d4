//! The `gitops-runtime` binary: reads the command line and the settings, runs one role or asks a
//! running one, and says by its exit code how that went.

mod app;
mod cli;
mod config;

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let variables = config::variables();
    cli::completion::answer(&variables);
    let done = match cli::Cli::read(&variables) {
        cli::Command::ReporterCommand(command) => cli::ask::run(&command, &variables),
        cli::Command::Remote(command) => return cli::remote::run(&command, &variables),
        cli::Command::BusCommands(command) => cli::bus::run(&command, &variables),
        cli::Command::Config(command) => return config::run(&command, &variables),
        cli::Command::Validate(given) => cli::values::validate(&given),
        cli::Command::Values(command) => cli::values::convert(&command),
        cli::Command::Crds(command) => cli::crds::run(&command),
        cli::Command::Check(check) => cli::check::run(&check),
        cli::Command::Completion { shell } => cli::completion::run(shell),
        cli::Command::Man { directory } => cli::man::run(&directory),
        cli::Command::Git(given) => cli::git::run(&given, &variables),
        cli::Command::Redact(given) => cli::redact::run(&given).map(|()| ExitCode::SUCCESS),
        cli::Command::Secrets(command) => app::secrets(command).map(|()| ExitCode::SUCCESS),
        cli::Command::Rbac(command) => match app::rbac(&command, &variables) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => return fail(told(&error)),
        },
        cli::Command::Router(given) => app::router(&given, &variables),
        cli::Command::AppProxy(given) => app::app_proxy(&given, &variables),
        cli::Command::SourceServer(given) => app::source_server(&given, &variables),
        cli::Command::TunnelServer(given) => app::tunnel_server(&given, &variables),
        cli::Command::TunnelClient(given) => app::tunnel_client(&given, &variables),
        cli::Command::Platform(given) => app::platform_command(&given, &variables),
        cli::Command::Schema(given) => app::schema(given.of).map(|()| ExitCode::SUCCESS),
        cli::Command::ResourceReporter(given) => {
            match config::Config::load_given(&given.given(), &variables) {
                Ok(config) => app::resource_reporter(config, given.dry_run()).map(|()| ExitCode::SUCCESS),
                Err(problems) => return fail(problems),
            }
        }
        cli::Command::ChangeRevision(settings) => {
            match config::Config::load_given(&settings.given(), &variables) {
                Ok(config) => app::change_revision(config).map(|()| ExitCode::SUCCESS),
                Err(problems) => return fail(problems),
            }
        }
        cli::Command::Reporter(settings) => match config::Config::load(&settings.given(), &variables) {
            Ok(loaded) => app::reporter(&loaded).map(|()| ExitCode::SUCCESS),
            Err(problems) => return fail(problems),
        },
    };
    done.unwrap_or_else(|error| fail(format!("gitops-runtime: {}", told(&error))))
}

/// An error and its causes on one line. Some say their cause themselves: it is said once.
fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn fail(why: impl Display) -> ExitCode {
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{why}");
    ExitCode::FAILURE
}
