//! Signing in at a provider of OpenID Connect, by the authorization code with PKCE.
//!
//! takes: [`OidcConfig`], then the code that a browser brings back - gives: where a browser is to go, and in the end the [`Claims`]
//! of whoever came back, verified
//! calls: the provider: its discovery document and keys, its token endpoint, and its userinfo where the ID token does not say all -
//! fails: with [`OidcError`], which says what to do and nothing of codes, tokens, secrets or bodies
//!
//! It knows nobody here: who may come in, and as whom, is the caller's business.

mod attempt;
mod claims;
mod error;
mod issuer;
mod peer;
mod provider;
mod told;

pub use attempt::{ATTEMPT_LASTS, Attempt};
pub use claims::Claims;
pub use error::{OidcError, TokenFault, UserInfoFault};
pub use issuer::{Issuer, IssuerError};
pub use provider::{Begun, OidcConfig, Provider};
