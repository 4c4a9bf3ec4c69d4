//! The source server as a process, in a folder where all stands that it may find: its home, its working directory, its folder of
//! temporary files, its clones, and a file that it may not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use loadtest_sim::local_client;
use loadtest_sim::process::{Process, Start};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::recipes::BAIT;
use crate::watch::{LOOK, anonymous, most_while};

/// What stands in the file that may not be read.
pub(super) const SECRET: &str = "stands-outside-of-every-repository";
const TOKEN: &str = "callers-token";
/// It serves, answers and ends within this time, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);
/// A folder with a home and all else.
pub(super) struct Place {
    folder: TempDir,
}

/// What stands below a folder, but for the clones: of each path its length and when it was written last.
pub(super) type Listing = BTreeMap<PathBuf, (u64, SystemTime)>;

impl Place {
    pub(super) fn make() -> anyhow::Result<Self> {
        let folder = TempDir::new().context("make a folder")?;
        for name in ["home", "tmp", "work", "clones", "beside"] {
            std::fs::create_dir(folder.path().join(name)).context("make a folder")?;
        }
        let made = Self { folder };
        std::fs::write(made.secret(), SECRET).context("write a file")?;
        std::fs::write(made.at("beside/token"), TOKEN).context("write a file")?;
        Ok(made)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that may not be read.
    pub(super) fn secret(&self) -> PathBuf {
        self.at("beside/secret.yaml")
    }

    /// All that stands in it, but for what is below the directory of clones.
    pub(super) fn listing(&self) -> anyhow::Result<Listing> {
        listed(self.folder.path(), &self.at("clones"))
    }

    /// What is in the directory of clones that no clone holds: what a repository's tree names, written out.
    pub(super) fn written_out(&self) -> anyhow::Result<Vec<String>> {
        let all = listed(&self.at("clones"), Path::new(""))?;
        let names = all.keys().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy());
        Ok(names.filter(|name| BAIT.contains(&&**name)).map(std::borrow::Cow::into_owned).collect())
    }
}

fn listed(folder: &Path, without: &Path) -> anyhow::Result<Listing> {
    let (mut all, mut folders) = (Listing::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).context("look at a folder")? {
            let path = entry.context("look at a folder")?.path();
            if path == without {
                continue;
            }
            let about = std::fs::symlink_metadata(&path).context("look at a file")?;
            let written = about.modified().context("look at a file")?;
            if about.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path, (about.len(), written));
        }
    }
    Ok(all)
}

/// What came of a question.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: String,
}

/// A running source server.
pub(super) struct Subject {
    process: Process,
    url: String,
    client: reqwest::Client,
}

impl Subject {
    /// Starts one that may fetch from a server.
    pub(super) async fn start(program: &Path, place: &Place, server: &str) -> anyhow::Result<Self> {
        let seconds = format!("{}s", PATIENCE.as_secs());
        let settings = json!({"sourceServer": {
            "listen": "127.0.0.1:0", "callers": {"tokenFile": place.at("beside/token")}, "timeout": seconds,
            "git": {"allowed": [server], "repositories": {"directory": place.at("clones"), "idleTimeout": seconds}},
        }});
        let config = place.at("beside/config.yaml");
        // JSON is YAML.
        std::fs::write(&config, settings.to_string()).context("write the settings")?;
        let text = |name: &str| place.at(name).display().to_string();
        let mut process = Process::start(&Start {
            program: program.canonicalize().context("find the program")?,
            args: vec!["source-server".into(), "--config".into(), config.into()],
            env: vec![("HOME".to_owned(), text("home")), ("TMPDIR".to_owned(), text("tmp"))],
            directory: place.at("work"),
        })?;
        let address = process.address(PATIENCE).await.context("start the source server")?;
        let client = local_client().timeout(PATIENCE).build();
        Ok(Self { process, url: format!("http://{address}"), client: client.context("make a client")? })
    }

    /// Asks, and gives what is answered; an error when nothing is.
    pub(super) async fn ask(&self, path: &str, body: Option<&Value>) -> anyhow::Result<Answered> {
        let url = format!("{}{path}", self.url);
        let request = match body {
            Some(body) => self.client.post(url).json(body),
            None => self.client.get(url),
        };
        let answer = request.bearer_auth(TOKEN).send().await.context("ask the source server")?;
        let status = answer.status().as_u16();
        let body = answer.text().await.context("read what the source server answers")?;
        Ok(Answered { status, body })
    }

    /// Does something, and gives the most anonymous memory that the process was seen with meanwhile.
    pub(super) async fn watched<T>(&self, work: impl Future<Output = T>) -> anyhow::Result<(T, u64)> {
        let id = self.process.id().context("find the source server")?;
        let (done, most) = most_while(LOOK, || anonymous(id), work).await;
        let [most] = most.context("look at the memory of the source server")?;
        Ok((done, most))
    }

    /// The most memory that it ever had, files that it maps included.
    pub(super) fn most_resident(&self) -> Option<u64> {
        self.process.most_resident()
    }

    /// Ends it, which must be an end in peace.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let lines = self.process.lines().clone();
        let ended = self.process.stop(PATIENCE).await.context("stop the source server")?;
        let panics = lines.panics();
        ensure!(ended.success() && panics.is_empty(), "the source server ended with {ended}: {panics:?}");
        Ok(())
    }
}
