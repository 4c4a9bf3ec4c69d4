//! Makes the stream and its durables where they are absent, and says what differs where they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::context::{
    ConsumerInfoErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{self, ConsumerCreateStrictErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode, consumer};
use futures::TryStreamExt as _;

use super::reached::StreamPosition;
use super::{BusError, Durable, Inner, JetStream, shape};
use crate::REPORTS;

const ABSENT: &str = "absent";

/// When each stream and durable was made, by name, in nanoseconds since 1970: one that was lost and made anew, by whichever
/// process, has another time.
pub(super) type Lives = BTreeMap<String, i128>;

/// What stands there of streams and durables.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) lives: Lives,
    /// How far the streams are.
    pub(super) reached: Vec<StreamPosition>,
}

/// One thing that is not as the configuration says. Nobody changes it but a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `stream x`, `durable y`, or a setting of one: `stream x: max_bytes`.
    pub what: String,
    /// What it is, or `absent`.
    pub is: String,
    /// What the configuration says, or `present`.
    pub should: String,
}

impl Difference {
    /// Whether something is absent without which nothing can be consumed.
    pub(super) fn is_lack_of_durable(&self) -> bool {
        self.is == ABSENT && self.what.starts_with("durable ")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, and should be {}", self.what, self.is, self.should)
    }
}

/// What [`JetStream::ensure`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ensured {
    /// `stream x` and `durable y`, in the order they were made.
    pub created: Vec<String>,
    /// What was there and differs.
    pub differences: Vec<Difference>,
}

impl Ensured {
    fn differs(&mut self, what: String, is: &str, should: &str) {
        self.differences.push(Difference { what, is: is.to_owned(), should: should.to_owned() });
    }

    fn compare(&mut self, what: &str, is: &[(&'static str, String)], should: &[(&'static str, String)]) {
        for ((name, is), (_, should)) in is.iter().zip(should) {
            if is != should {
                self.differs(format!("{what}: {name}"), is, should);
            }
        }
    }
}

impl JetStream {
    /// Makes the stream of each source and that of reports, and each of `durables` on its own, where it is absent. To be called before the first publish, with the
    /// durables of everybody who is to see what is published: one that is made anew has missed all that came before.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn ensure(&self, durables: &[Durable]) -> Result<Ensured, BusError> {
        Ok(self.walk(durables, true).await?.0)
    }

    /// What is absent or differs, and durables of the same groups and sources that nobody asks for: they hold back what
    /// they match until the stream is full. Changes nothing.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn check(&self, durables: &[Durable]) -> Result<Vec<Difference>, BusError> {
        Ok(self.walk(durables, false).await?.0.differences)
    }

    /// Makes what is absent, if it is to, and says what differs, when the durables and their streams were made, and how far these are.
    pub(super) async fn walk(
        &self,
        durables: &[Durable],
        make: bool,
    ) -> Result<(Ensured, Standing), BusError> {
        let Inner { config, prefix, context, .. } = &*self.inner;
        self.connected()?;
        let (mut found, mut standing) = (Ensured::default(), Standing::default());
        let mut sources: BTreeMap<&str, Vec<&Durable>> = BTreeMap::from([(REPORTS, Vec::new())]);
        for durable in durables {
            sources.entry(&durable.source).or_default().push(durable);
        }
        for (source, durables) in &sources {
            let should = &shape::stream_of(config, prefix, source)?;
            let what = format!("stream {}", should.name);
            let mark = self.inner.reached.mark(&should.name);
            let Some(stream) = settle(context, &what, (should, None), make, &mut found).await? else {
                for durable in durables {
                    found.differs(format!("durable {}", durable.name()?), ABSENT, "present");
                }
                continue;
            };
            if !durables.is_empty() {
                let info = stream.cached_info();
                standing.lives.insert(what, info.created.unix_timestamp_nanos());
                let (stream, sequence) = (should.name.clone(), info.state.last_sequence);
                standing.reached.push(StreamPosition { stream, mark, sequence });
            }
            for durable in durables {
                if let Some(info) = self.durable(&stream, durable, &mut found, make).await? {
                    standing.lives.insert(info.name, info.created.unix_timestamp_nanos());
                }
            }
            strangers(&stream, durables, &mut found).await?;
        }
        Ok((found, standing))
    }

    async fn durable(
        &self,
        stream: &Stream,
        durable: &Durable,
        found: &mut Ensured,
        make: bool,
    ) -> Result<Option<consumer::Info>, BusError> {
        let name = durable.name()?;
        let what = format!("durable {name}");
        let should = shape::durable(&self.inner.config, &self.inner.prefix, durable)?;
        let mut info = info(stream, &name).await?;
        if info.is_none() && make {
            match create(stream, should.clone()).await {
                Ok(true) => found.created.push(what.clone()),
                Ok(false) => {}
                Err(error) => return Err(error),
            }
            info = self::info(stream, &name).await?;
        }
        match &info {
            None => found.differs(what, ABSENT, "present"),
            Some(is) => {
                found.compare(&what, &shape::durable_settings(&is.config), &shape::wanted(&should));
            }
        }
        Ok(info)
    }
}

