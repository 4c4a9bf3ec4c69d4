//! axe-core looks at every page, dark and light, for what keeps people out, as does a page that is wider than its window.

use fantoccini::key::Key;
use stages_platform_console::table;

use crate::browser::Browser;
use crate::journey::{PAGES, sign_in};
use crate::platform::Platform;
use crate::routes::is_of_route;
use crate::served::Served;

/// The version that `.ci/setup` installs.
const AXE: &str = "axe-core-4.14.1";

/// What is no page: streams, files, parts of a page, and addresses that lead to one.
const NO_PAGES: &[&str] = &[
    "/live",
    "/applications/{runtime}/{namespace}/{name}/deployments",
    "/assets",
    "/assets/{version}/{name}",
    "/find",
    "/preview",
    "/preview/{runtime}/{namespace}/{name}",
    "/shipping",
    "/shipping/{days}",
    "/login/oidc",
    "/login/oidc/callback",
];

fn script() -> String {
    let file = loadtest_sim::installed::folder().unwrap().join(AXE).join("node_modules/axe-core/axe.min.js");
    assert!(file.is_file(), "there is no {}: run .ci/setup", file.display());
    std::fs::read_to_string(file).unwrap()
}

impl Browser {
    /// What on the page, as it is now, keeps somebody out by any of axe's rules.
    pub(crate) async fn what_keeps_out(&self, page: &str, all: &mut Vec<String>) {
        self.what_rules_find("{}", 10, page, all).await;
    }

