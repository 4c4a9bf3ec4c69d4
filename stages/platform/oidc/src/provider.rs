//! The provider: found by its issuer when it is first needed, looked at again from time to time, asked about whoever comes back.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moka::future::Cache;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod, CoreErrorResponseType,
    CoreGenderClaim, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse,
    CoreTokenType,
};
use openidconnect::{
    AuthType, AuthorizationCode, ClaimsVerificationError, Client, ClientId, ClientSecret, CsrfToken,
    DiscoveryError, EndpointMaybeSet, EndpointNotSet, EndpointSet, IdToken, IdTokenClaims, IdTokenFields,
    JsonWebKey as _, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RequestTokenError, Scope, SignatureVerificationError, StandardErrorResponse, StandardTokenResponse,
    UserInfoClaims, UserInfoError,
};
use pipeline_core::{ExposeSecret as _, SecretString};
use stages_client::Token;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::attempt::Attempt;
use crate::claims::{Claims, OtherClaims};
use crate::error::{OidcError, TokenFault, UserInfoFault, called, word};
use crate::issuer::Issuer;
use crate::peer::{CallError, Caller, Peer};
use crate::told::OriginalToken;

/// So many are asked about at a time; one more waits.
const AT_A_TIME: usize = 8;

/// How ID tokens are signed that are taken: by a key of the provider alone. By the client's secret anybody who has that could.
const SIGNED_BY: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// By these claims AD FS says what somebody is called, and Entra ID in tokens of its first version.
const NAMES: [&str; 2] = ["upn", "unique_name"];
/// By this claim Entra ID says that an address is verified, where it is told to: the standard's `email_verified` it never sends.
const VERIFIED_AT_ENTRA: &str = "xms_edov";

type ReadToken =
    IdToken<OtherClaims, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;
type Tokens = StandardTokenResponse<
    IdTokenFields<
        OtherClaims,
        OriginalToken,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;
type KnownClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;
type IdClaims = IdTokenClaims<OtherClaims, CoreGenderClaim>;
type UserInfo = UserInfoClaims<OtherClaims, CoreGenderClaim>;

/// Which provider, and who this platform is to it.
#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// Which.
    pub issuer: Issuer,
    /// Who this platform is there.
    pub client_id: String,
    /// How it proves that.
    pub client_secret: Token,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
    /// The claim that holds somebody's groups; `None`: nobody has any.
    pub groups_claim: Option<String>,
    /// PEM file of certificate authorities that are trusted beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Where browsers come back to.
    pub redirect: Url,
    /// A call is answered within this time.
    pub timeout: Duration,
    /// What it says of itself holds for so long.
    pub fresh: Duration,
    /// After it could not be asked, it is asked again after so long at the soonest.
    pub rest: Duration,
}

/// A browser's way to the provider.
pub struct Begun {
    /// Where it goes.
    pub url: Url,
    /// What it keeps meanwhile: the [`Attempt`], sealed.
    pub sealed: String,
}

/// The provider; cloning shares.
#[derive(Clone)]
pub struct Provider(Arc<Inner>);

struct Inner {
    config: OidcConfig,
    peer: Arc<Peer>,
    /// What it says of itself, its keys among it. One asks at a time, and the others take what that one heard.
    known: Cache<(), Arc<CoreProviderMetadata>>,
    /// Why it could not be asked, and when.
    failed: Mutex<Option<(Instant, OidcError)>>,
    places: Semaphore,
    /// For the look that goes on behind.
    looks: Arc<Semaphore>,
}

impl OidcConfig {
    /// The defaults of a provider.
    #[must_use]
    pub fn new(issuer: Issuer, client_id: String, client_secret: Token, redirect: Url) -> Self {
        Self {
            issuer,
            client_id,
            client_secret,
            scopes: vec!["profile".to_owned(), "email".to_owned()],
            groups_claim: None,
            ca_file: None,
            redirect,
            timeout: Duration::from_secs(10),
            fresh: Duration::from_secs(60),
            rest: Duration::from_secs(5),
        }
    }

