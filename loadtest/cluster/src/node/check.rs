//! `loadtest cluster node`: what pods need of a node, and that it leaves nothing on the machine.
//!
//! takes: nothing - gives: a line for each step, and one last line
//! calls: a control plane with a node, once in this process and once in one that is killed; `kubectl` - fails: at the first
//! thing that is not as it should be

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

use super::{BUSYBOX, LOOK, NAME, Namespaces, Network, Node, namespaces, sweep};
use crate::binaries::Binaries;
use crate::control::Control;
use crate::objects::{Objects, Reference, condition};
use crate::progress::Progress;
use crate::{made, temporary_directory};
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say};
use loadtest_sim::{PATIENCE, until};

/// What the Secret holds.
const WORD: &str = "only the pod reads this";

/// Arguments of `loadtest cluster node`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
As root, some 30 s once the programs are built:
  loadtest cluster node
A node to work with by hand:
  loadtest cluster up --node --directory one")]
pub(crate) struct Args {
    /// The folder of the cluster's programs; without it, they are built where they are not yet
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Start a node with a pod in this folder, and wait to be killed
    #[arg(long, value_name = "DIR", hide = true)]
    victim: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(Box::pin(all(args)))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    let began = Instant::now();
    let binaries = Binaries::find(args.binaries.as_deref()).await?;
    if let Some(folder) = &args.victim {
        let ground = Ground::start(&binaries, folder).await?;
        ground.objects.apply_value(&pod(), "default").await?;
        ground.runs("asks").await?;
        let told = format!("{} {}", ground.node.namespaces.name(), ground.node.network().block());
        std::fs::write(folder.join("node"), told).context("say what is there")?;
        // Until it is killed.
        std::future::pending::<()>().await;
    }
    let folder = temporary_directory()?;
    let (first, second) = (made(&folder.path().join("one")).await?, made(&folder.path().join("two")).await?);
    let checked = async {
        Box::pin(serves(&binaries, &first)).await?;
        Progress.check("that a killed command leaves nothing", killed(&second, args)).await
    };
    if let Err(why) = checked.await {
        say(&format!("logs: {}", folder.keep().display()));
        return Err(why);
    }
    say(&judged(&format!("node: held, in {:.0} s", began.elapsed().as_secs_f64()), true));
    Ok(true)
}

/// A control plane with a node.
struct Ground {
    control: Control,
    node: Node,
    objects: Objects,
}

impl Ground {
    async fn start(binaries: &Binaries, folder: &Path) -> anyhow::Result<Self> {
        let namespaces = Namespaces::start(folder).await?;
        let control = Box::pin(Control::start(binaries, folder, Some(namespaces.network()))).await?;
        let node = Box::pin(Node::start(binaries, &control, namespaces, folder)).await?;
        let objects = Objects::new(control.client());
        Ok(Self { control, node, objects })
    }

    /// Waits until a pod runs.
    async fn runs(&self, name: &str) -> anyhow::Result<()> {
        self.pod(name, "runs", |pod| pod["status"]["phase"] == "Running").await
    }

    /// Waits until a pod is as it should be.
    async fn pod(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        let reference = Reference::new("v1", "Pod", Some("default"), name);
        let look = async || Ok(self.objects.get(&reference).await?.unwrap_or_default());
        let pod = until(PATIENCE, LOOK, look, &is_so).await?;
        ensure!(is_so(&pod), "the pod {name} {what} not within {PATIENCE:?}: {}", pod["status"]);
        Ok(())
    }
}

