//! What an event tells of an Application: how the watch of any kind meets what knows of Argo CD.

use pipeline_core::Event;
use pipeline_redact::Redactor;
use stages_argocd::Status;
use stages_kube::{Kind, Mapping};

/// The Applications of Argo CD.
pub(crate) struct Applications {
    /// Takes what is secret out of the texts that are kept of an operation's end.
    pub(crate) redactor: Redactor,
}

/// What the API server calls them.
pub(crate) const APPLICATIONS: Kind =
    Kind { group: "argoproj.io", version: "v1alpha1", plural: "applications", singular: "application" };

impl Mapping for Applications {
    type Status = Status;

    fn kind(&self) -> Kind {
        APPLICATIONS
    }

    fn event(&self, event: Event, status: Option<&Status>) -> Event {
        let fact = status.and_then(|status| status.operation_end(&self.redactor)).map(|end| end.fact());
        Event { fact, ..event }
    }

    fn may_drift(&self, status: Option<&Status>) -> bool {
        status.is_some_and(Status::is_out_of_sync)
    }
}
