//! What peers tell: whether each address is reached, and what the platform, Git, Argo CD and the bus say of the values.
//!
//! takes: values, and tokens that they give or that the cluster's Secrets hold - gives: findings, and why something was
//! not measured
//! calls: peers, through [`Network`] - fails: never; a peer that fails is a finding, and one that is not reached is
//! asked once. Where nothing at all is reached, all of it is not measured: offline

mod argocd;
mod bus;
mod git;
mod platform;
mod token;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value as Json;

use self::token::Token;
use super::cluster::{Place, Unanswered};
use super::{Judged, Severity};
use crate::finding::MASKED;

/// Days before its end that a certificate or a token is told of.
pub(crate) const SOON: i64 = 14;
pub(crate) const DAY: i64 = 24 * 60 * 60;

/// A question to a peer. What stands in it is never shown.
pub struct Request<'a> {
    /// The method.
    pub method: &'static str,
    /// The whole address.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its body, as JSON.
    pub body: Option<Json>,
    /// How the peer is reached and trusted.
    pub way: &'a Way,
}

impl<'a> Request<'a> {
    fn get(url: String, headers: Vec<(&'static str, String)>, way: &'a Way) -> Self {
        Self { method: "GET", url, headers, body: None, way }
    }
}

/// How a peer is reached, and whom one trusts that it is the right one.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// Authorities that are trusted beside those of the system, in PEM.
    pub authorities: Option<String>,
    /// Trust any certificate.
    pub insecure: bool,
    /// The proxies of the values; without any, those of the environment hold.
    pub proxies: Proxies,
}

/// Proxies of the values; each may be empty.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// For `http`.
    pub http: String,
    /// For `https`.
    pub https: String,
    /// What is asked without one, with commas.
    pub none: String,
}

/// What a peer answered.
#[derive(Debug, Default)]
pub struct PeerResponse {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, where it is JSON.
    pub body: Json,
    /// The certificates that it showed, its own first.
    pub certificates: Vec<Certificate>,
}

/// A certificate of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Whose it is.
    pub subject: String,
    /// When it ends, in seconds since 1970.
    pub ends: i64,
}

/// Why a peer was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreached {
    /// Nobody listens there.
    Refused,
    /// The name is none.
    Unresolved,
    /// No answer in time, or no way there.
    Silent,
    /// Its certificate does not verify: which one, and how.
    Certificate(String),
    /// Anything else, in words without an address.
    Other(String),
}

impl Unreached {
    /// Whether that is all one sees where there is no network.
    fn is_offline(&self) -> bool {
        matches!(self, Self::Unresolved | Self::Silent)
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the connection is refused"),
            Self::Unresolved => f.write_str("the name does not resolve"),
            Self::Silent => f.write_str("no answer in time"),
            Self::Certificate(why) | Self::Other(why) => f.write_str(why),
        }
    }
}

/// Peers that can be asked.
pub trait Network {
    /// Asks one, within a time limit of its own.
    ///
    /// # Errors
    /// Why it was not reached.
    fn ask(&self, request: &Request<'_>) -> Result<PeerResponse, Unreached>;

    /// The first line that a server sends to whoever connects.
    ///
    /// # Errors
    /// Why it was not reached.
    fn greeting(&self, host: &str, port: u16) -> Result<String, Unreached>;

    /// The time, in seconds since 1970.
    fn now(&self) -> i64;
}

/// Asks everything there is to ask.
pub(super) fn check(judged: &mut Judged, network: &dyn Network, place: Option<&Place<'_>>) -> Unanswered {
    // Whoever masks them gives them in the environment.
    let proxy = |name: &str| {
        let text = judged.text(&format!("global.{name}"));
        if text == MASKED { String::new() } else { text.to_owned() }
    };
    let proxies = Proxies { http: proxy("httpProxy"), https: proxy("httpsProxy"), none: proxy("noProxy") };
    let mut asking = Asking {
        network,
        place,
        proxies,
        unreached: Vec::new(),
        is_online: false,
        unanswered: Unanswered::new(),
    };
    own_address(judged, &mut asking);
    let account = platform::check(judged, &mut asking);
    git::check(judged, &mut asking, account.as_ref());
    argocd::check(judged, &mut asking);
    bus::check(judged, &mut asking);
    asking.end(judged)
}

/// Whether the address that the platform is told of leads anywhere.
fn own_address(judged: &mut Judged, asking: &mut Asking<'_>) {
    let first = |path: &str| {
        let hosts = judged.at(path).map(super::Node::json)?;
        Some(hosts.get(0)?.as_str()?.to_owned())
    };
    let at = |group: &str, hosts: &str| {
        let group = format!("global.runtime.{group}");
        let is_on = judged.is_on(&group);
        let host = first(&format!("{group}.{hosts}")).filter(|_| is_on)?;
        Some((format!("{group}.{hosts}"), format!("{}://{host}", judged.text(&format!("{group}.protocol")))))
    };
    let own = || {
        Some(("global.runtime.ingressUrl".to_owned(), judged.text("global.runtime.ingressUrl").to_owned()))
    };
    let found = at("ingress", "hosts").or_else(|| at("httpRoute", "hostnames")).or_else(own);
    let Some((path, url)) = found.filter(|(_, url)| !url.is_empty()) else { return };
    if judged.is_skipped("GR0201") {
        return;
    }
    let way = asking.way();
    let request = Request { method: "HEAD", ..Request::get(url, Vec::new(), &way) };
    // Any answer will do: what serves there is not installed yet.
    drop(asking.ask(judged, "GR0201", &path, &request));
}

/// Peers, and what became of asking them.
struct Asking<'a> {
    network: &'a dyn Network,
    place: Option<&'a Place<'a>>,
    proxies: Proxies,
    unreached: Vec<Lost>,
    is_online: bool,
    unanswered: Unanswered,
}

