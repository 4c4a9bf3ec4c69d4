//! Whatever a runtime reports is text: it is posted as reporters post it, and read by the API and in a browser that runs any
//! script that comes into a page, whatever the page's policy says.

use std::collections::BTreeSet;

use fantoccini::key::Key;
use jiff::{SignedDuration, Timestamp};
use pipeline_core::ExposeSecret as _;
use serde_json::{Value, json};
use stages_platform_console::table;
use stages_platform_store::{By, Scope};

use crate::acts::listen;
use crate::browser::Browser;
use crate::platform::Platform;
use crate::reports::{self, FIELDS, Shown, is_of, link, name, text};
use crate::routes::is_of_route;

/// What a page holds that none of the console's own does, what ran of it, and every text that is read or told by it.
const LOOK: &str = r#"
    const odd = [], texts = [document.title, document.documentElement.textContent];
    const own = /^(\/(?![\/\\])|#|\?)/;
    for (const one of document.querySelectorAll("*")) {
        const is = one.localName;
        if (["img", "iframe", "object", "embed", "base", "style", "video", "audio"].includes(is)) odd.push(is);
        if (is === "script" && !one.getAttribute("src")?.startsWith("/assets/")) odd.push(one.outerHTML);
        for (const { name, value } of one.attributes) {
            if (name.startsWith("on") || name === "srcdoc") odd.push(`${is} ${name}=${value}`);
            const leads = ["href", "xlink:href", "src", "action", "formaction", "data", "poster", "ping"].includes(name);
            if (leads && !own.test(value)) odd.push(`${is} ${name}=${value}`);
            if (["title", "aria-label", "value", "placeholder"].includes(name)) texts.push(value);
        }
    }
    return { odd, texts, owned: window.owned ?? null };
"#;

struct Reader {
    platform: Platform,
    browser: Browser,
    texts: Vec<String>,
}

impl Reader {
    /// Opens a page, waits until its own scripts have run, and looks at it.
    async fn read(&mut self, path: &str) {
        self.browser.client.goto(&format!("{}{path}", self.platform.url)).await.unwrap();
        let runs = "document.readyState === 'complete' && (!document.querySelector('script') || document.documentElement.dataset.ready)";
        self.browser.until(runs).await;
        self.look(path).await;
    }

    async fn look(&mut self, at: &str) {
        let found = self.browser.client.execute(LOOK, vec![]).await.unwrap();
        assert_eq!(found["odd"], json!([]), "{at}");
        assert_eq!(found["owned"], Value::Null, "{at}: a script ran");
        self.texts
            .extend(found["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()));
    }

    /// The addresses that the elements lead to.
    async fn links(&self, css: &str) -> Vec<String> {
        let script =
            format!("return [...document.querySelectorAll('{css}')].map((one) => one.getAttribute('href'))");
        let found = self.browser.client.execute(&script, vec![]).await.unwrap();
        found.as_array().unwrap().iter().map(|link| link.as_str().unwrap().to_owned()).collect()
    }
}

fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_reported_is_text_on_every_page_and_in_every_answer() {
    let platform = Platform::new().await;
    let browser = Browser::open(1_440, 900).await;
    browser.let_any_script_run().await;
    let mut reader = Reader { platform, browser, texts: Vec::new() };
    let now = Timestamp::now();
    let token = reader.platform.token().await;
    reader
        .platform
        .post(&token, &reports::application("Healthy", 1, now - SignedDuration::from_secs(90)))
        .await;
    reader
        .platform
        .post_to("/2.0/api/events/changes", &token, &reports::changes(now - SignedDuration::from_secs(90)))
        .await;
    assert!(reader.platform.store.keep_version("prod", &text("runtime version")).await.unwrap());
    let wrong = json!([{"level": "ERROR", "title": text("runtime error title"), "message": text("runtime error message"),
        "suggestion": text("runtime error suggestion"), "code": "UNKNOWN", "lastSeen": now.to_string()}]);
    crate::troubled::report(&reader.platform, &token, &wrong).await;
    for resource in reports::resources(now) {
        reader.platform.post(&token, &resource).await;
    }
    reader
        .platform
        .post(&token, &reports::application("Degraded", 2, now - SignedDuration::from_secs(10)))
        .await;
    reader.platform.sign_in(&reader.browser).await;

    // What is looked for is found where it is, and runs.
    let script = "document.body.insertAdjacentHTML('beforeend', arguments[0])";
    reader.browser.client.execute(script, vec![text("query").into()]).await.unwrap();
    reader.browser.until(&format!("window.owned === {}", reports::number("query"))).await;
    let found = reader.browser.client.execute(LOOK, vec![]).await.unwrap();
    assert!(found["odd"].as_array().unwrap().len() >= 3, "{found}");

    let tail =
        format!("prod/{}/{}", segment(&name("application namespace")), segment(&name("application name")));
    let (one, asked) = (format!("/applications/{tail}"), segment(&text("query")));
    let began = (now - SignedDuration::from_secs(110)).as_millisecond();
    let mut pages: Vec<String> = [
        "/",
        "/applications",
        "/applications?group=none&sort=name",
        "/applications?group=product",
        "/applications?group=matrix",
        "/deployments",
        "/preview",
        "/shipping",
        "/shipping/7",
        "/shipping/28/deployments",
        "/shipping/28/lead-time",
        "/shipping/28/failures",
        "/shipping/28/time-to-restore",
        "/resources",
        "/resources?q=z",
        "/runtimes",
        "/runtimes/add",
        "/runtimes/add/prod",
        "/find?q=z",
        "/settings",
        "/settings/git",
        "/settings/users",
        "/settings/rules",
        "/settings/rules?edit=new",
        "/settings/tokens",
        "/settings/retention",
        "/audit",
        "/assets",
    ]
    .map(str::to_owned)
    .into();
    // What is asked for is no script either.
    for of in ["/applications", "/deployments", "/shipping/28/failures", "/resources", "/find", &one] {
        pages.push(format!("{of}?q={asked}"));
    }
    pages.extend([
        format!("/sign-in?next={asked}"),
        format!("/welcome?token={asked}"),
        format!("/assets/{asked}/{asked}"),
        format!("/settings/rules?edit={asked}"),
        format!("/settings/users?name={asked}"),
        format!("/applications/{asked}/{asked}/{asked}"),
        format!("/preview/{tail}"),
        format!("{one}/commits/{began}/{}", segment(&text("commit that changed it"))),
        format!("{one}/commits/{began}/{asked}"),
        format!("{one}/deployments?since={asked}"),
    ]);
    let by_provider = table().into_iter().filter(|(_, route, _)| route.starts_with("/login/oidc"));
    let said = format!("next={asked}&code={asked}&state={asked}&error={asked}&error_description={asked}");
    pages.extend(by_provider.map(|(_, route, _)| format!("{route}?{said}")));
    for tab in ["tree", "resources", "timeline", "compare", "drift", "errors", "events", "files"] {
        pages.push(format!("{one}?tab={tab}"));
    }
    for path in &pages {
        reader.read(path).await;
    }
    for (method, route, _) in table() {
        let is_read = pages.iter().any(|path| is_of_route(route, path));
        assert!(method != "GET" || route == "/live" || is_read, "no page of {route} was read");
    }
    // Each resource, as it is and between two moments.
    reader.read(&format!("{one}?tab=resources")).await;
    let resources = reader.links("#tab tbody a").await;
    assert_eq!(resources.len(), 5, "{resources:?}");
    let from = (now - SignedDuration::from_secs(40)).as_millisecond();
    for path in resources {
        reader.read(&path).await;
        reader
            .read(&format!(
                "{}&from={from}&to={}",
                path.replace("tab=resources", "tab=compare"),
                now.as_millisecond()
            ))
            .await;
    }
    reader.read(&format!("{one}?tab=timeline")).await;
    let heading = reader.browser.find("h1").await.text().await.unwrap();
    assert_eq!(heading, name("application name"), "it is shown as it was reported");

    in_what_scripts_put_together(&mut reader, &one, &token, now).await;
    for (field, shown) in FIELDS {
        let is_on_a_page = reader.texts.iter().any(|text| is_of(field, text));
        assert_eq!(is_on_a_page, matches!(shown, Shown::Everywhere | Shown::Pages), "{field} on a page");
    }
    in_answers_of_the_api(&reader.platform, &token).await;
    reader.browser.close().await;
}

/// What the console's own modules put into a page: previews, what is found, dialogs, logs, and rows that change.
async fn in_what_scripts_put_together(reader: &mut Reader, one: &str, token: &str, now: Timestamp) {
    let (enter, escape) = (char::from(Key::Enter).to_string(), char::from(Key::Escape).to_string());
    reader.read("/applications?group=none&q=z").await;
    reader.browser.keys("j").await;
    reader.browser.until("document.querySelector('#preview h2')?.textContent.includes('<svg onload')").await;
    reader.look("the preview").await;
    reader.browser.keys(":").await;
    reader.browser.until("document.querySelector('#palette[open]')").await;
    reader.browser.keys(&format!("{}z1", char::from(Key::Backspace))).await;
    reader.browser.until("document.querySelector('#found')?.textContent.includes('<svg onload')").await;
    reader.look("what is found").await;
    reader.browser.keys(&escape).await;

    // A row that changes in place.
    reader.read("/applications?group=none&q=z").await;
    reader.browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    reader.browser.client.execute("document.querySelector('[data-row]').same = true", vec![]).await.unwrap();
    reader
        .platform
        .post(token, &reports::application("Progressing", 3, now - SignedDuration::from_secs(1)))
        .await;
    let changed = "document.querySelector('[data-row] [aria-label=Progressing]') && document.querySelector('[data-row]').same";
    reader.browser.until(changed).await;
    reader.look("a row that changed").await;

    // Acts name what they are about, and show what its runtime answers.
    reader.read(one).await;
    for (act, shown) in [("sync", "#act .diff"), ("rollback", "#act [name=id]"), ("refresh", "#act .body p")]
    {
        reader.browser.press(&format!("[data-act={act}]")).await;
        reader.browser.find(shown).await;
        reader.look(act).await;
        reader.browser.keys(&escape).await;
        reader.browser.until("!document.querySelector('#act')").await;
    }
    listen(&reader.browser).await;
    reader.browser.press("[data-act=refresh]").await;
    reader.browser.find("#act .body p").await;
    reader.browser.keys(&enter).await;
    let said =
        "window.said.some((text) => text.includes('<svg onload') && text.endsWith('refresh was asked for'))";
    reader.browser.until(said).await;
    reader.look("what was said").await;
    let rollout = format!(
        "{one}?tab=resources&r=argoproj.io%2FRollout%2F{}%2F{}",
        segment(&name("resource namespace")),
        segment(&name("rollout name"))
    );
    reader.read(&rollout).await;
    reader.browser.press("[data-act=logs]").await;
    reader.browser.until("document.querySelector('#act pre')?.textContent.includes('one <img src=x>')").await;
    reader.look("logs").await;
}

/// Every string of an answer.
fn strings(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(all.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| strings(item, all)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            all.insert(key.clone());
            strings(value, all);
        }),
        _ => {}
    }
}

async fn in_answers_of_the_api(platform: &Platform, token: &str) {
    let now = Timestamp::now().as_millisecond();
    let admin = By { who: "admin".to_owned(), how: "session" };
    let key = platform.store.add_key(&admin, "reads", Scope::Read, now + 86_400_000, now).await.unwrap();
    let mut found = BTreeSet::new();
    let of_one = format!(
        "application(runtime: \"prod\", namespace: {}, name: {})",
        Value::from(name("application namespace")),
        Value::from(name("application name"))
    );
    let resource = format!(
        "resource: {{group: \"apps\", kind: \"Deployment\", namespace: {}, name: {}}}",
        Value::from(name("resource namespace")),
        Value::from(name("resource name"))
    );
    let queries = [
        "{ runtimes { edges { node { runtimeVersion errors { title message suggestion } } } } }".to_owned(),
        "{ applications { edges { cursor node { metadata { namespace name } uid healthMessage revision project environment cluster \
         destinationNamespace repoUrl path labels { key value } commitAuthor commitMessage operationMessage } } } }"
            .to_owned(),
        format!("{{ {of_one} {{ timeline(first: 20) {{ resource {{ apiVersion kind namespace name }} healthMessage revision }} }} }}"),
        format!("{{ {of_one} {{ resources {{ resource {{ apiVersion kind namespace name }} healthMessage }} }} }}"),
        format!("{{ {of_one} {{ manifests({resource}) {{ live desired git }} deployments {{ revision initiatedBy commitAuthor changes {{ repoUrl revision previousRevision error commits {{ revision author date message paths morePaths }} }} }} }} }}"),
    ];
    let mut asked = Vec::new();
    for query in queries {
        let url = format!("{}/2.0/api/graphql", platform.url);
        let body = json!({ "query": query }).to_string();
        let request = platform.client.post(url).header("authorization", key.expose_secret());
        asked.push(request.header("content-type", "application/json").body(body));
    }
    let timeline = format!(
        "/{}/{}/timeline",
        segment(&name("application namespace")),
        segment(&name("application name"))
    );
    for path in ["".to_owned(), timeline] {
        let url = format!("{}/api/v1/applications{path}", platform.url);
        asked.push(platform.client.get(url).header("authorization", token));
    }
    for request in asked {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), reqwest::StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/json");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer.get("errors"), None, "{answer}");
        strings(&answer, &mut found);
    }
    for (field, _) in FIELDS.iter().filter(|(_, shown)| matches!(shown, Shown::Everywhere | Shown::Api)) {
        assert!(
            found.iter().any(|text| is_of(field, text) || json_holds(field, text)),
            "{field}: {found:#?}"
        );
    }
    // An address is given as it was reported: whoever makes a link of it looks at what it is.
    assert!(found.contains(&link("repository")));
}

/// Whether a manifest, which is JSON within a string, holds it.
fn json_holds(field: &str, text: &str) -> bool {
    let mut all = BTreeSet::new();
    serde_json::from_str::<Value>(text).map(|value| strings(&value, &mut all)).is_ok()
        && all.iter().any(|text| is_of(field, text))
}
