//! Ctrl-C and SIGTERM: what runs is ended in order, and no process stays behind.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Hears of interruptions, those that came before anyone waited included.
#[derive(Debug)]
pub struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    /// From now on neither signal ends the process by itself.
    ///
    /// # Errors
    /// When the signals cannot be listened for.
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
