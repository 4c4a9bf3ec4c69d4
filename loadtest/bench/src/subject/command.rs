//! A reporter that is given by its command line: run through no shell, told where the simulators are by variables and
//! by placeholders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use serde_json::Value;

use loadtest_sim::Simulation;
use loadtest_sim::process::{Process, Start};
use loadtest_sim::reporter::Usage;

/// How the command line is written, for `--help`.
pub(crate) const HELP: &str = "\
Another reporter: --reporter 'NAME=VALUE ... PROGRAM ARGUMENT ...'
  It is split as a shell splits it, and run through none. Where the simulators are is told by placeholders, anywhere in
  it, and by the variables beside them:
    {kubeconfig}      LOADTEST_KUBECONFIG, KUBECONFIG   a kubeconfig of the API server
    {argocd}          LOADTEST_ARGOCD                   Argo CD, as http://127.0.0.1:1234
    {argocd_host}     LOADTEST_ARGOCD_HOST              the same without the scheme
    {argocd_token}    LOADTEST_ARGOCD_TOKEN             its token; also in the Secret argocd/argocd-token, under token
    {platform}        LOADTEST_PLATFORM                 the platform, as http://127.0.0.1:1234
    {token}           LOADTEST_TOKEN                    its token; also in the Secret argocd/codefresh-token, under token
    {port}            LOADTEST_PORT                     a free port; series are counted at /metrics there
    {state}           LOADTEST_STATE                    a folder of its own
    {replica}         LOADTEST_REPLICA                  which process it is, from 0
    {replicas}        LOADTEST_REPLICAS                 how many there are
  Memory and CPU are those of the process and its children. Variables that begin with GITOPS_RUNTIME_ are not passed on.
  The incumbent, with its own variables:
    loadtest bench steady --line v2 --beside 'ARGOCD_SERVER={argocd_host} ARGOCD_TOKEN={argocd_token}
      CODEFRESH_URL={platform} CODEFRESH_TOKEN={token} EVENT_REPORTER_REPLICAS={replicas}
      EVENT_REPORTER_SHARD={replica} BINARY_NAME=event-reporter REDIS_SERVER=127.0.0.1:6379
      ./event-reporter --metrics-port {port}'";

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// As it was given.
    pub(crate) text: String,
    environment: Vec<(String, String)>,
    words: Vec<String>,
}

/// Where one process finds everything.
#[derive(Debug)]
pub(super) struct Place {
    /// Placeholders and their values; the variables are named after them.
    values: Vec<(&'static str, String)>,
    directory: PathBuf,
    pub(super) port: u16,
}

impl std::str::FromStr for Command {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = shlex::split(text).context("split the command line: a quote is not closed")?;
        let environment: Vec<(String, String)> = words.iter().map_while(|word| assignment(word)).collect();
        let words: Vec<String> = words.into_iter().skip(environment.len()).collect();
        ensure!(!words.is_empty(), "the command line names no program");
        let whole = environment.iter().map(|(_, value)| value).chain(&words);
        for name in whole.flat_map(|word| placeholders(word)) {
            ensure!(
                NAMES.contains(&name.as_str()),
                "there is no placeholder {{{name}}}; there are {}",
                NAMES.map(|name| format!("{{{name}}}")).join(", ")
            );
        }
        Ok(Self { text: text.to_owned(), environment, words })
    }
}

const NAMES: [&str; 10] = [
    "kubeconfig",
    "argocd",
    "argocd_host",
    "argocd_token",
    "platform",
    "token",
    "port",
    "state",
    "replica",
    "replicas",
];

/// `NAME=VALUE`.
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// What stands in braces and is written as a placeholder is.
fn placeholders(word: &str) -> Vec<String> {
    let pieces = word.split('{').skip(1).filter_map(|piece| piece.split_once('}'));
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    pieces.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
}

