//! The controllers of Argo Rollouts and Argo Workflows, for the whole cluster, and that of Argo CD's ApplicationSets.
//!
//! takes: the programs, a control plane, a folder - gives: each as a child that can be killed and started again
//! calls: the Kubernetes API as its administrator; the controllers' health - fails: when one does not become ready;
//! the end of its log stands in the error

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::argocd::ArgoCd;
use super::binaries::Binaries;
use super::control::Control;
use super::definitions::define;
use super::objects::Objects;
use super::progress::Progress;
use loadtest_sim::PATIENCE;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::port;

/// How long one question whether it is may take.
const ANSWER: Duration = Duration::from_secs(5);
/// The image of the executor, which runs beside each container of a workflow on a real node.
pub(super) const EXECUTOR: &str = "localhost/argoexec:1";
/// The namespace of the workflow controller's own settings.
const WORKFLOWS: &str = "argo";

/// A running controller. It ends when it is dropped.
#[derive(Debug)]
pub struct Controller {
    child: Child,
    health: String,
    http: reqwest::Client,
}

impl Controller {
    /// Installs Argo Rollouts' definitions and starts its controller.
    pub async fn rollouts(binaries: &Binaries, control: &Control, directory: &Path) -> anyhow::Result<Self> {
        let (health, metrics) = (port::free()?, port::free()?);
        let spec = spec("rollouts-controller", binaries, control, directory).args([
            "--leader-elect=false".to_owned(),
            format!("--healthzPort={health}"),
            format!("--metricsport={metrics}"),
            "--rollout-threads=2".to_owned(),
            "--experiment-threads=1".to_owned(),
            "--analysis-threads=1".to_owned(),
            "--service-threads=1".to_owned(),
            "--ingress-threads=1".to_owned(),
        ]);
        let begin = async {
            define(&control.client(), &[], &binaries.share("rollouts").join("crds"), &[]).await?;
            Self::start(&spec, format!("http://127.0.0.1:{health}/healthz")).await
        };
        Progress.step("rollouts-controller", begin).await.context("start Argo Rollouts")
    }

    /// Installs Argo Workflows' definitions and starts its controller; it packs what a Workflow says of its nodes where that has more
    /// than so many bytes, a mebibyte where nothing is said.
    pub async fn workflows(
        binaries: &Binaries,
        control: &Control,
        directory: &Path,
        largest: Option<u32>,
    ) -> anyhow::Result<Self> {
        let objects = Objects::new(control.client());
        let metrics = port::free()?;
        let spec = spec("workflow-controller", binaries, control, directory)
            .args(["--namespace", WORKFLOWS, "--executor-image", EXECUTOR])
            .args(["--workflow-workers", "2", "--workflow-ttl-workers", "1", "--pod-cleanup-workers", "1"])
            .args(["--cron-workflow-workers", "1", "--workflow-archive-workers", "1"])
            .env("LEADER_ELECTION_DISABLE", "true")
            // How soon it looks at a workflow again whose pods have changed.
            .env("DEFAULT_REQUEUE_TIME", "500ms")
            .env("ARGO_CONTROLLER_NAMESPACE", WORKFLOWS);
        let spec = match largest {
            Some(bytes) => spec.env("MAX_WORKFLOW_SIZE", bytes.to_string()),
            None => spec,
        };
        let begin = async {
            let settings = settings(metrics);
            let definitions = binaries.share("workflows").join("crds");
            let client = control.client();
            futures::try_join!(define(&client, &[], &definitions, &[]), objects.apply(&settings, WORKFLOWS))?;
            Self::start(&spec, format!("http://127.0.0.1:{metrics}/metrics")).await
        };
        Progress.step("workflow-controller", begin).await.context("start Argo Workflows")
    }

