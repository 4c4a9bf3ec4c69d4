//! People, their keys and teams, rules, and what was done.

use async_graphql::{ComplexObject, Context, Enum, InputObject, Result, SimpleObject};
use serde::{Deserialize, Serialize};
use stages_platform_store::{self as kept, name_of};

use super::{caller, store, time};
use crate::caller::{Refusal, unread};

/// There is one account.
pub(crate) const ACCOUNT: &str = "default";

/// Whoever asks.
#[derive(SimpleObject)]
pub(crate) struct Me {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Null: people are known by their names alone.
    pub(crate) email: Option<String>,
    pub(crate) is_admin: bool,
    /// Where a runtime asks: its name.
    pub(crate) runtime_name: Option<String>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) active_account: Account,
}

/// The account of everything here.
#[derive(SimpleObject, Clone)]
#[graphql(complex)]
pub(crate) struct Account {
    id: String,
    name: String,
    /// The kind of the Git server of the repository below.
    git_provider: Option<GitProviders>,
    /// The URL of the API of that Git server.
    git_api_url: Option<String>,
    /// The repository that runtimes have their configuration in together; null: nobody set it, and each runtime says its own.
    shared_config_repo: Option<String>,
    /// Null: nobody here looks whether these can be used.
    csdp_validated: Option<bool>,
    features: Features,
}

/// Kinds of Git servers.
#[derive(Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum GitProviders {
    Bitbucket,
    BitbucketServer,
    Gerrit,
    Github,
    Gitlab,
}

/// What holds of an account.
#[derive(SimpleObject, Clone)]
struct Features {
    /// Whether there are limits that a plan sets.
    gitops_plan_enforcement: bool,
}

/// How much there is, and how much there may be.
#[derive(SimpleObject)]
pub(crate) struct LimitsStatus {
    /// As far as whoever asks sees it.
    pub(crate) usage: Limits,
    pub(crate) limits: Limits,
    /// Whether there is no more than there may be.
    pub(crate) status: bool,
}

/// How many there are, or may be; null: any number.
#[derive(SimpleObject, Default)]
pub(crate) struct Limits {
    pub(crate) clusters: Option<u64>,
    pub(crate) applications: Option<u64>,
}

