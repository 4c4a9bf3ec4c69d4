//! The settings of the bus: where it is, who asks, and who owns the shards.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_bus::Prefix;
use pipeline_core::SecretString;
use pipeline_ownership::Replica;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::Host;
use super::nats::{NatsAccess, Servers};
use super::problem::Problems;
use super::units::{As, Size, Unit};

/// The bytes of a stream: to a petabyte, which is no bound for a disk.
const BYTES: RangeInclusive<u64> = 1 << 20..=1 << 50;

/// The shortest time between renewals.
const LEAST_RENEW: Duration = Duration::from_millis(100);

/// What is left for a report of a lease's time, at least, unless a report may take less anyway.
const LEAST_FOR_A_REPORT: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Bus {
    #[serde(rename = "url")]
    pub(crate) urls: As<Servers>,
    pub(crate) prefix: As<Subjects>,
    #[schemars(range(min = 1, max = 3))]
    pub(crate) copies: usize,
    pub(crate) max_bytes: As<Size>,
    pub(crate) reports_max_bytes: As<Size>,
    pub(crate) ack_wait: As<Duration>,
    pub(crate) timeout: As<Duration>,
    user: As<Option<String>>,
    password: As<Option<SecretString>>,
    password_file: As<Option<PathBuf>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    credentials_file: As<Option<PathBuf>>,
    nkey_file: As<Option<PathBuf>>,
    ca_file: As<Option<PathBuf>>,
    certificate_file: As<Option<PathBuf>>,
    key_file: As<Option<PathBuf>>,
    inbox_prefix: As<Subjects>,
    pub(crate) reports: bool,
    /// What the name of this process among the replicas begins with; it is to add what no other has.
    pub(crate) replica: As<ReplicaName>,
    /// `None`: who owns which shard does not change while the process runs.
    #[schemars(with = "Leases")]
    pub(crate) leases: Option<Leases>,
    /// Whether the ledger is kept in a bucket.
    #[serde(skip)]
    pub(crate) bucket: bool,
    /// Where a reporter publishes, of a role that follows it.
    #[serde(skip)]
    pub(crate) followed: Option<Followed>,
    /// What every subject of the reporter begins with, of a role that answers it.
    #[serde(skip)]
    pub(crate) answered: Option<String>,
}

/// What a role follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Followed {
    /// What every subject of the reporter begins with.
    pub(crate) prefix: String,
    /// The group that the role is there.
    pub(crate) group: String,
}

/// What else the bus depends on.
pub(super) struct Around<'a> {
    /// Names the replica where no setting does.
    pub(super) host: &'a Host,
    /// Whether shards have leases.
    pub(super) leased: bool,
    /// How many shards there are.
    pub(super) shards: u32,
    /// Whether the ledger is kept in a bucket.
    pub(super) bucket: bool,
    /// The most that one report may take.
    pub(super) post_timeout: Duration,
}

impl Bus {
    /// What the settings come to; `None` when there is no bus.
    pub(super) fn settle(mut self, around: &Around<'_>, problems: &mut Problems) -> Option<Self> {
        if self.copies == 2 {
            problems.add("bus.copies", "must be 1 or 3, not 2");
        }
        for (at, bytes) in
            [("bus.maxBytes", self.max_bytes.0), ("bus.reportsMaxBytes", self.reports_max_bytes.0)]
        {
            if !BYTES.contains(&bytes) {
                problems.add(at, "must be from 1Mi to 1048576Gi");
            }
        }
        for (at, time) in [("bus.ackWait", *self.ack_wait), ("bus.timeout", *self.timeout)] {
            if !(Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&time) {
                problems.add(at, "must be from 100ms to 24h");
            }
        }
        self.leases = self.leases.filter(|_| around.leased);
        if let Some(leases) = &mut self.leases {
            leases.settle(around, problems);
        }
        let given = self.access().check("bus", problems);
        // The environment may still give what a file does not.
        match (self.user.is_some(), self.password.is_some() || self.password_file.is_some()) {
            (true, false) => {
                problems.missing("bus.password", "not set, and bus.user needs it; set bus.passwordFile");
            }
            (false, true) => problems.missing("bus.user", "not set, and bus.password needs it"),
            _ => {}
        }
        if self.urls.0.is_empty() {
            for at in given {
                problems.missing(at, "is for bus.url, which is not set; set it (--bus nats://nats:4222)");
            }
            return None;
        }
        if self.replica.0.is_empty() {
            *self.replica = ReplicaName::of_host(around.host.name.as_deref().unwrap_or_default());
        }
        self.bucket = around.bucket;
        Some(self)
    }

