//! A real browser, and what somebody does with it.

use std::time::Duration;

use fantoccini::{Client, Locator, elements::Element};
use loadtest_browser::PATIENCE;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

/// How often something is looked for.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) struct Browser {
    pub(crate) client: Client,
    own: loadtest_browser::Browser,
}

impl Browser {
    pub(crate) async fn open(width: u32, height: u32) -> Self {
        let own = loadtest_browser::Browser::open(width, height).await.unwrap();
        Self { client: own.client().clone(), own }
    }

    /// To a page, until its scripts have run.
    pub(crate) async fn goto(&self, address: &str) {
        self.client.goto(address).await.unwrap();
        self.until("document.documentElement.dataset.ready").await;
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
        self.own.devtools("Page.setBypassCSP", json!({ "enabled": true })).await.unwrap();
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) {
        self.own.devtools(command, parameters).await.unwrap();
    }

    /// Runs a script in each page that is opened from here on, before any of its own.
    pub(crate) async fn run_first(&self, script: &str) {
        let source = json!({ "source": script });
        self.own.devtools("Page.addScriptToEvaluateOnNewDocument", source).await.unwrap();
    }

    /// The element, once it is there.
    pub(crate) async fn find(&self, css: &str) -> Element {
        let wait = self.client.wait().at_most(PATIENCE).every(LOOK);
        wait.for_element(Locator::Css(css)).await.expect(css)
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
            assert!(is_gone && begun.elapsed() < PATIENCE, "nothing takes the keys: {error}");
            sleep(LOOK).await;
        }
    }

    /// Keys to the element that this is to be, once it has the focus: a page that is there need not have given it yet.
    pub(crate) async fn type_into(&self, css: &str, keys: &str) {
        self.until(&format!("document.activeElement?.matches({})", Value::from(css))).await;
        self.keys(keys).await;
    }

    /// A click on an element, once it is there.
    pub(crate) async fn press(&self, css: &str) {
        self.own.press(css).await.unwrap();
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
        self.own.until(what).await.unwrap();
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

    pub(crate) async fn close(self) {
        self.own.close().await.unwrap();
    }
}
