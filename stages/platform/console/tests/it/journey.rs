//! What a new user does, by the keyboard alone.

use fantoccini::key::Key;

use crate::browser::Browser;
use crate::served::Served;

/// Every page, by a name, as an admin has it.
pub(crate) const PAGES: &[(&str, &str)] = &[
    ("home", "/"),
    ("applications", "/applications?q=label:team%3Dshop%20changed:7d"),
    ("matrix", "/applications?group=matrix"),
    ("application", "/applications/eu-1/argocd-production/payments?q=env:production&tab=compare"),
    ("tree", "/applications/eu-1/argocd-production/payments?q=env:production"),
    (
        "resources-of",
        "/applications/eu-1/argocd-production/payments?tab=resources&r=apps%2FDeployment%2Fshop%2Fpayments-api",
    ),
    ("timeline", "/applications/eu-1/argocd-production/payments?tab=timeline"),
    (
        "commit",
        "/applications/eu-1/argocd-production/payments/commits/1764000000000/27cec84?q=env:production&tab=timeline",
    ),
    ("drift", "/applications/eu-1/argocd-production/payments?tab=drift"),
    ("errors", "/applications/eu-1/argocd-production/payments?tab=errors"),
    ("events", "/applications/eu-1/argocd-production/payments?tab=events"),
    ("files", "/applications/eu-1/argocd-production/payments?tab=files"),
    ("unknown", "/applications/eu-1/argocd-production/gone"),
    ("nowhere", "/nothing"),
    ("runtimes", "/runtimes"),
    ("add", "/runtimes/add"),
    ("added", "/runtimes/add/ap-1"),
    ("deployments", "/deployments"),
    ("shipping", "/shipping/28/lead-time"),
    ("keys", "/settings"),
    ("git", "/settings/git?runtime=eu-1"),
    ("users", "/settings/users?name=admin"),
    ("rules", "/settings/rules?edit=new"),
    ("tokens", "/settings/tokens"),
    ("retention", "/settings/retention"),
    ("audit", "/audit"),
    ("resources", "/resources"),
    ("nothing", "/applications?q=health:missing%20by:nobody"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_new_finds_what_broke_compares_two_moments_and_shares_the_link() {
    let served = Served::new().await;
    let browser = Browser::open(1_440, 900).await;
    let client = &browser.client;

    // The first account, by the link that the platform printed.
    client.goto(&served.link().await).await.unwrap();
    browser.type_into("#password", &format!("correct horse battery{}", char::from(Key::Enter))).await;
    browser.until("document.documentElement.dataset.ready && location.pathname === '/'").await;
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;

    // To the list, and the one that broke, found while typing.
    browser.keys("ga").await;
    browser
        .until(
            "location.pathname === '/applications' && document.querySelectorAll('[data-row]').length === 48",
        )
        .await;
    browser.keys("/").await;
    browser.keys("health:degraded ").await;
    browser.until("document.querySelectorAll('.chip').length === 1 && document.querySelectorAll('[data-row]').length === 1").await;
    browser.keys("pay").await;
    browser.until("new URLSearchParams(location.search).get('q') === 'health:degraded pay'").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('#preview h2')?.textContent.includes('payments')").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('h1')?.textContent === 'payments'").await;
    let cause = browser.find(".cause").await.text().await.unwrap();
    assert!(cause.starts_with("2 of 6 pods of payments-api fail their readiness probe since "), "{cause}");
    assert!(cause.contains("2 min after 27cec84 “feature flag: new basket” by Mia Novak"), "{cause}");

    // The earlier handle goes back by one change; the comparison follows it, and the address says both moments.
    browser.until("document.querySelector('[data-handle=from]').focus() ?? true").await;
    browser.keys(&char::from(Key::Left).to_string()).await;
    browser.until("new URLSearchParams(location.search).get('tab') === 'compare'").await;
    browser.until("document.querySelector('.diff')?.textContent.includes('payments-api:2.14.0')").await;
    browser.until("[...document.querySelectorAll('.diff .new')].some((line) => line.textContent.includes('payments-api:2.14.1'))").await;

    let tab = char::from(Key::Tab).to_string();
    // Whoever opens the address sees the same; without a session, once they have signed in.
    let shared = browser.address().await;
    let said = browser.find(".diff").await.text().await.unwrap();
    client.delete_all_cookies().await.unwrap();
    client.goto(shared.as_str()).await.unwrap();
    browser.until("location.pathname === '/sign-in'").await;
    browser.type_into("#name", &format!("admin{tab}wrong horse battery{}", char::from(Key::Enter))).await;
    browser.until("document.querySelector('[role=alert]')?.textContent.includes('do not go together')").await;
    // The name is there still.
    browser.type_into("#password", &format!("correct horse battery{}", char::from(Key::Enter))).await;
    browser.until("document.querySelector('.diff')").await;
    assert_eq!(browser.address().await, shared);
    assert_eq!(browser.find(".diff").await.text().await.unwrap(), said);

    // Back to the list, which has kept its filter.
    browser.until("document.documentElement.dataset.ready").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser
        .until("location.pathname === '/applications' && document.querySelectorAll('.chip').length === 1")
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_walk_a_filter_find_anything_and_say_themselves() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}/applications?q=env:staging&group=none", served.url)).await;
    browser.keys("jj").await;
    browser
        .until("document.querySelectorAll('[data-row]')[1].getAttribute('aria-selected') === 'true'")
        .await;
    // What is read aloud goes along with what is seen.
    let row =
        "[...document.querySelectorAll('[data-row]')].indexOf(document.activeElement.closest('[data-row]'))";
    browser.until(&format!("{row} === 1")).await;
    browser.keys(&char::from(Key::Down).to_string()).await;
    browser.until(&format!("{row} === 2")).await;
    browser.keys("k").await;
    browser.until(&format!("{row} === 1")).await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelector('.position')?.textContent === '2 of 24'").await;
    browser
        .until(
            "document.activeElement === document.querySelector('main') && document.activeElement.ariaLabel",
        )
        .await;
    browser.keys("]").await;
    browser.until("document.querySelector('.position')?.textContent === '3 of 24'").await;
    browser.keys("[").await;
    browser.until("document.querySelector('.position')?.textContent === '2 of 24'").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser
        .until("document.querySelectorAll('[data-row]')[1]?.getAttribute('aria-selected') === 'true'")
        .await;
    browser.keys("?").await;
    browser.until("document.querySelector('#help[open]')").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#help[open]')").await;
    browser.keys(":").await;
    browser.until("document.querySelector('#palette[open]')").await;
    browser.keys(&format!("runt{}", char::from(Key::Enter))).await;
    browser
        .until("location.pathname === '/runtimes' && document.querySelector('h1').textContent === 'Runtimes'")
        .await;
    // The same by the key that a Mac has for it.
    let command_k = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', metaKey: true, bubbles: true }))";
    browser.client.execute(command_k, vec![]).await.unwrap();
    browser.until("document.querySelector('#palette[open]')").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#palette[open]')").await;
    // An answer that is no page is told.
    crate::acts::listen(&browser).await;
    let no_page = "const link = document.createElement('a'); link.href = '/assets/none/none'; \
                   document.querySelector('main').append(link); link.click()";
    browser.client.execute(no_page, vec![]).await.unwrap();
    browser
        .until("window.said.some((text) => text.includes('404')) && location.pathname === '/runtimes'")
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_walks_rows_leaves_them_first_and_then_the_page() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let escape = char::from(Key::Escape).to_string();
    let one = "/applications/eu-1/argocd-production/payments?tab=resources";
    for path in ["/applications?group=none", one] {
        browser.goto(&format!("{}{path}", served.url)).await;
        browser.keys("j").await;
        browser.until("document.activeElement.closest('[data-row][aria-selected]')").await;
        browser.keys(&escape).await;
        browser.until("document.activeElement === document.querySelector('main') && !document.querySelector('[data-row][aria-selected]')").await;
    }
    browser.until("location.search === '?tab=resources'").await;
    browser.keys(&escape).await;
    browser.until("location.pathname === '/applications'").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_half_a_word_are_not_shown_to_somebody_who_has_typed_on() {
    const HELD: &str = "const asked = window.fetch; window.held = []; window.told = []; \
        window.fetch = (url, ...rest) => String(url).endsWith('q=ba') ? new Promise((go) => held.push(() => go(asked(url, ...rest)))) : asked(url, ...rest); \
        document.addEventListener('shown', () => told.push(new URLSearchParams(location.search).get('q')))";
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}/applications", served.url)).await;
    browser.client.execute(HELD, vec![]).await.unwrap();
    browser.keys("/").await;
    browser.type_into("[data-filter] input", "ba").await;
    browser.until("held.length === 1").await;
    // The answer comes with the next letter.
    let on = "const field = document.activeElement; field.value += 's'; \
              field.dispatchEvent(new Event('input', { bubbles: true })); held[0]()";
    browser.client.execute(on, vec![]).await.unwrap();
    browser.until("told.includes('bas')").await;
    assert_eq!(browser.client.execute("return told.includes('ba')", vec![]).await.unwrap(), false);
    browser.close().await;
}

