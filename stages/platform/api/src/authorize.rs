//! What the app proxy of a runtime asks: whether somebody may do something there, and that what was done is kept.
//!
//! takes: a runtime's own token, and the token of whoever asks it - gives: whether they may, and which rule says so or that none
//! does - calls: the store - fails: closed; a runtime is answered about itself alone

use axum::Json;
use axum::extract::{Request, State};
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stages_platform_store::{
    Access, Action, Decision, Entity, KnownKey, KnownSubject, RecordedAct, Runtime, Scope, name_of,
};

use crate::api::Api;
use crate::caller::{Caller, Refusal, unread, unwritten};
use crate::schema::ACCOUNT;

/// Records that are taken at once.
const RECORDS: usize = 100;
/// Characters of a record that are kept.
const LONGEST: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    token: SecretString,
    /// `None`: what no rule grants.
    action: Option<Action>,
    entity: Entity,
    attributes: Attributes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attributes {
    /// `None`: the runtime that asks.
    runtime: Option<String>,
    #[serde(default)]
    namespace: String,
    /// Of an application.
    name: Option<String>,
}

#[derive(Serialize, Default)]
pub(crate) struct Verdict {
    allowed: bool,
    who: Option<String>,
    /// Which account has that name: no other ever had this.
    uid: Option<String>,
    account: Option<&'static str>,
    rule: Option<i64>,
    why: Option<String>,
    /// Why not, in a word from a closed set.
    refusal: Option<&'static str>,
    /// Whether it may be remembered for a while.
    lasts: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Records {
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    who: String,
    act: String,
    place: String,
    outcome: String,
}

/// Whoever a token is of.
struct Somebody {
    access: Access,
    scope: Scope,
    shown: Shown,
}

/// What somebody shows.
#[derive(PartialEq, Eq)]
enum Shown {
    Pass,
    Key,
    Session,
}

impl Somebody {
    /// Whether the answer may be remembered: a pass ends within the minute that one may.
    fn lasts(&self) -> bool {
        self.shown != Shown::Pass
    }

    /// The provider that the owner of a key has not come in by for too long. Whoever has a session is told so by the console.
    fn lapsed(&self) -> Option<&str> {
        self.access.lapsed.as_deref().filter(|_| self.shown == Shown::Key)
    }
}

impl Verdict {
    fn refused(somebody: Option<Somebody>, refusal: &'static str, why: impl Into<String>) -> Self {
        let lasts = somebody.as_ref().is_none_or(Somebody::lasts);
        let (who, uid) = somebody.map(|Somebody { access, .. }| (access.who, access.uid)).unzip();
        let account = who.as_ref().map(|_| ACCOUNT);
        Self { who, uid, account, why: Some(why.into()), refusal: Some(refusal), lasts, ..Self::default() }
    }
}

/// `POST /2.0/api/authorize`: whether somebody may.
pub(crate) async fn authorize(State(api): State<Api>, request: Request) -> Result<Json<Verdict>, Refusal> {
    let (runtime, body) = of_runtime(&api, request).await?;
    Ok(Json(judge(&api, &runtime.name, read(&body)?).await?))
}

/// `POST /2.0/api/audit`: keeps what was done in a runtime.
pub(crate) async fn audit(State(api): State<Api>, request: Request) -> Result<Json<Value>, Refusal> {
    let (runtime, body) = of_runtime(&api, request).await?;
    let Records { records } = read(&body)?;
    let named =
        |text: &str| (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if records.len() > RECORDS || !records.iter().all(|record| named(&record.act)) {
        let text =
            format!("there are at most {RECORDS} records, and the act of each is the name of an operation");
        return Err(Refusal::Wrong(text));
    }
    let short = |text: &str| text.chars().filter(|c| !c.is_control()).take(LONGEST).collect::<String>();
    let kept_as = |Record { who, act, place, outcome }: Record| RecordedAct {
        who: short(&who),
        act,
        subject: short(&format!("{}/{place}: {outcome}", runtime.name)),
    };
    let records: Vec<RecordedAct> = records.into_iter().map(kept_as).collect();
    let count = records.len();
    api.store.record(records, api.now()).await.map_err(unwritten)?;
    Ok(Json(json!({"recorded": count})))
}

/// The runtime that asks, and the body.
async fn of_runtime(api: &Api, request: Request) -> Result<(Runtime, Vec<u8>), Refusal> {
    let (head, body) = request.into_parts();
    match api.asked(&head, body).await? {
        (Caller::Runtime(runtime), body) => Ok((runtime, body)),
        (Caller::Person(_), _) => Err(Refusal::NotARuntime),
    }
}

/// Where in a body the fault is, may be told; the body itself is not: it holds a token.
fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Refusal::Wrong(format!("the body is not what is asked here: line {line}, column {column}"))
    })
}

