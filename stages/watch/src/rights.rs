//! The rights the stages of this crate need, as data: what is printed as RBAC is what is asked for.

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
    /// The API group.
    pub group: &'static str,
    /// Its resources, in the plural.
    pub resources: &'static [&'static str],
    /// What is done with them.
    pub verbs: &'static [&'static str],
    /// Where.
    pub scope: Scope,
}

/// What [`crate::ApplicationWatch`] needs: `list` for relists, `watch`, and `get` for reading one again.
pub(crate) fn applications(scope: Scope) -> Right {
    Right { group: "argoproj.io", resources: &["applications"], verbs: &["get", "list", "watch"], scope }
}
