//! Kinds of questions, by which they are counted and authorized.

/// A kind of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Which file makes each manifest.
    Manifests = 1,
    /// Author, message, date and tags of a commit.
    Commit = 2,
    /// Commits and files between two revisions.
    Changes = 4,
    /// The version that an application packages.
    AppVersion = 8,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Manifests, Self::Commit, Self::Changes, Self::AppVersion];

    /// Its name in metrics and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manifests => "manifests",
            Self::Commit => "commit",
            Self::Changes => "changes",
            Self::AppVersion => "app_version",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

/// Kinds of questions that somebody may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations(u8);

impl Operations {
    /// All of them.
    pub const ALL: Self = Self(u8::MAX);

    /// Whether this one is among them.
    #[must_use]
    pub const fn has(self, operation: Operation) -> bool {
        self.0 & operation as u8 != 0
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |set, operation| set | operation as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, Operations};

    #[test]
    fn each_is_one_of_its_own_and_has_a_name() {
        for one in Operation::ALL {
            assert_eq!(Operation::named(one.name()), Some(one));
            let alone = Operations::from_iter([one]);
            for other in Operation::ALL {
                assert_eq!(alone.has(other), one == other, "{one:?} and {other:?}");
                assert!(Operations::ALL.has(other));
            }
        }
        assert_eq!(Operation::named("everything"), None);
        assert!(!Operations::from_iter([]).has(Operation::Commit));
    }
}
