//! Passes: tokens of one minute, by which the platform sends what somebody asks to one runtime in their name. They are kept as a
//! digest, and the runtime asks the platform whose they are.

use std::sync::Arc;

use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use crate::audit::By;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::key::Scope;
use crate::report::Millis;
use crate::rule::Access;
use crate::secret;
use crate::statement::Statement;
use crate::store::Store;

/// What each pass begins with, so that scanners of leaked secrets know one.
const MARK: &str = "gops_";
/// How long a pass is good.
pub const PASS_LASTS: Millis = 60_000;

/// Whoever a pass is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Who, with what they may now: rules that changed since hold.
    pub access: Access,
    /// How they came in: `session` or `key`.
    pub how: String,
    /// What they came in with is good for: one that reads changes nothing, whatever its owner may.
    pub scope: Scope,
    /// The runtime that it is for: no other may take it.
    pub runtime: String,
}

impl Store {
    /// Makes a pass of whoever asks, for one runtime; `None`: there is no such runtime, or nobody of that name who may come in.
    /// What is to be changed by it, such as `sync`, stands in the audit log in the same commit.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn add_pass(
        &self,
        by: &By,
        scope: Scope,
        runtime: &str,
        act: Option<&str>,
        now: Millis,
    ) -> Result<Option<SecretString>, Arc<StoreError>> {
        let made = secret::mint(MARK)?;
        let sql = "INSERT INTO passes (digest, user_id, runtime_id, how, scope, until) \
                   SELECT $1, u.id, r.id, $4, $5, $6 FROM users u, runtimes r \
                   WHERE u.name = $2 AND u.disabled = 0 AND r.name = $3";
        let values = [
            made.hash.into(),
            (&*by.who).into(),
            runtime.into(),
            by.how.into(),
            scope.name().into(),
            (now + PASS_LASTS).into(),
        ];
        let mut all = vec![Statement::must(sql, values)];
        all.extend(act.map(|act| by.did("runtime.act", &format!("{runtime}: {act}"), now)));
        Ok(self.whether(all).await?.then_some(made.token))
    }

    /// Whose pass it is; `None`: nobody's, or it has ended, or they may no longer come in.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn pass(&self, token: &SecretString, now: Millis) -> Result<Option<Pass>, StoreError> {
        let token = token.expose_secret();
        if secret::prefix(MARK, token).is_none() {
            return Ok(None);
        }
        // Found by the whole digest: what a comparison could tell by its time is of no use to anybody.
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let sql = "SELECT u.name, p.how, p.scope, r.name FROM passes p JOIN users u ON u.id = p.user_id \
                   JOIN runtimes r ON r.id = p.runtime_id WHERE p.digest = $1 AND p.until > $2";
        let found = self.look_up().await?.one(sql, &[Arg::Bytes(&digest), Arg::Int(now)]).await?;
        let Some(((who, how), (scope, runtime))): Option<((String, _), _)> = found else { return Ok(None) };
        Ok(self.access(&who, now).await?.map(|access| Pass { access, how, scope, runtime }))
    }
}

impl Pass {
    /// Whether they manage accounts.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.access.is_admin()
    }
}
