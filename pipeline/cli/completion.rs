//! `gitops-runtime completion`: what makes a shell complete commands, flags and names; and the answers while it does.
//!
//! takes: a shell's name - gives: a script that the shell reads, which asks this program at each press of the key
//! calls: the platform that somebody is signed in to, for the names of runtimes and applications, for a moment at most

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::Shells;

use super::{Cli, print};
use crate::config::{Variables, set};

/// The variable by which a shell asks to have a line completed.
const VARIABLE: &str = "GITOPS_RUNTIME_COMPLETE";
const PROGRAM: &str = "gitops-runtime";

/// A shell that completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// Prints the script that makes a shell complete.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let shells = Shells::builtins();
    let shell = shells.completer(name).context("there is no such shell")?;
    let mut script = Vec::new();
    let own = completer();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, &own, &mut script).context("write the script")?;
    print(&String::from_utf8(script).context("write the script")?)?;
    Ok(ExitCode::SUCCESS)
}

/// The program that the script calls: this one, by an absolute path where it was called by a path.
fn completer() -> String {
    let own = std::env::args_os().next().unwrap_or_else(|| PROGRAM.into());
    let own = Path::new(&own);
    let own = if own.components().count() > 1 { std::path::absolute(own).ok() } else { None };
    own.map_or_else(|| PROGRAM.to_owned(), |own| own.display().to_string())
}

/// Answers a shell that asks to have a line completed, and ends the process; does nothing if no shell asked.
pub(crate) fn answer(variables: &Variables) {
    if set(variables, VARIABLE).is_none() {
        return;
    }
    stages_remote::complete_with(super::remote::environment(variables));
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}
