//! Records what the API server sent, what was asked of Argo CD and what was reported, case by case.
//!
//! takes: a folder, and which applications belong to which case - gives: [`Recorder::url`], to be asked in Argo CD's
//! place, and at the end folders that [`loadtest_sim::recordings::load_dir`] reads
//! calls: Argo CD for whoever asks, and as observer `managed-resources` and `resource-tree` after each watch event;
//! the witness's watch of Applications - fails: 502 for a call that Argo CD does not answer; [`Recorder::finish`]
//! tells what could not be written
//!
//! What must not stand in a recording (tokens, folders of this machine) is replaced in every text.

mod lines;
mod observe;
mod proxy;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use loadtest_sim::recordings::CaseMeta;

use crate::oracle::Witness;
use loadtest_sim::platform::PlatformSim;
use loadtest_sim::{Listen, server::Server};

/// Lines that may wait to be written.
const WAITING: usize = 1_024;
/// The largest answer that is recorded, in bytes.
const ANSWER: usize = 64 << 20;

/// What is recorded, and where.
#[derive(Clone)]
pub struct Config {
    /// The folder that gets one folder a case.
    pub directory: PathBuf,
    /// The applications of each case.
    pub cases: BTreeMap<String, Vec<String>>,
    /// The address of Argo CD.
    pub argocd: String,
    /// A token there that may read every application.
    pub token: String,
    /// The namespace of the applications.
    pub namespace: String,
    /// Texts that must not be recorded, and what stands in their place.
    pub hidden: Vec<(String, String)>,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// A running recorder.
#[derive(Debug)]
pub struct Recorder {
    config: Config,
    meta: CaseMeta,
    server: Server,
    asker: Asker,
    observer: JoinHandle<()>,
    seen: watch::Receiver<u64>,
    writer: JoinHandle<anyhow::Result<HashMap<String, CaseMeta>>>,
    stop: CancellationToken,
}

/// One thing that happened.
#[derive(Debug)]
enum Line {
    /// The API server sent it.
    Watch { application: String, t: f64, event: Bytes },
    /// The settings of Argo CD, when an application came.
    Settings { application: String, meta: CaseMeta },
    /// It was asked of Argo CD.
    Call { application: String, by: &'static str, t: f64, ms: f64, path: String, status: u16, body: Bytes },
}

/// Asks Argo CD, and notes what it answers.
#[derive(Debug, Clone)]
struct Asker {
    client: reqwest::Client,
    argocd: Arc<str>,
    token: Arc<str>,
    namespace: Arc<str>,
    lines: mpsc::Sender<Line>,
}

impl Recorder {
    /// Starts to record; what changes after this has returned is in the recording. Reports are written by `platform` from now on.
    pub async fn start(config: Config, platform: &PlatformSim, witness: &Witness) -> anyhow::Result<Self> {
        let (lines, waiting) = mpsc::channel(WAITING);
        let asker = Asker {
            client: client()?,
            argocd: config.argocd.trim_end_matches('/').into(),
            token: config.token.as_str().into(),
            namespace: config.namespace.as_str().into(),
            lines,
        };
        let meta = asker.meta().await?;
        let files = lines::Files::new(&config).await?;
        platform.write_to(&reports(&config.directory)).await?;
        let server = Server::start(proxy::router(asker.clone()), Listen::default()).await?;
        let stop = CancellationToken::new();
        let (counts, seen) = watch::channel(0);
        let mut watched = witness.changes();
        let mut changes = observe::Changes::new(asker.clone(), counts);
        // What is there already comes first.
        while let Ok(change) = watched.try_recv() {
            changes.take(change).await;
        }
        let observer = tokio::spawn(observe::observe(watched, changes, stop.clone()));
        let writer = tokio::spawn(files.write(waiting));
        Ok(Self { config, meta, server, asker, observer, seen, writer, stop })
    }

    /// Where Argo CD is to be asked, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How many watch events were recorded so far, and when there are more.
    #[must_use]
    pub fn seen(&self) -> watch::Receiver<u64> {
        self.seen.clone()
    }

    /// Asks once more about applications whose state is final, so that the last answers of their recording are.
    pub async fn settle(&self, applications: &[String]) {
        for application in applications {
            self.asker.look(application).await;
        }
    }

    /// Ends the recording and writes what is left; gives the folders that were written.
    pub async fn finish(self, platform: &PlatformSim) -> anyhow::Result<Vec<PathBuf>> {
        let Self { config, meta, server, asker, observer, writer, stop, .. } = self;
        stop.cancel();
        server.down().await;
        observer.await.context("end the observer")?;
        // The writer ends when nobody can send to it any more.
        drop((asker, server));
        let metas = writer.await.context("end the writer")??;
        platform.close_file().await?;
        let folders = tokio::task::spawn_blocking(move || lines::reports(&config, &meta, &metas));
        folders.await.context("write the reports")?
    }
}

/// Where reports stand until they are sorted by case.
fn reports(directory: &Path) -> PathBuf {
    directory.join("reports.part")
}

/// Which case an application belongs to.
fn owners(cases: &BTreeMap<String, Vec<String>>) -> HashMap<String, String> {
    let of = |(case, applications): (&String, &Vec<String>)| {
        applications.iter().map(|application| (application.clone(), case.clone())).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of).collect()
}

fn client() -> anyhow::Result<reqwest::Client> {
    // Another part of this program was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let none: [reqwest::Certificate; 0] = [];
    reqwest::Client::builder()
        .tls_certs_only(none)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .build()
        .context("make a client")
}

/// Seconds since 1970.
fn now() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1_000.0
}
