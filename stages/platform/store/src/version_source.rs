//! Where the version of an application stands in its repository, as an admin set it: for one application, or for a runtime.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::audit::By;
use crate::error::StoreError;
use crate::report::Millis;
use crate::settings::{drop_setting, set_setting, setting};
use crate::statement::Statement;
use crate::store::Store;

/// Where a version stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionSource {
    /// Below the path of the application, such as `Chart.yaml`.
    pub file: String,
    /// Within it, such as `$.appVersion`.
    pub json_path: String,
}

/// The name of the setting: of a runtime, or of an application in it, `namespace/name`.
fn key(runtime: &str, application: Option<(&str, &str)>) -> String {
    match application {
        Some((namespace, name)) => format!("version-source/{runtime}/{namespace}/{name}"),
        None => format!("version-source/{runtime}"),
    }
}

/// Takes back what was set of a runtime and of applications in it.
pub(crate) fn drop_version_sources(runtime: &str) -> Statement {
    let sql = "DELETE FROM settings WHERE name = $1 OR substr(name, 1, length($2)) = $2";
    let own = key(runtime, None);
    Statement::may(sql, [(&*own).into(), (&*format!("{own}/")).into()])
}

impl VersionSource {
    /// Whether a version can stand there.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        let file = &self.file;
        let within = !file.starts_with('/') && file.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if file.len() > 500 || !within {
            return Err("the file of a version is a path below that of its application");
        }
        if ![".yaml", ".yml", ".json"].iter().any(|end| file.ends_with(end)) {
            return Err("the file of a version ends with .yaml, .yml or .json");
        }
        let path = &self.json_path;
        if path.len() > 500 || !(path.starts_with('$') || path.starts_with('{')) {
            return Err("where a version stands in its file is a JSONPath such as $.appVersion");
        }
        Ok(())
    }
}

impl Store {
    /// Where the version of an application stands: as it was set for it, or else for its runtime; `None`: nothing was set.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn version_source(
        &self,
        runtime: &str,
        application: (&str, &str),
    ) -> Result<Option<VersionSource>, StoreError> {
        let mut connection = self.read().await?;
        for key in [key(runtime, Some(application)), key(runtime, None)] {
            if let Some(source) = setting(&mut connection, &key).await? {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    /// Sets where the version of an application of a runtime stands, or of all of them; with `None` that nothing is set.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn set_version_source(
        &self,
        by: &By,
        (runtime, application): (&str, Option<(&str, &str)>),
        source: Option<&VersionSource>,
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let key = key(runtime, application);
        let Some(source) = source else {
            return self.change(vec![drop_setting(&key), by.did("version-source.remove", &key, now)]).await;
        };
        let body = serde_json::to_string(source).map_err(StoreError::from)?;
        let did = by.did("version-source.set", &format!("{key}: {body}"), now);
        self.change(vec![set_setting(&key, &body), did]).await
    }
}
