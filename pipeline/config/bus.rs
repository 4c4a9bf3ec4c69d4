//! The settings of the bus, resolved: where it is, who asks, and who owns the shards.

mod written;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;

pub(super) use self::written::{Bus as Written, ReplicaName, Servers, Subjects};
use super::host::Host;
use super::problem::Problems;
use super::{Token, units};

/// The most bytes of the stream: a petabyte, which is no bound for a disk.
const MOST_BYTES: u64 = 1 << 50;

/// The fewest bytes of the stream.
const LEAST_BYTES: u64 = 1 << 20;

/// The shortest time between renewals.
const LEAST_RENEW: Duration = Duration::from_millis(100);

/// What is left for a report of a lease's time, at least, unless a report may take less anyway.
const LEAST_FOR_A_REPORT: Duration = Duration::from_secs(1);

/// Where the bus is and what stands there.
#[derive(Debug)]
pub(crate) struct Bus {
    /// Addresses of servers, at least one; none holds a user or a password.
    pub(crate) urls: Vec<String>,
    /// What every subject begins with.
    pub(crate) prefix: String,
    /// Copies of stream and buckets, 1 or 3.
    pub(crate) copies: usize,
    /// The bytes that the stream of events may hold.
    pub(crate) max_bytes: u64,
    /// The bytes that the stream of reports may hold.
    pub(crate) reports_max_bytes: u64,
    /// After how long without a word a message is delivered again.
    pub(crate) ack_wait: Duration,
    /// For how long a question to the server may go unanswered.
    pub(crate) timeout: Duration,
    /// Who asks.
    pub(crate) credentials: Credentials,
    /// `None`: none unless the server asks for it.
    pub(crate) tls: Option<Tls>,
    /// Whether what was acknowledged is published as well.
    pub(crate) reports: bool,
    /// What the name of this process among the replicas begins with; it is to add what no other has.
    pub(crate) replica: String,
    /// Who owns which shard; `None`: that does not change while the process runs.
    pub(crate) leases: Option<Leases>,
    /// Whether the ledger is kept in a bucket.
    pub(crate) bucket: bool,
}

/// Who asks. What stands in files is read by whoever connects.
#[derive(Debug)]
pub(crate) enum Credentials {
    /// Nobody in particular.
    None,
    /// A user.
    Password {
        /// The user.
        user: String,
        /// The password: a value, or a file.
        password: Token,
    },
    /// A token: a value, or a file.
    Token(Token),
    /// A file with a JWT and a seed.
    File(PathBuf),
    /// A file with the seed of an NKEY.
    Nkey(PathBuf),
}

/// TLS to the server; all files are PEM.
#[derive(Debug)]
pub(crate) struct Tls {
    /// Who signs the server's certificate; `None`: the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// The client's certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// How shards are owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leases {
    /// How many there are, the same for all replicas.
    pub(crate) shards: NonZeroU32,
    /// How long one lives without being renewed.
    pub(crate) ttl: Duration,
    /// How often it is renewed.
    pub(crate) renew: Duration,
    /// The most that one report may take: what `platform.timeout` says, or less, so that two renewals and a report fit
    /// into a lease. The same as `Config::platform.timeout`.
    pub(crate) post_timeout: Duration,
}

impl Leases {
    /// What drives them; `first_epoch` is the seconds since 1970. With short times its steps are short as well.
    pub(crate) fn ownership(&self, first_epoch: u64) -> pipeline_ownership::Config {
        let usual = pipeline_ownership::Config::new(first_epoch);
        pipeline_ownership::Config {
            shards: self.shards,
            ttl: self.ttl,
            renew: self.renew,
            tick: usual.tick.min(self.renew / 4),
            answer: usual.answer.min(self.renew),
            ..usual
        }
    }
}

/// What else the bus depends on.
pub(super) struct Around<'a> {
    /// Names the replica where no setting does.
    pub(super) host: &'a Host,
    /// How many shards have leases; `None`: none has.
    pub(super) leases: Option<u32>,
    /// Whether the ledger is kept in a bucket.
    pub(super) bucket: bool,
    /// The most that one report may take.
    pub(super) post_timeout: Duration,
}

