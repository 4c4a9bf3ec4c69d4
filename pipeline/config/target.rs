//! Where the reports of one route go, with all that has to be known for it: what it says itself, and else what the process has
//! for all.

use std::path::Path;
use std::time::Duration;

use stages_report::nats::SubjectPattern;
use url::Url;

use super::reporter::{Batch, EventMode, EventSource, SinkCloudEvents, SinkKind, SinkPlatform};
use super::units::UrlPath;
use super::{Config, NatsAccess, Token};

/// Where reports go.
#[derive(Debug, Clone)]
pub(crate) enum Target<'a> {
    /// A platform.
    Platform(ToPlatform<'a>),
    /// A receiver of CloudEvents.
    CloudEvents(ToEvents<'a>),
    /// A subject of NATS.
    Nats(ToNats<'a>),
    /// Standard output.
    Stdout,
    /// A file.
    File(Option<&'a Path>),
}

/// A platform, and how it is asked.
#[derive(Debug, Clone)]
pub(crate) struct ToPlatform<'a> {
    pub(crate) url: Option<&'a Url>,
    pub(crate) token: Token,
    pub(crate) ca_file: Option<&'a Path>,
    pub(crate) insecure: bool,
    pub(crate) timeout: Duration,
    pub(crate) path: &'a UrlPath,
    /// Which reports share a request; `None`: each has its own.
    pub(crate) batch: Option<&'a Batch>,
    /// All else.
    pub(crate) settings: &'a SinkPlatform,
}

/// A receiver of CloudEvents, and how it is asked.
#[derive(Debug, Clone)]
pub(crate) struct ToEvents<'a> {
    pub(crate) url: Option<&'a Url>,
    pub(crate) token_file: Option<&'a Path>,
    pub(crate) ca_file: Option<&'a Path>,
    pub(crate) source: &'a EventSource,
    pub(crate) mode: EventMode,
    /// All else.
    pub(crate) settings: &'a SinkCloudEvents,
}

/// A subject of NATS, and how its server is asked.
#[derive(Debug, Clone)]
pub(crate) struct ToNats<'a> {
    /// Whose connection it is.
    pub(crate) route: &'a str,
    pub(crate) urls: &'a [String],
    pub(crate) timeout: Duration,
    pub(crate) access: NatsAccess<'a>,
    pub(crate) subject: &'a SubjectPattern,
    /// The source of events; `None`: they are none.
    pub(crate) events: Option<&'a EventSource>,
}

impl Target<'_> {
    pub(crate) fn kind(&self) -> SinkKind {
        match self {
            Self::Platform(_) => SinkKind::Platform,
            Self::CloudEvents(_) => SinkKind::CloudEvents,
            Self::Nats(_) => SinkKind::Nats,
            Self::Stdout => SinkKind::Stdout,
            Self::File(_) => SinkKind::File,
        }
    }
}

impl Config {
    /// Where reports go that no further route takes: the sink of `reporter`.
    pub(crate) fn target(&self) -> Target<'_> {
        match self.reporter.sink.kind {
            SinkKind::Platform => Target::Platform(self.to_platform()),
            SinkKind::CloudEvents => Target::CloudEvents(self.to_events()),
            // No setting makes it NATS.
            SinkKind::Stdout | SinkKind::Nats => Target::Stdout,
            SinkKind::File => Target::File(self.reporter.sink.file.path.as_deref()),
        }
    }

    /// The platform of the settings.
    pub(super) fn to_platform(&self) -> ToPlatform<'_> {
        let (platform, settings) = (&self.platform, &self.reporter.sink.platform);
        ToPlatform {
            url: platform.url.as_ref(),
            token: platform.token(),
            ca_file: platform.ca_file.as_deref(),
            insecure: platform.insecure,
            timeout: *platform.timeout,
            path: &settings.path,
            batch: Some(&settings.batch).filter(|batch| batch.enabled),
            settings,
        }
    }

    /// Where the role `change-revision` reports; `None`: its log alone tells. A platform that is to know what the log told before
    /// is told anew: by the path it is another receiver.
    pub(crate) fn target_of_changes(&self) -> Option<Target<'_>> {
        let changes = &self.reporter.sink.platform.changes;
        match self.target() {
            Target::Platform(_) if !changes.enabled => None,
            Target::Platform(to) => {
                Some(Target::Platform(ToPlatform { path: &changes.path, batch: None, ..to }))
            }
            other => Some(other),
        }
    }

    /// The receiver of CloudEvents of the settings.
    pub(super) fn to_events(&self) -> ToEvents<'_> {
        let settings = &self.reporter.sink.cloudevents;
        ToEvents {
            url: settings.url.as_ref(),
            token_file: settings.token_file.as_deref(),
            ca_file: settings.ca_file.as_deref(),
            source: &settings.source,
            mode: settings.mode,
            settings,
        }
    }
}
