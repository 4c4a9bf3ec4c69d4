//! Forms in a browser, by the keyboard: what a rule would do stands there while it is written, and what cannot be taken back is
//! asked for.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::json;
use stages_platform_store::{By, Scope};

use crate::browser::Browser;
use crate::platform::Platform;
use crate::served::Served;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_says_what_it_would_do_while_it_is_written_and_goes_once_that_is_confirmed() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    browser.goto(&format!("{}/settings/rules?edit=new", platform.url)).await;
    let (enter, escape) = (char::from(Key::Enter).to_string(), char::from(Key::Escape).to_string());

    // Typing alone shows it: nothing is kept yet.
    browser.tab_to("#rule-teams").await;
    browser.keys("shop").await;
    let effect = "Nobody gains anything yet, for 1 application: prod/shop.";
    browser.until(&format!("document.querySelector('#preview').textContent.startsWith('{effect}')")).await;
    assert!(platform.store.rules().await.unwrap().is_empty());
    browser.keys(&enter).await;
    let sentence = "Members of shop may view all applications.";
    browser
        .until(&format!("document.querySelector('.rules')?.textContent.includes('{sentence}') && !document.querySelector('.editor')"))
        .await;

    // What takes it away says what that does, and Escape leaves it.
    browser.until("document.documentElement.dataset.ready").await;
    browser.tab_to("[data-confirm] button").await;
    browser.keys(&enter).await;
    let what = "Whoever may something by this rule alone may it no more, at once.";
    browser.until(&format!("document.querySelector('dialog[open] p')?.textContent === '{what}'")).await;
    browser.keys(&escape).await;
    browser
        .until("!document.querySelector('dialog[open]') && document.activeElement.matches('[data-confirm] button')")
        .await;
    assert_eq!(platform.store.rules().await.unwrap().len(), 1);
    browser.keys(&enter).await;
    browser.tab_to("dialog[open] .primary").await;
    browser.keys(&enter).await;
    browser.until("document.querySelector('.rules')?.textContent.includes('There is no rule yet')").await;
    assert!(platform.store.rules().await.unwrap().is_empty());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_taken_back_once_that_is_confirmed() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let (by, now) = (By { who: "admin".to_owned(), how: "session" }, Timestamp::now().as_millisecond());
    served.store.add_key(&by, "ci", Scope::of("read").unwrap(), now + 86_400_000, now).await.unwrap();
    browser.goto(&format!("{}/settings", served.url)).await;
    browser.press("main td.act button").await;
    let what = "Programs that send ci are refused at once. It does not come back: another is made below.";
    browser.until(&format!("document.querySelector('dialog[open] p')?.textContent === '{what}'")).await;
    browser.press("dialog[open] .primary").await;
    browser.until("document.querySelector('main table')?.textContent.includes('You have no key yet')").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_sent_once_however_often_somebody_clicks() {
    let served = Served::new().await;
    let browser = Browser::open(1_440, 900).await;
    let twice = "const sent = []; addEventListener('submit', (event) => sent.push(!event.defaultPrevented)); \
                 const button = document.querySelector('main form .primary'); button.click(); button.click(); return sent";
    let link = served.link().await;
    browser.goto(&link).await;
    let password = "document.querySelector('#password').value = 'correct horse battery'";
    browser.client.execute(password, vec![]).await.unwrap();
    assert_eq!(browser.client.execute(twice, vec![]).await.unwrap(), json!([true, false]));
    browser.until("document.documentElement.dataset.ready && location.pathname === '/'").await;
    // The token of a runtime is shown once: a second answer would be that there is such a runtime already.
    browser.goto(&format!("{}/runtimes/add", served.url)).await;
    browser.client.execute("document.querySelector('#name').value = 'eu9'", vec![]).await.unwrap();
    assert_eq!(browser.client.execute(twice, vec![]).await.unwrap(), json!([true, false]));
    browser.until("document.querySelector('[data-once]')").await;
    browser.close().await;
}
