//! What somebody does in the console, in a real browser: the platform of the chart, tunnel, router, app proxy and Argo CD, whose
//! reports the page shows.
//!
//! takes: the address of the platform, and an account there - gives: what is wrong with what the page says and with what is done
//! calls: Chromium, the API server - fails: when something of a page does not become true in time

use std::path::PathBuf;

use anyhow::Context as _;
use loadtest_browser::Browser;
use loadtest_judge::screen::say;
use loadtest_sim::people::PASSWORD;
use tokio::time::Instant;

use crate::access::{APPLICATION, HOST};
use crate::acting::{resource, uid};
use crate::ground::Ground;

/// How wide and high what is seen is; and the same on a telephone.
const WIDE: (u32, u32) = (1_440, 900);
const NARROW: (u32, u32) = (390, 844);
/// Whether the page says that the application is as Git says.
const SYNCED: &str = "document.querySelector('.title .tag [role=img]')?.title === 'Synced'";
const OUT_OF_SYNC: &str = "document.querySelector('.title .tag [role=img]')?.title === 'OutOfSync'";
/// What the page said in passing, since it was opened.
const LISTEN: &str = "const said = document.querySelector('#said'); window.said = []; \
                      new MutationObserver(() => window.said.push(said.textContent)).observe(said, { childList: true })";
/// Where pictures of what was seen are kept, for whoever wants to look at them.
const SHOTS: &str = "LOADTEST_SHOTS";

/// Somebody with a browser.
pub(crate) struct Visitor<'a> {
    browser: Browser,
    platform: &'a str,
    name: &'a str,
}

impl<'a> Visitor<'a> {
    /// Opens the console, and signs in.
    pub(crate) async fn signs_in(platform: &'a str, name: &'a str) -> anyhow::Result<Self> {
        let browser = Browser::open(WIDE.0, WIDE.1).await?;
        let visitor = Self { browser, platform, name };
        visitor.goto("/").await?;
        visitor
            .browser
            .until("location.pathname === '/sign-in' && document.querySelector('#password')")
            .await?;
        for (field, text) in [("#name", name), ("#password", PASSWORD)] {
            visitor.browser.fill(field, text).await?;
        }
        visitor.shot("sign-in").await?;
        visitor.browser.press("form .primary").await?;
        visitor.browser.until("location.pathname === '/' && document.documentElement.dataset.ready").await?;
        say(&format!("  {name} signs in to the console of the chart with a browser"));
        Ok(visitor)
    }

