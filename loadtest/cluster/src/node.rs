//! A real node beside the control plane: containerd, kubelet and kube-proxy in namespaces of their own, with a name server,
//! a storage class and an image to try things with.
//!
//! takes: namespaces, a control plane that listens where they reach it, a folder for logs - gives: a node that runs pods; its
//! end leaves nothing
//! calls: `containerd`, `ctr`, `runc` and the network plugins of the distribution, `kubectl` - fails: when a program does
//! not become ready; the end of its log stands in the error

mod archive;
pub(super) mod check;
mod namespaces;
mod settings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::http::Request;
use serde_json::Value;
use tokio::process::Command;

pub use self::namespaces::{Namespaces, sweep};
use super::binaries::Binaries;
use super::control::{Control, is_ready};
use super::network::Network;
use super::objects::{Objects, Reference};
use super::progress::Progress;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::{PATIENCE, until};

/// The name of the node.
pub const NAME: &str = "worker";
/// An image that is there from the start, with a shell, `wget`, `nc`, `httpd` and `nslookup` in `/bin`.
pub const BUSYBOX: &str = "localhost/busybox:1";
/// What holds the namespaces of a pod.
const PAUSE: &str = "localhost/pause:1";
/// Volumes of the storage class `local`; one that was used is not given a second time.
const VOLUMES: u8 = 48;
/// How containerd's own client takes an image for pods.
const IMPORT: [&str; 5] = ["--namespace", "k8s.io", "images", "import", "-"];
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes that the kernel keeps of connections that are not printed yet.
const BUFFER: &str = "8388608";
/// Where distributions keep the network plugins.
const PLUGINS: [&str; 3] = ["/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"];

/// A running node. It ends when it is dropped.
#[derive(Debug)]
pub struct Node {
    containerd: Child,
    kubelet: Child,
    proxy: Child,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    client: Client,
    /// Last, as what runs inside ends before.
    namespaces: Namespaces,
}

/// kube's client does not print itself.
struct Client(kube::Client);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Node {
    /// Starts it for a control plane that was started with the network of `namespaces`, and waits until it and its name
    /// server are ready.
    pub async fn start(
        binaries: &Binaries,
        control: &Control,
        namespaces: Namespaces,
        logs: &Path,
    ) -> anyhow::Result<Self> {
        let (folder, network) = (namespaces.folder().to_path_buf(), namespaces.network());
        write_all(&folder, &namespaces.group(), network, control)?;
        let start = |name: &str, program: &Path, flags: Vec<String>| {
            let (enter, args) = namespaces.inside(program);
            Child::start(&Spec::new(name, enter, logs).args(args).args(flags))
        };

        let config = format!("--config={}", folder.join("containerd.toml").display());
        let containerd = start("containerd", Path::new("containerd"), vec![config])?;
        let flags = settings::kubelet_flags(&folder, network);
        let runs = async || asked(&ctr(&namespaces, &["version"]), Stdio::null()).await.is_ok();
        Progress.step("containerd", containerd.ready(PATIENCE, runs)).await?;
        let images = tokio::task::spawn_blocking(|| {
            archive::busybox(&[(BUSYBOX, &["sh"]), (PAUSE, &["sleep", "2147483647"])])
        });
        let file = folder.join("busybox.tar");
        tokio::fs::write(&file, images.await.context("pack an image")??).await.context("write an image")?;
        import(&namespaces, &file).await?;

        let kubelet = start("kubelet", &binaries.program("kubelet"), flags)?;
        let objects = Objects::new(control.client());
        for object in settings::objects(&folder, network, &binaries.programs()) {
            objects.apply_value(&object, "kube-system").await?;
        }
        let node = Reference::new("v1", "Node", None, NAME);
        let ready = async || objects.get(&node).await.ok().flatten().is_some_and(|node| is_ready(&node));
        Progress.step("kubelet", kubelet.ready(PATIENCE, ready)).await?;
        // It asks for the node when it starts, and again after seconds.
        let flags = settings::proxy_flags(&folder, network);
        let proxy = start("kube-proxy", &binaries.program("kube-proxy"), flags)?;
        let names = Reference::new("apps/v1", "Deployment", Some("kube-system"), "coredns");
        let ready = async || {
            let found = objects.get(&names).await.ok().flatten();
            found.is_some_and(|found| found["status"]["readyReplicas"] == 1)
        };
        Progress.step("kube-proxy and name server", proxy.ready(PATIENCE, ready)).await?;
        Ok(Self {
            containerd,
            kubelet,
            proxy,
            kubectl: binaries.program("kubectl"),
            kubeconfig: control.admin_kubeconfig().to_path_buf(),
            client: Client(control.client()),
            namespaces,
        })
    }

