//! What opens anything stands nowhere but with whoever has it: no log, answer, file of the store or backup holds a password, the link
//! of an account, a session, an API key or a token of a runtime, however each was used.

use std::path::Path;

use loadtest::sim::local_client;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use serde_json::json;

use super::{Platform, first_link};
use crate::runtime::SOON;

const PASSWORD: &str = "canary horse battery";
const WRONG: &str = "canary that is wrong";

/// A secret, and what it is called where it is found.
struct Canary {
    name: &'static str,
    text: String,
}

/// What begins so in a page, as far as it goes on in what secrets are made of.
fn shown(page: &str, begin: &str) -> String {
    let behind = page.split_once(begin).unwrap_or_else(|| panic!("{begin} is not in {page}")).1;
    let rest: String =
        behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    format!("{}{rest}", begin.trim_start_matches(['>', '=']))
}

fn within(file: &Path, canaries: &[Canary]) {
    let bytes = std::fs::read(file).unwrap();
    for Canary { name, text } in canaries {
        let is_there = bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!is_there, "{name} stands in {}", file.display());
    }
}

/// One that was never good, and differs in its last letter from one that is.
fn near(text: &str) -> String {
    let mut wrong = text.to_owned();
    let last = wrong.pop();
    wrong.push(if last == Some('0') { '1' } else { '0' });
    wrong
}

/// Requests with a secret in each place that takes one, in every address, and in bodies that are none.
fn tries(client: &Client, platform: &str, secret: &str) -> Vec<RequestBuilder> {
    let at = |path: &str| format!("{platform}{path}");
    let query = json!({"query": "{ me { name } }"});
    let mut all = Vec::new();
    for authorization in [secret.to_owned(), format!("Bearer {secret}")] {
        let post = |path: &str| client.post(at(path)).header("authorization", &authorization);
        let forward = "/2.0/api/runtimes/eu1/app-proxy/graphql";
        all.extend(["/2.0/api/graphql", forward].map(|path| post(path).json(&query)));
        let others = ["/2.0/api/graphql", "/2.0/api/events", "/api/argo-runtime"];
        all.extend(others.map(|path| post(path).body(secret.to_owned())));
    }
    let cookie = format!("session={secret}");
    all.extend([
        client.get(at("/applications")).header("cookie", &cookie),
        client.post(at("/2.0/api/graphql")).header("cookie", &cookie).json(&query),
        client.get(at(&format!("/healthz?token={secret}"))),
        client.post(at(&format!("/2.0/api/events?authorization={secret}"))).body("{}"),
    ]);
    all
}

/// None stands in a backup, or in a file of the store.
async fn stored(platform: &Platform, canaries: &[Canary]) {
    let backup = platform.folder.path().join("backup.db");
    platform.command(&["backup", &backup.display().to_string()]).await.unwrap();
    within(&backup, canaries);
    let state = platform.folder.path().join("state");
    let mut files = 0;
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            within(&path, canaries);
            files += 1;
        }
    }
    assert!(files >= 2, "{files} files of the store");
}

/// None stands in the log.
fn logged(platform: &Platform, canaries: &[Canary]) {
    for line in platform.runtime().process().lines().all() {
        for Canary { name, text } in canaries {
            // The one line that the first link is printed on is for whoever starts it.
            let is_first = line.starts_with("nobody has an account yet") && *name == "a link of an account";
            assert!(is_first || !line.contains(text), "{name} stands in the log: {line}");
        }
    }
}

#[tokio::test]
async fn no_log_answer_store_or_backup_holds_what_opens_anything() {
    let mut platform = Platform::start().await;
    let client = local_client().redirect(Policy::none()).timeout(SOON).build().unwrap();
    let at = |path: &str| format!("{}{path}", platform.url());
    let link = first_link(platform.runtime()).expect("nobody has an account yet");
    let link = link.split_once("token=").expect("a link").1.to_owned();
    let form = format!("token={link}&name=ada&password={}", PASSWORD.replace(' ', "+"));
    let made = client.post(at("/welcome")).body(form.clone()).send().await.unwrap();
    let cookie = made.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    let of_page =
        |asked: RequestBuilder| asked.header("cookie", &cookie).header("sec-fetch-site", "same-origin");
    let post = async |path: &str, form: &str| {
        of_page(client.post(at(path))).body(form.to_owned()).send().await.unwrap().text().await.unwrap()
    };
    let key = shown(&post("/settings/keys", "name=canary&scope=full&days=1").await, ">goak_");
    let token = shown(&post("/runtimes", "name=eu1").await, "=gort_");
    let invited = shown(&post("/settings/users", "name=lin&role=member&teams=").await, "/welcome?token=");
    let invited = invited.split_once("token=").unwrap().1.to_owned();
    assert!(key.len() > 60 && token.len() > 60 && session.len() > 20 && invited.len() > 20);
    let all = [
        ("a password", PASSWORD.to_owned()),
        ("the same in a form", PASSWORD.replace(' ', "+")),
        ("a wrong password", WRONG.to_owned()),
        ("a link of an account", link.clone()),
        ("a link of somebody who is invited", invited.clone()),
        ("a session", session.clone()),
        ("a session that is none", near(&session)),
        ("an API key", key.clone()),
        ("an API key that is none", near(&key)),
        ("a token", token.clone()),
        ("a token that is none", near(&token)),
    ];
    let canaries = all.map(|(name, text)| Canary { name, text });

    let secrets = [&key, &token, &session].map(|text| [text.clone(), near(text)]);
    let secrets = secrets.iter().flatten();
    let mut asked: Vec<RequestBuilder> =
        secrets.flat_map(|secret| tries(&client, &platform.url(), secret)).collect();
    for password in [PASSWORD, WRONG] {
        let form = format!("name=lin&password={}", password.replace(' ', "+"));
        asked.push(client.post(at("/sign-in")).body(form));
    }
    asked.push(client.post(at("/welcome")).body(form));
    let mut answers = Vec::new();
    for one in asked {
        let response = one.send().await.unwrap();
        let (status, headers) = (response.status(), format!("{:?}", response.headers()));
        answers.push((status, headers, response.text().await.unwrap()));
    }
    let (refused, taken): (Vec<_>, Vec<_>) =
        answers.iter().partition(|(status, ..)| status.is_client_error());
    assert!(refused.len() > 50 && taken.len() > 5, "{} and {}", refused.len(), taken.len());
    for (status, headers, text) in &answers {
        for Canary { name, text: secret } in &canaries {
            assert!(
                !headers.contains(secret) && !text.contains(secret),
                "{name} is answered with {status}: {headers} {text}"
            );
        }
    }
    // The page that offers a password to be set holds its own link, and no other page does.
    for path in ["/", "/settings", "/settings/users", "/settings/tokens", "/runtimes", "/audit"] {
        let page = of_page(client.get(at(path))).send().await.unwrap().text().await.unwrap();
        for Canary { name, text } in &canaries {
            assert!(!page.contains(text), "{name} stands on {path}");
        }
    }

    stored(&platform, &canaries).await;
    logged(&platform, &canaries);
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}
