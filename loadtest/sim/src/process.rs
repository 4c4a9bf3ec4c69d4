//! The real binary as a child process: built where that is possible, started on free ports, watched through
//! its log, and stopped with its parent.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::reporter::memory_of;
use crate::{PATIENCE, until};

/// The variable that names the binary, where that has been built.
const PROGRAM: &str = "LOADTEST_PROGRAM";
/// Log lines of a process that are kept, the oldest dropped first.
const KEPT_LINES: usize = 20_000;

/// What the log says of a panic, before and after it is set up.
const PANICS: [&str; 2] = ["panicked at", "a panic: this is a bug"];
/// How long one may take to explain itself.
const EXPLAINS_WITHIN: Duration = Duration::from_secs(10);
/// How often its log is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How to start the binary.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program; see [`binary`].
    pub program: PathBuf,
    /// Its arguments, e.g. `reporter`.
    pub args: Vec<OsString>,
    /// Its environment, beside `PATH`; nothing else of the parent's is passed on.
    pub env: Vec<(String, String)>,
    /// Where it runs: relative paths of its state stand here.
    pub directory: PathBuf,
}

impl Start {
    /// With arguments, and behind them settings, each as `path=value`; with nothing in its environment.
    #[must_use]
    pub fn with_settings<A: AsRef<OsStr>, S: AsRef<OsStr>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
        settings: impl IntoIterator<Item = S>,
        directory: impl Into<PathBuf>,
    ) -> Self {
        let args = args.into_iter().map(|one| one.as_ref().to_owned());
        let settings = settings.into_iter().flat_map(|one| ["--set".into(), one.as_ref().to_owned()]);
        Self {
            program: program.into(),
            args: args.chain(settings).collect(),
            env: Vec::new(),
            directory: directory.into(),
        }
    }
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Lines,
    address: watch::Receiver<Option<SocketAddr>>,
    /// Reads its log; ends with it.
    reader: Option<JoinHandle<()>>,
}

/// The last lines a process logged, shared with its reader.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    kept: Arc<Mutex<VecDeque<String>>>,
}

impl Lines {
    /// All lines that are still kept, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Whether a kept line holds `text`.
    #[must_use]
    pub fn any(&self, text: &str) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(text))
    }

    /// The last of them, as text.
    #[must_use]
    pub fn end(&self) -> String {
        let all = self.all();
        all.get(all.len().saturating_sub(12)..).unwrap_or_default().join("\n")
    }

    /// The rest of the line that begins so, once that is there.
    pub async fn rest_of(&self, begin: &str) -> anyhow::Result<String> {
        let rest = || self.all().iter().find_map(|line| line.strip_prefix(begin).map(str::to_owned));
        let rest = until(PATIENCE, LOOK, async || Ok(rest()), Option::is_some).await?;
        rest.with_context(|| format!("the process does not say {begin:?}"))
    }

    /// Those that tell of a panic.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        let mut lines = self.all();
        lines.retain(|line| PANICS.iter().any(|panic| line.contains(panic)));
        lines
    }

    fn push(&self, line: String) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

