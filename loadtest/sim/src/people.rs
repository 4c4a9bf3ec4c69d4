//! People of a real platform, as they come by their accounts: the first by the link of the log, the others invited; each with a
//! session, and keys of their own.

use anyhow::{Context as _, ensure};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

/// What begins the line of the platform's log with the first link.
pub const FIRST: &str = "nobody has an account yet; open this within 15 minutes to make the first one: ";
/// Where somebody who was invited sets a password.
const LINK: &str = "/welcome?token=";
/// What all of them sign in with.
pub const PASSWORD: &str = "correct horse battery";
/// The name of the first account.
pub const ADMIN: &str = "ada";

/// Somebody, with what they come in with.
#[derive(Debug, Clone)]
pub struct User {
    client: Client,
    platform: String,
    credentials: Credentials,
}

#[derive(Clone)]
enum Credentials {
    Key(String),
    /// A session is good for pages; the API is asked with a key.
    Session {
        cookie: String,
        key: String,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Session { .. } => "Session",
        })
    }
}

impl User {
    /// A request of theirs to the platform.
    pub fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.platform));
        match &self.credentials {
            Credentials::Session { cookie, .. } if !path.starts_with("/2.0/") => of_page(request, cookie),
            Credentials::Key(key) | Credentials::Session { key, .. } => request.header("authorization", key),
        }
    }

    /// The cookie of their session, `name=value`; `None`: they come in with a key.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        match &self.credentials {
            Credentials::Session { cookie, .. } => Some(cookie),
            Credentials::Key(_) => None,
        }
    }

    /// What the platform answers them.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn ask(&self, query: &Value) -> anyhow::Result<Value> {
        let answer = self.post("/2.0/api/graphql").json(query).send().await.context("ask the platform")?;
        let mut answer: Value = answer.error_for_status()?.json().await.context("read the answer")?;
        ensure!(
            answer.get("errors").is_none_or(Value::is_null),
            "the platform refuses: {}",
            answer["errors"]
        );
        Ok(answer["data"].take())
    }

    /// Makes a key of theirs, of the scope `read` or `full`.
    ///
    /// # Errors
    /// As [`User::ask`].
    pub async fn key(&self, scope: &str) -> anyhow::Result<String> {
        let query = r#"mutation($scope: String!) { createApiKey(name: "loadtest", scope: $scope) { key } }"#;
        let made = self.ask(&json!({"query": query, "variables": {"scope": scope}})).await;
        let made = made.context("make a key")?;
        Ok(made["createApiKey"]["key"].as_str().context("there is no key")?.to_owned())
    }

    /// The same person, who comes in with a key from now on.
    #[must_use]
    pub fn with_key(self, key: String) -> Self {
        Self { credentials: Credentials::Key(key), ..self }
    }
}

/// The first account: an admin with a session.
#[derive(Debug, Clone)]
pub struct Admin(pub User);

impl Admin {
    /// Makes it by the link of the log.
    ///
    /// # Errors
    /// A link that does not lead to an account.
    pub async fn first(client: &Client, platform: &str, link: &str) -> anyhow::Result<Self> {
        welcomed((client, platform), ADMIN, &token(link)?).await.map(Self)
    }

    /// Tells the platform where the app proxy of a runtime is.
    ///
    /// # Errors
    /// As [`User::ask`].
    pub async fn register(&self, runtime: &str, address: &str) -> anyhow::Result<()> {
        let query =
            "mutation($args: RuntimeInstallationArgs!) { createRuntime(installationArgs: $args) { name } }";
        let args = json!({"runtimeName": runtime, "recover": true, "internalIngressHost": address});
        let registered = self.0.ask(&json!({"query": query, "variables": {"args": args}})).await;
        registered.context("register the runtime").map(drop)
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// As [`User::ask`].
    pub async fn allow(&self, rule: &Value) -> anyhow::Result<()> {
        let query = "mutation($rule: AbacRuleInput!) { createAbacRule(rule: $rule) }";
        let added = self.0.ask(&json!({"query": query, "variables": {"rule": rule}})).await;
        added.context("add a rule").map(drop)
    }

    /// One more, a member of a team, with a session.
    ///
    /// # Errors
    /// When somebody of the name is not invited.
    pub async fn invite(&self, name: &str, team: &str) -> anyhow::Result<User> {
        let form = [("name", name), ("role", "member"), ("teams", team)];
        let answer = posted(self.0.post("/settings/users"), &form).await?;
        ensure!(answer.status() == StatusCode::OK, "{name} is not invited: {}", answer.status());
        let page = answer.text().await.context("read the link")?;
        welcomed((&self.0.client, &self.0.platform), name, &token(&page)?).await
    }
}

/// The token of the link that stands in a text.
fn token(text: &str) -> anyhow::Result<String> {
    let behind = text.split(LINK).nth(1).context("there is no link")?;
    Ok(behind.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect())
}

/// Whoever sets a password by a link, with the session that they have then.
async fn welcomed((client, platform): (&Client, &str), name: &str, token: &str) -> anyhow::Result<User> {
    let asked = client.post(format!("{platform}/welcome"));
    let answer = posted(asked, &[("token", token), ("name", name), ("password", PASSWORD)]).await?;
    ensure!(answer.status() == StatusCode::SEE_OTHER, "{name} sets no password: {}", answer.status());
    let cookie = answer.headers().get("set-cookie").context("there is no session")?.to_str()?;
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let asked = of_page(client.post(format!("{platform}/settings/keys")), &cookie);
    let form = [("name", "loadtest of the API"), ("scope", "full"), ("days", "30")];
    let page = posted(asked, &form).await?.text().await.context("read the key")?;
    let (_, behind) = page.split_once(">goak_").with_context(|| format!("{name} is given no key"))?;
    let digits: String = behind.chars().take_while(char::is_ascii_hexdigit).collect();
    let credentials = Credentials::Session { cookie, key: format!("goak_{digits}") };
    Ok(User { client: client.clone(), platform: platform.to_owned(), credentials })
}

/// As a page of the platform asks.
fn of_page(asked: RequestBuilder, cookie: &str) -> RequestBuilder {
    asked.header("cookie", cookie).header("sec-fetch-site", "same-origin")
}

/// Sends a form, of letters, digits, blanks and hyphens alone.
async fn posted(asked: RequestBuilder, form: &[(&str, &str)]) -> anyhow::Result<Response> {
    let pairs: Vec<String> =
        form.iter().map(|(key, value)| format!("{key}={}", value.replace(' ', "+"))).collect();
    asked.body(pairs.join("&")).send().await.context("send a form")
}
