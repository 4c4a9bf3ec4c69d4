//! Authorization: the platform says whether a caller may do something, and its answer is cached for a minute.
//!
//! takes: a token, an operation, and what it is about - gives: who asks - calls: the platform - fails: closed

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::error::ActError;
use crate::kubernetes_name::check_name;
use crate::operation::Operation;
use crate::platform::{Platform, Verdict};
use crate::refusal::Refusal;
use crate::registration::RegistrationState;

/// The most answers that are cached.
const MAX_ANSWERS: u64 = 10_000;

/// The most bytes of the name of a runtime.
const MAX_RUNTIME: usize = 253;

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Subject {
    /// `None`: the runtime of this app proxy.
    pub(crate) runtime: Option<String>,
    /// Empty: it is about the whole runtime.
    pub(crate) namespace: String,
    /// The name of an application or of a workflow; `None`: it is about the whole namespace.
    pub(crate) name: Option<String>,
}

/// A caller who may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) who: Account,
    /// Whether the same token can be checked again later.
    pub(crate) lasts: bool,
}

/// A caller who may not, and why.
pub(crate) struct Denied {
    /// The name of the account; `None`: the platform knows none.
    pub(crate) who: Option<String>,
    pub(crate) refusal: Refusal,
    pub(crate) error: ActError,
}

/// What an answer is cached under: the token's digest, the action, the entity, and the subject, since a rule may tell subjects apart.
type Question = ([u8; 32], Option<&'static str>, &'static str, Subject);

/// Authorizes callers.
#[derive(Debug)]
pub(crate) struct Gate {
    platform: Platform,
    registered: RegistrationState,
    answers: Cache<Question, Arc<Verdict>>,
}

impl Subject {
    /// Whether its names are names of Kubernetes. Others are neither asked about nor cached, and no `/` or `..` of them gets into an
    /// address of Argo CD.
    pub(crate) fn check(&self, operation: Operation) -> Result<(), ActError> {
        let Self { runtime, namespace, name } = self;
        if runtime.as_ref().is_some_and(|runtime| runtime.len() > MAX_RUNTIME) {
            return Err(ActError::Wrong(format!("the name of a runtime has at most {MAX_RUNTIME} bytes")));
        }
        match name {
            Some(name) => {
                check_name("a namespace", namespace).and_then(|()| check_name(operation.of_one(), name))
            }
            None if namespace.is_empty() => Ok(()),
            None => check_name("a namespace", namespace),
        }
    }

    /// Its place in the audit log, within the runtime.
    pub(crate) fn place(&self) -> String {
        match &self.name {
            Some(name) => format!("{}/{name}", self.namespace),
            None => self.namespace.clone(),
        }
    }
}

impl Gate {
    pub(crate) fn new(platform: Platform, registered: RegistrationState, remembered: Duration) -> Self {
        let answers = Cache::builder().max_capacity(MAX_ANSWERS).time_to_live(remembered).build();
        Self { platform, registered, answers }
    }

    pub(crate) async fn check(
        &self,
        token: &SecretString,
        operation: Operation,
        subject: &Subject,
    ) -> Result<Granted, Denied> {
        if let Some(why) = self.registered.borrow().clone() {
            let (refusal, error) = (Refusal::Unregistered, ActError::Unregistered(why));
            return Err(Denied { who: None, refusal, error });
        }
        let digest = Sha256::digest(token.expose_secret().as_bytes()).into();
        let question = (digest, operation.action, operation.entity, subject.clone());
        let verdict = match self.answers.get(&question).await {
            Some(verdict) => verdict,
            None => {
                let verdict = Arc::new(self.ask(token, operation, subject).await?);
                if verdict.lasts {
                    self.answers.insert(question, verdict.clone()).await;
                }
                verdict
            }
        };
        let why = || verdict.why.clone().unwrap_or_else(|| "the platform does not allow it".to_owned());
        let refusal = verdict.refusal.unwrap_or(Refusal::Other);
        match &verdict.who {
            Some(who) if verdict.allowed => {
                let who = Account { name: who.clone(), uid: verdict.uid.clone() };
                Ok(Granted { who, lasts: verdict.lasts })
            }
            Some(who) => Err(Denied { who: Some(who.clone()), refusal, error: ActError::Refused(why()) }),
            None => Err(Denied { who: None, refusal, error: ActError::Unknown(why()) }),
        }
    }

    async fn ask(
        &self,
        token: &SecretString,
        operation: Operation,
        subject: &Subject,
    ) -> Result<Verdict, Denied> {
        let asked = json!({
            "token": token.expose_secret(),
            "action": operation.action,
            "entity": operation.entity,
            "attributes": {
                "runtime": subject.runtime,
                "namespace": subject.namespace,
                "name": subject.name,
            },
        });
        self.platform.authorize(&asked).await.map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "nobody is let in: the platform was not to be asked"
            );
            let (refusal, error) = match error.status() {
                Some(401 | 403) => (Refusal::PlatformRefuses, ActError::PlatformRefuses(error)),
                _ => (Refusal::PlatformAway, ActError::PlatformAway(error)),
            };
            Denied { who: None, refusal, error }
        })
    }
}