impl Process {
    /// Starts the binary. It must log as JSON (`GITOPS_RUNTIME_LOG__FORMAT=json`, added here), so that the
    /// address it serves at can be read from its log.
    pub fn start(start: &Start) -> anyhow::Result<Self> {
        let mut child = bound(&start.program)
            .args(&start.args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH".to_owned(), path)))
            .envs(start.env.iter().cloned())
            .env("GITOPS_RUNTIME_LOG__FORMAT", "json")
            .current_dir(&start.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for this program, which then asks the other to stop.
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {}", start.program.display()))?;
        let stderr = child.stderr.take().context("the log of a process just started")?;
        let lines = Lines::default();
        let (found, address) = watch::channel(None);
        let keep = lines.clone();
        let reader = tokio::spawn(async move {
            let mut reader = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                if let Some(address) = served_at(&line) {
                    found.send_if_modified(|known| {
                        known.is_none() && {
                            *known = Some(address);
                            true
                        }
                    });
                }
                keep.push(line);
            }
        });
        Ok(Self { child, lines, address, reader: Some(reader) })
    }

    /// The address it serves health and metrics at, as soon as its log names it.
    pub async fn address(&mut self, limit: Duration) -> anyhow::Result<SocketAddr> {
        let found = async { self.address.wait_for(Option::is_some).await.ok().and_then(|found| *found) };
        match tokio::time::timeout(limit, found).await {
            Ok(Some(address)) => Ok(address),
            _ => {
                bail!("the process does not serve after {limit:?}; the end of its log:\n{}", self.lines.end())
            }
        }
    }

    /// Waits until its log holds `text`.
    pub async fn says(&mut self, text: &str, limit: Duration) -> anyhow::Result<()> {
        let look = async || {
            // What it said last counts too.
            let ended = self.child.try_wait().context("look after the process")?.is_some();
            Ok((self.lines.any(text), ended))
        };
        let (said, _) = until(limit, LOOK, look, |(said, ended)| *said || *ended).await?;
        if !said {
            bail!(
                "the process does not say {text:?} after {limit:?}; the end of its log:\n{}",
                self.lines.end()
            )
        }
        Ok(())
    }

    /// What it logged.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Resident memory in bytes, read from the kernel.
    #[must_use]
    pub fn resident(&self) -> Option<u64> {
        memory_of(self.id()?, "VmRSS:")
    }

    /// The most resident memory that it ever had, in bytes.
    #[must_use]
    pub fn most_resident(&self) -> Option<u64> {
        memory_of(self.id()?, "VmHWM:")
    }

    /// Asks it to stop (SIGTERM) and waits.
    pub async fn stop(mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        self.signal("TERM").await?;
        self.wait(limit).await
    }

    /// Asks it to stop, and waits for an end that is a success; `name` is what it is called where it is none.
    pub async fn stop_cleanly(self, name: &str) -> anyhow::Result<()> {
        let ended = self.stop(PATIENCE).await?;
        ensure!(ended.success(), "{name} ended with {ended}");
        Ok(())
    }

    /// Kills it (SIGKILL) and waits.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill().context("kill the process")?;
        self.wait(PATIENCE).await.map(drop)
    }

    /// Sends a signal by its name.
    pub async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.id().context("the process has ended")?;
        let sent = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status().await?;
        if !sent.success() {
            bail!("cannot send SIG{name} to process {id}");
        }
        Ok(())
    }

    /// Waits for its end.
    pub async fn wait(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(status) => {
                // What it logged last may still be in the pipe. Whoever it has left behind may hold that open.
                if let Some(reader) = self.reader.take() {
                    let _ = tokio::time::timeout(Duration::from_secs(5), reader).await;
                }
                status.context("wait for the process")
            }
            Err(_) => {
                self.child.kill().await.context("kill the process")?;
                bail!("the process did not end within {limit:?}")
            }
        }
    }
}

/// A command that ends with this program, however that ends: by `setpriv` of util-linux, where there is one. It ends
/// with the thread that starts it, so that must be one that stays.
fn bound(program: &Path) -> Command {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&paths).map(|path| path.join("setpriv")).find(|path| path.is_file()) {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// The program that was `given`, else [`binary`].
pub async fn program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    match given {
        // It is started in folders of its own.
        Some(program) => {
            std::fs::canonicalize(program).with_context(|| format!("find {}", program.display()))
        }
        None => binary().await,
    }
}

/// `gitops-runtime`: the one that `LOADTEST_PROGRAM` names, else the one beside this program, built first where this
/// program runs out of a cargo workspace.
pub async fn binary() -> anyhow::Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return named(Path::new(&program));
    }
    let here = std::env::current_exe().context("find this program")?;
    let mut folder = here.parent().context("the folder of this program")?;
    if folder.ends_with("deps") {
        folder = folder.parent().context("the folder of this program")?;
    }
    let program = folder.join(format!("gitops-runtime{}", std::env::consts::EXE_SUFFIX));
    if let (Some(cargo), Some(manifest)) = (std::env::var_os("CARGO"), workspace()) {
        let mut build = Command::new(cargo);
        // With the features that the whole workspace asks of others' crates: a package by itself asks for fewer, and most
        // of them would be built once more.
        build
            .args(["build", "--quiet", "--workspace", "--bin", "gitops-runtime", "--manifest-path"])
            .arg(manifest);
        build.arg("--profile").arg(profile(folder));
        if !has_make().await {
            // The allocator of releases cannot be built; the system's is a slower one.
            build.arg("--no-default-features");
        }
        let built = build.status().await.context("run cargo build")?;
        if !built.success() {
            bail!("building gitops-runtime failed; its messages stand above");
        }
    }
    if !program.is_file() {
        bail!("there is no {}; build it with `cargo build --package gitops-runtime`", program.display());
    }
    Ok(program)
}

