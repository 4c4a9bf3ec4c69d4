//! Whoever asks: told by an API key or a runtime's token in `Authorization`, as it is or after `Bearer`, or else by the session of a
//! page of this very platform; before anything of the body is read.

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pipeline_core::SecretString;
use sha2::{Digest as _, Sha256};
use stages_client::{OwnCookie, QueryFault, bearer_token};
use stages_platform_store::{Access, By, KnownKey, Registration, Runtime, Scope, Store, StoreError, View};

/// How somebody came in whose page asks.
const SESSION: &str = "session";

/// Whoever asks.
pub(crate) enum Caller {
    Person(Person),
    Runtime(Runtime),
}

/// Somebody, or a program of theirs.
pub(crate) struct Person {
    pub(crate) access: Access,
    pub(crate) by: By,
    /// What their key is good for.
    pub(crate) scope: Scope,
    /// The key that they came in with; `None`: with none.
    pub(crate) key: Option<KnownKey>,
}

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("send an API key, or the token of a runtime, in the header Authorization")]
    NoCredentials,
    #[error("this key, token or session is not known, or has ended")]
    Unknown,
    #[error(
        "the owner of this key last came in by {0} more than 30 days ago, and what its groups gave them does not count any more: once \
         they sign in by it again the key is good again"
    )]
    Lapsed(String),
    #[error(
        "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl"
    )]
    OtherSite,
    #[error(
        "a session is good for the console's own queries, by their names: send an API key to ask in words of your own"
    )]
    Unstored,
    #[error("this key may only read: make one of the scope 'full'")]
    ReadsOnly,
    #[error("only an admin may do this")]
    NotAdmin,
    #[error("only a person may do this: send an API key instead of the token of a runtime")]
    NotAPerson,
    #[error("only the app proxy of a runtime may ask this: send the runtime's token")]
    NotARuntime,
    #[error("a runtime may do this for itself alone")]
    AnotherRuntime,
    #[error("there is no runtime '{0}'")]
    NoRuntime(String),
    #[error(
        "runtime '{0}' has a token and is not registered, and so has no key: register it (createRuntime with recover: true)"
    )]
    Unregistered(String),
    #[error("the API has no such path")]
    NoPath,
    #[error("the API is asked by another method here: the header Allow tells which")]
    OtherMethod,
    #[error("a body is taken as it is: send it without Content-Encoding")]
    Packed,
    #[error("{0}")]
    Wrong(String),
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error(transparent)]
    Query(#[from] QueryFault),
    #[error("the store does not answer: try again")]
    Store,
    #[error("too many runtimes are being asked at once: try again")]
    Busy,
    #[error(
        "as many requests of yours to runtimes are under way as may be ({0}): wait for an answer, or end a stream"
    )]
    OwnRequests(usize),
    #[error("{0} subscriptions of yours are open, and no more may be: end one")]
    OwnSubscriptions(usize),
    #[error("too many subscriptions are open: try again")]
    AllSubscriptions,
    #[error("what you may see has changed: read it anew, and subscribe again")]
    OtherView,
    #[error(
        "runtime '{0}' has no address, so nothing can be asked of it: an admin finds on the console's page /runtimes/add/{0} what gives it one; a program registers it anew (createRuntime with recover: true) with ingressHost, or internalIngressHost"
    )]
    NoAddress(String),
    #[error("runtime '{0}' has an address that cannot be used: register it anew with another; {1}")]
    BadAddress(String, stages_client::TargetError),
    #[error(
        "runtime '{0}' is registered at {1}, where this platform asks nobody (platformServer.forward.refusedNetworks): register it anew with another address"
    )]
    RefusedAddress(String, String),
    #[error(
        "runtime '{0}' cannot be reached at {1}: look whether its router and app proxy run, and whether this platform may connect there"
    )]
    Unreachable(String, String),
    #[error(
        "runtime '{0}' has no tunnel connected at {1}: look whether its tunnel client runs, and what its log says"
    )]
    NoTunnel(String, String),
    #[error(
        "runtime '{0}' did not answer within {1} s: what was asked may still be done; look before you ask again"
    )]
    Late(String, u64),
    #[error("the address of runtime '{0}' answered {1}: {2}")]
    NotAnAppProxy(String, u16, &'static str),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoCredentials | Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Lapsed(_)
            | Self::OtherSite
            | Self::Unstored
            | Self::ReadsOnly
            | Self::NotAdmin
            | Self::NotAPerson
            | Self::NotARuntime
            | Self::AnotherRuntime => StatusCode::FORBIDDEN,
            Self::NoRuntime(_) | Self::Unregistered(_) | Self::NoPath => StatusCode::NOT_FOUND,
            Self::OtherMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Packed => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) | Self::Query(QueryFault::TooLong) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Wrong(_) | Self::Query(_) => StatusCode::BAD_REQUEST,
            Self::OwnRequests(_) | Self::OwnSubscriptions(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Store | Self::Busy | Self::AllSubscriptions => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoAddress(_) | Self::BadAddress(..) | Self::RefusedAddress(..) | Self::OtherView => {
                StatusCode::CONFLICT
            }
            Self::Unreachable(..) | Self::NoTunnel(..) | Self::NotAnAppProxy(..) => StatusCode::BAD_GATEWAY,
            Self::Late(..) => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// What the store said, as far as whoever asks can do anything about it.
pub(crate) fn unwritten(error: impl AsRef<StoreError>) -> Refusal {
    let error = error.as_ref();
    if let StoreError::Name(_)
    | StoreError::AdoptedName(_)
    | StoreError::SameId { .. }
    | StoreError::ManyKeys(_) = error
    {
        return Refusal::Wrong(error.to_string());
    }
    tracing::warn!(error = error as &dyn std::error::Error, "the API could not be answered");
    Refusal::Store
}

/// The same of what was to be read.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
pub(crate) fn unread(error: StoreError) -> Refusal {
    tracing::warn!(error = &error as &dyn std::error::Error, "the API could not be answered");
    Refusal::Store
}

/// What is known of the runtime of a name.
pub(crate) async fn registered(store: &Store, name: &str) -> Result<Registration, Refusal> {
    let found = store.registrations(Some(name)).await.map_err(unread)?;
    found.into_iter().next().ok_or_else(|| Refusal::NoRuntime(name.to_owned()))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        if matches!(self, Self::Store | Self::Busy) {
            response.headers_mut().insert(header::RETRY_AFTER, 5.into());
        }
        response
    }
}

