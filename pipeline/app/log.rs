//! Where log lines go: standard error, as text for people or JSON for machines.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, LogFormat, LogLevel};

/// Libraries that would say a failure a second time, or speak of what they carry.
const QUIET: [&str; 4] = ["h2", "hyper", "kube_client", "rustls"];

/// Starts logging; a second call changes nothing.
pub(super) fn start(config: &Config) {
    let level = match config.log_level {
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
    let started = match config.log_format {
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
