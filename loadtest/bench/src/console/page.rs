//! The console in a real browser: how fast it is painted, answers keys and shows what is reported, and what an open page costs.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use loadtest_browser::Browser;
use loadtest_sim::PATIENCE;
use loadtest_sim::people::User;
use loadtest_sim::proxy::Proxy;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::fleet::{Fleet, Sent};
use super::reporters::Reporters;
use crate::measure::{Measure, Measures};
use crate::platform::Platform;
use crate::times::{Times, mib, millis};
use loadtest_judge::screen::bar;

/// What a page saw of itself; it is there before anything else of the page.
const SEEN: &str = include_str!("seen.js");

/// A page is painted first in this time,
const PAINTED: Duration = Duration::from_secs(1);
/// its largest part in this, which is half of what the web calls good, as are the two that follow.
const LARGEST: Duration = Duration::from_millis(1_250);
/// Somebody who does something sees that it was done within this time,
const ANSWERED: Duration = Duration::from_millis(100);
/// and so much of a page moves by itself, in thousandths.
const MOVED: u64 = 50;
/// A key is on the screen in this time.
const TYPED: Duration = Duration::from_millis(50);
/// What is reported is on the screen in this time.
const SHOWN: Duration = Duration::from_secs(1);
/// The memory of scripts grows by no more while a page is open,
const GROWN: u64 = 1 << 20;
/// which asks once a minute,
const REQUESTS: u64 = 1;
/// and takes so many bytes a second, while nothing changes.
const IDLE: u64 = 5_000;

/// From one key to the next: somebody who types fast.
const KEYS: Duration = Duration::from_millis(110);
/// Between two reports of what is on the screen there are so many milliseconds: not in step with anything of the page.
const BETWEEN: std::ops::Range<u64> = 700..2_900;
/// Whether a page hears of what changes.
const LIVE: &str = "document.querySelector('[data-live]')?.dataset.state === 'live'";
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often the memory is looked at while a page is open.
const MEMORY: Duration = Duration::from_secs(10);

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// So often each page is loaded anew,
    pub(super) loads: usize,
    /// so many words are typed,
    pub(super) words: usize,
    /// and so many reports looked for on the screen.
    pub(super) reports: usize,
    /// So long a page is open in which nothing changes.
    pub(super) idle: Duration,
}

/// A browser with somebody's session, whose bytes are counted.
pub(super) struct Screen {
    browser: Browser,
    proxy: Proxy,
    url: String,
}

impl Screen {
    /// Opens it for whoever has that session.
    pub(super) async fn open(platform: SocketAddr, user: &User) -> anyhow::Result<Self> {
        let proxy = Proxy::start(platform).await?;
        let url = format!("http://{}", proxy.address());
        let browser = Browser::open(1_440, 900).await?;
        let (name, value) =
            user.session().and_then(|one| one.split_once('=')).context("somebody with a session")?;
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": SEEN })).await?;
        let cookie = json!({"name": name, "value": value, "url": url, "httpOnly": true});
        browser.devtools("Network.setCookie", cookie).await?;
        Ok(Self { browser, proxy, url })
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.browser.close().await
    }

    /// All that is measured, what takes longest last: where one fails, those before it were told.
    pub(super) async fn measure(
        &self,
        (fleet, reporters, platform): (&mut Fleet, &Reporters, &Platform),
        work: Work,
        measures: &mut Measures,
    ) -> anyhow::Result<()> {
        measures.add(self.paints(fleet, work.loads).await.context("paint pages")?);
        measures.add(self.types(work.words).await.context("type into a list")?);
        let shown = self.shows(fleet, reporters, platform, work.reports).await;
        measures.add(shown.context("look for what is reported")?);
        measures.add(self.idles(work.idle).await.context("leave a page open")?);
        Ok(())
    }

    /// Opens a page, which hears of what changes from then on.
    async fn goto(&self, path: &str) -> anyhow::Result<()> {
        self.browser
            .client()
            .goto(&format!("{}{path}", self.url))
            .await
            .with_context(|| format!("open {path}"))?;
        self.browser.until(LIVE).await
    }

    /// A figure of the page.
    async fn number(&self, what: &str) -> anyhow::Result<f64> {
        let found = self.browser.run(&format!("return {what}")).await?;
        found.as_f64().with_context(|| format!("{what} is {found}"))
    }

    /// Times in milliseconds that the page has noted.
    async fn times(&self, what: &str) -> anyhow::Result<Times> {
        let found = self.browser.run(&format!("return seen.{what}")).await?;
        let mut times = Times::new()?;
        for one in found.as_array().context("a list of times")? {
            times.add(Duration::from_secs_f64(one.as_f64().context("a time")?.max(0.0) / 1_000.0))?;
        }
        Ok(times)
    }

