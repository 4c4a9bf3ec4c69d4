//! Argo CD's own settings: how it marks what belongs to an application.
//!
//! takes: nothing - gives: [`ArgoCdSettings`] to every event that begins - calls: `GET {argocd}/api/v1/settings` and
//! `GET {argocd}/api/version`, every 30 s - fails: never; it keeps trying, and what was known stays known.
//!
//! Until the settings are known no event is enriched: a wrong tracking method would take children for root
//! applications, and the other way round.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Service, ServiceContext, StageError, async_trait};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stages_client::HttpError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::client::{ArgoCd, CallBudget};
use crate::labels;
use crate::plan::{RawManifests, Settings, TrackingMethod};
use crate::sources::AsksGit;

/// What is set here is not asked for.
#[derive(Debug, Clone)]
pub struct Config {
    /// Overrides `application.resourceTrackingMethod`.
    pub tracking_method: Option<TrackingMethod>,
    /// Overrides `application.instanceLabelKey`.
    pub instance_label_key: Option<String>,
    /// Overrides the namespace that Argo CD itself is in.
    pub namespace: Option<String>,
    /// Time between two looks at the settings.
    pub every: Duration,
    /// Time between two looks while they are not known.
    pub every_until_known: Duration,
}

impl Config {
    /// All is asked for, again after `every`.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self {
            tracking_method: None,
            instance_label_key: None,
            namespace: None,
            every,
            every_until_known: Duration::from_secs(2),
        }
    }
}

/// What is known of one Argo CD.
#[derive(Debug)]
pub struct ArgoCdSettings {
    tracking_method: TrackingMethod,
    instance_label_key: String,
    installation_id: Option<String>,
    /// The namespace that Argo CD is in, and applications whose tracking value names none.
    pub namespace: String,
    version: Option<String>,
    raw_manifests: Mutex<RawManifests>,
}

/// One look ends within this time.
const LOOK: Duration = Duration::from_secs(60);

/// The settings that hold now; `None` until they are known.
pub type Current = watch::Receiver<Option<Arc<ArgoCdSettings>>>;

/// Looks at the settings until it is stopped.
#[derive(Debug)]
pub struct SettingsWatch {
    config: Config,
    argocd: Arc<ArgoCd>,
    known: watch::Sender<Option<Arc<ArgoCdSettings>>>,
}

impl Config {
    /// Builds the watch, and the place where its result stands. With both the tracking method and the label
    /// key overridden the settings are known from the start.
    #[must_use]
    pub fn build(self, argocd: Arc<ArgoCd>) -> (SettingsWatch, Current) {
        let known = match (&self.tracking_method, &self.instance_label_key) {
            (Some(_), Some(_)) => Some(Arc::new(self.known(SettingsBody::default(), None))),
            _ => None,
        };
        let (known, current) = watch::channel(known);
        (SettingsWatch { config: self, argocd, known }, current)
    }

    fn known(&self, body: SettingsBody, version: Option<String>) -> ArgoCdSettings {
        let text = |own: &Option<String>, theirs: Option<String>, default: &str| {
            let theirs = theirs.filter(|text| !text.is_empty());
            own.clone().or(theirs).unwrap_or_else(|| default.to_owned())
        };
        let tracking_method = self.tracking_method.unwrap_or_else(|| {
            match body.tracking_method.as_deref().filter(|text| !text.is_empty()) {
                Some(method) => TrackingMethod::parse(method),
                None => default_method(version.as_deref()),
            }
        });
        ArgoCdSettings {
            tracking_method,
            instance_label_key: text(
                &self.instance_label_key,
                body.app_label_key,
                "app.kubernetes.io/instance",
            ),
            // One that has none says nothing of it, and neither does one that cannot say it.
            installation_id: body
                .installation_id
                .or_else(|| says_installation(version.as_deref()).then(String::new)),
            namespace: text(&self.namespace, body.controller_namespace, "argocd"),
            version,
            raw_manifests: Mutex::default(),
        }
    }
}

