//! What a transition says, beside whose it is and when.

use std::borrow::Cow;

use crate::phase::Phased;
use crate::report::Report;

/// What a transition says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) sync: Option<Cow<'a, str>>,
    pub(super) health: Option<Cow<'a, str>>,
    pub(super) health_message: Option<Cow<'a, str>>,
    pub(super) revision: Option<Cow<'a, str>>,
    pub(super) deleted: bool,
    /// Whether the object came as JSON, as whoever watches resources sends it.
    pub(super) object_is_json: bool,
    /// Digests of the texts, in the order of the columns.
    pub(super) texts: [Option<Cow<'a, [u8]>>; 5],
}

impl<'a> Said<'a> {
    /// What a report says; one that knows the object alone says nothing else, where more is known.
    pub(super) fn by(report: &'a Report, known: Option<Self>) -> Self {
        let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        let own = Self {
            sync: text(&report.sync),
            health: text(&report.health),
            health_message: text(&report.health_message),
            revision: text(&report.revision),
            deleted: report.deleted,
            object_is_json: report.object_is_json,
            texts: report.texts().map(|text| text.map(|text| Cow::Borrowed(&text.digest[..]))),
        };
        let Some(known) = known else { return own };
        let [object, ..] = own.texts;
        let [_, actual, desired, git, details] = known.texts;
        Self {
            sync: own.sync.or(known.sync),
            health: own.health.or(known.health),
            health_message: own.health_message.or(known.health_message),
            revision: own.revision.or(known.revision),
            deleted: own.deleted,
            object_is_json: own.object_is_json,
            texts: [object, actual, desired, git, details],
        }
    }

    /// What a report says beside its object, of a state whose object is newer: what goes through phases says by itself how it is.
    pub(super) fn beside(report: &'a Report, known: Self) -> Self {
        let own = Self::by(report, None);
        let has_phases = report
            .entity
            .resource
            .as_ref()
            .is_some_and(|resource| Phased::of(&resource.api_version, &resource.kind).is_some());
        let (health, health_message) = match known.health {
            Some(health) if has_phases => (Some(health), known.health_message),
            _ => (own.health, own.health_message),
        };
        let [object, ..] = known.texts;
        let [_, actual, desired, git, details] = own.texts;
        Self {
            sync: own.sync.or(known.sync),
            health,
            health_message,
            revision: own.revision.or(known.revision),
            deleted: known.deleted,
            object_is_json: known.object_is_json,
            texts: [object, actual, desired, git, details],
        }
    }

    /// Whether a report of the object alone says nothing that it does not say.
    pub(super) fn has_object_of(&self, report: &Report) -> bool {
        let [object, ..] = &self.texts;
        self.deleted == report.deleted
            && report.object.as_ref().is_some_and(|said| object.as_deref() == Some(&said.digest[..]))
    }
}