    /// Syncs an application that lacks a resource: the page says what that will do, and what has come of it.
    pub(crate) async fn syncs(&self, ground: &Ground) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let first = uid(ground).await?.context("find the resource that is deleted")?;
        self.opens().await?;
        self.browser.until(SYNCED).await?;
        ground.objects.delete(&resource()).await?;
        // The page is not loaded anew for it.
        self.browser.until(OUT_OF_SYNC).await?;
        self.browser.press("[data-act=sync]").await?;
        self.browser.until("document.querySelector('#act .primary')?.disabled === false").await?;
        let told = self.text("#act .body").await?;
        if !(told.contains("1 resource is not as Git says:") && told.contains("ConfigMap/shop is made")) {
            wrong.push(format!("before a sync the page says: {told:?}"));
        }
        self.shot("before-a-sync").await?;
        let begun = Instant::now();
        self.browser.press("#act .primary").await?;
        let asked = format!("{APPLICATION}: sync was asked for");
        self.browser
            .until(&format!("!document.querySelector('#act') && window.said.includes('{asked}')"))
            .await?;
        self.browser.until(SYNCED).await?;
        say(&format!("  the page shows the end of a sync after {:.1} s", begun.elapsed().as_secs_f64()));
        self.shot("after-a-sync").await?;
        let made = uid(ground).await?;
        if made.is_none() || made.as_ref() == Some(&first) {
            wrong.push(format!("after a sync in the console the resource is {made:?}, and was {first}"));
        }
        self.browser.client().set_window_size(NARROW.0, NARROW.1).await.context("make the window narrow")?;
        self.shot("after-a-sync-narrow").await?;
        self.browser.client().set_window_size(WIDE.0, WIDE.1).await.context("make the window wide")?;
        Ok(wrong)
    }

    /// What the page says to somebody who may only look, and that nothing comes of it.
    pub(crate) async fn may_only_look(&self, ground: &Ground) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let before = uid(ground).await?;
        self.opens().await?;
        let why = "No rule of your teams lets you sync it: an admin can add one.";
        let button = "document.querySelector('[data-act=sync]')";
        let shown = format!(
            "return [{button}.getAttribute('aria-disabled'), {button}.title, {button}.dataset.why].join('|')"
        );
        let shown = self.browser.run(&shown).await?;
        if shown != format!("true|{why}|{why}") {
            wrong.push(format!("the button of {} says: {shown}", self.name));
        }
        self.browser.press("[data-act=sync]").await?;
        self.browser.until(&format!("window.said.includes('{why}')")).await?;
        self.shot("may-only-look").await?;
        if self.browser.run("return Boolean(document.querySelector('#act'))").await? == true {
            wrong.push(format!("a button that {} may not use asks whether it is meant", self.name));
        }
        if uid(ground).await? != before {
            wrong.push(format!("{} may only look, and changed something", self.name));
        }
        say(&format!("  {} is told by the button: {why}", self.name));
        Ok(wrong)
    }

    /// What the page says while the tunnel is away: the same as the command line.
    pub(crate) async fn is_told_that_the_tunnel_is_away(&self) -> anyhow::Result<Vec<String>> {
        let why = format!(
            "runtime 'prod' has no tunnel connected at {HOST}: look whether its tunnel client runs, and what its log says"
        );
        self.opens().await?;
        self.browser.press("[data-act=sync]").await?;
        self.browser.until("document.querySelector('#act [role=alert]')?.textContent").await?;
        let told = self.text("#act [role=alert]").await?;
        say(&format!("  without a tunnel the page says: {told}"));
        self.shot("without-a-tunnel").await?;
        let is_off = self.browser.run("return document.querySelector('#act .primary').disabled").await?;
        let mut wrong = Vec::new();
        if told != why {
            wrong.push(format!("without a tunnel the page says {told:?}"));
        }
        if is_off != true {
            wrong.push(
                "without a tunnel the page lets a sync be asked for whose changes it does not know"
                    .to_owned(),
            );
        }
        Ok(wrong)
    }

    /// Ends the browser.
    pub(crate) async fn leaves(self) -> anyhow::Result<()> {
        self.browser.close().await
    }

    async fn goto(&self, path: &str) -> anyhow::Result<()> {
        let opened = self.browser.client().goto(&format!("{}{path}", self.platform)).await;
        opened.with_context(|| format!("open {path}"))
    }

    /// Opens the page of the application, which hears of what changes from then on.
    async fn opens(&self) -> anyhow::Result<()> {
        self.goto(&format!("/applications/prod/argocd/{APPLICATION}")).await?;
        self.browser.until("document.documentElement.dataset.ready").await?;
        self.browser.until("document.querySelector('[data-live]')?.dataset.state === 'live'").await?;
        self.browser.run(LISTEN).await.map(drop)
    }

    async fn text(&self, css: &str) -> anyhow::Result<String> {
        let found = self.browser.run(&format!("return document.querySelector('{css}').textContent")).await?;
        found.as_str().map(str::to_owned).with_context(|| format!("read {css}"))
    }

    /// Keeps a picture of what is seen, where somebody wants to look at it.
    async fn shot(&self, name: &str) -> anyhow::Result<()> {
        let Some(folder) = std::env::var_os(SHOTS).map(PathBuf::from) else { return Ok(()) };
        let picture = self.browser.client().screenshot().await.context("take a picture")?;
        let file = folder.join(format!("{}-{name}.png", self.name));
        std::fs::write(&file, picture).with_context(|| format!("write {}", file.display()))
    }
}
