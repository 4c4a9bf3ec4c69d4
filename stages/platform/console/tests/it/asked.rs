//! What a runtime is asked for while somebody looks, in a browser: events of Kubernetes, Git integrations, files and commits.

use fantoccini::key::Key;
use jiff::Timestamp;
use serde_json::{Value, json};
use stages_platform_store::{Action, Delivery, Entity, Role, Text};
use tokio::net::TcpSocket;

use crate::acts::listen;
use crate::browser::Browser;
use crate::platform::{Platform, report};

const PAGE: &str = "/applications/prod/argocd/shop";

async fn open(platform: &Platform, browser: &Browser, path: &str) {
    browser.goto(&format!("{}{path}", platform.url)).await;
}

/// The application `shop` says where its manifests come from.
async fn comes_from(platform: &Platform, source: Value) {
    let runtime = platform.store.runtime_named("prod").await.unwrap().unwrap();
    let mut of = report(None, Timestamp::now().as_millisecond() - 1_000);
    let object = json!({"kind": "Application", "metadata": {"name": "shop"}, "spec": {"source": source}});
    (of.version, of.object) = (Some(2), Some(Text::new(object.to_string())));
    let delivery = Delivery { runtime, key: [77; 32], keyed: true, epoch: None, era: 0, report: of };
    platform.store.keep(vec![delivery]).await.unwrap();
}

/// Somebody who sees everything, and may do nothing.
async fn reader(platform: &Platform) -> String {
    platform.lin(vec![(Entity::GitopsApplications, vec![Action::View], Vec::new())]).await
}

