//! The commands for people, which ask a platform that runs elsewhere: `stages/remote` has them.

use std::process::ExitCode;

use stages_remote::{Environment, RemoteCommand, RemoteError, RemoteGit};

use crate::config::{Variables, set};

/// Runs one of the commands, and says what kept it from being done.
pub(crate) fn run(command: &RemoteCommand, variables: &Variables) -> ExitCode {
    told(stages_remote::run(command, &environment(variables)))
}

/// The same, of Git providers and people's tokens there.
pub(super) fn run_git(command: &RemoteGit, variables: &Variables) -> ExitCode {
    told(stages_remote::run_git(command, &environment(variables)))
}

fn told(done: Result<u8, RemoteError>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            crate::fail(error.told());
            ExitCode::from(error.code())
        }
    }
}

/// What the environment says to these commands.
pub(crate) fn environment(variables: &Variables) -> Environment {
    Environment::of(|name| set(variables, name).map(str::to_owned))
}
