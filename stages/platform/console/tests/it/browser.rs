//! A real browser: Chromium by its WebDriver, both ended with the test.

use std::process::Stdio;
use std::time::Duration;

use axum::http::Method;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use url::{ParseError, Url};

const GIVE_UP: Duration = Duration::from_secs(180);

pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
    _profile: TempDir,
}

/// A command of Chromium's own protocol, for what WebDriver has none.
#[derive(Debug)]
struct DevTools(&'static str, Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.0, "params": self.1 }).to_string()))
    }
}

/// Chromium's driver and its port. It takes one port of IPv4 from the system and wants the same of IPv6, or the other way round:
/// where a neighbour has that one, it says so and ends, and another port is asked for.
async fn driver() -> (Child, String) {
    loop {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut driver = command.spawn().expect("chromedriver is installed by .ci/setup");
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, port)) = line.split_once("successfully on port ") {
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return (driver, port.trim_end_matches('.').to_owned());
            }
            said.push(line);
        }
        let is_taken = said.iter().any(|line| line.contains("port not available"));
        assert!(is_taken, "chromedriver ended before it had a port: {said:?}");
    }
}

impl Browser {
    pub(crate) async fn open(width: u32, height: u32) -> Self {
        let (driver, port) = driver().await;
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let mut capabilities = Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), json!({ "args": arguments }));
        let url = format!("http://127.0.0.1:{port}");
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&url)
            .await
            .unwrap();
        Self { client, driver, _profile: profile }
    }

    /// The size of what is seen, which a window's frame is not part of.
    pub(crate) async fn view(&self, width: u32, height: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let script = format!("document.cookie = 'theme={scheme}; path=/'");
        self.client.execute(&script, vec![]).await.unwrap();
        self.client.set_window_size(width, height).await.unwrap();
        let inner = self.client.execute("return [innerWidth, innerHeight]", vec![]).await.unwrap();
        let more = |index: usize, wanted: u32| {
            wanted.saturating_sub(u32::try_from(inner[index].as_u64().unwrap()).unwrap())
        };
        self.client.set_window_size(width + more(0, width), height + more(1, height)).await.unwrap();
        self.client.refresh().await.unwrap();
    }

    /// Pages run every script from here on, whatever their policy says: what comes into one is not hidden by that.
    pub(crate) async fn let_any_script_run(&self) {
        self.client.issue_cmd(DevTools("Page.setBypassCSP", json!({ "enabled": true }))).await.unwrap();
    }

    /// The element, once it is there.
    pub(crate) async fn find(&self, css: &str) -> Element {
        self.client.wait().at_most(GIVE_UP).for_element(Locator::Css(css)).await.expect(css)
    }

    /// Keys to whatever has the focus, once that takes them. Between the question for it and the keys the page may put another
    /// element in its place: then none was typed, and it is asked for again.
    pub(crate) async fn keys(&self, keys: &str) {
        let begun = Instant::now();
        loop {
            let typed = match self.client.active_element().await {
                Ok(element) => element.send_keys(keys).await,
                Err(error) => Err(error),
            };
            let Err(error) = typed else { return };
            let is_gone = error.is_element_not_interactable()
                || error.is_stale_element_reference()
                || error.is_no_such_element();
            assert!(is_gone && begun.elapsed() < GIVE_UP, "nothing takes the keys: {error}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A click on an element, once it is there. Between the search for it and the click the page may put another in its place:
    /// then none was clicked, and it is searched for again.
    pub(crate) async fn press(&self, css: &str) {
        let begun = Instant::now();
        loop {
            let Err(error) = self.find(css).await.click().await else { return };
            let is_gone = error.is_element_not_interactable() || error.is_stale_element_reference();
            assert!(is_gone && begun.elapsed() < GIVE_UP, "{css} takes no click: {error}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// To an element by the tab key alone, as many times as a page has elements that take it.
    pub(crate) async fn tab_to(&self, css: &str) {
        let is_there = format!("return Boolean(document.activeElement?.matches({}))", Value::from(css));
        self.find(css).await;
        let mut pressed = 0;
        while self.client.execute(&is_there, vec![]).await.unwrap() != true {
            assert!(pressed < 100, "no key leads to {css}");
            self.keys(&char::from(fantoccini::key::Key::Tab).to_string()).await;
            pressed += 1;
        }
    }

    /// Until a script's expression is true.
    pub(crate) async fn until(&self, what: &str) {
        let begun = Instant::now();
        loop {
            let found = self.client.execute(&format!("return Boolean({what})"), vec![]).await;
            if found.is_ok_and(|found| found == true) {
                return;
            }
            assert!(begun.elapsed() < GIVE_UP, "never true: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Keeps a picture of what is seen, where somebody wants to look at it.
    pub(crate) async fn shot(&self, name: &str) {
        if let Some(folder) = std::env::var_os("CONSOLE_SHOTS") {
            let file = std::path::PathBuf::from(folder).join(format!("{name}.png"));
            std::fs::write(file, self.client.screenshot().await.unwrap()).unwrap();
        }
    }

    pub(crate) async fn address(&self) -> Url {
        self.client.current_url().await.unwrap()
    }

    pub(crate) async fn close(mut self) {
        self.client.clone().close().await.unwrap();
        self.driver.kill().await.unwrap();
    }
}
