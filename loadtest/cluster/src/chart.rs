//! `loadtest cluster chart`: what the chart renders is what a real API server takes, and what it would refuse the doctor
//! has found before.
//!
//! takes: the doctor's files of values, and values made of them with leaves changed at random - gives: a line for each
//! that is refused though the doctor found nothing wrong
//! calls: the doctor and Helm for each; the API server through kubectl, which changes nothing (`--dry-run=server`) and
//! takes no field that it does not know (`--validate=strict`); Gateway API's, Istio's and the Prometheus operator's kinds are
//! defined as their modules define them, and nothing of what is rendered is left out: for Traefik, NGINX, Emissary and ALB that
//! is plain Ingresses; Helm installs what was converted of the other chart's files, and takes it away; the source server, with the
//! account and the rights that are rendered for it; `crds adopt` for definitions that somebody made by hand - fails: exit code 1
//! unless nothing was refused, the source server lets in whom it should and nobody else, and Helm takes the definitions for its own
//! when they were taken over, and not before

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Output, Stdio};

use anyhow::{Context as _, bail, ensure};
use fastrand::Rng;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::time::Instant;

use super::adoption::Adoption;
use super::binaries::Binaries;
use super::callers;
use super::control::Control;
use super::definitions::define;
use super::modules;
use super::objects::Objects;
use super::progress::Progress;
use super::{Ground, temporary_directory};
use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say};
use loadtest_sim::command::Said;
use loadtest_sim::process;

const NAMESPACE: &str = "runtime";
const RELEASE: &str = "prod";
/// Where converted files are installed: what Helm keeps of a release is in nobody's way there.
const ADOPTED: &str = "adopted";
/// How files end that `values convert` made of those that adopters of the other chart bring along.
const CONVERTED: &str = ".out.yaml";
/// Files of values that are tried at a time: for each, one program runs after the other.
const AT_A_TIME: usize = 2;
/// Values of the doctor's with a source server, which the reporter asks.
const SOURCE_SERVER: &str = "good-source-server.yaml";
/// The module of the Prometheus operator, and the definitions of its kinds that the chart renders.
const MONITORING: (&str, &str) = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0");
const MONITORED: [&str; 2] = ["servicemonitors", "prometheusrules"];
/// Kinds of others that the doctor's files have the chart render.
const FOREIGN: [&str; 4] = ["HTTPRoute", "PrometheusRule", "ServiceMonitor", "VirtualService"];
/// Namespaces that rendered objects stand in, beside those that a text made at random names.
const NAMESPACES: [&str; 3] = ["runtime", "adopted", "argocd"];
/// How a line of the doctor begins that names something wrong.
const FINDING: &str = "error GR";
/// Of so many files of values made at random one at the least is right: most texts and numbers are right in most places.
const ENOUGH: u32 = 12;
/// Texts that are right in some places and wrong in others.
const TEXTS: &[&str] = &[
    "",
    "a",
    "prod",
    "a.b",
    "a-",
    "-a",
    "A b",
    "a/b",
    "a_b",
    "1",
    "true",
    "10Mi",
    "-1",
    "25%",
    "https://a.example.com",
    "a@b",
    "{{ fail \"x\" }}",
    "ü",
];

/// Arguments of `loadtest cluster chart`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Programs, and what stays.
    #[command(flatten)]
    pub ground: Ground,
    /// Files of values that are made at random, beside the doctor's own
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub random: u32,
    /// Decides what stands in them
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(all(args))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    let began = Instant::now();
    let program = process::program(args.ground.program.as_deref()).await?;
    let binaries = Binaries::find(args.ground.binaries.as_deref()).await?;
    let folder = temporary_directory()?;
    let result = Box::pin(tried(args, &program, &binaries, folder.path())).await;
    let good = result.as_ref().is_ok_and(|outcome| outcome.refused.is_empty());
    args.ground.leave(folder, good);
    let outcome = result?;
    for line in &outcome.refused {
        say(&judged(&format!("  {line}"), false));
    }
    say(&format!(
        "{} files of values: {} found wrong by the doctor, {} taken by the API server, {} refused though nothing was \
         found; {:.0} s in all",
        outcome.found + outcome.taken + outcome.refused.len(),
        outcome.found,
        outcome.taken,
        outcome.refused.len(),
        began.elapsed().as_secs_f64()
    ));
    say(&judged(if good { "chart: held" } else { "chart: failed" }, good));
    Ok(good)
}

