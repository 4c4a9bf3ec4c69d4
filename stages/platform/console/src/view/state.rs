//! States, each with a shape before it has a colour.

use std::str::FromStr;

use stages_platform_store::PhaseHealth;

/// Health of an application or a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// It does not work.
    Degraded,
    /// It should be there and is not.
    Missing,
    /// It is on its way.
    Progressing,
    /// Nobody can say.
    Unknown,
    /// It was paused.
    Suspended,
    /// It works.
    Healthy,
}

impl Health {
    /// Every state, what needs attention first.
    pub const ALL: [Self; 6] =
        [Self::Degraded, Self::Missing, Self::Progressing, Self::Unknown, Self::Suspended, Self::Healthy];

    /// The word that Argo CD has for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Degraded => "Degraded",
            Self::Missing => "Missing",
            Self::Progressing => "Progressing",
            Self::Unknown => "Unknown",
            Self::Suspended => "Suspended",
            Self::Healthy => "Healthy",
        }
    }

    pub(crate) fn glyph(self) -> &'static str {
        match self {
            Self::Degraded => "▲",
            Self::Missing => "◌",
            Self::Progressing => "◐",
            Self::Unknown => "?",
            Self::Suspended => "‖",
            Self::Healthy => "●",
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Degraded => "bad",
            Self::Missing => "warn",
            Self::Progressing => "progress",
            Self::Unknown | Self::Suspended => "still",
            Self::Healthy => "ok",
        }
    }
}

impl From<PhaseHealth> for Health {
    fn from(of: PhaseHealth) -> Self {
        match of {
            PhaseHealth::Healthy => Self::Healthy,
            PhaseHealth::Progressing => Self::Progressing,
            PhaseHealth::Suspended => Self::Suspended,
            PhaseHealth::Degraded => Self::Degraded,
            PhaseHealth::Unknown => Self::Unknown,
        }
    }
}

impl FromStr for Health {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|state| state.word().eq_ignore_ascii_case(text)).ok_or(())
    }
}

/// Whether what runs is what Git says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncStatus {
    /// It differs.
    OutOfSync,
    /// Nobody can say.
    Unknown,
    /// It is the same.
    Synced,
}

impl SyncStatus {
    /// Every state, what needs attention first.
    pub const ALL: [Self; 3] = [Self::OutOfSync, Self::Unknown, Self::Synced];

    /// The word that Argo CD has for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::OutOfSync => "OutOfSync",
            Self::Unknown => "Unknown",
            Self::Synced => "Synced",
        }
    }

    pub(crate) fn glyph(self) -> &'static str {
        match self {
            Self::OutOfSync => "≠",
            Self::Unknown => "?",
            Self::Synced => "✓",
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::OutOfSync => "warn",
            Self::Unknown => "still",
            Self::Synced => "ok",
        }
    }
}

impl FromStr for SyncStatus {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|state| state.word().eq_ignore_ascii_case(text)).ok_or(())
    }
}
