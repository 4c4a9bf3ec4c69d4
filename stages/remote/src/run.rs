//! Runs a command.

use crate::arguments::{Command, RemoteCommand, RemoteGit};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::show::Screen;
use crate::{app, context, git, login, rollout, runtime, seal, workflow};

/// Runs a command; gives its exit code.
///
/// # Errors
/// [`RemoteError`], which says what to do next and what the exit code is.
pub fn run(command: &RemoteCommand, environment: &Environment) -> Result<u8, RemoteError> {
    let screen = Screen::new(environment);
    to_its_end(async {
        match &command.0 {
            Command::Login(login) => Box::pin(login::run(login, &screen, environment)).await.map(|()| 0),
            Command::Context(command) => context::run(command, &screen, environment).map(|()| 0),
            Command::Runtime(command) => {
                Box::pin(runtime::run(command, &screen, environment)).await.map(|()| 0)
            }
            Command::Rollout(command) => {
                Box::pin(rollout::run(command, &screen, environment)).await.map(|()| 0)
            }
            Command::Workflow(command) => {
                Box::pin(workflow::run(command, &screen, environment)).await.map(|()| 0)
            }
            Command::Seal(given) => Box::pin(seal::run(given, &screen, environment)).await.map(|()| 0),
            Command::App(command) => Box::pin(app::run(command, &screen, environment)).await,
        }
    })
}

/// As [`run`], of integrations with Git providers, and tokens there.
///
/// # Errors
/// As [`run`].
pub fn run_git(command: &RemoteGit, environment: &Environment) -> Result<u8, RemoteError> {
    let screen = Screen::new(environment);
    to_its_end(async { git::run(&command.0, &screen, environment).await.map(|()| 0) })
}

fn to_its_end(doing: impl Future<Output = Result<u8, RemoteError>>) -> Result<u8, RemoteError> {
    stages_client::install_crypto();
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tokio = built.map_err(|error| RemoteError::Terminal("start the runtime", error))?;
    let done = tokio.block_on(doing);
    // What still blocks does not keep the process from ending.
    tokio.shutdown_background();
    match done {
        Err(error) if error.is_enough() => Ok(0),
        done => done,
    }
}
