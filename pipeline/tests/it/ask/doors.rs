//! Who may ask, where, and what the others are told.

use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use loadtest::sim::Simulation;
use pipeline_core::Key;
use pipeline_ownership::sharding::Sharding;
use reqwest::header::{AUTHORIZATION, HOST, ORIGIN};
use serde_json::json;
use tokio::process::Command;

use super::{answer, ask, refused, reported};
use crate::runtime::{PROGRAM, Runtime, http_client, replace};
use crate::told;

const TOKEN: &str = "a-token-of-the-admin-address";

/// Waits until the admin address is open; gives it.
async fn address(runtime: &Runtime) -> String {
    let line = runtime.says("the admin address is open").await;
    format!("http://{}", line.field("address"))
}

/// Status and text of a request over TCP.
async fn get(url: &str, headers: &[(reqwest::header::HeaderName, &str)]) -> (u16, String) {
    let client = http_client();
    let mut request = client.get(url);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

fn token_file(simulation: &Simulation, token: &str) -> String {
    let path = simulation.directory().join("admin-token");
    replace(&path, token);
    path.display().to_string()
}

#[tokio::test]
async fn the_socket_is_for_its_user_alone_and_outlives_no_reporter() {
    let (simulation, runtime) = reported(&["shop"]).await;
    let socket = simulation.directory().join("state/admin.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A killed reporter leaves it behind; the next one takes its place.
    runtime.kill().await;
    assert!(socket.exists());
    let nobody = format!(
        "gitops-runtime: no reporter answers at {}: is it running? give --socket or --state as the reporter has them, \
         or --address\n",
        socket.display()
    );
    assert_eq!(ask(&simulation, &["status"]).await, (Some(1), String::new(), nobody.clone()));
    let again = Runtime::start(&simulation, &json!({})).await;
    again.idle(1).await;
    let path = socket.to_str().unwrap();
    assert!(answer(&simulation, &["status", "--socket", path]).await.contains(" reporter "));
    let state = simulation.directory().join("state");
    assert!(
        answer(&simulation, &["status", "--state", state.to_str().unwrap()]).await.contains(" reporter ")
    );
    again.stop().await;
    assert!(!socket.exists());
    assert_eq!(ask(&simulation, &["status", "--socket", path]).await, (Some(1), String::new(), nobody));
}

/// In a pod the settings stand in arguments of the reporter that a command beside it does not have.
#[tokio::test]
async fn a_name_without_a_namespace_is_of_the_reporters_even_where_the_command_has_other_settings() {
    let simulation = told::world(|_| {}).await;
    let mut object = told::application("shop", &told::thing());
    object["metadata"]["namespace"] = json!("delivery");
    told::put_object(&simulation, object);
    let runtime = Runtime::start(&simulation, &json!({"kubernetes": {"namespace": "delivery"}})).await;
    runtime.idle(1).await;
    let state = simulation.directory().join("state");
    let ask = async |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).arg("--state").arg(&state).env_clear();
        command.env("GITOPS_RUNTIME_KUBERNETES__NAMESPACE", "pods-own").kill_on_drop(true);
        let Output { status, stdout, stderr } = command.output().await.unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let (code, out, error) = ask(&["explain", "shop"]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(out.contains(" application   delivery/shop\n"), "{out}");
    let again = (Some(0), "1 application is read again\n".to_owned(), String::new());
    assert_eq!(ask(&["replay", "--app", "shop"]).await, again);
    let said = |name: &str| format!("gitops-runtime: delivery/{name}\n");
    for (arguments, why) in [
        (&["explain", "shpo"][..], "shpo is not known; did you mean delivery/shop?"),
        (&["parked", "replay", "shop"], "shop is not parked"),
    ] {
        let (code, _, error) = ask(arguments).await;
        assert_eq!((code, error), (Some(1), said(why)));
    }
    runtime.stop().await;
}

#[tokio::test]
async fn a_second_reporter_is_told_what_to_do() {
    let (simulation, runtime) = reported(&["shop"]).await;
    let state = simulation.directory().join("state");
    let said = refused(&simulation, &json!({})).await;
    let held = format!(
        "gitops-runtime: another process holds the ledger file {}: one process writes a ledger, so stop the other one \
         or give this one a file of its own\n",
        state.join("reporter-ledger.redb").display()
    );
    assert_eq!(said, held);
    // With a ledger of its own it is the socket that is in use.
    let said = refused(&simulation, &json!({"reporter": {"ledger": {"storage": "memory"}}})).await;
    let live = format!(
        "gitops-runtime: another process answers on the admin socket {}: stop it, or set state.directory or \
         admin.socket to a place of this process's own\n",
        state.join("admin.sock").display()
    );
    assert_eq!(said, live);
    assert!(answer(&simulation, &["status"]).await.contains(" reporter "), "the first one still answers");
    runtime.stop().await;
}

#[tokio::test]
async fn another_process_is_named_where_it_has_the_application() {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let sharding = Sharding::Jump { shards: NonZeroU32::new(5).unwrap() };
    let shard = sharding.place(&Key::new("argocd", "shop").unwrap());
    let own = (shard + 1) % 5;
    let runtime =
        Runtime::start(&simulation, &json!({"reporter": {"sharding": {"shard": own.to_string()}}})).await;
    runtime.until("the first list", |status| status.ready).await;
    assert!(simulation.directory().join(format!("state/admin-{own}-of-5.sock")).exists());
    let said = format!("argocd/shop belongs to shard {shard}, which another process has: ask that one");
    let expected = (Some(1), String::new(), format!("gitops-runtime: {said}\n"));
    assert_eq!(ask(&simulation, &["explain", "shop"]).await, expected);
    let expected =
        (Some(1), "0 applications are read again\n".to_owned(), format!("gitops-runtime: {said}\n"));
    assert_eq!(ask(&simulation, &["replay", "--app", "shop"]).await, expected);
    runtime.stop().await;
}

/// Nobody asked for a socket there: the reporter does its work.
#[tokio::test]
async fn a_directory_with_too_long_a_name_for_a_socket_holds_up_nothing() {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let state = simulation.directory().join("d".repeat(100));
    let runtime = Runtime::start(&simulation, &json!({"state": {"directory": state}})).await;
    let line = runtime.says("there is no admin socket: explain, parked, replay and tail cannot ask").await;
    let path = state.join("admin.sock");
    let expected = format!(
        "the path of the admin socket {} is longer than the 103 bytes that a socket's path may have: set admin.socket \
         to a shorter one, such as /tmp/gitops-runtime.sock",
        path.display()
    );
    assert_eq!((line.level.as_str(), line.field("error")), ("WARN", expected.as_str()));
    runtime.idle(1).await;
    let short = simulation.directory().join("s");
    runtime.stop().await;
    let given = json!({"state": {"directory": state}, "admin": {"socket": short}});
    let runtime = Runtime::start(&simulation, &given).await;
    assert!(answer(&simulation, &["status"]).await.contains(" reporter "));
    runtime.stop().await;
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let simulation = told::world(|_| {}).await;
    let said = refused(&simulation, &json!({"admin": {"address": "0.0.0.0:0"}})).await;
    let first = "config: admin.address: 0.0.0.0:0 can be reached from other hosts, and no token is given; set \
                 admin.tokenFile, or take a loopback address such as 127.0.0.1:8089";
    let last = "config: 1 problem; gitops-runtime config print shows every setting";
    assert_eq!(said.lines().collect::<Vec<_>>(), [first, last]);
}

#[tokio::test]
async fn over_tcp_the_token_is_asked_for() {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let file = token_file(&simulation, &format!("{TOKEN}\n"));
    let settings = json!({"admin": {"socket": "", "address": "127.0.0.1:0", "tokenFile": file}});
    let runtime = Runtime::start(&simulation, &settings).await;
    runtime.idle(1).await;
    let url = address(&runtime).await;
    let status = format!("{url}/v1/status");
    let needs = r#"{"error":"the request needs the admin token, as `Authorization: Bearer TOKEN`"}"#;
    let wrong = r#"{"error":"this is not the admin token"}"#;
    assert_eq!(get(&status, &[]).await, (401, needs.to_owned()));
    // Not even that there is no such path is told.
    assert_eq!(get(&format!("{url}/nowhere"), &[]).await, (401, needs.to_owned()));
    for given in ["Bearer no", "Bearer", "Basic a", TOKEN, "Bearer a-token-of-the-admin-addres"] {
        assert_eq!(get(&status, &[(AUTHORIZATION, given)]).await, (401, wrong.to_owned()), "{given}");
    }
    let right = format!("Bearer {TOKEN}");
    assert_eq!(get(&status, &[(AUTHORIZATION, &right)]).await.0, 200);
    let nothing = r#"{"error":"nothing is answered at this path"}"#;
    assert_eq!(get(&format!("{url}/nowhere"), &[(AUTHORIZATION, &right)]).await, (404, nothing.to_owned()));

    // The command takes the token from its own file, or from the reporter's settings.
    assert!(answer(&simulation, &["explain", "shop", "--address", &url]).await.contains("argocd/shop"));
    let other = simulation.directory().join("other-token");
    std::fs::write(&other, "something-else").unwrap();
    let other = ["status", "--address", &url, "--token-file", other.to_str().unwrap()];
    let refuses = format!(
        "gitops-runtime: the reporter at {url} refuses: this is not the admin token; give --token-file with the token \
         that admin.tokenFile of the reporter names\n"
    );
    assert_eq!(ask(&simulation, &other).await, (Some(1), String::new(), refuses));
    // A token that is replaced is followed.
    token_file(&simulation, "another-token");
    assert_eq!(get(&status, &[(AUTHORIZATION, &right)]).await, (401, wrong.to_owned()));
    assert!(answer(&simulation, &["status", "--address", &url]).await.contains(" reporter "));
    assert!(!simulation.directory().join("state/admin.sock").exists(), "no socket was wanted");
    runtime.stop().await;
}

#[tokio::test]
async fn without_a_token_a_loopback_address_answers_no_pages() {
    let simulation = told::world(|_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({"admin": {"address": "127.0.0.1:0"}})).await;
    let url = address(&runtime).await;
    let status = format!("{url}/v1/status");
    assert_eq!(get(&status, &[]).await.0, 200);
    let page = r#"{"error":"pages of a browser are not answered without a token: set admin.tokenFile"}"#;
    assert_eq!(get(&status, &[(ORIGIN, "https://evil.example")]).await, (403, page.to_owned()));
    let host = r#"{"error":"without a token only loopback addresses are answered: set admin.tokenFile, or ask 127.0.0.1"}"#;
    assert_eq!(get(&status, &[(HOST, "evil.example")]).await, (403, host.to_owned()));
    runtime.stop().await;
}

#[tokio::test]
async fn bad_requests_are_told_what_is_wrong() {
    let simulation = told::world(|_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({"admin": {"address": "127.0.0.1:0"}})).await;
    let url = address(&runtime).await;
    let client = http_client();
    for (body, status, error) in [
        ("{}", 400, "give applications (`app`), a time (`since`), or both"),
        (
            r#"{"app": ["a/b/c/d"]}"#,
            400,
            "`a/b/c/d`: a key is `namespace/name`, both non-empty, or `kind/namespace/name`",
        ),
    ] {
        let request = client.post(format!("{url}/v1/replay")).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        let failed = json!({"error": error}).to_string();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (status, failed), "{body}");
    }
    let large = json!({"app": ["x".repeat(1 << 20)]});
    let answer = client.post(format!("{url}/v1/replay")).json(&large).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 413);
    let answer = client.delete(format!("{url}/v1/status")).send().await.unwrap();
    let failed = r#"{"error":"this path is not asked with this method"}"#;
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (405, failed));
    let many = listeners(&client, &url).await;
    let refused = r#"{"error":"as many listen already as may: end one of them first"}"#;
    assert_eq!(get(&format!("{url}/v1/tail"), &[]).await, (503, refused.to_owned()));
    assert_eq!(get(&format!("{url}/v1/status"), &[]).await.0, 200, "others still find a place");
    drop(many);
    runtime.stop().await;
}

/// As many listeners as there may be.
async fn listeners(client: &reqwest::Client, url: &str) -> Vec<reqwest::Response> {
    let mut all = Vec::new();
    for _ in 0..16 {
        let listener = client.get(format!("{url}/v1/tail")).send().await.unwrap();
        assert_eq!(listener.status().as_u16(), 200);
        all.push(listener);
    }
    all
}