async fn judge(api: &Api, runtime: &str, asked: Asked) -> Result<Verdict, Refusal> {
    let Asked { token, action, entity, attributes } = asked;
    let Some(somebody) = somebody(api, runtime, &token).await? else {
        let known = api.store.runtime(&token).await.map_err(unread)?;
        let why = known.map_or(Refusal::Unknown, |_| Refusal::NotAPerson);
        return Ok(Verdict::refused(None, "unknown", why.to_string()));
    };
    if let Some(issuer) = somebody.lapsed() {
        let why = Refusal::Lapsed(issuer.to_owned()).to_string();
        return Ok(Verdict::refused(Some(somebody), "lapsed", why));
    }
    if let Some(other) = attributes.runtime.as_deref().filter(|other| *other != runtime) {
        let why = format!("this is the app proxy of the runtime '{runtime}': ask that of '{other}'");
        return Ok(Verdict::refused(Some(somebody), "another_runtime", why));
    }
    let reads = [Action::View, Action::AccessLogs, Action::ViewPodLogs, Action::AccessArtifacts];
    if somebody.scope != Scope::Full && !action.is_some_and(|action| reads.contains(&action)) {
        return Ok(Verdict::refused(Some(somebody), "reads_only", Refusal::ReadsOnly.to_string()));
    }
    let Attributes { namespace, name, .. } = attributes;
    let known = match &name {
        Some(name) => api.store.subject((runtime, &namespace, name)).await.map_err(unread)?,
        None => KnownSubject::default(),
    };
    let labels = known.labels();
    let subject = known.within(runtime, &namespace, &labels);
    let lasts = somebody.lasts();
    let access = somebody.access;
    let (who, uid) = (access.who.clone(), access.uid.clone());
    let told = |rule, why: Option<(&'static str, String)>| Verdict {
        allowed: why.is_none(),
        who: Some(who.clone()),
        uid: Some(uid.clone()),
        account: Some(ACCOUNT),
        rule,
        refusal: why.as_ref().map(|(refusal, _)| *refusal),
        why: why.map(|(_, why)| why),
        lasts,
    };
    // The runtime itself is seen by whoever sees anything of it.
    if action == Some(Action::View)
        && namespace.is_empty()
        && name.is_none()
        && api.store.seen_runtime(&access, runtime).await.map_err(unread)?.is_some()
    {
        return Ok(told(None, None));
    }
    let decision = match action {
        Some(action) => access.decide(action, entity, &subject),
        None if access.is_admin() => Decision::Admin,
        None => Decision::None(Vec::new()),
    };
    Ok(match decision {
        Decision::Admin => told(None, None),
        Decision::Rule(id) => told(Some(id), None),
        Decision::None(others) => {
            let word = match (action, &*others) {
                (None, _) => "admins_only",
                (Some(_), []) => "no_rule",
                (Some(_), _) => "another_subject",
            };
            told(None, Some((word, refusal(&who, action, entity, &others))))
        }
    })
}

/// Which rules come close, or that none does.
fn refusal(who: &str, action: Option<Action>, entity: Entity, others: &[i64]) -> String {
    let Some(action) = action else {
        return format!("'{who}' may not: no rule allows this, it is for admins");
    };
    let (action, entity) = (name_of(&action), name_of(&entity));
    match others {
        [] => format!("'{who}' may not: no rule of a team of theirs allows {action} of {entity}"),
        [one] => format!("'{who}' may not: rule {one} allows {action} of {entity}, and not of this one"),
        several => {
            let several: Vec<String> = several.iter().map(i64::to_string).collect();
            let several = several.join(", ");
            format!(
                "'{who}' may not: rules {several} allow {action} of {entity}, and none of them of this one"
            )
        }
    }
}

/// Whose token it is: an API key, a session, or a pass of this very runtime.
async fn somebody(api: &Api, runtime: &str, token: &SecretString) -> Result<Option<Somebody>, Refusal> {
    let now = api.now();
    if let Some(pass) = api.store.pass(token, now).await.map_err(unread)? {
        let own = pass.runtime == runtime;
        return Ok(own.then_some(Somebody { access: pass.access, scope: pass.scope, shown: Shown::Pass }));
    }
    if let Some(KnownKey { owner, scope, .. }) = api.store.key(token, now).await.map_err(unread)? {
        let access = api.store.access(&owner, now).await.map_err(unread)?;
        return Ok(access.map(|access| Somebody { access, scope, shown: Shown::Key }));
    }
    let digest = Sha256::digest(token.expose_secret().as_bytes()).into();
    let Some(who) = api.store.session(digest, now).await.map_err(unread)? else { return Ok(None) };
    let access = api.store.access(&who, now).await.map_err(unread)?;
    Ok(access.map(|access| Somebody { access, scope: Scope::Full, shown: Shown::Session }))
}
