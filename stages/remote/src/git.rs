//! `gitops-runtime git integration` and `git token`: Git providers of a runtime, and people's tokens there.

mod change;

use jiff::{SignedDuration, Timestamp};
use pipeline_core::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use self::change::IntegrationChange;
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
/// A token that ends within this time is shown with its end.
const ENDS_SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

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
    /// The integration that is named.
    async fn find(named: &IntegrationArgs, environment: &Environment) -> Result<Self, RemoteError> {
        let query =
            format!("query Integration($name: String) {{ gitIntegration(name: $name) {{ {FIELDS} }} }}");
        let proxy = find(&named.of, environment).await?;
        proxy.get("read a Git integration", &query, json!({"name": named.name}), "gitIntegration").await
    }

    /// The tokens that are forgotten with it, a line each.
    fn tokens(&self) -> String {
        let line = |user: &User| plain(&format!("  the token of {}", user.user_id)) + "\n";
        self.users.iter().map(line).collect()
    }

    /// What an edit would change, and whose tokens it would forget, a line each.
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

    /// Who has a token registered with it, and which of these tokens end soon or have to be registered again.
    fn registered(&self, now: Timestamp) -> String {
        let user = |user: &User| {
            let ends = user.expires_at.filter(|at| at.duration_since(now) < ENDS_SOON);
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
    /// Its name for people, and in the schema.
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
    /// Who may register, for people, and in the schema.
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
            if found.expires_at.is_some_and(|at| at.duration_since(Timestamp::now()) < ENDS_SOON) {
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

/// The app proxy of the runtime that is named, or of the only one.
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
            let add = IntegrationChange::add(&named.name, *provider, api_url.as_deref(), *sharing);
            add.carry_out((named, careful), screen, environment).await
        }
        IntegrationCommand::Edit { api_url, sharing, careful, named } => {
            let edit = IntegrationChange::edit(&named.name, api_url.as_deref(), *sharing);
            edit.carry_out((named, careful), screen, environment).await?;
            if !careful.dry_run {
                return Ok(());
            }
            let (whom, policy) = sharing.words();
            let found = Integration::find(named, environment).await?;
            screen.say(&found.edited(api_url.as_deref(), (policy, whom)))
        }
        IntegrationCommand::Remove { careful, named } => {
            let remove = IntegrationChange::remove(&named.name);
            remove.carry_out((named, careful), screen, environment).await?;
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
            let register = IntegrationChange::register_consented(&named.name, &line);
            let careful = ConfirmArgs { dry_run: *dry_run, yes: true };
            register.carry_out((named, &careful), screen, environment).await
        }
        IntegrationCommand::Register { browser: false, token_file, username, dry_run, named } => {
            let token = match dry_run {
                true => String::new(),
                false => TOKEN.take(token_file.as_deref())?.expose_secret().to_owned(),
            };
            let register = IntegrationChange::register(&named.name, &token, username.as_deref());
            let careful = ConfirmArgs { dry_run: *dry_run, yes: true };
            register.carry_out((named, &careful), screen, environment).await
        }
        IntegrationCommand::Deregister { careful, named } => {
            let deregister = IntegrationChange::deregister(&named.name);
            deregister.carry_out((named, careful), screen, environment).await
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

/// How a token is asked for.
const TOKEN: SecretPrompt<'static> = SecretPrompt {
    prompt: "Git token: ",
    read: "read the token from",
    none: "there is no token: it is asked for on a terminal, else read from standard input, or give --token-file",
    wrong: "this is no token: a token is one word, which is made on a page of the Git provider",
    longest: 4_096,
};

/// How the line that a browser shows to whoever consented is asked for.
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
