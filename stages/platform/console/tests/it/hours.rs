//! The hours of an application's life: as few as an incident has, on the clock of whoever looks.

use jiff::Timestamp;
use serde_json::json;

use crate::sample::Sample;
use crate::served::Served;

const PAGE: &str = "/applications/eu-1/argocd-production/payments?q=env%3Aproduction";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strip_shows_an_hour_and_six_on_the_clock_of_whoever_looks_and_days_as_those_of_utc() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": "Asia/Kolkata"})).await;
    let axis = "document.querySelector('.life [data-zone]')?.textContent";
    let hours = "[...document.querySelectorAll('.life [data-hour]')]";
    let clock = "(new Intl.DateTimeFormat(undefined, { timeZone: 'Asia/Kolkata', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }))";
    let as_there =
        format!("{hours}.every((one) => one.textContent === {clock}.format(Number(one.dataset.hour)))");
    browser.goto(&format!("{}{PAGE}", served.url)).await;
    for (name, query) in [("1 h", "hours=1"), ("6 h", "hours=6"), ("24 h", "days=1")] {
        let link = format!(
            "[...document.querySelectorAll('.life nav a')].find((one) => one.textContent === '{name}')"
        );
        browser.until(&format!("({link})?.click() ?? true")).await;
        browser.until(&format!("location.search.includes('{query}') && {link}.ariaCurrent === 'true'")).await;
        browser.until(&format!("{axis} === 'GMT+5:30' && {hours}.length >= 5 && {as_there}")).await;
        browser.shot(&format!("strip-{}", query.replace('=', "-"))).await;
    }
    browser.until(&format!("{hours}[0].textContent.endsWith(':30')")).await;
    browser.goto(&format!("{}{PAGE}&days=7", served.url)).await;
    browser.until(&format!("!{axis} && !{hours}.length && [...document.querySelectorAll('.life .label')].some((one) => one.textContent === 'UTC')")).await;
    browser.shot("strip-days-7").await;
    browser.view(390, 844, true).await;
    browser.until("document.documentElement.scrollWidth <= innerWidth").await;
    browser.shot("strip-390").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strip_names_the_zone_that_held_then_whatever_the_season_is_now() {
    let winter: fn() -> Timestamp = || "2026-01-15T12:00:00Z".parse().unwrap();
    let summer: fn() -> Timestamp = || "2026-07-15T12:00:00Z".parse().unwrap();
    for (clock, zone) in [(winter, "GMT+1"), (summer, "GMT+2")] {
        let served = Served::with(Sample::new(), clock).await;
        let browser = served.browser().await;
        browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": "Europe/Berlin"})).await;
        browser.client.goto(&format!("{}{PAGE}&hours=6", served.url)).await.unwrap();
        browser
            .until(&format!("document.querySelector('.life [data-zone]')?.textContent === '{zone}'"))
            .await;
        browser.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_deployment_is_reached_by_the_pointer_although_the_earlier_moment_is_that_of_it() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}{PAGE}", served.url)).await;
    let reached = "(() => { \
        const mark = [...document.querySelectorAll('.life a.mark')].at(-1); \
        const box = mark.querySelector('circle').getBoundingClientRect(); \
        return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest('a.mark') === mark; \
    })()";
    browser.until(reached).await;
    browser.close().await;
}
