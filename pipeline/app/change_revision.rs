//! The role `change-revision`: after each sync, which commits changed an application; logged, reported where a sink takes it,
//! and, where that is wanted, written to the application as annotations. On a bus several share the applications by leases, each
//! with clones of its own: whoever owns an application's shard walks, tells and writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_bus::jetstream::JetStream;
use pipeline_core::{
    Meter, ObjectIndex, Reason, Report, Shipment, Shutdown, Sink, Source, StageError, Survey, async_trait,
};
use pipeline_redact::Redactor;
use prometheus::Registry;
use serde_json::Value;
use stages_git::GitSeries;
use stages_kube::{QuestionError, Reader, Right};
use stages_revision::over_bus::AnswerOverBus;
use stages_revision::{RevisionEnrichment, Walks, annotations, keeps_some};

use super::applications::{self, APPLICATIONS};
use super::follower::Follower;
use super::reporter::Built;
use super::{build, bus, repositories};
use crate::config::{Config, Places};

/// What the role needs to be allowed with these settings.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    let watched = build::watch(config).watch_right(APPLICATIONS);
    let patched = Right { verbs: &["patch"], ..watched.clone() };
    let mut rights = vec![watched];
    rights.extend(config.change_revision.annotations.then_some(patched));
    rights.extend(repositories::rights(config, &config.change_revision.repositories));
    rights
}

/// Source and enrichment, and what runs beside them; on the `bus` a reporter may be followed.
pub(super) async fn build(
    config: &Config,
    places: &Places,
    redactor: Redactor,
    (meter, registry): (Arc<dyn Meter>, &Registry),
    bus: Option<&JetStream>,
    stop: &Shutdown,
) -> anyhow::Result<Built> {
    let settings = &config.change_revision;
    let beside = beside(config, places).await?;
    let series = GitSeries::new(registry);
    let (checkouts, following) = repositories::open(config, &settings.repositories, beside, series, stop)
        .await
        .context("have repositories (settings under `changeRevision.repositories`)")?;
    let seen = ObjectIndex::default();
    let source = applications::watch(config, redactor.clone(), seen.clone(), meter.clone()).await?;
    let walks = Walks::new(checkouts, settings.commits, settings.diffs.len(), redactor.clone());
    let enrich = RevisionEnrichment::new(walks.clone(), redactor);
    let asked = config.bus.as_ref().and_then(|settings| settings.answered.as_ref());
    let answers = match bus.zip(asked) {
        Some((bus, prefix)) => {
            let bus = bus.beside(prefix).context("name the reporter's part of the bus (bus.prefix)")?;
            Some(AnswerOverBus::new(walks, Arc::new(bus)))
        }
        None => None,
    };
    Ok(Built {
        source: followed(config, source, seen.clone(), bus)?,
        enrich: Arc::new(enrich),
        sink: Some(sink(config, meter, stop).await?),
        keys: Arc::new(move || seen.keys()),
        resources: None,
        argocd: None,
        answers,
        following,
    })
}

/// The watch, which rests while a reporter is followed, where one is to be.
fn followed(
    config: &Config,
    watch: impl Survey,
    seen: ObjectIndex,
    bus: Option<&JetStream>,
) -> anyhow::Result<Arc<dyn Source>> {
    let Some((bus, group)) = bus.map(|bus| bus::followed(config, bus)).transpose()?.flatten() else {
        return Ok(Arc::new(watch));
    };
    let shards = super::sharding(config).shards().get();
    Ok(Arc::new(Follower { watch, seen, bus, group, shards }))
}

/// Where clones are kept where the settings name no directory: beside the ledger, or where it would be if it were a file.
pub(super) async fn beside(config: &Config, places: &Places) -> anyhow::Result<PathBuf> {
    let directory = match (&places.ledger, &config.bus) {
        (Some(ledger), _) => ledger.parent().map(Path::to_owned),
        (None, Some(_)) => {
            let state = config.state.clone();
            let found = tokio::task::spawn_blocking(move || state.directory().ok());
            found.await.context("find the state directory")?
        }
        (None, None) => None,
    };
    let otherwise = || std::env::temp_dir().join("gitops-runtime-repositories");
    Ok(directory.map_or_else(otherwise, |directory| directory.join("repositories")))
}

