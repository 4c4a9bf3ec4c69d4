//! A commit, written to a bare repository in one run of `git fast-import`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;

use super::{BRANCH, command, git};

/// What is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commit {
    /// The author's (and committer's) name.
    #[serde(default = "author")]
    pub author: String,
    /// Their address, without brackets.
    #[serde(default = "email")]
    pub email: String,
    /// The message.
    pub message: String,
    /// New texts by path; no text deletes the file.
    pub files: BTreeMap<String, Option<String>>,
    /// When, in whole seconds; now, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<Timestamp>,
}

fn author() -> String {
    "Ada Lovelace".to_owned()
}

fn email() -> String {
    "ada@example.com".to_owned()
}

/// Writes the commit and gives its id. The branch moves only after everything stands.
pub(super) async fn write(bare: &Path, commit: &Commit) -> anyhow::Result<String> {
    let ours = git(bare, ["ls-tree", "-r", "-z", "--name-only", "--full-tree", BRANCH]).await;
    // Without a branch there is no tree: the first commit.
    let there = ours.ok();
    for (path, text) in &commit.files {
        let found = there.as_ref().is_some_and(|all| all.split('\0').any(|one| one == path));
        if text.is_none() && !found {
            bail!("delete {path} in a commit: it is not there");
        }
    }
    let stream = stream(commit, there.is_some(), commit.date.unwrap_or_else(Timestamp::now))?;
    let mut child = command(bare)
        .args(["fast-import", "--quiet", "--done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("run git fast-import")?;
    let mut input = child.stdin.take().context("write to git fast-import")?;
    let (written, done) = tokio::join!(
        async move {
            input.write_all(&stream).await?;
            input.shutdown().await
        },
        child.wait_with_output(),
    );
    let done = done.context("run git fast-import")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("write a commit: {}", said.lines().next().unwrap_or("git fast-import failed"));
    }
    written.context("write to git fast-import")?;
    git(bare, ["rev-parse", "--verify", BRANCH]).await.map(|id| id.trim().to_owned())
}

/// The commit in the language of `git fast-import`.
fn stream(commit: &Commit, onto: bool, date: Timestamp) -> anyhow::Result<Vec<u8>> {
    for (what, text) in [("author", &commit.author), ("email", &commit.email)] {
        if text.is_empty() || text.contains(['<', '>', '\n', '\0']) {
            bail!("write a commit: the {what} {text:?} cannot stand in one");
        }
    }
    let seconds = date.as_second();
    let mut out = format!("commit refs/heads/{BRANCH}\n").into_bytes();
    for who in ["author", "committer"] {
        out.extend(format!("{who} {} <{}> {seconds} +0000\n", commit.author, commit.email).bytes());
    }
    data(&mut out, &commit.message);
    if onto {
        out.extend(format!("from refs/heads/{BRANCH}^0\n").bytes());
    }
    for (path, text) in &commit.files {
        check(path)?;
        match text {
            Some(text) => {
                out.extend(format!("M 100644 inline {path}\n").bytes());
                data(&mut out, text);
            }
            None => out.extend(format!("D {path}\n").bytes()),
        }
    }
    out.extend(b"done\n");
    Ok(out)
}

fn data(out: &mut Vec<u8>, text: &str) {
    out.extend(format!("data {}\n", text.len()).bytes());
    out.extend(text.bytes());
    out.push(b'\n');
}

fn check(path: &str) -> anyhow::Result<()> {
    let parts = || path.split('/');
    if path.starts_with('"')
        || path.contains(['\n', '\0'])
        || parts().any(|part| matches!(part, "" | "." | ".." | ".git"))
    {
        bail!("write a commit: the path {path:?} cannot stand in one");
    }
    Ok(())
}
