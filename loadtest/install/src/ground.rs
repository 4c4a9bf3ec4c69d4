//! What the chart is installed on: a cluster with a real node, Argo CD beside it, a platform, a registry, and
//! applications that follow a repository.
//!
//! takes: the program that is installed - gives: all of it, running, and the chart's release on it
//! calls: the programs of a cluster, `helm`, `kubectl` - fails: when something does not start
//!
//! Argo CD, the platform and the registry run on this machine. Pods reach the first two by Services without a selector, so
//! by names that the cluster's name server resolves.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest_cluster::argocd::ArgoCd;
use loadtest_cluster::binaries::Binaries;
use loadtest_cluster::node::Node;
use loadtest_cluster::objects::{Objects, Reference, condition};
use loadtest_cluster::progress::Progress;
use loadtest_cluster::{Cluster, Options};
use loadtest_image::Layout;
use loadtest_judge::screen::say;
use loadtest_sim::nats;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::proxy::Proxy;
use loadtest_sim::reporter::merge;
use loadtest_sim::server::Listen;
use serde_json::{Value, json};

use crate::applications::Applications;
use crate::connections::Watch;
use crate::image;
use crate::policies::Policies;
use crate::registry::{Login, Registry};
use crate::tools::Tools;
use crate::until;

/// The namespace of the release.
pub(crate) const NAMESPACE: &str = "runtime";
/// The release.
pub(crate) const RELEASE: &str = "prod";
/// The version of definitions of kinds.
const DEFINITIONS: &str = "apiextensions.k8s.io/v1";
/// What the names of its objects begin with.
pub(crate) const NAME: &str = "prod-gitops-runtime";
/// The chart, as it stands in the workspace.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helm/gitops-runtime");
const PLATFORM_TOKEN: &str = "simulated-platform-token";
/// How long pods may take to become ready on a busy machine.
const READY_WITHIN: &str = "5m";

/// Everything that runs, and the release.
pub(crate) struct Ground {
    pub(crate) tools: Tools,
    pub(crate) binaries: Binaries,
    pub(crate) objects: Objects,
    pub(crate) applications: Applications,
    pub(crate) platform: Arc<PlatformSim>,
    pub(crate) registry: Registry,
    pub(crate) cluster: Cluster,
    /// Where pods reach Argo CD, which listens on loopback.
    argocd: Proxy,
    pub(crate) folder: PathBuf,
    /// What is installed, which people also run on their machines.
    pub(crate) program: PathBuf,
    /// What the release was last installed or upgraded with.
    pub(crate) values: Value,
    /// The objects that were there before it.
    pub(crate) before: Vec<String>,
    /// What every rendering of the release so far has allowed.
    pub(crate) policies: Policies,
    /// Who looks on at connections.
    pub(crate) watch: Watch,
    /// How long nothing may change that nobody changes; in the short form no longer than it takes to look.
    pub(crate) quiet: Duration,
}

impl Ground {
    /// Starts everything in `folder`, with an image of `program` that the node knows.
    pub(crate) async fn start(
        binaries: Option<&Path>,
        program: &Path,
        folder: &Path,
        quiet: Duration,
    ) -> anyhow::Result<Self> {
        let options = Options {
            binaries: binaries.map(Path::to_path_buf),
            directory: Some(folder.join("cluster")),
            node: true,
            ..Options::default()
        };
        let cluster = Box::pin(Cluster::start(&options)).await?;
        let objects = Objects::new(cluster.control.client());
        let watch = Watch::start(&cluster, folder)?;
        let node = cluster.node.as_ref().context("find the node of the cluster")?;
        let host = IpAddr::from(node.network().host());

        let made = Progress.step("images", images(program)).await?;
        for (layout, name) in &made {
            let archive = folder.join(format!("{name}.tar"));
            layout.write_archive(&archive)?;
            layout.write(&folder.join(name))?;
            Progress.step(&format!("import of {name}"), node.import(&archive)).await?;
        }

        let login = Login { user: "puller".to_owned(), password: "a password of nobody".to_owned() };
        let found = Binaries::find(binaries).await?;
        let registry = Progress.step("registry", Registry::start(&found, folder, host, login)).await?;
        node.trust(&registry.host())?;

        let platform = PlatformSim::start(platform::Config {
            listen: Listen { address: SocketAddr::new(host, 0), tls: None },
            token: Some(PLATFORM_TOKEN.to_owned()),
            keep: Keep { last: true, reports: 0 },
        });
        let platform = Arc::new(platform.await?);
        let loopback = SocketAddr::from(([127, 0, 0, 1], port_of(cluster.argocd.url())?));
        let argocd = Proxy::at(node.network().host(), loopback).await?;
        let (client, repository) = (cluster.argocd.client(), cluster.git.repository("shop").await?);
        let started = Applications::start(repository, client, objects.clone(), platform.clone());
        let applications = Progress.step("applications", started).await?;
        let tools = Tools::new(&cluster.programs(), cluster.control.admin_kubeconfig(), folder);
        let mut ground = Self {
            tools,
            binaries: found,
            objects,
            applications,
            platform,
            registry,
            cluster,
            argocd,
            folder: folder.to_path_buf(),
            program: program.to_path_buf(),
            values: Value::Null,
            before: Vec::new(),
            policies: Policies::default(),
            watch,
            quiet,
        };
        ground.prepare().await?;
        ground.before = ground.found(NAMESPACE).await?;
        Ok(ground)
    }

