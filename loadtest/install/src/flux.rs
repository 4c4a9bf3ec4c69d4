//! The chart as Flux installs it: its helm-controller, a HelmRelease, and a packaged chart that it fetches.
//!
//! takes: a cluster - gives: what Flux does that nobody asked for: an upgrade, a correction of what differs; and what is left when the
//! HelmRelease is deleted
//! calls: helm-controller as a process; the API server; `helm` for packages - fails: when one of them does
//!
//! Flux' source-controller does not run: what it would say of a chart that it fetched is said in its place. helm-controller puts right by
//! itself what differs, and says so: that it would is seen by something that is changed behind its back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::extract::{Path as Named, State};
use axum::http::StatusCode;
use axum::routing::get;
use loadtest_cluster::definitions::unchecked;
use loadtest_cluster::objects::{Reference, condition};
use loadtest_cluster::progress::Progress;
use loadtest_judge::screen::say;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::port;
use loadtest_sim::reporter::merge;
use loadtest_sim::server::{Listen, Server};
use loadtest_sim::{PATIENCE, local_client};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use crate::ground::{CHART, Ground};
use crate::neighbour::Neighbour;
use crate::until;

/// The program of Flux.
const CONTROLLER: &str = "helm-controller";
/// The namespace that Flux installs into, and the names of its objects.
const OWN: &str = "runtime-flux";
const RELEASE: &str = "by-flux";
const RELEASES: &str = "helm.toolkit.fluxcd.io/v2";
const SOURCES: &str = "source.toolkit.fluxcd.io/v1";
/// What it is asked to look again by, and what it answers with.
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
/// The label that is changed behind its back.
const LABEL: &str = "app.kubernetes.io/name";
/// The versions of the chart, and what each comes from. Of a registry Flux adds the digest to the version, as build metadata.
const FIRST: (&str, &str) = ("HelmChart", "0.1.0");
const SECOND: (&str, &str) = ("OCIRepository", "0.1.1");
/// Between two questions whether anything differs, where it is watched for long.
const ANEW: Duration = Duration::from_secs(15);

/// The controller, and whoever gives charts away.
struct Flux {
    controller: Child,
    server: Server,
    folder: PathBuf,
    /// Questions so far.
    asked: u32,
}

/// Has it installed, watched, put right, upgraded and deleted.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let mut neighbour = Neighbour::start(ground, OWN).await?;
    let trust = json!({"secret": {"create": true, "content": neighbour.authority}});
    merge(&mut neighbour.values, &json!({"global": {"codefresh": {"tls": {"caCerts": trust}}}}));
    let mut flux = Flux::start(ground).await?;
    let first = flux.offer(ground, FIRST).await?;
    ground.objects.apply_value(&wanted(&neighbour.values, FIRST.0), OWN).await?;
    flux.released(ground, &first, 1).await?;
    let mut wrong = neighbour.follow(ground).await?;
    wrong.extend(flux.quiet(ground, (&first, 1), ground.quiet).await?);
    wrong.extend(flux.puts_right(ground).await?);

    // Another version of the chart, of another kind of source, and other values.
    merge(&mut neighbour.values, &json!({"reporter": {"podAnnotations": {"example.com/upgraded": "yes"}}}));
    let second = flux.offer(ground, SECOND).await?;
    ground.objects.apply_value(&wanted(&neighbour.values, SECOND.0), OWN).await?;
    flux.released(ground, &second, 2).await?;
    wrong.extend(neighbour.follow(ground).await?);

    ground.objects.delete(&reference(RELEASES, "HelmRelease")).await?;
    let look = async || ground.objects.get(&reference(RELEASES, "HelmRelease")).await;
    let left = until(look, Option::is_none).await?;
    ensure!(left.is_none(), "Flux does not uninstall: {:?}", flux.controller.last_lines(5));
    for (kind, _) in [FIRST, SECOND] {
        ground.objects.delete(&reference(SOURCES, kind)).await?;
    }
    let kept =
        ["PersistentVolumeClaim", "Secret"].map(|kind| format!("{kind} {OWN}/{RELEASE}-gitops-runtime"));
    let may_stay = |line: &str| {
        kept.iter().zip(["-reporter", "-generated"]).any(|(kept, end)| line == format!("{kept}{end}"))
    };
    wrong.extend(neighbour.gone(ground, may_stay).await?);
    flux.controller.stop().await?;
    Ok(wrong)
}