    /// Who asks, and whom it trusts.
    pub(crate) fn access(&self) -> NatsAccess<'_> {
        NatsAccess {
            user: self.user.as_deref(),
            password: self.password.as_ref(),
            password_file: self.password_file.as_ref(),
            token: self.token.as_ref(),
            token_file: self.token_file.as_ref(),
            credentials_file: self.credentials_file.as_ref(),
            nkey_file: self.nkey_file.as_ref(),
            ca_file: self.ca_file.as_ref(),
            certificate_file: self.certificate_file.as_ref(),
            key_file: self.key_file.as_ref(),
            inbox_prefix: Some(self.inbox_prefix.0.as_str()),
        }
    }
}

/// How shards are owned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leases {
    pub(crate) ttl: As<Duration>,
    renew: As<Duration>,
    #[serde(skip)]
    shards: u32,
    /// The most that one report may take: what `platform.timeout` says, or less, so that two renewals and a report fit
    /// into a lease. The same as `Config::platform.timeout`.
    #[serde(skip)]
    pub(crate) post_timeout: Duration,
}

impl Leases {
    /// How many there are, the same for all replicas.
    pub(crate) fn shards(&self) -> NonZeroU32 {
        NonZeroU32::new(self.shards).unwrap_or(NonZeroU32::MIN)
    }

    /// What drives them; `first_epoch` is the seconds since 1970.
    pub(crate) fn ownership(&self, first_epoch: u64) -> pipeline_ownership::Config {
        pipeline_ownership::Config::new(self.shards(), *self.ttl, *self.renew, first_epoch)
    }

    /// Whether they can be held, and reports be sent meanwhile.
    fn settle(&mut self, around: &Around<'_>, problems: &mut Problems) {
        if *self.renew < LEAST_RENEW {
            return problems.add("bus.leases.renew", "must be at least 100ms");
        }
        self.shards = around.shards;
        self.post_timeout = around.post_timeout.min(self.ttl.saturating_sub(*self.renew * 2));
        let least = around.post_timeout.min(LEAST_FOR_A_REPORT);
        if let Err(error) = self.ownership(0).check(least) {
            problems.add("bus.leases.ttl", format!("{error}; raise it, or lower bus.leases.renew"));
        }
    }
}

/// What every subject begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subjects(pub(crate) String);

impl Unit for Subjects {
    const FORMAT: &'static str = "bus-prefix";

    fn read(text: &str) -> Result<Self, String> {
        match Prefix::new(text) {
            Ok(prefix) => Ok(Self(prefix.as_str().to_owned())),
            Err(_) => Err("must be 1 to 128 letters, digits, - and _, in parts between dots".to_owned()),
        }
    }
}

/// What the name of this replica begins with; empty: the name of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaName(pub(crate) String);

impl ReplicaName {
    /// The most bytes: the process adds some.
    const BYTES: usize = 200;

    /// The name of a host, as far as it can be one.
    fn of_host(name: &str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(Self::BYTES).collect();
        let name = name.trim_matches('.');
        Self(if name.is_empty() { "replica" } else { name }.to_owned())
    }
}

impl Unit for ReplicaName {
    const FORMAT: &'static str = "replica-name";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            name if name.is_empty() || name.len() <= Self::BYTES && Replica::new(name).is_ok() => {
                Ok(Self(name.to_owned()))
            }
            _ => Err("must be 1 to 200 letters, digits, -, _ and ., neither beginning nor ending with ."
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