    /// Nothing is asked yet.
    #[must_use]
    pub fn build(self) -> Provider {
        Provider(Arc::new(Inner {
            peer: Arc::new(Peer::new(self.ca_file.clone(), self.timeout, self.issuer.is_https())),
            known: Cache::builder().max_capacity(1).time_to_live(self.fresh).build(),
            failed: Mutex::default(),
            places: Semaphore::new(AT_A_TIME),
            looks: Arc::new(Semaphore::new(1)),
            config: self,
        }))
    }
}

impl Provider {
    /// Which it is.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.0.config.issuer
    }

    /// Asks it what it says of itself, unless that is known.
    ///
    /// # Errors
    /// [`OidcError`] when nobody can be sent there now.
    pub async fn look(&self) -> Result<(), OidcError> {
        self.metadata().await.map(drop)
    }

    /// The same, waited for so long at most: `None` when there is no answer yet. One look goes on behind whoever waits no longer.
    ///
    /// # Errors
    /// As [`Provider::look`].
    pub async fn look_within(&self, time: Duration) -> Option<Result<(), OidcError>> {
        let Ok(place) = self.0.looks.clone().try_acquire_owned() else {
            return timeout(time, self.look()).await.ok();
        };
        let provider = self.clone();
        let look = tokio::spawn(async move {
            let _place = place;
            provider.look().await
        });
        timeout(time, look).await.ok()?.ok()
    }

    /// Why it could not be asked the last time; `None`: it could, or was not asked, or that says nothing of now: it is longer ago than a
    /// call lasts that follows at once, and `waited`.
    #[must_use]
    pub fn failure(&self, waited: Duration) -> Option<OidcError> {
        let config = &self.0.config;
        let failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (at, error) = failed?;
        (at.elapsed() <= config.rest + config.timeout + waited).then_some(error)
    }

    /// The way there, for a browser that goes to `next` in the end; `links` is who wants to have their identity linked.
    ///
    /// # Errors
    /// [`OidcError`] when nobody can be sent there now.
    pub async fn begin(&self, next: &str, links: Option<&str>, now: Timestamp) -> Result<Begun, OidcError> {
        let secret = self.secret().await?;
        let client = self.client(&*self.metadata().await?, &secret);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let asked = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let scopes = self.0.config.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = asked.add_scopes(scopes).set_pkce_challenge(challenge).url();
        let words = (state.into_secret(), nonce.secret().clone(), verifier.into_secret());
        let sealed = Attempt::new(words, next, links, now).seal(&secret).ok_or(OidcError::Random)?;
        Ok(Begun { url, sealed })
    }

    /// The attempt that was sealed; `None` for what this platform did not seal, and for what is over.
    ///
    /// # Errors
    /// [`OidcError::Secret`] when nothing can be opened.
    pub async fn open(&self, sealed: &str, now: Timestamp) -> Result<Option<Attempt>, OidcError> {
        Ok(Attempt::open(sealed, &self.secret().await?, now))
    }

    /// Who came back with this code, by an ID token that was verified: its signature, issuer, audience, end and nonce.
    ///
    /// # Errors
    /// [`OidcError`] when the provider vouches for nobody.
    pub async fn finish(&self, attempt: &Attempt, code: &str) -> Result<Claims, OidcError> {
        // It is never closed.
        let _place = self.0.places.acquire().await.map_err(|_| self.no_provider())?;
        let secret = self.secret().await?;
        let mut metadata = self.metadata().await?;
        let client = self.client(&metadata, &secret);
        let http = self.caller("exchange a code");
        let asked = client.exchange_code(AuthorizationCode::new(code.to_owned()));
        let asked = asked.map_err(|_| self.no_provider())?;
        let asked = asked.set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier.clone()));
        let tokens = asked.request_async(&http).await;
        let tokens: Tokens = tokens.map_err(|error| self.exchange_failed(error, client.auth_type()))?;
        let token = tokens.extra_fields().id_token().ok_or_else(|| self.fault(TokenFault::None))?;
        let token = (token, tokens.extra_fields().extra_fields());
        let nonce = Nonce::new(attempt.nonce.clone());
        let mut verified = self.verified(&metadata, &secret, token, &nonce);
        if matches!(&verified, Err(ClaimsVerificationError::SignatureVerification(why)) if is_of_keys(why)) {
            // It signs by a key that is newer than what is known of it.
            self.0.known.invalidate(&()).await;
            metadata = self.metadata().await?;
            verified = self.verified(&metadata, &secret, token, &nonce);
        }
        let told = verified.map_err(|error| self.fault(fault_of(&error)))?;
        let more = self.more(&client, &tokens, told).await?;
        Ok(self.claims(told, more.as_ref()))
    }

    /// What the provider says beyond the ID token, where that does not say all.
    async fn more(
        &self,
        client: &KnownClient,
        tokens: &Tokens,
        told: &IdClaims,
    ) -> Result<Option<UserInfo>, OidcError> {
        let groups = self.0.config.groups_claim.as_deref();
        let has_groups = groups.is_none_or(|claim| told.additional_claims().groups(claim).is_some());
        let (has_name, has_email) = (name_of(told).is_some(), told.email().is_some());
        let all = has_groups && has_name && has_email;
        let asked = client.user_info(tokens.access_token().clone(), Some(told.subject().clone()));
        let (false, Ok(asked)) = (all, asked) else { return Ok(None) };
        let http = self.caller("ask who somebody is");
        let more: Result<UserInfo, _> = asked.request_async(&http).await;
        match more {
            Ok(more) => Ok(Some(more)),
            // AD FS refuses whomever it gave a token for anything else, and would say no more than who it is.
            Err(UserInfoError::Response(status, ..)) if has_groups && (has_name || has_email) => {
                tracing::debug!(%status, "the provider says no more of somebody than their ID token does");
                Ok(None)
            }
            Err(UserInfoError::Request(error)) => Err(error.told(self.issuer().host())),
            Err(UserInfoError::Response(status, ..)) if [401, 403].contains(&status.as_u16()) => {
                Err(OidcError::UserInfo { host: self.issuer().host().clone(), status: status.as_u16() })
            }
            Err(UserInfoError::Response(status, ..)) => {
                Err(self.no_more(UserInfoFault::Status(status.as_u16())))
            }
            Err(_) => Err(self.no_more(UserInfoFault::Other)),
        }
    }

    fn claims(&self, told: &IdClaims, more: Option<&UserInfo>) -> Claims {
        let name = name_of(told).or_else(|| more?.preferred_username().map(|name| name.as_str()));
        // An address counts as verified by whoever says it.
        let is_verified = |said: Option<bool>, others: &OtherClaims| {
            said.unwrap_or_else(|| others.is_yes(VERIFIED_AT_ENTRA))
        };
        let email = match (told.email(), more) {
            (Some(email), _) => is_verified(told.email_verified(), told.additional_claims()).then_some(email),
            (None, Some(more)) => {
                more.email().filter(|_| is_verified(more.email_verified(), more.additional_claims()))
            }
            (None, None) => None,
        };
        let said = [Some(told.additional_claims()), more.map(UserInfo::additional_claims)];
        let claim = self.0.config.groups_claim.as_deref();
        let groups = claim.and_then(|claim| said.into_iter().flatten().find_map(|one| one.groups(claim)));
        let is_elsewhere =
            claim.is_some_and(|claim| said.into_iter().flatten().any(|one| one.is_elsewhere(claim)));
        Claims {
            subject: told.subject().to_string(),
            name: name.map(str::to_owned),
            email: email.map(|email| email.to_string()),
            groups_elsewhere: groups.is_none() && is_elsewhere,
            groups: groups.unwrap_or_default(),
        }
    }

    /// What an ID token says that was signed as it came, and is read without what nobody reads.
    fn verified<'t>(
        &self,
        metadata: &CoreProviderMetadata,
        secret: &SecretString,
        (token, original): (&'t ReadToken, &OriginalToken),
        nonce: &Nonce,
    ) -> Result<&'t IdClaims, ClaimsVerificationError> {
        let client = self.client(metadata, secret);
        // Some name all clients of a project in it: whom it was issued to stands apart then.
        let verifier = client.id_token_verifier().set_other_audience_verifier_fn(|_| true);
        let bad = ClaimsVerificationError::SignatureVerification;
        let alg = token.signing_alg().map_err(bad)?;
        let is_offered = metadata.id_token_signing_alg_values_supported().contains(alg);
        if !is_offered || !SIGNED_BY.contains(alg) {
            let why = "it is signed in another way".to_owned();
            return Err(bad(SignatureVerificationError::DisallowedAlg(why)));
        }
        let (signed, signature) = original.signed().ok_or(bad(SignatureVerificationError::NoSignature))?;
        let key = token.signing_key(&verifier).map_err(bad)?;
        key.verify_signature(alg, signed.as_bytes(), &signature).map_err(bad)?;
        // As it is read nobody has signed it.
        let told = token.claims(&verifier.insecure_disable_signature_check(), nonce)?;
        let is_ours = |id: &str| id == self.0.config.client_id;
        let is_shared = told.audiences().iter().any(|one| !is_ours(one.as_str()));
        if is_shared && !told.authorized_party().is_some_and(|party| is_ours(party.as_str())) {
            let why = "it was issued to another client".to_owned();
            return Err(ClaimsVerificationError::InvalidAudience(why));
        }
        Ok(told)
    }

    fn client(&self, metadata: &CoreProviderMetadata, secret: &SecretString) -> KnownClient {
        let config = &self.0.config;
        let (id, secret) = (config.client_id.clone(), secret.expose_secret().to_owned());
        let client = Client::from_provider_metadata(
            metadata.clone(),
            ClientId::new(id),
            Some(ClientSecret::new(secret)),
        );
        let post = CoreClientAuthMethod::ClientSecretPost;
        let basic = CoreClientAuthMethod::ClientSecretBasic;
        let client = match metadata.token_endpoint_auth_methods_supported() {
            Some(all) if all.contains(&post) && !all.contains(&basic) => {
                client.set_auth_type(AuthType::RequestBody)
            }
            _ => client,
        };
        client.set_redirect_uri(RedirectUrl::from_url(config.redirect.clone()))
    }

    async fn metadata(&self) -> Result<Arc<CoreProviderMetadata>, OidcError> {
        let inner = &self.0;
        if let Some(known) = inner.known.get(&()).await {
            return Ok(known);
        }
        let failed = inner.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, error)) = failed
            && at.elapsed() < inner.config.rest
        {
            return Err(error);
        }
        let found = Box::pin(inner.known.try_get_with((), self.discover())).await;
        found.map_err(|error| OidcError::clone(&error))
    }

    async fn discover(&self) -> Result<Arc<CoreProviderMetadata>, OidcError> {
        let http = self.caller("ask for what a provider says of itself");
        let found = CoreProviderMetadata::discover_async(self.issuer().url.clone(), &http).await;
        let found = found.map(Arc::new).map_err(|error| match error {
            DiscoveryError::Request(error) => error.told(self.issuer().host()),
            DiscoveryError::Validation(told) => called(&told).map_or_else(
                || self.no_provider(),
                |called| OidcError::Issuer { host: self.issuer().host().clone(), called },
            ),
            _ => self.no_provider(),
        });
        let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match &found {
            Ok(_) if failed.take().is_some() => tracing::info!("people can sign in by the provider again"),
            Ok(_) => {}
            Err(error) => {
                let told = error as &(dyn std::error::Error + 'static);
                tracing::warn!(error = told, "nobody can sign in by the provider; passwords go on");
                *failed = Some((Instant::now(), error.clone()));
            }
        }
        found
    }

    fn caller(&self, act: &'static str) -> Caller {
        Caller { peer: self.0.peer.clone(), act }
    }

    async fn secret(&self) -> Result<SecretString, OidcError> {
        self.0.config.client_secret.read().await.map_err(|error| OidcError::Secret(Arc::new(error)))
    }

    fn exchange_failed(
        &self,
        error: RequestTokenError<CallError, StandardErrorResponse<CoreErrorResponseType>>,
        proved: &AuthType,
    ) -> OidcError {
        let host = self.issuer().host().clone();
        match error {
            RequestTokenError::Request(error) => error.told(&host),
            RequestTokenError::ServerResponse(response) => match response.error() {
                CoreErrorResponseType::InvalidGrant => OidcError::Code,
                // Keycloak says the second of a wrong secret.
                CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient => {
                    let is_posted = matches!(proved, AuthType::RequestBody);
                    let method = if is_posted { "client_secret_post" } else { "client_secret_basic" };
                    OidcError::Client { host, method }
                }
                other => OidcError::Refused { host, code: word(other.as_ref()) },
            },
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => self.fault(TokenFault::None),
        }
    }

    fn no_provider(&self) -> OidcError {
        OidcError::NoProvider { host: self.issuer().host().clone() }
    }

    fn no_more(&self, why: UserInfoFault) -> OidcError {
        OidcError::NoUserInfo { host: self.issuer().host().clone(), why }
    }

    fn fault(&self, fault: TokenFault) -> OidcError {
        OidcError::Token { host: self.issuer().host().clone(), fault }
    }
}

