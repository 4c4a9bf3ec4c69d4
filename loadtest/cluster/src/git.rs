//! Git repositories in folders, made from a template; Argo CD reads them where they are, by `file://`.
//!
//! takes: a folder to keep the repositories in, and the template - gives: URLs that stock Git clones and fetches
//! calls: `git` - fails: when there is none, or what is to be committed cannot be; nothing is written then

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use loadtest_sim::command::printed;
use tokio::fs;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// The one branch of every repository.
pub const BRANCH: &str = "main";
/// The largest template, in bytes: it is held in memory while a repository is made.
const TEMPLATE: usize = 4 << 20;

/// What is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The author's (and committer's) name.
    pub author: String,
    /// Their address, without brackets.
    pub email: String,
    /// The message.
    pub message: String,
    /// New texts by path; no text deletes the file.
    pub files: BTreeMap<String, Option<String>>,
}

impl Commit {
    /// One of Ada's.
    #[must_use]
    pub fn of_ada(message: impl Into<String>, files: BTreeMap<String, Option<String>>) -> Self {
        let (author, email) = ("Ada".to_owned(), "ada@example.com".to_owned());
        Self { author, email, message: message.into(), files }
    }
}

/// All repositories.
#[derive(Debug)]
pub struct Git {
    directory: PathBuf,
    template: PathBuf,
    made: Mutex<BTreeMap<String, Arc<OnceCell<Repository>>>>,
}

/// A repository. Clones speak of the same one.
#[derive(Debug, Clone)]
pub struct Repository {
    url: String,
    folder: PathBuf,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Git {
    /// Repositories that stand under `directory` and begin as copies of `template`.
    pub async fn start(directory: &Path, template: &Path) -> anyhow::Result<Self> {
        if !template.is_dir() {
            bail!("find the template of repositories at {}", template.display());
        }
        fs::create_dir_all(directory)
            .await
            .with_context(|| format!("make the folder of repositories {}", directory.display()))?;
        let directory = directory.canonicalize().context("find the folder of repositories")?;
        git(&directory, ["--version"]).await?;
        Ok(Self { directory, template: template.to_path_buf(), made: Mutex::default() })
    }

    /// The repository `name` (lower-case letters, digits, dashes), made from the template at the first call: in
    /// every file `$REPO` becomes the repository's URL and `$NAMESPACE` its name.
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

    async fn make(&self, name: &str) -> anyhow::Result<Repository> {
        let folder = self.directory.join(name);
        let url = format!("file://{}", folder.display());
        let template = self.template.clone();
        let files = tokio::task::spawn_blocking(move || files_of(&template))
            .await
            .context("read the template of repositories")??;
        let files = files
            .into_iter()
            .map(|(path, text)| (path, Some(text.replace("$REPO", &url).replace("$NAMESPACE", name))))
            .collect();
        let init = ["init", "--quiet", "--initial-branch", BRANCH, name];
        git(&self.directory, init).await?;
        let repository = Repository { url, folder, turn: Arc::default() };
        let (author, email) = ("Template".to_owned(), "template@example.com".to_owned());
        let message = "Begin from the template".to_owned();
        repository.commit(&Commit { author, email, message, files }).await?;
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
    pub async fn commit(&self, commit: &Commit) -> anyhow::Result<String> {
        let _turn = self.turn.lock().await;
        for (what, text) in [("author", &commit.author), ("email", &commit.email)] {
            if text.is_empty() || text.contains(['<', '>', '\n', '\0']) {
                bail!("write a commit: the {what} {text:?} cannot stand in one");
            }
        }
        for (path, text) in &commit.files {
            if path.contains(['\n', '\0', '"'])
                || path.split('/').any(|part| matches!(part, "" | "." | ".." | ".git"))
            {
                bail!("write a commit: the path {path:?} cannot stand in one");
            }
            if text.is_none() && !self.folder.join(path).is_file() {
                bail!("delete {path} in a commit: it is not there");
            }
        }
        for (path, text) in &commit.files {
            let file = self.folder.join(path);
            let written = match text {
                None => fs::remove_file(&file).await,
                Some(text) => match file.parent().map(fs::create_dir_all) {
                    Some(made) => made.await.and(fs::write(&file, text).await),
                    None => fs::write(&file, text).await,
                },
            };
            written.with_context(|| format!("write {path} for a commit"))?;
        }
        git(&self.folder, ["add", "--all"]).await?;
        let (name, email) = (format!("user.name={}", commit.author), format!("user.email={}", commit.email));
        let commit = ["commit", "--quiet", "--allow-empty", "--message", &commit.message];
        git(&self.folder, [&["-c", &name, "-c", &email, "-c", "gc.auto=0"][..], &commit].concat()).await?;
        self.head().await
    }

    /// Puts each of these on a branch of its own, beside each other, and merges all of them into the branch; gives the ids of
    /// the commits, and that of the merge.
    pub async fn merge(&self, sides: &[Commit], message: &str) -> anyhow::Result<(Vec<String>, String)> {
        let mut all = Vec::new();
        let mut names = Vec::new();
        for (number, side) in sides.iter().enumerate() {
            let name = format!("side-{number}");
            git(&self.folder, ["checkout", "--quiet", "-B", &name, BRANCH]).await?;
            self.commit(side).await?;
            all.push(git(&self.folder, ["rev-parse", "--verify", &name]).await?.trim().to_owned());
            names.push(name);
        }
        git(&self.folder, ["checkout", "--quiet", BRANCH]).await?;
        let merge = ["-c", "user.name=Merge", "-c", "user.email=merge@example.com", "merge", "--quiet"];
        let how = ["--no-ff", "--message", message];
        let names = names.iter().map(String::as_str);
        git(&self.folder, merge.into_iter().chain(how).chain(names)).await?;
        Ok((all, self.head().await?))
    }

    /// The id of the newest commit.
    pub async fn head(&self) -> anyhow::Result<String> {
        Ok(git(&self.folder, ["rev-parse", "--verify", BRANCH]).await?.trim().to_owned())
    }

    /// The text of a file in the newest commit.
    pub async fn show(&self, path: &str) -> anyhow::Result<String> {
        git(&self.folder, ["show", &format!("{BRANCH}:{path}")]).await
    }
}

/// Runs `git` in a folder, without the machine's or the user's own settings, and gives what it printed.
async fn git<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", directory)
        .args(args);
    printed(&mut command, "run git").await
}

/// Every file below a folder, by its path from there: no more than a template may have.
pub fn files_of(top: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    let mut folders = vec![top.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let path = entry.with_context(|| format!("read {}", folder.display()))?.path();
            if path.is_dir() {
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
