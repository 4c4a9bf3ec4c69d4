//! `gitops-runtime git integration` and `git token`: Git providers of a runtime, and people's tokens there.

use jiff::{SignedDuration, Timestamp};
use pipeline_core::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act::Act;
use crate::arguments::act::ConfirmArgs;
use crate::arguments::git::{
    GitCommand, IntegrationArgs, IntegrationCommand, Provider, RuntimeArgs, Sharing, TokenCommand,
};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::read;
use crate::proxy::Proxy;
use crate::secret::SecretPrompt;
use crate::show::{Cell, Column, Output, Screen, document, plain, table};
use crate::workflow;

const FIELDS: &str = "name provider apiUrl sharingPolicy registeredUsers users { userId isValid expiresAt }";
/// Of a token that ends sooner, that is said wherever it is seen.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

const COLUMNS: &[Column] = &[
    Column::new("NAME").long(),
    Column::new("PROVIDER"),
    Column::new("API").long().rank(1),
    Column::new("FOR").rank(3),
    Column::new("REGISTERED").long().rank(2),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Integration {
    name: String,
    provider: String,
    api_url: String,
    sharing_policy: String,
    users: Vec<User>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    user_id: String,
    is_valid: bool,
    expires_at: Option<Timestamp>,
}

/// A token, as its provider sees it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    expires_at: Option<Timestamp>,
}

impl Integration {
    /// The one that is named.
    async fn find(named: &IntegrationArgs, environment: &Environment) -> Result<Self, RemoteError> {
        let query =
            format!("query Integration($name: String) {{ gitIntegration(name: $name) {{ {FIELDS} }} }}");
        let proxy = find(&named.of, environment).await?;
        proxy.get("read a Git integration", &query, json!({"name": named.name}), "gitIntegration").await
    }

    /// Those whose tokens go with it.
    fn tokens(&self) -> String {
        let line = |user: &User| plain(&format!("  the token of {}", user.user_id)) + "\n";
        self.users.iter().map(line).collect()
    }

    /// What becomes another, and whose tokens are forgotten.
    fn edited(&self, api_url: Option<&str>, (policy, whom): (&str, &str)) -> String {
        let mut text = String::new();
        let mut change = |what: &str, from: &str, to: &str| {
            text += &plain(&format!("- {what} {from}"));
            text += &format!("\n{}\n", plain(&format!("+ {what} {to}")));
        };
        if self.sharing_policy != policy {
            change("for", self.whom(), whom);
        }
        if let Some(url) = api_url.filter(|url| url.trim_end_matches('/') != self.api_url) {
            change("at", &self.api_url, url);
            text += &self.tokens();
        }
        if text.is_empty() { "nothing would be changed\n".to_owned() } else { text }
    }

    /// Who may register a token.
    fn whom(&self) -> &'static str {
        let is_for_admins = self.sharing_policy == Sharing::Admins.words().1;
        if is_for_admins { Sharing::Admins } else { Sharing::Everybody }.words().0
    }

    /// Who is registered, and whose token has to be registered again, or soon.
    fn registered(&self, now: Timestamp) -> String {
        let user = |user: &User| {
            let ends = user.expires_at.filter(|at| at.duration_since(now) < SOON);
            match (user.is_valid, ends) {
                (false, _) => format!("{} (again)", user.user_id),
                (true, Some(at)) if at <= now => format!("{} (ended {})", user.user_id, day(at)),
                (true, Some(at)) => format!("{} (ends {})", user.user_id, day(at)),
                (true, None) => user.user_id.clone(),
            }
        };
        self.users.iter().map(user).collect::<Vec<_>>().join(", ")
    }
}

impl Provider {
    /// As people call it, and as the schema does.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Bitbucket => ("Bitbucket Cloud", "BITBUCKET"),
            Self::BitbucketServer => ("Bitbucket Server", "BITBUCKET_SERVER"),
            Self::Gitea => ("Gitea", "GITEA"),
            Self::Github => ("GitHub", "GITHUB"),
            Self::Gitlab => ("GitLab", "GITLAB"),
        }
    }
}

impl Sharing {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Everybody => ("everybody", "ALL_USERS_IN_ACCOUNT"),
            Self::Admins => ("admins", "ACCOUNT_ADMINS"),
        }
    }
}

