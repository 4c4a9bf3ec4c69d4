//! Git integrations, and people's tokens: what is taken, how it is kept, and what is said.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use pipeline_core::ExposeSecret as _;
use serde_json::{Value, json};
use stages_platform_store::{Account, Identity, Role, Scope};

use crate::cluster::{GIT, RUNTIME_TOKEN};
use crate::provider;
use crate::support::{Running, by, now};

const ALL: &str =
    "{ gitIntegrations { name provider apiUrl sharingPolicy registeredUsers users { userId isValid } } }";

fn add(name: &str, provider: &str, url: &str, sharing: &str) -> String {
    format!(
        r#"mutation {{ addGitIntegration(args: {{name: "{name}", provider: {provider}, apiUrl: "{url}", sharingPolicy: {sharing}}}) {{ name apiUrl }} }}"#
    )
}

fn register(name: &str, token: &str) -> String {
    format!(
        r#"mutation {{ registerToGitIntegration(args: {{name: "{name}", token: "{token}"}}) {{ registeredUsers users {{ userId isValid }} }} }}"#
    )
}

/// An app proxy of a registered runtime, without anything of Git.
async fn bare() -> Running {
    let running = Running::start().await;
    running.register().await;
    running.cluster.remove(GIT);
    running
}

pub(crate) fn admin(name: &str) -> Account {
    Account { name: name.to_owned(), password: "$made-up".to_owned(), role: Role::Admin }
}

pub(crate) async fn key_of(running: &Running, name: &str) -> String {
    let end = now() + 3_600_000;
    let key = running.store.add_key(&by(name), "test", Scope::Full, end, now()).await.unwrap();
    key.expose_secret().to_owned()
}

