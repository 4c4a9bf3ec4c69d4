//! What a peer refuses of this process with 401.

/// What a peer refuses of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It refuses a token, or the session that it gave itself.
    Token,
    /// It refuses the name and the password of an account.
    Login,
    /// It refuses even what anybody may read: no token can be read and sent, or something else answers in its place.
    Settings,
}
