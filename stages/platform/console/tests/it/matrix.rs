//! The same application in each environment, of what was reported; and by the keyboard.

use fantoccini::key::Key;
use jiff::Timestamp;
use stages_platform_store::{Delivery, Role};

use crate::browser::Browser;
use crate::journey::sign_in;
use crate::platform::{Platform, report};
use crate::served::Served;

#[tokio::test]
async fn what_is_reported_stands_by_name_and_environment_with_its_version_and_by_product() {
    let platform = Platform::new().await;
    let runtime = platform.store.runtime_named("prod").await.unwrap().unwrap();
    let now = Timestamp::now().as_millisecond() - 60_000;
    let all = [
        ("pay-staging", "staging", "web:1.3", "Healthy", "Synced"),
        ("pay-production", "production", "web:1.2", "Degraded", "OutOfSync"),
        ("mail-staging", "staging", "mail:7", "Healthy", "Synced"),
        ("mail-production", "production", "mail:7", "Healthy", "Synced"),
    ];
    for (key, (name, environment, image, health, sync)) in (100_u8..).zip(all) {
        let mut one = report(None, now);
        one.uid = name.to_owned();
        one.entity.app_name = name.to_owned();
        one.images = format!("[\"{image}\"]");
        (one.health, one.sync) = (Some(health.to_owned()), Some(sync.to_owned()));
        one.placement.labels = vec![("env".to_owned(), environment.to_owned())];
        one.placement.product = if name.starts_with("pay") { "Checkout" } else { "" }.to_owned();
        let delivery = Delivery { runtime, key: [key; 32], keyed: true, epoch: None, era: 0, report: one };
        platform.store.keep(vec![delivery]).await.unwrap();
    }
    let session = platform.session("ada", Role::Admin).await;
    let page = async |path: &str| platform.page(&session, path).await;
    let matrix = page("/applications?q=env:staging,production&group=matrix&sort=name").await;
    let place = |text: &str| matrix.find(text).unwrap_or_else(|| panic!("{text}: {matrix}"));
    assert!(place("<th scope=\"col\">staging</th>") < place("<th scope=\"col\">production</th>"));
    assert!(place("<th scope=\"row\">mail</th>") < place("<th scope=\"row\">pay</th>"));
    // Where it runs another version than before stands out, and what needs attention says so.
    let mail = matrix.split("<th scope=\"row\">mail</th>").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(mail.contains("<td class=\"same\">") && mail.matches("<code>7</code>").count() == 2, "{mail}");
    let pay = matrix.split("<th scope=\"row\">pay</th>").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(
        !pay.contains("class=\"same\"")
            && pay.contains("<code>1.3</code>")
            && pay.contains("<code>1.2</code>"),
        "{pay}"
    );
    assert_eq!(
        (pay.matches("aria-label=\"Degraded\"").count(), pay.matches("aria-label=\"OutOfSync\"").count()),
        (1, 1)
    );
    assert!(matrix.contains("2 names of 4 of 5 applications"), "{matrix}");
    let nothing = page("/applications?q=nowhere&group=matrix").await;
    assert!(nothing.contains("Nothing matches") && nothing.contains("5 applications are known"), "{nothing}");
    // From inside one of them, the next is the one beside it.
    let inside =
        page("/applications/prod/argocd/mail-staging?q=env%3Astaging%2Cproduction&group=matrix&sort=name")
            .await;
    assert!(inside.contains("2 of 4") && inside.contains("/applications/prod/argocd/pay-"), "{inside}");

    // Those that have no environment, and are more than a cell shows, are led to as well.
    for key in 120_u8..124 {
        let mut one = report(None, now);
        (one.uid, one.entity.app_namespace) = (format!("lone-{key}"), format!("argocd-{key}"));
        one.entity.app_name = "lone".to_owned();
        let delivery = Delivery { runtime, key: [key; 32], keyed: true, epoch: None, era: 0, report: one };
        platform.store.keep(vec![delivery]).await.unwrap();
    }
    let matrix = page("/applications?q=lone&group=matrix").await;
    let link = "/applications?q=lone+env%3A-&group=none";
    assert!(matrix.contains(&format!("<a href=\"{}\">+1</a>", link.replace('&', "&amp;"))), "{matrix}");
    let nowhere = page(link).await;
    assert_eq!(nowhere.matches(">lone</a>").count(), 4, "{nowhere}");

    let products = page("/applications?group=product&sort=name").await;
    assert!(products.contains("Checkout · 2") && products.contains("no product · 7"), "{products}");
    let one = page("/applications?q=product:Checkout").await;
    assert!(one.contains(">pay-staging</a>") && !one.contains(">mail-staging</a>"), "{one}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_matrix_is_chosen_walked_and_left_by_the_keyboard_alone() {
    let served = Served::new().await;
    let browser = Browser::open(390, 844).await;
    sign_in(&browser, &served.link().await).await;
    browser.goto(&format!("{}/applications", served.url)).await;
    browser.tab_to("select[name=group]").await;
    browser.keys("m").await;
    browser.until("new URLSearchParams(location.search).get('group') === 'matrix' && document.querySelector('.matrix')").await;
    assert_eq!(
        browser
            .client
            .execute("return document.querySelectorAll('.matrix [data-row]').length", vec![])
            .await
            .unwrap(),
        24
    );
    // Whoever has a narrow screen moves the table, not the page.
    browser.until("document.documentElement.scrollWidth <= innerWidth").await;
    browser.tab_to("[data-application]").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('.position')?.textContent.endsWith('of 48')").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("document.querySelector('.matrix')").await;
    browser.close().await;
}
