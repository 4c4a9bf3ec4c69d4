//! Who gets in: every route, the first link, passwords, sessions, and what another site's page may not do.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use pipeline_core::{ExposeSecret as _, SecretString};
use reqwest::StatusCode;
use sha2::Digest as _;
use stages_platform_console::{Installation, Who, table};
use stages_platform_store::{API_KEYS, Account, By, Role, Scope};

use crate::sample::Sample;
use crate::served::{Served, cookie};

/// Every route of the console, and who may: a new one is added here, on purpose.
const ROUTES: &[(&str, &str, Who)] = &[
    ("GET", "/", Who::SignedIn),
    ("GET", "/applications", Who::SignedIn),
    ("POST", "/applications", Who::SignedIn),
    ("GET", "/applications/{runtime}/{namespace}/{name}", Who::SignedIn),
    ("GET", "/applications/{runtime}/{namespace}/{name}/deployments", Who::SignedIn),
    ("GET", "/applications/{runtime}/{namespace}/{name}/commits/{began}/{revision}", Who::SignedIn),
    ("GET", "/preview", Who::SignedIn),
    ("GET", "/preview/{runtime}/{namespace}/{name}", Who::SignedIn),
    ("GET", "/deployments", Who::SignedIn),
    ("GET", "/shipping", Who::SignedIn),
    ("GET", "/shipping/{days}", Who::SignedIn),
    ("GET", "/shipping/{days}/{figure}", Who::SignedIn),
    ("GET", "/resources", Who::SignedIn),
    ("GET", "/runtimes", Who::SignedIn),
    ("POST", "/runtimes", Who::Admin),
    ("GET", "/runtimes/add", Who::Admin),
    ("GET", "/runtimes/add/{runtime}", Who::Admin),
    ("GET", "/find", Who::SignedIn),
    ("GET", "/live", Who::SignedIn),
    ("POST", "/sign-out", Who::SignedIn),
    ("GET", "/settings", Who::SignedIn),
    ("POST", "/settings/keys", Who::SignedIn),
    ("POST", "/settings/keys/remove", Who::SignedIn),
    ("GET", "/settings/git", Who::SignedIn),
    ("POST", "/settings/identity", Who::SignedIn),
    ("GET", "/settings/users", Who::Admin),
    ("POST", "/settings/users", Who::Admin),
    ("POST", "/settings/users/change", Who::Admin),
    ("POST", "/settings/users/act", Who::Admin),
    ("GET", "/settings/rules", Who::Admin),
    ("POST", "/settings/rules", Who::Admin),
    ("POST", "/settings/rules/preview", Who::Admin),
    ("POST", "/settings/rules/remove", Who::Admin),
    ("GET", "/settings/tokens", Who::Admin),
    ("POST", "/settings/tokens", Who::Admin),
    ("POST", "/settings/tokens/remove", Who::Admin),
    ("GET", "/settings/retention", Who::Admin),
    ("POST", "/settings/retention", Who::Admin),
    ("GET", "/audit", Who::Admin),
    ("GET", "/sign-in", Who::Anyone),
    ("POST", "/sign-in", Who::Anyone),
    ("GET", "/login/oidc", Who::Anyone),
    ("GET", "/login/oidc/callback", Who::Anyone),
    ("GET", "/welcome", Who::Anyone),
    ("POST", "/welcome", Who::Anyone),
    ("GET", "/assets", Who::Anyone),
    ("GET", "/assets/{version}/{name}", Who::Anyone),
];

/// Addresses that lack their rest: they are answered with the way to a page.
const PARTIAL: &[&str] = &["/preview", "/shipping", "/shipping/28", "/assets"];