/// Whether root runs this program.
pub fn is_root() -> anyhow::Result<bool> {
    Ok(std::fs::metadata("/proc/self").context("ask who runs this")?.uid() == 0)
}

/// What the binary itself says of an application, by its state in a folder.
pub async fn explain(program: &Path, application: &str, state: &Path) -> String {
    let mut explain = Command::new(program);
    explain.args(["explain", application, "--state"]).arg(state).kill_on_drop(true);
    match tokio::time::timeout(EXPLAINS_WITHIN, explain.output()).await {
        Ok(Ok(said)) => String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).trim().to_owned(),
        Ok(Err(error)) => format!("{application}: it cannot be asked to explain it: {error}"),
        Err(_) => format!("{application}: it does not answer"),
    }
}

/// The profile that a folder of programs is of: only that of `dev` is named otherwise.
fn profile(folder: &Path) -> &OsStr {
    match folder.file_name() {
        Some(name) if name != "debug" => name,
        _ => OsStr::new("dev"),
    }
}

/// The binary that the environment names.
fn named(program: &Path) -> anyhow::Result<PathBuf> {
    ensure!(program.is_file(), "there is no {}, which {PROGRAM} names", program.display());
    std::fs::canonicalize(program).with_context(|| format!("find {}", program.display()))
}

async fn has_make() -> bool {
    let asked =
        Command::new("make").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    asked.is_ok_and(|status| status.success())
}

/// The manifest of the workspace this program was built from, if cargo runs it.
fn workspace() -> Option<PathBuf> {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let mut manifests = own.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    manifests.find(|manifest| manifest.is_file() && manifest.with_file_name("Cargo.lock").is_file())
}

fn served_at(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    if fields.get("message")?.as_str()? != "listening" {
        return None;
    }
    fields.get("address")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_line_that_names_it() {
        let line = r#"{"level":"INFO","fields":{"message":"listening","address":"127.0.0.1:4321"}}"#;
        assert_eq!(served_at(line), Some("127.0.0.1:4321".parse().unwrap()));
        assert_eq!(served_at(r#"{"fields":{"message":"listed","address":"127.0.0.1:1"}}"#), None);
        assert_eq!(served_at("no json"), None);
    }

    #[test]
    fn a_binary_that_is_named_is_taken_if_it_is_there() {
        let here = std::env::current_exe().unwrap();
        assert_eq!(named(&here).unwrap(), std::fs::canonicalize(here).unwrap());
        let error = named(Path::new("/nowhere/gitops-runtime")).unwrap_err().to_string();
        assert_eq!(error, "there is no /nowhere/gitops-runtime, which LOADTEST_PROGRAM names");
    }

    #[tokio::test]
    async fn a_program_that_is_given_is_found_from_every_folder() {
        let here = std::env::current_dir().unwrap();
        let given = program(Some(Path::new("Cargo.toml"))).await.unwrap();
        assert_eq!(given, std::fs::canonicalize(here.join("Cargo.toml")).unwrap());
        let error = program(Some(Path::new("nowhere/gitops-runtime"))).await.unwrap_err();
        assert_eq!(error.to_string(), "find nowhere/gitops-runtime");
    }

    #[test]
    fn the_binary_is_built_as_this_program_was() {
        for (folder, name) in [("t/debug", "dev"), ("t/release", "release"), ("t/x86_64/image", "image")] {
            assert_eq!(profile(Path::new(folder)), name);
        }
    }

    #[tokio::test]
    async fn a_program_that_ends_without_serving_is_told_with_the_end_of_its_log() {
        let start = Start {
            program: "sh".into(),
            args: ["-c", "echo no such setting >&2"].map(Into::into).to_vec(),
            env: Vec::new(),
            directory: std::env::temp_dir(),
        };
        let mut process = Process::start(&start).unwrap();
        let error = process.address(PATIENCE).await.unwrap_err().to_string();
        assert!(error.starts_with("the process does not serve after "), "{error}");
        assert!(error.ends_with("no such setting"), "{error}");
    }
}
