//! The answers of the admin server, as JSON: one definition for the server and for its clients.
//!
//! They hold names, versions, digests, times and reasons, but never a payload, a token or a manifest. Times are RFC 3339 in UTC,
//! rounded to milliseconds; durations are seconds with a fraction; an application is `namespace/name`.

mod applications;
mod step;
mod top;

use std::time::Duration;

use pipeline_core::{EntityId, Key, Record, Timestamp, Trace};
use serde::{Deserialize, Serialize};

pub(crate) use self::applications::resources;
pub use self::applications::{Application, Applications};
pub use self::step::{Moment, Step};
pub use self::top::{Bucket, Called, Errors, Event, Failing, Hot, ShardFigures, Slow, Top};
use pipeline_engine::lane;
use pipeline_engine::run;

/// Stands in a path for the namespace of an object of the whole cluster; no namespace is called so.
pub const NO_NAMESPACE: &str = "_";

/// `GET /v1/namespace`: the namespace of an object that is named without one, as the reporter's settings say, which whoever asks
/// need not have; and what the reporter counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnNamespace {
    /// The name of the namespace.
    pub namespace: String,
    /// What the reporter counts.
    #[serde(default)]
    pub counts: Counted,
}

/// What a reporter counts, as the word for it in what is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// Argo CD applications.
    #[default]
    Application,
    /// Objects of other kinds.
    Object,
}

impl Counted {
    /// What `keys` are the keys of: those of objects of other kinds name their kind.
    pub fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let is_object = |key: &str| key.matches('/').count() > 1;
        if keys.into_iter().any(is_object) { Self::Object } else { Self::Application }
    }

    /// The word for one of them.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Object => "object",
        }
    }
}

/// The answer to `GET /v1/explain/{namespace}/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The key of the application.
    pub app: String,
    /// The shard that it belongs to.
    pub shard: u32,
    /// What the shard's lane holds of it; `None` when it is not busy.
    pub standing: Option<Standing>,
    /// What the ledger remembers; `None` when nothing of it was ever sent.
    pub acknowledged: Option<AckedState>,
    /// How it was refused for good, if it was.
    pub parked: Option<Parked>,
    /// What happened last, oldest first.
    pub steps: Vec<Moment>,
}

/// What a lane holds of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// `idle`, `in line`, `in line to be read`, `waiting`, `in flight` or `being read`.
    pub state: String,
    /// Events that are queued or waiting.
    pub events: usize,
    /// Whether it is to be read again.
    pub dirty: bool,
    /// Tries that failed so far.
    pub failures: u32,
    /// Who made it wait: `source`, `enrich` or `sink`.
    pub blame: Option<String>,
    /// After how many seconds it goes on, while it waits.
    pub due_seconds: Option<f64>,
    /// After how many seconds it is read again, as something of it was incomplete.
    pub refetch_seconds: Option<f64>,
    /// For how many seconds something of it has been unreported.
    pub unreported_seconds: Option<f64>,
}

/// What was acknowledged of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckedState {
    /// The uid of the life that was reported.
    pub uid: String,
    /// Its resourceVersion.
    pub version: u64,
    /// When its last report was acknowledged; `None` when that is not known.
    pub at: Option<Timestamp>,
    /// Whether every report of one state was ever acknowledged.
    pub complete: bool,
    /// How many reports of the application itself were acknowledged in this life.
    pub own_reports: u64,
    /// How many resources it has.
    pub resources: u64,
    /// How many entities had a last report that lacked a fact; they are read again.
    pub incomplete: u64,
    /// How many entities had a report that was sent and not answered for certain; their next state is reported whatever it is.
    pub in_doubt: u64,
}

/// The answer to `GET /v1/parked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedList {
    /// The applications that this process holds as parked, in the order of their names.
    pub parked: Vec<Parked>,
}

/// The answer to `GET /v1/parked/{namespace}/{name}`: an application that was refused for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// The key of the application.
    pub app: String,
    /// Why it was refused.
    pub reason: String,
    /// When it was refused.
    pub at: Timestamp,
    /// The version that was refused; 0 when it could not even be read.
    pub version: u64,
    /// The uid of the life that was refused, where that is known.
    pub uid: Option<String>,
    /// The reports that were refused; none when it did not come to reports.
    pub refused: Vec<Refused>,
}

/// A report that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// `application`, or `object` where it is of another kind, or `resource` and the 16 hexadecimal digits that the ledger knows the resource by.
    pub entity: String,
    /// The digest of what was refused: 16 hexadecimal digits.
    pub digest: String,
    /// Why it was refused.
    pub reason: String,
}

