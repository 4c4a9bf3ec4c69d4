//! The connection to a running reporter: found by its settings, or where the command line says.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use pipeline_core::Key;
use pipeline_http::admin::wire::{Counted, Failed, NO_NAMESPACE, OwnNamespace};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stages_client::Token;
use tokio::net::UnixStream;

use super::{ReporterArgs, RouteArgs, complain};
use crate::config::{self, Config, Variables};

/// Who does not take a connection in this time does not answer.
const CONNECT: Duration = Duration::from_secs(5);
/// After so long without an answer it is said that one is waited for.
const SILENCE: Duration = Duration::from_secs(3);
/// The reporter gives up on an answer earlier.
const ANSWER: Duration = Duration::from_secs(70);
/// Bytes of an answer, which are many parked applications.
const ANSWER_BYTES: usize = 256 << 20;

/// A reporter that can be asked.
pub(super) struct Reporter {
    client: reqwest::Client,
    base: Url,
    token: Option<Token>,
    /// Where it is, for messages.
    at: String,
    /// The route that is asked about, where one is named.
    route: Option<String>,
}

/// An answer as it came: JSON.
pub(super) struct ResponseBody(Vec<u8>);

impl ResponseBody {
    /// The answer as text that ends its line.
    pub(super) fn text(&self) -> String {
        format!("{}\n", String::from_utf8_lossy(&self.0).trim_end())
    }

    /// What it says.
    pub(super) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.0)
            .context("read the reporter's answer: is it of the same version as this command?")
    }
}

impl Reporter {
    /// Finds the reporter of applications: where the command line says; else by the settings that it was started with.
    pub(super) async fn find(place: &ReporterArgs, variables: &Variables) -> anyhow::Result<Self> {
        Self::find_either(place, false, variables).await
    }

    /// Finds the reporter of what is named: a name with a kind is one of the reporter of other objects, which has a socket of
    /// its own, and a route is one of that, too, whatever it is called. Where only one of the two runs, it is asked.
    pub(super) async fn find_of(
        names: &[String],
        on: &RouteArgs,
        variables: &Variables,
    ) -> anyhow::Result<Self> {
        let with_kind = names.iter().any(|name| name.matches('/').count() > 1);
        let found = Self::find_either(&on.place, with_kind || on.route.is_some(), variables).await?;
        Ok(Self { route: on.route.clone(), ..found })
    }

    /// The reporter of applications, or that `of_resources`; the other one where it alone runs.
    async fn find_either(
        place: &ReporterArgs,
        of_resources: bool,
        variables: &Variables,
    ) -> anyhow::Result<Self> {
        let settings = Config::load_given(&place.given(), variables);
        let told = place.socket.is_some() || place.address.is_some();
        let config = match settings {
            Ok(config) => Some(config),
            // What else is wrong does not matter to who is told where to ask.
            Err(_) if told => None,
            Err(problems) => return Err(problems.into()),
        };
        if let Some(path) = &place.socket {
            return Self::on_socket(path);
        }
        let file = place.token_file.as_ref().map(Token::file);
        if let Some(address) = &place.address {
            let token = match (file, &config) {
                (Some(token), _) => Some(token),
                (None, Some(config)) => of_settings(config),
                (None, None) => None,
            };
            return Self::on_address(address, token);
        }
        let Some(config) = config else { bail!("there are no settings") };
        let (mut sockets, mut others) =
            (config.state.sockets(), config.state.clone().of_resources().sockets());
        if of_resources {
            std::mem::swap(&mut sockets, &mut others);
        }
        for socket in sockets.iter().chain(&others) {
            if is_answered(socket).await {
                return Self::on_socket(socket);
            }
        }
        match *config.admin.address {
            Some(address) => {
                let token = file.or_else(|| of_settings(&config));
                Self::on_address(&format!("http://{address}"), token)
            }
            None if sockets.is_empty() => {
                bail!(
                    "admin.socket and admin.address are both empty: the reporter of these settings cannot be asked"
                )
            }
            None => Err(nobody(&config::either(&sockets))),
        }
    }

