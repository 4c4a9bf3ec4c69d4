//! Somebody changes what runs: what differs and who changed it is told at home, in the history of the application and beside its
//! manifests, for as long as it lasts and after.

use fantoccini::key::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stages_platform_store::Role;

use crate::platform::Platform;

/// The application `cart`, whose only resource is as its version says.
struct Cart<'a> {
    platform: &'a Platform,
    token: String,
    version: u32,
}

impl Cart<'_> {
    /// Both are reported as reporters do: so many replicas run of the six that Git says, which somebody changed a second before.
    async fn reported(&mut self, replicas: u32, by: &str, at: Timestamp) {
        self.version += 1;
        let sync = if replicas == 6 { "Synced" } else { "OutOfSync" };
        let metadata = |uid: &str| json!({"name": "cart", "namespace": "shop", "uid": uid, "resourceVersion": self.version.to_string()});
        let one = |manager: &str, time: Timestamp| json!({"manager": manager, "operation": "Update", "time": time.to_string(), "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        let changed = at - SignedDuration::from_secs(1);
        let first = one("argocd-controller", changed - SignedDuration::from_hours(1));
        let of = |replicas: u32| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("deployment"), "spec": {"replicas": replicas}});
        let (mut live, desired) = (of(replicas), of(6));
        live["metadata"]["managedFields"] = json!([first, one(by, changed)]);
        self.post(&live, sync, Some(&desired), at).await;
        let mut application = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata("cart")});
        application["metadata"]["namespace"] = json!("argocd");
        let resource = json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "cart", "status": sync});
        application["status"] =
            json!({"sync": {"status": sync}, "health": {"status": "Healthy"}, "resources": [resource]});
        self.post(&application, sync, None, at).await;
    }

    async fn post(&self, object: &Value, sync: &str, desired: Option<&Value>, at: Timestamp) {
        let source = json!({
            "appName": "cart", "appNamespace": "argocd", "syncStatus": sync, "healthStatus": "Healthy",
            "actualManifest": object.to_string(), "desiredManifest": desired.map(Value::to_string).unwrap_or_default(),
        });
        let data = json!({"timestamp": at.to_string(), "object": object, "source": source});
        self.platform.post(&self.token, &json!({"data": data})).await;
    }
}

/// As many as are told to have drifted, the newest first: what is told of each.
const TOLD: &str = "[...document.querySelectorAll('.drifts tbody tr')].map((row) => row.querySelector('.change').textContent.trim()).join('; ')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_made_what_runs_differ_is_told_as_it_happens_and_in_the_history() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let mut cart = Cart { platform: &platform, token, version: 0 };
    let now = Timestamp::now();
    let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
    cart.reported(6, "argocd-controller", ago(500)).await;
    cart.reported(9, "kubectl", ago(400)).await;
    cart.reported(6, "argocd-controller", ago(300)).await;

    let browser = platform.browser().await;
    let enter = char::from(Key::Enter).to_string();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.until("document.querySelector('main').textContent.includes('shop') && !document.querySelector('main a[href*=\"/cart\"]')").await;

    // While somebody looks at the first page another changes what runs.
    cart.reported(7, "kubectl-edit", Timestamp::now()).await;
    let reason = "document.querySelector('tr[data-key=\"need/prod/argocd/cart\"] .why')?.textContent";
    let told = "Drifted 2 times this week: Deployment/cart spec.replicas 6 → 7, by kubectl-edit";
    browser.until(&format!("{reason} === {}", Value::from(told))).await;
    browser.shot("drift-home").await;

    // It leads to all that it did before, each with whoever did it.
    browser.tab_to("a[href*=\"/cart?tab=drift\"]").await;
    browser.keys(&enter).await;
    let both = "Deployment/cart spec.replicas 6 → 7, by kubectl-edit; Deployment/cart spec.replicas 6 → 9, by kubectl";
    browser.until(&format!("{TOLD} === {}", Value::from(both))).await;
    browser.until("document.querySelector('.drifts tbody').textContent.includes('it lasts')").await;
    browser.shot("drift-history").await;

    // What is over is compared as it was then, and the way back to now stands there.
    browser.tab_to(".drifts tr:nth-child(2) a").await;
    browser.keys(&enter).await;
    let lines = "[...document.querySelectorAll('.diff :is(.gone, .new) td:last-child')].map((line) => line.textContent.trim()).join(' ')";
    browser.until(&format!("{lines} === 'replicas: 6 replicas: 9'")).await;
    browser.until("document.querySelector('.as-of').textContent.startsWith('as it was ')").await;
    browser.shot("drift-compared").await;
    browser.tab_to(".as-of a").await;
    browser.keys(&enter).await;
    browser.until("!location.search.includes('to=') && document.querySelector('.as-of').textContent.startsWith('as of ')").await;

    // Beside what Git says, as it comes: the page that is open follows.
    let page = format!("{}/applications/prod/argocd/cart", platform.url);
    let resources = format!("{page}?tab=resources&r=apps%2FDeployment%2Fshop%2Fcart");
    browser.client.goto(&resources).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.until(&format!("window.stays = {lines} === 'replicas: 6 replicas: 7'")).await;
    cart.reported(6, "argocd-controller", Timestamp::now()).await;
    browser
        .until("document.querySelector('.source').textContent.includes('What runs is what Git says.')")
        .await;
    browser.until("window.stays").await;
    browser.client.goto(&format!("{page}?tab=drift")).await.unwrap();
    browser.until(&format!("{TOLD} === {}", Value::from(both))).await;
    browser.until("!document.querySelector('.drifts tbody').textContent.includes('it lasts')").await;

    // Narrow, and in the dark.
    browser.view(390, 844, true).await;
    browser.until(&format!("{TOLD} === {}", Value::from(both))).await;
    browser.until("document.documentElement.scrollWidth <= innerWidth").await;
    browser.shot("drift-history-narrow").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_of_an_application_follows_what_is_reported() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    let mut cart = Cart { platform: &platform, token, version: 0 };
    let now = Timestamp::now();
    cart.reported(6, "argocd-controller", now - SignedDuration::from_secs(60)).await;
    let browser = platform.browser().await;
    browser.client.goto(&format!("{}/applications/prod/argocd/cart", platform.url)).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    browser.until("document.querySelectorAll('svg.tree a.node').length === 1").await;
    // Whoever stands on a card by the keyboard still does.
    browser.tab_to("svg.tree a.node").await;
    browser.until("window.stays = true").await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "cart-1", "namespace": "shop", "uid": "pod", "resourceVersion": "7",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart", "controller": true}]},
    });
    cart.post(&pod, "Synced", None, Timestamp::now()).await;
    browser.until("document.querySelectorAll('svg.tree a.node').length === 2").await;
    browser.until("window.stays && document.activeElement.getAttribute('href').includes('Deployment')").await;
    browser.close().await;
}

