//! A registry of images that asks for a name and a password, if it is told to.
//!
//! takes: an address, a login - gives: images by name, as any registry does
//! calls: `crane`, whose registry serves on loopback and which pushes layouts to it - fails: when a program does not
//! start, or an image does not arrive whole
//!
//! That registry knows no logins, so its door is kept here: what comes without the right `Authorization` is answered 401,
//! and all else is passed on as it is.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest_cluster::binaries::Binaries;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::command::printed;
use loadtest_sim::port;
use loadtest_sim::server::{Listen, Server};
use loadtest_sim::{PATIENCE, local_client};
use serde_json::{Value, json};
use tokio::process::Command;

/// Who may pull and push.
#[derive(Debug, Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// A running registry. It ends when it is dropped.
#[derive(Debug)]
pub struct Registry {
    server: Server,
    _registry: Child,
    crane: PathBuf,
    /// The settings of whoever pushes.
    home: PathBuf,
    login: Login,
}

#[derive(Clone)]
struct Door {
    http: reqwest::Client,
    to: String,
    authorization: HeaderValue,
}

impl Registry {
    /// Starts one that keeps what it has in `directory`, and serves at a free port of an address.
    pub async fn start(
        binaries: &Binaries,
        directory: &Path,
        address: IpAddr,
        login: Login,
    ) -> anyhow::Result<Self> {
        let crane = binaries.program("crane");
        let to = format!("127.0.0.1:{}", port::free()?);
        let blobs = directory.join("blobs");
        std::fs::create_dir_all(&blobs).with_context(|| format!("make the folder {}", blobs.display()))?;
        let spec = Spec::new("registry", &crane, directory).args([
            "registry".to_owned(),
            "serve".to_owned(),
            format!("--address={to}"),
            format!("--disk={}", blobs.display()),
        ]);
        let registry = Child::start(&spec)?;
        let http = local_client().build().context("make a client of the registry")?;
        let url = format!("http://{to}");
        registry.ready(PATIENCE, async || http.get(format!("{url}/v2/")).send().await.is_ok()).await?;
        let authorization =
            HeaderValue::from_str(&format!("Basic {}", login.word())).context("write a login as a header")?;
        let router = Router::new().fallback(pass).with_state(Door { http, to: url, authorization });
        let listen = Listen { address: (address, 0).into(), tls: None };
        let server = Server::start(router, listen).await.context("start the door of the registry")?;
        let made = Self { server, _registry: registry, crane, home: directory.join("docker"), login };
        made.log_in()?;
        Ok(made)
    }

    /// Its host and port, as they stand in the names of its images.
    #[must_use]
    pub fn host(&self) -> String {
        self.server.url().trim_start_matches("http://").to_owned()
    }

    /// What a Secret of the type `kubernetes.io/dockerconfigjson` holds.
    #[must_use]
    pub fn settings(&self) -> Value {
        json!({"auths": {self.host(): {"auth": self.login.word()}}})
    }

    /// Pushes a layout under a name and tag, reads it back whole, and tells its digest.
    pub async fn push(&self, layout: &Path, name: &str) -> anyhow::Result<String> {
        let image = format!("{}/{name}", self.host());
        let layout = layout.to_str().context("write the path of a layout as text")?;
        let pushed = self.crane(&["push", layout, &image]).await?;
        self.crane(&["validate", "--remote", &image]).await?;
        let digest = pushed.trim().rsplit_once('@').map(|(_, digest)| digest.to_owned());
        digest.with_context(|| format!("find the digest of {name} in what crane said"))
    }

    /// Runs `crane` with the login, or a home without one, and tells what it printed.
    async fn crane(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut crane = Command::new(&self.crane);
        crane.args(args).arg("--insecure").env("DOCKER_CONFIG", &self.home);
        printed(&mut crane, &format!("crane {}", args.join(" "))).await
    }

    fn log_in(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.home).context("make a folder for a login")?;
        std::fs::write(self.home.join("config.json"), self.settings().to_string()).context("write a login")
    }
}

impl Login {
    fn word(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.password))
    }
}

/// Passes a request on, if it may come in.
async fn pass(State(door): State<Door>, request: Request) -> Response {
    if request.headers().get(header::AUTHORIZATION) != Some(&door.authorization) {
        let body = r#"{"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}"#;
        let realm = [(header::WWW_AUTHENTICATE, r#"Basic realm="registry""#)];
        return (StatusCode::UNAUTHORIZED, realm, body).into_response();
    }
    match door.passed(request).await {
        Ok(response) => response,
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

impl Door {
    async fn passed(&self, request: Request) -> anyhow::Result<Response> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = head.headers;
        headers.remove(header::AUTHORIZATION);
        headers.remove(header::HOST);
        let body = reqwest::Body::wrap_stream(body.into_data_stream());
        let answer = self
            .http
            .request(head.method, format!("{}{path}", self.to))
            .headers(headers)
            .body(body)
            .send()
            .await
            .context("ask the registry")?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        *response.body_mut() = Body::from_stream(answer.bytes_stream());
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_image_is_pushed_and_pulled_with_the_login_and_refused_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let binaries = Binaries::find(None).await.unwrap();
        let login = Login { user: "runtime".to_owned(), password: "a password".to_owned() };
        let address = IpAddr::from([127, 0, 0, 1]);
        let mut registry = Registry::start(&binaries, folder.path(), address, login).await.unwrap();

        let layout = folder.path().join("layout");
        let image = crate::image::of(&std::env::current_exe().unwrap(), "some/program:1", "program").unwrap();
        image.build().unwrap().write(&layout).unwrap();
        let digest = registry.push(&layout, "some/program:1").await.unwrap();
        assert_eq!(digest, image.build().unwrap().digest());

        registry.home = folder.path().join("nobody");
        let error = registry.push(&layout, "some/program:2").await.unwrap_err();
        assert!(error.to_string().contains("401 Unauthorized"), "{error}");
        registry.login.password = "another".to_owned();
        registry.log_in().unwrap();
        let error = registry.push(&layout, "some/program:2").await.unwrap_err();
        assert!(error.to_string().contains("401 Unauthorized"), "{error}");
    }
}
