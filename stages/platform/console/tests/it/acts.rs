//! Acts, in a browser, over a real store and the real way to a runtime: what is said before, what is done, and what is said against.

use fantoccini::Locator;
use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::json;
use sha2::Digest as _;
use stages_platform_store::{Account, Action, Attribute, AttributeName, Entity, Role, Rule};
use tokio::net::TcpListener;

use crate::browser::Browser;
use crate::platform::{Platform, by};

/// Remembers what was said, which stands there for a moment only.
async fn listen(browser: &Browser) {
    let script = "const said = document.querySelector('#said'); window.said = []; \
        new MutationObserver(() => window.said.push(said.textContent)).observe(said, { childList: true })";
    browser.client.execute(script, vec![]).await.unwrap();
}

async fn press(browser: &Browser, css: &str) {
    browser.find(css).await.click().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_says_what_it_will_do_does_it_as_whoever_asked_and_shows_what_is_said_against_it() {
    let platform = Platform::new().await;
    let browser = Browser::open(1_440, 900).await;
    browser.client.goto(&platform.link).await.unwrap();
    browser.find("#password").await.send_keys("correct horse battery").await.unwrap();
    press(&browser, "form button").await;
    browser.until("document.documentElement.dataset.ready && location.pathname === '/'").await;
    let page = format!("{}/applications/prod/argocd/shop", platform.url);
    browser.client.goto(&page).await.unwrap();
    browser.until("document.documentElement.dataset.ready").await;

    listen(&browser).await;
    // By the keyboard: what changes is shown, then it is done; what Git has no longer stays unless it is said.
    browser.keys("s").await;
    browser.until("document.querySelector('#act .diff .new')?.textContent.includes('replicas: 3')").await;
    let said = browser.find("#act").await.text().await.unwrap();
    assert!(said.contains("This makes the cluster what Git says of shop."), "{said}");
    assert!(
        said.contains("2 resources are not as Git says:")
            && said.contains("Secret/<b>old is no longer in Git"),
        "{said}"
    );
    let looked = platform.came();
    assert_eq!(looked.len(), 1, "looking changes nothing");
    browser.shot("act-sync").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser
        .until("!document.querySelector('#act') && window.said.includes('shop: sync was asked for')")
        .await;
    let (who, body) = platform.came().pop().unwrap();
    assert_eq!(who, "admin");
    assert!(body["query"].as_str().unwrap().contains("syncApplication"));
    let application = json!({"runtime": "prod", "namespace": "argocd", "name": "shop"});
    assert_eq!(body["variables"], json!({"application": application, "options": {"prune": false}}));
    assert_eq!(platform.store.audit(i64::MAX, 1).await.unwrap()[0].subject, "prod: syncApplication");

    // A refusal stays where it was asked for.
    press(&browser, "[data-act=rollback]").await;
    browser.until("document.querySelectorAll('#act [name=id]').length === 2").await;
    browser.shot("act-rollback").await;
    press(&browser, "#act .primary").await;
    let refused = "'admin' may not: rule 4 allows APP_ROLLBACK of gitopsApplications, and not of this one";
    browser
        .until(&format!("document.querySelector('#act [role=alert]').textContent === \"{refused}\""))
        .await;
    let (_, body) = platform.came().pop().unwrap();
    assert_eq!(body["variables"]["options"], json!({"id": 7}));
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#act')").await;

    // Of a resource: a rollout is paused, and lines of its log are text.
    browser.client.goto(&format!("{page}?tab=resources&r=argoproj.io%2FRollout%2Fshop%2Fweb")).await.unwrap();
    browser.until("document.documentElement.dataset.ready").await;
    listen(&browser).await;
    press(&browser, "[data-act=pause]").await;
    press(&browser, "#act .primary").await;
    browser
        .until("!document.querySelector('#act') && window.said.includes('Rollout web: pause was asked for')")
        .await;
    let (_, body) = platform.came().pop().unwrap();
    assert_eq!(
        body["variables"],
        json!({"application": application, "rollout": {"namespace": "shop", "name": "web"}})
    );
    press(&browser, "[data-act=logs]").await;
    browser
        .until("document.querySelector('#act pre').textContent === 'web-1  one <img src=x>\\nweb-1  two\\n'")
        .await;
    browser.shot("act-logs").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#act')").await;

    // A runtime that cannot be reached is told with what to do.
    let nowhere = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    platform.at(&format!("http://{nowhere}")).await;
    press(&browser, "[data-act=refresh]").await;
    press(&browser, "#act .primary").await;
    browser.until(&format!("document.querySelector('#act [role=alert]').textContent.startsWith(\"runtime 'prod' cannot be reached at {nowhere}: \")")).await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_no_rule_allows_says_so_before_it_is_asked_for() {
    let platform = Platform::new().await;
    let (store, now) = (&platform.store, Timestamp::now().as_millisecond());
    let lin = Account { name: "lin".to_owned(), password: "none".to_owned(), role: Role::Member };
    store.add_person(&by(), &lin, now).await.unwrap();
    store.set_teams(&by(), "lin", &["shop".to_owned()], now).await.unwrap();
    let rule = Rule {
        id: 0,
        entity_type: Entity::GitopsApplications,
        teams: vec!["shop".to_owned()],
        tags: Vec::new(),
        actions: vec![Action::View, Action::Refresh],
        attributes: vec![Attribute { name: AttributeName::Runtime, key: None, value: "prod".to_owned() }],
    };
    store.add_rule(&by(), &rule, now).await.unwrap();
    store.keep_session(sha2::Sha256::digest(b"lins").into(), "lin", now, now + 86_400_000).await.unwrap();
    let browser = Browser::open(1_440, 900).await;
    browser.client.goto(&format!("{}/sign-in", platform.url)).await.unwrap();
    browser.client.execute("document.cookie = 'session=lins; path=/'", vec![]).await.unwrap();
    browser.client.goto(&format!("{}/applications/prod/argocd/shop", platform.url)).await.unwrap();
    browser.until("document.documentElement.dataset.ready").await;
    let disabled = "[...document.querySelectorAll('[data-act]')].map((one) => `${one.dataset.act} ${one.getAttribute('aria-disabled')}`).join()";
    browser.until(&format!("{disabled} === 'sync true,refresh null,rollback true'")).await;
    listen(&browser).await;
    let why = "No rule of your teams lets you sync it: an admin can add one.";
    let sync = browser.client.find(Locator::Css("[data-act=sync]")).await.unwrap();
    assert_eq!(sync.attr("title").await.unwrap().as_deref(), Some(why));
    browser.keys("s").await;
    browser.until(&format!("window.said.includes('{why}')")).await;
    press(&browser, "[data-act=refresh]").await;
    press(&browser, "#act .primary").await;
    browser.until("window.said.includes('shop: refresh was asked for')").await;
    let came = platform.came();
    assert_eq!((came.len(), &*came[0].0), (1, "lin"));
    browser.close().await;
}
