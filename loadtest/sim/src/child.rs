//! The programs of a cluster as child processes: each logs to a file, and none outlives this program.
//!
//! takes: a program, its arguments, environment and log - gives: a process that is killed, stopped and started again
//! calls: `setpriv` (util-linux) before the program, `kill` - fails: when a program cannot be started, or ends before
//! it is ready; the end of its log stands in the error

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};

/// How long a program may take to end after SIGTERM before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the kernel may take to end it after SIGKILL, on a machine that writes its memory to a busy disk.
const KILLED_WITHIN: Duration = Duration::from_secs(60);
/// Lines of a log that are put into an error.
const TOLD: usize = 12;
/// Bytes at the end of a log in which those lines are looked for.
const END: u64 = 16 * 1024;
/// Between two questions whether a program is ready.
const ASK: Duration = Duration::from_millis(20);

/// How to start a program.
#[derive(Debug, Clone)]
pub struct Spec {
    /// What it is called in messages, e.g. `kube-apiserver`.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment. `PATH` is passed on and `HOME` is its directory unless they stand here; nothing else of this
    /// program's environment is.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// The file that its output is appended to.
    pub log: PathBuf,
}

impl Spec {
    /// A program that runs in `directory` and logs to `NAME.log` there.
    #[must_use]
    pub fn new(name: &str, program: impl Into<PathBuf>, directory: &Path) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            directory: directory.to_path_buf(),
            log: directory.join(format!("{name}.log")),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Of a program of Go that works hard and ends soon: it takes memory, up to a gigabyte, in place of time.
    #[must_use]
    pub fn with_memory(self) -> Self {
        self.env("GOGC", "400").env("GOMEMLIMIT", "1GiB")
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }
}

/// A program that was started, and can be started again. It ends when this value is dropped, and when this program
/// ends in any way, SIGKILL included: the kernel kills it when the thread that started it is gone. So it must not be
/// started from a thread that ends early, as those of `spawn_blocking` do.
#[derive(Debug)]
pub struct Child {
    spec: Spec,
    run: Mutex<Run>,
}

/// One life of a program.
#[derive(Debug, Clone)]
struct Run {
    id: u32,
    signals: mpsc::Sender<Signal>,
    ended: watch::Receiver<Option<ExitStatus>>,
}

#[derive(Debug, Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

impl Child {
    /// Starts a program.
    pub fn start(spec: &Spec) -> anyhow::Result<Self> {
        Ok(Self { spec: spec.clone(), run: Mutex::new(spawn(spec)?) })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its process id; that of its last life when it has ended.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.run().id
    }

    /// Whether it has not ended yet.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run().ended.borrow().is_none()
    }

    /// Waits for its end and tells how it ended.
    pub async fn ended(&self) -> anyhow::Result<ExitStatus> {
        let mut ended = self.run().ended;
        let status = ended.wait_for(Option::is_some).await.ok().and_then(|status| *status);
        status.with_context(|| format!("wait for {}", self.spec.name))
    }

    /// Kills it (SIGKILL) and waits; nothing happens when it has ended before.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.end(Signal::Kill, KILLED_WITHIN).await
    }

    /// Asks it to end (SIGTERM), kills it when its patience is over, and waits; nothing happens when it has ended
    /// before.
    pub async fn stop(&self) -> anyhow::Result<()> {
        if self.end(Signal::Terminate, PATIENCE).await.is_ok() {
            return Ok(());
        }
        self.kill().await
    }

    /// Starts it as it was started before, after its end; it is stopped first when it runs.
    pub async fn restart(&self) -> anyhow::Result<()> {
        self.stop().await?;
        let run = spawn(&self.spec)?;
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = run;
        Ok(())
    }

    /// Waits until `probe` says that it is ready, and tells how long that took.
    pub async fn ready(
        &self,
        within: Duration,
        mut probe: impl AsyncFnMut() -> bool,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let asked = async {
            while !probe().await {
                tokio::time::sleep(ASK).await;
            }
        };
        tokio::select! {
            answer = tokio::time::timeout(within, asked) => match answer {
                Ok(()) => Ok(began.elapsed()),
                Err(_) => bail!("{} is not ready after {within:?}{}", self.spec.name, self.told()),
            },
            status = self.ended() => bail!("{} ended before it was ready ({}){}", self.spec.name, status?, self.told()),
        }
    }

    /// The last lines of its log, oldest first.
    #[must_use]
    pub fn last_lines(&self, lines: usize) -> Vec<String> {
        last_lines(&self.spec.log, lines)
    }

    fn told(&self) -> String {
        format!("; the end of {}:\n{}", self.spec.log.display(), self.last_lines(TOLD).join("\n"))
    }

    fn run(&self) -> Run {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn end(&self, signal: Signal, within: Duration) -> anyhow::Result<()> {
        let run = self.run();
        // When nobody takes the signal any more, it has ended.
        let _ = run.signals.send(signal).await;
        let mut ended = run.ended;
        match tokio::time::timeout(within, ended.wait_for(Option::is_some)).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("{} does not end within {within:?}", self.spec.name),
        }
    }
}

fn spawn(spec: &Spec) -> anyhow::Result<Run> {
    let act = || format!("start {}", spec.name);
    let log = OpenOptions::new().create(true).append(true).open(&spec.log);
    let log = log.with_context(|| format!("open {}", spec.log.display()))?;
    let errors = log.try_clone().with_context(act)?;
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(&spec.program)
        .args(&spec.args)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", &spec.directory)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.directory)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .kill_on_drop(true)
        // Ctrl-C is for this program, which then ends the others in order.
        .process_group(0);
    let mut child = command.spawn().with_context(act)?;
    let id = child.id().with_context(act)?;
    let (signals, mut received) = mpsc::channel(1);
    let (tell, ended) = watch::channel(None);
    tokio::spawn(async move {
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                signal = received.recv() => match signal {
                    // The process is not reaped before `wait` has told its end, so its id is still its own.
                    Some(Signal::Terminate) => terminate(id).await,
                    Some(Signal::Kill) | None => break finish(&mut child).await,
                },
            }
        };
        tell.send_replace(status.ok());
    });
    Ok(Run { id, signals, ended })
}

async fn finish(child: &mut tokio::process::Child) -> std::io::Result<ExitStatus> {
    child.start_kill()?;
    child.wait().await
}

/// A failure shows as a process that does not end, and is then killed.
async fn terminate(id: u32) {
    let _ = Command::new("kill").arg("-TERM").arg(id.to_string()).status().await;
}

/// Whether a process of this id runs.
#[must_use]
pub fn is_alive(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn last_lines(log: &Path, lines: usize) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    // A log that cannot be read has no lines to tell; the error it stands in says what failed.
    let end = read().unwrap_or_default();
    let mut all: Vec<String> = String::from_utf8_lossy(&end).lines().map(str::to_owned).collect();
    all.split_off(all.len().saturating_sub(lines))
}
