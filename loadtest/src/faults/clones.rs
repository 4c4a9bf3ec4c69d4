//! A fetch is killed, again and again, at chosen points of the conversation with a real Git server.
//!
//! takes: 5 kills, 50 in the long form, each of a process of its own on one directory of clones - gives: what the process after
//! each of them tells - fails: when that does not open the directory, does not tell the newest commit, or leaves a clone that
//! git itself finds damaged, or a part of a pack

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use loadtest_judge::outcome::Outcome;
use loadtest_sim::PATIENCE;
use loadtest_sim::git_server::{GitRequest, git, git_fed};
use loadtest_sim::server::serve;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};

use super::Setting;

/// Bytes of the file that each commit changes, which hardly shrinks.
const LARGE: usize = 500_000;
/// Bytes of an answer of git's.
const LARGEST: usize = 16 << 20;

/// Where the server stops in the middle of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// It says all.
    Never,
    /// Before it greets.
    Greeting,
    /// Before it lists its branches.
    List,
    /// After so many bytes of the answer with the pack.
    Pack(usize),
    /// After all of it but the last byte.
    LastByte,
    /// It has said all: the pack is being indexed, or branches are being named.
    Said,
}

/// Each stands for another state that a clone is left in.
const POINTS: [Point; 10] = [
    Point::Pack(60_000),
    Point::Said,
    Point::LastByte,
    Point::Greeting,
    Point::Pack(1),
    Point::List,
    Point::Pack(200_000),
    Point::Pack(20),
    Point::Said,
    Point::Pack(1_000),
];

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let kills = setting.either(5, 50);
    let mut outcome = Outcome::new("clones", format!("{kills} kills in the middle of fetches"));
    let mut repository = Repository::make(setting.seed)?;
    let mut server = Server::start(repository.folder.path()).await?;
    let cache = TempDir::new().context("make a folder")?;
    let ask = || {
        let mut command = Command::new(&setting.program);
        command.args([
            "git",
            "commits",
            "--revision",
            "main",
            "--path",
            "large.txt",
            "-o",
            "json",
            "--cache",
        ]);
        command.arg(cache.path().join("clones")).args(["--repo", &server.url]).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    };
    let ask: Vec<Command> = (0..kills * 2).map(|_| ask()).collect();
    let mut ask = ask.into_iter();
    for (round, point) in POINTS.into_iter().cycle().take(kills).enumerate() {
        let newest = repository.commit()?;
        server.stop_at(point);
        let mut child = ask.next().context("ask")?.spawn().context("start the program")?;
        server.stopped().await.with_context(|| format!("fetch up to {point:?}"))?;
        child.kill().await.context("kill the program")?;

        server.stop_at(Point::Never);
        let asked = ask.next().context("ask")?.output();
        let done = tokio::time::timeout(PATIENCE, asked).await.context("the program does not end")??;
        let said = String::from_utf8_lossy(&done.stderr);
        let told = serde_json::from_slice::<Value>(&done.stdout).unwrap_or_default();
        let is_told = done.status.success() && told["revision"] == newest.as_str();
        outcome.demand(is_told, || {
            format!("kill {round} at {point:?}: the next ended with {}, {told}: {said}", done.status)
        });
        let wrong = damage(&cache.path().join("clones")).await?;
        outcome.demand(wrong.is_none(), || {
            format!("kill {round} at {point:?}: {}", wrong.as_deref().unwrap_or_default())
        });
        outcome.changes += 1;
    }
    Ok(outcome)
}

/// What is wrong with the clones of a directory, if anything is.
async fn damage(cache: &Path) -> anyhow::Result<Option<String>> {
    let mut clones = 0;
    for entry in std::fs::read_dir(cache).context("look at the clones")? {
        let path = entry.context("look at the clones")?.path();
        if path.extension().is_none_or(|end| end != "git") {
            continue;
        }
        clones += 1;
        let checked = Command::new("git").args(["fsck", "--strict"]).current_dir(&path).output().await;
        let checked = checked.context("run git fsck")?;
        if !checked.status.success() {
            return Ok(Some(String::from_utf8_lossy(&checked.stderr).into_owned()));
        }
        for part in std::fs::read_dir(path.join("objects/pack")).context("look at the packs")? {
            let name = part.context("look at the packs")?.file_name().to_string_lossy().into_owned();
            if !name.starts_with("pack-") {
                return Ok(Some(format!("{name} was left behind")));
            }
        }
    }
    Ok((clones != 1).then(|| format!("there are {clones} clones, not 1")))
}

/// A bare repository whose branch `main` grows.
struct Repository {
    folder: TempDir,
    path: PathBuf,
    random: fastrand::Rng,
    newest: Option<String>,
}

