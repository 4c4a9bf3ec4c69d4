//! Whether whoever asks may: the platform says so, and it is remembered for a minute.
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
use crate::registration::Registered;

/// Answers that are remembered.
const ANSWERS: u64 = 10_000;

/// Bytes that the name of a runtime may have.
const LONGEST: usize = 253;

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Subject {
    /// `None`: the runtime of this app proxy.
    pub(crate) runtime: Option<String>,
    pub(crate) namespace: String,
    /// Of an application, or of a workflow.
    pub(crate) name: Option<String>,
}

/// Who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) who: Account,
    /// Whether the same token may be asked about again later.
    pub(crate) lasts: bool,
}

/// Why somebody was not.
pub(crate) struct Denied {
    /// `None`: nobody knows who.
    pub(crate) who: Option<String>,
    pub(crate) refusal: Refusal,
    pub(crate) error: ActError,
}

/// The token's digest, the action, the entity, and what it is about: a rule may tell subjects apart.
type Question = ([u8; 32], Option<&'static str>, &'static str, Subject);

/// Lets people in.
#[derive(Debug)]
pub(crate) struct Gate {
    platform: Platform,
    registered: Registered,
    answers: Cache<Question, Arc<Verdict>>,
}

impl Subject {
    /// Whether it can be what an object of Kubernetes is named: what no object is named is not asked about, and not remembered,
    /// and no `/` or `..` of it gets into an address of Argo CD.
    pub(crate) fn check(&self, operation: Operation) -> Result<(), ActError> {
        let Self { runtime, namespace, name } = self;
        if runtime.as_ref().is_some_and(|runtime| runtime.len() > LONGEST) {
            return Err(ActError::Wrong(format!("the name of a runtime has at most {LONGEST} bytes")));
        }
        match name {
            Some(name) => {
                check_name("a namespace", namespace).and_then(|()| check_name(operation.of_one(), name))
            }
            None if namespace.is_empty() => Ok(()),
            None => check_name("a namespace", namespace),
        }
    }

    /// As the audit log names it, behind the runtime.
    pub(crate) fn place(&self) -> String {
        match &self.name {
            Some(name) => format!("{}/{name}", self.namespace),
            None => self.namespace.clone(),
        }
    }
}

impl Gate {
    pub(crate) fn new(platform: Platform, registered: Registered, remembered: Duration) -> Self {
        let answers = Cache::builder().max_capacity(ANSWERS).time_to_live(remembered).build();
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