    /// The same by the rules about colours alone, of a page that was looked at in others.
    async fn what_colours_keep_out(&self, page: &str, all: &mut Vec<String>) {
        self.what_rules_find(r#"{ runOnly: ["color-contrast", "link-in-text-block"] }"#, 1, page, all).await;
    }

    /// `least` of the rules that are asked for must concern something on the page.
    async fn what_rules_find(&self, rules: &str, least: u64, page: &str, all: &mut Vec<String>) {
        self.until("document.readyState === 'complete'").await;
        self.client.execute(&script(), vec![]).await.unwrap();
        let run = format!(
            r#"
            const done = arguments[arguments.length - 1];
            const said = (one) => one.nodes.map((node) => `${{one.id}}: ${{node.target.join(" ")}}: ${{node.any.concat(node.all, node.none).map((check) => check.message).join("; ")}}`);
            window.axe.run(document, {{ resultTypes: ["violations"], ...{rules} }})
                .then(({{ violations, passes }}) => done([violations.flatMap(said), passes.length]), (error) => done([[String(error)], 0]));
        "#
        );
        let found = self.client.execute_async(&run, vec![]).await.unwrap();
        all.extend(
            found[0].as_array().unwrap().iter().map(|one| format!("{page}: {}", one.as_str().unwrap())),
        );
        assert!(found[1].as_u64().unwrap() >= least, "{page}: rules were run: {found}");
    }
}

/// `CONSOLE_SHOTS` names a folder for pictures of every page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_keeps_anybody_out_wide_or_narrow_in_the_dark_or_in_the_light() {
    let served = Served::new().await;
    let browser = Browser::open(1_440, 900).await;
    let mut found = Vec::new();
    let client = &browser.client;
    let link = served.link().await;
    let mut read = vec!["/sign-in".to_owned(), "/welcome".to_owned()];
    for outside in [&link, &format!("{}/sign-in", served.url), &format!("{}/welcome?token=gone", served.url)]
    {
        client.goto(outside).await.unwrap();
        for dark in [false, true] {
            browser.view(1_440, 900, dark).await;
            browser.what_keeps_out(outside, &mut found).await;
        }
    }
    sign_in(&browser, &link).await;
    let escape = char::from(Key::Escape).to_string();
    for (width, height, dark) in [(1_440, 900, false), (1_440, 900, true), (390, 844, true)] {
        browser.view(width, height, dark).await;
        let scheme = if dark { "dark" } else { "light" };
        for (name, path) in PAGES {
            let said = format!("{name}, {width} wide, {scheme}");
            client.goto(&format!("{}{path}", served.url)).await.unwrap();
            browser.until("document.documentElement.dataset.ready").await;
            if *name == "applications" && width == 1_440 {
                browser.keys("j").await;
                browser.until("document.querySelector('#preview h2')").await;
            }
            let fits =
                client.execute("return document.documentElement.scrollWidth <= innerWidth", vec![]).await;
            assert_eq!(fits.unwrap(), true, "{said}: nothing is wider than its window");
            browser.shot(&format!("{name}-{width}-{scheme}")).await;
            // Dark and light differ in their colours alone.
            if dark && width == 1_440 {
                browser.what_colours_keep_out(&said, &mut found).await;
            } else {
                browser.what_keeps_out(&said, &mut found).await;
            }
            read.push((*path).to_owned());
        }
        for (key, shown) in [("?", "#help[open]"), (":", "#palette[open] li")] {
            browser.keys(key).await;
            browser.find(shown).await;
            browser.what_keeps_out(&format!("{shown}, {width} wide"), &mut found).await;
            browser.keys(&escape).await;
            browser.until("!document.querySelector('dialog[open]')").await;
        }
    }
    for (method, route, _) in table() {
        let is_page = method == "GET" && !NO_PAGES.contains(&route);
        assert!(!is_page || read.iter().any(|path| is_of_route(route, path)), "{route} was not looked at");
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}

/// What the platform's own store and a runtime bring: dialogs of acts, steps of a rollout, and a question before a removal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dialog_keeps_anybody_out() {
    let platform = Platform::new().await;
    let token = platform.token().await;
    for resource in crate::reports::resources(jiff::Timestamp::now()) {
        platform.post(&token, &resource).await;
    }
    platform.post(&token, &crate::reports::application("Degraded", 1, jiff::Timestamp::now())).await;
    let browser = Browser::open(1_440, 900).await;
    let mut found = Vec::new();
    platform.sign_in(&browser).await;
    let client = &browser.client;
    let escape = char::from(Key::Escape).to_string();
    let page = format!("{}/applications/prod/argocd/shop", platform.url);
    for dark in [false, true] {
        client.goto(&format!("{page}?tab=resources&r=argoproj.io%2FRollout%2Fshop%2Fweb")).await.unwrap();
        browser.view(1_440, 900, dark).await;
        browser.until("document.documentElement.dataset.ready").await;
        browser.what_keeps_out("a rollout", &mut found).await;
        for (act, shown) in [
            ("sync", "#act .diff"),
            ("rollback", "#act [name=id]"),
            ("pause", "#act .body p"),
            ("logs", "#act pre span"),
        ] {
            browser.press(&format!("[data-act={act}]")).await;
            browser.find(shown).await;
            browser.what_keeps_out(act, &mut found).await;
            browser.keys(&escape).await;
            browser.until("!document.querySelector('#act')").await;
        }
        client.goto(&format!("{}/settings/tokens", platform.url)).await.unwrap();
        browser.until("document.documentElement.dataset.ready").await;
        browser.what_keeps_out("tokens", &mut found).await;
        browser.press("[data-confirm] button").await;
        browser.find("dialog[open] .primary").await;
        browser.what_keeps_out("a question", &mut found).await;
        // What nobody expects in a page is no reason to keep anybody out either.
        for path in ["/", "/applications", "/deployments", "/resources", "/audit", "/shipping/7/failures"] {
            client.goto(&format!("{}{path}", platform.url)).await.unwrap();
            browser.until("document.documentElement.dataset.ready").await;
            browser.what_keeps_out(path, &mut found).await;
        }
        client.goto(&format!("{}/applications?q=z", platform.url)).await.unwrap();
        let first = browser.find("[data-row] a").await.attr("href").await.unwrap().unwrap();
        for tab in ["tree", "resources", "timeline", "compare", "errors"] {
            client
                .goto(&format!(
                    "{}{first}{}tab={tab}",
                    platform.url,
                    if first.contains('?') { "&" } else { "?" }
                ))
                .await
                .unwrap();
            browser.until("document.documentElement.dataset.ready").await;
            browser.what_keeps_out(tab, &mut found).await;
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}
