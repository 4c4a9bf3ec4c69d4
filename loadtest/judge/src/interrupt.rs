//! Ctrl-C and SIGTERM: what runs is ended in order, and no process stays behind.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::screen::say;

/// The exit code of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Runs `judged` to its end on a runtime of its own, or until it is interrupted: the exit code tells whether all was well.
pub fn exit_of(judged: impl Future<Output = anyhow::Result<bool>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    let good = runtime.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        tokio::select! {
            good = Box::pin(judged) => good.map(Some),
            () = interrupt.wait() => Ok(None),
        }
    })?;
    Ok(match good {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(INTERRUPTED),
    })
}

/// Runs a command to its end on a runtime of its own, or until it is interrupted.
pub fn until_interrupted(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(async {
        let mut interrupt = Interrupt::listen()?;
        tokio::select! {
            done = work => done,
            () = interrupt.wait() => {
                say("interrupted");
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    })
}

/// Hears of interruptions, those that came before anyone waited included.
#[derive(Debug)]
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    /// From now on neither signal ends the process by itself.
    pub fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for one.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
