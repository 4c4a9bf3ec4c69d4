//! States, each with a shape before it has a colour.

use stages_platform_store::PhaseHealth;

/// States in their order, each with its shape and the class of its colour.
macro_rules! states {
    ($(#[$about:meta])* $name:ident { $($(#[$one:meta])* $state:ident = $glyph:literal, $class:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$one])* $state,)*
        }

        impl $name {
            /// Every state, in their order.
            pub const ALL: [Self; [$($glyph),*].len()] = [$(Self::$state),*];

            /// The word that Argo CD has for it.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$state => stringify!($state),)*
                }
            }

            pub(crate) fn glyph(self) -> &'static str {
                match self {
                    $(Self::$state => $glyph,)*
                }
            }

            pub(crate) fn class(self) -> &'static str {
                match self {
                    $(Self::$state => $class,)*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.into_iter().find(|state| state.word().eq_ignore_ascii_case(text)).ok_or(())
            }
        }
    };
}
pub(crate) use states;

states! {
    /// Health of an application or a resource, what needs attention first.
    Health {
        /// It does not work.
        Degraded = "▲", "bad";
        /// It should be there and is not.
        Missing = "◌", "warn";
        /// It is on its way.
        Progressing = "◐", "progress";
        /// Nobody can say.
        Unknown = "?", "still";
        /// It was paused.
        Suspended = "‖", "still";
        /// It works.
        Healthy = "●", "ok";
    }
}

states! {
    /// Whether what runs is what Git says, what needs attention first.
    SyncStatus {
        /// It differs.
        OutOfSync = "≠", "warn";
        /// Nobody can say.
        Unknown = "?", "still";
        /// It is the same.
        Synced = "✓", "ok";
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