#[tokio::test]
async fn a_long_manifest_that_drifts_is_told_by_who_changed_it_and_compared_by_its_lines() {
    let platform = Platform::new().await;
    let (ada, token) = (platform.session("ada", Role::Admin).await, platform.token().await);
    let cart = Cart { platform: &platform, token, version: 0 };
    let now = Timestamp::now();
    let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
    let text = |changed: &str| {
        let line = |number: u32| {
            format!(
                "{number}: {}\n",
                if number == 2_500 { changed } else { "what stays as it is, line by line, for long" }
            )
        };
        (0..6_100).map(line).collect::<String>()
    };
    assert!(text("it").len() > 300_000);
    let settings = |content: String, at: Timestamp, version: u32| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"settings": content},
            "metadata": {"name": "settings", "namespace": "shop", "uid": "settings", "resourceVersion": version.to_string(),
                "managedFields": [{"manager": "kubectl-edit", "time": at.to_string()}]},
        })
    };
    let said = settings(text("as Git says"), ago(900), 1);
    for (sync, content, seconds, version) in
        [("Synced", "as Git says", 900, 1), ("OutOfSync", "as somebody says", 60, 2)]
    {
        let live = settings(text(content), ago(seconds), version);
        cart.post(&live, sync, Some(&said), ago(seconds)).await;
    }
    let own = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "cart", "namespace": "argocd", "uid": "cart", "resourceVersion": "1"}});
    cart.post(&own, "OutOfSync", None, ago(60)).await;
    let home = platform.page(&ada, "/").await;
    assert!(
        home.contains("Drifted: ")
            && home.contains("<code>ConfigMap/settings</code>, by <code>kubectl-edit</code>"),
        "{home}"
    );
    let drifts = platform.page(&ada, "/applications/prod/argocd/cart?tab=drift").await;
    let told = "ConfigMap/settings</a> changed by <code>kubectl-edit</code>";
    assert!(drifts.contains(told), "{drifts}");
    let row = drifts.split("<td class=\"change\">").nth(1).unwrap();
    let link = row.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let compared = platform.page(&ada, &link).await;
    for line in ["2500: as Git says", "2500: as somebody says"] {
        assert!(compared.contains(line), "{line} in {link}");
    }
    assert!(compared.len() < 60_000, "{} bytes", compared.len());
}
