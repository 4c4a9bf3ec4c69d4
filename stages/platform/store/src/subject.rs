//! One application, as rules see it: by what was reported of it.

use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::rule::Subject;
use crate::store::Store;

/// What rules may tell an application by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownSubject {
    cluster: String,
    environment: String,
    product: String,
    labels: String,
}

from_columns! { KnownSubject { cluster, environment, product, labels } }

impl Store {
    /// What was reported of an application; nothing, where nothing was: then it has no attribute but its names.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn subject(
        &self,
        (runtime, namespace, name): (&str, &str, &str),
    ) -> Result<KnownSubject, StoreError> {
        let sql = "SELECT a.cluster, a.environment, a.product, a.labels FROM applications a \
                   JOIN runtimes r ON r.id = a.runtime_id \
                   WHERE r.name = $1 AND a.namespace = $2 AND a.name = $3 AND a.deleted = 0";
        let names = [Arg::Text(runtime), Arg::Text(namespace), Arg::Text(name)];
        Ok(self.read().await?.one(sql, &names).await?.unwrap_or_default())
    }
}

impl KnownSubject {
    /// Each label and its value.
    #[must_use]
    pub fn labels(&self) -> Vec<(&str, &str)> {
        self.labels.split('\n').filter_map(|line| line.split_once('=')).collect()
    }

    /// With the names of where it is.
    #[must_use]
    pub fn within<'a>(
        &'a self,
        runtime: &'a str,
        namespace: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> Subject<'a> {
        let known = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        Subject {
            runtime,
            namespace,
            cluster: known(&self.cluster),
            environment_name: known(&self.environment),
            product: known(&self.product),
            labels,
            ..Subject::default()
        }
    }
}
