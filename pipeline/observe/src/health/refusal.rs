/// What a peer refuses of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A token, or a session that it gave itself.
    Token,
    /// An account's name and password.
    Login,
}