/// Everything that pods ask of a node, and its end.
async fn serves(binaries: &Binaries, folder: &Path) -> anyhow::Result<()> {
    let ground = Ground::start(binaries, folder).await?;
    let (node, objects) = (&ground.node, &ground.objects);
    let all = [secret(), service(), stateful_set(), pod()].map(|object| object.to_string()).join("\n---\n");
    objects.apply(&all, "default").await?;

    let step = async {
        ground.runs("web-0").await?;
        ground.runs("asks").await?;
        let is_ready = |pod: &Value| condition(pod, "Ready") == Some("True");
        ground
            .pod("web-0", "is refused by its probe", |pod| condition(pod, "Ready") == Some("False"))
            .await?;
        node.exec("default", "web-0", &["touch", "/data/ready"]).await?;
        ground.pod("web-0", "is ready", is_ready).await
    };
    Progress.check("a pod, which is ready when its probe says so", step).await?;

    let step = async {
        let read = node.exec("default", "web-0", &["cat", "/secret/word"]).await?;
        ensure!(read == WORD, "the pod reads {read:?} in the volume of its Secret");
        let logs = node.logs("default", "web-0").await?;
        ensure!(logs == "serving\n", "the log of the pod is {logs:?}");
        Ok(())
    };
    Progress.check("exec, logs and a Secret's volume", step).await?;

    // Not its own limit of time: by that the distribution's ends with a signal.
    let command = ["timeout", "30", "wget", "-q", "-O", "-", "http://web/word"];
    let ask = async || node.exec("default", "asks", &command).await;
    let step = async {
        let told = answered(ask).await?;
        ensure!(told == WORD, "the Service answers the pod {told:?}");
        let address = node.exec("default", "asks", &["nslookup", "web.default.svc.cluster.local"]).await?;
        let service = objects.get(&Reference::new("v1", "Service", Some("default"), "web")).await?;
        let service = service.context("find the Service")?["spec"]["clusterIP"].clone();
        let service = service.as_str().context("find the address of the Service")?;
        ensure!(address.contains(service), "the name of the Service is none of {service}: {address}");
        for url in [format!("http://{service}/word"), format!("http://{}:30080/word", node.network().node())]
        {
            let told =
                answered(async || Ok(reqwest::get(&url).await?.error_for_status()?.text().await?)).await?;
            ensure!(told == WORD, "{url} answers this machine {told:?}");
        }
        Ok(())
    };
    Progress.check("a Service by its name, its address and the node's port", step).await?;

    let step = async {
        let claim = Reference::new("v1", "PersistentVolumeClaim", Some("default"), "data-web-0");
        let claim = objects.get(&claim).await?.context("find the claim")?;
        ensure!(claim["status"]["phase"] == "Bound", "the claim is {}", claim["status"]);
        let first = Reference::new("v1", "Pod", Some("default"), "web-0");
        let uid = objects.get(&first).await?.context("find the pod")?["metadata"]["uid"].clone();
        objects.delete(&first).await?;
        // It is ready by the file that the first one was given.
        let is_next = |pod: &Value| pod["metadata"]["uid"] != uid && condition(pod, "Ready") == Some("True");
        ground.pod("web-0", "comes again with its volume", is_next).await?;
        let told = answered(ask).await?;
        ensure!(told == WORD, "the Service answers the pod {told:?} afterwards");
        Ok(())
    };
    Progress.check("a claim, which outlives its pod", step).await?;

    let name = node.namespaces.name().to_owned();
    let (network, spaces) = (node.network(), namespaces::spaces_of(&name)?);
    ensure!(
        namespaces::left(&name, network, &spaces)?.len() > 2,
        "what a node makes is not found while it runs"
    );
    let Ground { control, node, .. } = ground;
    let step = async {
        control.stop().await?;
        node.stop().await?;
        gone(&name, network, &spaces).await
    };
    Progress.check("that a node leaves nothing", step).await
}

/// Kills a command that has a node with a pod; what the kernel does not remove, the next one does.
async fn killed(folder: &Path, args: &Args) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command.args(["cluster", "node", "--victim"]).arg(folder);
    if let Some(binaries) = &args.binaries {
        command.arg("--binaries").arg(binaries);
    }
    let log = std::fs::File::create(folder.join("command.log")).context("open a log")?;
    let mut child = command
        .stdin(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("start a command with a node")?;
    let told = folder.join("node");
    let (name, network) = loop {
        let told = std::fs::read_to_string(&told).unwrap_or_default();
        if let Some((name, block)) = told.split_once(' ')
            && let Ok(block) = block.parse()
        {
            break (name.to_owned(), Network::new(block));
        }
        if let Some(status) = child.try_wait().context("look at the command")? {
            bail!("the command with a node ended ({status})");
        }
        sleep(LOOK).await;
    };
    let spaces = namespaces::spaces_of(&name)?;
    child.kill().await.context("kill the command")?;

    // The kernel ends the processes and their mounts; folders are for the next one.
    let left = until(PATIENCE, LOOK, async || namespaces::processes(&spaces), Vec::is_empty).await?;
    ensure!(left.is_empty(), "processes of a killed command are there after {PATIENCE:?}");
    let swept = sweep()?;
    ensure!(swept.contains(&name), "what the killed command left is not found: {swept:?}");
    gone(&name, network, &spaces).await
}

/// Waits until nothing is left of a node: the kernel removes a link and a process some time after their namespace.
async fn gone(name: &str, network: Network, spaces: &namespaces::Spaces) -> anyhow::Result<()> {
    let left = until(PATIENCE, LOOK, async || namespaces::left(name, network, spaces), Vec::is_empty).await?;
    ensure!(left.is_empty(), "a node left {}", left.join(", "));
    Ok(())
}

/// Asks until there is an answer: a Service knows of a pod a moment after it is ready.
async fn answered(ask: impl AsyncFn() -> anyhow::Result<String>) -> anyhow::Result<String> {
    until(PATIENCE, LOOK, async || Ok(ask().await), Result::is_ok).await?
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word"}, "stringData": {"word": WORD}})
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "type": "NodePort",
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30080}],
        },
    })
}

/// Answers with the Secret; ready once `/data/ready` is there, which is on its own volume. As Pod Security wants it.
fn stateful_set() -> Value {
    let serve = "cp /secret/word /data/word && echo serving && exec httpd -f -p 8080 -h /data";
    let container = json!({
        "name": "web",
        "image": BUSYBOX,
        "command": ["sh", "-c", serve],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "word", "mountPath": "/secret"}],
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 1000,
                        "fsGroup": 1000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": [{"name": "word", "secret": {"secretName": "word"}}],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

/// Somebody who asks others.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks"},
        "spec": {
            "nodeName": NAME,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "asks", "image": BUSYBOX, "command": ["sleep", "86400"]}],
        },
    })
}