/// An address that was not reached.
struct Lost {
    code: &'static str,
    path: String,
    origin: String,
    why: Unreached,
}

impl Asking<'_> {
    fn way(&self) -> Way {
        Way { proxies: self.proxies.clone(), ..Way::default() }
    }

    /// Says why something could not be measured.
    fn unmeasured(&mut self, code: &'static str, why: impl Into<String>) {
        self.unanswered.entry(code).or_insert_with(|| why.into());
    }

    /// Asks a peer unless it was found away before; tells of certificates that end soon. `None`: it was not reached,
    /// which is told at the end.
    fn ask(
        &mut self,
        judged: &mut Judged,
        code: &'static str,
        path: &str,
        request: &Request<'_>,
    ) -> Option<PeerResponse> {
        let origin = origin(&request.url);
        if self.unreached.iter().any(|lost| lost.origin == origin) {
            self.unmeasured(code, format!("{origin} was not reached"));
            return None;
        }
        match self.network.ask(request) {
            Ok(answer) => {
                self.is_online = true;
                self.ending(judged, path, &origin, &answer.certificates);
                Some(answer)
            }
            Err(why) => {
                self.lost(code, path, origin, why);
                None
            }
        }
    }

    fn lost(&mut self, code: &'static str, path: &str, origin: String, why: Unreached) {
        self.is_online |= !why.is_offline();
        self.unreached.push(Lost { code, path: path.to_owned(), origin, why });
    }

    fn ending(&self, judged: &mut Judged, path: &str, origin: &str, certificates: &[Certificate]) {
        let now = self.network.now();
        for certificate in certificates.iter().filter(|one| one.ends < now + SOON * DAY) {
            let found = format!(
                "{origin} shows the certificate of {}, which ends {}",
                certificate.subject,
                within(certificate.ends - now)
            );
            let wanted = format!("certificates that are good for {SOON} days and more");
            judged.told(Severity::Warning, "GR0208", path, found, &wanted, "renew it");
        }
    }

    /// A token that values give, or that a Secret holds which they name. An error says why there is none.
    fn token(&self, judged: &Judged, inline: Option<&str>, reference: &str) -> Result<Token, String> {
        let given = inline.map(|path| judged.text(path)).filter(|text| !text.is_empty());
        if let Some(text) = given {
            return Token::given(text).ok_or_else(|| "the value is masked here".to_owned());
        }
        let part = |key: &str| judged.text(&format!("{reference}.{key}")).to_owned();
        let (name, key) = (part("name"), part("key"));
        if name.is_empty() || key.is_empty() {
            return Err(format!("no {}", reference.trim_end_matches(".secretKeyRef")));
        }
        let Some(place) = self.place else {
            return Err(format!("the Secret {name} was not read: no cluster was asked"));
        };
        let secret = place.cluster.get(&format!("/api/v1/namespaces/{}/secrets/{name}", place.namespace));
        let secret = secret.map_err(|why| format!("the Secret {name} was not read: {why}"))?;
        let held = secret.as_ref().and_then(|secret| secret["data"][key.as_str()].as_str());
        held.and_then(Token::decoded).ok_or_else(|| format!("the Secret {name} holds no {key}"))
    }

    /// What was not reached, as findings; where nothing was, as not measured.
    fn end(mut self, judged: &mut Judged) -> Unanswered {
        for lost in std::mem::take(&mut self.unreached) {
            let Lost { code, path, origin, why } = lost;
            // Of a name of the cluster nobody outside of it can tell.
            let is_inside = super::peers::is_of_the_cluster(&origin);
            if !self.is_online {
                self.unmeasured(code, "offline: no address was reached");
            } else if is_inside && why.is_offline() {
                self.unmeasured(
                    code,
                    format!("offline: {origin} is a name of the cluster, and this is asked outside of it"),
                );
            } else {
                self.unmeasured(code, format!("{origin} was not reached"));
                let through = if self.proxies.http.is_empty() && self.proxies.https.is_empty() {
                    ""
                } else {
                    " (through the proxy of the values, unless global.noProxy names it)"
                };
                let found = format!("{origin}: {why}{through}");
                let todo = match why {
                    Unreached::Certificate(_) => "give the authorities that sign it, or have it renewed",
                    _ => "correct the address, or open the way there; --skip network does not look",
                };
                judged.told(Severity::Error, "GR0207", &path, found, "an address that answers", todo);
            }
        }
        self.unanswered
    }
}

/// Scheme, host and port of an address, for people: no path, no user.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

/// Days until something ends.
pub(crate) fn within(seconds: i64) -> String {
    match seconds.div_euclid(DAY) {
        ..0 => "in the past".to_owned(),
        0 => "within a day".to_owned(),
        1 => "in 1 day".to_owned(),
        days => format!("in {days} days"),
    }
}

/// What a peer says of why, for people: short, on one line, and without the token that it was asked with.
fn said(text: &str, token: &Token) -> String {
    let text = text.replace(token.text(), "(masked)");
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_holds_neither_user_nor_path() {
        assert_eq!(
            origin("https://user:secret@git.example.com:8443/api?x=1"),
            "https://git.example.com:8443"
        );
        assert_eq!(origin("http://a"), "http://a");
    }

    #[test]
    fn days_are_told_as_people_count_them() {
        assert_eq!(
            [within(-5), within(5), within(DAY), within(3 * DAY)],
            ["in the past", "within a day", "in 1 day", "in 3 days"]
        );
    }
}