impl ArgoCdSettings {
    /// As a plan takes them.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            tracking_method: self.tracking_method,
            instance_label_key: self.instance_label_key.clone(),
            installation_id: self.installation_id.clone(),
            raw_manifests: *self.raw_manifests.lock().unwrap_or_else(PoisonError::into_inner),
            sources: AsksGit::Never,
        }
    }

    /// Keeps what a plan has learned; forgotten when Argo CD's version or settings change.
    pub fn learn(&self, raw_manifests: RawManifests) {
        *self.raw_manifests.lock().unwrap_or_else(PoisonError::into_inner) = raw_manifests;
    }

    fn is_the_same(&self, other: &Self) -> bool {
        self.tracking_method == other.tracking_method
            && self.instance_label_key == other.instance_label_key
            && self.installation_id == other.installation_id
            && self.namespace == other.namespace
            && self.version == other.version
    }
}

#[async_trait]
impl Service for SettingsWatch {
    fn name(&self) -> &'static str {
        "argocd-settings"
    }

    async fn serve(self: Box<Self>, ServiceContext { stop, .. }: ServiceContext) -> Result<(), StageError> {
        loop {
            let look = async {
                let wait = match self.look().await {
                    Ok(()) => self.config.every,
                    Err(error) => {
                        self.argocd.say(&error, labels::SETTINGS.as_str());
                        let is_known = self.known.borrow().is_some();
                        if is_known { self.config.every } else { self.config.every_until_known }
                    }
                };
                sleep(wait).await;
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = look => {}
            }
        }
    }
}

impl SettingsWatch {
    /// Looks once; what differs holds for every event that begins from now on.
    ///
    /// # Errors
    /// The settings cannot be read, or lack the tracking method while the version that says its default
    /// cannot be read.
    pub async fn look(&self) -> Result<(), HttpError> {
        let calls = CallBudget::until(Instant::now() + LOOK);
        let body: SettingsBody = self.read("/api/v1/settings", &calls).await?;
        let version = match self.read::<VersionBody>("/api/version", &calls).await {
            Ok(body) => body.version,
            Err(error) => {
                let before = self.known.borrow().as_ref().and_then(|known| known.version.clone());
                let method = body.tracking_method.as_deref().unwrap_or_default();
                if method.is_empty() && self.config.tracking_method.is_none() && before.is_none() {
                    return Err(error);
                }
                before
            }
        };
        let now = self.config.known(body, version);
        self.known.send_if_modified(|known| {
            if known.as_ref().is_some_and(|before| before.is_the_same(&now)) {
                return false;
            }
            tracing::info!(
                tracking_method = now.tracking_method.as_str(),
                instance_label_key = now.instance_label_key,
                namespace = now.namespace,
                version = now.version,
                "argo cd settings are known"
            );
            *known = Some(Arc::new(now));
            true
        });
        Ok(())
    }

    async fn read<T: DeserializeOwned>(&self, path: &str, calls: &CallBudget) -> Result<T, HttpError> {
        self.argocd.get(labels::SETTINGS, path, calls, |reply| reply.checked()?.json()).await
    }
}

/// What counts of `settings`; everything else in it is left alone.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SettingsBody {
    app_label_key: Option<String>,
    tracking_method: Option<String>,
    controller_namespace: Option<String>,
    #[serde(rename = "installationID")]
    installation_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VersionBody {
    version: Option<String>,
}

/// What Argo CD does when `argocd-cm` does not say: annotations from version 3 on, labels before.
fn default_method(version: Option<&str>) -> TrackingMethod {
    match numbers(version) {
        (Some(major), _) if major < 3 => TrackingMethod::Label,
        _ => TrackingMethod::Annotation,
    }
}

/// Whether an Argo CD that has an installation id says so. Earlier ones mark what they make by it as well.
fn says_installation(version: Option<&str>) -> bool {
    match numbers(version) {
        (Some(3), Some(minor)) => minor >= 2,
        (Some(major), _) => major > 3,
        _ => false,
    }
}

/// The first two numbers of a version.
fn numbers(version: Option<&str>) -> (Option<u32>, Option<u32>) {
    let mut numbers = version.unwrap_or_default().trim_start_matches('v').split('.');
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    (next(), next())
}
