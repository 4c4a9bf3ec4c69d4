//! The settings of sharding: how its values are written, and what they come to.

use schemars::JsonSchema;
use serde::Deserialize;

use super::host::Host;
use super::problem::Problems;
use super::units::{As, Unit};

/// The path of the setting that says who owns what.
const SHARD: &str = "reporter.sharding.shard";

/// How many shards there are where a process owns the same ones for as long as it runs.
const FIXED: u32 = 5;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sharding {
    pub(crate) algorithm: Algorithm,
    shards: As<Shards>,
    shard: As<Shard>,
    /// Whether this process owns the shards whose leases it holds; never without a bus.
    #[serde(skip)]
    pub(crate) leased: bool,
}

impl Sharding {
    /// Over all processes, at least 1.
    pub(crate) fn shards(&self) -> u32 {
        match *self.shards {
            Shards::Number(number) => number,
            Shards::Auto if self.leased => pipeline_ownership::SHARDS.get(),
            Shards::Auto => FIXED,
        }
    }

    /// The one this process owns, less than [`Sharding::shards`]; `None`: all, or those whose leases it holds.
    pub(crate) fn shard(&self) -> Option<u32> {
        match *self.shard {
            Shard::Number(number) => Some(number),
            Shard::Auto | Shard::All | Shard::Leases | Shard::Hostname => None,
        }
    }

    /// `bus` says whether there is one.
    pub(super) fn settle(&mut self, bus: bool, host: &Host, problems: &mut Problems) {
        self.leased = bus && matches!(*self.shard, Shard::Auto | Shard::Leases);
        if matches!(*self.shard, Shard::Leases) && !bus {
            let text = "leases are for replicas on a bus, and bus.url is not set; set it (--bus nats://nats:4222), or \
                        take all";
            problems.missing(SHARD, text);
        }
        if matches!(*self.shard, Shard::Hostname) {
            let name = host.name.as_deref().unwrap_or_default();
            match name.rsplit('-').next().and_then(|last| last.parse().ok()) {
                Some(number) => *self.shard = Shard::Number(number),
                None => {
                    let text = format!(
                        "the host's name '{name}' does not end in - and a number, as those of a StatefulSet do; \
                         set the number of the shard (EVENT_REPORTER_SHARD), or all"
                    );
                    problems.missing(SHARD, text);
                }
            }
        }
        let shards = self.shards();
        if let Some(shard) = self.shard().filter(|shard| *shard >= shards) {
            let last = shards.saturating_sub(1);
            problems.add(SHARD, format!("{shard} is not one of the {shards} shards, 0 to {last}"));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    Jump,
    FnvModulo,
}

/// Which shard a process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shard {
    /// Those whose leases it holds where there is a bus, else all.
    Auto,
    /// All of them.
    All,
    /// The number after the last `-` of the host's name.
    Hostname,
    /// Those whose leases it holds.
    Leases,
    /// This one.
    Number(u32),
}

impl Unit for Shard {
    const FORMAT: &'static str = "shard";
    const NUMBER: Option<&'static str> = Some("integer");

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "all" => Ok(Self::All),
            "hostname" => Ok(Self::Hostname),
            "leases" => Ok(Self::Leases),
            number => number.parse().map(Self::Number).map_err(|_| {
                format!(
                    "'{text}' is not the number of a shard, counted from 0, nor auto, all, hostname or leases"
                )
            }),
        }
    }
}

/// How many shards there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shards {
    /// As many as suit who owns them.
    Auto,
    /// So many, 1 to 1,024.
    Number(u32),
}

impl Unit for Shards {
    const FORMAT: &'static str = "shards";
    const NUMBER: Option<&'static str> = Some("integer");

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            number => match number.trim().parse() {
                Ok(number @ 1..=1024) => Ok(Self::Number(number)),
                _ => Err(format!("'{text}' is not a number of shards from 1 to 1024, nor auto")),
            },
        }
    }
}
