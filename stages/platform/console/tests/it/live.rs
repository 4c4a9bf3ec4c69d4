//! How soon an open page reads again what changed.

use serde_json::json;

use crate::browser::Browser;
use crate::journey::sign_in;
use crate::served::Served;

/// A clock that stands until a test moves it, and counts of what the page heard and asked.
const FIRST: &str = r#"
    window.clock = 1_000_000_000_000;
    Date.now = () => window.clock;
    window.heard = 0;
    window.patched = 0;
    document.addEventListener("patched", () => { window.patched += 1; });
    window.asked = 0;
    const { EventSource: Source, fetch: ask } = window;
    window.EventSource = class extends Source {
        constructor(address) {
            super(address);
            this.addEventListener("changed", () => { window.heard += 1; });
        }
    };
    window.fetch = (...all) => {
        window.asked += 1;
        return ask(...all);
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_on_the_page_is_read_again_sooner_than_what_may_come_to_stand_there() {
    let served = Served::new().await;
    let browser = Browser::open(1_440, 900).await;
    sign_in(&browser, &served.link().await).await;
    browser.run_first(FIRST).await;
    // What changes each time is an application named basket.
    let changes = || served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    for (filter, asked_soon) in [("basket", 2), ("payments", 1)] {
        browser.client.goto(&format!("{}/applications?q={filter}", served.url)).await.unwrap();
        browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
        changes();
        browser.until("heard === 1 && asked === 1 && patched === 1").await;
        browser.client.execute("clock += 500", vec![]).await.unwrap();
        changes();
        browser.until("heard === 2").await;
        // What is asked at once was asked when it was heard.
        let asked = browser.client.execute("return asked", vec![]).await.unwrap();
        assert_eq!(asked, json!(asked_soon), "{filter}: half a second after the last time");
        browser.client.execute("clock += 1500", vec![]).await.unwrap();
        browser.until("asked === 2").await;
    }
    browser.close().await;
}

/// Counts how often the page heard that the stream lives.
const BEATS: &str = r#"
    window.beats = 0;
    const { EventSource: Source } = window;
    window.EventSource = class extends Source {
        constructor(address) {
            super(address);
            this.addEventListener("beat", () => { window.beats += 1; });
        }
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_nothing_happens_on_hears_that_the_stream_lives() {
    let served = Served::new().await;
    let browser = Browser::open(1_440, 900).await;
    sign_in(&browser, &served.link().await).await;
    browser.run_first(BEATS).await;
    browser.client.goto(&format!("{}/applications", served.url)).await.unwrap();
    browser.until("beats > 1 && document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.close().await;
}
