//! A bare repository, made of trees that no working copy could hold: the real git writes them, from what it is fed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use loadtest_sim::command::fed;
use loadtest_sim::git_server::git_command;

/// Where its history begins; each commit has the same time, so that each run makes the same repository.
const TIME: &str = "1700000000 +0000";

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Submodule,
}

impl Kind {
    fn mode(self) -> &'static str {
        match self {
            Self::File => "100644 blob",
            Self::Directory => "040000 tree",
            Self::Link => "120000 blob",
            Self::Submodule => "160000 commit",
        }
    }
}

/// An entry of a tree: what it is, its name, and the id of what stands there.
pub(super) type Entry<'a> = (Kind, &'a str, &'a str);

/// A repository that is being made.
pub(super) struct Maker {
    directory: PathBuf,
}

impl Maker {
    /// An empty one, `NAME.git` in a folder.
    pub(super) fn new(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let directory = folder.join(format!("{name}.git"));
        std::fs::create_dir(&directory).context("make the directory of a repository")?;
        let made = Self { directory };
        made.git(&["init", "-q", "--bare", "-b", "main", "."], b"")?;
        // Newer ones refuse to serve what is deeper than 2,048 levels.
        made.git(&["config", "core.maxTreeDepth", "100000"], b"")?;
        Ok(made)
    }

    pub(super) fn file(&self, content: &[u8]) -> anyhow::Result<String> {
        self.git(&["hash-object", "-w", "--stdin"], content)
    }

    /// A file of so many zeros, which are nowhere written down one by one.
    pub(super) fn zeros(&self, bytes: u64) -> anyhow::Result<String> {
        let path = self.directory.join("zeros");
        File::create(&path).and_then(|file| file.set_len(bytes)).context("make a large file")?;
        // A file of this size is not read into memory, and what is written is a pack.
        let made = self.git(&["-c", "core.bigFileThreshold=1m", "hash-object", "-w", "zeros"], b"");
        std::fs::remove_file(&path).context("remove a large file")?;
        made
    }

    pub(super) fn tree(&self, entries: &[Entry<'_>]) -> anyhow::Result<String> {
        let mut text = Vec::new();
        for (kind, name, id) in entries {
            write!(text, "{} {id}\t{name}\0", kind.mode()).context("write a tree")?;
        }
        self.git(&["mktree", "-z", "--missing"], &text)
    }

    /// A tree in a directory in a directory, and so on, so many times.
    pub(super) fn nested(&self, inner: String, levels: usize) -> anyhow::Result<String> {
        let mut child = command(&self.directory, &["mktree", "--batch", "--missing"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start git mktree")?;
        let mut to = child.stdin.take().context("write to git mktree")?;
        let mut from = BufReader::new(child.stdout.take().context("read of git mktree")?);
        let mut at = inner;
        for _ in 0..levels {
            write!(to, "{} {at}\td\n\n", Kind::Directory.mode())
                .and_then(|()| to.flush())
                .context("write to git mktree")?;
            let mut line = String::new();
            from.read_line(&mut line).context("read of git mktree")?;
            line.trim().clone_into(&mut at);
        }
        drop(to);
        ensure!(child.wait().context("wait for git mktree")?.success(), "git mktree failed");
        Ok(at)
    }

    /// Puts a commit of a tree on the branch `main`.
    pub(super) fn commit(&self, tree: &str) -> anyhow::Result<String> {
        let before = self.git(&["rev-parse", "-q", "--verify", "refs/heads/main"], b"").ok();
        let parent: Vec<&str> = before.iter().flat_map(|before| ["-p", before.as_str()]).collect();
        let id = self.git(&[&["commit-tree", tree, "-m", "Change it"][..], &parent].concat(), b"")?;
        self.git(&["update-ref", "refs/heads/main", &id], b"")?;
        Ok(id)
    }

    /// Runs git with this on its standard input; gives what it prints.
    fn git(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<String> {
        fed(&mut command(&self.directory, arguments), input)
    }
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = git_command(directory, arguments);
    command.envs([("GIT_AUTHOR_DATE", TIME), ("GIT_COMMITTER_DATE", TIME)]);
    command
}
