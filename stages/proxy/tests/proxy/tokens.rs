//! Git tokens that are given along with what is asked: looked at where they may go, and the runtime's own kept for Argo CD.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stages_proxy::ProxyConfig;

use crate::cluster::GIT;
use crate::provider::OF_THE_RUNTIME;
use crate::support::Running;

/// What Argo CD reads repositories with.
const CREDENTIALS: &str = "/api/v1/namespaces/argocd/secrets/runtime-repo-creds-secret";

fn validate(running: &Running, provider: &str, token: &str, more: &str) -> String {
    let url = &running.provider.url;
    format!(
        r#"{{ validateGitProvider(args: {{provider: {provider}, apiUrl: "{url}", token: "{token}"{more}}}) {{ username expiresAt }} }}"#
    )
}

fn organizations(running: &Running, more: &str) -> String {
    let url = &running.provider.url;
    format!(
        r#"{{ gitOrganizations(args: {{authDetails: {{provider: GITHUB, apiUrl: "{url}"{more}}}}}) {{ name }} }}"#
    )
}

fn update(token: &str, more: &str) -> String {
    format!(
        r#"mutation {{ updateRuntimeGitToken(args: {{token: "{token}"{more}}}) {{ username expiresAt }} }}"#
    )
}

/// What the Secret holds.
fn credentials(running: &Running) -> Value {
    let secret = running.cluster.object(CREDENTIALS);
    let text = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
    let data = secret["data"].as_object().cloned().unwrap_or_default();
    data.iter()
        .map(|(key, value)| (key.clone(), Value::from(text(value))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn a_token_is_looked_at_and_what_it_lacks_depends_on_whose_it_is() {
    let running = Running::start().await;
    let admin = &running.admin;
    *running.provider.ends.lock().unwrap() = Some("2027-01-31".to_owned());
    let found = running.data(admin, &validate(&running, "GITHUB", "all", "")).await;
    let expected = json!({"username": "ada-lovelace", "expiresAt": "2027-01-31T00:00:00Z"});
    assert_eq!(found["validateGitProvider"], expected);
    let found = running.data(admin, &validate(&running, "BITBUCKET_SERVER", "of-ada@corp.example", "")).await;
    assert_eq!(found["validateGitProvider"]["username"], "ada@corp.example");
    let of_runtime = ", tokenType: RUNTIME_TOKEN";
    let found = running.data(admin, &validate(&running, "GITHUB", OF_THE_RUNTIME, of_runtime)).await;
    assert_eq!(found["validateGitProvider"]["username"], "ada-lovelace");
    for (provider, token, more, said) in [
        ("GITHUB", "all", of_runtime, "the token may too little: it has not the scope admin:repo_hook"),
        ("GITHUB", "reads", "", "the token may too little: it has not the scope repo"),
        ("GITHUB", "reads", of_runtime, "the token may too little: it has not the scope repo"),
        (
            "GITHUB",
            "github_pat_canary-of-git",
            of_runtime,
            "a fine-grained token does not say what it may: give a classic token of the scopes repo and admin:repo_hook, or \
             have appProxy.skipGitPermissionValidation set",
        ),
        ("GITLAB", "canary-of-git", of_runtime, "the token may too little: it has not the scope api"),
        (
            "GITLAB",
            "project",
            of_runtime,
            "the token is that of a project: give one of a person or of a group",
        ),
        (
            "GITHUB",
            "all",
            r#", refreshToken: "x""#,
            "tokens that are refreshed are not taken: leave refreshToken out",
        ),
        (
            "GITHUB",
            "nobodys",
            "",
            "GITHUB does not take this token: it has ended, or is that of another server, or may too little",
        ),
    ] {
        running.wrong(&validate(&running, provider, token, more), said).await;
    }
    assert!(running.cluster.take().is_empty(), "nothing is kept of a token that is looked at");
}

#[tokio::test]
async fn a_token_goes_where_an_integration_of_everybody_is_and_elsewhere_for_admins_alone() {
    let running = Running::start().await;
    for action in ["CREATE", "VIEW"] {
        running.allow(action, "gitContexts", "").await;
    }
    let (member, admin) = (&running.member, &running.admin);
    let password = r#", username: "ada", password: "all""#;
    let here = [validate(&running, "GITHUB", "all", ""), organizations(&running, password)];
    for query in &here {
        running.data(member, query).await;
    }
    let admins = "'lin' may not: no rule allows this, it is for admins";
    // The same server by another provider's API is another address.
    running.provider.take();
    running.refuses(member, &validate(&running, "GITLAB", "all", ""), admins, "FORBIDDEN").await;
    let edit = "mutation { editGitIntegration(args: {sharingPolicy: ACCOUNT_ADMINS}) { name } }";
    running.data(admin, edit).await;
    running.cluster.objects.lock().unwrap().get_mut(GIT).unwrap()["data"]
        .as_object_mut()
        .unwrap()
        .remove("integration.spare");
    for query in &here {
        running.refuses(member, query, admins, "FORBIDDEN").await;
    }
    assert!(running.provider.take().is_empty(), "no token went anywhere");
    for query in &here {
        running.data(admin, query).await;
    }
}

#[tokio::test]
async fn organizations_are_listed_by_a_token_that_is_given_along() {
    let running = Running::start().await;
    let found = running.data(&running.admin, &organizations(&running, r#", password: "all""#)).await;
    assert_eq!(found["gitOrganizations"], json!([{"name": "team"}]));
    running.wrong(&organizations(&running, ""), "authDetails.password is to be the token").await;
    let refreshed = organizations(&running, r#", password: "all", refreshToken: "x""#);
    running.wrong(&refreshed, "tokens that are refreshed are not taken: leave refreshToken out").await;
}

#[tokio::test]
async fn the_runtimes_token_is_kept_where_argo_cd_finds_it_once_it_may_enough() {
    let running = Running::start().await;
    let url = running.provider.url.clone();
    let lacks = "the token may too little: it has not the scope admin:repo_hook";
    running.wrong(&update("all", ""), lacks).await;
    let refreshed = update(OF_THE_RUNTIME, r#", refreshToken: "x""#);
    running.wrong(&refreshed, "tokens that are refreshed are not taken: leave refreshToken out").await;
    assert_eq!(credentials(&running), json!({}), "nothing was kept");
    // Clients write nothing as an empty text, too: the address is that of the integration then, and of no cloud.
    let nothing = update(OF_THE_RUNTIME, r#", apiUrl: "", refreshToken: """#);
    let found = running.data(&running.admin, &nothing).await;
    let expected = json!({"username": "ada-lovelace", "expiresAt": null});
    assert_eq!(found["updateRuntimeGitToken"], expected);
    let kept = json!({"type": "git", "url": url, "username": "ada-lovelace", "password": OF_THE_RUNTIME});
    assert_eq!(credentials(&running), kept);
    let secret = running.cluster.object(CREDENTIALS);
    assert_eq!(secret["metadata"]["labels"], json!({"argocd.argoproj.io/secret-type": "repo-creds"}));
    let row = (
        "ada".to_owned(),
        "updateRuntimeGitToken".to_owned(),
        "prod/Secret runtime-repo-creds-secret: done".to_owned(),
    );
    assert!(running.audit(2).await.contains(&row));

    // Repositories that were named stay, and what somebody else keeps there, too.
    let encoded = |text: &str| STANDARD.encode(text);
    let own = format!("{url}/team");
    let set = |url: &str| {
        let secret = json!({
            "metadata": {"name": "runtime-repo-creds-secret", "resourceVersion": "7"},
            "data": {"url": encoded(url), "password": encoded("old"), "project": encoded("shop")},
        });
        running.cluster.objects.lock().unwrap().insert(CREDENTIALS.to_owned(), secret);
    };
    set(&own);
    let named = format!(r#", provider: GITLAB, apiUrl: "{url}""#);
    running.data(&running.admin, &update(OF_THE_RUNTIME, &named)).await;
    let kept = json!({
        "type": "git", "url": own, "username": "ada.lovelace", "password": OF_THE_RUNTIME, "project": "shop",
    });
    assert_eq!(credentials(&running), kept);

    // A token of another server is not even shown to that.
    set("https://git.example/team");
    running.provider.take();
    let other = "the Secret runtime-repo-creds-secret is for repositories of another server than 127.0.0.1: delete it, so that it is \
                 made anew";
    running.wrong(&update(OF_THE_RUNTIME, ""), other).await;
    assert!(running.provider.take().is_empty());
    assert_eq!(credentials(&running)["password"], "old");

    running.cluster.remove(GIT);
    let none = "there is no Git integration default";
    running.refuses(&running.admin, &update(OF_THE_RUNTIME, ""), none, "NOT_FOUND").await;
}

#[tokio::test]
async fn the_runtimes_token_is_kept_in_the_namespace_of_argo_cd_where_that_is_another() {
    let running =
        Running::made(Duration::ZERO, |config| ProxyConfig { namespace: "runtime".to_owned(), ..config })
            .await;
    let url = running.provider.url.clone();
    let named = format!(r#", provider: GITHUB, apiUrl: "{url}""#);
    running.data(&running.admin, &update(OF_THE_RUNTIME, &named)).await;
    let kept = json!({"type": "git", "url": url, "username": "ada-lovelace", "password": OF_THE_RUNTIME});
    assert_eq!(credentials(&running), kept);
    assert_eq!(running.cluster.object(CREDENTIALS)["metadata"]["namespace"], "argocd");
}