/// What the settings come to; `None` when there is no bus.
pub(super) fn resolve(raw: Written, around: &Around<'_>, problems: &mut Problems) -> Option<Bus> {
    if raw.copies == 2 {
        problems.add("bus.copies", "must be 1 or 3, not 2", None);
    }
    let (max_bytes, reports_max_bytes) = (raw.max_bytes.0.0, raw.reports_max_bytes.0.0);
    for (at, bytes) in [("bus.maxBytes", max_bytes), ("bus.reportsMaxBytes", reports_max_bytes)] {
        if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes) {
            let text = format!("must be from {} to {}", units::size(LEAST_BYTES), units::size(MOST_BYTES));
            problems.add(at, text, None);
        }
    }
    for (at, time) in [("bus.ackWait", raw.ack_wait.0), ("bus.timeout", raw.timeout.0)] {
        if !(Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&time) {
            problems.add(at, "must be from 100ms to 24h", None);
        }
    }
    let leases = around.leases.and_then(|shards| leases(&raw.leases, shards, around.post_timeout, problems));
    let given = given(&raw);
    let tls = tls(raw.ca_file.0, raw.certificate_file.0, raw.key_file.0, problems);
    let credentials = Given {
        user: raw.user.0,
        password: token_of("password", raw.password.0, raw.password_file.0, problems),
        token: token_of("token", raw.token.0, raw.token_file.0, problems),
        file: raw.credentials_file.0,
        nkey: raw.nkey_file.0,
    };
    let credentials = credentials.resolve(&given, problems);
    let urls = raw.url.0.0;
    if urls.is_empty() {
        for at in given {
            problems.missing(at, "is for bus.url, which is not set; set it (--bus nats://nats:4222)");
        }
        return None;
    }
    let name = raw.replica.0;
    let name = name.unwrap_or_else(|| ReplicaName::of_host(around.host.name.as_deref().unwrap_or_default()));
    Some(Bus {
        urls,
        prefix: raw.prefix.0.0,
        copies: raw.copies,
        max_bytes,
        reports_max_bytes,
        ack_wait: raw.ack_wait.0,
        timeout: raw.timeout.0,
        credentials,
        tls,
        reports: raw.reports,
        replica: name.0,
        leases,
        bucket: around.bucket,
    })
}

fn leases(
    raw: &written::Leases,
    shards: u32,
    post_timeout: Duration,
    problems: &mut Problems,
) -> Option<Leases> {
    let (ttl, renew) = (raw.ttl.0, raw.renew.0);
    if renew < LEAST_RENEW {
        problems.add("bus.leases.renew", "must be at least 100ms", None);
        return None;
    }
    let left = ttl.saturating_sub(renew * 2);
    let shards = NonZeroU32::new(shards)?;
    let leases = Leases { shards, ttl, renew, post_timeout: post_timeout.min(left) };
    match leases.ownership(0).check(post_timeout.min(LEAST_FOR_A_REPORT)) {
        Ok(()) => Some(leases),
        Err(error) => {
            problems.add("bus.leases.ttl", format!("{error}; raise it, or lower bus.leases.renew"), None);
            None
        }
    }
}

/// The settings of credentials that are given, one for each kind, by their paths.
fn given(raw: &Written) -> Vec<&'static str> {
    let settings = [
        ("bus.user", raw.user.0.is_some()),
        ("bus.password", raw.user.0.is_none() && raw.password.0.is_some()),
        ("bus.passwordFile", raw.user.0.is_none() && raw.password_file.0.is_some()),
        ("bus.token", raw.token.0.is_some()),
        ("bus.tokenFile", raw.token.0.is_none() && raw.token_file.0.is_some()),
        ("bus.credentialsFile", raw.credentials_file.0.is_some()),
        ("bus.nkeyFile", raw.nkey_file.0.is_some()),
    ];
    settings.into_iter().filter(|(_, given)| *given).map(|(at, _)| at).collect()
}

/// What is given of each kind of credentials.
struct Given {
    user: Option<String>,
    password: Token,
    token: Token,
    file: Option<PathBuf>,
    nkey: Option<PathBuf>,
}

impl Given {
    fn resolve(self, given: &[&str], problems: &mut Problems) -> Credentials {
        if let [first, others @ ..] = given {
            for other in others {
                problems.add(*other, format!("excludes {first}: give one kind of credentials"), None);
            }
        }
        let password = !matches!(self.password, Token::None);
        if self.user.is_some() && !password {
            problems.missing("bus.password", "not set, and bus.user needs it; set bus.passwordFile");
        }
        if self.user.is_none() && password {
            problems.missing("bus.user", "not set, and bus.password needs it");
        }
        match (self.user, self.token, self.file, self.nkey) {
            (Some(user), ..) => Credentials::Password { user, password: self.password },
            (None, token @ (Token::Value(_) | Token::File(_)), ..) => Credentials::Token(token),
            (None, _, Some(file), _) => Credentials::File(file),
            (None, _, None, Some(file)) => Credentials::Nkey(file),
            (None, _, None, None) => Credentials::None,
        }
    }
}

/// A secret that is given as it is, or in a file.
fn token_of(
    name: &str,
    value: Option<SecretString>,
    file: Option<PathBuf>,
    problems: &mut Problems,
) -> Token {
    match (value, file) {
        (Some(_), Some(_)) => {
            let text = format!("excludes bus.{name}File: give one of them");
            problems.add(format!("bus.{name}"), text, None);
            Token::None
        }
        (Some(value), None) => Token::Value(value),
        (None, Some(file)) => Token::File(file),
        (None, None) => Token::None,
    }
}

fn tls(
    ca_file: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    problems: &mut Problems,
) -> Option<Tls> {
    match (&certificate, &key) {
        (Some(_), None) => {
            problems.add("bus.certificateFile", "needs its key; set bus.keyFile", None);
        }
        (None, Some(_)) => {
            problems.add("bus.keyFile", "needs its certificate; set bus.certificateFile", None);
        }
        _ => {}
    }
    let identity = certificate.zip(key);
    (ca_file.is_some() || identity.is_some()).then_some(Tls { ca_file, identity })
}

#[cfg(test)]
mod tests;
