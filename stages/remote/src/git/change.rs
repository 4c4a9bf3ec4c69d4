//! Changes of a Git integration, or of somebody's token there, as mutations and in words.

use serde_json::{Value, json};

use super::find;
use crate::act::Act;
use crate::arguments::act::ConfirmArgs;
use crate::arguments::git::{IntegrationArgs, Provider, Sharing};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::show::{Screen, plain};

/// A change of a Git integration, or of somebody's token there.
pub(super) struct IntegrationChange {
    /// Completes "cannot ...".
    act: &'static str,
    /// Completes "would ...".
    does: String,
    /// What is so once it was asked for, behind the name of the integration.
    done: &'static str,
    /// Whether it takes something away that no other command brings back.
    destroys: bool,
    query: &'static str,
    variables: Value,
}

impl IntegrationChange {
    pub(super) fn add(name: &str, provider: Provider, api_url: Option<&str>, sharing: Sharing) -> Self {
        let ((people, provider), (whom, policy)) = (provider.words(), sharing.words());
        let at = api_url.map(|url| format!(" at {url}")).unwrap_or_default();
        Self {
            act: "add a Git integration",
            does: format!("add the Git integration {name} of {people}{at}, for {whom}"),
            done: "was added",
            destroys: false,
            query: "mutation Add($args: AddGitIntegrationArgs!) { addGitIntegration(args: $args) { name } }",
            variables: json!({"args": {
                "name": name, "provider": provider, "apiUrl": api_url, "sharingPolicy": policy,
            }}),
        }
    }

    pub(super) fn edit(name: &str, api_url: Option<&str>, sharing: Sharing) -> Self {
        let (whom, policy) = sharing.words();
        let at = api_url.map(|url| format!(" at {url}, and forget tokens of another address"));
        Self {
            act: "change a Git integration",
            does: format!("make the Git integration {name} one for {whom}{}", at.unwrap_or_default()),
            done: "was changed",
            destroys: api_url.is_some(),
            query: "mutation Edit($args: EditGitIntegrationArgs!) { editGitIntegration(args: $args) { name } }",
            variables: json!({"args": {"name": name, "apiUrl": api_url, "sharingPolicy": policy}}),
        }
    }

    pub(super) fn remove(name: &str) -> Self {
        Self {
            act: "remove a Git integration",
            does: format!("remove the Git integration {name}, and every token registered with it"),
            done: "was removed",
            destroys: true,
            query: "mutation Remove($name: String!) { removeGitIntegration(name: $name) }",
            variables: json!({"name": name}),
        }
    }

    /// Registers the token that somebody consented to in a browser, which showed them this line.
    pub(super) fn register_consented(name: &str, line: &str) -> Self {
        Self {
            act: "register a token",
            does: format!(
                "register a token that you consent to in a browser with the Git integration {name}"
            ),
            done: "has your token",
            destroys: false,
            query: "mutation Finish($args: FinishGitAuthArgs!) { finishGitAuth(args: $args) { name } }",
            variables: json!({"args": {"name": name, "line": line}}),
        }
    }

    pub(super) fn register(name: &str, token: &str, username: Option<&str>) -> Self {
        Self {
            act: "register a token",
            does: format!("register your token with the Git integration {name}"),
            done: "has your token",
            destroys: false,
            query: "mutation Register($args: RegisterToGitIntegrationArgs!) { registerToGitIntegration(args: $args) { name } }",
            variables: json!({"args": {"name": name, "token": token, "username": username}}),
        }
    }

    pub(super) fn deregister(name: &str) -> Self {
        Self {
            act: "forget a token",
            does: format!("have the Git integration {name} forget your token"),
            done: "has forgotten your token",
            destroys: true,
            query: "mutation Deregister($name: String) { deregisterFromGitIntegration(name: $name) { name } }",
            variables: json!({"name": name}),
        }
    }

    /// Asks the app proxy for it, or says what would be done in a dry run.
    pub(super) async fn carry_out(
        self,
        (named, careful): (&IntegrationArgs, &ConfirmArgs),
        screen: &Screen,
        environment: &Environment,
    ) -> Result<(), RemoteError> {
        let proxy = find(&named.of, environment).await?;
        let act = Act {
            act: self.act,
            does: plain(&self.does),
            done: plain(&format!("the Git integration {} {}", named.name, self.done)),
            destroys: self.destroys,
            query: self.query,
            variables: self.variables,
        };
        act.carry_out(&proxy, careful, screen).await.map(drop)
    }
}
