//! A repository that is made by `git fast-import`, and git's own answers about it.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use loadtest_sim::git_server::git;

/// Seconds since 1970 at which its history begins.
const BEGAN: usize = 1_700_000_000;
const MEGABYTE: usize = 1 << 20;

/// A bare repository: the commit `start` makes all applications, and each one after it, up to `main`, changes one.
pub(super) struct History {
    directory: PathBuf,
    applications: usize,
    /// The commits after `start`, the oldest first.
    commits: Vec<String>,
}

impl History {
    /// Makes it in a folder.
    pub(super) fn make(
        folder: &Path,
        applications: usize,
        commits: usize,
        megabytes: usize,
    ) -> anyhow::Result<Self> {
        let directory = folder.join("mono.git");
        std::fs::create_dir(&directory).context("make the repository's directory")?;
        git(&directory, &["init", "-q", "--bare", "."])?;
        let mut child = Command::new("git")
            // What hardly shrinks is not compressed, and nothing is compared with the megabytes.
            .args(["-c", "core.compression=0", "-c", "core.bigFileThreshold=512k", "fast-import", "--quiet"])
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .spawn()
            .context("start git fast-import")?;
        let stream = child.stdin.take().context("write to git fast-import")?;
        let mut history = Self { directory, applications, commits: Vec::new() };
        let written = history.write(BufWriter::new(stream), commits, megabytes);
        ensure!(child.wait().context("wait for git fast-import")?.success(), "git fast-import failed");
        written.context("write to git fast-import")?;
        let list = git(&history.directory, &["rev-list", "--reverse", "start..main"])?;
        history.commits = list.lines().map(str::to_owned).collect();
        ensure!(
            history.commits.len() == commits,
            "{} commits were made, not {commits}",
            history.commits.len()
        );
        Ok(history)
    }

    fn write(&self, mut to: impl Write, commits: usize, megabytes: usize) -> std::io::Result<()> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut noise = vec![0; MEGABYTE];
        for number in 0..=commits {
            let branch = if number == 0 { "start" } else { "main" };
            let time = BEGAN + number;
            write!(to, "commit refs/heads/{branch}\ncommitter A <a@example.com> {time} +0000\ndata 1\nx")?;
            if number == 0 {
                for file in 0..megabytes {
                    random.fill(&mut noise);
                    write!(to, "\nM 100644 inline media/{file}.bin\ndata {MEGABYTE}\n")?;
                    to.write_all(&noise)?;
                }
            }
            if number == 1 {
                write!(to, "\nfrom refs/heads/start")?;
            }
            let all = match number {
                0 => 0..self.applications,
                number => self.changed(number)..self.changed(number) + 1,
            };
            for application in all {
                let (path, content) = (Self::path(application), format!("value: {number}\n"));
                write!(to, "\nM 100644 inline {path}/values.yaml\ndata {}\n{content}", content.len())?;
            }
            writeln!(to)?;
        }
        to.flush()
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of an application.
    pub(super) fn path(application: usize) -> String {
        format!("apps/a{application}")
    }

    /// The application that the commit of a number after `start` changes.
    pub(super) fn changed(&self, number: usize) -> usize {
        number * 7 % self.applications
    }

    /// The commits after `start` with their numbers.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (usize, &str)> {
        self.commits.iter().enumerate().map(|(at, id)| (at + 1, id.as_str())).rev()
    }

    /// Bytes of its packs.
    pub(super) fn size(&self) -> anyhow::Result<u64> {
        let packs = std::fs::read_dir(self.directory.join("objects/pack")).context("look at the packs")?;
        let size = |entry: std::io::Result<std::fs::DirEntry>| anyhow::Ok(entry?.metadata()?.len());
        packs.map(size).sum()
    }

    /// The way of a process of git for each application and commit: how long one takes, of so many that were measured, and how
    /// many there are until each application's newest change is found.
    pub(super) fn one_by_one(&self, sample: usize) -> anyhow::Result<(Duration, usize)> {
        let newest: Vec<(usize, &str)> = self.newest_first().collect();
        let mut processes = 0;
        for application in 0..self.applications {
            let place = newest.iter().position(|(number, _)| self.changed(*number) == application);
            // The list of commits, and one look at each.
            processes += 1 + place.map_or(newest.len(), |place| place + 1);
        }
        let looked: Vec<&str> = newest.iter().take(sample).map(|(_, id)| *id).collect();
        let begun = Instant::now();
        for id in &looked {
            git(&self.directory, &["diff-tree", "--no-commit-id", "--name-only", "-r", id])?;
        }
        Ok((begun.elapsed().div_f64(looked.len().max(1) as f64), processes))
    }
}
