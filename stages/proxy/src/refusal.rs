//! Why somebody is not let in, from a closed set: as the platform says it, or as it is known here.

use serde::Deserialize;

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Refusal {
    /// Nobody said who asks.
    NoCredentials,
    /// The platform knows no such key, token or session (any more), or that of a runtime was sent.
    Unknown,
    /// It is about another runtime.
    AnotherRuntime,
    /// The owner of the key has not come in for so long by the provider of which what they may comes.
    Lapsed,
    /// The key only reads.
    ReadsOnly,
    /// No rule allows it to anybody: it is for admins.
    AdminsOnly,
    /// No rule of a team of theirs allows it.
    NoRule,
    /// Rules of theirs allow it, and not of this.
    AnotherSubject,
    /// The platform does not know the runtime yet.
    Unregistered,
    /// The platform does not answer.
    PlatformAway,
    /// The platform does not know this app proxy.
    PlatformRefuses,
    /// What the platform does not say, or in a word that is not known here.
    #[serde(other)]
    Other,
}

impl Refusal {
    /// All, for metrics that start at zero.
    pub(crate) const ALL: [Self; 12] = [
        Self::NoCredentials,
        Self::Unknown,
        Self::AnotherRuntime,
        Self::Lapsed,
        Self::ReadsOnly,
        Self::AdminsOnly,
        Self::NoRule,
        Self::AnotherSubject,
        Self::Unregistered,
        Self::PlatformAway,
        Self::PlatformRefuses,
        Self::Other,
    ];

    /// The label, and the platform's word.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::NoCredentials => "no_credentials",
            Self::Unknown => "unknown",
            Self::AnotherRuntime => "another_runtime",
            Self::Lapsed => "lapsed",
            Self::ReadsOnly => "reads_only",
            Self::AdminsOnly => "admins_only",
            Self::NoRule => "no_rule",
            Self::AnotherSubject => "another_subject",
            Self::Unregistered => "unregistered",
            Self::PlatformAway => "platform_away",
            Self::PlatformRefuses => "platform_refuses",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Refusal;

    #[test]
    fn the_platform_says_each_by_its_label_and_a_word_that_is_not_known_is_another() {
        for refusal in Refusal::ALL {
            assert_eq!(serde_json::from_value::<Refusal>(json!(refusal.label())).unwrap(), refusal);
        }
        assert_eq!(serde_json::from_value::<Refusal>(json!("by_the_moon")).unwrap(), Refusal::Other);
    }
}
