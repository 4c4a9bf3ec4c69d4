//! A console that is served on a port of its own, and a client that follows no redirect.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use loadtest_sim::local_client;
use reqwest::{Client, Response, StatusCode, redirect};
use sha2::Digest as _;
use stages_platform_console::{Console, OidcSignIn, Settings};
use stages_platform_store::{Account, By, Place, Retention, Role, Store, StoreConfig};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::browser::Browser;
use crate::journey::sign_in;
use crate::sample::{ForEverybody, Sample};

pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) fleet: Arc<Sample>,
    pub(crate) console: Console,
    pub(crate) client: Client,
    pub(crate) stop: CancellationToken,
    pub(crate) store: Store,
    _folder: TempDir,
    _end: DropGuard,
}

impl Served {
    pub(crate) async fn with(fleet: Sample, clock: fn() -> Timestamp) -> Self {
        Self::by(fleet, clock, async |_| None).await
    }

    /// With a provider that people come in by, made for the address that this is served at.
    pub(crate) async fn by(
        fleet: Sample,
        clock: fn() -> Timestamp,
        oidc: impl AsyncFnOnce(&str) -> Option<OidcSignIn>,
    ) -> Self {
        Self::behind(None, fleet, clock, oidc).await
    }

    /// The same, which people reach at another address than where it listens.
    pub(crate) async fn behind(
        external: Option<&str>,
        fleet: Sample,
        clock: fn() -> Timestamp,
        oidc: impl AsyncFnOnce(&str) -> Option<OidcSignIn>,
    ) -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (fleet, stop) = (Arc::new(fleet), CancellationToken::new());
        let folder = tempfile::tempdir().unwrap();
        let forever = std::time::Duration::from_secs(365_000 * 86_400);
        let retention = Retention { history: forever, keys: forever, interval: forever };
        let opening = StoreConfig { place: Place::Sqlite(folder.path().join("platform.db")), retention };
        let (store, _) = opening.build(&prometheus::Registry::new()).await.unwrap();
        let oidc = oidc(&url).await;
        let external = external.unwrap_or(&url).to_owned();
        let settings = Settings { external, store: store.clone(), retention, clock, oidc };
        let console = Console::new(Arc::new(ForEverybody(fleet.clone())), settings, stop.clone());
        let served = axum::serve(listener, console.clone().router())
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::spawn(async move { served.await.unwrap() });
        let client = local_client().redirect(redirect::Policy::none()).build().unwrap();
        Self { url, fleet, console, client, _end: stop.clone().drop_guard(), stop, store, _folder: folder }
    }

    pub(crate) async fn new() -> Self {
        Self::with(Sample::new(), Timestamp::now).await
    }

    /// The one-time link of a console without users.
    pub(crate) async fn link(&self) -> String {
        self.console.first_link().await.unwrap().expect("nobody has an account yet").expose().to_owned()
    }

    /// A browser in which the first user is signed in.
    pub(crate) async fn browser(&self) -> Browser {
        let browser = Browser::open(1_440, 900).await;
        sign_in(&browser, &self.link().await).await;
        browser
    }

    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.client.post(format!("{}{path}", self.url)).body(body).send().await.unwrap()
    }

    /// Makes the first user, `ada`; gives the session's cookie.
    pub(crate) async fn signed_in(&self) -> String {
        let link = self.link().await;
        let token = link.split_once("token=").unwrap().1;
        let form = [("token", token), ("name", "ada"), ("password", "correct horse battery")];
        let response = self.post("/welcome", &form).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        cookie(&response)
    }

    /// Somebody who is no admin, `lin`; gives the session's cookie.
    pub(crate) async fn member(&self) -> String {
        let by = By { who: "ada".to_owned(), how: "session" };
        let lin = Account { name: "lin".to_owned(), password: "none".to_owned(), role: Role::Member };
        let now = Timestamp::now().as_millisecond();
        assert!(self.store.add_person(&by, &lin, now).await.unwrap());
        let digest = sha2::Sha256::digest(b"lins").into();
        self.store.keep_session(digest, "lin", now, now + 86_400_000).await.unwrap();
        "session=lins".to_owned()
    }

    pub(crate) async fn page(&self, session: &str, path: &str) -> String {
        let asked = self.client.get(format!("{}{path}", self.url)).header("cookie", session);
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.text().await.unwrap()
    }
}

pub(crate) fn cookie(response: &Response) -> String {
    let set = response.headers()["set-cookie"].to_str().unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Lax"), "{set}");
    set.split(';').next().unwrap().to_owned()
}
