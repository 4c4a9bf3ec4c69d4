//! What is remembered of an application, beside what was acknowledged: this stage's own part of a record.

use bytes::Bytes;
use pipeline_core::{Digest, Lengthened, Record, Settled};
use serde::{Deserialize, Serialize};

/// Digests of the four sections of an application that are compared. The default equals no state's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sections {
    /// `spec`, without what does not count.
    pub spec: Digest,
    /// `status`, without what does not count.
    pub status: Digest,
    /// `operation`.
    pub operation: Digest,
    /// `metadata`, without what does not count.
    pub metadata: Digest,
}

/// What is remembered of one application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What decides whether another state differs.
    pub sections: Sections,
    /// The health was `Healthy`.
    pub healthy: bool,
    /// The report's `repoURL`: a deletion that nobody watched is reported with it.
    pub repo_url: String,
    /// `spec.destination.server`, for the same.
    pub server: String,
}

/// A state as it is stored. What gives it another meaning gets a variant of its own.
#[derive(Serialize, Deserialize)]
enum Stored<T> {
    #[serde(rename = "1")]
    V1(T),
}

impl State {
    /// As it stands in a record.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        // Numbers and texts alone: there is no reason to fail.
        rmp_serde::to_vec(&Stored::V1(self)).unwrap_or_default().into()
    }

    /// What a record holds, without what a later version adds to it. One of which nothing is known, and one to which a newer version
    /// gives another meaning, is that of nothing: every state differs from it.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let stored = rmp_serde::from_slice(&record.state);
        stored.map_or_else(|_| Self::default(), |Stored::V1(Lengthened(state))| state)
    }

    /// What a new state is compared with; `None` until a delivery was acknowledged as a whole.
    #[must_use]
    pub fn acknowledged(record: &Record) -> Option<Self> {
        match record.settled {
            Settled::Never | Settled::Unwritten => None,
            // The application's report was acknowledged, the delivery was not: every state differs.
            Settled::Before => Some(Self { sections: Sections::default(), ..Self::of(record) }),
            Settled::Now => Some(Self::of(record)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_what_cannot_be_read_equals_none() {
        let sections =
            Sections { spec: Digest(1), status: Digest(2), operation: Digest(3), metadata: Digest(u64::MAX) };
        let state = State { sections, healthy: true, repo_url: "https://git/a".into(), server: "s".into() };
        let mut record = Record { state: state.encode(), ..Record::new("u".into()) };
        assert_eq!((State::of(&record), State::acknowledged(&record)), (state.clone(), None));
        record.settled = Settled::Now;
        assert_eq!(State::acknowledged(&record), Some(state.clone()));
        let State { sections, healthy, repo_url, server } = &state;
        let more = rmp_serde::to_vec(&Stored::V1((sections, healthy, repo_url, server, "more"))).unwrap();
        let later = Record { state: more.into(), ..Record::new("u".into()) };
        assert_eq!(State::of(&later), state, "what a later version adds is passed over");
        record.settled = Settled::Before;
        let unsettled = State { sections: Sections::default(), ..state };
        assert_eq!(State::acknowledged(&record), Some(unsettled), "its health stays known");
        for other in [Bytes::new(), Bytes::from_static(b"\x81\xa12\x90"), Bytes::from_static(b"\xff")] {
            let record = Record { state: other, settled: Settled::Now, ..Record::new("u".into()) };
            assert_eq!(State::acknowledged(&record), Some(State::default()));
        }
    }
}
