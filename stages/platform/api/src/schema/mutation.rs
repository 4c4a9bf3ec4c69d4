//! What may be changed.

use std::sync::Arc;

use async_graphql::{Context, InputValueResult, Object, Result, Scalar, ScalarType, SimpleObject, Value};
use pipeline_core::{ExposeSecret as _, SecretString};
use stages_platform_store::{
    DAY, RULES, Role, SEALING_KEYS, Scope, SealingKey, SharedConfiguration, StoreError, TOLD_CLUSTERS,
    VersionSource, check_team, runtime_id,
};

use super::account::{AbacRuleInput, GitProviders};
use super::cluster::ClusterUpsertArgs;
use super::promotion::VersionSourceInput;
use super::runtime::{
    self, ReportRuntimeErrorsArgs, ReportRuntimeVersionArgs, RuntimeCreationResponse, RuntimeInstallationArgs,
};
use super::{caller, now, store, time, told};
use crate::caller::{Caller, Person, Refusal, registered, unread, unwritten};

/// What may be changed.
pub(crate) struct Mutation;

/// A key that was just made.
#[derive(SimpleObject)]
struct NewApiKey {
    /// Shown this once.
    key: String,
    /// When it ends: not later than the key that it was made with.
    ends_at: String,
}

/// Nothing: what is done is done. Clients of other platforms read no other answer where they expect none.
struct Void;

#[Scalar]
impl ScalarType for Void {
    fn parse(_: Value) -> InputValueResult<Self> {
        Ok(Self)
    }

    fn to_value(&self) -> Value {
        Value::Null
    }
}

/// Problems of a runtime that are kept.
const PROBLEMS: usize = 100;
/// The longest version of a runtime.
const VERSION: usize = 100;
/// The longest that a key lasts.
const DAYS: i64 = 366;

fn wrong(text: impl Into<String>) -> async_graphql::Error {
    Refusal::Wrong(text.into()).into()
}