    fn on_socket(path: &Path) -> anyhow::Result<Self> {
        // No name is looked up, and none is needed; nor are certificates.
        let none: [reqwest::Certificate; 0] = [];
        let client =
            client().unix_socket(path).tls_certs_only(none).build().context("make an HTTP client")?;
        let base = Url::parse("http://localhost/").context("make an address")?;
        Ok(Self { client, base, token: None, at: path.display().to_string(), route: None })
    }

    fn on_address(address: &str, token: Option<Token>) -> anyhow::Result<Self> {
        let wrong = || anyhow!("'{address}' is no admin address: give one such as http://127.0.0.1:8089");
        let base = match address.contains("://") {
            true => Url::parse(address),
            false => Url::parse(&format!("http://{address}")),
        };
        let base = base.map_err(|_| wrong())?;
        let usable =
            matches!(base.scheme(), "http" | "https") && base.path() == "/" && base.query().is_none();
        if !usable || !base.username().is_empty() || base.password().is_some() {
            return Err(wrong());
        }
        let client = client().build().context("make an HTTP client")?;
        let at = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { client, base, token, at, route: None })
    }

    /// The route that is asked about, where one is named.
    pub(super) fn route(&self) -> Option<&str> {
        self.route.as_deref()
    }

    /// The object that is meant by a name, with or without a namespace and a kind. Which namespace is meant where none is
    /// named, the reporter says: this process need not have its settings.
    pub(super) async fn key(&self, app: &str) -> anyhow::Result<Key> {
        if app.contains('/') {
            return whole_key(app);
        }
        let OwnNamespace { namespace, .. } = self.get(&["namespace"]).await?.read()?;
        Key::new(&namespace, app).with_context(|| format!("read the name '{app}'"))
    }

    /// What it counts.
    pub(super) async fn counts(&self) -> anyhow::Result<Counted> {
        let OwnNamespace { counts, .. } = self.get(&["namespace"]).await?.read()?;
        Ok(counts)
    }

    /// Asks for something.
    pub(super) async fn get(&self, path: &[&str]) -> anyhow::Result<ResponseBody> {
        self.soon(self.request(Method::GET, path)?).await
    }

    /// Asks for something of an object.
    pub(super) async fn get_of(&self, what: &str, key: &Key) -> anyhow::Result<ResponseBody> {
        let (path, kind) = place_of(what, key, &[]);
        self.soon(self.request(Method::GET, &path)?.query(&kind)).await
    }

    /// Asks it to do something with a parked object; `last` is the end of the path.
    pub(super) async fn act_on_parked(&self, method: Method, key: &Key, last: &[&str]) -> anyhow::Result<()> {
        let (path, kind) = place_of("parked", key, last);
        self.answer(self.request(method, &path)?.timeout(ANSWER).query(&kind)).await.map(drop)
    }

    /// Asks for something, with details.
    pub(super) async fn find_out(
        &self,
        path: &[&str],
        asked: &[(&str, String)],
    ) -> anyhow::Result<ResponseBody> {
        self.soon(self.request(Method::GET, path)?.query(asked)).await
    }

    /// Asks it to do something, with details; `longer` is the time that it may take beyond the usual.
    pub(super) async fn post(
        &self,
        path: &[&str],
        body: &impl Serialize,
        longer: Duration,
    ) -> anyhow::Result<ResponseBody> {
        self.answer(self.request(Method::POST, path)?.timeout(ANSWER + longer).json(body)).await
    }

    /// Asks for what has no end.
    pub(super) async fn follow(&self, path: &[&str], asked: &[(&str, String)]) -> anyhow::Result<Response> {
        let request = self.request(Method::GET, path)?.query(asked);
        let response = self.send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        Err(self.refused(status, &read(response).await?))
    }

    fn request(&self, method: Method, path: &[&str]) -> anyhow::Result<RequestBuilder> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            let below = self.route.iter().flat_map(|route| ["routes", route]);
            segments.clear().push("v1").extend(below).extend(path);
        }
        Ok(self.client.request(method, url))
    }

    async fn send(&self, mut request: RequestBuilder) -> anyhow::Result<Response> {
        if let Some(token) = &self.token {
            request = request.header(reqwest::header::AUTHORIZATION, token.header("Bearer ").await?);
        }
        request.send().await.map_err(|error| match error.is_connect() {
            true => nobody(&self.at),
            // Without the address, which is said once.
            false => anyhow!(error.without_url()).context(format!("ask the reporter at {}", self.at)),
        })
    }

    /// The answer to what takes no time: it is said when it does.
    async fn soon(&self, request: RequestBuilder) -> anyhow::Result<ResponseBody> {
        let mut answer = pin!(self.answer(request.timeout(ANSWER)));
        if let Ok(answer) = tokio::time::timeout(SILENCE, &mut answer).await {
            return answer;
        }
        complain(&format!("the reporter at {} has not answered yet: still waiting", self.at));
        answer.await
    }

    async fn answer(&self, request: RequestBuilder) -> anyhow::Result<ResponseBody> {
        let response = self.send(request).await?;
        let status = response.status();
        let body = read(response).await?;
        if status.is_success() { Ok(ResponseBody(body)) } else { Err(self.refused(status, &body)) }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> anyhow::Error {
        let Ok(failed) = serde_json::from_slice::<Failed>(body) else {
            return anyhow!("the reporter at {} answers {}: is it one?", self.at, status.as_u16());
        };
        match status {
            StatusCode::UNAUTHORIZED => anyhow!(
                "the reporter at {} refuses: {}; give --token-file with the token that admin.tokenFile of the reporter \
                 names",
                self.at,
                failed.error
            ),
            _ => anyhow!(said(&failed)),
        }
    }
}