/// Who is told.
async fn sink(config: &Config, meter: Arc<dyn Meter>, stop: &Shutdown) -> anyhow::Result<Arc<dyn Sink>> {
    let sink = match config.target_of_changes() {
        Some(target) => Some(build::sink(target, meter, stop).await?),
        None => None,
    };
    let annotated = match config.change_revision.annotations {
        true => Some(build::watch(config).cluster.reader().await.context("find the cluster")?),
        false => None,
    };
    let leases = config.bus.as_ref().and_then(|bus| bus.leases.as_ref());
    Ok(Arc::new(Changes { annotated, within: leases.map(|leases| leases.post_timeout), sink }))
}

/// The log, the applications where they are annotated, and a sink where one takes it.
struct Changes {
    annotated: Option<Reader>,
    /// A write takes no longer where another process may own the application after that.
    within: Option<Duration>,
    sink: Option<Arc<dyn Sink>>,
}

impl Changes {
    async fn annotate(&self, shipment: &Shipment, body: &Value) -> Result<(), StageError> {
        let Some(reader) = &self.annotated else { return Ok(()) };
        let write = write_annotations(reader, &shipment.report, body);
        let written = match self.within {
            Some(within) => tokio::time::timeout(within, write).await.map_err(|_| {
                StageError::retry(Reason::Timeout, "the API server did not annotate an application in time")
            })?,
            None => write.await,
        };
        match written {
            Ok(()) | Err(QuestionError::Status(404 | 409)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes a report's revisions to its application, which is read first where a source of it is to keep what stands there.
async fn write_annotations(reader: &Reader, report: &Report, body: &Value) -> Result<(), QuestionError> {
    let (namespace, name) = (report.key.namespace(), report.key.name());
    let (group, version, plural) = (APPLICATIONS.group, APPLICATIONS.version, APPLICATIONS.plural);
    let path = format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}");
    let mut standing = Value::Null;
    if keeps_some(body) {
        let Some(mut application) = reader.get(&path).await? else { return Ok(()) };
        standing = application["metadata"]["annotations"].take();
    }
    let Some(mut patch) = annotations(body, &standing) else { return Ok(()) };
    // Who has the name by now and is another application is refused.
    patch["metadata"]["uid"] = (&*report.uid).into();
    reader.merge(&path, &patch, false).await.map(drop)
}

/// Says what changed an application, and what is not known of it.
fn log(body: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if body["deleted"] == true {
        return;
    }
    let (namespace, application) = (text(&body["namespace"]), text(&body["name"]));
    for (source, of) in body["sources"].as_array().into_iter().flatten().enumerate() {
        let (repository, revision) = (text(&of["repoURL"]), text(&of["revision"]));
        match of["error"].as_str() {
            Some(error) => tracing::warn!(
                namespace,
                application,
                source,
                repository,
                revision,
                error,
                "it is not known which commits changed an application; that is looked at again"
            ),
            None => tracing::info!(
                namespace,
                application,
                source,
                repository,
                revision,
                change_revision = text(&of["changeRevision"]),
                changes = of["changes"].as_array().map_or(0, Vec::len),
                "an application was changed"
            ),
        }
    }
}

#[async_trait]
impl Sink for Changes {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let (mut all, mut further) = (Vec::new(), Vec::new());
        for shipment in shipments {
            let body: Value = serde_json::from_slice(&shipment.report.body).unwrap_or_default();
            let annotated = self.annotate(shipment, &body).await;
            if annotated.is_ok() {
                log(&body);
                further.push(shipment.clone());
            }
            all.push(annotated);
        }
        let Some(sink) = &self.sink else { return all };
        let mut shipped = sink.ship(&further).await.into_iter();
        let mut next = || {
            let none = || Err(StageError::retry(Reason::CutShort, "the sink did not answer for a report"));
            shipped.next().unwrap_or_else(none)
        };
        all.into_iter().map(|annotated| annotated.and_then(|()| next())).collect()
    }

    fn name(&self) -> &'static str {
        self.sink.as_ref().map_or("log", |sink| sink.name())
    }

    async fn credentials_changed(&self) {
        match &self.sink {
            Some(sink) => sink.credentials_changed().await,
            None => std::future::pending().await,
        }
    }
}