/// Counts what the palette asks.
const FINDS: &str = r#"
    window.finds = 0;
    const { fetch: ask } = window;
    window.fetch = (...all) => {
        if (String(all[0]).startsWith("/find?")) window.finds += 1;
        return ask(...all);
    };
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_palette_says_that_nothing_is_called_so_and_that_the_platform_gives_no_answer() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser.goto(&format!("{}/settings", served.url)).await;
    browser.press("[data-find]").await;
    browser.type_into("#palette input", "zzzz").await;
    let told = |text: &str| format!("document.querySelector('#found').textContent === '{text}'");
    browser.until(&told("Nothing is called so")).await;
    served.stop.cancel();
    browser.until("document.querySelector('[data-live]').textContent.startsWith('offline since')").await;
    browser.keys("z").await;
    browser.until(&told("The platform gives no answer")).await;
    // Whoever presses Enter asks again.
    browser.client.execute(FINDS, vec![]).await.unwrap();
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("finds === 1").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_changes_in_place_while_somebody_looks() {
    let served = Served::new().await;
    let browser = served.browser().await;
    browser
        .client
        .goto(&format!("{}/applications?q=basket-worker+env%3Aproduction", served.url))
        .await
        .unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let client = &browser.client;
    client.execute("document.querySelector('[data-row]').same = true", vec![]).await.unwrap();
    served.fleet.degraded.lock().unwrap().push("basket-worker".to_owned());
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser.until("document.querySelector('[data-row] [aria-label=Degraded]')").await;
    browser.until("document.querySelector('[data-row]').same && document.querySelector('[data-row]').classList.contains('fresh')").await;

    // The platform ends: the page says so, and keeps what it knew.
    served.stop.cancel();
    browser.until("document.querySelector('[data-live]').textContent.startsWith('offline since')").await;
    browser.until("document.querySelector('[data-row] [aria-label=Degraded]')").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_deployment_brought_stays_unfolded_and_its_commits_lead_to_their_provider() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let client = &browser.client;
    let path = "/applications/eu-1/argocd-production/basket?tab=timeline";
    client.goto(&format!("{}{path}", served.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let said = browser.find(".brought").await.text().await.unwrap();
    let begin = "https://github.com/example/shop.git: More than 7 commits changed it, the newest of them:";
    assert!(said.starts_with(begin), "{said}");
    assert!(
        said.contains("Which commits changed it is not known: git.example.com does not answer"),
        "{said}"
    );
    browser.press(".brought td > details > summary").await;
    browser.press(".brought td > details .commits summary").await;
    let unfolded = "document.querySelectorAll('.brought details[open]').length === 2 \
                    && document.querySelector('.brought details[open] .commits li code').checkVisibility()";
    browser.until(unfolded).await;
    let listen = "document.addEventListener('patched', () => { window.patched = true; })";
    client.execute(listen, vec![]).await.unwrap();
    served.fleet.degraded.lock().unwrap().push("basket".to_owned());
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    browser.until("window.patched").await;
    browser.until(unfolded).await;

    // No request of the console's own goes there: the browser does.
    let stay = "document.addEventListener('click', (event) => { window.left = [event.target.closest('a').href, event.defaultPrevented]; event.preventDefault(); })";
    client.execute(stay, vec![]).await.unwrap();
    browser.press(".brought .commits a").await;
    browser
        .until("window.left?.[0].startsWith('https://github.com/example/shop/commit/') && !window.left[1]")
        .await;
    browser.close().await;
}

/// The first account, by its link.
pub(crate) async fn sign_in(browser: &Browser, link: &str) {
    browser.client.goto(link).await.unwrap();
    browser.find("#password").await.send_keys("correct horse battery").await.unwrap();
    browser.press("form button").await;
    browser.until("document.documentElement.dataset.ready && location.pathname === '/'").await;
}
