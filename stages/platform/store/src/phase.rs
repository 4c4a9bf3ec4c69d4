//! What a phase means: the one table of it, for whoever keeps what is reported and for whoever shows it.
//!
//! Of a Rollout it is what its own controller makes of all its conditions; of an AnalysisRun and of a Workflow it is what Argo CD's
//! health checks say of each phase (`resource_customizations/argoproj.io` there), so that a run which was inconclusive is unknown,
//! and neither failed nor held.

/// What goes through phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phased {
    /// A Rollout.
    Rollout,
    /// An AnalysisRun, and each metric of it.
    AnalysisRun,
    /// A Workflow, and each node of it.
    Workflow,
}

/// What a phase means, as Argo CD calls health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseHealth {
    /// It works, or went well.
    Healthy,
    /// It is on its way.
    Progressing,
    /// It is held, or what it was to do was left out.
    Suspended,
    /// It failed.
    Degraded,
    /// Nobody can say.
    Unknown,
}

impl Phased {
    /// By the group, or the version with it, and the kind of an object.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        if api_version.split('/').next() != Some("argoproj.io") {
            return None;
        }
        match kind {
            "Rollout" => Some(Self::Rollout),
            "AnalysisRun" => Some(Self::AnalysisRun),
            "Workflow" => Some(Self::Workflow),
            _ => None,
        }
    }

    /// What a phase of it means; `None`: it has no such phase.
    #[must_use]
    pub fn health(self, phase: &str) -> Option<PhaseHealth> {
        use PhaseHealth::{Degraded, Healthy, Progressing, Suspended, Unknown};
        Some(match (self, phase) {
            (Self::Rollout, "Healthy")
            | (Self::AnalysisRun, "Successful")
            | (Self::Workflow, "Succeeded") => Healthy,
            (Self::Rollout, "Progressing") | (Self::AnalysisRun | Self::Workflow, "Pending" | "Running") => {
                Progressing
            }
            (Self::Rollout, "Paused") | (Self::Workflow, "Skipped" | "Omitted") => Suspended,
            (Self::Rollout, "Degraded") | (Self::AnalysisRun | Self::Workflow, "Failed" | "Error") => {
                Degraded
            }
            (Self::AnalysisRun, "Inconclusive") => Unknown,
            _ => return None,
        })
    }
}

impl PhaseHealth {
    /// The word that Argo CD has for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Progressing => "Progressing",
            Self::Suspended => "Suspended",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_mean_what_argo_cd_makes_of_them() {
        let of = |kind: &str, phase: &str| {
            let phased = Phased::of("argoproj.io/v1alpha1", kind).unwrap();
            phased.health(phase).map_or("none", PhaseHealth::word)
        };
        for (kind, phases) in [
            (
                "Rollout",
                "Healthy=Healthy Paused=Suspended Progressing=Progressing Degraded=Degraded Running=none",
            ),
            (
                "AnalysisRun",
                "Pending=Progressing Running=Progressing Successful=Healthy Failed=Degraded Error=Degraded \
                 Inconclusive=Unknown Healthy=none",
            ),
            (
                "Workflow",
                "Pending=Progressing Running=Progressing Succeeded=Healthy Failed=Degraded Error=Degraded \
                 Skipped=Suspended Omitted=Suspended Odd=none",
            ),
        ] {
            for pair in phases.split(' ') {
                let (phase, expected) = pair.split_once('=').unwrap();
                assert_eq!(of(kind, phase), expected, "{kind} {phase}");
            }
        }
    }

    #[test]
    fn what_has_no_phases_of_argo_has_none_here() {
        assert_eq!(Phased::of("argoproj.io", "Workflow"), Some(Phased::Workflow));
        for (group, kind) in [
            ("apps/v1", "Deployment"),
            ("example.org/v1", "Rollout"),
            ("", "Rollout"),
            ("argoproj.io.example/v1", "Rollout"),
            ("argoproj.io/v1alpha1", "Application"),
        ] {
            assert_eq!(Phased::of(group, kind), None, "{group} {kind}");
        }
    }
}
