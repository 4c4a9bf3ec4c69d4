//! The rights the stages of this crate need, as data: what is printed as RBAC is what is asked for.

use crate::kind::Kind;

/// Where a right has to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In one namespace: a `Role`.
    Namespace(String),
    /// In all of them: a `ClusterRole`.
    Cluster,
}

/// One RBAC rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// Its resource, in the plural.
    pub resource: &'static str,
    /// What is done with them.
    pub verbs: &'static [&'static str],
    /// The names of the only objects it is needed for; empty for all. Only verbs about one object can be
    /// granted by name.
    pub names: Vec<String>,
    /// Where.
    pub scope: Scope,
}

impl Right {
    /// Whether it allows all that `other` does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        (self.group, self.resource, &self.scope, &self.names)
            == (other.group, other.resource, &other.scope, &other.names)
            && other.verbs.iter().all(|verb| self.verbs.contains(verb))
    }
}

/// What reading objects by their names needs.
pub(crate) fn read(kind: Kind, scope: Scope) -> Right {
    Right { verbs: &["get"], ..watch(kind, scope) }
}

/// What a watch of one kind needs: `list` for relists, `watch`, and `get` for reading one again.
pub(crate) fn watch(kind: Kind, scope: Scope) -> Right {
    let Kind { group, plural: resource, .. } = kind;
    Right { group, resource, verbs: &["get", "list", "watch"], names: Vec::new(), scope }
}

/// What a watch of objects that are selected needs: one of them is read again as a list of it alone, which the selector
/// judges too.
pub(crate) fn selected(kind: Kind, scope: Scope) -> Right {
    Right { verbs: &["list", "watch"], ..watch(kind, scope) }
}

/// What reading one Secret needs: no other one can be read with it, and none can be listed.
pub(crate) fn secret(namespace: &str, name: &str) -> Right {
    Right {
        group: "",
        resource: "secrets",
        verbs: &["get"],
        names: vec![name.to_owned()],
        scope: Scope::Namespace(namespace.to_owned()),
    }
}