/// Whether it can be a secret of a registration: of random digits hardly any are the same.
fn is_random(text: &str) -> bool {
    let digits: std::collections::BTreeSet<u8> = text.bytes().collect();
    text.len() == 64 && digits.len() > 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Somebody is there as they were.
fn not_the_last(name: &str) -> String {
    format!(
        "there is no user '{name}', or it is the last admin whom a person made one: an admin by a group of a provider does not count"
    )
}

fn done(done: Result<bool, Arc<StoreError>>, otherwise: impl Into<String>) -> Result<bool> {
    if done.map_err(unwritten)? { Ok(true) } else { Err(wrong(otherwise)) }
}

/// Takes a runtime's tokens and registration; how many runtimes that were.
async fn unregister(context: &Context<'_>, person: &Person, name: String) -> Result<i32> {
    match store(context)?.unregister(&person.by, &name, now(context)?).await.map_err(unwritten)? {
        true => Ok(1),
        false => Err(Refusal::NoRuntime(name).into()),
    }
}

#[Object]
impl Mutation {
    /// Registers a runtime, and makes its token. It is there already under that name: one that is not of lower-case letters and digits
    /// alone gets an id beside, which its tunnel is named by.
    async fn create_runtime(
        &self,
        context: &Context<'_>,
        installation_args: RuntimeInstallationArgs,
    ) -> Result<RuntimeCreationResponse> {
        let person = caller(context)?.governs()?;
        let (name, recover) =
            (installation_args.runtime_name.clone(), installation_args.recover == Some(true));
        if installation_args.is_long() {
            return Err(wrong("what a runtime says of itself has at most 16384 bytes"));
        }
        let body = serde_json::to_string(&installation_args).map_err(|_| Refusal::Store)?;
        let (store, now) = (store(context)?, now(context)?);
        let made = match installation_args.installation_id.as_deref().filter(|_| !recover) {
            Some(installation) if !is_random(installation) => {
                return Err(wrong("an installationId has 64 hexadecimal digits, chosen at random"));
            }
            Some(installation) => {
                let installation = SecretString::from(installation);
                store.register_installation(&person.by, (&name, &body), &installation, now).await
            }
            None => store.register(&person.by, &name, &body, recover, now).await,
        };
        match made.map_err(unwritten)? {
            Some(token) => {
                let (id, token) = (runtime_id(&name).into_owned(), token.expose_secret().to_owned());
                Ok(RuntimeCreationResponse { name, id, new_access_token: token })
            }
            None => Err(wrong(format!(
                "there is a runtime '{name}': choose another name, or send recover: true to register it anew"
            ))),
        }
    }

    /// Takes a runtime's tokens and registration; how many runtimes that were. What it reported stays until it is too old.
    async fn delete_runtime(&self, context: &Context<'_>, name: String) -> Result<i32> {
        let person = caller(context)?.governs()?;
        unregister(context, person, name).await
    }

    /// The same of a runtime that was registered as one that somebody else runs, and of no other.
    async fn delete_managed_runtime(&self, context: &Context<'_>, name: String) -> Result<i32> {
        let person = caller(context)?.governs()?;
        if !runtime::is_managed(&registered(store(context)?, &name).await?) {
            return Err(wrong(format!("runtime '{name}' is not managed: deleteRuntime takes it away")));
        }
        unregister(context, person, name).await
    }

    /// Refused: what a runtime is made of is changed where it runs, by its chart.
    async fn migrate_runtime(&self, context: &Context<'_>, runtime_name: String) -> Result<Option<Void>> {
        caller(context)?.governs()?;
        registered(store(context)?, &runtime_name).await?;
        Err(wrong(format!(
            "this platform migrates no runtime: convert the values of '{runtime_name}' with `gitops-runtime values convert`, install the \
             chart with them, and register the name anew with recover: true"
        )))
    }

    /// Sets the repository that runtimes have their configuration in together, and its Git server; an empty `gitApiUrl`: that of the
    /// provider.
    async fn update_csdp_settings(
        &self,
        context: &Context<'_>,
        git_provider: GitProviders,
        git_api_url: String,
        shared_config_repo: String,
    ) -> Result<Option<Void>> {
        let person = caller(context)?.governs()?;
        let shared = SharedConfiguration {
            git_provider: Some(git_provider.name()),
            git_api_url: told(git_api_url.trim().to_owned()),
            repository: shared_config_repo.trim().to_owned(),
        };
        shared.check().map_err(wrong)?;
        store(context)?
            .set_shared_configuration(&person.by, &shared, now(context)?)
            .await
            .map_err(unwritten)?;
        Ok(None)
    }

    /// Sets that repository where none is set, as the first runtime does; the one that holds.
    async fn suggest_isc_repo(
        &self,
        context: &Context<'_>,
        suggested_shared_config_repo: String,
    ) -> Result<String> {
        let by = caller(context)?.changes()?;
        let repository = suggested_shared_config_repo.trim().to_owned();
        let shared = SharedConfiguration { git_provider: None, git_api_url: None, repository };
        shared.check().map_err(wrong)?;
        let holds = store(context)?.suggest_shared_configuration(&by, shared, now(context)?).await;
        Ok(holds.map_err(unwritten)?.repository)
    }

    /// Takes what a runtime says is wrong with it, instead of what it said before; how many that are.
    async fn report_runtime_errors(
        &self,
        context: &Context<'_>,
        report_errors_args: ReportRuntimeErrorsArgs,
    ) -> Result<i32> {
        let ReportRuntimeErrorsArgs { runtime, errors } = report_errors_args;
        caller(context)?.acts_for(&runtime)?;
        if errors.len() > PROBLEMS {
            return Err(wrong(format!("a runtime has at most {PROBLEMS} errors")));
        }
        let (store, now, count) = (store(context)?, now(context)?, errors.len());
        let known = store.registrations(Some(&runtime)).await.map_err(unread)?;
        let before = known.first().map_or("[]", |one| &*one.problems);
        let problems = runtime::problems_json(errors, before, now).map_err(|_| Refusal::Store)?;
        match store.keep_problems(&runtime, &problems, now).await.map_err(unwritten)? {
            true => Ok(i32::try_from(count).unwrap_or(i32::MAX)),
            false => Err(Refusal::NoRuntime(runtime).into()),
        }
    }

    /// Takes the version that a runtime runs since it was upgraded, instead of what it said before.
    async fn report_runtime_version(
        &self,
        context: &Context<'_>,
        report_version_args: ReportRuntimeVersionArgs,
    ) -> Result<bool> {
        let ReportRuntimeVersionArgs { runtime, runtime_version } = report_version_args;
        caller(context)?.acts_for(&runtime)?;
        let version = runtime_version.trim();
        if version.is_empty() || version.chars().count() > VERSION {
            return Err(wrong(format!("a version has 1 to {VERSION} characters")));
        }
        match store(context)?.keep_version(&runtime, version).await.map_err(unwritten)? {
            true => Ok(true),
            false => Err(Refusal::NoRuntime(runtime).into()),
        }
    }

    /// Takes what a runtime says of clusters of its, each instead of what it said of it before; how many that are. Of the newest
    /// 1,000 that is kept, without those that two whole lists in a row do not name.
    async fn update_runtime_clusters(
        &self,
        context: &Context<'_>,
        clusters: Vec<ClusterUpsertArgs>,
    ) -> Result<i32> {
        let Caller::Runtime(own) = caller(context)? else { return Err(Refusal::NotARuntime.into()) };
        if clusters.len() > TOLD_CLUSTERS {
            return Err(wrong(format!("at most {TOLD_CLUSTERS} clusters are told of at a time")));
        }
        if clusters.iter().any(|one| one.runtime != own.name) {
            return Err(Refusal::AnotherRuntime.into());
        }
        let told = clusters.into_iter().map(ClusterUpsertArgs::told).collect::<Result<Vec<_>, _>>()?;
        let number = i32::try_from(told.len()).unwrap_or(i32::MAX);
        store(context)?.keep_clusters(own.id, told, now(context)?).await.map_err(unwritten)?;
        Ok(number)
    }

    /// Keeps a private key of the runtime that asks against its loss, and gives it to nobody else: PEM, or base64 of that. The id
    /// that it is asked for by, which is the same for the same key.
    async fn save_sealing_key(&self, context: &Context<'_>, private_key: String) -> Result<String> {
        let private_key = SecretString::from(private_key);
        let Caller::Runtime(own) = caller(context)? else { return Err(Refusal::NotARuntime.into()) };
        let key = SealingKey::read(&private_key).map_err(wrong)?;
        let id = store(context)?.keep_sealing_key(own, &key, now(context)?).await.map_err(unwritten)?;
        id.ok_or_else(|| {
            wrong(format!(
                "a runtime has at most {SEALING_KEYS} sealing keys, and none is dropped, as what was sealed for it could not be opened \
                 any more: deleteRuntime takes them with the runtime"
            ))
        })
    }

    /// Makes a key of whoever asks; `scope` is `read` or `full`. Made with a key, it ends when that one does, where it would later, and
    /// is taken back with it.
    async fn create_api_key(
        &self,
        context: &Context<'_>,
        name: String,
        scope: String,
        #[graphql(default = 90)] days: i64,
    ) -> Result<NewApiKey> {
        let person = caller(context)?.writes()?;
        let name = name.trim();
        if name.is_empty() || name.chars().count() > 100 {
            return Err(wrong("the name of a key has 1 to 100 characters"));
        }
        let Some(scope) = Scope::of(&scope) else {
            return Err(wrong("the scope of a key is 'read' or 'full'"));
        };
        if !(1..=DAYS).contains(&days) {
            return Err(wrong(format!("a key lasts 1 to {DAYS} days")));
        }
        let (store, now) = (store(context)?, now(context)?);
        let asked = now + days * DAY;
        let own = person.key.as_ref();
        let until = own.map_or(asked, |own| own.until.min(asked));
        let own = own.map(|own| own.id);
        let made = store.add_key_with(own, &person.by, name, scope, until, now).await.map_err(unwritten)?;
        Ok(NewApiKey { key: made.expose_secret().to_owned(), ends_at: time(until) })
    }

    /// Takes a key back, and with it those that were made with it: one's own, or as an admin anybody's.
    async fn remove_api_key(&self, context: &Context<'_>, id: i64) -> Result<bool> {
        let caller = caller(context)?;
        let person = caller.writes()?;
        let removed =
            store(context)?.remove_key(&person.by, id, caller.manages().is_ok(), now(context)?).await;
        done(removed, format!("you have no key {id}"))
    }

    /// Gives somebody a role: `admin` or `member`. It is theirs by whoever asks from then on, and by no group of a provider: an admin by a
    /// group stays one for good, also without the group and where what it gave has lapsed.
    async fn set_user_role(&self, context: &Context<'_>, name: String, role: String) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let Some(role) = Role::named(&role) else {
            return Err(wrong("a role is 'admin' or 'member'"));
        };
        let set = store(context)?.set_role(&person.by, &name, role, now(context)?).await;
        done(set, not_the_last(&name))
    }

    /// Puts somebody into these teams and no others.
    async fn set_user_teams(&self, context: &Context<'_>, name: String, teams: Vec<String>) -> Result<bool> {
        let person = caller(context)?.governs()?;
        if teams.len() > 50 || teams.iter().any(|team| team.trim().is_empty() || team.len() > 100) {
            return Err(wrong("somebody is in at most 50 teams, each of a name of at most 100 characters"));
        }
        teams.iter().try_for_each(|team| check_team(team)).map_err(wrong)?;
        let set = store(context)?.set_teams(&person.by, &name, &teams, now(context)?).await;
        done(set, format!("there is no user '{name}'"))
    }

    /// Keeps somebody out, whose sessions end, or lets them in again.
    async fn set_user_disabled(&self, context: &Context<'_>, name: String, disabled: bool) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let set = store(context)?.set_disabled(&person.by, &name, disabled, now(context)?).await;
        done(set, not_the_last(&name))
    }

    /// Takes somebody away, with their sessions and keys.
    async fn remove_user(&self, context: &Context<'_>, name: String) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let removed = store(context)?.remove_person(&person.by, &name, now(context)?).await;
        done(removed, not_the_last(&name))
    }

    /// Ends every session of somebody: of oneself, or as an admin of anybody.
    async fn end_sessions(&self, context: &Context<'_>, name: String) -> Result<bool> {
        let caller: &Caller = caller(context)?;
        let person = caller.writes()?;
        if person.access.who != name {
            caller.governs()?;
        }
        let ended = store(context)?.end_sessions(&person.by, &name, now(context)?).await;
        done(ended, format!("'{name}' has no session"))
    }

    /// Sets where the version of an application (`namespace/name`) of a runtime stands, or of all of them; null: takes that back.
    async fn set_version_source(
        &self,
        context: &Context<'_>,
        runtime: String,
        application: Option<String>,
        source: Option<VersionSourceInput>,
    ) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let source = source.map(VersionSource::from);
        if let Some(source) = &source {
            source.check().map_err(wrong)?;
        }
        registered(store(context)?, &runtime).await?;
        let application = match &application {
            Some(name) => {
                let parts = name.split_once('/').filter(|(namespace, name)| {
                    !namespace.is_empty() && !name.is_empty() && name.len() <= 253 && !name.contains('/')
                });
                Some(parts.ok_or_else(|| wrong("an application is named as namespace/name"))?)
            }
            None => None,
        };
        let of = (&*runtime, application);
        store(context)?
            .set_version_source(&person.by, of, source.as_ref(), now(context)?)
            .await
            .map_err(unwritten)?;
        Ok(true)
    }

    /// Adds a rule.
    async fn create_abac_rule(&self, context: &Context<'_>, rule: AbacRuleInput) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let added = store(context)?.add_rule(&person.by, &rule.rule()?, now(context)?).await;
        done(added, format!("there are {RULES} rules, and no more may be"))
    }

    /// Takes a rule away.
    async fn remove_abac_rule(&self, context: &Context<'_>, id: i64) -> Result<bool> {
        let person = caller(context)?.governs()?;
        let removed = store(context)?.remove_rule(&person.by, id, now(context)?).await;
        done(removed, format!("there is no rule {id}"))
    }
}