    /// Where pods reach Argo CD.
    pub(crate) fn argocd_at(&self) -> SocketAddr {
        self.argocd.address()
    }

    /// The node.
    pub(crate) fn node(&self) -> anyhow::Result<&Node> {
        self.cluster.node.as_ref().context("find the node of the cluster")
    }

    /// Ends everything.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.platform.down().await;
        drop(self.registry);
        self.cluster.stop().await
    }

    /// Makes a namespace in which Pod Security enforces `restricted`, and waits for what the cluster makes in each.
    pub(crate) async fn restricted(&self, name: &str) -> anyhow::Result<()> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        }});
        self.objects.apply_value(&object, name).await?;
        for (kind, own) in [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")] {
            let own = Reference::new("v1", kind, Some(name), own);
            let made = until(async || self.objects.get(&own).await, Option::is_some).await?;
            ensure!(made.is_some(), "nobody makes {own}");
        }
        Ok(())
    }

    /// Makes the first namespace, and what a person makes before an installation.
    async fn prepare(&mut self) -> anyhow::Result<()> {
        let argocd = self.argocd.address().port();
        let platform = port_of(&self.platform.url())?;
        let host = self.node()?.network().host().to_string();
        self.restricted(NAMESPACE).await?;
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}),
            secret("codefresh-token", "Opaque", "token", PLATFORM_TOKEN),
            secret("argocd-token", "Opaque", "token", &self.cluster.argocd.token(ArgoCd::REPORTER)?),
        ];
        objects.extend(outside(ArgoCd::NAMESPACE, "argocd-server", 80, &host, argocd));
        objects.extend(outside("platform", "platform", platform, &host, platform));
        for object in objects {
            self.objects.apply_value(&object, NAMESPACE).await?;
        }
        self.values = json!({
            "global": {
                "runtime": {"name": "prod"},
                "codefresh": {"url": format!("http://platform.platform.svc:{platform}")},
                "integrations": {"argo-cd": {"namespace": ArgoCd::NAMESPACE}},
            },
            "networkPolicy": {"kubernetesApiPorts": [443, port_of(self.cluster.control.url())?]},
            "reporter": {"persistence": {"storageClass": "local"}},
            "nats": {"persistence": {"storageClass": "local"}},
        });
        Ok(())
    }

    /// Installs the release or upgrades it, with `more` over the values of the last time, and waits until its pods are
    /// ready.
    pub(crate) async fn upgrade(&mut self, more: &Value) -> anyhow::Result<()> {
        self.upgrade_with(more, &["--wait"]).await
    }

    /// The same without waiting for anything.
    pub(crate) async fn begin_upgrade(&mut self, more: &Value) -> anyhow::Result<()> {
        self.upgrade_with(more, &[]).await
    }

    async fn upgrade_with(&mut self, more: &Value, options: &[&str]) -> anyhow::Result<()> {
        merge(&mut self.values, more);
        self.release(NAMESPACE, &self.values, options).await?;
        self.policies.learn(&self.manifest(NAMESPACE).await?)
    }

    /// Installs or upgrades the release of this name in a namespace, and gives what Helm said.
    pub(crate) async fn release(
        &self,
        namespace: &str,
        values: &Value,
        options: &[&str],
    ) -> anyhow::Result<String> {
        self.release_of(Path::new(CHART), namespace, values, options).await
    }

    /// The same of another chart.
    pub(crate) async fn release_of(
        &self,
        chart: &Path,
        namespace: &str,
        values: &Value,
        options: &[&str],
    ) -> anyhow::Result<String> {
        let file = self.folder.join(format!("values-{namespace}.json"));
        std::fs::write(&file, values.to_string()).context("write values")?;
        let (chart, file) = (chart.display().to_string(), file.display().to_string());
        let args = ["upgrade", "--install", RELEASE, &chart, "--namespace", namespace, "--values", &file];
        let waited = ["--timeout", READY_WITHIN];
        let (said, beside) = self.tools.run_loud("helm", &[&args[..], &waited, options].concat()).await?;
        Ok(said + &beside)
    }

    /// Runs `helm` on the release.
    pub(crate) async fn helm(&self, command: &str, options: &[&str]) -> anyhow::Result<String> {
        let args = [command, RELEASE, "--namespace", NAMESPACE, "--timeout", READY_WITHIN];
        self.tools.run("helm", &[&args[..], options].concat()).await
    }

    /// What the release consists of.
    pub(crate) async fn manifest(&self, namespace: &str) -> anyhow::Result<String> {
        self.tools.run("helm", &["get", "manifest", RELEASE, "--namespace", namespace]).await
    }

    /// Defines the kinds of Argo Rollouts and Argo Workflows, whose controllers do not run; once.
    pub(crate) async fn define_argo(&self) -> anyhow::Result<()> {
        let first = Reference::new(DEFINITIONS, "CustomResourceDefinition", None, "rollouts.argoproj.io");
        if self.objects.get(&first).await?.is_some() {
            return Ok(());
        }
        for of in ["rollouts", "workflows"] {
            self.objects.apply_folder(&self.binaries.share(of).join("crds"), NAMESPACE).await?;
        }
        Ok(())
    }

    /// What `gitops-runtime check` says of the release, and whether nothing fails.
    pub(crate) async fn checked(&self) -> anyhow::Result<(bool, String)> {
        let kubeconfig = self.kubeconfig();
        let args = ["check", "--namespace", NAMESPACE, "--release", RELEASE, "--kubeconfig", &kubeconfig];
        let output = tokio::process::Command::new(&self.program)
            .args(args)
            .kill_on_drop(true)
            .output()
            .await
            .context("run gitops-runtime check")?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// The kubeconfig of who may do everything.
    pub(crate) fn kubeconfig(&self) -> String {
        self.cluster.control.admin_kubeconfig().display().to_string()
    }

    /// Says what a person would look at after a failure: pods, their events and the ends of their logs.
    pub(crate) async fn explain(&self) {
        let looks: [&[&str]; 3] = [
            &["get", "pods,pvc", "--namespace", NAMESPACE, "--output=wide"],
            &["get", "events", "--namespace", NAMESPACE, "--field-selector=type=Warning"],
            &[
                "logs",
                "--namespace",
                NAMESPACE,
                "--selector",
                "app.kubernetes.io/component",
                "--tail=5",
                "--prefix",
            ],
        ];
        for look in looks {
            match self.tools.run("kubectl", look).await {
                Ok(said) => say(said.trim_end()),
                Err(error) => say(&format!("{error:#}")),
            }
        }
    }

    /// The pods of a component of the release: their names, and what the API server says of them.
    pub(crate) async fn pods(&self, component: &str) -> anyhow::Result<Vec<Value>> {
        let selector =
            format!("app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}");
        let args = ["get", "pods", "--namespace", NAMESPACE, "--selector", &selector, "--output", "json"];
        let mut list = self.tools.json("kubectl", &args).await?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Waits until the pods of a component are as many, all ready, and none of those that are named.
    pub(crate) async fn ready(&self, component: &str, number: usize, but: &[String]) -> anyhow::Result<()> {
        let ready =
            |pods: &[Value]| pods.iter().filter(|pod| is_ready(pod) && !but.contains(&name_of(pod))).count();
        let are_so = |pods: &Vec<Value>| ready(pods) == number && pods.len() == number;
        let pods = until(async || self.pods(component).await, are_so).await?;
        ensure!(
            are_so(&pods),
            "{} of {number} pods of {component} are ready: {}",
            ready(&pods),
            pods.iter().map(|pod| pod["status"].to_string()).collect::<Vec<_>>().join(", ")
        );
        Ok(())
    }

    /// How often the containers of the pods of a component were started anew.
    pub(crate) async fn restarts(&self, component: &str) -> anyhow::Result<u64> {
        let pods = self.pods(component).await?;
        let containers =
            pods.iter().filter_map(|pod| pod["status"]["containerStatuses"].as_array()).flatten();
        Ok(containers.filter_map(|container| container["restartCount"].as_u64()).sum())
    }

    /// Waits until a container of a component waits for its image, and gives what the kubelet says.
    pub(crate) async fn image_refused(&self, component: &str) -> anyhow::Result<String> {
        let look = async || {
            for pod in self.pods(component).await? {
                let kinds = ["initContainerStatuses", "containerStatuses"].into_iter();
                let containers = kinds.filter_map(|kind| pod["status"][kind].as_array()).flatten();
                let mut waiting = containers.map(|one| &one["state"]["waiting"]);
                if let Some(refused) = waiting.rfind(|one| one["reason"] == "ErrImagePull") {
                    return Ok(Some(refused["message"].as_str().unwrap_or_default().to_owned()));
                }
            }
            Ok(None)
        };
        let refused = until(look, Option::is_some).await?;
        refused.with_context(|| format!("no pod of {component} waits for its image"))
    }

    /// Kills a pod (SIGKILL).
    pub(crate) async fn kill(&self, pod: &str) -> anyhow::Result<()> {
        let options = ["--namespace", NAMESPACE, "--force", "--grace-period=0", "--wait=false"];
        let args = [&["delete", "pod", pod][..], &options].concat();
        self.tools.run("kubectl", &args).await.map(drop)
    }

    /// Kills the pods of a component, and gives their names.
    pub(crate) async fn kill_all(&self, component: &str) -> anyhow::Result<Vec<String>> {
        let mut killed = Vec::new();
        for pod in self.pods(component).await? {
            self.kill(&name_of(&pod)).await?;
            killed.push(name_of(&pod));
        }
        Ok(killed)
    }

    /// Every object in a namespace, and every role and binding of the cluster, but for what comes and goes by itself: a line
    /// each, sorted.
    pub(crate) async fn found(&self, namespace: &str) -> anyhow::Result<Vec<String>> {
        let kinds = ["api-resources", "--namespaced", "--verbs=list", "--output=name"];
        let kinds = self.tools.run("kubectl", &kinds).await?;
        let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
        let shown =
            "--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
        let kinds = kinds.join(",");
        let own = ["get", &kinds, "--namespace", namespace, "--ignore-not-found", shown];
        let roles = ["get", "roles,rolebindings", "--all-namespaces", shown];
        let wide = ["get", "clusterroles,clusterrolebindings", shown];
        let mut all = String::new();
        for args in [&own[..], &roles, &wide] {
            all.push_str(&self.tools.run("kubectl", args).await?);
        }
        let mut lines: Vec<String> = all.lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        Ok(lines)
    }

    /// Makes a Secret with a login for the registry.
    pub(crate) async fn give_login(&mut self, name: &str) -> anyhow::Result<()> {
        let settings = self.registry.settings().to_string();
        let object = secret(name, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", &settings);
        self.objects.apply_value(&object, NAMESPACE).await?;
        self.before.push(format!("Secret {NAMESPACE}/{name}"));
        Ok(())
    }

    /// Pushes the images to the registry, under the names that the chart gives them.
    pub(crate) async fn push(&self) -> anyhow::Result<Vec<String>> {
        let mut digests = Vec::new();
        for name in ["gitops-runtime", "nats"] {
            let tagged = tagged(name)?;
            digests.push(self.registry.push(&self.folder.join(name), &tagged).await?);
        }
        Ok(digests)
    }

    /// An object of the release.
    pub(crate) async fn object(
        &self,
        version: &str,
        kind: &str,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        self.objects.get(&Reference::new(version, kind, Some(NAMESPACE), name)).await
    }
}

/// The images that the chart names, under the folder that each is written to.
async fn images(program: &Path) -> anyhow::Result<Vec<(Layout, &'static str)>> {
    let program = program.to_path_buf();
    let made = tokio::task::spawn_blocking(move || {
        let server = nats::program()?;
        let runtime = format!("docker.io/library/{}", tagged("gitops-runtime")?);
        let bus = format!("docker.io/library/{}", tagged("nats")?);
        anyhow::Ok(vec![
            (image::of(&program, &runtime, "gitops-runtime")?.build()?, "gitops-runtime"),
            (image::of(&server, &bus, "nats-server")?.build()?, "nats"),
        ])
    });
    made.await.context("make images")?
}

/// The name and tag that the chart gives an image, without its registry: `images.txt` holds what it renders.
fn tagged(name: &str) -> anyhow::Result<String> {
    let file = Path::new(CHART).join("images.txt");
    let all = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let mut names = all.lines().map(|line| line.rsplit_once('/').map_or(line, |(_, named)| named));
    let named = names.find(|named| named.split(':').next() == Some(name));
    named.map(str::to_owned).with_context(|| format!("find the image {name} in {}", file.display()))
}

/// A Service of this name whose port `at` leads out of the cluster.
pub(crate) fn outside(namespace: &str, name: &str, at: u16, host: &str, port: u16) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
            "ports": [{"name": "http", "port": at, "targetPort": port}],
        }}),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "endpoints": [{"addresses": [host]}], "ports": [{"name": "http", "port": port}],
        }),
    ]
}

/// A Secret with one key.
pub(crate) fn secret(name: &str, kind: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind,
        "data": {key: STANDARD.encode(value)},
    })
}

/// The port that stands in an address.
pub(crate) fn port_of(url: &str) -> anyhow::Result<u16> {
    let port = url.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port.parse());
    port.with_context(|| format!("find the port in {url}"))?
        .with_context(|| format!("read the port in {url}"))
}

/// The name of a pod.
pub(crate) fn name_of(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn is_ready(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null() && condition(pod, "Ready") == Some("True")
}
