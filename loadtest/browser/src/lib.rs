//! A real browser: Chromium without a window, by its WebDriver, for tests and measures of what people see.
//!
//! takes: the size of a window - gives: a client of WebDriver, and the commands of Chromium's own protocol beside it
//! calls: `chromedriver`, which `.ci/setup` installs - fails: when that is not there, or does not start

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use url::{ParseError, Url};

/// Whatever a page is to become true of it does within this time, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How often it is looked at: each look is work for the page as well, and for all that is looked at beside it.
const LOOK: Duration = Duration::from_millis(50);

/// A browser with one page, ended with [`Browser::close`], or by force where a test fails before; its profile goes with it.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    driver: Driver,
    _profile: TempDir,
}

/// Chromium's driver, and the browser that it starts: one group of processes, which ends when this is dropped.
#[derive(Debug)]
struct Driver(Child);

impl Driver {
    fn end(&self) {
        // It has no number any more once it was waited for.
        let id = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // Whoever has ended by themselves need not be ended.
        let _ = id.map(|id| kill_process_group(id, Signal::KILL));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command of Chromium's own protocol, for what WebDriver has none.
#[derive(Debug)]
struct DevTools(String, Value);

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
async fn driver() -> anyhow::Result<(Driver, String)> {
    loop {
        let mut command = Command::new("chromedriver");
        // The browser has its environment, which is what it takes its language from on Linux.
        command
            .env("LANGUAGE", "en_US")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        let mut driver = Driver(command.spawn().context("start chromedriver, which .ci/setup installs")?);
        let mut lines = BufReader::new(driver.0.stdout.take().context("what a driver says")?).lines();
        let mut said = Vec::new();
        while let Some(line) = lines.next_line().await.context("read what chromedriver says")? {
            if let Some((_, port)) = line.split_once("successfully on port ") {
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok((driver, port.trim_end_matches('.').to_owned()));
            }
            said.push(line);
        }
        let is_taken = said.iter().any(|line| line.contains("port not available"));
        ensure!(is_taken, "chromedriver ended before it had a port: {said:?}");
    }
}

impl Browser {
    /// Opens one whose window is so wide and high.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn open(width: u32, height: u32) -> anyhow::Result<Self> {
        let (driver, port) = driver().await?;
        let profile = tempfile::tempdir().context("make a folder for a browser")?;
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            // How times and numbers are written depends on it.
            "--lang=en-US".to_owned(),
            // What is opened is on this machine, also where the environment names a proxy for all else.
            "--no-proxy-server".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let mut capabilities = Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), json!({ "args": arguments }));
        // A script that waits for something ends by itself; 30 seconds, which it has else, are little on a busy machine.
        capabilities.insert("timeouts".to_owned(), json!({ "script": u64::try_from(PATIENCE.as_millis())? }));
        let url = format!("http://127.0.0.1:{port}");
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&url)
            .await
            .context("start a browser")?;
        Ok(Self { client, driver, _profile: profile })
    }

    /// What drives it.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Runs a command of Chromium's own protocol.
    ///
    /// # Errors
    /// When it does not know or do that.
    pub async fn devtools(&self, command: &str, parameters: Value) -> anyhow::Result<Value> {
        let done = self.client.issue_cmd(DevTools(command.to_owned(), parameters)).await;
        done.with_context(|| format!("do {command}"))
    }

    /// What a script gives.
    ///
    /// # Errors
    /// When it fails.
    pub async fn run(&self, script: &str) -> anyhow::Result<Value> {
        self.client.execute(script, vec![]).await.with_context(|| format!("run {script}"))
    }

    /// Waits until a script's expression is true.
    ///
    /// # Errors
    /// When it does not become so in time.
    pub async fn until(&self, what: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let found = self.client.execute(&format!("return Boolean({what})"), vec![]).await;
            if found.is_ok_and(|found| found == true) {
                return Ok(());
            }
            if begun.elapsed() >= PATIENCE {
                bail!("never true: {what}");
            }
            sleep(LOOK).await;
        }
    }

    /// A click on an element, once it is there. Between the search for it and the click the page may put another in its place: then
    /// none was clicked, and it is searched for again.
    ///
    /// # Errors
    /// When nothing takes the click in time.
    pub async fn press(&self, css: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let clicked = match self.client.find(Locator::Css(css)).await {
                Ok(element) => element.click().await,
                Err(error) => Err(error),
            };
            let Err(error) = clicked else { return Ok(()) };
            let is_gone = error.is_element_not_interactable()
                || error.is_stale_element_reference()
                || error.is_no_such_element();
            ensure!(is_gone && begun.elapsed() < PATIENCE, "{css} takes no click: {error}");
            sleep(LOOK).await;
        }
    }

    /// Types into a field that is there.
    ///
    /// # Errors
    /// When it is not, or takes no keys.
    pub async fn fill(&self, css: &str, text: &str) -> anyhow::Result<()> {
        let field = self.client.find(Locator::Css(css)).await.with_context(|| format!("find {css}"))?;
        field.send_keys(text).await.with_context(|| format!("type into {css}"))
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it does not end by itself; it is ended by force then.
    pub async fn close(mut self) -> anyhow::Result<()> {
        let closed = self.client.clone().close().await.context("close a browser");
        self.driver.end();
        self.driver.0.wait().await.context("end chromedriver")?;
        closed
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Processes of the browser that has this profile.
    fn running(profile: &Path) -> usize {
        let is_of_it = |process: &std::fs::DirEntry| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&*profile.to_string_lossy())
        };
        std::fs::read_dir("/proc").unwrap().filter(|process| is_of_it(process.as_ref().unwrap())).count()
    }

    #[tokio::test]
    async fn a_browser_writes_times_alike_whoever_starts_it() {
        let browser = Browser::open(800, 600).await.unwrap();
        let told =
            browser.run("return [navigator.language, new Intl.DateTimeFormat().resolvedOptions().locale]");
        assert_eq!(told.await.unwrap(), json!(["en-US", "en-US"]));
        browser.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_browser_that_nobody_closes_ends_when_it_is_dropped() {
        let browser = Browser::open(800, 600).await.unwrap();
        let profile = browser._profile.path().to_owned();
        assert!(running(&profile) > 0);
        drop(browser);
        let begun = Instant::now();
        while running(&profile) > 0 {
            assert!(begun.elapsed() < PATIENCE, "it runs on");
            sleep(LOOK).await;
        }
    }
}