impl Repository {
    fn make(seed: u64) -> anyhow::Result<Self> {
        let folder = TempDir::new().context("make a folder")?;
        let path = folder.path().join("a.git");
        git(folder.path(), &["init", "-q", "--bare", "-b", "main", "a.git"])?;
        Ok(Self { folder, path, random: fastrand::Rng::with_seed(seed), newest: None })
    }

    /// One more commit, which changes all of the file.
    fn commit(&mut self) -> anyhow::Result<String> {
        let noise: String = (0..LARGE).map(|_| self.random.alphanumeric()).collect();
        let blob = git_fed(&self.path, &["hash-object", "-w", "--stdin"], noise.as_bytes())?;
        let tree = git_fed(&self.path, &["mktree"], format!("100644 blob {blob}\tlarge.txt\n").as_bytes())?;
        let mut arguments = vec!["commit-tree", &tree, "-m", "Change"];
        arguments.extend(self.newest.as_deref().into_iter().flat_map(|parent| ["-p", parent]));
        let commit = git(&self.path, &arguments)?;
        git(&self.path, &["update-ref", "refs/heads/main", &commit])?;
        self.newest = Some(commit.clone());
        Ok(commit)
    }
}

/// `git http-backend`, and somebody before it who stops at a point and says so.
struct Server {
    url: String,
    point: watch::Sender<Point>,
    stopped: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone)]
struct Serving {
    folder: Arc<Path>,
    point: watch::Receiver<Point>,
    says: mpsc::UnboundedSender<()>,
}

impl Server {
    async fn start(folder: &Path) -> anyhow::Result<Self> {
        let (point, of) = watch::channel(Point::Never);
        let (says, stopped) = mpsc::unbounded_channel();
        let serving = Serving { folder: folder.into(), point: of, says };
        let url = serve(Router::new().fallback(answer).with_state(serving)).await?;
        Ok(Self { url: format!("{url}/a.git"), point, stopped })
    }

    fn stop_at(&self, point: Point) {
        self.point.send_replace(point);
    }

    async fn stopped(&mut self) -> anyhow::Result<()> {
        let stopped = tokio::time::timeout(PATIENCE, self.stopped.recv()).await;
        stopped.context("nobody comes to the point")?.context("the server has ended")
    }
}

impl Serving {
    fn says(&self) {
        // Whoever waited may be gone.
        let _ = self.says.send(());
    }

    /// Never answers.
    async fn hang(&self) -> Response {
        self.says();
        std::future::pending().await
    }

    /// What a pack is answered with, up to the point.
    fn until(self, whole: Bytes, point: Point) -> Body {
        let cut = match point {
            Point::Pack(bytes) => bytes.min(whole.len().saturating_sub(1)),
            Point::LastByte => whole.len().saturating_sub(1),
            Point::Said => {
                // Said once the last byte is taken.
                let first = futures::stream::iter([Ok::<_, std::io::Error>(whole)]);
                let last = futures::stream::once(async move {
                    self.says();
                    Ok(Bytes::new())
                });
                return Body::from_stream(first.chain(last));
            }
            Point::Never | Point::Greeting | Point::List => return Body::from(whole),
        };
        let first = futures::stream::iter([Ok::<_, std::io::Error>(whole.slice(..cut))]);
        let rest = futures::stream::once(async move {
            self.says();
            std::future::pending().await
        });
        Body::from_stream(first.chain(rest))
    }
}

async fn answer(State(serving): State<Serving>, request: Request) -> Response {
    let point = *serving.point.borrow();
    match backend(&serving.folder, request).await {
        Ok(Answer { kind, body, step }) => {
            let body = match (step, point) {
                (Step::Greeting, Point::Greeting) | (Step::List, Point::List) => return serving.hang().await,
                (Step::Pack, point) => serving.until(body, point),
                _ => Body::from(body),
            };
            ([(CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}

enum Step {
    Greeting,
    List,
    Pack,
}

struct Answer {
    kind: String,
    body: Bytes,
    step: Step,
}

/// What git answers.
async fn backend(folder: &Path, request: Request) -> anyhow::Result<Answer> {
    let (parts, body) = request.into_parts();
    let asked = axum::body::to_bytes(body, 1 << 20).await.context("read what is asked")?;
    let step = match parts.method == Method::GET {
        true => Step::Greeting,
        false if asked.windows(15).any(|part| part == b"command=ls-refs") => Step::List,
        false => Step::Pack,
    };
    let answer = GitRequest::new(folder, &parts, &asked).answer().await?;
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.context("read git's answer")?.to_owned();
    let body = axum::body::to_bytes(answer.into_body(), LARGEST).await.context("read git's answer")?;
    Ok(Answer { kind, body, step })
}
