//! Accounts as people come by them: the first by the link of the log, the others invited; each with a key or a session of their own.

use anyhow::{Context as _, ensure};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::platform::{Platform, RUNTIME};

/// What begins the line of the log with the first link.
const FIRST: &str = "nobody has an account yet; open this within 15 minutes to make the first one: ";
/// Where somebody who was invited sets a password.
const LINK: &str = "/welcome?token=";
const PASSWORD: &str = "correct horse battery";
/// Everybody's team, and what it may.
const TEAM: &str = "shop";
const MAY: [&str; 2] = ["VIEW", "VIEW_POD_LOGS"];

/// Somebody, with what they come in with.
#[derive(Clone)]
pub(super) struct User {
    client: Client,
    platform: String,
    credentials: Credentials,
}

#[derive(Clone)]
enum Credentials {
    Key(String),
    Session(String),
}

impl User {
    /// A request of theirs to the platform.
    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.platform));
        match &self.credentials {
            Credentials::Key(key) => request.header("authorization", key),
            Credentials::Session(session) => {
                request.header("cookie", session).header("sec-fetch-site", "same-origin")
            }
        }
    }

    /// What the platform answers them.
    pub(super) async fn ask(&self, query: &Value) -> anyhow::Result<Value> {
        let answer = self.post("/2.0/api/graphql").json(query).send().await.context("ask the platform")?;
        let mut answer: Value = answer.error_for_status()?.json().await.context("read the answer")?;
        ensure!(
            answer.get("errors").is_none_or(Value::is_null),
            "the platform refuses: {}",
            answer["errors"]
        );
        Ok(answer["data"].take())
    }

    /// Makes a key of theirs.
    async fn key(&self) -> anyhow::Result<String> {
        let query = json!({"query": r#"mutation { createApiKey(name: "bench", scope: "full") { key } }"#});
        let made = self.ask(&query).await.context("make a key")?;
        Ok(made["createApiKey"]["key"].as_str().context("there is no key")?.to_owned())
    }
}

/// The first account: an admin with a session, and a key.
pub(super) struct Admin {
    user: User,
    pub(super) key: String,
}

impl Admin {
    /// Makes it.
    pub(super) async fn first(platform: &Platform) -> anyhow::Result<Self> {
        let link = platform.says(FIRST).await?;
        let user = welcomed(platform, "ada", &token(&link)?).await?;
        let key = user.key().await?;
        Ok(Self { user, key })
    }

    /// Tells the platform where the app proxy is.
    pub(super) async fn register(&self, address: &str) -> anyhow::Result<()> {
        let query =
            "mutation($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { name } }";
        let args = json!({"runtimeName": RUNTIME, "recover": true, "internalIngressHost": address});
        let registered = self.user.ask(&json!({"query": query, "variables": {"args": args}})).await;
        registered.context("register the runtime").map(drop)
    }

    /// So many more, who see the runtime's applications and their logs by a rule; every other one has a key, the rest a session.
    pub(super) async fn invite(&self, platform: &Platform, users: usize) -> anyhow::Result<Vec<User>> {
        let query = "mutation($rule: AbacRuleInput!) { createAbacRule(rule: $rule) }";
        let attributes = [json!({"name": "RUNTIME", "value": RUNTIME})];
        let rule = json!({
            "entityType": "gitopsApplications", "teams": [TEAM], "actions": MAY, "attributes": attributes,
        });
        let added = self.user.ask(&json!({"query": query, "variables": {"rule": rule}})).await;
        added.context("add a rule")?;
        let mut all = Vec::new();
        for number in 0..users {
            let name = format!("user-{number}");
            let form = [("name", &*name), ("role", "member"), ("teams", TEAM)];
            let answer = posted(self.user.post("/settings/users"), &form).await?;
            ensure!(answer.status() == StatusCode::OK, "{name} is not invited: {}", answer.status());
            let page = answer.text().await.context("read the link")?;
            let mut user = welcomed(platform, &name, &token(&page)?).await?;
            if number.is_multiple_of(2) {
                user.credentials = Credentials::Key(user.key().await?);
            }
            all.push(user);
        }
        Ok(all)
    }
}

/// The token of the link that stands in a text.
fn token(text: &str) -> anyhow::Result<String> {
    let behind = text.split(LINK).nth(1).context("there is no link")?;
    Ok(behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect())
}

/// Whoever sets a password by a link, with the session that they have then.
async fn welcomed(platform: &Platform, name: &str, token: &str) -> anyhow::Result<User> {
    let asked = platform.client().post(format!("{}/welcome", platform.url()));
    let answer = posted(asked, &[("token", token), ("name", name), ("password", PASSWORD)]).await?;
    ensure!(answer.status() == StatusCode::SEE_OTHER, "{name} sets no password: {}", answer.status());
    let cookie = answer.headers().get("set-cookie").context("there is no session")?.to_str()?;
    let session = cookie.split(';').next().unwrap_or_default().to_owned();
    Ok(User {
        client: platform.client().clone(),
        platform: platform.url().to_owned(),
        credentials: Credentials::Session(session),
    })
}

/// Sends a form, of letters, digits, blanks and hyphens alone.
async fn posted(asked: RequestBuilder, form: &[(&str, &str)]) -> anyhow::Result<Response> {
    let pairs: Vec<String> =
        form.iter().map(|(key, value)| format!("{key}={}", value.replace(' ', "+"))).collect();
    asked.body(pairs.join("&")).send().await.context("send a form")
}