    /// Whatever went wrong in the page.
    async fn faultless(&self) -> anyhow::Result<()> {
        let found = self.browser.run("return seen.errors").await?;
        ensure!(found == json!([]), "in the page: {found}");
        Ok(())
    }

    /// The main pages, each loaded anew with nothing of it at hand.
    async fn paints(&self, fleet: &Fleet, loads: usize) -> anyhow::Result<Vec<Measure>> {
        self.browser.devtools("Network.enable", json!({})).await?;
        self.browser.devtools("Network.setCacheDisabled", json!({ "cacheDisabled": true })).await?;
        let pages = ["/".to_owned(), "/applications".to_owned(), "/resources".to_owned(), fleet.path(0)];
        let (mut painted, mut largest, mut moved) = (Times::new()?, Times::new()?, 0.0_f64);
        let took = |seconds: f64| Duration::from_secs_f64(seconds.max(0.0) / 1_000.0);
        for path in pages.iter().cycle().take(pages.len() * loads) {
            self.goto(path).await?;
            self.browser.until("seen.painted > 0 && seen.largest > 0").await?;
            painted.add(took(self.number("seen.painted").await?))?;
            largest.add(took(self.number("seen.largest").await?))?;
            moved = moved.max(self.number("seen.moved").await?);
            self.faultless().await?;
        }
        self.browser.devtools("Network.setCacheDisabled", json!({ "cacheDisabled": false })).await?;
        self.browser.devtools("Network.disable", json!({})).await?;
        let of = |what: &str| format!("{what}, the slowest of {} loads", painted.count());
        Ok(vec![
            Measure::time(of("first paint"), painted.quantile(1.0), PAINTED),
            Measure::time(of("largest contentful paint (LCP)"), largest.quantile(1.0), LARGEST),
            Measure::number(
                "layout shift while a page loads (CLS), in thousandths",
                (moved * 1_000.0).ceil() as u64,
                MOVED,
                "",
            )
            .of_a_while(),
        ])
    }