/// Makes a stream, called `what`, where it is absent and to be made, and says what differs where it is there. One that is to have
/// no bound is made with `bound`, where there is one, for an account that wants each stream to have one; and with that or a larger
/// one it is as it should be.
pub(super) async fn settle(
    context: &jetstream::Context,
    what: &str,
    (should, bound): (&stream::Config, Option<i64>),
    make: bool,
    found: &mut Ensured,
) -> Result<Option<Stream>, BusError> {
    let mut stream = get(context, &should.name).await?;
    if stream.is_none() && make {
        let mut made = context.create_stream(should.clone()).await;
        let is_wanted = made.as_ref().is_err_and(|error| says(error, ErrorCode::STREAM_MAX_BYTES_REQUIRED));
        if let Some(max_bytes) = bound.filter(|_| is_wanted) {
            made = context.create_stream(stream::Config { max_bytes, ..should.clone() }).await;
        }
        match made {
            Ok(_) => found.created.push(what.to_owned()),
            // Another process made it at the same moment, with other settings.
            Err(error) if says(&error, ErrorCode::STREAM_NAME_EXIST) => {}
            // Another stream takes its subjects: it is said that this one is absent.
            Err(error) if says(&error, ErrorCode::STREAM_SUBJECT_OVERLAP) => {}
            Err(error) => return Err(BusError::server("making the stream of the bus")(error.into())),
        }
        stream = get(context, &should.name).await?;
    }
    match &stream {
        None => found.differs(what.to_owned(), ABSENT, "present"),
        Some(stream) => {
            let is = &stream.cached_info().config;
            let is_roomy = bound.is_some_and(|bound| is.max_bytes >= bound);
            let max_bytes = if is_roomy { is.max_bytes } else { should.max_bytes };
            let should = stream::Config { max_bytes, ..should.clone() };
            found.compare(what, &shape::stream_settings(is), &shape::stream_settings(&should));
        }
    }
    Ok(stream)
}

/// Whether it was made; not, when another process made it at the same moment.
pub(super) async fn create(stream: &Stream, config: pull::Config) -> Result<bool, BusError> {
    match stream.create_consumer_strict(config).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ConsumerCreateStrictErrorKind::AlreadyExists) => Ok(false),
        Err(error) => Err(BusError::server("making a durable of the bus")(error.into())),
    }
}

fn says(error: &CreateStreamError, code: ErrorCode) -> bool {
    matches!(error.kind(), CreateStreamErrorKind::JetStream(told) if told.error_code() == code)
}

/// The stream, if it is there.
pub(super) async fn get(context: &jetstream::Context, name: &str) -> Result<Option<Stream>, BusError> {
    match context.get_stream(name).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(told) if told.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(None)
            }
            _ => Err(BusError::server("asking for the stream of the bus")(error.into())),
        },
    }
}

/// The durable, if it is there.
pub(super) async fn info<T>(stream: &Stream<T>, name: &str) -> Result<Option<consumer::Info>, BusError> {
    match stream.consumer_info(name).await {
        Ok(info) => Ok(Some(info)),
        Err(error) => match error.kind() {
            ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound => Ok(None),
            ConsumerInfoErrorKind::JetStream(told) if told.error_code() == ErrorCode::CONSUMER_NOT_FOUND => {
                Ok(None)
            }
            _ => Err(BusError::server("asking for a durable of the bus")(error.into())),
        },
    }
}

async fn strangers(stream: &Stream, durables: &[&Durable], found: &mut Ensured) -> Result<(), BusError> {
    let (mut names, mut families) = (BTreeSet::new(), BTreeSet::new());
    for durable in durables {
        names.insert(durable.name()?);
        families.insert(durable.family()?);
    }
    let all: Vec<String> = stream
        .consumer_names()
        .try_collect()
        .await
        .map_err(|error| BusError::server("asking for the durables of the bus")(error.into()))?;
    let related = |name: &str| {
        let tail = families.iter().find_map(|family| name.strip_prefix(family.as_str()));
        tail.is_some_and(|tail| tail.is_empty() || shard(tail))
    };
    let mut strangers: Vec<&String> =
        all.iter().filter(|name| !names.contains(*name) && related(name)).collect();
    strangers.sort_unstable();
    for name in strangers {
        found.differs(format!("durable {name}"), "present", ABSENT);
    }
    Ok(())
}

/// Whether a name goes on with a shard, and not with another source that begins alike.
fn shard(tail: &str) -> bool {
    tail.strip_prefix('_').is_some_and(|digits| digits.parse::<u32>().is_ok())
}