/// The object of a name with its namespace.
pub(super) fn whole_key(app: &str) -> anyhow::Result<Key> {
    Key::parse(app).with_context(|| format!("read the name '{app}'"))
}

/// Path and query of an object.
fn place_of<'a>(what: &'a str, key: &'a Key, last: &[&'a str]) -> (Vec<&'a str>, Vec<(&'a str, &'a str)>) {
    let namespace = if key.namespace().is_empty() { NO_NAMESPACE } else { key.namespace() };
    let path = [&[what, namespace, key.name()], last].concat();
    let kind = (!key.kind().is_empty()).then(|| ("kind", key.kind()));
    (path, kind.into_iter().collect())
}

/// What is wrong, and what may have been meant.
pub(super) fn said(failed: &Failed) -> String {
    match failed.near.as_slice() {
        [] => failed.error.clone(),
        near => format!("{}; did you mean {}?", failed.error, near.join(" or ")),
    }
}

fn nobody(at: &str) -> anyhow::Error {
    anyhow!(
        "no reporter answers at {at}: is it running? give --socket or --state as the reporter has them, or --address"
    )
}

fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().connect_timeout(CONNECT).redirect(reqwest::redirect::Policy::none())
}

async fn read(mut response: Response) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.context("read the reporter's answer")? {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_BYTES {
            bail!("the reporter's answer is larger than {} MiB", ANSWER_BYTES >> 20);
        }
    }
    Ok(body)
}

async fn is_answered(socket: &Path) -> bool {
    matches!(tokio::time::timeout(CONNECT, UnixStream::connect(socket)).await, Ok(Ok(_)))
}

fn of_settings(config: &Config) -> Option<Token> {
    use pipeline_core::ExposeSecret as _;
    match config.admin.token() {
        config::Token::Value(token) => Some(Token::literal(token.expose_secret())),
        config::Token::File(path) => Some(Token::file(path)),
        config::Token::None | config::Token::Secret { .. } => None,
    }
}
