//! What the account's Git server says of the runtime's token: whether it takes it, what it may do, when it ends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::platform::Account;
use super::{Asking, DAY, PeerResponse, Request, SOON, Token, Way, origin, within};
use crate::rules::cluster::SKIPS_GIT;
use crate::rules::{GIT_CREDENTIALS as GROUP, Judged, Node, Severity};

/// Git servers that a token can be tried at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    GitHub,
    GitLab,
    Bitbucket,
    BitbucketServer,
}

impl Provider {
    /// By the name that the platform or a person gives it.
    fn named(name: &str) -> Option<Self> {
        match name.to_lowercase().replace('_', "-").as_str() {
            // The second is the platform's own spelling.
            "github" | "github-enterpeise" | "github-enterprise" => Some(Self::GitHub),
            "gitlab" | "gitlab-cloud" | "gitlab-server" => Some(Self::GitLab),
            "bitbucket" | "bitbucket-cloud" => Some(Self::Bitbucket),
            "bitbucket-server" | "bitbucket-data-center" => Some(Self::BitbucketServer),
            _ => None,
        }
    }

    /// By a host that is one provider's own.
    fn of_host(host: &str) -> Option<Self> {
        let of = |name: &str| host == name || host.ends_with(&format!(".{name}"));
        [("github.com", Self::GitHub), ("gitlab.com", Self::GitLab), ("bitbucket.org", Self::Bitbucket)]
            .into_iter()
            .find_map(|(name, provider)| of(name).then_some(provider))
    }

    /// Where its API begins.
    fn base(self, api: &str) -> String {
        let api = api.trim_end_matches('/');
        let origin = origin(api);
        let has_path = api.len() > origin.len();
        match self {
            Self::GitHub if Self::of_host(host(api)) == Some(self) => "https://api.github.com".to_owned(),
            // GitHub's own cloud for those whose data stays where they are.
            Self::GitHub if host(api).ends_with(".ghe.com") => {
                format!("https://api.{}", host(api).trim_start_matches("api."))
            }
            Self::GitHub if !has_path => format!("{api}/api/v3"),
            Self::GitLab if Self::of_host(host(api)) == Some(self) => format!("{origin}/api/v4"),
            Self::GitLab => below(api, "/api", "/v4"),
            // The host of the API alone has it there, as the platform knows it.
            Self::Bitbucket if host(api).starts_with("api.") => format!("{origin}/2.0"),
            Self::Bitbucket => format!("{origin}/api/2.0"),
            Self::BitbucketServer => below(api, "/rest/api", "/1.0"),
            Self::GitHub => api.to_owned(),
        }
    }
}

/// An API's own path below the address of a server, which may stand below a path of its host; as it is where it names the first part of
/// that path.
fn below(address: &str, part: &str, version: &str) -> String {
    let path = address.get(origin(address).len()..).unwrap_or_default();
    match format!("{path}/").contains(&format!("{part}/")) {
        true => address.to_owned(),
        false => format!("{address}{part}{version}"),
    }
}

/// The host of an address, without its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default()
}

pub(super) fn check(judged: &mut Judged, asking: &mut Asking<'_>, account: Option<&Account>) {
    let has = |path: &str| !judged.is_empty(&format!("{GROUP}.password.{path}"));
    if judged.is_skipped("GR0203") || !(has("value") || has("secretKeyRef")) {
        return;
    }
    let Some(account) = account else {
        return asking.unmeasured("GR0203", "the platform did not tell the account's Git server");
    };
    if account.provider.is_empty() || account.api.is_empty() {
        return asking.unmeasured("GR0203", "the account has no Git server yet");
    }
    let inline = format!("{GROUP}.password.value");
    let reference = format!("{GROUP}.password.secretKeyRef");
    let token = match asking.token(judged, Some(&inline), &reference) {
        Ok(token) => token,
        Err(why) => return asking.unmeasured("GR0203", why),
    };
    let path = if judged.is_empty(&inline) { reference } else { inline };
    let named = Provider::named(&account.provider);
    let inferred = Provider::of_host(host(&account.api));
    let provider = match (named, inferred) {
        (None, _) if account.provider.to_lowercase() == "gerrit" => {
            return asking.unmeasured("GR0203", "Gerrit does not tell what a token may do");
        }
        (None, _) => {
            let found = format!("the account's Git provider is {}", account.provider);
            let todo = "correct it in the settings of the account";
            return judged.told(
                Severity::Warning,
                "GR0203",
                &path,
                found,
                "a Git provider that is known",
                todo,
            );
        }
        (Some(named), Some(inferred)) if named != inferred => {
            let found =
                format!("the account's Git provider is {}, at {}", account.provider, origin(&account.api));
            let todo = "correct one of the two in the settings of the account";
            return judged.told(
                Severity::Warning,
                "GR0203",
                &path,
                found,
                "the provider of that address",
                todo,
            );
        }
        (Some(named), _) => named,
    };
    // Hosts have dots: the key is looked up by itself.
    let certificates = judged.at("argo-cd.configs.tls.certificates");
    let authorities = certificates.and_then(|all| all.get(host(&account.api))).and_then(Node::text);
    let way = Way { authorities: authorities.map(str::to_owned), ..asking.way() };
    let base = provider.base(&account.api);
    let mut attempt = Attempt { judged, asking, path: &path, base: &base, token: &token, way: &way };
    match provider {
        Provider::GitHub => attempt.github(),
        Provider::GitLab => attempt.gitlab(),
        Provider::Bitbucket => attempt.bitbucket(),
        Provider::BitbucketServer => attempt.bitbucket_server(),
    };
}