#[tokio::test]
async fn every_route_says_who_may_and_lets_nobody_else_by() {
    assert_eq!(table(), ROUTES);
    let served = Served::new().await;
    let session = served.signed_in().await;
    let member = served.member().await;
    for (method, path, who) in table() {
        let path = path
            .replace("{runtime}", "eu-1")
            .replace("{namespace}", "argocd-production")
            .replace("{name}", "payments")
            .replace("{version}", "none")
            .replace("{days}", "28")
            .replace("{began}", "1764000000000")
            .replace("{revision}", "3f9c1e2")
            .replace("{figure}", "failures");
        let url = format!("{}{path}", served.url);
        let ask = |accept: &'static str| {
            served.client.request(method.parse().unwrap(), &url).header("accept", accept)
        };
        let (program, person) = (ask("*/*").send().await.unwrap(), ask("text/html").send().await.unwrap());
        match who {
            Who::Anyone if PARTIAL.contains(&&*path) => assert_eq!(program.headers()["location"], "/"),
            Who::Anyone => assert_ne!(program.status(), StatusCode::SEE_OTHER, "{method} {path}"),
            Who::SignedIn | Who::Admin => {
                assert_eq!(program.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
                if method == "GET" {
                    assert_eq!(person.status(), StatusCode::SEE_OTHER, "{path}");
                    let to = person.headers()["location"].to_str().unwrap();
                    assert!(to.starts_with("/sign-in?next=%2F"), "{path} leads to {to}");
                }
                assert_eq!(program.text().await.unwrap(), "sign in at /sign-in\n");
                // With a session that was made up, too; with a real one it is answered. Who signs out would end it.
                let made_up = ask("*/*").header("cookie", "session=made-up").send().await.unwrap();
                assert_eq!(made_up.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
                if who == Who::Admin {
                    let member = ask("*/*").header("cookie", &member).send().await.unwrap();
                    assert_eq!(member.status(), StatusCode::FORBIDDEN, "{method} {path}");
                    assert_eq!(member.text().await.unwrap(), "only an admin may do this\n");
                }
                if path != "/sign-out" {
                    let real = ask("*/*").header("cookie", &session).send().await.unwrap();
                    let partial = PARTIAL.contains(&&*path);
                    let answer = if partial { StatusCode::SEE_OTHER } else { StatusCode::OK };
                    assert_eq!(real.status(), answer, "{method} {path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_address_that_lacks_its_rest_leads_to_the_page_that_it_means() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    for (asked, leads) in [
        ("/shipping", "/shipping/28/deployments"),
        ("/shipping?q=env:production&group=none", "/shipping/28/deployments?q=env:production&group=none"),
        ("/shipping/7", "/shipping/7/deployments"),
        ("/shipping/7?q=by%3Aada", "/shipping/7/deployments?q=by%3Aada"),
        ("/shipping/4000", "/shipping/90/deployments"),
        ("/shipping/0", "/shipping/1/deployments"),
        ("/shipping/%2F%2Fevil.example", "/shipping/28/deployments"),
        ("/preview", "/applications"),
        ("/preview?q=env:production", "/applications?q=env:production"),
        ("/assets", "/"),
    ] {
        let asking = served.client.get(format!("{}{asked}", served.url)).header("cookie", &session);
        let response = asking.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{asked}");
        assert_eq!(response.headers()["location"], leads, "{asked}");
        served.page(&session, leads).await;
    }
}

#[tokio::test]
async fn every_answer_forbids_scripts_and_frames_of_others_and_is_not_kept() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    for path in ["/", "/sign-in", "/nowhere"] {
        let asked = served.client.get(format!("{}{path}", served.url)).header("cookie", &session);
        let response = asked.send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap();
        assert!(
            header("content-security-policy")
                .starts_with("default-src 'none'; script-src 'self'; style-src 'self';")
        );
        assert!(!header("content-security-policy").contains("unsafe"));
        assert_eq!(
            (header("x-content-type-options"), header("cache-control")),
            ("nosniff", "no-store"),
            "{path}"
        );
    }
    // Nor does any page need what is forbidden.
    for path in [
        "/",
        "/applications",
        "/applications/eu-1/argocd-production/payments?tab=compare",
        "/runtimes",
        "/deployments",
    ] {
        let page = served.page(&session, path).await;
        assert!(
            !page.contains(" style=") && !page.contains("<style") && !page.contains(" onclick="),
            "{path}"
        );
        assert!(!page.contains("<script>"), "{path}");
    }
}

#[tokio::test]
async fn the_first_link_works_once_and_a_later_one_makes_it_useless() {
    let served = Served::new().await;
    let (first, second) = (served.link().await, served.link().await);
    let token = |link: &str| link.split_once("token=").unwrap().1.to_owned();
    assert_eq!(served.client.get(&first).send().await.unwrap().status(), StatusCode::GONE);
    assert_eq!(served.client.get(&second).send().await.unwrap().status(), StatusCode::OK);

    let form = |password| {
        [("token", token(&second)), ("name", "Ada".to_owned()), ("password", String::from(password))]
    };
    let post = async |password| {
        let form = form(password);
        let form: Vec<_> = form.iter().map(|(key, value)| (*key, value.as_str())).collect();
        served.post("/welcome", &form).await
    };
    let short = post("too short").await;
    assert_eq!(short.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(short.text().await.unwrap().contains("A password has 12 to 1024 characters."));
    assert_eq!(post("correct horse battery").await.status(), StatusCode::SEE_OTHER);
    let again = post("correct horse battery").await;
    assert_eq!(again.status(), StatusCode::GONE);
    assert!(again.text().await.unwrap().contains("This link is not good any more"));
    assert!(served.console.first_link().await.unwrap().is_none(), "somebody has an account");
    assert!(!format!("{:?}", stages_platform_console::table()).contains(&token(&second)));
}

static NOW: AtomicI64 = AtomicI64::new(0);

fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(NOW.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_link_ends_after_fifteen_minutes_and_a_session_after_seven_days() {
    let served = Served::with(Sample::new(), later).await;
    let link = served.link().await;
    NOW.store(16 * 60, Ordering::SeqCst);
    assert_eq!(served.client.get(&link).send().await.unwrap().status(), StatusCode::GONE);
    let session = served.signed_in().await;
    let status = async || {
        let asked = served.client.get(format!("{}/find?q=a", served.url)).header("cookie", &session);
        asked.send().await.unwrap().status()
    };
    NOW.fetch_add(7 * 86_400 - 60, Ordering::SeqCst);
    assert_eq!(status().await, StatusCode::OK);
    NOW.fetch_add(120, Ordering::SeqCst);
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
}

/// Time stands still, so that however long a password takes, nobody has waited.
fn still() -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap()
}

#[tokio::test]
async fn wrong_passwords_are_slowed_and_a_name_that_there_is_not_is_told_alike() {
    let served = Served::with(Sample::new(), still).await;
    let session = served.signed_in().await;
    let mut said = Vec::new();
    for name in ["ada", "nobody"] {
        // Nobody has an empty one: it is refused alike, and no try.
        for password in ["", "", "", "", "wrong", "wrong", "wrong"] {
            let response = served.post("/sign-in", &[("name", name), ("password", password)]).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
            // But for the name, which stands there as it was given.
            let page = response.text().await.unwrap();
            assert!(page.contains(&format!("value=\"{name}\"")), "{page}");
            said.push(page.replace(name, ""));
        }
        let response =
            served.post("/sign-in", &[("name", name), ("password", "correct horse battery")]).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{name}");
        assert!(response.headers().contains_key("retry-after"));
        assert!(
            response.text().await.unwrap().contains("Too many wrong passwords for this name. Try again in ")
        );
    }
    // Each that was tried stands in the audit log, and no name that nobody has: it may be a password in the wrong field.
    let tried = async {
        loop {
            let acts = served.store.audit_of("user.refuse", i64::MAX, 100).await.unwrap();
            let names: Vec<_> = acts.iter().map(|act| (&*act.who, &*act.how, &*act.subject)).collect();
            if names == [("ada", "password", "a wrong password"); 3] {
                return;
            }
            assert!(names.len() < 3, "{names:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), tried).await.expect("they are in the audit log");
    said.dedup();
    assert_eq!(said.len(), 1, "every refusal reads alike");
    assert!(said[0].contains("That name and password do not go together."));
    assert!(served.page(&session, "/").await.contains("What needs you now"), "a session goes on meanwhile");
}

#[tokio::test]
async fn whoever_tries_passwords_of_a_name_keeps_nobody_from_a_browser_that_they_signed_in_with_before() {
    let served = Served::with(Sample::new(), still).await;
    let known = |response: &reqwest::Response| {
        let mut all = response.headers().get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
        let line =
            all.find(|line| line.starts_with("known-browser=")).expect("the browser is known from now on");
        assert!(line.ends_with("; Path=/sign-in; HttpOnly; SameSite=Lax; Max-Age=15552000"), "{line}");
        line.split(';').next().unwrap().to_owned()
    };
    let welcome = async |token: &str, password: &str| {
        let form = [("token", token), ("name", "ada"), ("password", password)];
        known(&served.post("/welcome", &form).await)
    };
    let link = served.link().await;
    let first = welcome(link.split_once("token=").unwrap().1, "correct horse battery").await;
    let tries = async |cookie: &str, name: &str, password: &str| {
        let form = [("name", name), ("password", password)];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let asked = served.client.post(format!("{}/sign-in", served.url)).header("cookie", cookie).body(body);
        asked.send().await.unwrap()
    };
    for _ in 0..3 {
        assert_eq!(tries("", "ada", "wrong").await.status(), StatusCode::UNAUTHORIZED);
    }
    let right = "correct horse battery";
    assert_eq!(tries("", "ada", right).await.status(), StatusCode::TOO_MANY_REQUESTS);
    let response = tries(&first, "ada", right).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let second = known(&response);
    assert_ne!(first, second);
    assert_eq!(
        tries("", "ada", right).await.status(),
        StatusCode::TOO_MANY_REQUESTS,
        "elsewhere it is as before"
    );

    // One that was made up, or is another's, is of no use.
    let (id, code) = first.rsplit_once('.').unwrap();
    for made_up in [
        id.to_owned(),
        format!("{id}."),
        format!("{id}.{}", code.replace(|_| true, "A")),
        format!("{second}A"),
    ] {
        assert_eq!(tries(&made_up, "ada", right).await.status(), StatusCode::TOO_MANY_REQUESTS, "{made_up}");
    }
    let by = By { who: "ada".to_owned(), how: "session" };
    let lin = Account { name: "lin".to_owned(), password: String::new(), role: Role::Member };
    assert!(served.store.add_person(&by, &lin, 1).await.unwrap());
    for name in ["lin", "nobody"] {
        for _ in 0..3 {
            assert_eq!(tries("", name, "wrong").await.status(), StatusCode::UNAUTHORIZED);
        }
        assert_eq!(tries(&first, name, "wrong").await.status(), StatusCode::TOO_MANY_REQUESTS, "{name}");
    }

    // Passwords are tried no oftener with one, and each browser waits for itself.
    for _ in 0..3 {
        assert_eq!(tries(&first, "ada", "wrong").await.status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(tries(&first, "ada", right).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(tries(&second, "ada", right).await.status(), StatusCode::SEE_OTHER);

    // With another password browsers are known anew.
    let digest = sha2::Sha256::digest(b"again").into();
    let until = still().as_millisecond() + 60_000;
    assert!(served.store.keep_link_for(&by, "ada", (digest, until), 1).await.unwrap());
    let third = welcome("again", "another horse battery").await;
    assert_eq!(tries(&second, "ada", "another horse battery").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(tries(&third, "ada", "another horse battery").await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_blank_that_a_phone_puts_behind_a_name_keeps_nobody_out_and_makes_no_other_name_to_try_passwords_by()
 {
    let served = Served::with(Sample::new(), still).await;
    served.signed_in().await;
    let tries = async |name: &str, password: &str| {
        served.post("/sign-in", &[("name", name), ("password", password)]).await.status()
    };
    assert_eq!(tries("Ada ", "correct horse battery").await, StatusCode::SEE_OTHER);
    for name in ["ada ", " ada", "ada  "] {
        assert_eq!(tries(name, "wrong").await, StatusCode::UNAUTHORIZED, "{name}");
    }
    assert_eq!(tries("ada", "correct horse battery").await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn whoever_comes_when_many_sign_in_is_told_to_come_again_and_is_not_counted() {
    let served = Served::with(Sample::new(), still).await;
    served.signed_in().await;
    let names: Vec<String> = (0..300).map(|name| format!("made-up-{name}")).collect();
    let tried = |name: String| {
        let served = &served;
        async move {
            let response = served.post("/sign-in", &[("name", &name), ("password", "wrong")]).await;
            let after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
            (name, response.status(), after, response.text().await.unwrap())
        }
    };
    let mut busy = Vec::new();
    for (name, status, after, page) in join_all(names.into_iter().map(tried)).await {
        if status == StatusCode::UNAUTHORIZED {
            continue;
        }
        assert_eq!((status, after.as_deref()), (StatusCode::SERVICE_UNAVAILABLE, Some("5")), "{page}");
        assert!(page.contains("Many people sign in at this moment. Try again in a few seconds."), "{page}");
        busy.push(name);
    }
    let name = busy.pop().expect("more came than may wait");
    for _ in 0..3 {
        assert_eq!(tried(name.clone()).await.1, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(tried(name.clone()).await.1, StatusCode::TOO_MANY_REQUESTS);
    // A password that is too long for anybody is compared with none, and no try.
    let long = "x".repeat(5_000);
    for _ in 0..5 {
        let response = served.post("/sign-in", &[("name", "ada"), ("password", &long)]).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    }
    let response = served.post("/sign-in", &[("name", "ada"), ("password", "correct horse battery")]).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn signing_in_makes_a_session_of_its_own_and_signing_out_ends_it_alone() {
    let served = Served::new().await;
    let first = served.signed_in().await;
    let form = [("name", "ADA"), ("password", "correct horse battery"), ("next", "/applications?q=pay")];
    let response = served.post("/sign-in", &form).await;
    assert_eq!(response.headers()["location"], "/applications?q=pay");
    let second = cookie(&response);
    assert_ne!(first, second);
    let out = served
        .client
        .post(format!("{}/sign-out", served.url))
        .header("cookie", &second)
        .send()
        .await
        .unwrap();
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    let asked =
        served.client.get(format!("{}/find", served.url)).header("cookie", &second).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
    served.page(&first, "/").await;
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let post =
        || served.client.post(format!("{}/runtimes", served.url)).header("cookie", &session).body("name=eu3");
    let foreign = [
        post().header("sec-fetch-site", "cross-site"),
        post().header("sec-fetch-site", "same-site"),
        post().header("origin", "https://evil.example"),
        post().header("origin", "null"),
    ];
    for request in foreign {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let said = "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl\n";
        assert_eq!(response.text().await.unwrap(), said);
    }
    for request in [post().header("sec-fetch-site", "same-origin"), post().header("origin", &served.url)] {
        let page = request.send().await.unwrap().text().await.unwrap();
        assert!(page.contains("--from-literal=token=gort_made-up"), "{page}");
    }
}

#[tokio::test]
async fn a_page_at_the_address_that_people_have_changes_what_it_may_although_a_proxy_changes_the_host() {
    let external = Some("http://platform.example.com/");
    let served = Served::behind(external, Sample::new(), Timestamp::now, async |_| None).await;
    let session = served.signed_in().await;
    for (origin, status) in [
        ("http://platform.example.com", StatusCode::OK),
        ("https://platform.example.com", StatusCode::FORBIDDEN),
        ("http://platform.example.com.evil.example", StatusCode::FORBIDDEN),
    ] {
        let asked = served.client.post(format!("{}/runtimes", served.url)).header("cookie", &session);
        let response = asked.header("origin", origin).body("name=eu3").send().await.unwrap();
        assert_eq!(response.status(), status, "{origin}");
    }
}

#[tokio::test]
async fn adding_a_runtime_gives_what_installs_it_and_a_refused_field_says_why_and_keeps_the_others() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let post = async |body: &'static str| {
        let asked =
            served.client.post(format!("{}/runtimes", served.url)).header("cookie", &session).body(body);
        asked.send().await.unwrap().text().await.unwrap()
    };
    let no_namespace = "A namespace has lower-case letters, digits and &#39;-&#39;, begins and ends with one of the first two, and has at most 63.";
    let refusals = [
        (
            "name=EU-3",
            "A new runtime&#39;s name has lower-case letters and digits, a letter first, and at most 38 of them. For one that is called so already, say so below.",
        ),
        ("name=EU-3&adopted=on", "That is no name."),
        ("name=eu3&namespace=Team", no_namespace),
        ("name=eu3&argocd=argo%3Bcd", no_namespace),
        ("name=eu3&argocd=-argo", no_namespace),
        (
            "name=eu3&registry=https%3A%2F%2Fregistry.example.com",
            "A registry is a host and perhaps a path, such as registry.example.com/platform.",
        ),
        (
            "name=eu3&registry=a%20--set%20b",
            "A registry is a host and perhaps a path, such as registry.example.com/platform.",
        ),
        (
            "name=eu3&repository=platform.git",
            "A Git repository is an address, such as https://git.example.com/platform/gitops-runtime.git.",
        ),
        (
            "name=eu3&repository=https%3A%2F%2Fx%22%0Ay",
            "A Git repository is an address, such as https://git.example.com/platform/gitops-runtime.git.",
        ),
    ];
    for (body, why) in refusals {
        let page = post(body).await.replace('\'', "&#39;");
        assert!(page.contains(why) && !page.contains("--from-literal=token="), "{body}: {page}");
    }
    let kept = post("name=eu3&namespace=Team&argocd=argo&registry=registry.example.com").await;
    for value in ["value=\"eu3\"", "value=\"Team\"", "value=\"argo\"", "value=\"registry.example.com\""] {
        assert!(kept.contains(value), "{value}: {kept}");
    }
    assert_eq!(kept.matches("aria-invalid").count(), 1, "{kept}");

    let page = post("name=eu3&namespace=team&registry=registry.example.com").await;
    let runtime = Installation {
        name: "eu3".to_owned(),
        namespace: "team".to_owned(),
        registry: "registry.example.com".to_owned(),
        ..Installation::default()
    };
    let url = &served.url;
    let mut printed = vec![
        runtime.secret("gort_made-up"),
        runtime.account(),
        runtime.helm(url),
        runtime.argo_cd(url),
        runtime.terraform(url),
    ];
    printed.extend(runtime.left().into_iter().map(|left| left.command));
    for command in printed {
        let shown =
            command.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(page.contains(&shown), "{shown}: {page}");
    }
}

#[tokio::test]
async fn a_key_is_shown_once_and_is_good_until_it_is_taken_back_and_both_are_in_the_audit_log() {
    let served = Served::new().await;
    let (ada, lin) = (served.signed_in().await, served.member().await);
    let post = async |session: &str, path: &str, body: &'static str| {
        let asked = served.client.post(format!("{}{path}", served.url)).header("cookie", session).body(body);
        asked.send().await.unwrap().text().await.unwrap()
    };
    for (body, why) in [
        ("name=&scope=read&days=1", "A key says what it is for in 1 to 100 characters."),
        ("name=ci&scope=read&days=0", "A key ends after 1 to 365 days."),
        ("name=ci&scope=all&days=1", "A key may 'read', or has the scope 'full'."),
    ] {
        assert!(
            post(&lin, "/settings/keys", body).await.contains(&why.replace('\'', "&#39;"))
                || post(&lin, "/settings/keys", body).await.contains(why),
            "{why}"
        );
    }
    let made = post(&lin, "/settings/keys", "name=%3Cimg+src%3Dx%3E&scope=read&days=30").await;
    assert!(!made.contains("<img") && made.contains("&lt;img src=x&gt;"));
    let key = made.split("goak_").nth(1).unwrap().get(..64).unwrap();
    let key = SecretString::from(format!("goak_{key}"));
    let now = Timestamp::now().as_millisecond();
    assert!(served.store.key(&key, now).await.unwrap().is_some());
    let listed = served.page(&lin, "/settings").await;
    assert!(!listed.contains(key.expose_secret()) && listed.contains("&lt;img src=x&gt;"));
    assert!(!listed.contains("/audit"), "what only an admin sees is not offered");
    // Another's key is as if it were not there.
    let gone = "You have no such key (any more).";
    assert!(post(&ada, "/settings/keys/remove", "id=1").await.contains(gone));
    assert!(!post(&lin, "/settings/keys/remove", "id=1").await.contains(gone));
    assert_eq!(served.store.key(&key, now).await.unwrap(), None);
    let audit = served.page(&ada, "/audit").await;
    for act in ["key.add", "key.remove", "user.add", "user.sign-in"] {
        assert!(audit.contains(act), "{act}");
    }
    assert!(!audit.contains("<img") && !audit.contains(key.expose_secret()));
}

#[tokio::test]
async fn whoever_has_as_many_keys_as_they_may_have_is_told_to_take_one_back() {
    let served = Served::new().await;
    let ada = served.signed_in().await;
    let (by, now) = (By { who: "ada".to_owned(), how: "session" }, Timestamp::now().as_millisecond());
    for _ in 0..API_KEYS {
        served.store.add_key(&by, "ci", Scope::Read, now + 86_400_000, now).await.unwrap();
    }
    let asked = served.client.post(format!("{}/settings/keys", served.url)).header("cookie", ada);
    let page = asked.body("name=ci&scope=read&days=1").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("You have 50 keys: take one back first."), "{page}");
    assert_eq!(served.store.keys(Some("ada")).await.unwrap().len(), API_KEYS);
}
