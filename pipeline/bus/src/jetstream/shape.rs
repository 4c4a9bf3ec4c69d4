//! What the stream and its durables must be like, and how to say it.

use std::time::Duration;

use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy, ReplayPolicy, pull};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};

use super::{Config, Durable};
use crate::{Prefix, REPORTS, SubjectError, subject};

impl Durable {
    /// Its name on the server: `<group>_<source>` and, for one shard, `_<shard>`.
    ///
    /// # Errors
    /// [`SubjectError::TooLong`].
    pub fn name(&self) -> Result<String, SubjectError> {
        let family = self.family()?;
        Ok(self.shard.map_or(family.clone(), |shard| format!("{family}_{shard}")))
    }

    /// What the names of all durables of its group and source begin with.
    pub(super) fn family(&self) -> Result<String, SubjectError> {
        Ok(format!("{}_{}", subject::token(&self.group)?, subject::token(&self.source)?))
    }
}

/// The stream of what `source` publishes. That of reports refuses as well when it is full: who publishes then discards its
/// oldest, and so can count them.
pub(super) fn stream_of(
    config: &Config,
    prefix: &Prefix,
    source: &str,
) -> Result<stream::Config, SubjectError> {
    let max_bytes = if source == REPORTS { config.reports_max_bytes } else { config.max_bytes };
    Ok(stream(config, prefix.stream_of(source), prefix.filter(source, None)?, max_bytes))
}

fn stream(config: &Config, name: String, subjects: String, max_bytes: u64) -> stream::Config {
    stream::Config {
        name,
        subjects: vec![subjects],
        retention: RetentionPolicy::Interest,
        discard: DiscardPolicy::New,
        discard_new_per_subject: false,
        max_messages_per_subject: 1,
        max_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX),
        max_messages: -1,
        max_message_size: -1,
        max_consumers: -1,
        num_replicas: config.replicas,
        storage: StorageType::File,
        duplicate_window: config.duplicate_window,
        ..stream::Config::default()
    }
}

/// The stream of a bucket, as any client of NATS makes one; `first` is its first sequence.
pub(super) fn bucket(config: &Config, name: &str, prefix: &str, first: u64) -> stream::Config {
    stream::Config {
        name: name.to_owned(),
        subjects: vec![format!("{prefix}>")],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        max_messages_per_subject: 1,
        max_bytes: -1,
        max_messages: -1,
        max_message_size: -1,
        max_consumers: -1,
        num_replicas: config.replicas,
        storage: StorageType::File,
        duplicate_window: Duration::from_secs(120),
        allow_rollup: true,
        allow_direct: true,
        allow_message_ttl: true,
        deny_delete: true,
        first_sequence: Some(first),
        ..stream::Config::default()
    }
}

pub(super) fn durable(
    config: &Config,
    prefix: &Prefix,
    durable: &Durable,
) -> Result<pull::Config, SubjectError> {
    Ok(pull::Config {
        durable_name: Some(durable.name()?),
        filter_subject: prefix.filter(&durable.source, durable.shard)?,
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        replay_policy: ReplayPolicy::Instant,
        ack_wait: config.ack_wait,
        max_deliver: -1,
        max_ack_pending: i64::from(config.max_ack_pending),
        ..pull::Config::default()
    })
}

/// The settings of a stream that matter here, each by name and as text.
pub(super) fn stream_settings(config: &stream::Config) -> Vec<(&'static str, String)> {
    vec![
        ("subjects", config.subjects.join(", ")),
        ("retention", format!("{:?}", config.retention).to_lowercase()),
        ("discard", format!("{:?}", config.discard).to_lowercase()),
        ("discard_new_per_subject", config.discard_new_per_subject.to_string()),
        ("max_msgs_per_subject", config.max_messages_per_subject.to_string()),
        ("max_bytes", bytes(config.max_bytes)),
        ("max_msgs", bound(config.max_messages)),
        ("max_msg_size", bound(config.max_message_size.into())),
        ("max_consumers", bound(config.max_consumers.into())),
        ("max_age", time(config.max_age)),
        ("duplicate_window", time(config.duplicate_window)),
        ("num_replicas", config.num_replicas.to_string()),
        ("storage", format!("{:?}", config.storage).to_lowercase()),
        ("no_ack", config.no_ack.to_string()),
        ("sealed", config.sealed.to_string()),
        ("mirror", config.mirror.is_some().to_string()),
        ("sources", config.sources.as_ref().map_or(0, Vec::len).to_string()),
        ("subject_transform", config.subject_transform.is_some().to_string()),
        ("allow_rollup_hdrs", config.allow_rollup.to_string()),
        ("allow_direct", config.allow_direct.to_string()),
        ("allow_msg_ttl", config.allow_message_ttl.to_string()),
    ]
}

/// The settings of a durable that matter here, each by name and as text.
pub(super) fn durable_settings(config: &consumer::Config) -> Vec<(&'static str, String)> {
    let mut filters = config.filter_subjects.clone();
    if !config.filter_subject.is_empty() {
        filters.push(config.filter_subject.clone());
    }
    vec![
        ("filter_subject", filters.join(", ")),
        ("deliver_policy", policy(config.deliver_policy)),
        ("ack_policy", format!("{:?}", config.ack_policy).to_lowercase()),
        ("replay_policy", format!("{:?}", config.replay_policy).to_lowercase()),
        ("ack_wait", time(config.ack_wait)),
        ("max_deliver", bound(config.max_deliver)),
        ("max_ack_pending", bound(config.max_ack_pending)),
        ("headers_only", config.headers_only.to_string()),
        ("push", config.deliver_subject.is_some().to_string()),
        ("max_batch", bound(config.max_batch)),
        ("max_bytes", bound(config.max_bytes)),
        ("max_expires", time(config.max_expires)),
        ("inactive_threshold", time(config.inactive_threshold)),
        ("backoff", config.backoff.len().to_string()),
    ]
}

/// The same of what is asked for.
pub(super) fn wanted(config: &pull::Config) -> Vec<(&'static str, String)> {
    use consumer::IntoConsumerConfig as _;
    durable_settings(&config.clone().into_consumer_config())
}

/// A bound; the server writes "none" as -1 or leaves it out.
fn bound(figure: i64) -> String {
    if figure <= 0 { "none".into() } else { figure.to_string() }
}

fn bytes(bytes: i64) -> String {
    if bytes < 0 { "none".into() } else { bytes.to_string() }
}

fn time(time: Duration) -> String {
    if time.is_zero() { "none".into() } else { format!("{time:?}") }
}

fn policy(policy: DeliverPolicy) -> String {
    match policy {
        DeliverPolicy::All => "all".into(),
        DeliverPolicy::New => "new".into(),
        DeliverPolicy::Last => "last".into(),
        DeliverPolicy::LastPerSubject => "last_per_subject".into(),
        DeliverPolicy::ByStartSequence { .. } => "by_start_sequence".into(),
        DeliverPolicy::ByStartTime { .. } => "by_start_time".into(),
    }
}