impl Flux {
    /// Defines its kinds, and starts it.
    async fn start(ground: &Ground) -> anyhow::Result<Self> {
        let program = ground.binaries.further(CONTROLLER).await?;
        let definitions = ground.binaries.share("flux").join("crds");
        let defined = ground.objects.apply_folder(&definitions, OWN);
        Progress.step("definitions of Flux", defined).await?;
        for (kind, plural) in [(FIRST.0, "helmcharts"), (SECOND.0, "ocirepositories")] {
            let definition = unchecked("source.toolkit.fluxcd.io", kind, plural, &["v1"], true);
            ground.objects.apply_value(&definition, OWN).await?;
        }
        let folder = ground.folder.join("flux");
        std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let health = port::free()?;
        let spec = Spec::new(CONTROLLER, program, &folder)
            .args([
                "--watch-all-namespaces".to_owned(),
                "--enable-leader-election=false".to_owned(),
                "--metrics-addr=0".to_owned(),
                format!("--health-addr=127.0.0.1:{health}"),
            ])
            .env("KUBECONFIG", ground.kubeconfig())
            .env("RUNTIME_NAMESPACE", OWN)
            .env("TMPDIR", folder.display().to_string());
        let controller = Child::start(&spec)?;
        let http = local_client().build().context("make a client")?;
        let url = format!("http://127.0.0.1:{health}/readyz");
        let is_ready = async || http.get(&url).send().await.is_ok_and(|answer| answer.status() == 200);
        controller.ready(PATIENCE, is_ready).await?;
        let server = Server::start(given_away(&folder), Listen::default()).await?;
        Ok(Self { controller, server, folder, asked: 0 })
    }