/// What became of all files of values.
#[derive(Debug, Default)]
struct Outcome {
    found: usize,
    taken: usize,
    refused: Vec<String>,
}

async fn tried(args: &Args, program: &Path, binaries: &Binaries, folder: &Path) -> anyhow::Result<Outcome> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the folder of the workspace")?;
    let mut good = files(&root.join("pipeline/doctor/tests/values"), |name| name.starts_with("good-"))?;
    good.extend(files(&root.join("pipeline/doctor/tests/incumbent"), |name| name.ends_with(CONVERTED))?);
    let chart = root.join("helm/gitops-runtime");
    let control = Box::pin(Control::start(binaries, folder, None)).await?;
    Box::pin(prepare(&control, binaries)).await?;
    let kubeconfig = control.admin_kubeconfig();
    let trial = Trial {
        program,
        helm: binaries.program("helm"),
        kubectl: binaries.program("kubectl"),
        chart,
        kubeconfig,
    };

    let mut outcome = Outcome::default();
    Box::pin(trial.tries(&good, &mut outcome)).await?;
    let asked =
        good.iter().find(|file| file.ends_with(SOURCE_SERVER)).context("find values with a source server")?;
    let judged = Box::pin(trial.callers(asked, &control, folder));
    outcome.refused.extend(Progress.step("who may ask the source server", judged).await?);
    let client = control.client();
    let adoption = Adoption {
        program,
        helm: binaries.program("helm"),
        kubeconfig,
        definitions: binaries.share("workflows").join("crds"),
    };
    let judged = Box::pin(adoption.judge(&client, folder));
    outcome.refused.extend(Progress.step("definitions taken over", judged).await?);
    Box::pin(trial.tries_at_random(args, &good, folder, &mut outcome)).await?;
    Box::pin(trial.installs(&good, &mut outcome)).await?;
    control.stop().await?;
    Ok(outcome)
}

/// Makes the namespaces that rendered objects stand in, and defines the kinds of others that they are of.
async fn prepare(control: &Control, binaries: &Binaries) -> anyhow::Result<()> {
    let objects = Objects::new(control.client());
    Progress.step("namespaces", objects.apply(&namespaces(), NAMESPACE)).await?;
    let (client, routes) = (control.client(), binaries.share("routes"));
    let monitored = Progress.step("the Prometheus operator's module", monitored()).await?;
    let monitored: Vec<&str> = monitored.iter().map(String::as_str).collect();
    let defined = define(&client, &monitored, &routes, &[]);
    Progress.step(&format!("definitions of {}", FOREIGN.join(", ")), defined).await
}

/// The texts of the definitions of the Prometheus operator's kinds.
async fn monitored() -> anyhow::Result<Vec<String>> {
    let (module, version) = MONITORING;
    let folder = modules::folder(module, version).await?.join("example/prometheus-operator-crd");
    let mut texts = Vec::new();
    for name in MONITORED {
        let file = folder.join(format!("monitoring.coreos.com_{name}.yaml"));
        let text = tokio::fs::read_to_string(&file).await;
        texts.push(text.with_context(|| format!("read {}", file.display()))?);
    }
    Ok(texts)
}

/// Every namespace that something rendered may stand in.
fn namespaces() -> String {
    let is_name = |text: &&str| {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        text.starts_with(is_letter)
            && text.ends_with(is_letter)
            && text.chars().all(|letter| is_letter(letter) || letter == '-')
    };
    let named = TEXTS.iter().copied().filter(is_name);
    let namespace =
        |name: &str| format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name:?}}}\n");
    NAMESPACES.into_iter().chain(named).map(namespace).collect()
}

