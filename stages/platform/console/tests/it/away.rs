//! A page that stays open while its platform is away, and the ingress before that answers with a page of its own.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::acts::listen;
use crate::sample::Sample;
use crate::served::Served;

const BAD_GATEWAY: &str = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 32\r\nConnection: close\r\n\r\n<html><h1>502 Bad Gateway</h1>\r\n";

/// As a platform answers that cannot say whose session it is, while its store is away: without what stands around pages.
const NOT_NOW: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 41\r\nConnection: close\r\n\r\n<main id=\"main\"><h1>Not now</h1></main>\r\n";

/// What people reach a platform by.
struct Ingress {
    url: String,
    /// What is answered while it is away; nothing at all where that is empty.
    away: watch::Sender<Option<&'static str>>,
    /// Paths that were asked for while the platform was away.
    came: Arc<Mutex<Vec<String>>>,
}

impl Ingress {
    /// Leads to a console that is made for its address.
    async fn new() -> (Self, Served) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Served::behind(Some(&url), Sample::new(), Timestamp::now, async |_| None).await;
        let to = served.url.strip_prefix("http://").unwrap().to_owned();
        let (away, came) = (watch::Sender::new(None), Arc::<Mutex<Vec<String>>>::default());
        let (is_away, asked) = (away.subscribe(), came.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, to.clone(), is_away.clone(), asked.clone()));
            }
        });
        (Self { url, away, came }, served)
    }

    /// How often each was asked for since the last time, whatever comes after it.
    fn came(&self, path: &str) -> usize {
        self.came.lock().unwrap().extract_if(.., |one| one.starts_with(path)).count()
    }
}

async fn pass(
    mut stream: TcpStream,
    to: String,
    mut away: watch::Receiver<Option<&'static str>>,
    came: Arc<Mutex<Vec<String>>>,
) {
    let answer = *away.borrow();
    let Some(answer) = answer else {
        let mut platform = TcpStream::connect(to).await.unwrap();
        tokio::select! {
            _ = copy_bidirectional(&mut stream, &mut platform) => {}
            _ = away.wait_for(Option::is_some) => {}
        }
        return;
    };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // A browser connects ahead of what it asks for.
        if !matches!(stream.read_buf(&mut head).await, Ok(read) if read > 0) {
            return;
        }
    }
    let head = String::from_utf8(head).unwrap();
    came.lock().unwrap().push(head.split(' ').nth(1).unwrap().to_owned());
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

