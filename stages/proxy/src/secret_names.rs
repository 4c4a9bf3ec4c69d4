//! What the Secrets are called that the app proxy reads and writes: as Codefresh's, whose place it takes.

/// That of the runtime's own token, and of what its secrets are kept under beside the store key.
pub(crate) const TOKEN_SECRET: &str = "codefresh-token";
/// That of the repositories' credentials.
pub(crate) const REPOSITORIES_SECRET: &str = "runtime-repo-creds-secret";
/// That of people's Git tokens: there is one account.
pub(crate) const GIT_SECRET: &str = "git-default-default";
