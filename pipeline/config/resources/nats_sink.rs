//! A subject of NATS as the sink of a route.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stages_report::nats::SubjectPattern;

use crate::config::bus::Subjects;
use crate::config::nats::{NatsAccess, Servers};
use crate::config::problem::Problems;
use crate::config::reporter::EventSource;
use crate::config::units::{As, Unit};
use crate::config::{Config, ToNats};

/// For how long an answer is waited for, where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(5);

type File = As<Option<PathBuf>>;

/// A server of NATS, who asks it, and what is published to it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NatsSink {
    /// Its servers, as `bus.url` has them.
    url: As<Servers>,
    /// Where reports go: parts between dots, with {kind}, {namespace} and {name} at most once each.
    subject: As<SubjectPattern>,
    /// What a message is; json where nothing is said.
    format: Option<NatsFormat>,
    /// The source of events, for the format cloudevents.
    source: Option<As<EventSource>>,
    /// For how long the answer of a stream is waited for; 5s where nothing is said.
    timeout: Option<As<Duration>>,
    user: Option<As<Option<String>>>,
    password_file: Option<File>,
    token_file: Option<File>,
    credentials_file: Option<File>,
    nkey_file: Option<File>,
    ca_file: Option<File>,
    certificate_file: Option<File>,
    key_file: Option<File>,
    /// What subjects of answers begin with; _INBOX where nothing is said.
    inbox_prefix: Option<As<Subjects>>,
}

/// What a message is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NatsFormat {
    /// What the platform takes.
    #[default]
    Json,
    /// A CloudEvent in its structured form.
    CloudEvents,
}

impl Unit for SubjectPattern {
    const FORMAT: &'static str = "nats-subject";

    fn read(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!("'{text}' is no subject: {error}"))
    }
}

impl NatsSink {
    /// Who asks, and whom it trusts: secrets stand in files.
    fn access(&self) -> NatsAccess<'_> {
        NatsAccess {
            user: self.user.as_ref().and_then(|user| user.as_deref()),
            password: None,
            password_file: path(self.password_file.as_ref()),
            token: None,
            token_file: path(self.token_file.as_ref()),
            credentials_file: path(self.credentials_file.as_ref()),
            nkey_file: path(self.nkey_file.as_ref()),
            ca_file: path(self.ca_file.as_ref()),
            certificate_file: path(self.certificate_file.as_ref()),
            key_file: path(self.key_file.as_ref()),
            inbox_prefix: self.inbox_prefix.as_ref().map(|prefix| prefix.0.as_str()),
        }
    }

    pub(super) fn check(&self, at: &str, problems: &mut Problems) {
        if self.url.0.is_empty() {
            problems.add(format!("{at}.url"), "is empty: set it to servers such as nats://nats:4222");
        }
        if let Some(timeout) = &self.timeout
            && !(Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(&**timeout)
        {
            problems.add(format!("{at}.timeout"), "must be from 100ms to 1h");
        }
        if self.source.is_some() && self.format != Some(NatsFormat::CloudEvents) {
            problems.add(format!("{at}.source"), "is of events: set format to cloudevents");
        }
        let access = self.access();
        access.check(at, problems);
        match (access.user, access.password_file) {
            (Some(_), None) => problems.add(format!("{at}.user"), "needs its password: set passwordFile"),
            (None, Some(_)) => problems.add(format!("{at}.passwordFile"), "needs its user: set user"),
            _ => {}
        }
    }

    /// Where the reports of `route` go.
    pub(super) fn target<'a>(&'a self, route: &'a str, config: &'a Config) -> ToNats<'a> {
        let source = self.source.as_deref().unwrap_or(config.to_events().source);
        ToNats {
            route,
            urls: &self.url.0,
            timeout: self.timeout.as_deref().copied().unwrap_or(TIMEOUT),
            access: self.access(),
            subject: &self.subject,
            events: (self.format == Some(NatsFormat::CloudEvents)).then_some(source),
        }
    }
}

fn path(file: Option<&File>) -> Option<&PathBuf> {
    file.and_then(|file| file.as_ref())
}
