//! The link that makes the first user: printed when the platform starts and nobody has an account, good once and for
//! fifteen minutes.

use jiff::SignedDuration;

pub(crate) const LASTS: SignedDuration = SignedDuration::from_mins(15);

/// An address that makes the first user. To be printed where those who start the platform see it; `Debug` hides it.
pub struct SignInLink(pub(crate) String);

impl SignInLink {
    /// The address itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SignInLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignInLink(…)")
    }
}
