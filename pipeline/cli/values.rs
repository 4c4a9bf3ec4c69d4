//! `gitops-runtime validate` and `gitops-runtime values convert`: the doctor, for people and for CI.
//!
//! takes: files of values of the chart, or a release - gives: every finding, or the values that mean the same here
//! calls: the API server of the kubeconfig, where there is one, to read; the peers that the values name; `helm version`
//! fails: when a file cannot be converted, a release cannot be read, or standard output cannot be written

mod certificates;
mod cluster;
mod network;
mod release;

use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_doctor::{Around, Cluster, File, Format, Network, Report, Tiers, Unreadable};

pub(super) use self::certificates::{PresentedChain, described};
pub(super) use self::cluster::KubeconfigCluster;
pub(super) use self::network::{Peers, client, unreached};
use super::{Hook, Shape, Tier, Validate, ValuesCommand, print};
use crate::config;

/// Bytes of the largest file that is read.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Bytes of what Kubernetes keeps of a container's last words.
const LAST_WORDS: usize = 4_096;
/// Nothing is wrong, but not all could be measured.
const UNMEASURED: u8 = 3;

/// Judges values: 0 when nothing is wrong, 1 when something is, 3 with `--strict` when not all could be measured.
pub(crate) fn validate(given: &Validate) -> anyhow::Result<ExitCode> {
    let wanted = |tier: Tier| !given.skip.contains(&tier);
    let tiers =
        Tiers { files: wanted(Tier::Static), cluster: wanted(Tier::Cluster), network: wanted(Tier::Network) };
    let cluster = if tiers.cluster {
        KubeconfigCluster::find(given.kubeconfig.clone(), given.context.clone())?
    } else {
        None
    };
    let files: Vec<(String, Result<File, Unreadable>)> = match &given.release {
        Some(name) => {
            let cluster = cluster.as_ref().context("a release is read from a cluster, and none was found")?;
            let namespace = given.namespace.as_deref().unwrap_or_default();
            vec![(format!("release {name}"), Ok(release::read(cluster, namespace, name)?))]
        }
        None => given.files.iter().map(|path| read(path)).collect(),
    };
    let peers = if tiers.network { Some(Peers::new()?) } else { None };
    let helm = if tiers.cluster && given.hook.is_none() { helm() } else { Err("a hook is run by Helm") };
    let around = Around {
        settings: &config::judge,
        cluster: cluster.as_ref().map(|asked| asked as &dyn Cluster),
        network: peers.as_ref().map(|peers| peers as &dyn Network),
        helm: helm.as_deref().map_err(|why| *why),
        is_hook: given.hook.is_some(),
        namespace: given.namespace.as_deref(),
    };
    let report = pipeline_doctor::validate(&files, tiers, around);
    let format = match given.format {
        Shape::Table => Format::Table,
        Shape::Json => Format::Json,
        Shape::Sarif => Format::Sarif,
    };
    print(&report.write(format))?;
    if let Some(path) = &given.termination_log {
        last_words(path, &report);
    }
    Ok(if given.hook == Some(Hook::Warn) {
        ExitCode::SUCCESS
    } else if report.is_wrong() {
        ExitCode::FAILURE
    } else if given.strict && !report.unmeasured.is_empty() {
        UNMEASURED.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// Converts values of the incumbent's chart.
pub(crate) fn convert(command: &ValuesCommand) -> anyhow::Result<ExitCode> {
    let ValuesCommand::Convert { files } = command;
    let mut all = Vec::new();
    for path in files {
        let (name, read) = read(path);
        match read {
            Ok(file) => all.push(file),
            Err(error) => {
                let place = if error.line == 0 { String::new() } else { format!("line {}: ", error.line) };
                bail!("{name}: {place}{}; {}", error.why, error.todo())
            }
        }
    }
    let mut all = all.into_iter();
    let first = all.next().context("no file was given")?;
    let converted = pipeline_doctor::convert_all(first, all.as_slice());
    print(&converted.yaml().context("write the values as YAML")?)?;
    Ok(ExitCode::SUCCESS)
}

/// Leaves the findings where Kubernetes shows them of a container that has ended.
fn last_words(path: &Path, report: &Report) {
    // They stand in the log as well: nothing hangs on it.
    drop(std::fs::write(path, report.brief(LAST_WORDS)));
}

/// The version of the Helm on the PATH.
fn helm() -> Result<String, &'static str> {
    use std::process::{Command, Stdio};
    let mut child = Command::new("helm")
        .args(["version", "--template", "{{.Version}}"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|_| "no helm on the PATH")?;
    let mut text = String::new();
    let mut said = child.stdout.take().ok_or("helm version says none")?.take(1_024);
    said.read_to_string(&mut text).map_err(|_| "helm version says none")?;
    // It has said all it has to say.
    drop(child.kill());
    drop(child.wait());
    Ok(text)
}

fn read(path: &Path) -> (String, Result<File, Unreadable>) {
    let standard = path == Path::new("-");
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let done = if standard {
        io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    let file = match done {
        Ok(_) if bytes.len() as u64 <= LARGEST => {
            Unreadable::text(bytes).and_then(|text| File::read(&name, &text))
        }
        Ok(_) => Err(Unreadable { line: 0, why: "more than 4 MiB" }),
        Err(error) => Err(Unreadable::unopened(error.kind())),
    };
    (name, file)
}