/// A clock that stands, with all that waits for it, until a test lets seconds pass: of each, what was asked in it is answered.
const CLOCK: &str = r#"
    window.clock = 1_000_000_000_000;
    Date.now = () => window.clock;
    const timers = new Map();
    let made = 0;
    const timer = (repeats) => (what, after = 0) => {
        made += 1;
        timers.set(made, { what, at: clock + after, every: repeats ? after : 0 });
        return made;
    };
    [window.setTimeout, window.setInterval] = [timer(false), timer(true)];
    window.clearTimeout = window.clearInterval = (id) => timers.delete(id);
    window.asked = new Set();
    const hold = (answer) => {
        const held = answer.catch(() => {}).finally(() => asked.delete(held));
        asked.add(held);
    };
    [window.heard, window.patched, window.passed] = [0, 0, 0];
    document.addEventListener("patched", () => { patched += 1; });
    const { EventSource: Source, fetch: ask } = window;
    window.EventSource = class extends Source {
        constructor(address) {
            super(address);
            window.stream = this;
            this.addEventListener("changed", () => { heard += 1; });
            hold(new Promise((go) => { for (const one of ["hello", "error"]) this.addEventListener(one, go); }));
        }
    };
    window.fetch = (...all) => {
        const answer = ask(...all);
        hold(answer.then((one) => one.clone().text()));
        return answer;
    };
    window.pass = async (seconds) => {
        for (let second = 0; second < seconds; second += 1) {
            clock += 1000;
            for (const [id, one] of [...timers]) {
                if (!timers.has(id) || one.at > clock) continue;
                if (one.every) one.at = clock + one.every;
                else timers.delete(id);
                one.what();
            }
            while (asked.size) await Promise.all(asked);
            const { port1, port2 } = new MessageChannel();
            await new Promise((go) => { port1.onmessage = go; port2.postMessage(0); });
        }
        passed += seconds;
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_platform_is_away_asks_less_and_less_often_and_at_once_when_somebody_looks_again() {
    const PAGE: &str = "/applications?q=basket";
    let (ingress, served) = Ingress::new().await;
    let browser = served.browser().await;
    browser.run_first(CLOCK).await;
    browser.client.goto(&format!("{}{PAGE}", ingress.url)).await.unwrap();
    browser.until("stream.readyState === EventSource.OPEN").await;
    let does = async |script: &str| drop(browser.client.execute(script, vec![]).await.unwrap());
    let changes = || served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    changes();
    browser.until("heard === 1 && patched === 1 && !asked.size").await;
    // What changes now is to be read again, and cannot be.
    changes();
    browser.until("heard === 2").await;
    ingress.away.send_replace(Some(BAD_GATEWAY));
    browser.until("stream.readyState === EventSource.CLOSED").await;

    ingress.came.lock().unwrap().clear();
    does("pass(120)").await;
    browser.until("passed === 120").await;
    for path in [PAGE, "/live"] {
        let asked = ingress.came(path);
        assert!((5..=14).contains(&asked), "{path} in the first two minutes: {asked}");
    }
    does("pass(120)").await;
    browser.until("passed === 240").await;
    for path in [PAGE, "/live"] {
        let asked = ingress.came(path);
        assert!((3..=9).contains(&asked), "{path} in the next two minutes: {asked}");
    }

    // Whoever looks again waits for nothing, and neither does a page that has its network back.
    does("document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.until("!asked.size").await;
    assert_eq!((ingress.came(PAGE), ingress.came("/live")), (1, 1));
    ingress.away.send_replace(None);
    does("dispatchEvent(new Event('online'))").await;
    browser.until("patched === 2 && document.querySelector('[data-live]').dataset.state === 'live'").await;
    assert_eq!(browser.client.execute("return passed", vec![]).await.unwrap(), json!(240));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_refused_or_lost_unnoticed_is_begun_anew_by_the_page_after_what_it_told() {
    let (ingress, served) = Ingress::new().await;
    let browser = served.browser().await;
    browser.run_first(CLOCK).await;
    browser.client.goto(&format!("{}/applications?q=basket", ingress.url)).await.unwrap();
    browser.until("stream.readyState === EventSource.OPEN").await;
    let does = async |script: &str| drop(browser.client.execute(script, vec![]).await.unwrap());
    let changes = || served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    changes();
    browser.until("heard === 1 && patched === 1 && !asked.size").await;

    // No beat comes for half a minute, although nobody says that the connection is gone.
    does("window.first = stream; clock += 31_000; pass(1)").await;
    browser.until("passed === 1 && first.readyState === EventSource.CLOSED").await;
    browser.until("stream.readyState === EventSource.OPEN && !asked.size").await;

    // The browser tries again by itself after some seconds, once.
    ingress.away.send_replace(Some(""));
    changes();
    browser.until("stream.readyState === EventSource.CLOSED").await;
    ingress.came.lock().unwrap().clear();
    does("pass(120)").await;
    browser.until("passed === 121").await;
    // It may ask twice where a connection that it had made ahead is gone.
    let asked = ingress.came("/live?after=2");
    assert!((4..=28).contains(&asked), "in two minutes: {asked}");
    assert_eq!(ingress.came("/live"), 0, "it says what it was told last");
    ingress.away.send_replace(None);
    does("dispatchEvent(new Event('online'))").await;
    browser.until("heard === 2 && document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_stays_whole_while_the_store_of_its_platform_is_away() {
    let (ingress, served) = Ingress::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}/applications", ingress.url)).await;
    listen(&browser).await;
    let ways = "[...document.querySelectorAll('nav.side li')].map((one) => one.textContent).join()";
    let before = browser.client.execute(&format!("return {ways}"), vec![]).await.unwrap();
    assert!(before.as_str().unwrap().contains("Sign out"), "{before}");
    ingress.away.send_replace(Some(NOT_NOW));
    browser.press("nav.side a[href='/deployments']").await;
    browser.until("window.said[0] === 'The platform answered 503, which is no page.'").await;
    assert_eq!(browser.client.execute(&format!("return {ways}"), vec![]).await.unwrap(), before);
    ingress.away.send_replace(None);
    browser.press("nav.side a[href='/deployments']").await;
    browser.until(&format!("location.pathname === '/deployments' && {ways} === {before}")).await;
    browser.close().await;
}