    /// Packages the chart as a version, and says what source-controller would of a source of this kind; gives the version that Flux
    /// makes of it.
    async fn offer(&self, ground: &Ground, (kind, version): (&str, &str)) -> anyhow::Result<String> {
        let folder = self.folder.display().to_string();
        let package = ["package", CHART, "--version", version, "--destination", &folder];
        ground.tools.run("helm", &package).await?;
        let name = format!("gitops-runtime-{version}.tgz");
        let archive = std::fs::read(self.folder.join(&name)).with_context(|| format!("read {name}"))?;
        let digest: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        let is_of_a_registry = kind == SECOND.0;
        let source = json!({
            "apiVersion": SOURCES, "kind": kind, "metadata": {"name": RELEASE}, "spec": {"interval": "10m"},
        });
        ground.objects.apply_value(&source, OWN).await?;
        let now = "2026-11-27T00:00:00Z";
        let revision =
            if is_of_a_registry { format!("{version}@sha256:{digest}") } else { version.to_owned() };
        let status = json!({"status": {
            "observedGeneration": 1,
            "artifact": {
                "path": name, "url": format!("{}/{name}", self.server.url()), "revision": revision,
                "digest": format!("sha256:{digest}"), "lastUpdateTime": now, "size": archive.len(),
            },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Succeeded", "message": "pulled",
                "lastTransitionTime": now, "observedGeneration": 1,
            }],
        }});
        let source = format!("{}.source.toolkit.fluxcd.io", kind.to_lowercase());
        let status = status.to_string();
        let args = ["patch", &source, RELEASE, "--namespace", OWN, "--subresource=status"];
        ground.tools.run("kubectl", &[&args[..], &["--type=merge", "--patch", &status]].concat()).await?;
        // As long as Flux has it.
        let digest = digest.get(..12).context("shorten a digest")?;
        Ok(if is_of_a_registry { format!("{version}+{digest}") } else { version.to_owned() })
    }

    /// Waits until a version is released as the revision of this number.
    async fn released(&self, ground: &Ground, version: &str, number: u64) -> anyhow::Result<()> {
        let began = Instant::now();
        let is_released = |shown: &Value| is_released(shown, version, number);
        let shown = until(async || shown(ground).await, is_released).await?;
        ensure!(
            is_released(&shown),
            "Flux shows {}; its log ends with {:?}",
            shown["status"],
            self.controller.last_lines(5)
        );
        say(&format!("  {version} is released after {:.0} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Has it look again, and waits until it has.
    async fn looks_again(&mut self, ground: &Ground) -> anyhow::Result<Value> {
        self.asked += 1;
        let turn = self.asked.to_string();
        let patch = json!({"metadata": {"annotations": {REQUESTED: turn}}});
        ground.objects.patch(&reference(RELEASES, "HelmRelease"), &patch, None).await?;
        let has_looked = |shown: &Value| {
            shown["status"]["lastHandledReconcileAt"] == turn.as_str()
                && shown.pointer("/status/observedGeneration") == shown.pointer("/metadata/generation")
        };
        let shown = until(async || shown(ground).await, has_looked).await?;
        ensure!(has_looked(&shown), "Flux does not look again: {}", shown["status"]);
        Ok(shown)
    }

    /// What it does for so long that nobody asked for, and when it is asked to look again.
    async fn quiet(
        &mut self,
        ground: &Ground,
        (version, number): (&str, u64),
        long: Duration,
    ) -> anyhow::Result<Vec<String>> {
        let began = Instant::now();
        loop {
            let shown = self.looks_again(ground).await?;
            if !is_released(&shown, version, number) {
                return Ok(vec![format!("nobody changed anything, and Flux shows {}", shown["status"])]);
            }
            let drifts = drifts(ground).await?;
            if !drifts.is_empty() {
                return Ok(drifts
                    .into_iter()
                    .map(|line| format!("nobody changed anything, and {line}"))
                    .collect());
            }
            if began.elapsed() >= long {
                break;
            }
            sleep(ANEW).await;
        }
        let seconds = began.elapsed().as_secs_f64();
        say(&format!("  no difference in {seconds:.0} s, for which Flux looked again {} times", self.asked));
        Ok(Vec::new())
    }

    /// Changes an object behind its back, which it is to find and put right.
    async fn puts_right(&mut self, ground: &Ground) -> anyhow::Result<Vec<String>> {
        let name = format!("{RELEASE}-gitops-runtime-reporter");
        let object = Reference::new("v1", "ConfigMap", Some(OWN), &name);
        let patch = json!({"metadata": {"labels": {LABEL: "somebody"}}});
        ground.objects.patch(&object, &patch, None).await?;
        self.looks_again(ground).await?;
        let look = async || {
            let found = ground.objects.get(&object).await?.with_context(|| format!("find {object}"))?;
            let drifts = drifts(ground).await?;
            if found["metadata"]["labels"][LABEL] == "gitops-runtime" && !drifts.is_empty() {
                say(&format!("  of what was changed behind its back, {}", drifts.join("; ")));
                return Ok(Vec::new());
            }
            Ok(vec![format!("Flux does not put {object} right: it says {drifts:?}")])
        };
        until(look, Vec::is_empty).await
    }
}

/// Gives the files of a folder away.
fn given_away(folder: &Path) -> Router {
    let give = async |State(folder): State<PathBuf>, Named(name): Named<String>| {
        std::fs::read(folder.join(name)).map_err(|_| StatusCode::NOT_FOUND)
    };
    Router::new().route("/{name}", get(give)).with_state(folder.to_path_buf())
}

fn reference(version: &str, kind: &str) -> Reference {
    Reference::new(version, kind, Some(OWN), RELEASE)
}

async fn shown(ground: &Ground) -> anyhow::Result<Value> {
    let reference = reference(RELEASES, "HelmRelease");
    ground.objects.get(&reference).await?.with_context(|| format!("find {reference}"))
}

/// Whether this version of the chart is the newest revision, by this number, and all is well.
fn is_released(release: &Value, version: &str, number: u64) -> bool {
    let status = &release["status"];
    let newest = &status["history"][0];
    newest["chartVersion"] == version
        && newest["version"] == number
        && newest["status"] == "deployed"
        && condition(release, "Ready") == Some("True")
}

/// What it says of differences, a line each.
async fn drifts(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let args = ["get", "events", "--namespace", OWN, "--output=json"];
    let events = ground.tools.json("kubectl", &args).await?;
    let all = events["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let drifts = all.iter().filter(|event| text(event, "reason").contains("Drift"));
    Ok(drifts.map(|event| format!("{}: {}", text(event, "reason"), text(event, "message"))).collect())
}

/// What Flux is to install of a kind of source, and to compare each quarter of a minute.
fn wanted(values: &Value, source: &str) -> Value {
    json!({
        "apiVersion": RELEASES, "kind": "HelmRelease", "metadata": {"name": RELEASE},
        "spec": {
            "interval": "15s", "timeout": "5m", "releaseName": RELEASE,
            "chartRef": {"kind": source, "name": RELEASE},
            "driftDetection": {"mode": "enabled"},
            "values": values,
        },
    })
}
