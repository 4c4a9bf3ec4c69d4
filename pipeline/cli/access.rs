//! `gitops-runtime check access`: which hop between a visitor and a runtime fails, for people and for CI.
//!
//! takes: a namespace, an address or both - gives: each hop from inside out and from outside in, and what to do
//! calls: the API server of the kubeconfig, to read; the runtime's address, as a visitor - fails: when standard output cannot
//! be written, or a file that is named cannot be read

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::Context as _;
use futures::{SinkExt as _, StreamExt as _};
use pipeline_doctor::{
    Cluster, Network, PeerResponse, Proxies, Request, Unreached, Upgraded, Visitor, Wanted, Way,
};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use tokio::net::lookup_host;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::values::{KubeconfigCluster, Peers, PresentedChain, client, described, unreached};
use super::{AccessShape, CheckAccess, Tier};
use super::{print, single_thread};

/// The time one question may take.
const WITHIN: Duration = Duration::from_secs(10);
const SAID: &str = "gitops-runtime check access";

/// Looks, and says what it found: 0 when no hop fails, 1 when one does or nobody could look at any.
pub(crate) fn run(given: &CheckAccess) -> anyhow::Result<ExitCode> {
    let skips = |tier: Tier| given.skip.contains(&tier);
    let asked = match given.namespace.is_some() && !skips(Tier::Cluster) {
        true => KubeconfigCluster::find(given.kubeconfig.clone(), given.context.clone())?,
        false => None,
    };
    let why = match (skips(Tier::Cluster), given.namespace.is_some()) {
        (true, _) => "skipped by --skip cluster",
        (false, false) => "no namespace was given",
        (false, true) => "there is no kubeconfig",
    };
    let authorities = match &given.ca_file {
        Some(file) => {
            Some(std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?)
        }
        None => None,
    };
    let way = Way { authorities, insecure: given.insecure, proxies: Proxies::default() };
    let here = LocalVisitor::new(way)?;
    let url = given.url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let found = pipeline_doctor::access(&Wanted {
        namespace: given.namespace.as_deref(),
        service: &given.service,
        url: url.as_deref(),
        cluster: asked.as_ref().map(|asked| asked as &dyn Cluster).ok_or(why),
        visitor: match skips(Tier::Network) {
            true => Err("skipped by --skip network"),
            false => Ok(&here),
        },
    });
    print(&match given.format {
        AccessShape::Table => found.table(),
        AccessShape::Json => found.json(),
    })?;
    let is_well = found.failing().is_none() && !found.is_unmeasured();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the requests of a visitor from this machine.
struct LocalVisitor {
    runtime: Runtime,
    peers: Peers,
    way: Way,
}

impl LocalVisitor {
    fn new(way: Way) -> anyhow::Result<Self> {
        Ok(Self { runtime: single_thread()?, peers: Peers::new()?, way })
    }

    fn request(&self, url: &str) -> Request<'_> {
        Request { method: "GET", url: url.to_owned(), headers: Vec::new(), body: None, way: &self.way }
    }

    /// Runs `what` with a new client, within [`WITHIN`].
    fn with<T>(
        &self,
        url: &str,
        what: impl AsyncFnOnce(reqwest::Client) -> Result<T, reqwest::Error>,
    ) -> Result<T, Unreached> {
        let shown = PresentedChain::default();
        let client = client(&self.request(url), &shown)?;
        match self.runtime.block_on(async { timeout(WITHIN, what(client)).await }) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                let shown = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
                Err(match shown.why.is_some() {
                    true => Unreached::Certificate(described(&shown)),
                    false => unreached(&error),
                })
            }
            Err(_) => Err(Unreached::Silent),
        }
    }
}

impl Visitor for LocalVisitor {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unreached> {
        let found = self.runtime.block_on(async { timeout(WITHIN, lookup_host((host, 0))).await });
        let mut addresses: Vec<IpAddr> = found
            .map_err(|_| Unreached::Silent)?
            .map_err(|_| Unreached::Unresolved)?
            .map(|it| it.ip())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    fn get(&self, url: &str) -> Result<PeerResponse, Unreached> {
        self.peers.ask(&self.request(url))
    }

    fn socket(&self, url: &str) -> Result<Upgraded, Unreached> {
        self.with(url, async |client| {
            let asking = client
                .get(url)
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, "websocket")
                .header(SEC_WEBSOCKET_VERSION, "13")
                .header(SEC_WEBSOCKET_KEY, generate_key());
            let answer = asking.send().await?;
            if answer.status() != reqwest::StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Upgraded::Refused(answer.status().as_u16()));
            }
            let opened = answer.upgrade().await?;
            let mut socket = WebSocketStream::from_raw_socket(opened, Role::Client, None).await;
            let said = Message::text(SAID);
            let echoed = socket.send(said.clone()).await.is_ok()
                && matches!(timeout(WITHIN / 2, socket.next()).await, Ok(Some(Ok(back))) if back == said);
            Ok(if echoed { Upgraded::Echoed } else { Upgraded::Silent })
        })
    }

    fn first(&self, url: &str) -> Result<Option<Duration>, Unreached> {
        self.with(url, async |client| {
            let asked = Instant::now();
            let mut answer = client.get(url).header("accept", "text/event-stream").send().await?;
            Ok(answer.chunk().await?.map(|_| asked.elapsed()))
        })
    }

    fn now(&self) -> i64 {
        self.peers.now()
    }
}