pub(crate) async fn run(
    command: &GitCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    match command {
        GitCommand::Integration(command) => integration(command, screen, environment).await,
        GitCommand::Token(TokenCommand::Check { named }) => {
            let proxy = find(&named.of, environment).await?;
            let query = "query Check($name: String) { gitToken(integrationName: $name) { expiresAt } }";
            let variables = json!({"name": named.name});
            let found: Token = proxy.get("check the token", query, variables, "gitToken").await?;
            let name = plain(&named.name);
            let until = match found.expires_at {
                Some(at) => format!(", until {}", day(at)),
                None => String::new(),
            };
            screen.say(&format!("the provider of the Git integration {name} takes your token{until}\n"))?;
            if found.expires_at.is_some_and(|at| at.duration_since(Timestamp::now()) < SOON) {
                screen.note("it ends within 14 days: register another one before");
            }
            Ok(())
        }
    }
}

/// The day of a moment, in UTC.
fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

async fn find(of: &RuntimeArgs, environment: &Environment) -> Result<Proxy, RemoteError> {
    workflow::proxy(of.runtime.as_deref(), &of.way, environment).await
}

async fn integration(
    command: &IntegrationCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    match command {
        IntegrationCommand::List { shown, of } => {
            list(&find(of, environment).await?, shown.output, screen).await
        }
        IntegrationCommand::Add { provider, api_url, sharing, careful, named } => {
            let ((people, provider), (whom, policy)) = (provider.words(), sharing.words());
            let at = api_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
            let what = Change {
                act: "add a Git integration",
                does: format!("add the Git integration {} of {people}{at}, for {whom}", named.name),
                is: "was added",
                destroys: false,
                query: "mutation Add($args: AddGitIntegrationArgs!) { addGitIntegration(args: $args) { name } }",
                variables: json!({"args": {
                    "name": named.name, "provider": provider, "apiUrl": api_url, "sharingPolicy": policy,
                }}),
            };
            what.carry_out((named, careful), screen, environment).await
        }
        IntegrationCommand::Edit { api_url, sharing, careful, named } => {
            let (whom, policy) = sharing.words();
            let at = api_url.as_ref().map(|url| format!(" at {url}, and forget tokens of another address"));
            let what = Change {
                act: "change a Git integration",
                does: format!(
                    "make the Git integration {} one for {whom}{}",
                    named.name,
                    at.unwrap_or_default()
                ),
                is: "was changed",
                destroys: api_url.is_some(),
                query: "mutation Edit($args: EditGitIntegrationArgs!) { editGitIntegration(args: $args) { name } }",
                variables: json!({"args": {
                    "name": named.name, "apiUrl": api_url, "sharingPolicy": policy,
                }}),
            };
            what.carry_out((named, careful), screen, environment).await?;
            if !careful.dry_run {
                return Ok(());
            }
            let found = Integration::find(named, environment).await?;
            screen.say(&found.edited(api_url.as_deref(), (policy, whom)))
        }
        IntegrationCommand::Remove { careful, named } => {
            let what = Change {
                act: "remove a Git integration",
                does: format!(
                    "remove the Git integration {}, and every token registered with it",
                    named.name
                ),
                is: "was removed",
                destroys: true,
                query: "mutation Remove($name: String!) { removeGitIntegration(name: $name) }",
                variables: json!({"name": named.name}),
            };
            what.carry_out((named, careful), screen, environment).await?;
            if !careful.dry_run {
                return Ok(());
            }
            screen.say(&Integration::find(named, environment).await?.tokens())
        }
        IntegrationCommand::Register { browser: true, dry_run, named, .. } => {
            let line = match dry_run {
                true => String::new(),
                false => consented(named, screen, environment).await?,
            };
            let what = Change {
                act: "register a token",
                does: format!(
                    "register a token that you consent to in a browser with the Git integration {}",
                    named.name
                ),
                is: "has your token",
                destroys: false,
                query: "mutation Finish($args: FinishGitAuthArgs!) { finishGitAuth(args: $args) { name } }",
                variables: json!({"args": {"name": named.name, "line": line}}),
            };
            let careful = ConfirmArgs { dry_run: *dry_run, yes: true };
            what.carry_out((named, &careful), screen, environment).await
        }
        IntegrationCommand::Register { browser: false, token_file, username, dry_run, named } => {
            let token = match dry_run {
                true => String::new(),
                false => WANTED.take(token_file.as_deref())?.expose_secret().to_owned(),
            };
            let what = Change {
                act: "register a token",
                does: format!("register your token with the Git integration {}", named.name),
                is: "has your token",
                destroys: false,
                query: "mutation Register($args: RegisterToGitIntegrationArgs!) { registerToGitIntegration(args: $args) { name } }",
                variables: json!({"args": {"name": named.name, "token": token, "username": username}}),
            };
            let careful = ConfirmArgs { dry_run: *dry_run, yes: true };
            what.carry_out((named, &careful), screen, environment).await
        }
        IntegrationCommand::Deregister { careful, named } => {
            let what = Change {
                act: "forget a token",
                does: format!("have the Git integration {} forget your token", named.name),
                is: "has forgotten your token",
                destroys: true,
                query: "mutation Deregister($name: String) { deregisterFromGitIntegration(name: $name) { name } }",
                variables: json!({"name": named.name}),
            };
            what.carry_out((named, careful), screen, environment).await
        }
    }
}