/// A line of `GET /v1/tail`. Empty lines between them only show that the connection lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A step happened.
    Happened(Moment),
    /// The listener was too slow: the oldest steps were dropped, before filters.
    Lost {
        /// How many steps were dropped.
        lost: u64,
    },
}

/// The body of `POST /v1/replay`: applications by name, or all of those reported since a time, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Applications as `namespace/name`; none takes every application that was reported since `since`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app: Vec<String>,
    /// Takes only those whose last report was acknowledged since then, or at a time that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// Whether all of an application is reported, and not only what differs from what was acknowledged.
    #[serde(default)]
    pub whole: bool,
}

/// A time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Since {
    /// A time as in RFC 3339.
    Time(Timestamp),
    /// A number of seconds before now.
    Ago(u64),
}

/// The answer to a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// How many applications are read again.
    pub marked: u64,
    /// Names that were asked for and were not reported since.
    #[serde(default)]
    pub older: Vec<String>,
    /// Names that were asked for and are not known, or not watched.
    #[serde(default)]
    pub unknown: Vec<Failed>,
    /// How many applications were reported since and are left as they are, as their namespaces are not watched any more.
    #[serde(default)]
    pub unwatched: u64,
}

/// The body of every answer that is not 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// What is wrong.
    pub error: String,
    /// Names that may have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
}

impl Explained {
    /// What a shard knows of `key`.
    #[must_use]
    pub fn new(key: &Key, explained: &run::Explained) -> Self {
        let moment = |&run::Moment { at, version, trace, step }: &run::Moment| {
            Moment::new(at, explained.shard, &Trace { key: key.clone(), version, trace, step })
        };
        Self {
            app: key.to_string(),
            shard: explained.shard,
            standing: explained.standing.map(Standing::from),
            acknowledged: explained.record.as_ref().map(AckedState::from),
            parked: explained.parked.as_ref().map(|parked| Parked::new(key, parked)),
            steps: explained.moments.iter().map(moment).collect(),
        }
    }
}

impl From<lane::Standing> for Standing {
    fn from(standing: lane::Standing) -> Self {
        let seconds = |duration: Option<Duration>| duration.map(|duration| duration.as_secs_f64());
        Self {
            state: standing.state.to_owned(),
            events: standing.events,
            dirty: standing.dirty,
            failures: standing.failures,
            blame: standing.blame.map(|blame| {
                match blame {
                    lane::Blame::Source => "source",
                    lane::Blame::Enrich => "enrich",
                    lane::Blame::Sink => "sink",
                }
                .to_owned()
            }),
            due_seconds: seconds(standing.due),
            refetch_seconds: seconds(standing.refetch),
            unreported_seconds: seconds(standing.unreported),
        }
    }
}

impl From<&Record> for AckedState {
    fn from(record: &Record) -> Self {
        Self {
            uid: record.uid.to_string(),
            version: record.version.number(),
            at: Timestamp::from_second(record.reported.into()).ok().filter(|_| record.reported > 0),
            complete: record.is_settled(),
            own_reports: Record::counted(record.object().counter),
            resources: record.listed().count() as u64,
            incomplete: record.entities.iter().filter(|row| row.incomplete).count() as u64,
            in_doubt: record.entities.iter().filter(|row| row.in_doubt).count() as u64,
        }
    }
}

impl Parked {
    /// How `key` was parked.
    #[must_use]
    pub fn new(key: &Key, parked: &pipeline_core::Parked) -> Self {
        let refused = parked.refused.iter().map(|(entity, digest, reason)| Refused {
            entity: match entity {
                &EntityId::OBJECT => Counted::of([key.as_str()]).noun().to_owned(),
                EntityId(id) => format!("resource {id:016x}"),
            },
            digest: format!("{:016x}", digest.0),
            reason: reason.as_str().to_owned(),
        });
        Self {
            app: key.to_string(),
            reason: parked.reason.as_str().to_owned(),
            at: rounded(parked.at),
            version: parked.version.number(),
            uid: parked.uid.as_ref().map(ToString::to_string),
            refused: refused.collect(),
        }
    }
}

impl Since {
    /// The time that is meant, `now` being the time it is said at; the beginning of 1970 at the earliest.
    #[must_use]
    pub fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => time,
            Self::Ago(seconds) => {
                let ago = i64::try_from(seconds).unwrap_or(i64::MAX);
                let time = now.as_second().saturating_sub(ago).max(0);
                Timestamp::from_second(time).unwrap_or(Timestamp::UNIX_EPOCH)
            }
        }
    }
}

fn rounded(at: Timestamp) -> Timestamp {
    at.round(jiff::Unit::Millisecond).unwrap_or(at)
}