impl Command {
    /// What one process is told.
    pub(super) fn place(
        &self,
        simulation: &Simulation,
        replica: u32,
        replicas: u32,
        directory: &Path,
    ) -> anyhow::Result<Place> {
        let port = loadtest_sim::port::free()?;
        let argocd = simulation.argocd.url();
        let host = argocd.split_once("://").map_or(argocd.as_str(), |(_, host)| host).to_owned();
        let setting = |pointer: &str| simulation.settings().pointer(pointer).and_then(Value::as_str);
        let token = |pointer: &str| {
            let file = setting(pointer).context("find the file of a token")?;
            std::fs::read_to_string(file).context("read a token of the simulation")
        };
        let kubeconfig = setting("/kubernetes/kubeconfig").context("find the kubeconfig")?.to_owned();
        let values = vec![
            ("kubeconfig", kubeconfig),
            ("argocd", argocd),
            ("argocd_host", host),
            ("argocd_token", token("/argocd/tokenFile")?),
            ("platform", simulation.platform.url()),
            ("token", token("/platform/tokenFile")?),
            ("port", port.to_string()),
            ("state", directory.display().to_string()),
            ("replica", replica.to_string()),
            ("replicas", replicas.to_string()),
        ];
        Ok(Place { values, directory: directory.to_path_buf(), port })
    }

    /// Starts one process.
    pub(super) fn start(&self, place: &Place) -> anyhow::Result<Started> {
        let fill = |text: &str| place.fill(text);
        let [program, args @ ..] = self.words.as_slice() else { bail!("the command line names no program") };
        let mut program = PathBuf::from(fill(program));
        if program.components().count() > 1 {
            // It runs in another folder than this program.
            program = program.canonicalize().with_context(|| format!("find {}", program.display()))?;
        }
        let inherited = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut env: Vec<(String, String)> =
            inherited.filter(|(name, _)| !name.starts_with("GITOPS_RUNTIME_")).collect();
        env.extend(place.variables());
        env.extend(self.environment.iter().map(|(name, value)| (name.clone(), fill(value))));
        let process = Process::start(&Start {
            program,
            args: args.iter().map(|word| fill(word).into()).collect(),
            env,
            directory: place.directory.clone(),
        })?;
        let group = process.id().context("the process has ended")?;
        Ok(Started { process, group })
    }
}

impl Place {
    fn fill(&self, text: &str) -> String {
        let filled =
            |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{name}}}"), value);
        self.values.iter().fold(text.to_owned(), filled)
    }

    fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let named =
            |(name, value): &(&str, String)| (format!("LOADTEST_{}", name.to_uppercase()), value.clone());
        let kubeconfig = self.values.iter().find(|(name, _)| *name == "kubeconfig");
        let kubeconfig = kubeconfig.map(|(_, value)| ("KUBECONFIG".to_owned(), value.clone()));
        self.values.iter().map(named).chain(kubeconfig)
    }
}

/// A process, and what it started. Dropping it kills them all.
pub(super) struct Started {
    process: Process,
    /// Each process is started as the leader of a group of its own.
    group: u32,
}

impl Started {
    /// What the kernel knows of it and its children.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        self.process.id().and_then(Usage::of_tree).with_context(|| {
            format!("the reporter has ended; the end of its log:\n{}", self.process.lines().end())
        })
    }

    /// Asks all of them to stop, and kills what has not ended in time.
    pub(super) async fn stop(mut self, within: Duration) {
        self.signal("-TERM");
        if let Err(error) = self.process.wait(within).await {
            tracing::debug!(error = format!("{error:#}"), "the reporter was killed");
        }
    }

    fn signal(&self, name: &str) {
        let mut kill = std::process::Command::new("kill");
        kill.args([name, "--"]).arg(format!("-{}", self.group)).stderr(std::process::Stdio::null());
        // Of most groups nobody is left.
        let _ = kill.status();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.signal("-KILL");
    }
}