/// The groups of values that files of values set something of, such as a component's, each with those files.
fn groups(files: &[PathBuf], leaves: &[Leaf]) -> anyhow::Result<Vec<(String, Vec<PathBuf>)>> {
    let known: BTreeSet<&str> =
        leaves.iter().filter_map(|(path, _)| path.first()).map(String::as_str).collect();
    let mut groups: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        let values = read(file)?;
        for key in values.as_object().into_iter().flat_map(Map::keys) {
            if known.contains(key.as_str()) {
                groups.entry(key.clone()).or_default().push(file.clone());
            }
        }
    }
    ensure!(!groups.is_empty(), "there are no good files of values");
    Ok(groups.into_iter().collect())
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of values of a folder whose names are asked for.
fn files(folder: &Path, asked_for: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry.with_context(|| format!("read {}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if asked_for(&name) && name.ends_with(".yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("read {}", path.display()))
}

/// What becomes of a file of values.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The doctor finds something wrong.
    Found,
    /// The API server takes all that is rendered, which is of these kinds.
    Taken(BTreeSet<String>),
    /// The doctor finds nothing wrong, and Helm or the API server refuse it: why.
    Refused(String),
}

struct Trial<'a> {
    program: &'a Path,
    helm: PathBuf,
    kubectl: PathBuf,
    chart: PathBuf,
    kubeconfig: &'a Path,
}

