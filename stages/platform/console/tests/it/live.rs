//! How soon an open page reads again what changed.

use jiff::Timestamp;
use serde_json::json;
use stages_platform_store::{Delivery, Report};

use crate::platform::{Platform, report};
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
    let browser = served.browser().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_only_time_passes_for_is_not_shown_as_changed() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.run_first(FIRST).await;
    let changes = || served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    // What is deployed is so since another moment each time that this is asked.
    browser
        .client
        .goto(&format!("{}/applications?q=basket-worker+env%3Aproduction", served.url))
        .await
        .unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let times = "[...document.querySelectorAll('[data-row] time')].map((time) => time.dateTime).join()";
    browser.client.execute(&format!("window.times = {times}"), vec![]).await.unwrap();
    changes();
    browser.until(&format!("patched === 1 && {times} !== window.times")).await;
    let fresh = browser.client.execute("return document.querySelectorAll('.fresh').length", vec![]).await;
    assert_eq!(fresh.unwrap(), json!(0), "nothing but time passed");
    *served.fleet.degraded.lock().unwrap() = vec!["basket-worker".to_owned()];
    browser.client.execute("clock += 2000", vec![]).await.unwrap();
    changes();
    browser.until("document.querySelector('.fresh [aria-label=Degraded]')").await;
    browser.close().await;
}

/// Counts what is asked of rows that went.
const ASKS: &str = r#"
    window.previews = 0;
    const { fetch: ask } = window;
    window.fetch = (...all) => {
        if (String(all[0]).startsWith("/preview/")) window.previews += 1;
        return ask(...all);
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_life_of_an_application_stays_when_one_of_its_resources_goes() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    browser.run_first(ASKS).await;
    browser.goto(&format!("{}/applications/prod/argocd/shop?tab=resources", platform.url)).await;
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.until("document.querySelectorAll('main tr[data-row]').length === 2").await;
    let now = Timestamp::now().as_millisecond();
    let report = Report { version: Some(2), deleted: true, ..report(Some(("apps/v1", "Deployment")), now) };
    let runtime = platform.store.runtime_named("prod").await.unwrap().unwrap();
    let delivery = Delivery { runtime, key: [9; 32], keyed: true, epoch: None, era: 0, report };
    platform.store.keep(vec![delivery]).await.unwrap();
    browser.until("document.querySelectorAll('main tr[data-row]').length === 1").await;
    // Of a row that went it is asked at once how it is, to be told below the list; here is no such place, and the strip is none.
    let stays = "return [previews, document.querySelectorAll('.strip [data-handle]').length]";
    assert_eq!(browser.client.execute(stays, vec![]).await.unwrap(), json!([0, 2]));
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
    let browser = served.browser().await;
    browser.run_first(BEATS).await;
    browser.client.goto(&format!("{}/applications", served.url)).await.unwrap();
    browser.until("beats > 1 && document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.close().await;
}

/// Which streams the page holds, and a way to hide it.
const HIDES: &str = r#"
    window.streams = new Set();
    const { EventSource: Source } = window;
    window.EventSource = class extends Source {
        constructor(address) { super(address); streams.add(this); }
        close() { super.close(); streams.delete(this); }
    };
    window.hide = (is) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => is });
        document.dispatchEvent(new Event("visibilitychange"));
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_nobody_sees_holds_no_stream_and_is_told_what_it_missed_once_somebody_does() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.run_first(HIDES).await;
    browser.client.goto(&format!("{}/applications?group=health", served.url)).await.unwrap();
    let live = "streams.size === 1 && document.querySelector('[data-live]').dataset.state === 'live'";
    browser.until(live).await;
    browser.client.execute("hide(true)", vec![]).await.unwrap();
    browser.until("streams.size === 0").await;
    *served.fleet.degraded.lock().unwrap() = vec!["payments".to_owned(), "basket".to_owned()];
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser.client.execute("hide(false)", vec![]).await.unwrap();
    browser.until(live).await;
    let groups = "[...document.querySelectorAll('.group')].some((one) => one.textContent === 'Degraded · 2')";
    browser.until(groups).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_plain_http_what_cannot_be_copied_is_shown_to_be_copied_by_hand() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let insecure = "Object.defineProperty(navigator, 'clipboard', { value: undefined }); \
                    window.prompt = (...said) => { window.said = said; };";
    browser.run_first(insecure).await;
    browser.goto(&format!("{}/applications", served.url)).await;
    browser
        .client
        .execute("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'y' }))", vec![])
        .await
        .unwrap();
    browser.until("window.said?.[0] === 'Copy it' && window.said[1] === location.href").await;
    let shown = "const shown = document.querySelector('main'); \
                 shown.innerHTML = '<pre>to\\nken</pre><button data-copy=x>Copy</button>'; shown.lastChild.click()";
    browser.client.execute(shown, vec![]).await.unwrap();
    browser.until("getSelection().toString() === 'to\\nken'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_goes_to_its_group_and_the_cause_comes_and_goes_with_the_state() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let live = "document.querySelector('[data-live]').dataset.state === 'live'";
    let now_degraded = |names: &[&str]| {
        *served.fleet.degraded.lock().unwrap() = names.iter().map(|&name| name.to_owned()).collect();
        served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    };
    let basket = "eu-1/argocd-production/basket";
    browser.client.goto(&format!("{}/applications?group=health", served.url)).await.unwrap();
    browser.until(live).await;
    let group_of = |row: &str| {
        format!(
            "(() => {{ let one = document.querySelector('[data-key=\"{row}\"]'); \
             while (one && !one.matches('.group')) one = one.previousElementSibling; return one?.textContent; }})()"
        )
    };
    browser.until(&format!("{}.startsWith('Healthy')", group_of(basket))).await;
    now_degraded(&["payments", "basket"]);
    browser.until(&format!("{} === 'Degraded · 2'", group_of(basket))).await;
    now_degraded(&["basket"]);
    browser.until(&format!("{} === 'Degraded · 1'", group_of(basket))).await;

    browser.client.goto(&format!("{}/applications/{basket}", served.url)).await.unwrap();
    browser.until(live).await;
    browser.until("document.querySelector('.cause.bad')?.checkVisibility()").await;
    now_degraded(&[]);
    browser
        .until("!document.querySelector('.cause') && document.querySelector('.title [aria-label=Healthy]')")
        .await;
    now_degraded(&["basket"]);
    browser.until("document.querySelector('.cause.bad')?.checkVisibility()").await;
    browser.close().await;
}

