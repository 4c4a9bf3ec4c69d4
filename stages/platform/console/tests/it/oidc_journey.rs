//! What somebody sees in a browser who comes in by the provider, or links who they are there.

use std::sync::atomic::{AtomicI64, Ordering};

use fantoccini::key::Key;
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use sha2::Digest as _;

use crate::browser::Browser;
use crate::oidc::{served, still};

/// The provider's own form.
async fn says_who(browser: &Browser, login: &str) {
    browser.until("document.title === 'Example Identity'").await;
    browser.type_into("[name=login]", &format!("{login}{}", char::from(Key::Enter))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_comes_in_by_the_provider_and_is_at_the_link_that_they_opened() {
    let (served, _provider, _) = served(Timestamp::now, |by| by).await;
    let browser = Browser::open(1_440, 900).await;
    let wanted = format!("{}/applications?q=health:degraded", served.url);
    for (width, height) in [(1_440, 900), (390, 844)] {
        for dark in [false, true] {
            browser.client.goto(&wanted).await.unwrap();
            browser.view(width, height, dark).await;
            browser.until("location.pathname === '/sign-in' && document.querySelector('a.provider')").await;
            browser.until("document.documentElement.scrollWidth <= innerWidth").await;
            browser.shot(&format!("sign-in-{width}-{}", if dark { "dark" } else { "light" })).await;
        }
    }
    browser.client.goto(&wanted).await.unwrap();
    let button = browser.find("a.provider").await;
    assert_eq!(button.text().await.unwrap(), "Sign in with Example");
    button.click().await.unwrap();
    says_who(&browser, "mia").await;
    browser.until("document.documentElement.dataset.ready && location.pathname === '/applications'").await;
    assert_eq!(browser.address().await.as_str(), wanted);
    browser.until("document.querySelectorAll('[data-row]').length === 1").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_links_who_they_are_and_comes_in_by_it_from_then_on() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    provider.person("a-1", &[]).await;
    let browser = Browser::open(1_440, 900).await;
    let sign_in = format!("{}/sign-in?next=%2Fsettings", served.url);
    browser.client.goto(&sign_in).await.unwrap();
    let tab = char::from(Key::Tab).to_string();
    browser.type_into("#name", &format!("ada{tab}correct horse battery{}", char::from(Key::Enter))).await;
    browser.press("#identity button[value=link]").await;
    says_who(&browser, "a-1").await;
    browser
        .until("document.querySelector('#identity')?.textContent.includes('You are known there as a-1.')")
        .await;
    browser.shot("identity").await;
    browser.client.delete_all_cookies().await.unwrap();
    browser.client.goto(&sign_in).await.unwrap();
    browser.press("a.provider").await;
    says_who(&browser, "a-1").await;
    browser.until("document.querySelector('nav.side')?.textContent.includes('Sign out ada')").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_to_come_in_by_the_provider_again_is_led_to_its_button() {
    static LATER: AtomicI64 = AtomicI64::new(0);
    fn later() -> Timestamp {
        still() + SignedDuration::from_secs(LATER.load(Ordering::SeqCst))
    }
    let (served, _provider, _) = served(later, |by| by).await;
    assert_eq!(served.comes_back("mia").await.0, StatusCode::SEE_OTHER);
    let digest = sha2::Sha256::digest("of-mia").into();
    served.store.keep_session(digest, "mia", 0, i64::MAX).await.unwrap();
    LATER.store(30 * 86_400, Ordering::SeqCst);
    let browser = Browser::open(1_440, 900).await;
    browser.client.goto(&format!("{}/sign-in", served.url)).await.unwrap();
    browser.client.execute("document.cookie = 'session=of-mia; path=/'", vec![]).await.unwrap();
    browser.goto(&format!("{}/runtimes", served.url)).await;
    browser.press("main p.warn a").await;
    browser.until("location.pathname === '/sign-in' && document.querySelector('a.provider')").await;
    browser.close().await;
}
