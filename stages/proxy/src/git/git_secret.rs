//! Where integrations and sealed tokens are kept: one Secret of the runtime's namespace, each under a key of its own. What is
//! written is written onto the Secret that was read, so that of two at once none undoes the other.
//!
//! `integration.<name>` is an integration; `token.<name>.<digest of the account's uid>` is a person's sealed token.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use stages_kube::{QuestionError, Reader};

use super::integration::Integration;
use crate::account::Account;
use crate::error::ActError;
use crate::secret_names::{GIT_SECRET, TOKEN_SECRET};

/// How often a Secret is written that others write at the same time.
pub(super) const MAX_TRIES: usize = 50;

/// A person's token, as the Secret holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptToken {
    /// The uid of the account of the platform that it belongs to.
    pub(super) uid: String,
    /// The name of the account when it was registered.
    pub(super) user: String,
    /// The name of its owner at the provider.
    pub(super) username: String,
    pub(super) sealed: String,
    /// When it ends, where the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Timestamp>,
}

/// The integrations and tokens that the Secret holds.
#[derive(Debug, Default)]
pub(super) struct GitSecretContent {
    pub(super) integrations: BTreeMap<String, Integration>,
    /// Each with the name of its integration.
    pub(super) tokens: Vec<(String, KeptToken)>,
}

/// Changes of the Secret's data: null removes a key.
#[derive(Default)]
pub(super) struct SecretChanges(Map<String, Value>);

/// Reads and writes the Secret of integrations and tokens, and others of its namespace. Cloning shares.
#[derive(Clone)]
pub(crate) struct GitSecret {
    pub(crate) cluster: Arc<Reader>,
    pub(crate) namespace: String,
}

pub(super) fn failed(act: &'static str) -> impl Fn(QuestionError) -> ActError {
    move |source| ActError::Cluster { act, source }
}

fn of_integration(name: &str) -> String {
    format!("integration.{name}")
}

/// The key of a token. The uid is hashed, since it may hold characters that a key may not.
fn of_token(name: &str, uid: &str) -> String {
    format!("token.{name}.{}", hex::encode(Sha256::digest(uid)))
}

