//! The commands of the bus: `bus check`, `bus show` and `tap`.
//!
//! takes: the command line, and the settings that the reporter is started with - gives: text for people, or JSON
//! calls: the servers of the bus - fails: when none answers or it refuses, or there is no bus: each says what to do next

mod check;
mod show;
mod tap;

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use pipeline_bus::REPORTS;
use pipeline_bus::jetstream::{
    Bucket, ConnectError, DurableShow, JetStream, LEASES, LEDGER, Show, StreamShow, connect_once,
};
use serde::Serialize;

use crate::app;
use crate::cli::ask::say;
use crate::cli::ask::show::count;
use crate::cli::{BusArgs, BusCommand, BusCommands, BusRole, block_on};
use crate::config::{Bus, Config, LogLevel, Variables};

/// Runs one of the commands.
///
/// # Errors
/// Why the command failed, with what to do next.
pub(crate) fn run(command: &BusCommands, variables: &Variables) -> anyhow::Result<ExitCode> {
    block_on(answer(command, variables))
}

async fn answer(command: &BusCommands, variables: &Variables) -> anyhow::Result<ExitCode> {
    match command {
        BusCommands::Bus(BusCommand::Check { place }) => {
            check::run(&BusConnection::at(place, variables).await?, place.json).await
        }
        BusCommands::Bus(BusCommand::Show { place }) => {
            show::run(&BusConnection::at(place, variables).await?, place.json).await
        }
        BusCommands::Tap(tapping) => {
            tap::run(&BusConnection::at(&tapping.place, variables).await?, tapping).await
        }
    }
}

/// The durable that keeps the stream of reports so full that its oldest messages are discarded, a sixteenth of the stream at once.
fn behind(show: &Show) -> Option<String> {
    show.reports.as_ref().filter(|reports| is_full(reports))?;
    furthest(show, true).map(|durable| format!("durable {}", durable.name))
}

/// The durable that keeps the stream of events so full that it refuses messages, and how far it is behind.
fn refusing(show: &Show) -> Option<String> {
    show.stream.as_ref().filter(|stream| is_full(stream))?;
    let Some(durable) = furthest(show, false) else { return Some("it has no durable".to_owned()) };
    let behind = count(durable.pending + durable.in_flight, "message");
    let nobody = if durable.waiting == 0 { ", and nobody consumes it" } else { "" };
    Some(format!("durable {} is furthest behind, by {behind}{nobody}", durable.name))
}

/// Whether at most an eighth of a stream is free, so that one more message may not fit.
fn is_full(stream: &StreamShow) -> bool {
    stream.bytes > stream.max_bytes - stream.max_bytes / 8
}

/// The durable of reports, or of events, that is furthest behind.
fn furthest(show: &Show, of_reports: bool) -> Option<&DurableShow> {
    let is_of = |durable: &&DurableShow| durable.filter.split('.').any(|part| part == REPORTS) == of_reports;
    show.durables.iter().filter(is_of).max_by_key(|durable| durable.pending + durable.in_flight)
}

/// A connection to the bus, and the settings that say where it is.
struct BusConnection {
    config: Config,
    bus: JetStream,
    /// The pipeline whose stream and durables are meant.
    pipeline: &'static str,
}

impl BusConnection {
    async fn at(place: &BusArgs, variables: &Variables) -> anyhow::Result<Self> {
        let mut config = Config::load_given(&place.given(), variables)?;
        let pipeline = match place.role {
            BusRole::Reporter => app::PIPELINE,
            BusRole::ChangeRevision => {
                config.of_changes();
                app::CHANGES
            }
        };
        // Commands print their answers: only warnings are logged.
        if config.log.level != LogLevel::Error {
            config.log.level = LogLevel::Warn;
        }
        app::log::start(&config);
        let settings = bus_of(&config)?;
        let at = settings.urls.0.join(" or ");
        let connected = connect_once(app::bus::connection(settings).await?).await;
        let bus = connected.map_err(|error| {
            let next = match &error {
                ConnectError::Away(_) => {
                    format!("connect to {at}: is it running? give --bus as the reporter has it")
                }
                ConnectError::Refused(_) => {
                    format!("connect to {at}: set those that the server takes, see `bus`")
                }
                _ => format!("connect to {at}"),
            };
            anyhow!(error).context(next)
        })?;
        Ok(Self { config, bus, pipeline })
    }

    /// The buckets that the settings need.
    fn buckets(&self) -> Vec<Bucket> {
        let Some(bus) = &self.config.bus else { return Vec::new() };
        let wanted = [(LEASES, bus.leases.is_some()), (LEDGER, bus.bucket)];
        wanted.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| self.bus.bucket(name)).collect()
    }
}

/// The settings of the bus, which there must be.
fn bus_of(config: &Config) -> anyhow::Result<&Bus> {
    config.bus.as_ref().context("there is no bus: set bus.url, or give --bus nats://nats:4222")
}

/// Prints a value as one line of JSON.
fn say_json(value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(value).context("write the answer as JSON")?;
    say(&format!("{json}\n"))
}