impl Trial<'_> {
    /// Tries each file of values; each kind of others is to be rendered by some of them.
    async fn tries(&self, good: &[PathBuf], outcome: &mut Outcome) -> anyhow::Result<()> {
        let mut kinds = BTreeSet::new();
        let mut tried = stream::iter(good)
            .map(async |file| {
                let name = name(file);
                let verdict = Progress.step(&name, self.run(&[file])).await?;
                anyhow::Ok((name, verdict))
            })
            .buffered(AT_A_TIME);
        while let Some((name, verdict)) = tried.try_next().await? {
            match verdict {
                Verdict::Found => bail!("the doctor finds something wrong with {name}"),
                Verdict::Taken(of) => {
                    outcome.taken += 1;
                    kinds.extend(of);
                }
                Verdict::Refused(why) => outcome.refused.push(format!("{name}: {why}")),
            }
        }
        say(&format!("  {} kinds: {}", kinds.len(), kinds.iter().cloned().collect::<Vec<_>>().join(", ")));
        for kind in FOREIGN {
            ensure!(kinds.contains(kind), "no file of values has a {kind} rendered");
        }
        Ok(())
    }

    /// Tries files of values with leaves changed at random.
    async fn tries_at_random(
        &self,
        args: &Args,
        good: &[PathBuf],
        folder: &Path,
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let defaults = read(&self.chart.join("values.yaml"))?;
        let mut leaves = Vec::new();
        collect(&defaults, &mut Vec::new(), &mut leaves);
        // A checkout holds no Argo CD, as its chart says; the packaged one does.
        leaves.retain(|(path, _)| *path != ["argo-cd", "enabled"]);
        let mut random = Rng::with_seed(args.seed);
        let mut groups = groups(good, &leaves)?;
        random.shuffle(&mut groups);
        let made = folder.join("random.yaml");
        let mut taken_at_random = 0;
        for ((group, files), number) in groups.iter().cycle().zip(1..=args.random) {
            let Some(base) = random.choice(files) else { bail!("no file of values sets {group}") };
            let values = changed(&leaves, group, &mut random);
            let text = values.to_string();
            tokio::fs::write(&made, &text).await.context("write values made at random")?;
            let act = format!("random {number}");
            match Progress.step(&act, self.run(&[base, &made])).await? {
                Verdict::Found => outcome.found += 1,
                Verdict::Taken(_) => {
                    outcome.taken += 1;
                    taken_at_random += 1;
                }
                Verdict::Refused(why) => {
                    outcome.refused.push(format!("{} with {text}: {why}", name(base)));
                }
            }
        }
        ensure!(
            args.random < ENOUGH || taken_at_random > 0,
            "of {} files of values made at random the doctor finds something wrong with every one",
            args.random
        );
        Ok(())
    }

    /// Installs what was converted of the other chart's files, and takes it away.
    async fn installs(&self, good: &[PathBuf], outcome: &mut Outcome) -> anyhow::Result<()> {
        let mut converted = 0;
        for file in good {
            let name = name(file);
            if name.ends_with(CONVERTED) {
                let refused = Progress.step(&format!("install of {name}"), self.installed(file)).await?;
                outcome.refused.extend(refused.map(|why| format!("{name}: {why}")));
                converted += 1;
            }
        }
        ensure!(converted > 0, "no converted file of values was installed");
        say(&format!("  {converted} converted files of values: installed by Helm, and uninstalled"));
        Ok(())
    }

    async fn run(&self, files: &[&Path]) -> anyhow::Result<Verdict> {
        let files: Vec<_> = files.iter().flat_map(|file| [Path::new("--values"), *file]).collect();
        let mut doctor = Command::new(self.program);
        doctor.arg("validate").args(&files).args(["--skip", "cluster", "--skip", "network"]);
        doctor.stdin(Stdio::null()).kill_on_drop(true);
        if let Some(verdict) = judgement(&doctor.output().await.context("run the doctor")?)? {
            return Ok(verdict);
        }
        let (is_rendered, text) = self.rendered(&files).await?;
        if !is_rendered {
            return Ok(Verdict::Refused(format!("Helm: {}", first(&text))));
        }
        let kinds: BTreeSet<String> =
            text.lines().filter_map(|line| line.strip_prefix("kind: ")).map(str::to_owned).collect();
        // Where nothing runs, nothing is rendered.
        if kinds.is_empty() {
            return Ok(Verdict::Taken(kinds));
        }
        let (is_taken, text) = self.apply(&["--dry-run=server"], &text).await?;
        Ok(if is_taken { Verdict::Taken(kinds) } else { Verdict::Refused(first(&text)) })
    }

    /// What keeps Helm from installing these values, or from taking all of it away again. There is no node: nothing runs, so
    /// that no hook would end.
    async fn installed(&self, values: &Path) -> anyhow::Result<Option<String>> {
        let (mut install, mut uninstall) = (Command::new(&self.helm), Command::new(&self.helm));
        install.args(["install", RELEASE]).arg(&self.chart).arg("--values").arg(values);
        uninstall.args(["uninstall", RELEASE]);
        for mut command in [install, uninstall] {
            command.args(["--no-hooks", "--namespace", ADOPTED, "--kubeconfig"]).arg(self.kubeconfig);
            let (is_done, said) = ended(command, "").await?;
            if !is_done {
                return Ok(Some(format!("Helm: {}", first(&said))));
            }
        }
        Ok(None)
    }

    /// What is wrong with whom the source server of these values lets in; its accounts and rights are made for that.
    async fn callers(&self, file: &Path, control: &Control, folder: &Path) -> anyhow::Result<Vec<String>> {
        let (is_rendered, text) = self.rendered(&[Path::new("--values"), file]).await?;
        ensure!(is_rendered, "Helm: {}", first(&text));
        let (is_taken, said) = self.apply(&[], &callers::rights(&text)).await?;
        ensure!(is_taken, "make the account of the source server: {}", first(&said));
        callers::judge(self.program, control, &text, folder).await
    }

    async fn rendered(&self, values: &[&Path]) -> anyhow::Result<(bool, String)> {
        let mut helm = Command::new(&self.helm);
        helm.args(["template", RELEASE])
            .arg(&self.chart)
            .args(["--namespace", NAMESPACE, "--kube-version", "1.31.0"])
            .args(values);
        ended(helm, "").await
    }

    async fn apply(&self, more: &[&str], documents: &str) -> anyhow::Result<(bool, String)> {
        let mut kubectl = Command::new(&self.kubectl);
        kubectl.arg("--kubeconfig").arg(self.kubeconfig).args([
            "apply",
            "--server-side",
            "--validate=strict",
        ]);
        kubectl.args(more).args(["-f", "-"]);
        ended(kubectl, documents).await
    }
}

