//! A Git server on loopback: bare repositories made from a template, read over smart HTTP, written by [`Repository::commit`].
//!
//! takes: a folder to keep the repositories in, and the template - gives: URLs that stock Git clones and fetches
//! calls: `git http-backend`, `git fast-import` - fails: 404 for what is no repository, 413 for a request of more
//! than 8 MiB, 503 while 32 requests run; a push over HTTP is refused (403): history is written here alone

mod backend;
mod commit;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::sync::OnceCell;

pub use self::commit::Commit;
use super::port;
use crate::sim::server::{Listen, Server};

/// The one branch of every repository.
pub const BRANCH: &str = "main";
/// The largest template, in bytes: it is held in memory while a repository is made.
const TEMPLATE: usize = 4 << 20;

/// A Git server with its repositories.
#[derive(Debug)]
pub struct Git {
    server: Server,
    directory: PathBuf,
    template: PathBuf,
    made: Mutex<BTreeMap<String, Arc<OnceCell<Repository>>>>,
}

/// A repository of the server. Clones speak of the same one.
#[derive(Debug, Clone)]
pub struct Repository {
    url: String,
    bare: PathBuf,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Git {
    /// Starts the server; its repositories stand under `directory` and begin as copies of `template`.
    ///
    /// # Errors
    /// When the folder cannot be made, or there is no template, no port or no `git`.
    pub async fn start(directory: &Path, template: &Path) -> anyhow::Result<Self> {
        if !template.is_dir() {
            bail!("find the template of repositories at {}", template.display());
        }
        tokio::fs::create_dir_all(directory)
            .await
            .with_context(|| format!("make the folder of repositories {}", directory.display()))?;
        let directory = directory.canonicalize().context("find the folder of repositories")?;
        git(&directory, ["--version"]).await?;
        let server = Server::start(backend::router(directory.clone()), Listen::port(port::free()?)).await?;
        Ok(Self { server, directory, template: template.to_path_buf(), made: Mutex::default() })
    }

    /// The server's URL; a repository stands at `{url}/{name}.git`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The repository `name` (lower-case letters, digits, dashes), made from the template at the first call: in
    /// every file `$REPO` becomes the repository's URL and `$NAMESPACE` its name.
    ///
    /// # Errors
    /// When the name cannot be one, or the template cannot be read or imported.
    pub async fn repository(&self, name: &str) -> anyhow::Result<Repository> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        {
            bail!("name a repository {name:?}: only lower-case letters, digits and dashes can stand there");
        }
        let cell = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.entry(name.to_owned()).or_default().clone()
        };
        let repository = cell.get_or_try_init(|| self.make(name)).await?;
        Ok(repository.clone())
    }

    /// Stops answering, with every connection broken.
    pub async fn down(&self) {
        self.server.down().await;
    }

    /// Answers again at the same address.
    ///
    /// # Errors
    /// When the port has been taken by another.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.server.up().await
    }

    async fn make(&self, name: &str) -> anyhow::Result<Repository> {
        let bare = self.directory.join(format!("{name}.git"));
        let url = format!("{}/{name}.git", self.server.url());
        let template = self.template.clone();
        let files = tokio::task::spawn_blocking(move || files_of(&template))
            .await
            .context("read the template of repositories")??;
        let files = files
            .into_iter()
            .map(|(path, text)| (path, Some(text.replace("$REPO", &url).replace("$NAMESPACE", name))))
            .collect();
        git(&self.directory, [OsStr::new("init"), "--bare".as_ref(), "--quiet".as_ref(), bare.as_ref()])
            .await?;
        git(&bare, ["symbolic-ref", "HEAD", &format!("refs/heads/{BRANCH}")]).await?;
        let repository = Repository { url, bare, turn: Arc::default() };
        repository
            .commit(&Commit {
                author: "Template".to_owned(),
                email: "template@example.com".to_owned(),
                message: "Begin from the template".to_owned(),
                files,
                date: None,
            })
            .await?;
        Ok(repository)
    }
}

impl Repository {
    /// Where to clone it from.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Puts a commit on top of the branch and gives its id. Commits wait for one another, so callers may be many.
    ///
    /// # Errors
    /// When a path or a name cannot stand in a commit, or a file to be deleted is not there; nothing is written then.
    pub async fn commit(&self, commit: &Commit) -> anyhow::Result<String> {
        let _turn = self.turn.lock().await;
        commit::write(&self.bare, commit).await
    }

    /// The id of the newest commit.
    ///
    /// # Errors
    /// When Git fails.
    pub async fn head(&self) -> anyhow::Result<String> {
        Ok(git(&self.bare, ["rev-parse", "--verify", BRANCH]).await?.trim().to_owned())
    }

    /// The text of a file in the newest commit.
    ///
    /// # Errors
    /// When there is no such file, or its text is not UTF-8.
    pub async fn show(&self, path: &str) -> anyhow::Result<String> {
        git(&self.bare, ["show", &format!("{BRANCH}:{path}")]).await
    }
}

/// Runs `git` in a folder and gives what it printed.
async fn git<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) -> anyhow::Result<String> {
    let mut command = command(directory);
    command.args(args).stdin(Stdio::null());
    let done = command.output().await.context("run git; is it installed?")?;
    if !done.status.success() {
        bail!("run git: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    String::from_utf8(done.stdout).context("read what git printed")
}

/// `git` without the machine's or the user's own settings, so that it does the same everywhere.
fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", directory)
        .kill_on_drop(true);
    command
}

/// Every file below a folder, by its path from there.
fn files_of(top: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    let mut folders = vec![top.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let entry = entry.with_context(|| format!("read {}", folder.display()))?;
            let path = entry.path();
            if entry.file_type().with_context(|| format!("read {}", path.display()))?.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            bytes += text.len();
            if bytes > TEMPLATE {
                bail!("read the template of repositories: it has more than {TEMPLATE} bytes");
            }
            let name =
                path.strip_prefix(top).ok().and_then(Path::to_str).context("name a file of the template")?;
            files.insert(name.to_owned(), text);
        }
    }
    Ok(files)
}
