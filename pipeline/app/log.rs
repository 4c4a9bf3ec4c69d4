//! Where log lines go: standard error, as text for people or JSON for machines.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, LogFormat, LogLevel};

/// Libraries that would say a failure a second time, or speak of what they carry.
const QUIET: [&str; 6] = ["async_nats", "h2", "hyper", "kube_client", "rustls", "sqlx"];

/// Starts logging; a second call changes nothing.
pub(crate) fn start(config: &Config) {
    std::panic::set_hook(Box::new(panicked));
    let level = match config.log.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let filter = QUIET.iter().fold(Targets::new().with_default(level), |targets, name| {
        targets.with_target(*name, LevelFilter::OFF)
    });
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let started = match config.log.format {
        LogFormat::Json => tracing_subscriber::registry().with(filter).with(lines.json()).try_init(),
        LogFormat::Text => {
            let lines =
                lines.with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
            tracing_subscriber::registry().with(filter).with(lines).try_init()
        }
    };
    // Somebody else has started it: then there is a place for log lines, which is what is wanted.
    drop(started);
}

/// Says where it was, and nothing of what: a panic's text may quote the manifest that was being worked on.
fn panicked(info: &std::panic::PanicHookInfo<'_>) {
    let (file, line) = info.location().map_or(("", 0), |at| (at.file(), at.line()));
    tracing::error!(file, line, "a panic: this is a bug, please report the place");
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_tells_its_place_and_not_its_text() {
        let kept = Output::default();
        let to = kept.clone();
        let lines = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false).finish();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(panicked));
        let ended = tracing::subscriber::with_default(lines, || {
            std::panic::catch_unwind(|| panic!("kind: Secret, data: canary"))
        });
        std::panic::set_hook(before);
        assert!(ended.is_err());
        let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(said.contains("a panic") && said.contains("pipeline/app/log.rs"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}