pub(super) fn decoded(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

fn read_iv(iv: &Value) -> Result<SecretString, ActError> {
    let text = decoded(iv).and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.filter(|text| !text.is_empty());
    let unread = || ActError::Wrong(format!("the encryptionIV of the Secret {TOKEN_SECRET} cannot be read"));
    text.map(SecretString::from).ok_or_else(unread)
}

/// Whether a value of a Secret is an `encryptionIV`.
pub(crate) fn is_iv(iv: &Value) -> bool {
    read_iv(iv).is_ok()
}

fn encoded(value: &impl Serialize) -> Result<Value, ActError> {
    let text = serde_json::to_vec(value);
    let text = text.map_err(|_| ActError::Wrong("that cannot be kept as JSON".to_owned()))?;
    Ok(STANDARD.encode(text).into())
}

impl SecretChanges {
    pub(super) fn keep_integration(mut self, name: &str, value: &Integration) -> Result<Self, ActError> {
        self.0.insert(of_integration(name), encoded(value)?);
        Ok(self)
    }

    pub(super) fn keep_token(mut self, name: &str, token: &KeptToken) -> Result<Self, ActError> {
        self.0.insert(of_token(name, &token.uid), encoded(token)?);
        Ok(self)
    }

    pub(super) fn forget_integration(mut self, name: &str) -> Self {
        self.0.insert(of_integration(name), Value::Null);
        self
    }

    pub(super) fn forget_token(mut self, name: &str, uid: &str) -> Self {
        self.0.insert(of_token(name, uid), Value::Null);
        self
    }

    /// Forgets all tokens of an integration.
    pub(super) fn forget_tokens(self, name: &str, all: &GitSecretContent) -> Self {
        all.tokens_of(name).fold(self, |changes, token| changes.forget_token(name, &token.uid))
    }

    /// Forgets tokens of accounts that had the name of this one before it: no two accounts have a name at once, so that they are gone.
    pub(super) fn forget_before(self, name: &str, account: &Account, all: &GitSecretContent) -> Self {
        let gone = all.tokens_of(name).filter(|token| account.follows(&token.user, &token.uid));
        gone.fold(self, |changes, token| changes.forget_token(name, &token.uid))
    }
}

impl GitSecretContent {
    fn of(secret: Option<&Value>) -> Self {
        let mut all = Self::default();
        let data = secret.and_then(|secret| secret.get("data")?.as_object());
        for (key, value) in data.into_iter().flatten() {
            let Some(text) = decoded(value) else { continue };
            if let Some(name) = key.strip_prefix("integration.") {
                if let Ok(found) = serde_json::from_slice(&text) {
                    all.integrations.insert(name.to_owned(), found);
                }
            } else if let Some((name, _)) = key.strip_prefix("token.").and_then(|key| key.split_once('.'))
                && let Ok(found) = serde_json::from_slice(&text)
            {
                all.tokens.push((name.to_owned(), found));
            }
        }
        all
    }

    /// Tokens of an integration.
    pub(super) fn tokens_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a KeptToken> {
        self.tokens.iter().filter(move |(of, _)| of == name).map(|(_, token)| token)
    }
}

impl GitSecret {
    pub(super) fn path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace)
    }

    /// Makes a Secret where there is none.
    pub(super) async fn make(&self, name: &str) -> Result<(), ActError> {
        let labels = match name {
            GIT_SECRET => {
                json!({"io.codefresh.integration-type": "git", "io.codefresh.integration-name": "default"})
            }
            _ => json!({}),
        };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
        });
        let made = self.cluster.apply(&self.path(name), &secret).await;
        made.map(drop).map_err(failed("make the Secret"))
    }

    /// Reads the integrations and tokens; other keys of the Secret are passed over.
    pub(super) async fn content(&self) -> Result<GitSecretContent, ActError> {
        let secret =
            self.cluster.get(&self.path(GIT_SECRET)).await.map_err(failed("read the Git integrations"))?;
        Ok(GitSecretContent::of(secret.as_ref()))
    }

    /// Writes the changes that `change` makes of the current content; where others write meanwhile, it is called again.
    pub(super) async fn change(
        &self,
        change: impl Fn(&GitSecretContent) -> Result<SecretChanges, ActError> + Send + Sync,
    ) -> Result<(), ActError> {
        let path = self.path(GIT_SECRET);
        for _ in 0..MAX_TRIES {
            let secret = self.cluster.get(&path).await.map_err(failed("read the Git integrations"))?;
            let changes = change(&GitSecretContent::of(secret.as_ref()))?;
            let Some(secret) = secret else {
                self.make(GIT_SECRET).await?;
                continue;
            };
            let patch = json!({
                "metadata": {"resourceVersion": secret.pointer("/metadata/resourceVersion")},
                "data": changes.0,
            });
            match self.cluster.merge(&path, &patch, false).await {
                Err(QuestionError::Status(409)) => {}
                done => return done.map(drop).map_err(failed("keep the Git integrations")),
            }
        }
        Err(ActError::Busy("the Git integrations are written by others: try again"))
    }

    /// The runtime's `encryptionIV`, if there is one.
    pub(super) async fn iv(&self) -> Result<Option<SecretString>, ActError> {
        let secret =
            self.cluster.get(&self.path(TOKEN_SECRET)).await.map_err(failed("read the encryptionIV"))?;
        secret.as_ref().and_then(|secret| secret.pointer("/data/encryptionIV")).map(read_iv).transpose()
    }

    /// The runtime's `encryptionIV`; made where there is none, and never written over.
    pub(super) async fn iv_or_new(&self) -> Result<SecretString, ActError> {
        let path = self.path(TOKEN_SECRET);
        for _ in 0..MAX_TRIES {
            let Some(secret) = self.cluster.get(&path).await.map_err(failed("read the encryptionIV"))? else {
                self.make(TOKEN_SECRET).await?;
                continue;
            };
            if let Some(iv) = secret.pointer("/data/encryptionIV") {
                return read_iv(iv);
            }
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes)
                .map_err(|_| ActError::Wrong("there are no random numbers for an encryptionIV".to_owned()))?;
            let iv = SecretString::from(hex::encode(bytes));
            // With the version that was read: of two that make one at once, both take the same.
            let patch = json!({
                "metadata": {"resourceVersion": secret.pointer("/metadata/resourceVersion")},
                "data": {"encryptionIV": STANDARD.encode(iv.expose_secret())},
            });
            match self.cluster.merge(&path, &patch, false).await {
                Ok(_) => return Ok(iv),
                Err(QuestionError::Status(409)) => {}
                Err(error) => return Err(failed("keep the encryptionIV")(error)),
            }
        }
        Err(ActError::Busy("the runtime's encryptionIV is written by others: try again"))
    }
}
