//! Who did what: a row beside each change, in the same commit.

use std::sync::Arc;

use serde::Serialize;

use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::fleet::literal;
use crate::report::Millis;
use crate::statement::Statement;
use crate::store::Store;

/// Who does something, and how they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Their name.
    pub who: String,
    /// Such as `session`, `key` or `token`.
    pub how: &'static str,
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Act {
    /// Grows with each.
    pub id: i64,
    /// When.
    pub at: Millis,
    /// By whom.
    pub who: String,
    /// How they came in.
    pub how: String,
    /// What, such as `user.add`.
    pub act: String,
    /// To whom or what.
    pub subject: String,
}

/// Something that was done in a runtime by its app proxy, or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAct {
    /// In whose name.
    pub who: String,
    /// What, as the app proxy calls it.
    pub act: String,
    /// To what, in which runtime, and how it ended.
    pub subject: String,
}

from_columns! { Act { id, at, who, how, act, subject } }

impl By {
    pub(crate) fn did(&self, act: &str, subject: &str, now: Millis) -> Statement {
        let sql = "INSERT INTO audit (at, who, how, act, subject) VALUES ($1, $2, $3, $4, $5)";
        Statement::must(sql, [now.into(), (&*self.who).into(), self.how.into(), act.into(), subject.into()])
    }
}

impl Store {
    /// Keeps what was done by the app proxy of a runtime.
    ///
    /// # Errors
    /// [`StoreError`] when none of it was kept.
    pub async fn record(&self, acts: Vec<RecordedAct>, now: Millis) -> Result<(), Arc<StoreError>> {
        let row = |RecordedAct { who, act, subject }: RecordedAct| {
            By { who, how: "app-proxy" }.did(&act, &subject, now)
        };
        self.change(acts.into_iter().map(row).collect()).await
    }

    /// Keeps that somebody who has an account tried to come in by a wrong password.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn refuse_password(&self, name: &str, now: Millis) -> Result<(), Arc<StoreError>> {
        let by = By { who: name.to_owned(), how: "password" };
        self.change(vec![by.did("user.refuse", "a wrong password", now)]).await
    }

    /// What was done, the newest first, from before the number `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn audit(&self, before: i64, limit: u32) -> Result<Vec<Act>, StoreError> {
        self.audit_of("", before, limit).await
    }

    /// The same, of what holds the text in who did it, how they came in, what they did or to what.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn audit_of(&self, text: &str, before: i64, limit: u32) -> Result<Vec<Act>, StoreError> {
        let sql = "SELECT id, at, who, how, act, subject FROM audit WHERE id < $1 \
                   AND ($3 = '%%' OR lower(who || ' ' || how || ' ' || act || ' ' || subject) LIKE $3 ESCAPE '!') \
                   ORDER BY id DESC LIMIT $2";
        let pattern = format!("%{}%", literal(text));
        let arguments = [Arg::Int(before), Arg::Int(limit.into()), Arg::Text(&pattern)];
        self.read().await?.all(sql, &arguments).await
    }
}
