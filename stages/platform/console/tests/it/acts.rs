//! Acts, in a browser, over a real store and the real way to a runtime: what is said before, what is done, and what is said against.

use fantoccini::Locator;
use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::json;
use stages_platform_store::{Action, Attribute, AttributeName, Entity};
use tokio::net::TcpSocket;

use crate::browser::Browser;
use crate::platform::Platform;
use crate::runtime::NO_ROLLBACK;

/// Remembers what was said, which stands there for a moment only.
pub(crate) async fn listen(browser: &Browser) {
    let script = "const said = document.querySelector('#said'); window.said = []; \
        new MutationObserver(() => window.said.push(said.textContent)).observe(said, { childList: true })";
    browser.client.execute(script, vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_says_what_it_will_do_does_it_as_whoever_asked_and_shows_what_is_said_against_it() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    let page = format!("{}/applications/prod/argocd/shop", platform.url);
    browser.goto(&page).await;

    // Which moment this is of is a sentence, whatever the moment.
    browser
        .until(r"/^as of (now|\d+ (s|min) ago)$/.test(document.querySelector('.as-of').textContent)")
        .await;
    listen(&browser).await;
    // Whoever is at a button while the runtime still looks stays there: nothing is done by an Enter that was meant for it.
    let held = "const ask = window.fetch; \
        window.fetch = async (...all) => { window.fetch = ask; await new Promise((go) => { window.letGo = go; }); return ask(...all); }";
    browser.client.execute(held, vec![]).await.unwrap();
    browser.keys("s").await;
    browser.until("window.letGo && document.querySelector('#act')").await;
    let leave = "document.querySelector('#act button[type=button]')";
    browser.client.execute(&format!("{leave}.focus(); letGo()"), vec![]).await.unwrap();
    browser.until("document.querySelector('#act .primary:enabled')").await;
    browser
        .until(&format!(
            "!document.querySelector('#act [role=status]') && document.activeElement === {leave}"
        ))
        .await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("!document.querySelector('#act')").await;
    assert_eq!(platform.came().len(), 1, "looking changes nothing");
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
    // Nothing is done by whoever presses Enter before they have gone to what does it.
    browser.until("document.querySelector('#act .primary:enabled')").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.tab_to("#act .primary").await;
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
    browser.press("[data-act=rollback]").await;
    browser.until("document.querySelectorAll('#act [name=id]').length === 3").await;
    browser.shot("act-rollback").await;
    browser.press("#act .primary").await;
    browser
        .until(&format!("document.querySelector('#act [role=alert]').textContent === \"{NO_ROLLBACK}\""))
        .await;
    let (_, body) = platform.came().pop().unwrap();
    assert_eq!(body["variables"]["options"], json!({"id": 7}));
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#act')").await;

    // Of a resource: a rollout is paused, and lines of its log are text.
    browser.goto(&format!("{page}?tab=resources&r=argoproj.io%2FRollout%2Fshop%2Fweb")).await;
    listen(&browser).await;
    browser.press("[data-act=pause]").await;
    browser.press("#act .primary").await;
    browser
        .until("!document.querySelector('#act') && window.said.includes('Rollout web: pause was asked for')")
        .await;
    let (_, body) = platform.came().pop().unwrap();
    assert_eq!(
        body["variables"],
        json!({"application": application, "rollout": {"namespace": "shop", "name": "web"}})
    );
    browser.press("[data-act=logs]").await;
    browser
        .until("document.querySelector('#act pre').textContent === 'web-1  one <img src=x>\\nweb-1  two\\n'")
        .await;
    browser.shot("act-logs").await;
    browser.keys(&char::from(Key::Escape).to_string()).await;
    browser.until("!document.querySelector('#act')").await;

    // A runtime that cannot be reached is told with what to do.
    // Bound, so that nobody else is given the port, and not listening.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nowhere = taken.local_addr().unwrap();
    platform.at(&format!("http://{nowhere}")).await;
    browser.press("[data-act=refresh]").await;
    browser.press("#act .primary").await;
    browser.until(&format!("document.querySelector('#act [role=alert]').textContent.startsWith(\"runtime 'prod' cannot be reached at {nowhere}: \")")).await;

    // Whoever was signed out elsewhere is told that, and where to sign in.
    browser.client.execute_async("const done = arguments[0]; fetch('/sign-out', { method: 'POST', redirect: 'manual' }).then(done)", vec![]).await.unwrap();
    browser.press("#act .primary").await;
    browser
        .until(
            "document.querySelector('#act [role=alert]').textContent.startsWith('You are signed out') \
            && new URL(document.querySelector('#act [role=alert] a').href).pathname === '/sign-in'",
        )
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_resumed_restarted_and_skips_a_step_and_says_what_makes_no_sense() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let report = |version: u32, status: serde_json::Value| {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "uid-Rollout", "resourceVersion": version.to_string()},
            "spec": {"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]}}},
            "status": status,
        });
        let source = json!({
            "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Suspended",
            "actualManifest": object.to_string(),
        });
        json!({"data": {"timestamp": Timestamp::now().to_string(), "object": object, "source": source}})
    };
    let waits = json!([{"reason": "CanaryPauseStep"}]);
    let paused =
        json!({"currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1, "pauseConditions": waits});
    platform.post(&token, &report(2, paused)).await;
    let browser = platform.browser().await;
    let page = format!(
        "{}/applications/prod/argocd/shop?tab=resources&r=argoproj.io%2FRollout%2Fshop%2Fweb",
        platform.url
    );
    browser.goto(&page).await;
    listen(&browser).await;
    for (act, field, says) in [
        ("resume", "resumeRollout", "Rollout web is held no longer: it goes on from where it stands."),
        (
            "skip",
            "skipCurrentStep",
            "Rollout web leaves the step that it is at, whatever of it is not done, and goes on with the next one.",
        ),
        (
            "restart",
            "restartRollout",
            "Rollout web makes its pods anew, some at a time. Their version stays.",
        ),
    ] {
        browser.press(&format!("[data-act={act}]")).await;
        browser.until(&format!("document.querySelector('#act .body p')?.textContent === '{says}'")).await;
        browser.shot(&format!("act-{act}")).await;
        browser.keys(&char::from(Key::Enter).to_string()).await;
        browser.until("!document.querySelector('#act') && window.said.some((text) => text.startsWith('Rollout web: '))").await;
        browser.client.execute("window.said = []", vec![]).await.unwrap();
        let came = platform.came();
        assert_eq!(came.len(), 1, "{came:?}");
        assert!(came[0].1["query"].as_str().unwrap().contains(field), "{came:?}");
        let rollout = json!({"namespace": "shop", "name": "web"});
        assert_eq!(came[0].1["variables"]["rollout"], rollout);
    }

    // What makes no sense as it stands is told by the button, and nothing is asked for.
    let why = |act: &str| format!("document.querySelector('[data-act={act}]').dataset.why");
    let retry = "It was not aborted: there is nothing to retry.";
    browser.until(&format!("{} === '{retry}'", why("retry"))).await;
    browser.press("[data-act=retry]").await;
    browser.until(&format!("window.said.includes('{retry}')")).await;
    // It has gone through all its steps: the buttons follow while somebody looks.
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    let done = json!({"currentPodHash": "b", "stableRS": "b", "currentStepIndex": 3});
    platform.post(&token, &report(3, done)).await;
    for (act, said) in [
        ("promote", "It is not paused: skip its step, or promote it fully."),
        ("promote-full", "There is nothing to promote: what is there is stable."),
        ("resume", "It is not paused: skip its step, or promote it fully."),
        ("skip", "It has no step left to skip."),
    ] {
        browser.until(&format!("{} === '{said}'", why(act))).await;
    }
    browser.until(&format!("{} === undefined && {} === undefined", why("restart"), why("abort"))).await;
    assert_eq!(platform.came().len(), 0);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_a_deployment_are_restarted_by_whoever_a_rule_lets() {
    const PAGE: &str = "/applications/prod/argocd/shop?tab=resources&r=apps%2FDeployment%2Fshop%2Fweb";
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    browser.goto(&format!("{}{PAGE}", platform.url)).await;
    listen(&browser).await;
    let enter = char::from(Key::Enter).to_string();
    browser.tab_to("[data-act=restart-workload]").await;
    browser.keys(&enter).await;
    let says =
        "The cluster replaces the pods of Deployment web as its update strategy says; its manifest stays.";
    browser.until(&format!("document.querySelector('#act .body p')?.textContent === '{says}'")).await;
    browser.shot("act-restart-workload").await;
    platform.came();
    browser.tab_to("#act .primary").await;
    browser.keys(&enter).await;
    browser
        .until("!document.querySelector('#act') && window.said.includes('Deployment web: restart was asked for')")
        .await;
    let came = platform.came();
    assert_eq!((came.len(), &*came[0].0), (1, "admin"), "{came:?}");
    assert!(came[0].1["query"].as_str().unwrap().contains("restartResource"), "{came:?}");
    let application = json!({"runtime": "prod", "namespace": "argocd", "name": "shop"});
    let resource =
        json!({"group": "apps", "version": "", "kind": "Deployment", "namespace": "shop", "name": "web"});
    assert_eq!(came[0].1["variables"], json!({"application": application, "resource": resource}));
    assert_eq!(platform.store.audit(i64::MAX, 1).await.unwrap()[0].subject, "prod: restartResource");
    browser.close().await;

    let lin = platform.lin(vec![(Entity::GitopsApplications, vec![Action::View], Vec::new())]).await;
    let page = platform.page(&lin, PAGE).await;
    let (_, button) = page.split_once("data-act=\"restart-workload\"").unwrap();
    let why = "data-why=\"No rule of your teams lets you restart its pods: an admin can add one.\"";
    assert!(button.split('>').next().unwrap().contains(why), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_no_rule_allows_says_so_before_it_is_asked_for() {
    let platform = Platform::new().await;
    let prod = Attribute { name: AttributeName::Runtime, key: None, value: "prod".to_owned() };
    let rules = vec![(Entity::GitopsApplications, vec![Action::View, Action::Refresh], vec![prod])];
    let session = platform.lin(rules).await;
    let browser = Browser::open(1_440, 900).await;
    browser.client.goto(&format!("{}/sign-in", platform.url)).await.unwrap();
    let cookie = format!("document.cookie = '{session}; path=/'");
    browser.client.execute(&cookie, vec![]).await.unwrap();
    browser.goto(&format!("{}/applications/prod/argocd/shop", platform.url)).await;
    let disabled = "[...document.querySelectorAll('[data-act]')].map((one) => `${one.dataset.act} ${one.getAttribute('aria-disabled')}`).join()";
    browser.until(&format!("{disabled} === 'sync true,refresh null,rollback true'")).await;
    listen(&browser).await;
    let why = "No rule of your teams lets you sync it: an admin can add one.";
    let sync = browser.client.find(Locator::Css("[data-act=sync]")).await.unwrap();
    assert_eq!(sync.attr("title").await.unwrap().as_deref(), Some(why));
    browser.keys("s").await;
    browser.until(&format!("window.said.includes('{why}')")).await;
    browser.press("[data-act=refresh]").await;
    browser.press("#act .primary").await;
    browser.until("window.said.includes('shop: refresh was asked for')").await;
    let came = platform.came();
    assert_eq!((came.len(), &*came[0].0), (1, "lin"));
    // Of a rollout each says its own reason.
    let rollout = "/applications/prod/argocd/shop?tab=resources&r=argoproj.io%2FRollout%2Fshop%2Fweb";
    browser.goto(&format!("{}{rollout}", platform.url)).await;
    for (act, verb) in [
        ("resume", "let its rollouts go on"),
        ("restart", "restart its rollouts"),
        ("skip", "skip steps of its rollouts"),
    ] {
        let why = format!("No rule of your teams lets you {verb}: an admin can add one.");
        let button = browser.client.find(Locator::Css(&format!("[data-act={act}]"))).await.unwrap();
        assert_eq!(button.attr("aria-disabled").await.unwrap().as_deref(), Some("true"));
        assert_eq!(button.attr("title").await.unwrap(), Some(why));
    }
    browser.close().await;
}