/// Where a browser asks for consent.
#[derive(Deserialize)]
struct Consent {
    url: String,
}

/// The line that a browser shows to whoever consented.
async fn consented(
    named: &IntegrationArgs,
    screen: &Screen,
    environment: &Environment,
) -> Result<String, RemoteError> {
    let proxy = find(&named.of, environment).await?;
    let query = "mutation Begin($name: String) { beginGitAuth(name: $name) { url } }";
    let begun = proxy.get("register a token", query, json!({"name": named.name}), "beginGitAuth").await?;
    let Consent { url } = begun;
    screen.note(&format!("open {} in your browser, and consent there", plain(&url)));
    Ok(LINE.take(None)?.expose_secret().to_owned())
}

/// What is changed of an integration.
struct Change {
    act: &'static str,
    does: String,
    is: &'static str,
    destroys: bool,
    query: &'static str,
    variables: Value,
}

impl Change {
    async fn carry_out(
        self,
        (named, careful): (&IntegrationArgs, &ConfirmArgs),
        screen: &Screen,
        environment: &Environment,
    ) -> Result<(), RemoteError> {
        let proxy = find(&named.of, environment).await?;
        let act = Act {
            act: self.act,
            does: plain(&self.does),
            done: plain(&format!("the Git integration {} {}", named.name, self.is)),
            destroys: self.destroys,
            query: self.query,
            variables: self.variables,
        };
        act.carry_out(&proxy, careful, screen).await.map(drop)
    }
}

/// How a token is asked for.
const WANTED: SecretPrompt<'static> = SecretPrompt {
    prompt: "Git token: ",
    read: "read the token from",
    none: "there is no token: it is asked for on a terminal, else read from standard input, or give --token-file",
    wrong: "this is no token: a token is one word, which is made on a page of the Git provider",
    longest: 4_096,
};

/// How the line of a browser is asked for.
const LINE: SecretPrompt<'static> = SecretPrompt {
    prompt: "The line that it shows: ",
    read: "read the line from",
    none: "there is no line: it is asked for on a terminal, else read from standard input",
    wrong: "this is no line of a browser that consented: it is one word",
    longest: 4_096,
};

async fn list(proxy: &Proxy, output: Output, screen: &Screen) -> Result<(), RemoteError> {
    let query = format!("query Integrations {{ gitIntegrations {{ {FIELDS} }} }}");
    let found: Value = proxy.get("list Git integrations", &query, json!({}), "gitIntegrations").await?;
    if matches!(output, Output::Json | Output::Yaml) {
        return screen.say(&document(&found, output)?);
    }
    let all: Vec<Integration> = read(found)?;
    if output == Output::Name {
        return screen.say(&all.iter().map(|one| plain(&one.name) + "\n").collect::<String>());
    }
    if all.is_empty() {
        screen.note(&format!("there is no Git integration in {}", proxy.runtime));
        return Ok(());
    }
    let now = Timestamp::now();
    let row = |one: &Integration| -> Vec<Cell> {
        vec![
            (&*one.name).into(),
            (&*one.provider).into(),
            (&*one.api_url).into(),
            one.whom().into(),
            one.registered(now).into(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    screen.say(&table(COLUMNS, &rows, output == Output::Wide, true, screen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_another_of_an_integration_is_told_and_whose_tokens_are_forgotten() {
        let kept: Integration = serde_json::from_value(json!({
            "name": "lab", "provider": "GITLAB", "apiUrl": "https://git.example/api/v4", "sharingPolicy": "ACCOUNT_ADMINS",
            "users": [{"userId": "ada", "isValid": true, "expiresAt": null}],
        }))
        .unwrap();
        let admins = ("ACCOUNT_ADMINS", "admins");
        assert_eq!(kept.edited(None, admins), "nothing would be changed\n");
        assert_eq!(kept.edited(Some("https://git.example/api/v4/"), admins), "nothing would be changed\n");
        let for_all = ("ALL_USERS_IN_ACCOUNT", "everybody");
        let both = "- for admins\n+ for everybody\n- at https://git.example/api/v4\n+ at https://lab.example\n  the token of ada\n";
        assert_eq!(kept.edited(Some("https://lab.example"), for_all), both);
    }
}
