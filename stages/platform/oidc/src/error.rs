//! Why nobody was signed in, told to whoever wanted to: what to do next, and nothing that is secret.

use std::sync::Arc;

use stages_client::{BuildError, HttpError, TokenError};

/// What is wrong with an ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// There is none, or one that is none.
    #[error("no ID token that can be read")]
    None,
    /// Another client's.
    #[error("an ID token that is for another client")]
    Audience,
    /// Another provider's.
    #[error("an ID token of another issuer")]
    Issuer,
    /// Too old, or a clock is wrong.
    #[error("an ID token that has expired (are the clocks of both right?)")]
    Expired,
    /// Of another attempt.
    #[error("an ID token that answers another attempt")]
    Nonce,
    /// By no key of the provider.
    #[error("an ID token that no key of it has signed")]
    Signature,
    /// By the client's secret, or in another way that is not taken.
    #[error(
        "an ID token that is signed in a way that is not taken here, such as by the client's secret (an admin there sets a key to sign \
         by, as for RS256)"
    )]
    Way,
    /// Anything else.
    #[error("an ID token that cannot be used")]
    Other,
}

/// What a provider answered that did not say who somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UserInfoFault {
    /// By its status.
    #[error("it answered {0}")]
    Status(u16),
    /// Of somebody else, or nothing that can be read.
    #[error("its answer cannot be used")]
    Other,
}

/// Nobody was signed in.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OidcError {
    /// There is no answer, or one that says "later".
    #[error("{0}")]
    Away(#[source] Arc<HttpError>),
    /// It answers, but is no provider of this issuer.
    #[error(
        "{host} answers, but not as the provider that platformServer.oidc.issuer names: an admin looks at that setting"
    )]
    NoProvider {
        /// The provider.
        host: Arc<str>,
    },
    /// It is called otherwise than it calls itself.
    #[error(
        "{host} calls itself {called}, and platformServer.oidc.issuer says otherwise: an admin looks at that setting"
    )]
    Issuer {
        /// The provider.
        host: Arc<str>,
        /// What it calls itself.
        called: String,
    },
    /// It does not take the client's id and secret.
    #[error(
        "{host} does not know this platform: an admin looks at platformServer.oidc.clientId and the client's secret, and whether the \
         client may prove itself by {method} there"
    )]
    Client {
        /// The provider.
        host: Arc<str>,
        /// How the client proved itself.
        method: &'static str,
    },
    /// The client's secret cannot be read.
    #[error(
        "this platform cannot read its client's secret: an admin looks at platformServer.oidc.clientSecretFile"
    )]
    Secret(#[source] Arc<TokenError>),
    /// Its certificate authorities cannot be read.
    #[error("this platform has nothing to verify {host} by: an admin looks at platformServer.oidc.caFile")]
    Authorities {
        /// The provider.
        host: Arc<str>,
        /// Why.
        source: Arc<BuildError>,
    },
    /// The code was used, is too old, or somebody else's.
    #[error("this attempt was used already, or took too long: begin again")]
    Code,
    /// It refused the code for another reason.
    #[error("{host} refused ({code}): begin again, and if it comes back, an admin looks at the client there")]
    Refused {
        /// The provider.
        host: Arc<str>,
        /// Its word for it.
        code: String,
    },
    /// It vouched for nobody.
    #[error("{host} sent {fault}: nobody is signed in by it")]
    Token {
        /// The provider.
        host: Arc<str>,
        /// What is wrong.
        fault: TokenFault,
    },
    /// It vouched for somebody, and refused to say more of them.
    #[error(
        "{host} does not tell this platform who somebody is ({status}): an admin looks at platformServer.oidc.scopes, and at what the \
         client may ask for there"
    )]
    UserInfo {
        /// The provider.
        host: Arc<str>,
        /// How it refused.
        status: u16,
    },
    /// It vouched for somebody, and failed to say more of them.
    #[error(
        "{host} failed to say who somebody is ({why}): begin again in a moment, and if it comes back, ask whoever manages it"
    )]
    NoUserInfo {
        /// The provider.
        host: Arc<str>,
        /// What it answered instead.
        why: UserInfoFault,
    },
    /// This machine gives no random bytes.
    #[error("this platform cannot make random bytes")]
    Random,
}

impl OidcError {
    /// Whether it may be otherwise in a moment, without anybody doing anything.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// An error's word of a provider, if it is one and not a text.
pub(crate) fn word(code: &str) -> String {
    let well = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_word = (1..=60).contains(&code.len()) && code.chars().all(well);
    if is_word { code.to_owned() } else { "for a reason of its own".to_owned() }
}

/// What a provider calls itself, by what is told of a discovery document that is another issuer's: both stand in it between back quotes,
/// first that of the document. `None`: it is no address.
pub(crate) fn called(told: &str) -> Option<String> {
    let called = told.split('`').nth(1)?;
    let is_address = called.starts_with("http") && called.chars().all(|c| c.is_ascii_graphic());
    (is_address && called.len() <= 300).then(|| called.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{called, word};

    #[test]
    fn what_a_provider_calls_itself_is_told_where_it_is_an_address() {
        let of = |issuer: &str| called(&format!("unexpected issuer URI `{issuer}` (expected `https://a`)"));
        for issuer in ["https://id.example.com/", "https://login.example.com/{tenantid}/v2.0"] {
            assert_eq!(of(issuer).as_deref(), Some(issuer));
        }
        for text in ["", "a name", "https://id.example.com/ or so", &format!("https://{}", "a".repeat(300))] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(called("another error"), None);
    }

    #[test]
    fn a_word_of_the_provider_is_told_and_a_text_is_not() {
        assert_eq!(word("access_denied"), "access_denied");
        for text in ["", "token=secret", "Access Denied", &"a".repeat(61)] {
            assert_eq!(word(text), "for a reason of its own", "{text}");
        }
    }
}