/// `Found` where the doctor names something that is wrong, `None` where it finds nothing; any other end is a fault of its own.
fn judgement(output: &Output) -> anyhow::Result<Option<Verdict>> {
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(None),
        Some(1) if said.lines().any(|line| line.starts_with(FINDING)) => Ok(Some(Verdict::Found)),
        _ => bail!(
            "the doctor ended with {} and without a finding: {}",
            output.status,
            first(&String::from_utf8_lossy(&output.stderr))
        ),
    }
}

/// Whether a program ended well, and what it said: on standard output if it did, else on standard error.
pub(super) async fn ended(mut command: Command, input: &str) -> anyhow::Result<(bool, String)> {
    // Helm and kubectl end before they have used a hundred megabytes: to give any of it back is a quarter of their time.
    command.env("GOGC", "off");
    let Said(code, output, error) = Said::by(&mut command, input).await?;
    Ok(if code == 0 { (true, output) } else { (false, error) })
}

/// The lines that tell, on one.
fn first(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(4).collect::<Vec<_>>().join(" | ").chars().take(600).collect()
}

type Leaf = (Vec<String>, Value);

/// The values that are no groups of others, with where they stand.
fn collect(node: &Value, path: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
    match node {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, below) in entries {
                path.push(key.clone());
                collect(below, path, leaves);
                path.pop();
            }
        }
        value => leaves.push((path.clone(), value.clone())),
    }
}

/// Values in which some leaves are others, mostly of their own kind: one of a group, and up to two of any.
fn changed(leaves: &[Leaf], group: &str, random: &mut Rng) -> Value {
    let mut values = json!({});
    let own: Vec<&Leaf> =
        leaves.iter().filter(|(path, _)| path.first().is_some_and(|key| key == group)).collect();
    let first = random.choice(own);
    let others: Vec<_> = (0..random.u8(0..=2)).filter_map(|_| random.choice(leaves)).collect();
    for (path, default) in first.into_iter().chain(others) {
        let kind = if random.u8(..10) == 0 { random.choice(leaves).map(|(_, other)| other) } else { None };
        let value = instead(kind.unwrap_or(default), random);
        set(&mut values, path, value);
    }
    values
}

/// Another value of the same kind.
fn instead(default: &Value, random: &mut Rng) -> Value {
    let text = |random: &mut Rng| {
        if random.u8(..8) == 0 {
            "a".repeat(random.usize(60..70))
        } else {
            (*random.choice(TEXTS).unwrap_or(&"")).to_owned()
        }
    };
    match default {
        Value::Bool(truth) => json!(!truth),
        Value::Number(_) => json!(random.choice([-1, 0, 1, 2, 3, 80, 65_536, 1_000_000])),
        Value::Array(_) => match random.u8(..4) {
            0 => json!([]),
            1 => json!([text(random)]),
            2 => json!([{"name": text(random)}]),
            _ => json!([{"key": text(random), "operator": "Exists"}]),
        },
        Value::Object(_) => match random.u8(..5) {
            0 => json!({}),
            1 => json!({"name": text(random), "key": text(random)}),
            2 => json!({text(random): text(random)}),
            3 => json!({"a": random.i8(..)}),
            _ => json!({"requests": {"cpu": text(random)}}),
        },
        _ => json!(text(random)),
    }
}

fn set(values: &mut Value, path: &[String], value: Value) {
    match path.split_first() {
        None => *values = value,
        Some((key, rest)) => {
            if !values.is_object() {
                *values = Value::Object(Map::new());
            }
            if let Some(entries) = values.as_object_mut() {
                set(entries.entry(key.clone()).or_insert_with(|| json!({})), rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
