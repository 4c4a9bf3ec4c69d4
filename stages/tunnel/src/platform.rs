//! Asks the platform which runtime a token is of.
//!
//! takes: a token - gives: whether it is that of the runtime which the tunnel is named for - calls: `POST
//! {platform}/2.0/api/graphql`, with that token - fails: with [`Verdict::Unknown`], which opens nothing, when the platform does
//! not answer.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::StatusCode;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use stages_client::{BuildError, Client, Config, Method, Target, TargetError, Token, header};
use tokio::sync::Semaphore;

use crate::lock::lock;
use crate::{Credentials, Name, Verdict};

/// The query that the platform is sent.
const QUERY: &str = r#"{"query":"{ me { id runtimeName activeAccount { id } } }"}"#;
/// How many bytes an answer may have.
const MAX_ANSWER: usize = 64 << 10;
/// How long an answer may take, as whoever opens a tunnel waits for it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer is used: together with the time until a tunnel's token is checked again, far less than a minute.
const CACHE_TIME: Duration = Duration::from_secs(5);
/// How many queries may be under way at a time for new tunnels, and as many for open ones: whoever guesses tokens is no burden to
/// the platform, and does not delay that a revoked token is noticed.
const MAX_QUERIES: usize = 16;
/// How many answers are remembered.
const CACHE_SIZE: usize = 16_384;
/// What was tried, as errors say it.
const ACTION: &str = "ask whose token it is";

/// The platform says which runtime a token is of; that alone has the tunnel `<account>-<runtime>`. Accounts count by their id:
/// what one is called its owner chooses, and may be the id of another. A runtime whose name no tunnel can have, as there is a
/// dash in it, counts by its id as well.
#[derive(Debug)]
pub struct PlatformCredentials {
    client: Client,
    asking: Semaphore,
    rechecking: Semaphore,
    known: Mutex<HashMap<[u8; 32], CachedOwner>>,
}