#[tokio::test]
async fn integrations_are_added_edited_and_removed() {
    let running = bare().await;
    assert_eq!(running.data(&running.admin, ALL).await, json!({"gitIntegrations": []}));
    let url = &running.provider.url;
    let added = running.data(&running.admin, &add("own", "GITHUB", url, "ALL_USERS_IN_ACCOUNT")).await;
    assert_eq!(added["addGitIntegration"], json!({"name": "own", "apiUrl": format!("{url}/api/v3")}));
    let said = "there is a Git integration own already: edit it";
    running.wrong(&add("own", "GITHUB", url, "ACCOUNT_ADMINS"), said).await;
    let cloud = "mutation { addGitIntegration(args: {provider: GITLAB, sharingPolicy: ACCOUNT_ADMINS}) { name apiUrl } }";
    let added = running.data(&running.admin, cloud).await;
    assert_eq!(added["addGitIntegration"], json!({"name": "default", "apiUrl": "https://gitlab.com/api/v4"}));
    let edit = r#"mutation { editGitIntegration(args: {name: "own", sharingPolicy: ACCOUNT_ADMINS}) { sharingPolicy apiUrl } }"#;
    let edited = running.data(&running.admin, edit).await;
    assert_eq!(
        edited["editGitIntegration"],
        json!({"sharingPolicy": "ACCOUNT_ADMINS", "apiUrl": format!("{url}/api/v3")})
    );
    // Clients write nothing as an empty text, too: the address is not that of a cloud then.
    let empty = edit.replace("sharingPolicy: ", r#"apiUrl: "", sharingPolicy: "#);
    assert_eq!(running.data(&running.admin, &empty).await, edited);
    for one in ["{ gitIntegration { name provider } }", r#"{ gitIntegration(name: "") { name provider } }"#] {
        let one = running.data(&running.admin, one).await;
        assert_eq!(one["gitIntegration"], json!({"name": "default", "provider": "GITLAB"}));
    }
    let remove = r#"mutation { removeGitIntegration(name: "own") }"#;
    // Whoever reads no answer there, as the SDK of the incumbent does, fails at anything but null.
    assert_eq!(running.data(&running.admin, remove).await, json!({"removeGitIntegration": null}));
    for query in [remove, r#"{ gitIntegration(name: "own") { name } }"#, &register("own", "all"), edit] {
        running.refuses(&running.admin, query, "there is no Git integration own", "NOT_FOUND").await;
    }
}

#[tokio::test]
async fn an_address_that_is_none_of_a_provider_is_refused() {
    let running = bare().await;
    let refused = async |provider: &str, url: &str, message: &str| {
        running.wrong(&add("own", provider, url, "ACCOUNT_ADMINS"), message).await;
    };
    refused("GITHUB", "http://git.example", "apiUrl must begin with https://: tokens are sent there").await;
    refused(
        "GITHUB",
        "https://a:b@git.example",
        "apiUrl: the address must not hold a user name or a password",
    )
    .await;
    refused(
        "GITHUB",
        "https://gitlab.com",
        "supplied provider \"GITHUB\" does not match inferred cloud provider \"GITLAB\" for url \"https://gitlab.com\"",
    )
    .await;
    refused(
        "GITLAB",
        "https://www.github.com",
        "supplied provider \"GITLAB\" does not match inferred cloud provider \"GITHUB\" for url \"https://www.github.com\"",
    )
    .await;
    let works = "this app proxy works with BITBUCKET, BITBUCKET_SERVER, GITEA, GITHUB and GITLAB, and not with GERRIT";
    refused("GERRIT", "", works).await;
    for other in ["BITBUCKET_SERVER", "GITEA"] {
        let own = format!("{other} has no cloud of its own: give the apiUrl of your server");
        refused(other, "", &own).await;
    }
    let alone = "BITBUCKET is at bitbucket.org alone: a server of your own is BITBUCKET_SERVER";
    refused("BITBUCKET", "https://git.example", alone).await;
    refused(
        "BITBUCKET_SERVER",
        "https://bitbucket.org",
        "supplied provider \"BITBUCKET_SERVER\" does not match inferred cloud provider \"BITBUCKET\" for url \"https://bitbucket.org\"",
    )
    .await;
    let said = "a Git integration is named by up to 63 lowercase letters, digits and dashes";
    running.wrong(&add("Own.x", "GITHUB", "", "ACCOUNT_ADMINS"), said).await;
    assert!(running.cluster.object(GIT).is_null(), "nothing was kept");
}

#[tokio::test]
async fn a_token_is_registered_once_its_provider_says_that_it_may_enough() {
    let running = bare().await;
    let url = &running.provider.url;
    running.data(&running.admin, &add("hub", "GITHUB", url, "ALL_USERS_IN_ACCOUNT")).await;
    running.data(&running.admin, &add("lab", "GITLAB", url, "ALL_USERS_IN_ACCOUNT")).await;
    let refused =
        async |name: &str, token: &str, message: &str| running.wrong(&register(name, token), message).await;
    refused("hub", "reads", "the token may too little: it has not the scope repo").await;
    refused("hub", "silent", "missing scopes header on response").await;
    let gone = |word| {
        format!(
            "{word} does not take this token: it has ended, or is that of another server, or may too little"
        )
    };
    refused("hub", "nobodys", &gone("GITHUB")).await;
    refused("lab", "nobodys", &gone("GITLAB")).await;
    refused(
        "lab",
        "reads",
        "the token may too little: it has not the scopes write_repository and read_api, nor api",
    )
    .await;
    refused("lab", "project", "the token is that of a project: register one of a person").await;
    refused("hub", "", "that is no token: it is empty, too long, or holds what no token holds").await;
    running.provider.take();
    let fine = "a fine-grained token does not say what it may: register a classic token of the scope repo, or have \
                appProxy.skipGitPermissionValidation set";
    refused("hub", "github_pat_canary-of-git", fine).await;
    assert!(running.provider.take().is_empty(), "nobody is asked about a token that is refused anyway");
    let away = "the Git provider answered what cannot be read";
    running.refuses(&running.admin, &register("hub", "broken"), away, "PEER_AWAY").await;
    let moved = running.refused(&running.admin, &register("hub", "moved")).await;
    assert_eq!(moved.1, "PEER_AWAY", "a token is sent nowhere else: {}", moved.0);
    let more = |more: &str| register("hub", "all").replace("token:", &format!("{more}, token:"));
    let said = "this registers the token of a person: tokenType is USER_TOKEN";
    running.wrong(&more("tokenType: RUNTIME_TOKEN"), said).await;
    let said = "tokens that are refreshed are not taken: leave refreshToken out";
    running.wrong(&more(r#"refreshToken: "x""#), said).await;
    let theirs = running.refused(&running.admin, &more(r#"userId: "lin""#)).await;
    assert_eq!(theirs.0, "a token is registered by whom it is of: leave userId out");
    for (name, token) in [("hub", provider::TOKEN), ("hub", "all"), ("lab", "all"), ("lab", provider::TOKEN)]
    {
        let done = running.data(&running.admin, &register(name, token)).await;
        let users = json!({"registeredUsers": 1, "users": [{"userId": "ada", "isValid": true}]});
        assert_eq!(done["registerToGitIntegration"], users);
    }
    let away = r#"mutation { deregisterFromGitIntegration(name: "hub") { registeredUsers } }"#;
    assert_eq!(
        running.data(&running.admin, away).await["deregisterFromGitIntegration"],
        json!({"registeredUsers": 0})
    );
    let none = "'ada' has no token registered with the Git integration hub";
    running.refuses(&running.admin, away, none, "NOT_FOUND").await;
}

#[tokio::test]
async fn with_an_integration_of_admins_only_admins_register() {
    let running = bare().await;
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ACCOUNT_ADMINS")).await;
    running.allow("CREATE", "gitContexts", "").await;
    running.provider.take();
    let may_not = "'lin' may not: no rule allows this, it is for admins";
    running.refuses(&running.member, &register("own", "all"), may_not, "FORBIDDEN").await;
    assert!(running.provider.take().is_empty());
    running.data(&running.admin, &register("own", "all")).await;
}

#[tokio::test]
async fn a_token_is_kept_sealed_and_not_sent_to_another_address() {
    let running = bare().await;
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ALL_USERS_IN_ACCOUNT")).await;
    running.data(&running.admin, &register("own", provider::TOKEN)).await;
    let secret = running.cluster.object(GIT);
    assert_eq!(secret["metadata"]["labels"]["io.codefresh.integration-type"], "git");
    let data = secret["data"].as_object().unwrap();
    assert_eq!(data.len(), 2, "{data:?}");
    for value in data.values() {
        let text = String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
        let inner: Value = serde_json::from_str(&text).unwrap();
        let sealed = inner["sealed"].as_str().and_then(|sealed| sealed.rsplit_once('.'));
        let opened = sealed.map(|(_, text)| STANDARD.decode(text).unwrap()).unwrap_or_default();
        for bytes in [text.as_bytes(), &opened] {
            assert!(!String::from_utf8_lossy(bytes).contains(provider::TOKEN));
        }
    }
    let edit = r#"mutation { editGitIntegration(args: {name: "own", apiUrl: "https://git.example", sharingPolicy: ALL_USERS_IN_ACCOUNT}) { apiUrl registeredUsers } }"#;
    let edited = running.data(&running.admin, edit).await;
    assert_eq!(
        edited["editGitIntegration"],
        json!({"apiUrl": "https://git.example/api/v3", "registeredUsers": 0})
    );
}

#[tokio::test]
async fn after_the_key_was_changed_a_token_is_not_valid_until_it_is_registered_again() {
    let running = bare().await;
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ALL_USERS_IN_ACCOUNT")).await;
    running.data(&running.admin, &register("own", "all")).await;
    let first = running.cluster.object(RUNTIME_TOKEN)["data"]["encryptionIV"].clone();
    let first = STANDARD.decode(first.as_str().unwrap()).unwrap();
    assert_eq!(first.len(), 32, "16 random bytes in hexadecimal");
    let valid = async || {
        let found = running.data(&running.admin, ALL).await;
        found["gitIntegrations"][0]["users"][0]["isValid"].clone()
    };
    assert_eq!(valid().await, true);
    running.cluster.remove(RUNTIME_TOKEN);
    assert_eq!(valid().await, false);
    running.data(&running.admin, &register("own", "all")).await;
    assert_eq!(valid().await, true);
    let second = running.cluster.object(RUNTIME_TOKEN)["data"]["encryptionIV"].clone();
    assert_ne!(STANDARD.decode(second.as_str().unwrap()).unwrap(), first);
}

#[tokio::test]
async fn a_token_of_a_runtime_that_is_not_registered_is_not_kept() {
    let running = Running::start().await;
    running.cluster.remove(GIT);
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ALL_USERS_IN_ACCOUNT")).await;
    let said = "the runtime 'prod' has a token and is not registered: createRuntime registers it";
    running.wrong(&register("own", "all"), said).await;
    assert_eq!(running.cluster.object(GIT)["data"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn of_many_who_register_at_once_none_is_lost() {
    let running = bare().await;
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ALL_USERS_IN_ACCOUNT")).await;
    running.cluster.remove(RUNTIME_TOKEN);
    let mut keys = Vec::new();
    for number in 0..12 {
        let name = format!("admin{number}");
        assert!(running.store.add_person(&by("ada"), &admin(&name), now()).await.unwrap());
        keys.push(key_of(&running, &name).await);
    }
    let asked = register("own", "all");
    join_all(keys.iter().map(|key| running.data(key, &asked))).await;
    let found = running.data(&running.admin, ALL).await;
    let users = found["gitIntegrations"][0]["users"].as_array().unwrap();
    assert_eq!(users.len(), 12);
    assert!(users.iter().all(|user| user["isValid"] == true), "{users:?}");
}

#[tokio::test]
async fn whoever_gets_a_name_that_was_somebody_elses_gets_none_of_their_tokens() {
    let running = bare().await;
    running.data(&running.admin, &add("own", "GITHUB", &running.provider.url, "ALL_USERS_IN_ACCOUNT")).await;
    let eve = by("eve");
    assert!(running.store.add_person(&by("ada"), &admin("eve"), now()).await.unwrap());
    let mut key = running.admin.clone();
    let token = r#"{ gitToken(integrationName: "own") { userId } }"#;
    let none = "'ada' has no token registered with the Git integration own";
    let none = (none.to_owned(), "NOT_FOUND".to_owned());
    for invited in [false, true] {
        let registered = running.data(&key, &register("own", "all")).await;
        let once = json!({"registeredUsers": 1, "users": [{"userId": "ada", "isValid": true}]});
        assert_eq!(registered["registerToGitIntegration"], once);
        assert_eq!(running.data(&key, token).await["gitToken"]["userId"], "ada");

        assert!(running.store.remove_person(&eve, "ada", now()).await.unwrap());
        let again = if invited {
            let link = ([9; 32], now() + 60_000);
            running.store.invite(&eve, &admin("ada"), &[], link, now()).await
        } else {
            // A provider of OpenID Connect lets people choose the name that an account is made of.
            let issuer = "https://id.example.com".to_owned();
            let identity = Identity { issuer, subject: "somebody-else".to_owned() };
            running.store.add_identified(&admin("ada"), &identity, now()).await
        };
        assert!(again.unwrap());
        key = key_of(&running, "ada").await;
        assert_eq!(running.refused(&key, token).await, none, "invited: {invited}");
        let deregister = r#"mutation { deregisterFromGitIntegration(name: "own") { registeredUsers } }"#;
        assert_eq!(running.refused(&key, deregister).await, none, "invited: {invited}");
        // Nor does a list say that they had registered one.
        let listed = running.data(&key, ALL).await;
        assert_eq!(listed["gitIntegrations"][0]["users"], json!([]), "invited: {invited}");
        let one = running.data(&key, r#"{ gitIntegration(name: "own") { registeredUsers } }"#).await;
        assert_eq!(one["gitIntegration"]["registeredUsers"], 0, "invited: {invited}");
    }
}
