//! The key of a lane: which object an event belongs to.

use std::fmt;

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

/// Identifies one object: `namespace/name`, or `kind/namespace/name` where its source names its kind; then the namespace
/// may be empty, as that of an object of the whole cluster is. Cheap to clone, and one word; ordered and hashed by its
/// text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    text: ArcStr,
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key is `namespace/name`, both non-empty, or `kind/namespace/name`")]
pub struct KeyError;

impl Key {
    /// Builds the key of the object `name` in `namespace`, of a kind that needs no name. A slash in either part is
    /// refused, as is an empty part: Kubernetes allows neither.
    ///
    /// # Errors
    /// [`KeyError`] when a part is empty or holds a slash.
    pub fn new(namespace: &str, name: &str) -> Result<Self, KeyError> {
        let is_part = |part: &str| !part.is_empty() && !part.contains('/');
        if !is_part(namespace) || !is_part(name) {
            return Err(KeyError);
        }
        Ok(Self { text: arcstr::format!("{namespace}/{name}") })
    }

    /// Builds the key of an object of a kind: `configmaps`, say. Without a kind as [`Key::new`]; with one, an empty
    /// namespace is that of an object of the whole cluster.
    ///
    /// # Errors
    /// [`KeyError`] when the name is empty, or a part holds a slash.
    pub fn of_kind(kind: &str, namespace: &str, name: &str) -> Result<Self, KeyError> {
        if kind.is_empty() {
            return Self::new(namespace, name);
        }
        if name.is_empty() || [kind, namespace, name].iter().any(|part| part.contains('/')) {
            return Err(KeyError);
        }
        Ok(Self { text: arcstr::format!("{kind}/{namespace}/{name}") })
    }

    /// Reads `namespace/name` or `kind/namespace/name`.
    ///
    /// # Errors
    /// [`KeyError`] as for [`Key::of_kind`]; also when the kind is empty and its slash is there.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (rest, name) = text.rsplit_once('/').ok_or(KeyError)?;
        match rest.split_once('/') {
            None => Self::new(rest, name),
            Some(("", _)) => Err(KeyError),
            Some((kind, namespace)) => Self::of_kind(kind, namespace, name),
        }
    }

    /// Kind, namespace and name.
    fn parts(&self) -> (&str, &str, &str) {
        let (rest, name) = self.text.rsplit_once('/').unwrap_or_default();
        let (kind, namespace) = rest.split_once('/').unwrap_or(("", rest));
        (kind, namespace, name)
    }

    /// The kind of the object; empty where its source names none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.parts().0
    }

    /// The namespace of the object; empty for one of the whole cluster.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.parts().1
    }

    /// The name of the object; what shards are hashed by.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().2
    }

    /// The text that [`Key::parse`] reads.
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
        let key = Key::new("ns", "store").unwrap();
        assert_eq!((key.namespace(), key.name(), key.as_str()), ("ns", "store", "ns/store"));
        assert_eq!(Key::parse("ns/store"), Ok(key));
    }

    #[test]
    fn refuses_empty_parts_and_slashes() {
        for (namespace, name) in [("", "a"), ("a", ""), ("a/b", "c"), ("a", "b/c")] {
            assert_eq!(Key::new(namespace, name), Err(KeyError));
        }
        assert_eq!(
            Key::parse("noslash").unwrap_err().to_string(),
            "a key is `namespace/name`, both non-empty, or `kind/namespace/name`"
        );
    }

    #[test]
    fn a_kind_stands_first_and_allows_no_namespace() {
        for (kind, namespace, name, text) in [
            ("configmaps", "ns", "store", "configmaps/ns/store"),
            ("nodes", "", "one", "nodes//one"),
            ("", "ns", "store", "ns/store"),
        ] {
            let key = Key::of_kind(kind, namespace, name).unwrap();
            assert_eq!((key.kind(), key.namespace(), key.name()), (kind, namespace, name));
            assert_eq!((key.as_str(), Key::parse(text)), (text, Ok(key.clone())));
        }
        for (kind, namespace, name) in [("", "", "a"), ("k", "ns", ""), ("k/l", "ns", "a"), ("k", "n/s", "a")]
        {
            assert_eq!(Key::of_kind(kind, namespace, name), Err(KeyError));
        }
        for text in ["/ns/store", "//store", "a/b/c/d", "k/ns/", "/store", "ns/"] {
            assert_eq!(Key::parse(text), Err(KeyError), "{text}");
        }
    }
}