/// Holds what is asked of the deployments until it is let go.
const HOLD: &str = r#"
    window.heard = 0;
    const { EventSource: Source, fetch: ask } = window;
    window.EventSource = class extends Source {
        constructor(address) {
            super(address);
            this.addEventListener("changed", () => { window.heard += 1; });
        }
    };
    window.fetch = async (url, ...more) => {
        const answer = await ask(url, ...more);
        if (new URL(url, location.href).pathname === "/deployments") await new Promise((go) => { window.letGo = go; });
        return answer;
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_somebody_goes_is_shown_although_the_page_that_they_leave_changes_meanwhile() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.run_first(HOLD).await;
    browser.client.goto(&format!("{}/applications", served.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.press("nav.side a[href='/deployments']").await;
    // That it comes is seen, however long it takes.
    browser.until("window.letGo && document.documentElement.dataset.coming").await;
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser.until("heard === 1").await;
    browser.client.execute("letGo()", vec![]).await.unwrap();
    browser.until("location.pathname === '/deployments' && document.title.startsWith('Deployments')").await;
    browser.until("!document.documentElement.dataset.coming").await;

    // Whoever is signed out elsewhere is told so, and not that the platform is away.
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.client.execute_async("const done = arguments[0]; fetch('/sign-out', { method: 'POST', redirect: 'manual' }).then(done)", vec![]).await.unwrap();
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser.until("document.querySelector('[data-live]').innerText === 'You are signed out: sign in'").await;
    browser.press("[data-live] a").await;
    browser.until("location.pathname === '/sign-in' && location.search === '?next=%2Fdeployments'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_time_alone_changes_is_read_again_once_a_minute() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.run_first(FIRST).await;
    browser.client.goto(&format!("{}/", served.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.client.execute("clock += 61_000", vec![]).await.unwrap();
    browser.until("asked === 1 && patched === 1 && heard === 0").await;
    // How far it is behind is seen, and is not read aloud each time that it is more.
    let read_aloud = "[...document.querySelector('[data-live]').childNodes].filter((one) => !one.ariaHidden && !one.hidden).map((one) => one.textContent).join('').trim()";
    let seen = "document.querySelector('[data-live]').innerText";
    // Nine seconds more every three, in which it is seen, and so no half a minute between two beats.
    let later = "(performance.now() - (window.later ?? 0) < 3_000 || (clock += 9_000, window.later = performance.now()))";
    browser.until(&format!("{later} && {read_aloud} === 'behind' && /^\\d+ s behind$/.test({seen})")).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_at_a_row_by_the_keyboard_stays_there_when_the_order_changes() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.client.goto(&format!("{}/applications?q=basket", served.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let basket = "document.querySelector('[data-key=\"eu-1/argocd-production/basket\"] a')";
    browser.client.execute(&format!("{basket}.focus()"), vec![]).await.unwrap();
    let place =
        "[...document.querySelectorAll('[data-row]')].indexOf(document.activeElement.closest('[data-row]'))";
    let before = browser.client.execute(&format!("return {place}"), vec![]).await.unwrap();
    assert!(before.as_i64().is_some_and(|place| place > 0), "{before}");
    served.fleet.degraded.lock().unwrap().push("basket".to_owned());
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser
        .until(&format!("document.querySelector('[data-row] [aria-label=Degraded]') && {place} === 0"))
        .await;
    browser.until(&format!("document.activeElement === {basket}")).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_former_version_is_loaded_anew_with_its_scripts_unless_somebody_is_at_something() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.client.goto(&format!("{}/applications?q=basket", served.url)).await.unwrap();
    let live = "document.querySelector('[data-live]').dataset.state === 'live'";
    let changes = || served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    // It was loaded before the platform was upgraded.
    let former = "window.is_former = true; document.querySelector('script[type=module]').src = '/assets/former/console.js'; \
                  document.addEventListener('patched', () => { window.patched = true; });";
    browser.until(live).await;
    browser.client.execute(former, vec![]).await.unwrap();
    browser.client.execute("document.getElementById('help').showModal()", vec![]).await.unwrap();
    changes();
    browser.until("window.is_former && window.patched").await;
    browser.client.execute("document.getElementById('help').close()", vec![]).await.unwrap();
    changes();
    browser.until(&format!("!window.is_former && location.search === '?q=basket' && {live}")).await;
    browser.client.execute(former, vec![]).await.unwrap();
    browser.press("nav.side a[href='/deployments']").await;
    browser.until(&format!("!window.is_former && location.pathname === '/deployments' && {live}")).await;
    browser.close().await;
}

/// A clock that stands until a test moves it, what the page asked for, and how often it heard that the stream lives.
const STANDS: &str = r#"{
    window.clock = 1_000_000_000_000;
    Date.now = () => window.clock;
    window.asked = [];
    window.beats = 0;
    const { EventSource: Source, fetch: ask } = window;
    window.EventSource = class extends Source {
        constructor(address) {
            super(address);
            this.addEventListener("beat", () => { window.beats += 1; });
        }
    };
    window.fetch = (url, ...more) => {
        window.asked.push(new URL(url, location.href).pathname);
        return ask(url, ...more);
    };
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_fills_in_stays_while_the_platform_is_upgraded() {
    let served = Served::new().await;
    let browser = served.browser().await;
    served.member().await;
    browser.run_first(STANDS).await;
    browser.client.goto(&format!("{}/settings/users?name=lin", served.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let former = "window.is_former = true; document.querySelector('script[type=module]').src = '/assets/former/console.js'; \
                  document.addEventListener('patched', () => { window.patched = true; }); \
                  document.querySelector('#teams').value = 'half of it'; clock += 61_000";
    browser.client.execute(former, vec![]).await.unwrap();
    browser
        .until(
            "window.patched && window.is_former && document.querySelector('#teams').value === 'half of it'",
        )
        .await;
    // Whoever goes on has the scripts of the version that is there.
    browser.press("nav.side a[href='/deployments']").await;
    browser.until("location.pathname === '/deployments'").await;
    browser.client.execute("clock += 61_000", vec![]).await.unwrap();
    browser
        .until("!window.is_former && document.querySelector('[data-live]')?.dataset.state === 'live'")
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_shown_once_stays_there_for_as_long_as_somebody_looks_at_it() {
    let served = Served::new().await;
    let browser = served.browser().await;
    served.member().await;
    browser.run_first(STANDS).await;
    browser.goto(&format!("{}/settings/users?name=lin", served.url)).await;
    browser.press(".acts form button").await;
    browser.press("#act .primary").await;
    let link = "document.querySelector('.command pre')?.textContent.includes('/welcome?token=')";
    browser.until(&format!("location.pathname === '/settings/users/act' && {link}")).await;
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    // Nothing else is at that address, which is asked for each minute where a page may be read again.
    browser.client.execute("clock += 61_000; window.beats = 0", vec![]).await.unwrap();
    browser.until("beats > 1").await;
    assert_eq!(browser.client.execute("return asked", vec![]).await.unwrap(), json!([]));
    browser.until(link).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_row_nothing_is_shown_of_another_one_where_the_platform_does_not_answer() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}/applications?group=none", served.url)).await;
    browser.keys("j").await;
    browser.until("document.querySelector('#preview h2')").await;
    let away = "window.fetch = () => Promise.reject(new TypeError('away'))";
    browser.client.execute(away, vec![]).await.unwrap();
    browser.keys("j").await;
    let second = "document.querySelectorAll('[data-row]')[1].getAttribute('aria-selected') === 'true'";
    browser.until(&format!("{second} && !document.querySelector('#preview h2')")).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ages_are_those_of_the_platforms_clock_however_wrong_the_browsers_is() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.run_first("{ const { now } = Date; Date.now = () => now() + 3 * 86_400_000; }").await;
    let application = format!("{}/applications/eu-1/argocd-production/payments", served.url);
    browser.client.goto(&application).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let is_new = r"/^as of (now|\d+ (s|min) ago)$/.test(document.querySelector('.as-of').textContent)";
    browser.until(is_new).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_and_signs_do_nothing_any_more_for_whoever_says_so() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let open = || async {
        browser.goto(&format!("{}/applications", served.url)).await;
    };
    let after = async |key: &str, css: &str| {
        let script = format!(
            "document.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }})); \
             const is = Boolean(document.querySelector('{css}')); document.getElementById('help').close(); return is"
        );
        browser.client.execute(&script, vec![]).await.unwrap()
    };
    open().await;
    assert_eq!(after("?", "#help[open]").await, json!(true));
    browser.press("[data-help]").await;
    browser.press("#help input").await;
    let close = async || {
        browser.client.execute("document.getElementById('help').close()", vec![]).await.unwrap();
    };
    for _ in 0..2 {
        close().await;
        assert_eq!(after("?", "#help[open]").await, json!(false));
        assert_eq!(after("j", "[data-row][aria-selected=true]").await, json!(false));
        assert_eq!(after("ArrowDown", "[data-row][aria-selected=true]").await, json!(true));
        // It is kept for the next page.
        open().await;
    }
    browser.press("[data-help]").await;
    browser.press("#help input").await;
    close().await;
    assert_eq!(after("j", "[data-row][aria-selected=true]").await, json!(true));
    browser.close().await;
}