    /// Starts the server of Argo Workflows, which does whatever its callers may themselves; its controller runs already. Gives
    /// where it serves, too.
    pub async fn workflow_server(
        binaries: &Binaries,
        control: &Control,
        directory: &Path,
    ) -> anyhow::Result<(Self, String)> {
        let program = binaries.further("argo").await?;
        let port = port::free()?;
        let spec = Spec::new("argo", program, directory)
            .args(["server", "--auth-mode", "client", "--secure=false", "--namespace", WORKFLOWS])
            .args(["--port".to_owned(), port.to_string()])
            // What it calls with the token of a caller it finds by this variable alone.
            .env("KUBECONFIG", control.admin_kubeconfig().display().to_string());
        let url = format!("http://127.0.0.1:{port}");
        let begun = Progress.step("argo server", Self::start(&spec, url.clone())).await;
        Ok((begun.context("start the server of Argo Workflows")?, url))
    }

    /// Starts Argo CD's controller of ApplicationSets, which lists what it makes and asks no repository; it keeps these
    /// annotations of the Applications that it makes, and no others.
    pub async fn application_sets(
        binaries: &Binaries,
        control: &Control,
        directory: &Path,
        preserved: &[&str],
    ) -> anyhow::Result<Self> {
        let metrics = port::free()?;
        let spec = spec("argocd-applicationset-controller", binaries, control, directory)
            .args(["--namespace", ArgoCd::NAMESPACE, "--webhook-addr", "127.0.0.1:0", "--probe-addr", "0"])
            .args([format!("--metrics-addr=127.0.0.1:{metrics}")])
            .env("KUBECONFIG", control.admin_kubeconfig().display().to_string())
            // Its Deployment sets it to `applicationsetcontroller.global.preserved.annotations` of `argocd-cmd-params-cm`.
            .env("ARGOCD_APPLICATIONSET_CONTROLLER_GLOBAL_PRESERVED_ANNOTATIONS", preserved.join(","));
        let begin = Self::start(&spec, format!("http://127.0.0.1:{metrics}/metrics"));
        Progress.step("applicationset-controller", begin).await.context("start the ApplicationSet controller")
    }

    /// Whether it runs, by its program's name.
    #[must_use]
    pub fn program(&self) -> (String, bool) {
        (self.child.name().to_owned(), self.child.is_running())
    }

    /// Kills it (SIGKILL): it keeps nothing that the cluster does not.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.child.kill().await
    }

    /// Starts it anew and waits until it is ready; it is stopped first when it runs.
    pub async fn revive(&self) -> anyhow::Result<()> {
        self.child.restart().await?;
        self.ready().await
    }

    async fn start(spec: &Spec, health: String) -> anyhow::Result<Self> {
        let http = super::argocd::http()?;
        let controller = Self { child: Child::start(spec)?, health, http };
        controller.ready().await?;
        Ok(controller)
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let probe = async || {
            let answer = self.http.get(&self.health).timeout(ANSWER).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        };
        self.child.ready(PATIENCE, probe).await.map(|_| ())
    }
}

fn spec(name: &str, binaries: &Binaries, control: &Control, directory: &Path) -> Spec {
    Spec::new(name, binaries.program(name), directory)
        .args([Path::new("--kubeconfig"), control.admin_kubeconfig()])
}

/// The workflow controller's settings: its metrics, which show that it is ready, on a free port.
fn settings(metrics: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {WORKFLOWS}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: workflow-controller-configmap}}\ndata:\n  \
         metricsConfig: |\n    enabled: true\n    path: /metrics\n    port: {metrics}\n    secure: false\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn server_and_executor_are_of_the_version_of_their_controller() {
        let version = |folder: &str| {
            let path = format!("{}/../../.ci/cluster/{folder}/go.mod", env!("CARGO_MANIFEST_DIR"));
            let module = std::fs::read_to_string(path).unwrap();
            let mut lines = module.lines().map(str::trim);
            lines
                .find_map(|line| {
                    line.strip_prefix("github.com/argoproj/argo-workflows/v3 ").map(str::to_owned)
                })
                .unwrap()
        };
        assert_eq!(version("workflows-server"), version("workflows"));
    }

    #[test]
    fn the_settings_are_a_namespace_and_a_config_map_that_holds_yaml() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&settings(2345)).unwrap();
        assert_eq!(documents[0]["metadata"]["name"], "argo");
        let text = documents[1]["data"]["metricsConfig"].as_str().unwrap();
        let metrics: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(metrics["port"], 2345);
        assert_eq!(metrics["path"], "/metrics");
        assert_eq!(metrics["secure"], false);
    }
}