/// One try of a token. The questions end with the first that is not answered.
struct Attempt<'a, 'b> {
    judged: &'a mut Judged,
    asking: &'a mut Asking<'b>,
    path: &'a str,
    base: &'a str,
    token: &'a Token,
    way: &'a Way,
}

impl Attempt<'_, '_> {
    fn ask(
        &mut self,
        method: &'static str,
        at: &str,
        authorization: String,
        body: bool,
    ) -> Option<PeerResponse> {
        let request = Request {
            method,
            url: format!("{}{at}", self.base),
            headers: vec![("authorization", authorization)],
            // A name that no repository may have: nothing is made.
            body: body.then(|| json!({"name": "!invalid"})),
            way: self.way,
        };
        let answer = self.asking.ask(self.judged, "GR0203", self.path, &request)?;
        if matches!(answer.status, 401 | 403) {
            self.wrong(format!("{} does not take the token (status {})", origin(self.base), answer.status));
            return None;
        }
        Some(answer)
    }

    fn wrong(&mut self, found: String) {
        let wanted = "a token of the account's Git server with the scopes that the documentation names";
        let todo = format!("make such a token, and give it; {SKIPS_GIT}: true does not look");
        self.judged.told(Severity::Warning, "GR0203", self.path, found, wanted, &todo);
    }

    /// Tells of scopes that a token lacks; each is met by any of its names.
    fn scopes(&mut self, header: Option<&String>, needed: &[&[&str]], has: impl Fn(&str, &str) -> bool) {
        let Some(scopes) = header else {
            let found = format!("{} tells no scopes of the token", origin(self.base));
            return self.wrong(found);
        };
        let lacks = needed.iter().filter(|names| !names.iter().any(|name| has(scopes, name)));
        let lacks: Vec<&str> = lacks.map(|names| names.first().copied().unwrap_or_default()).collect();
        if !lacks.is_empty() {
            self.wrong(format!("a token without the scope {}", lacks.join(" and ")));
        }
    }

    /// Tells of an end that is near; a date begins with year, month and day.
    fn ends(&mut self, date: &str) {
        let now = self.asking.network.now();
        if let Some(ends) = day(date).filter(|ends| *ends < now + SOON * DAY) {
            let found = format!("a Git token that ends {}", within(ends - now));
            let todo = "make a new one, and give it";
            self.judged.told(Severity::Warning, "GR0203", self.path, found, "a token that stays", todo);
        }
    }

    fn github(&mut self) -> Option<()> {
        // The kind that tells no scopes is refused by the files already.
        if self.token.text().starts_with("github_pat") {
            if self.judged.findings.iter().all(|finding| finding.code != "GR0037") {
                self.wrong("a fine-grained token, which tells no scopes".to_owned());
            }
            return None;
        }
        let answer = self.ask("HEAD", "", format!("token {}", self.token.text()), false)?;
        let has = |scopes: &str, name: &str| scopes.split(',').any(|scope| scope.trim() == name);
        self.scopes(answer.headers.get("x-oauth-scopes"), &[&["repo"], &["admin:repo_hook"]], has);
        if let Some(date) = answer.headers.get("github-authentication-token-expiration") {
            self.ends(date);
        }
        Some(())
    }

