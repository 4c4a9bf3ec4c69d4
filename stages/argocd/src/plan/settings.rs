//! What holds for every plan until it is changed.

use crate::sources::AsksGit;

/// How Argo CD marks what belongs to an application (`application.resourceTrackingMethod`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrackingMethod {
    /// By label alone.
    Label,
    /// By annotation; Argo CD 3's default.
    #[default]
    Annotation,
    /// By annotation, with the label beside it.
    AnnotationAndLabel,
}

impl TrackingMethod {
    /// Reads the value of `argocd-cm` or of the settings call; an unknown or empty one is the default.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "label" => Self::Label,
            "annotation+label" => Self::AnnotationAndLabel,
            _ => Self::Annotation,
        }
    }

    /// The text that reports carry.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Annotation => "annotation",
            Self::AnnotationAndLabel => "annotation+label",
        }
    }
}

/// Whether `manifests` of this Argo CD gives raw manifests, paths and versions (a fork does).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RawManifests {
    /// No answer has told yet: `manifests` is asked.
    #[default]
    Unknown,
    /// It gives them.
    Served,
    /// Plain texts: `manifests` is asked only for the desired state of hooks.
    Absent,
}

/// What holds for every plan until it is changed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `application.resourceTrackingMethod`.
    pub tracking_method: TrackingMethod,
    /// `application.instanceLabelKey`; `app.kubernetes.io/instance` unless set.
    pub instance_label_key: String,
    /// `installationID`, empty where this Argo CD has none: what it made bears it beside the tracking id, and what another one made
    /// does not. `None` while it is not known, and of an Argo CD that does not say it.
    pub installation_id: Option<String>,
    /// What is known of this Argo CD's `manifests`; see [`FetchPlan::learned`](super::FetchPlan::learned).
    pub raw_manifests: RawManifests,
    /// About which applications Git is asked for what this Argo CD's `manifests` does not give.
    pub sources: AsksGit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tracking_method: TrackingMethod::default(),
            instance_label_key: "app.kubernetes.io/instance".to_owned(),
            installation_id: None,
            raw_manifests: RawManifests::default(),
            sources: AsksGit::Never,
        }
    }
}