    async fn key(&self, key: char) -> anyhow::Result<()> {
        let down = json!({"type": "keyDown", "text": key.to_string(), "key": key.to_string()});
        self.browser.devtools("Input.dispatchKeyEvent", down).await?;
        self.browser
            .devtools("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key.to_string()}))
            .await?;
        Ok(())
    }

    /// Words in the field of the list, a key after the other.
    async fn types(&self, words: usize) -> anyhow::Result<Vec<Measure>> {
        const WORDS: [&str; 6] = ["payments", "checkout-000", "release", "ada byron", "production", "1.1.0"];
        let (mut keys, mut answers) = (Times::new()?, Times::new()?);
        let (mut slowest, mut moved) = (0.0_f64, 0.0_f64);
        for word in WORDS.iter().cycle().take(words) {
            self.goto("/applications").await?;
            self.key('/').await?;
            self.browser.until("document.activeElement?.matches('[data-filter] input')").await?;
            for key in word.chars() {
                self.key(key).await?;
                sleep(KEYS).await;
            }
            let typed = word.chars().count();
            self.browser.until(&format!("seen.answers.length > 0 && seen.keys.length >= {typed}")).await?;
            keys.all(&self.times("keys").await?)?;
            answers.all(&self.times("answers").await?)?;
            slowest = slowest.max(self.number("seen.slowest").await?);
            moved = moved.max(self.number("seen.moved").await?);
            self.faultless().await?;
        }
        let slowest = Duration::from_secs_f64(slowest.max(16.0) / 1_000.0);
        Ok(vec![
            Measure::p95("from a key to its paint", &keys, TYPED),
            Measure::time(
                "the slowest interaction (INP at most), by the browser's own Event Timing",
                slowest,
                ANSWERED,
            ),
            Measure::number(
                "layout shift while somebody types (CLS), in thousandths",
                (moved * 1_000.0).ceil() as u64,
                MOVED,
                "",
            )
            .of_a_while(),
            Measure::beside(
                format!("from the last key to the rows of it, p95 of {}", answers.count()),
                millis(answers.quantile(0.95)),
            ),
        ])
    }

    /// Bytes that the scripts of the page hold, once what is of no use any more was let go.
    async fn heap(&self) -> anyhow::Result<u64> {
        self.browser.devtools("HeapProfiler.collectGarbage", json!({})).await?;
        let found = self.browser.devtools("Runtime.getHeapUsage", json!({})).await?;
        Ok(found["usedSize"].as_f64().with_context(|| format!("the memory is {found}"))? as u64)
    }

    /// An open page in which nothing changes.
    async fn idles(&self, time: Duration) -> anyhow::Result<Vec<Measure>> {
        self.goto("/applications").await?;
        // What came just before it was opened it may still hear of.
        self.browser.until("(window.quiet ??= performance.now()) < performance.now() - 3000").await?;
        let asked = "performance.getEntriesByType('resource').length";
        let before = (self.heap().await?, self.number(asked).await? as u64, self.proxy.passed());
        let (begun, mut most) = (Instant::now(), before.0);
        let bar = bar(time.as_secs(), "idle");
        while begun.elapsed() < time {
            sleep(MEMORY.min(time.saturating_sub(begun.elapsed()))).await;
            most = most.max(self.heap().await?);
            bar.set_position(begun.elapsed().as_secs());
        }
        bar.finish_and_clear();
        let took = begun.elapsed().as_secs_f64();
        let (requests, bytes) = (self.number(asked).await? as u64 - before.1, self.proxy.passed() - before.2);
        // It still hears of what changes.
        self.browser.until(LIVE).await?;
        self.faultless().await?;
        let minutes = (took / 60.0).ceil() as u64;
        Ok(vec![
            Measure::number(
                format!("requests of an idle page in {took:.0} s"),
                requests,
                REQUESTS * minutes,
                "",
            ),
            Measure::number(
                "bytes a second of an idle page, both ways",
                (bytes as f64 / took) as u64,
                IDLE,
                "B/s",
            )
            .of_a_while(),
            grown("memory of scripts: growth of an idle page", before.0, most),
        ])
    }

    /// What is reported of rows on the screen, while others of the fleet report as well.
    async fn shows(
        &self,
        fleet: &mut Fleet,
        reporters: &Reporters,
        platform: &Platform,
        reports: usize,
    ) -> anyhow::Result<Vec<Measure>> {
        self.goto("/applications?sort=name&group=none").await?;
        let keys = self
            .browser
            .run("return [...document.querySelectorAll('main tr[data-key]')].map((row) => row.dataset.key)")
            .await?;
        let keys: Vec<String> = serde_json::from_value(keys).context("the rows of a page")?;
        let rows: Vec<usize> = fleet.numbers().filter(|index| keys.contains(&fleet.key(*index))).collect();
        ensure!(
            !rows.is_empty() && rows.len() == keys.len(),
            "a page shows {} rows, {} of the fleet",
            keys.len(),
            rows.len()
        );
        let others: Vec<usize> = fleet.numbers().filter(|index| !rows.contains(index)).collect();
        let mut random = fastrand::Rng::with_seed(3);
        let (mut times, before) = (Times::new()?, self.heap().await?);
        let passed = self.proxy.passed();
        let begun = Instant::now();
        let bar = bar(reports as u64, "event to screen");
        let mut most = before;
        for number in 0..reports {
            let index = rows[random.usize(0..rows.len())];
            let (sent, version) = fleet.release(index)?;
            self.browser
                .run(&format!("seen.wait({}, {})", Value::from(fleet.key(index)), Value::from(&*version)))
                .await?;
            let at = SystemTime::now().duration_since(UNIX_EPOCH).context("what time it is")?;
            reporters.send(platform, &[sent]).await?;
            let shown = timeout(PATIENCE, self.shown(&version, number))
                .await
                .context("a report is never shown")??;
            times.add(shown.saturating_sub(at))?;
            most = if number % 10 == 9 { most.max(self.heap().await?) } else { most };
            // The fleet does not rest meanwhile.
            let until = Instant::now() + Duration::from_millis(random.u64(BETWEEN));
            while Instant::now() < until && !others.is_empty() {
                let other: Vec<Sent> = (0..2)
                    .map(|_| fleet.release(others[random.usize(0..others.len())]).map(|(sent, _)| sent))
                    .collect::<anyhow::Result<_>>()?;
                reporters.send(platform, &other).await?;
                sleep(Duration::from_millis(400)).await;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        self.faultless().await?;
        let bytes = (self.proxy.passed() - passed) as f64 / begun.elapsed().as_secs_f64().max(0.001);
        Ok(vec![
            Measure::p95("from a report to the screen", &times, SHOWN),
            Measure::beside(
                "the same, half and the slowest",
                format!("{} {}", millis(times.quantile(0.5)), millis(times.quantile(1.0))),
            ),
            Measure::beside("bytes a second of a page that changes all the time", format!("{bytes:.0} B/s")),
            grown(
                "memory of scripts: growth of a page that changes all the time",
                before,
                most.max(self.heap().await?),
            ),
        ])
    }

    /// When the report of that number was on the screen, by the clock of the machine.
    async fn shown(&self, version: &str, number: usize) -> anyhow::Result<Duration> {
        loop {
            let shown = self.browser.run(&format!("return seen.shown[{number}] ?? null")).await?;
            if let Some(at) = shown["at"].as_f64() {
                ensure!(shown["text"] == version, "{shown} is shown, and not {version}");
                return Ok(Duration::from_secs_f64(at / 1_000.0));
            }
            sleep(LOOK).await;
        }
    }
}

fn grown(what: &str, before: u64, most: u64) -> Measure {
    let what = format!("{what}, from {} on", mib(before));
    Measure::number(what, most.saturating_sub(before) / 1_024, GROWN / 1_024, "KiB").of_a_while()
}