/// What was asked last, by its variables.
fn last(platform: &Platform) -> Value {
    platform.came().pop().unwrap().1["variables"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_read_in_the_cluster_and_a_runtime_without_a_way_in_says_why_there_are_none() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    open(&platform, &browser, &format!("{PAGE}?tab=events")).await;
    browser
        .until(
            "document.querySelector('.asked h2')?.textContent === 'The cluster remembers no event of shop'",
        )
        .await;
    let application = json!({"runtime": "prod", "namespace": "argocd", "name": "shop"});
    assert_eq!(last(&platform), json!({"application": application, "resource": null}));

    // Of a resource, chosen by the keyboard.
    browser.tab_to("#of").await;
    browser.keys("R").await;
    browser.tab_to(".question button").await;
    browser.keys(&char::from(Key::Enter).to_string()).await;
    browser.until("document.querySelectorAll('.events tbody tr').length === 2").await;
    let address = browser.address().await;
    assert!(address.query().unwrap().contains("r=argoproj.io%2FRollout%2Fshop%2Fweb"), "{address}");
    let resource = json!({"group": "argoproj.io", "kind": "Rollout", "namespace": "shop", "name": "web"});
    assert_eq!(last(&platform)["resource"], resource);
    let rows = "[...document.querySelectorAll('.events tbody tr')].map((row) => [...row.cells].slice(2).map((cell) => cell.textContent).join('|')).join()";
    browser
        .until(&format!("{rows} === 'BackOff|Pod/web-1|restarting <img src=x> (7 times),Pulled|Pod/web-1|'"))
        .await;
    let mut found = Vec::new();
    for (width, height, dark) in [(1_440, 900, false), (390, 844, true)] {
        browser.view(width, height, dark).await;
        browser.until("document.querySelector('.events')").await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        browser.what_keeps_out("events", &mut found).await;
        browser.shot(&format!("asked-events-{width}")).await;
    }
    assert!(found.is_empty(), "{found:#?}");

    // What the page is patched by meanwhile leaves them where they are.
    browser.client.execute("document.querySelector('.events').same = true", vec![]).await.unwrap();
    let patched = "document.addEventListener('patched', () => { window.patched = true; })";
    browser.client.execute(patched, vec![]).await.unwrap();
    browser.until("document.querySelector('[data-live]').dataset.state === 'live'").await;
    comes_from(&platform, json!({"repoURL": "https://github.com/team/mono.git", "path": "web"})).await;
    browser.until("window.patched && document.querySelector('.events').same").await;

    // Bound, so that nobody else is given the port, and not listening.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nowhere = taken.local_addr().unwrap();
    platform.at(&format!("http://{nowhere}")).await;
    browser.press(".asked > button").await;
    let said = format!("runtime 'prod' cannot be reached at {nowhere}: ");
    browser
        .until(&format!("document.querySelector('.asked [role=alert]')?.textContent.startsWith(\"{said}\")"))
        .await;
    platform.at("").await;
    let said = "runtime 'prod' has no address, so nothing can be asked of it: an admin finds on the console's page /runtimes/add/prod what gives it one; a program registers it anew (createRuntime with recover: true) with ingressHost, or internalIngressHost";
    browser.press(".asked .empty button").await;
    browser
        .until(&format!("document.querySelector('.asked [role=alert]')?.textContent === \"{said}\""))
        .await;
    let said = browser.find(".asked").await.text().await.unwrap();
    assert!(
        said.contains("They are not kept here: the app proxy of prod reads them in its cluster."),
        "{said}"
    );
    browser.shot("asked-events-no-way").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_connects_an_account_sets_checks_and_forgets_a_token_and_the_platform_keeps_nothing_of_it() {
    let platform = Platform::new().await;
    let browser = platform.browser().await;
    open(&platform, &browser, "/settings/git").await;
    let own = "document.querySelector('.asked tbody tr')?.cells[2].textContent";
    browser.until(&format!("{own} === 'none of yours'")).await;
    listen(&browser).await;
    let (enter, escape) = (char::from(Key::Enter).to_string(), char::from(Key::Escape).to_string());
    let mut found = Vec::new();

    // By the provider's own page, whose line is brought back.
    browser.tab_to("[aria-label='Connect with default']").await;
    browser.keys(&enter).await;
    browser.until("document.activeElement?.name === 'line'").await;
    let link = browser.find("#act a").await;
    let address = "https://runtime.example.com/app-proxy/api/git-auth/github?state=s";
    assert_eq!(link.attr("href").await.unwrap().as_deref(), Some(address));
    assert_eq!(link.attr("rel").await.unwrap().as_deref(), Some("noreferrer"));
    browser.what_keeps_out("connect", &mut found).await;
    browser.shot("asked-connect").await;
    browser.keys(&format!("wrong{enter}")).await;
    let why = "this was not begun here, or more than 10 minutes ago: begin again";
    browser.until(&format!("document.querySelector('#act [role=alert]').textContent === '{why}'")).await;
    browser.client.execute("document.querySelector('#act [name=line]').value = ''", vec![]).await.unwrap();
    browser.find("#act [name=line]").await.send_keys(&format!(" sealed {enter}")).await.unwrap();
    browser
        .until(&format!(
            "window.said.includes('default has your token') && {own}.startsWith('yours, until ')"
        ))
        .await;
    let asked = platform.came();
    let lines: Vec<&Value> = asked.iter().map(|(_, body)| &body["variables"]["args"]["line"]).collect();
    assert!(lines.contains(&&json!("sealed")), "{lines:?}");

    // Checked, forgotten once that is confirmed, and set by hand.
    browser.press("[aria-label='Check your token of default']").await;
    let checked = "The provider of default takes your token, as that of octocat.";
    browser.until(&format!("document.querySelector('.asked > p').textContent === '{checked}'")).await;
    for (width, height, dark) in [(1_440, 900, true), (390, 844, false)] {
        browser.view(width, height, dark).await;
        browser.until(&format!("{own}?.startsWith('yours, until ')")).await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        let seen = "[...document.querySelectorAll('.asked button')].every((one) => one.getBoundingClientRect().right <= document.querySelector('.asked').getBoundingClientRect().right)";
        browser.until(seen).await;
        browser.what_keeps_out("Git accounts", &mut found).await;
        browser.shot(&format!("asked-git-{width}")).await;
    }
    listen(&browser).await;
    browser.press("[aria-label='Forget your token of default']").await;
    browser.find("#act .primary").await;
    browser.keys(&escape).await;
    browser.until("!document.querySelector('#act')").await;
    platform.came();
    browser.press("[aria-label='Forget your token of default']").await;
    browser.press("#act .primary").await;
    browser.until(&format!("{own} === 'none of yours'")).await;
    assert!(platform.came()[0].1["query"].as_str().unwrap().contains("deregisterFromGitIntegration"));
    browser.press("[aria-label='Set a token of default']").await;
    browser
        .until("document.activeElement?.name === 'token' && document.activeElement.type === 'password'")
        .await;
    // Browsers fill in the password of this page for `off`, and whoever sees dots alone sends it to the provider.
    let filled = browser.find("#act [name=token]").await.attr("autocomplete").await.unwrap();
    assert_eq!(filled.as_deref(), Some("new-password"));
    browser.what_keeps_out("a token", &mut found).await;
    browser.keys(&format!("secret-of-ada{enter}")).await;
    browser.until(&format!("{own}?.startsWith('yours, until ')")).await;
    assert!(found.is_empty(), "{found:#?}");

    // That it was done stands in the audit log, and nothing of what it was done with.
    let audit = platform.store.audit(i64::MAX, 100).await.unwrap();
    let acts: Vec<&str> = audit.iter().map(|act| &*act.subject).collect();
    for act in ["registerToGitIntegration", "deregisterFromGitIntegration", "finishGitAuth", "beginGitAuth"] {
        assert!(acts.contains(&&*format!("prod: {act}")), "{acts:?}");
    }
    assert!(!acts.iter().any(|act| act.contains("secret-of-ada") || act.contains("sealed")), "{acts:?}");
    browser.close().await;
}

/// Says no to the question that the page asks, once it does.
async fn dismissed(browser: &Browser) {
    let asked = async {
        while browser.client.get_alert_text().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), asked).await.unwrap();
    browser.client.dismiss_alert().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_changed_and_committed_or_becomes_a_pull_request_and_what_was_done_is_not_done_twice() {
    let platform = Platform::new().await;
    let source =
        json!({"repoURL": "https://github.com/team/mono.git", "path": "web", "targetRevision": "main"});
    comes_from(&platform, source).await;
    let browser = platform.browser().await;
    open(&platform, &browser, &format!("{PAGE}?tab=files")).await;
    let title = "document.querySelector('.asked h2')?.textContent";
    browser.until(&format!("{title} === 'You have no Git token of github.com at prod'")).await;
    let way = browser.find(".asked a.button").await;
    assert_eq!(way.attr("href").await.unwrap().as_deref(), Some("/settings/git?runtime=prod"));

    platform.runtime.register(true);
    open(&platform, &browser, &format!("{PAGE}?tab=files")).await;
    let enter = char::from(Key::Enter).to_string();
    let names = "[...document.querySelectorAll('.asked .entry')].map((one) => one.textContent).join()";
    browser.until(&format!("{names} === '../,base/,values.yaml'")).await;
    browser.tab_to(".asked tr:last-child .entry").await;
    browser.keys(&enter).await;
    browser.until("document.querySelector('.asked textarea')?.value === 'replicas: 2\\nimage: web\\n'").await;
    let mut found = Vec::new();
    listen(&browser).await;
    browser.press(".asked .primary").await;
    browser.until("window.said.includes('Nothing is changed yet.')").await;
    browser.tab_to(".asked textarea").await;
    let home = format!("{}{}", char::from(Key::Control), char::from(Key::Home));
    browser.keys(&format!("{home}{}# more\n", char::from(Key::Null))).await;
    browser.until("document.querySelector('.asked textarea[data-unsaved]')?.value === '# more\\nreplicas: 2\\nimage: web\\n'").await;
    browser.what_keeps_out("a file", &mut found).await;
    browser.shot("asked-file").await;

    // Somebody who goes elsewhere is asked before, also by the browser's own way back.
    browser.press("nav.tabs a").await;
    dismissed(&browser).await;
    browser.until("document.querySelector('.asked textarea[data-unsaved]')").await;
    let back =
        "history.pushState(null, '', `${location.pathname}?tab=drift`); setTimeout(() => history.back())";
    browser.client.execute(back, vec![]).await.unwrap();
    dismissed(&browser).await;
    browser
        .until("location.search === '?tab=files' && document.querySelector('.asked textarea[data-unsaved]')")
        .await;
    platform.came();
    browser.press(".asked .primary").await;
    browser.until("document.activeElement?.name === 'msg' && document.querySelector('#act .diff .new')?.textContent.includes('# more')").await;
    browser.what_keeps_out("a commit", &mut found).await;
    browser.shot("asked-commit").await;
    browser.keys(&enter).await;
    browser.until("document.querySelector('.asked [role=status]')?.textContent === 'c0ffee1 is committed to the branch main. '").await;
    browser.until("!document.querySelector('[data-unsaved]') && document.querySelector('.asked textarea').value.startsWith('# more')").await;
    let came = platform.came();
    assert_eq!((came.len(), &*came[0].0), (2, "admin"), "{came:?}");
    let data = "# more\nreplicas: 2\nimage: web\n";
    let file = json!({"path": "web/values.yaml", "revision": "3f9c1e2aaa", "data": data});
    let args = json!({
        "integrationName": "default", "repo": "team/mono", "branchName": "main", "files": [file], "msg": "Change web/values.yaml",
    });
    assert_eq!(came[0].1["variables"]["args"], args);
    assert_eq!(platform.store.audit(i64::MAX, 1).await.unwrap()[0].subject, "prod: commitFiles");

    // A pull request that fails leaves the commit, and is asked for alone the next time.
    browser.tab_to(".asked textarea").await;
    browser.keys(&format!("{home}{}# again\n", char::from(Key::Null))).await;
    browser.until("document.querySelector('.asked textarea[data-unsaved]')").await;
    browser.press(".asked .primary").await;
    browser.press("#act [value=pull]").await;
    let name = "const field = document.querySelector('#act [name=branch]'); const was = field.value; field.value = 'change-1'; return was";
    let offered = browser.client.execute(name, vec![]).await.unwrap();
    assert!(offered.as_str().unwrap().starts_with("change-values-yaml-"), "{offered}");
    browser.press("#act .primary").await;
    let why = "c0ffee1 is committed to change-1, and no pull request was opened: GitHub does not answer";
    browser.until(&format!("document.querySelector('#act [role=alert]').textContent === '{why}'")).await;
    browser.press("#act .primary").await;
    browser.until("document.querySelector('.asked [role=status] a')?.textContent === 'Pull request 7'").await;
    let link = browser.find(".asked [role=status] a").await.attr("href").await.unwrap();
    assert_eq!(link.as_deref(), Some("https://github.com/team/mono/pull/7"));
    let came = platform.came();
    let count =
        |field: &str| came.iter().filter(|(_, body)| body["query"].as_str().unwrap().contains(field)).count();
    assert_eq!((count("commitFiles"), count("createPullRequest")), (1, 2), "{came:?}");
    let args = &came[0].1["variables"]["args"];
    let of = ["branchName", "baseRef", "targetBranch"].map(|name| args[name].as_str().unwrap());
    assert_eq!(of, ["change-1", "3f9c1e2aaa", "main"], "{args}");
    let (_, pull) =
        came.iter().find(|(_, body)| body["query"].as_str().unwrap().contains("createPullRequest")).unwrap();
    let args = json!({
        "integrationName": "default", "repo": "team/mono", "head": "change-1", "base": "main", "title": "Change web/values.yaml",
    });
    assert_eq!(pull["variables"]["args"], args);
    for (width, height, dark) in [(1_440, 900, false), (390, 844, true)] {
        browser.view(width, height, dark).await;
        browser.until(&format!("{names} === '../,base/,values.yaml'")).await;
        browser.press(".asked tr:last-child .entry").await;
        browser.until("document.querySelector('.asked textarea')").await;
        browser.until("document.documentElement.scrollWidth <= innerWidth").await;
        browser.what_keeps_out("files", &mut found).await;
        browser.shot(&format!("asked-files-{width}")).await;
    }
    assert!(found.is_empty(), "{found:#?}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_request_into_a_tag_is_refused_before_anything_is_committed() {
    let platform = Platform::new().await;
    platform.runtime.register(true);
    let source =
        json!({"repoURL": "https://github.com/team/mono.git", "path": "web", "targetRevision": "v1"});
    comes_from(&platform, source).await;
    let browser = platform.browser().await;
    open(&platform, &browser, &format!("{PAGE}?tab=files")).await;
    browser.press(".asked tr:last-child .entry").await;
    browser.until("document.querySelector('.asked textarea')").await;
    browser.tab_to(".asked textarea").await;
    browser.keys("# more").await;
    browser.until("document.querySelector('.asked textarea[data-unsaved]')").await;
    browser.press(".asked .primary").await;
    browser.press("#act [value=pull]").await;
    platform.came();
    browser.press("#act .primary").await;
    let why = "v1 is a tag: name a branch";
    browser.until(&format!("document.querySelector('#act [role=alert]').textContent === '{why}'")).await;
    let came = platform.came();
    assert_eq!(came.len(), 1, "no pull request was asked for: {came:?}");
    assert_eq!(came[0].1["variables"]["args"]["targetBranch"], "v1");
    browser.until("document.querySelector('.asked textarea[data-unsaved]')").await;
    browser.close().await;
}

#[tokio::test]
async fn whoever_may_not_commit_is_told_so_and_so_is_whoever_looks_for_files_where_there_are_none() {
    let platform = Platform::new().await;
    let session = reader(&platform).await;
    let files = platform.page(&session, &format!("{PAGE}?tab=files")).await;
    assert!(files.contains("No folder of a Git repository is known of it"), "{files}");
    comes_from(
        &platform,
        json!({"repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1"}),
    )
    .await;
    let files = platform.page(&session, &format!("{PAGE}?tab=files")).await;
    assert!(files.contains("No folder of a Git repository is known of it"), "{files}");
    // A server that has no owners is known all the same.
    let object = json!({"kind": "Application", "spec": {"source": {"repoURL": "https://git.example.com/mono.git", "path": "web"}}});
    let mut of = report(None, Timestamp::now().as_millisecond());
    (of.version, of.object) = (Some(3), Some(Text::new(object.to_string())));
    let runtime = platform.store.runtime_named("prod").await.unwrap().unwrap();
    let delivery = Delivery { runtime, key: [78; 32], keyed: true, epoch: None, era: 0, report: of };
    platform.store.keep(vec![delivery]).await.unwrap();
    let files = platform.page(&session, &format!("{PAGE}?tab=files")).await;
    assert!(files.contains("The address of the repository names no owner and no project"), "{files}");
    let none = platform.page(&platform.session("mia", Role::Member).await, "/settings/git").await;
    assert!(none.contains("There is no runtime that you see"), "{none}");

    let git = platform.page(&session, "/settings/git").await;
    let why = "No rule of your teams lets you register a token with prod: an admin can add one.";
    assert!(git.contains(&format!("data-runtime=\"prod\" data-why=\"{why}\"")), "{git}");
    let admin = platform.session("ada", Role::Admin).await;
    let git = platform.page(&admin, "/settings/git?runtime=prod").await;
    assert!(git.contains("data-runtime=\"prod\"") && !git.contains("data-why"), "{git}");
}

#[tokio::test]
async fn whoever_may_not_commit_is_told_so_beside_the_files() {
    let platform = Platform::new().await;
    comes_from(
        &platform,
        json!({"repoURL": "git@git.example.com:team/mono.git", "path": "/web/", "targetRevision": "HEAD"}),
    )
    .await;
    let session = reader(&platform).await;
    let files = platform.page(&session, &format!("{PAGE}?tab=files")).await;
    let part = files.split("data-files").nth(1).unwrap().split('>').next().unwrap();
    for said in [
        "data-host=\"git.example.com\"",
        "data-repository=\"team/mono\"",
        "data-path=\"web\"",
        "data-revision=\"\"",
        "data-why=\"No rule of your teams lets you commit: an admin can add one.\"",
    ] {
        assert!(part.contains(said), "{said}: {part}");
    }
    let admin = platform.session("ada", Role::Admin).await;
    assert!(!platform.page(&admin, &format!("{PAGE}?tab=files")).await.contains("data-why=\"No rule"));
}
