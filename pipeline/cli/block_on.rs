//! What a command waits in that asks somebody: one thread.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// A runtime of one thread, in a process that speaks TLS.
///
/// # Errors
/// When the system gives none.
pub(crate) fn single_thread() -> anyhow::Result<Runtime> {
    stages_client::install_crypto();
    Builder::new_current_thread().enable_all().build().context("start the runtime")
}

/// Answers, and waits for nothing that still goes on then. Whoever reads no further has read enough.
///
/// # Errors
/// Whatever kept it from an answer.
pub(crate) fn block_on(answer: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = single_thread()?;
    let done = runtime.block_on(answer);
    runtime.shutdown_background();
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
