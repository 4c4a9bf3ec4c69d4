//! The asynchronous runtime of commands, which has one thread.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// A runtime of one thread; TLS is set up for the process.
///
/// # Errors
/// If the runtime cannot be started.
pub(crate) fn single_thread() -> anyhow::Result<Runtime> {
    stages_client::install_crypto();
    Builder::new_current_thread().enable_all().build().context("start the runtime")
}

/// Runs a command to its end, without waiting for tasks that are left then. A broken pipe of standard output is no failure.
///
/// # Errors
/// The error of the command.
pub(crate) fn block_on(answer: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = single_thread()?;
    let done = runtime.block_on(answer);
    runtime.shutdown_background();
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

/// Follows something until Ctrl-C, which is no failure.
///
/// # Errors
/// The error of what is followed.
pub(crate) async fn until_interrupted(
    followed: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    tokio::select! {
        ended = followed => ended,
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