impl GitProviders {
    fn of(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// As it is kept.
    pub(crate) fn name(self) -> String {
        name_of(&self)
    }
}

impl Account {
    pub(crate) fn only(shared: Option<kept::SharedConfiguration>) -> Self {
        let provider = shared.as_ref().and_then(|shared| shared.git_provider.as_deref());
        Self {
            id: ACCOUNT.to_owned(),
            name: ACCOUNT.to_owned(),
            git_provider: provider.and_then(GitProviders::of),
            git_api_url: shared.as_ref().and_then(|shared| shared.git_api_url.clone()),
            shared_config_repo: shared.map(|shared| shared.repository),
            csdp_validated: None,
            features: Features { gitops_plan_enforcement: false },
        }
    }
}

#[ComplexObject]
impl Account {
    /// The ids of admins who may come in; null for whoever may not list people.
    #[graphql(complexity = 100)]
    async fn admins(&self, context: &Context<'_>) -> Result<Option<Vec<String>>> {
        if caller(context)?.manages().is_err() {
            return Ok(None);
        }
        let people = store(context)?.people().await.map_err(unread)?.into_iter();
        let admins = people.filter(|one| one.role == kept::Role::Admin && !one.disabled);
        Ok(Some(admins.map(|one| one.name).collect()))
    }
}

/// Somebody who signs in.
#[derive(SimpleObject)]
pub(crate) struct User {
    name: String,
    role: &'static str,
    teams: Vec<String>,
    created_at: String,
    /// Whether they may not come in.
    disabled: bool,
}

impl From<kept::Person> for User {
    fn from(one: kept::Person) -> Self {
        Self {
            name: one.name,
            role: one.role.name(),
            teams: one.teams,
            created_at: time(one.created_at),
            disabled: one.disabled,
        }
    }
}

/// A key of somebody for programs, without what is secret of it.
#[derive(SimpleObject)]
pub(crate) struct ApiKey {
    id: i64,
    owner: String,
    name: String,
    prefix: String,
    scope: &'static str,
    created_at: String,
    ends_at: String,
}

impl From<kept::Key> for ApiKey {
    fn from(one: kept::Key) -> Self {
        Self {
            id: one.id,
            owner: one.owner,
            name: one.name,
            prefix: one.prefix,
            scope: one.scope.name(),
            created_at: time(one.created_at),
            ends_at: time(one.until),
        }
    }
}

/// Something that was done.
#[derive(SimpleObject)]
pub(crate) struct AuditEntry {
    id: i64,
    at: String,
    who: String,
    how: String,
    act: String,
    subject: String,
}

impl From<kept::Act> for AuditEntry {
    fn from(one: kept::Act) -> Self {
        let kept::Act { id, at, who, how, act, subject } = one;
        Self { id, at: time(at), who, how, act, subject }
    }
}

/// What a subject of a rule must have.
#[derive(InputObject, SimpleObject)]
#[graphql(input_name = "AbacAttributeInput")]
pub(crate) struct AbacAttribute {
    /// Such as `RUNTIME` or `LABEL`.
    name: String,
    /// Of a label.
    key: Option<String>,
    value: String,
}

/// What the members of teams may do.
#[derive(SimpleObject)]
pub(crate) struct AbacRule {
    id: i64,
    account_id: &'static str,
    entity_type: String,
    teams: Vec<String>,
    tags: Vec<String>,
    actions: Vec<String>,
    attributes: Vec<AbacAttribute>,
}

/// A rule that is to be.
#[derive(InputObject)]
pub(crate) struct AbacRuleInput {
    /// Such as `gitopsApplications`.
    entity_type: String,
    teams: Vec<String>,
    #[graphql(default)]
    tags: Vec<String>,
    /// Such as `VIEW` or `SYNC`.
    actions: Vec<String>,
    #[graphql(default)]
    attributes: Vec<AbacAttribute>,
}

/// A name of those that there are.
fn named<T: serde::de::DeserializeOwned>(what: &str, name: &str) -> Result<T, Refusal> {
    let wrong =
        |error: serde_json::Error| Refusal::Wrong(format!("'{name}' is no {what} of a rule: {error}"));
    serde_json::from_value(name.into()).map_err(wrong)
}

impl AbacRuleInput {
    pub(crate) fn rule(self) -> Result<kept::Rule, Refusal> {
        let attribute = |one: AbacAttribute| {
            let AbacAttribute { name, key, value } = one;
            Ok(kept::Attribute { name: named("attribute", &name)?, key, value })
        };
        let rule = kept::Rule {
            id: 0,
            entity_type: named("entity", &self.entity_type)?,
            teams: self.teams,
            tags: self.tags,
            actions: self.actions.iter().map(|name| named("action", name)).collect::<Result<_, _>>()?,
            attributes: self.attributes.into_iter().map(attribute).collect::<Result<_, Refusal>>()?,
        };
        rule.check().map_err(|why| Refusal::Wrong(why.to_owned()))?;
        Ok(rule)
    }
}

impl From<kept::Rule> for AbacRule {
    fn from(one: kept::Rule) -> Self {
        let attribute =
            |one: kept::Attribute| AbacAttribute { name: name_of(&one.name), key: one.key, value: one.value };
        Self {
            id: one.id,
            account_id: ACCOUNT,
            entity_type: name_of(&one.entity_type),
            teams: one.teams,
            tags: one.tags,
            actions: one.actions.iter().map(name_of).collect(),
            attributes: one.attributes.into_iter().map(attribute).collect(),
        }
    }
}
