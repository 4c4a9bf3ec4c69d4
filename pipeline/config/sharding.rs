//! The settings of sharding: how its values are written, and what they come to.

use super::host::Host;
use super::problem::Problems;
use super::raw;
use super::units::Unit;

/// The path of the setting that says who owns what.
const SHARD: &str = "reporter.sharding.shard";

/// How many shards there are where a process owns the same ones for as long as it runs.
const FIXED: u32 = 5;

/// What this process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sharding {
    /// Over all processes, at least 1.
    pub(super) shards: u32,
    /// The one this process owns, less than `shards`; `None`: all, or those whose leases it holds.
    pub(super) shard: Option<u32>,
    /// Whether it owns those whose leases it holds; never without a bus.
    pub(super) leases: bool,
}

/// What the settings come to; `bus` says whether there is one.
pub(super) fn resolve(raw: &raw::Sharding, bus: bool, host: &Host, problems: &mut Problems) -> Sharding {
    let leases = match raw.shard.0 {
        Shard::Auto => bus,
        Shard::Leases if !bus => {
            let text = "leases are for replicas on a bus, and bus.url is not set; set it (--bus nats://nats:4222), or \
                        take all";
            problems.missing(SHARD, text);
            false
        }
        Shard::Leases => true,
        Shard::All | Shard::Hostname | Shard::Number(_) => false,
    };
    let shards = match raw.shards.0 {
        Shards::Number(number) => number,
        Shards::Auto if leases => pipeline_ownership::SHARDS.get(),
        Shards::Auto => FIXED,
    };
    Sharding { shards, shard: fixed(raw.shard.0, shards, host, problems), leases }
}

/// The one shard that this process owns.
fn fixed(shard: Shard, shards: u32, host: &Host, problems: &mut Problems) -> Option<u32> {
    let shard = match shard {
        Shard::Auto | Shard::All | Shard::Leases => return None,
        Shard::Number(number) => number,
        Shard::Hostname => {
            let name = host.name.as_deref().unwrap_or_default();
            let Some(number) = name.rsplit('-').next().and_then(|last| last.parse().ok()) else {
                let text = format!(
                    "the host's name '{name}' does not end in - and a number, as those of a StatefulSet do; \
                     set the number of the shard (EVENT_REPORTER_SHARD), or all"
                );
                problems.missing(SHARD, text);
                return None;
            };
            number
        }
    };
    if shard >= shards {
        let last = shards.saturating_sub(1);
        problems.add(SHARD, format!("{shard} is not one of the {shards} shards, 0 to {last}"), None);
    }
    Some(shard)
}

/// Which shard a process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shard {
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
    const NUMBER: bool = true;

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
pub(crate) enum Shards {
    /// As many as suit who owns them.
    Auto,
    /// So many, 1 to 1,024.
    Number(u32),
}

impl Unit for Shards {
    const FORMAT: &'static str = "shards";
    const NUMBER: bool = true;

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
