/// What a peer refuses of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A token, or a session that it gave itself.
    Token,
    /// An account's name and password.
    Login,
    /// What is given to anybody: without a token nothing is sent at all, or something else answers.
    Settings,
}
