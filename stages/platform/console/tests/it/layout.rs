//! How pages stand in a window, wide and narrow, on paper, without scripts and in colours of somebody's own: nothing is cut off that
//! nothing leads to.

use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::{By, Scope};

use crate::browser::Browser;
use crate::journey::sign_in;
use crate::sample::Sample;
use crate::served::Served;

/// No part of it is a place where a line may break.
const LONG: &str = "aVeryLongNameThatSomebodyMadeOfTheNamesOfATeamAndAProductAndARegionAndAnEnvironment";

/// The lists of a page that are wider than the place that they have, and that cannot be moved in it.
const CUT: &str = "[...document.querySelectorAll('main .list')] \
    .filter((list) => list.scrollWidth > list.clientWidth && getComputedStyle(list).overflowX === 'hidden') \
    .map((list) => list.ariaLabel ?? list.className)";

async fn is(browser: &Browser, what: &str) -> Value {
    browser.client.execute(&format!("return {what}"), vec![]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_cut_off_that_nothing_leads_to() {
    let mut sample = Sample::new();
    sample.hostile = Some(LONG.to_owned());
    let served = Served::with(sample, Timestamp::now).await;
    let browser = Browser::open(1_280, 900).await;
    sign_in(&browser, &served.link().await).await;
    let (by, now) = (By { who: "admin".to_owned(), how: "session" }, Timestamp::now().as_millisecond());
    served.store.add_key(&by, LONG, Scope::of("read").unwrap(), now + 86_400_000, now).await.unwrap();
    let go = async |path: &str| {
        browser.goto(&format!("{}{path}", served.url)).await;
    };
    let timeline = format!("/applications/{LONG}/{LONG}/{LONG}?tab=timeline");
    let who = "document.querySelector('[data-row] .who')";

    // Wide: one long name takes no column away from the others.
    browser.view(1_280, 900, false).await;
    for path in ["/", "/applications?group=none", "/deployments", "/resources"] {
        go(path).await;
        browser
            .shot(&format!(
                "long{}-1280-light",
                path.split('?').next().unwrap().replace(LONG, "x").replace('/', "-")
            ))
            .await;
        assert_eq!(is(&browser, CUT).await, json!([]), "{path}, 1280 wide");
        assert_eq!(is(&browser, &format!("{who}?.checkVisibility() ?? false")).await, false, "{path}");
    }
    go("/").await;
    let reason = "getComputedStyle(document.querySelector('td.why')).display";
    assert_eq!(is(&browser, reason).await, "table-cell", "why something needs somebody stands in its row");

    // Narrow: what does not fit is wrapped, or there by moving it, and who did it is said.
    browser.view(390, 844, true).await;
    for path in
        ["/", "/applications?group=none", "/deployments", "/audit", "/settings", "/settings/users", &timeline]
    {
        go(path).await;
        browser
            .shot(&format!(
                "long{}-390-dark",
                path.split('?').next().unwrap().replace(LONG, "x").replace('/', "-")
            ))
            .await;
        assert_eq!(is(&browser, CUT).await, json!([]), "{path}, 390 wide");
        let fits = "document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(is(&browser, fits).await, true, "{path} is no wider than its window");
        let reaches = "[...document.querySelectorAll('.side a, .side button')] \
            .every((one) => !one.checkVisibility() || one.getBoundingClientRect().right <= innerWidth)";
        assert_eq!(is(&browser, reaches).await, true, "{path}: every way on is seen");
        let tabs = "[...document.querySelectorAll('.tabs a')].every((one) => one.getBoundingClientRect().right <= innerWidth)";
        assert_eq!(is(&browser, tabs).await, true, "{path}: every tab is seen, and which it is");
        if path.starts_with("/applications") || path == "/deployments" {
            let said = format!("{who}?.checkVisibility() && {who}.textContent.includes('{LONG}')");
            assert_eq!(is(&browser, &said).await, true, "{path}: who");
        }
    }
    go("/").await;
    let wrapped =
        "[...document.querySelectorAll('td.why')].every((cell) => cell.scrollWidth <= cell.clientWidth)";
    assert_eq!(is(&browser, wrapped).await, true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_those_of_whoever_reads_and_a_page_is_whole_on_paper_and_without_scripts() {
    let served = Served::new().await;
    let browser = Browser::open(1_280, 900).await;
    sign_in(&browser, &served.link().await).await;
    let go = async |path: &str| {
        browser.client.goto(&format!("{}{path}", served.url)).await.unwrap();
    };
    let application = "/applications/eu-1/argocd-production/payments?tab=compare";
    browser.devtools("Emulation.setTimezoneOverride", json!({ "timezoneId": "Asia/Kolkata" })).await;
    let (by, now) = (By { who: "admin".to_owned(), how: "session" }, Timestamp::now().as_millisecond());
    served.store.add_key(&by, "ci", Scope::of("read").unwrap(), now + 86_400_000, now).await.unwrap();
    for path in ["/audit", "/settings", "/settings/users"] {
        go(path).await;
        browser.until("document.documentElement.dataset.ready").await;
        let local = "[...document.querySelectorAll('main td time')].map((time) => /UTC|Z$/.test(time.textContent) || !/:\\d\\d:\\d\\d/.test(time.title))";
        let told = is(&browser, local).await;
        assert!(
            !told.as_array().unwrap().is_empty() && !told.as_array().unwrap().contains(&json!(true)),
            "{path}: {told}"
        );
    }
    go(application).await;
    browser.until("document.documentElement.dataset.ready").await;
    let handle = is(&browser, "document.querySelector('[data-handle]').getAttribute('aria-valuetext')").await;
    assert!(!handle.as_str().unwrap().contains("UTC"), "{handle}");
    // An hour alone is one of today.
    let told = r#"
        const done = arguments[arguments.length - 1];
        import(document.querySelector("script[type=module]").src.replace("console.js", "time.js")).then(({ tell }) => {
            const place = document.createElement("p");
            for (const hours of [0, 25]) {
                const time = document.createElement("time");
                time.dateTime = new Date(Date.now() - hours * 3_600_000).toISOString();
                time.dataset.clock = "";
                place.append(time);
            }
            tell(place);
            done([...place.children].map((time) => time.textContent.length));
        });
    "#;
    let told = browser.client.execute_async(told, vec![]).await.unwrap();
    assert!(told[0] == 5 && told[1].as_u64().unwrap() > 5, "{told}");

    browser.devtools("Emulation.setEmulatedMedia", json!({ "media": "print" })).await;
    let seen = |css: &str| format!("getComputedStyle(document.querySelector('{css}')).display !== 'none'");
    for away in [".side", ".bar", "[data-act]"] {
        assert_eq!(is(&browser, &seen(away)).await, false, "{away} is nothing on paper");
    }
    assert_eq!(is(&browser, "getComputedStyle(document.querySelector('.source')).maxHeight").await, "none");
    browser.devtools("Emulation.setEmulatedMedia", json!({ "media": "" })).await;

    browser.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    go(application).await;
    for away in ["[data-live]", "[data-act]"] {
        assert_eq!(is(&browser, &seen(away)).await, false, "{away} does nothing without scripts");
    }
    browser.shot("without-scripts-1280").await;
    let page = browser.client.source().await.unwrap();
    assert!(page.contains("Without JavaScript"), "{page}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_chosen_is_seen_in_whatever_colours_somebody_has() {
    let served = Served::new().await;
    let browser = Browser::open(1_280, 900).await;
    sign_in(&browser, &served.link().await).await;
    let own = json!({ "features": [{ "name": "forced-colors", "value": "active" }] });
    browser.devtools("Emulation.setEmulatedMedia", own).await;
    let application = "/applications/eu-1/argocd-production/payments?tab=resources";
    browser.goto(&format!("{}{application}", served.url)).await;
    assert_eq!(is(&browser, "matchMedia('(forced-colors: active)').matches").await, true);
    let tab =
        |css: &str| format!("getComputedStyle(document.querySelector('.tabs a{css}')).borderBottomColor");
    let differ = format!("{} !== {}", tab("[aria-current]"), tab(":not([aria-current])"));
    assert_eq!(is(&browser, &differ).await, true, "one tab alone is underlined");
    browser.keys("j").await;
    browser.until("document.querySelector('tr[aria-selected=true]')").await;
    browser
        .client
        .execute("document.dispatchEvent(new KeyboardEvent('keydown', { key: ':' }))", vec![])
        .await
        .unwrap();
    browser.until("document.querySelector('#found a[aria-selected=true]')").await;
    for chosen in [".side a[aria-current]", "tr[aria-selected=true]", "#found a[aria-selected=true]"] {
        let outline = format!("getComputedStyle(document.querySelector('{chosen}')).outlineStyle");
        assert_eq!(is(&browser, &outline).await, "solid", "{chosen}");
    }
    browser.close().await;
}