    fn gitlab(&mut self) -> Option<()> {
        let bearer = format!("Bearer {}", self.token.text());
        let user = self.ask("GET", "/user", bearer.clone(), false)?;
        let name = user.body["username"].as_str().unwrap_or_default();
        if user.body["bot"] == true && name.starts_with("project") {
            self.wrong("the token of a project, which reaches no other".to_owned());
            return None;
        }
        let made = self.ask("POST", "/projects", bearer.clone(), false)?;
        if made.status != 400 {
            self.wrong(format!("a token without the scope api (status {})", made.status));
        }
        // Not every kind of token may ask for itself.
        let url = format!("{}/personal_access_tokens/self", self.base);
        let request = Request::get(url, vec![("authorization", bearer)], self.way);
        let itself = self.asking.ask(self.judged, "GR0203", self.path, &request)?;
        if let Some(date) = itself.body["expires_at"].as_str() {
            self.ends(date);
        }
        Some(())
    }

    fn bitbucket(&mut self) -> Option<()> {
        let user = self.judged.text(&format!("{GROUP}.username")).to_owned();
        let basic = STANDARD.encode(format!("{user}:{}", self.token.text()));
        let answer = self.ask("HEAD", "/user", format!("Basic {basic}"), false)?;
        let needed: &[&[&str]] = &[
            &["repository:admin"],
            &["account:read", "account:write"],
            &["team", "team:write"],
            &["webhook"],
        ];
        self.scopes(answer.headers.get("x-oauth-scopes"), needed, |scopes, name| scopes.contains(name));
        Some(())
    }

    fn bitbucket_server(&mut self) -> Option<()> {
        let bearer = format!("Bearer {}", self.token.text());
        let answer = self.ask("HEAD", "/application-properties", bearer.clone(), false)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@~".contains(c);
        let Some(user) = answer.headers.get("x-ausername").filter(|name| name.chars().all(is_name)) else {
            self.wrong(format!("{} does not say whose token it is", origin(self.base)));
            return None;
        };
        let made = self.ask("POST", &format!("/users/{user}/repos"), bearer, true)?;
        if made.status != 400 {
            self.wrong(format!("a token that may make no repository (status {})", made.status));
        }
        Some(())
    }
}

/// The beginning of the day that a date begins with, in seconds since 1970.
fn day(date: &str) -> Option<i64> {
    let date: jiff::civil::Date = date.get(..10)?.parse().ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day("1970-01-01"), Some(0));
        assert_eq!(day("2024-02-29 10:00:00 UTC"), Some(1_709_164_800));
        assert_eq!(day("2026-12-01"), Some(1_796_083_200));
        assert_eq!([day("soon"), day("2026-xx-01"), day("")], [None, None, None]);
    }

    #[test]
    fn the_api_of_each_provider_begins_where_it_does() {
        let base = |provider: Provider, api: &str| provider.base(api);
        assert_eq!(base(Provider::GitHub, "https://github.com/"), "https://api.github.com");
        assert_eq!(base(Provider::GitHub, "https://git.example.com"), "https://git.example.com/api/v3");
        assert_eq!(base(Provider::GitHub, "https://git.example.com/own"), "https://git.example.com/own");
        for api in ["https://acme.ghe.com", "https://api.acme.ghe.com/"] {
            assert_eq!(base(Provider::GitHub, api), "https://api.acme.ghe.com", "{api}");
        }
        assert_eq!(base(Provider::GitLab, "https://gitlab.com/api"), "https://gitlab.com/api/v4");
        assert_eq!(base(Provider::GitLab, "https://lab.example.com"), "https://lab.example.com/api/v4");
        assert_eq!(base(Provider::Bitbucket, "https://bitbucket.org/x"), "https://bitbucket.org/api/2.0");
        for api in ["https://api.bitbucket.org/2.0", "https://api.bitbucket.org"] {
            assert_eq!(base(Provider::Bitbucket, api), "https://api.bitbucket.org/2.0", "{api}");
        }
        assert_eq!(
            base(Provider::BitbucketServer, "https://b.example.com"),
            "https://b.example.com/rest/api/1.0"
        );
        for (provider, api, below) in [
            (Provider::GitLab, "https://git.example.com/gitlab", "/api/v4"),
            (Provider::GitLab, "https://git.example.com/gitlab/api/v4", ""),
            (Provider::BitbucketServer, "https://git.example.com/bitbucket", "/rest/api/1.0"),
            (Provider::BitbucketServer, "https://git.example.com/bitbucket/rest/api/latest", ""),
        ] {
            assert_eq!(base(provider, api), format!("{api}{below}"));
        }
        assert_eq!(Provider::of_host("notgithub.com"), None);
    }
}
