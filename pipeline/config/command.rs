//! `gitops-runtime config print|check|schema`.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use super::catalogue::Catalogue;
use super::environment::Variables;
use super::host::Host;
use super::layers::Layers;
use super::{Config, Given, Problems, print};
use crate::cli::ConfigCommand;
use crate::cli::ask::complain;

/// Runs one of the commands: 0 when all is well, 1 when something is wrong with the settings.
pub(crate) fn run(command: &ConfigCommand, variables: &Variables) -> ExitCode {
    let done = match command {
        ConfigCommand::Print { given } => self::print(&given.given(), variables),
        ConfigCommand::Check { file: Some(file), .. } => check_file(file),
        ConfigCommand::Check { file: None, given } => check(&given.given(), variables),
        ConfigCommand::Schema => schema(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("write to standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints what would be effective; on standard error what would be refused.
fn print(given: &Given, variables: &Variables) -> io::Result<bool> {
    let mut layers = Config::lay(given, variables);
    let text = print::yaml(&layers);
    io::stdout().lock().write_all(text.as_bytes())?;
    match Config::resolve(&mut layers, &Host::read(variables)).map_err(Problems::without_missing) {
        Err(problems) if !problems.is_empty() => refuse(&problems),
        _ => Ok(true),
    }
}

/// Checks what this process would start with.
fn check(given: &Given, variables: &Variables) -> io::Result<bool> {
    match Config::load(given, variables) {
        Ok(loaded) => {
            let mut out = io::stdout().lock();
            for ignored in &loaded.ignored {
                writeln!(out, "config: {} is not needed: {}", ignored.name, ignored.why)?;
            }
            writeln!(out, "config: ok")?;
            Ok(true)
        }
        Err(problems) => refuse(&problems),
    }
}

/// Checks a file alone: what the environment may still give is not missed.
fn check_file(file: &Path) -> io::Result<bool> {
    let mut layers = Layers::default();
    let name = file.display().to_string();
    layers.file(file);
    match Config::resolve(&mut layers, &Host::default()).map_err(Problems::without_missing) {
        Err(problems) if !problems.is_empty() => refuse(&problems),
        _ => {
            writeln!(io::stdout().lock(), "config: {name}: ok")?;
            Ok(true)
        }
    }
}

fn schema() -> io::Result<bool> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &Catalogue::get().schema())?;
    writeln!(out)?;
    Ok(true)
}

fn refuse(problems: &Problems) -> io::Result<bool> {
    writeln!(io::stderr().lock(), "{problems}")?;
    Ok(false)
}