/// Why the platform cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// Its address is none.
    #[error("use the address of the platform")]
    Target(#[source] TargetError),
    /// Its authorities cannot be used.
    #[error("make calls to the platform")]
    Build(#[source] BuildError),
}

/// The runtime that a token is of, and when the platform said so; `None`: of none that may have a tunnel.
#[derive(Debug, Clone)]
struct CachedOwner {
    of: Option<Runtime>,
    since: Instant,
}

/// The runtime that the platform knows a token to be of.
#[derive(Debug, Clone)]
struct Runtime {
    account: String,
    name: String,
    id: String,
}

impl Runtime {
    /// The tunnel that it has.
    fn tunnel(&self) -> Option<Name> {
        let of = |runtime: &str| Name::read(&format!("{}-{runtime}", self.account)).ok();
        of(&self.name).or_else(|| of(&self.id))
    }
}

#[derive(Deserialize)]
struct MeResponse {
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    me: Option<Me>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Me {
    #[serde(default)]
    id: String,
    runtime_name: Option<String>,
    active_account: Account,
}

#[derive(Deserialize)]
struct Account {
    id: String,
}

impl PlatformCredentials {
    /// Asks the platform at `address`; `trust` says which certificates of it are taken.
    ///
    /// # Errors
    /// [`PlatformError`].
    pub async fn new(address: &str, trust: Config) -> Result<Self, PlatformError> {
        let target = Target::new(address, "").map_err(PlatformError::Target)?;
        let config = Config { timeout: ANSWER_TIMEOUT.min(trust.timeout), max_body: MAX_ANSWER, ..trust };
        let client = config.build(target).await.map_err(PlatformError::Build)?;
        Ok(Self::asking(client))
    }

    fn asking(client: Client) -> Self {
        let line = || Semaphore::new(MAX_QUERIES);
        Self { client, asking: line(), rechecking: line(), known: Mutex::default() }
    }

    fn known(&self, digest: &[u8; 32]) -> Option<CachedOwner> {
        let known = lock(&self.known);
        known.get(digest).filter(|known| known.since.elapsed() < CACHE_TIME).cloned()
    }

    fn remember(&self, digest: [u8; 32], of: Option<Runtime>, since: Instant) {
        let mut known = lock(&self.known);
        if known.len() >= CACHE_SIZE {
            known.retain(|_, known| known.since.elapsed() < CACHE_TIME);
        }
        if known.len() < CACHE_SIZE {
            known.insert(digest, CachedOwner { of, since });
        }
    }

    /// `Err`: nobody could say.
    async fn ask(&self, token: &SecretString) -> Result<Option<Runtime>, String> {
        let failed = |error: stages_client::HttpError| error.to_string();
        let segments = ["2.0", "api", "graphql"];
        let request = self.client.request(ACTION, Method::POST, &segments).map_err(failed)?;
        let request = request.header(header::CONTENT_TYPE, "application/json").body(QUERY);
        let token = Token::literal(token.expose_secret());
        // A token that no header may hold is nobody's.
        let Ok(request) = self.client.authorize(ACTION, request, &token, "Bearer ").await else {
            return Ok(None);
        };
        let reply = self.client.send(ACTION, request).await.map_err(failed)?;
        if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].iter().any(|no| no.as_u16() == reply.status()) {
            return Ok(None);
        }
        let body = reply.into_body().map_err(failed)?;
        let answer: Option<MeResponse> = serde_json::from_slice(&body).ok();
        let me = answer.and_then(|answer| answer.data?.me).ok_or("the answer is none to the question")?;
        let (account, id) = (me.active_account.id, me.id);
        Ok(me.runtime_name.map(|name| Runtime { account, name, id }))
    }

    /// Asks in its turn of a line, unless the answer is known.
    async fn verdict(&self, name: &Name, token: &SecretString, line: &Semaphore) -> Verdict {
        let digest: [u8; 32] = Sha256::digest(token.expose_secret().as_bytes()).into();
        let mut known = self.known(&digest);
        if known.is_none() {
            // Whoever waited may find that another asked the same meanwhile.
            let Ok(_asking) = line.acquire().await else { return Verdict::Unknown };
            known = self.known(&digest);
            if known.is_none() {
                let since = Instant::now();
                match self.ask(token).await {
                    Ok(of) => {
                        self.remember(digest, of.clone(), since);
                        known = Some(CachedOwner { of, since });
                    }
                    Err(error) => {
                        tracing::warn!(
                            error,
                            "the platform cannot say whose token it is: no tunnel is opened"
                        );
                        return Verdict::Unknown;
                    }
                }
            }
        }
        let own = known.and_then(|known| known.of).and_then(|runtime| runtime.tunnel());
        if own.as_ref() == Some(name) { Verdict::Opens } else { Verdict::Refused }
    }
}

#[async_trait]
impl Credentials for PlatformCredentials {
    async fn check(&self, name: &Name, token: &SecretString) -> Verdict {
        self.verdict(name, token, &self.asking).await
    }

    async fn recheck(&self, name: &Name, token: &SecretString) -> Verdict {
        self.verdict(name, token, &self.rechecking).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_revoked_ends_within_a_minute_by_what_is_set_by_itself() {
        let times = crate::Times::default();
        // It was asked just before, and answers when its time is up; or nobody answers any more.
        for waited in [times.check, times.unchecked] {
            assert!(CACHE_TIME + waited + ANSWER_TIMEOUT < Duration::from_secs(60), "{waited:?}");
        }
    }

    /// Answers every question with `status` and `body`; counts them.
    async fn platform(status: &'static str, body: &'static str) -> (String, Arc<AtomicU64>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(QUERY.as_bytes()) {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let text = String::from_utf8(request).unwrap().to_ascii_lowercase();
                assert!(
                    text.starts_with("post /2.0/api/graphql ")
                        && text.contains("authorization: bearer a-token\r\n")
                );
                count.fetch_add(1, Ordering::SeqCst);
                let answer = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        (address, asked)
    }

    #[tokio::test]
    async fn strangers_who_guess_tokens_keep_no_open_tunnel_waiting() {
        stages_client::install_crypto();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::new(&format!("http://{}", listener.local_addr().unwrap()), "").unwrap();
        let (asked, mut guesses) = tokio::sync::mpsc::channel(MAX_QUERIES);
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(QUERY.as_bytes()) {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let text = String::from_utf8(request).unwrap().to_ascii_lowercase();
                if text.contains("authorization: bearer guess") {
                    // It is never answered.
                    kept.push(stream);
                    asked.send(()).await.unwrap();
                    continue;
                }
                let answer = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let client = Config::new(Duration::from_secs(120), MAX_ANSWER).build(target).await.unwrap();
        let credentials = Arc::new(PlatformCredentials::asking(client));
        let name = Name::read("default-prod").unwrap();
        let guessing: Vec<_> = (0..MAX_QUERIES * 2)
            .map(|number| {
                let (credentials, name) = (credentials.clone(), name.clone());
                let token = format!("guess-{number}").into();
                tokio::spawn(async move { credentials.check(&name, &token).await })
            })
            .collect();
        for _ in 0..MAX_QUERIES {
            guesses.recv().await.unwrap();
        }
        assert_eq!(credentials.recheck(&name, &"revoked".into()).await, Verdict::Refused);
        assert!(guessing.iter().all(|guess| !guess.is_finished()), "it waits for none of them");
    }

    async fn verdicts(status: &'static str, body: &'static str) -> ([Verdict; 3], u64) {
        stages_client::install_crypto();
        let (address, asked) = platform(status, body).await;
        let credentials =
            PlatformCredentials::new(&address, Config::new(Duration::from_secs(120), 1)).await.unwrap();
        let check = async |name| credentials.check(&Name::read(name).unwrap(), &"a-token".into()).await;
        let all = [check("default-prod").await, check("default-other").await, check("other-prod").await];
        (all, asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_token_opens_the_tunnel_of_its_own_runtime_and_account() {
        use Verdict::{Opens, Refused};
        let me = r#"{"data":{"me":{"id":"r1","runtimeName":"prod","activeAccount":{"id":"default"}}}}"#;
        let (all, asked) = verdicts("200 OK", me).await;
        assert_eq!(all, [Opens, Refused, Refused]);
        assert!((1..=3).contains(&asked), "an answer counts for a while");
    }

    #[tokio::test]
    async fn an_account_that_is_called_like_the_id_of_another_opens_nothing_of_it() {
        let me = r#"{"data":{"me":{"id":"prod","runtimeName":"prod","activeAccount":{"id":"mine","name":"default"}}}}"#;
        assert_eq!(verdicts("200 OK", me).await.0, [Verdict::Refused; 3]);
    }

    #[tokio::test]
    async fn a_runtime_whose_name_has_a_dash_opens_the_tunnel_of_its_id_and_others_none_by_theirs() {
        use Verdict::{Opens, Refused};
        let dashed =
            r#"{"data":{"me":{"id":"prod","runtimeName":"team-prod","activeAccount":{"id":"default"}}}}"#;
        assert_eq!(verdicts("200 OK", dashed).await.0, [Opens, Refused, Refused]);
        let plain = r#"{"data":{"me":{"id":"prod","runtimeName":"other","activeAccount":{"id":"default"}}}}"#;
        assert_eq!(verdicts("200 OK", plain).await.0, [Refused, Opens, Refused]);
        let nameless = r#"{"data":{"me":{"runtimeName":"team-prod","activeAccount":{"id":"default"}}}}"#;
        assert_eq!(verdicts("200 OK", nameless).await.0, [Refused; 3]);
    }

    #[tokio::test]
    async fn a_token_of_no_runtime_opens_nothing() {
        let person = r#"{"data":{"me":{"id":"ada","runtimeName":null,"activeAccount":{"id":"default"}}}}"#;
        for (status, body) in [("200 OK", person), ("401 Unauthorized", "{}"), ("403 Forbidden", "{}")] {
            assert_eq!(verdicts(status, body).await.0, [Verdict::Refused; 3], "{status}");
        }
    }

    #[tokio::test]
    async fn a_platform_that_cannot_say_opens_nothing_and_nothing_of_that_is_remembered() {
        for (status, body) in [
            ("503 Service Unavailable", ""),
            ("429 Too Many Requests", ""),
            ("200 OK", "{}"),
            ("200 OK", "<html>"),
        ] {
            assert_eq!(verdicts(status, body).await, ([Verdict::Unknown; 3], 3), "{status}");
        }
    }
}
