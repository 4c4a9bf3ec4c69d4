//! The key of a lane: which application an event belongs to.

use std::fmt;

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

/// Identifies one application: `namespace/name`. Cheap to clone, and one word; ordered and hashed by its text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    text: ArcStr,
}

/// A text that is not `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an application key is `namespace/name`, both non-empty, with one slash")]
pub struct KeyError;

impl Key {
    /// Builds the key of the application `name` in `namespace`. A slash in either part is refused, as is
    /// an empty part: Kubernetes allows neither.
    ///
    /// # Errors
    /// [`KeyError`] when a part is empty or holds a slash.
    pub fn new(namespace: &str, name: &str) -> Result<Self, KeyError> {
        if namespace.is_empty() || name.is_empty() || namespace.contains('/') || name.contains('/') {
            return Err(KeyError);
        }
        Ok(Self { text: arcstr::format!("{namespace}/{name}") })
    }

    /// Reads `namespace/name`.
    ///
    /// # Errors
    /// [`KeyError`] as for [`Key::new`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (namespace, name) = text.split_once('/').ok_or(KeyError)?;
        Self::new(namespace, name)
    }

    /// The namespace of the application.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name of the application; what shards are hashed by.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, name)| name)
    }

    /// `namespace/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.text.as_str().to_owned()
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_into_namespace_and_name() {
        let key = Key::new("argocd", "store").unwrap();
        assert_eq!((key.namespace(), key.name(), key.as_str()), ("argocd", "store", "argocd/store"));
        assert_eq!(Key::parse("argocd/store"), Ok(key));
    }

    #[test]
    fn refuses_empty_parts_and_slashes() {
        for (namespace, name) in [("", "a"), ("a", ""), ("a/b", "c"), ("a", "b/c")] {
            assert_eq!(Key::new(namespace, name), Err(KeyError));
        }
        assert_eq!(
            Key::parse("noslash").unwrap_err().to_string(),
            "an application key is `namespace/name`, both non-empty, with one slash"
        );
    }
}
