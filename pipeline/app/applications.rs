//! What an event tells of an Application: how the watch of any kind meets what knows of Argo CD.

use std::sync::Arc;

use anyhow::Context as _;
use pipeline_core::{Event, Meter, ObjectIndex};
use pipeline_redact::Redactor;
use stages_argocd::Status;
use stages_kube::{Kind, Mapping, Watch};

use super::build;
use crate::config::Config;

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

/// The watch of the cluster's Applications; `seen` is told what it shows.
pub(super) async fn watch(
    config: &Config,
    redactor: Redactor,
    seen: ObjectIndex,
    meter: Arc<dyn Meter>,
) -> anyhow::Result<Watch<Applications>> {
    let deps = stages_kube::Deps { seen, meter, unwatched: None };
    build::watch(config)
        .build(Applications { redactor }, deps)
        .await
        .context("watch the applications of the cluster (settings under `kubernetes`)")
}