impl Caller {
    pub(crate) async fn of(
        store: &Store,
        session: &OwnCookie,
        headers: &HeaderMap,
        now: i64,
    ) -> Result<Self, Refusal> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(token) = text(header::AUTHORIZATION).and_then(bearer_token) else {
            return Self::of_session(store, session, headers, now).await;
        };
        let token = SecretString::from(token);
        if let Some(runtime) = store.runtime(&token).await.map_err(unread)? {
            return Ok(Self::Runtime(runtime));
        }
        let Some(key) = store.key(&token, now).await.map_err(unread)? else {
            // A proxy that asks whoever comes for a password of its own has its word there, beside the session of a page.
            return match session.read(headers) {
                Some(_) => Self::of_session(store, session, headers, now).await,
                None => Err(Refusal::Unknown),
            };
        };
        let person = Self::person(store, (key.owner.clone(), "key", key.scope), now).await?;
        // A program that saw less than before would take what it does not see for gone.
        if let Some(issuer) = person.access.lapsed {
            return Err(Refusal::Lapsed(issuer));
        }
        Ok(Self::Person(Person { key: Some(key), ..person }))
    }

    /// A browser sends its cookie whoever made it ask: it counts only for what a page of this platform sent.
    async fn of_session(
        store: &Store,
        session: &OwnCookie,
        headers: &HeaderMap,
        now: i64,
    ) -> Result<Self, Refusal> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let token = session.read(headers).ok_or(Refusal::NoCredentials)?;
        let here = match text(HeaderName::from_static("sec-fetch-site")) {
            Some(site) => site == "same-origin",
            None => session.is_from_the_site(headers).unwrap_or(false),
        };
        if !here {
            return Err(Refusal::OtherSite);
        }
        let digest = Sha256::digest(token.as_bytes()).into();
        let who = store.session(digest, now).await.map_err(unread)?.ok_or(Refusal::Unknown)?;
        Self::person(store, (who, SESSION, Scope::Full), now).await.map(Self::Person)
    }

    async fn person(
        store: &Store,
        (who, how, scope): (String, &'static str, Scope),
        now: i64,
    ) -> Result<Person, Refusal> {
        let access = store.access(&who, now).await.map_err(unread)?.ok_or(Refusal::Unknown)?;
        Ok(Person { access, by: By { who, how }, scope, key: None })
    }

    /// Whether it is a page of the console that asks.
    pub(crate) fn is_page(&self) -> bool {
        matches!(self, Self::Person(person) if person.by.how == SESSION)
    }

    /// Which applications they see.
    pub(crate) fn view(&self) -> View {
        match self {
            Self::Person(person) => person.access.view(),
            Self::Runtime(runtime) => View::of_runtime(&runtime.name),
        }
    }

    /// Which workflows they see, beside those of applications that they see.
    pub(crate) fn view_of_workflows(&self) -> View {
        match self {
            Self::Person(person) => person.access.view_of_workflows(),
            Self::Runtime(runtime) => View::of_runtime(&runtime.name),
        }
    }

    /// The name of the runtime that is called so, or told by that id; `None`: there is none that they see.
    pub(crate) async fn runtime(&self, store: &Store, called: &str) -> Result<Option<String>, Refusal> {
        match self {
            Self::Person(person) => store.seen_runtime(&person.access, called).await,
            Self::Runtime(own) => {
                store.runtime_called(called).await.map(|name| name.filter(|name| *name == own.name))
            }
        }
        .map_err(unread)
    }

    /// The runtimes that they see, by name.
    pub(crate) async fn runtimes(&self, store: &Store) -> Result<Vec<Registration>, Refusal> {
        match self {
            Self::Person(person) => store.seen_registrations(&person.access).await,
            Self::Runtime(own) => store.registrations(Some(&own.name)).await,
        }
        .map_err(unread)
    }

    /// Whether they see everything of a runtime.
    pub(crate) fn sees_all_of(&self, runtime: &str) -> bool {
        match self {
            Self::Person(person) => person.access.is_admin(),
            Self::Runtime(own) => own.name == runtime,
        }
    }

    /// Somebody who changes something of their own.
    pub(crate) fn writes(&self) -> Result<&Person, Refusal> {
        match self {
            Self::Person(person) if person.scope == Scope::Full => Ok(person),
            Self::Person(_) => Err(Refusal::ReadsOnly),
            Self::Runtime(_) => Err(Refusal::NotAPerson),
        }
    }

    /// Somebody who sees how accounts are.
    pub(crate) fn manages(&self) -> Result<&Person, Refusal> {
        match self {
            Self::Person(person) if person.access.is_admin() => Ok(person),
            Self::Person(_) => Err(Refusal::NotAdmin),
            Self::Runtime(_) => Err(Refusal::NotAPerson),
        }
    }

    /// Somebody who changes accounts.
    pub(crate) fn governs(&self) -> Result<&Person, Refusal> {
        self.writes().and(self.manages())
    }

    /// A runtime, or somebody who changes accounts: who does something.
    pub(crate) fn changes(&self) -> Result<By, Refusal> {
        match self {
            Self::Runtime(own) => Ok(By { who: own.name.clone(), how: "token" }),
            Self::Person(_) => self.governs().map(|person| person.by.clone()),
        }
    }

    /// The runtime itself, or somebody who changes accounts.
    pub(crate) fn acts_for(&self, name: &str) -> Result<(), Refusal> {
        match self {
            Self::Runtime(own) if own.name == name => Ok(()),
            Self::Runtime(_) => Err(Refusal::AnotherRuntime),
            Self::Person(_) => self.governs().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_no_place_is_told_whether_it_is_for_them_or_for_all() {
        let own = "as many requests of yours to runtimes are under way as may be (64): wait for an answer, or end a stream";
        for (refusal, status, said) in [
            (Refusal::OwnRequests(64), 429, own),
            (Refusal::Busy, 503, "too many runtimes are being asked at once: try again"),
            (
                Refusal::OwnSubscriptions(20),
                429,
                "20 subscriptions of yours are open, and no more may be: end one",
            ),
            (Refusal::AllSubscriptions, 503, "too many subscriptions are open: try again"),
        ] {
            assert_eq!((refusal.status().as_u16(), &*refusal.to_string()), (status, said));
        }
    }
}