    /// The addresses by which the machine, the node, pods and Services reach each other.
    #[must_use]
    pub fn network(&self) -> Network {
        self.namespaces.network()
    }

    /// Makes the images of an archive, as OCI or Docker writes them, known to the node under the names that stand in it.
    pub async fn import(&self, archive: &Path) -> anyhow::Result<()> {
        import(&self.namespaces, archive).await
    }

    /// Makes a static program known to the node as an image that runs it.
    pub async fn import_program(&self, program: &Path, name: &str) -> anyhow::Result<()> {
        let (path, image) = (program.to_path_buf(), name.to_owned());
        let packed = tokio::task::spawn_blocking(move || archive::program(&path, &image)).await;
        let file = self.namespaces.folder().join("program.tar");
        tokio::fs::write(&file, packed.context("pack an image")??).await.context("write an image")?;
        import(&self.namespaces, &file).await
    }

    /// A line for a shell that imports the archive at its standard input.
    pub(super) fn import_line(&self) -> String {
        let (program, args) = ctr(&self.namespaces, &IMPORT);
        std::iter::once(program)
            .chain(args)
            .map(|word| word.display().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// From now on the node pulls images of the registry at `address` (`HOST:PORT`, as it stands in the names of images)
    /// by HTTP.
    pub fn trust(&self, address: &str) -> anyhow::Result<()> {
        let folder = self.namespaces.folder().join("registries").join(address);
        std::fs::create_dir_all(&folder).context("make the folder of a registry")?;
        std::fs::write(folder.join("hosts.toml"), settings::registry(address))
            .context("write how a registry is reached")
    }

    /// Runs a command in the first container of a pod, and gives what it wrote to its standard output.
    pub async fn exec(&self, namespace: &str, pod: &str, command: &[&str]) -> anyhow::Result<String> {
        let mut args: Vec<OsString> = vec!["--kubeconfig".into(), self.kubeconfig.clone().into()];
        args.extend(["exec", "--namespace", namespace, pod, "--"].map(OsString::from));
        args.extend(command.iter().map(OsString::from));
        let run = (self.kubectl.clone().into_os_string(), args);
        asked(&run, Stdio::null())
            .await
            .with_context(|| format!("run a command in the pod {namespace}/{pod}"))
    }

    /// What the first container of a pod has written.
    pub async fn logs(&self, namespace: &str, pod: &str) -> anyhow::Result<String> {
        let act = || format!("read the log of the pod {namespace}/{pod}");
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/log");
        let request = Request::get(path).body(Vec::new()).with_context(act)?;
        self.client.0.request_text(request).await.with_context(act)
    }

    /// How to start a program that prints every connection from now on that the node's kernel sees, a line each; it outlives
    /// [`Node::crash`].
    #[must_use]
    pub fn connections(&self, name: &str, logs: &Path) -> Spec {
        let (enter, args) = self.namespaces.beside(Path::new("conntrack"));
        Spec::new(name, enter, logs).args(args).args([
            "--event",
            "--event-mask",
            "NEW",
            "--buffer-size",
            BUFFER,
        ])
    }

    /// Kills the kubelet (SIGKILL); pods go on without it.
    pub async fn kill_kubelet(&self) -> anyhow::Result<()> {
        self.kubelet.kill().await?;
        let spaces = namespaces::spaces_of(self.namespaces.name())?;
        // The process that stood for it outside has ended; its port is free when it has.
        let look =
            async || Ok(namespaces::processes(&spaces)?.iter().any(|process| process.ends_with("(kubelet)")));
        ensure!(
            !until(PATIENCE, LOOK, look, |is_there| !is_there).await?,
            "a killed kubelet is there after {PATIENCE:?}"
        );
        Ok(())
    }

    /// Starts the kubelet anew, and waits until it says that it is there.
    pub async fn start_kubelet(&self) -> anyhow::Result<()> {
        let before = self.renewed().await?;
        self.kubelet.restart().await?;
        self.alive(&before).await
    }

    /// Kills every process of the node at once, those of pods too, as when its power fails.
    pub async fn crash(&self) -> anyhow::Result<()> {
        let (enter, mut args) = self.namespaces.inside(Path::new("kill"));
        args.extend(["-KILL", "--", "-1"].map(OsString::from));
        asked(&(enter.into(), args), Stdio::null()).await.context("kill the processes of the node")?;
        for program in [&self.containerd, &self.kubelet, &self.proxy] {
            program.ended().await?;
        }
        Ok(())
    }

    /// Starts its programs after [`Node::crash`], and waits until the kubelet says that it is there.
    pub async fn revive(&self) -> anyhow::Result<()> {
        let before = self.renewed().await?;
        self.containerd.restart().await?;
        let runs = async || asked(&ctr(&self.namespaces, &["version"]), Stdio::null()).await.is_ok();
        self.containerd.ready(PATIENCE, runs).await?;
        self.kubelet.restart().await?;
        self.proxy.restart().await?;
        self.alive(&before).await
    }

    /// Waits until the kubelet has renewed its lease.
    async fn alive(&self, before: &Value) -> anyhow::Result<()> {
        let renewed = async || self.renewed().await.is_ok_and(|renewed| renewed != *before);
        self.kubelet.ready(PATIENCE, renewed).await.map(drop)
    }

    /// When the kubelet last said that it is there.
    async fn renewed(&self) -> anyhow::Result<Value> {
        let lease = Reference::new("coordination.k8s.io/v1", "Lease", Some("kube-node-lease"), NAME);
        let lease = Objects::new(self.client.0.clone()).get(&lease).await?;
        Ok(lease.map(|lease| lease["spec"]["renewTime"].clone()).unwrap_or_default())
    }

    /// Whether each program runs, by its name.
    #[must_use]
    pub fn programs(&self) -> Vec<(String, bool)> {
        let all = [&self.containerd, &self.kubelet, &self.proxy];
        all.map(|child| (child.name().to_owned(), child.is_running())).to_vec()
    }

    /// Ends it, and removes everything that it made on this machine.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Self { containerd, kubelet, proxy, mut namespaces, .. } = self;
        let ended = tokio::task::spawn_blocking(move || namespaces.end().map(|()| namespaces));
        let namespaces = ended.await.context("end the node")??;
        // What stands for them outside ends a moment after them.
        for program in [&containerd, &kubelet, &proxy, namespaces.holder()] {
            program.kill().await?;
        }
        Ok(())
    }
}

/// Writes the files that the programs are started with.
fn write_all(folder: &Path, group: &str, network: Network, control: &Control) -> anyhow::Result<()> {
    let plugins = PLUGINS.iter().map(Path::new).find(|plugins| plugins.join("ptp").exists());
    let plugins = plugins.context("find the plugins of container networks; .ci/setup installs them")?;
    for name in ["network", "registries", "logs", "plugins"] {
        std::fs::create_dir(folder.join(name)).with_context(|| format!("make the folder {name}"))?;
    }
    for number in 0..VOLUMES {
        let volume = folder.join(format!("volumes/{number}"));
        std::fs::create_dir_all(&volume).context("make the folder of a volume")?;
    }
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).with_context(|| format!("write {name}"))
    };
    let authority = folder.join("authority.crt");
    std::fs::copy(control.ca_file(), &authority).context("copy the certificate of the authority")?;
    // Readable by its owner alone, as the one that it is a copy of.
    std::fs::copy(control.parts_kubeconfig(), folder.join("kubeconfig")).context("copy the kubeconfig")?;
    write("containerd.toml", settings::containerd(folder, plugins))?;
    write("network/10-pods.conflist", settings::pod_network(network).to_string())?;
    write("kubelet.json", settings::kubelet(folder, group, network, &authority).to_string())?;
    write("resolv.conf", String::new())
}

async fn import(namespaces: &Namespaces, archive: &Path) -> anyhow::Result<()> {
    let act = || format!("import the image {}", archive.display());
    let file = std::fs::File::open(archive).with_context(act)?;
    let run = ctr(namespaces, &IMPORT);
    asked(&run, Stdio::from(file)).await.map(drop).with_context(act)
}

/// containerd's own client, inside.
fn ctr(namespaces: &Namespaces, args: &[&str]) -> (OsString, Vec<OsString>) {
    let (enter, mut all) = namespaces.inside(Path::new("ctr"));
    all.extend(["--address", settings::SOCKET].map(OsString::from));
    all.extend(args.iter().map(OsString::from));
    (enter.into(), all)
}

/// Runs a command to its end and gives what it wrote.
async fn asked((program, args): &(OsString, Vec<OsString>), input: Stdio) -> anyhow::Result<String> {
    let act = || format!("run {}", program.display());
    let mut command = Command::new(program);
    command.args(args).stdin(input).kill_on_drop(true);
    let output = command.output().await.with_context(act)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", errors.trim());
    String::from_utf8(output.stdout).with_context(act)
}
