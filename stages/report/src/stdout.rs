//! Writes reports to standard output, a line each.
//!
//! takes: shipments - gives: an answer for each, after its line is flushed - calls: nobody; lines as in
//! [`crate::file`] - fails: a failure retries; when the reader is gone (`| head`) nothing can ever be written
//! again: the process is asked to stop, which is what the reader meant. Digests are not written: a pipe has no past
//! to compare with.

use std::io::{self, Write};

use pipeline_core::{Reason, Shipment, Shutdown, StageError};

use crate::lines::{Lines, Output};

/// Standard output has no settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Config;

impl Config {
    /// Starts the thread that writes to standard output; `stop` is cancelled when its reader is gone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn build(self, stop: Shutdown) -> io::Result<Stdout> {
        self.build_onto(io::stdout(), stop)
    }

    /// As [`Config::build`], onto any writer.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn build_onto(self, writer: impl Write + Send + 'static, stop: Shutdown) -> io::Result<Stdout> {
        let Self = self;
        Ok(Stdout { lines: Lines::start("stdout-sink", Pipe { writer, stop, torn: false })? })
    }
}

/// The sink that writes to standard output.
#[derive(Debug)]
pub struct Stdout {
    lines: Lines,
}

#[pipeline_core::async_trait]
impl pipeline_core::Sink for Stdout {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        self.lines.ship(shipments).await
    }

    fn name(&self) -> &'static str {
        "stdout"
    }
}

struct Pipe<W> {
    writer: W,
    stop: Shutdown,
    /// A line may have been cut: the next must not run into it.
    torn: bool,
}

impl<W: Write + Send + 'static> Output for Pipe<W> {
    const ACT: &'static str = "write to standard output";

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn {
            self.writer.write_all(b"\n")?;
        }
        let written = self.writer.write_all(lines);
        self.torn = written.is_err();
        written
    }

    fn commit(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn failed(&mut self, error: &io::Error) -> Reason {
        if error.kind() != io::ErrorKind::BrokenPipe {
            return Reason::Io;
        }
        if !self.stop.is_cancelled() {
            tracing::info!("the reader of standard output is gone: stopping");
            self.stop.cancel();
        }
        Reason::Stopping
    }
}