/// Its issuer alone.
impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Provider").field(&self.issuer().as_str()).finish()
    }
}

/// What somebody is called, by an ID token.
fn name_of(told: &IdClaims) -> Option<&str> {
    let own = told.preferred_username().map(|name| name.as_str());
    own.or_else(|| NAMES.into_iter().find_map(|claim| told.additional_claims().text(claim)))
}

/// Whether other keys might have verified it.
fn is_of_keys(error: &SignatureVerificationError) -> bool {
    use SignatureVerificationError::{CryptoError, NoMatchingKey};
    matches!(error, NoMatchingKey | CryptoError(_))
}

fn fault_of(error: &ClaimsVerificationError) -> TokenFault {
    match error {
        ClaimsVerificationError::Expired(_) => TokenFault::Expired,
        ClaimsVerificationError::InvalidAudience(_) => TokenFault::Audience,
        ClaimsVerificationError::InvalidIssuer(_) => TokenFault::Issuer,
        ClaimsVerificationError::InvalidNonce(_) => TokenFault::Nonce,
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::DisallowedAlg(_) | SignatureVerificationError::NoSignature,
        ) => TokenFault::Way,
        ClaimsVerificationError::SignatureVerification(_) => TokenFault::Signature,
        _ => TokenFault::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_secret_is_told_as_that_by_whichever_word_it_is_refused() {
        let issuer = Issuer::parse("https://id.example.com").unwrap();
        let redirect = Url::parse("https://platform.example.com/login/oidc/callback").unwrap();
        let provider = OidcConfig::new(issuer, "platform".to_owned(), Token::literal("x"), redirect).build();
        for word in [CoreErrorResponseType::InvalidClient, CoreErrorResponseType::UnauthorizedClient] {
            let refused = StandardErrorResponse::new(word, None, None);
            let error =
                provider.exchange_failed(RequestTokenError::ServerResponse(refused), &AuthType::BasicAuth);
            assert!(matches!(error, OidcError::Client { method: "client_secret_basic", .. }), "{error:?}");
        }
    }
}
