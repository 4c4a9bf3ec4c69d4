//! Who a repository is told that we are: of Argo CD's Secrets, of a file, or of the environment.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;

use super::github_app::GitHubApp;
use super::prefix::{begins, comparable};
use super::{FetchError, RepositoryUrl, Scheme};

/// The label of Argo CD's Secrets that says what one is for: `repository` or `repo-creds`.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// Credentials of one repository, or of all whose address begins alike.
#[derive(Clone, Default)]
pub struct Credential {
    /// Where it is from, for messages: `the Secret argocd/team-repo`.
    pub from: String,
    /// The address, or how addresses begin; empty is any.
    pub url: String,
    /// It is for every address that begins so.
    pub is_prefix: bool,
    /// It is for applications of this project alone.
    pub project: Option<String>,
    /// Of HTTP.
    pub username: Option<String>,
    /// Of HTTP: a password, or the token of a forge.
    pub password: Option<SecretString>,
    /// Of HTTP: sent as `Authorization: Bearer`.
    pub bearer: Option<SecretString>,
    /// Of HTTP: an app that is given tokens.
    pub github_app: Option<GitHubApp>,
    /// Of SSH: a private key without a passphrase.
    pub ssh_key: Option<SecretString>,
    /// Of HTTPS: a certificate and its key, both PEM.
    pub client_certificate: Option<SecretString>,
    /// Of HTTP: the proxy.
    pub proxy: Option<SecretString>,
    /// Of HTTP: hosts that are asked without the proxy, between commas.
    pub no_proxy: Option<String>,
    /// Neither certificates nor host keys are verified.
    pub insecure: bool,
    /// Why what else its Secret holds cannot be used, and what to do.
    pub unsupported: Option<&'static str>,
}

const OF_GOOGLE: &str = "they are those of a Google service account, which is not supported here: a file or the environment gives a token or an SSH key instead";
const OF_AZURE: &str = "they are those of an Azure workload identity, which is not supported here: a file or the environment gives a token or an SSH key instead";

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("from", &self.from).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Credential {
    /// Reads the data of one of Argo CD's Secrets of the type `repository` or `repo-creds`; `None` when it is of another
    /// type, of charts of Helm or OCI, or names no address. `name` is `namespace/name`.
    ///
    /// Service accounts of Google and workload identities of Azure are not supported: such a Secret shows nothing.
    pub fn of_argo_cd(name: &str, secret_type: &str, data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let is_prefix = match secret_type {
            "repository" => false,
            "repo-creds" => true,
            _ => return None,
        };
        let mut read = Self::of_data(format!("the Secret {name}"), is_prefix, data)?;
        // Argo CD takes this of a repository alone.
        read.insecure &= !is_prefix;
        Some(read)
    }

    /// Reads the files of a directory, which are called as the keys of Argo CD's Secrets are: those of a mounted Secret, or some
    /// that were written by hand and end in a new line. Its `url` is how addresses begin that it is for; `None` without one.
    pub fn of_files(directory: &str, files: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let line = |(name, content): (&String, &Vec<u8>)| {
            // Of more lines than one each counts.
            let ended = content.strip_suffix(b"\n").filter(|line| !line.contains(&b'\n'));
            (name.clone(), ended.unwrap_or(content).to_vec())
        };
        let data: BTreeMap<_, _> = files.iter().map(line).collect();
        Self::of_data(format!("the files of {directory}"), true, &data)
    }

    fn of_data(from: String, is_prefix: bool, data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |key: &str| {
            let value = std::str::from_utf8(data.get(key)?).ok()?;
            (!value.is_empty()).then(|| value.to_owned())
        };
        // `echo` and editors end a value in a new line, which none of these holds.
        let line = |key: &str| {
            let value = text(key)?.trim_end_matches(['\r', '\n']).to_owned();
            (!value.is_empty()).then_some(value)
        };
        if line("type").is_some_and(|kind| ["helm", "oci"].contains(&kind.to_ascii_lowercase().as_str())) {
            return None;
        }
        let secret = |key: &str| line(key).map(SecretString::from);
        let certificate = text("tlsClientCertData").zip(text("tlsClientCertKey"));
        let unsupported = match line("gcpServiceAccountKey") {
            Some(_) => Some(OF_GOOGLE),
            None => is_true(line("useAzureWorkloadIdentity")).then_some(OF_AZURE),
        };
        let (password, bearer, ssh_key) =
            (secret("password"), secret("bearerToken"), text("sshPrivateKey").map(SecretString::from));
        // Argo CD looks at an app only where it has none of these, and at the others only where there is no app.
        let has_other = password.is_some() || bearer.is_some() || ssh_key.is_some();
        let (github_app, unsupported) = match GitHubApp::read(line) {
            _ if has_other => (None, None),
            Ok(None) => (None, unsupported),
            Ok(app) => (app, None),
            Err(why) => (None, unsupported.or(Some(why))),
        };
        Some(Self {
            from,
            url: text("url")?.trim().to_owned(),
            is_prefix,
            project: line("project"),
            username: line("username"),
            password,
            bearer,
            github_app,
            ssh_key,
            client_certificate: certificate.map(|(of, key)| SecretString::from(format!("{of}\n{key}\n"))),
            proxy: secret("proxy"),
            no_proxy: line("noProxy"),
            insecure: is_true(line("insecure")) || is_true(line("insecureIgnoreHostKey")),
            unsupported,
        })
    }

    /// It has something to show over HTTP.
    pub(super) fn is_for_http(&self) -> bool {
        let of_their_own = self.password.is_some() || self.bearer.is_some() || self.github_app.is_some();
        of_their_own || self.client_certificate.is_some()
    }

    fn shows_something(&self) -> bool {
        self.unsupported.is_none() && (self.is_for_http() || self.ssh_key.is_some())
    }

    /// They hold something that cannot be used.
    pub(super) fn unusable(&self, why: &str) -> FetchError {
        FetchError::BadCredentials { from: self.from.clone(), why: why.to_owned() }
    }

    /// Who wants credentials for this address can be shown nothing of these.
    pub(super) fn shows_nothing(&self, url: &RepositoryUrl) -> FetchError {
        match (self.unsupported, url.scheme()) {
            (Some(why), _) => self.unusable(why),
            (None, Scheme::Ssh) if self.is_for_http() => {
                self.unusable("they are of HTTP, and the address is one of SSH: give an SSH key, or the address of HTTP")
            }
            (None, Scheme::Https | Scheme::Http) if self.ssh_key.is_some() => self.unusable(
                "they are an SSH key, and the address is one of HTTP: give a password or a token, or the address of SSH",
            ),
            _ => FetchError::NoCredentials { url: url.to_string() },
        }
    }
}

/// As Argo CD reads what is true.
fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| matches!(value.trim(), "1" | "t" | "T" | "true" | "True" | "TRUE"))
}

/// Credentials of many repositories.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// Each with its address as addresses are compared.
    all: Vec<(String, Credential)>,
}

/// Whose credentials are those of an address.
pub(super) struct Whose {
    /// Those of a project, empty those of nobody where others are of a project, inner `None` where none is of any; `None` where there
    /// are credentials of other projects alone.
    pub(super) scope: Option<Option<String>>,
    /// The address has a Secret of its own that is of the project.
    pub(super) own_of_project: bool,
}

impl Credentials {
    /// Those of a list, of which the first holds where two are for the same address.
    pub fn new(all: Vec<Credential>) -> Self {
        Self { all: all.into_iter().map(|of| (comparable(&of.url), of)).collect() }
    }

    /// Whether one of them is for this address and a project; of no project where that is empty.
    pub fn names(&self, url: &RepositoryUrl, project: &str) -> bool {
        self.find(url, |of| may_use(of, project)).is_some()
    }

    /// The credential of an address, as Argo CD finds it: that of the repository itself, one of a project before one of none; where it
    /// holds none, that of the longest address that it begins with. Whether certificates are verified is said by the repository's
    /// own.
    pub fn of(&self, url: &RepositoryUrl) -> Option<Credential> {
        self.find(url, |_| true)
    }

    /// Those that applications of a project may use: its own, and those of no project; these alone where it is empty.
    pub(super) fn within(&self, project: &str) -> Self {
        Self { all: self.all.iter().filter(|(_, of)| may_use(of, project)).cloned().collect() }
    }

    /// Whose credentials applications of a project are given for an address. Argo CD looks at the project of the Secret of a
    /// repository alone; here that of one for many repositories counts too.
    pub(super) fn scope(&self, url: &RepositoryUrl, project: &str) -> Whose {
        let wanted = comparable(url.as_str());
        let own = |(at, of): &&(String, Credential)| !of.is_prefix && *at == wanted;
        let own_of_project = self.all.iter().filter(own).any(|(_, of)| is_of(of, project));
        let used = self.find(url, |of| may_use(of, project));
        let of_others = |(_, of): &(String, Credential)| {
            of.project.is_some() && !is_of(of, project) && of.shows_something()
        };
        let shows = used.as_ref().is_some_and(Credential::shows_something);
        if !shows && self.all.iter().filter(own).any(of_others) {
            return Whose { scope: None, own_of_project };
        }
        let concerns = |(at, of): &&(String, Credential)| match of.is_prefix {
            true => begins(&wanted, at),
            false => *at == wanted,
        };
        let is_of_some = self.all.iter().filter(concerns).any(|(_, of)| of.project.is_some());
        let scope = used.and_then(|used| used.project).or_else(|| is_of_some.then(String::new));
        Whose { scope: Some(scope), own_of_project }
    }

    fn find(&self, url: &RepositoryUrl, may: impl Fn(&Credential) -> bool) -> Option<Credential> {
        let wanted = comparable(url.as_str());
        let usable = || self.all.iter().filter(|(_, of)| may(of));
        let own = || usable().filter(|(at, of)| !of.is_prefix && *at == wanted).map(|(_, of)| of);
        let own = own().find(|of| of.project.is_some()).or_else(|| own().next());
        if own.is_some_and(Credential::shows_something) {
            return own.cloned();
        }
        let prefixes = usable().filter(|(at, of)| of.is_prefix && begins(&wanted, at));
        // Of equally long ones that of a project, and of these the first; one that cannot be used only where there is no other.
        let longest = prefixes
            .rev()
            .max_by_key(|(at, of)| (of.unsupported.is_none(), at.len(), of.project.is_some()))
            .map(|(_, of)| of);
        match (own, longest) {
            (Some(own), Some(longest)) if own.unsupported.is_none() || longest.shows_something() => {
                Some(Credential {
                    insecure: own.insecure,
                    proxy: own.proxy.clone().or_else(|| longest.proxy.clone()),
                    no_proxy: own.no_proxy.clone().or_else(|| longest.no_proxy.clone()),
                    ..longest.clone()
                })
            }
            (own, longest) => own.or(longest).cloned(),
        }
    }
}

fn is_of(credential: &Credential, project: &str) -> bool {
    credential.project.as_deref().is_some_and(|of| of == project)
}

fn may_use(credential: &Credential, project: &str) -> bool {
    credential.project.is_none() || is_of(credential, project)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use secrecy::ExposeSecret as _;

    use super::{Credential, Credentials};
    use crate::RepositoryUrl;

    fn secret(name: &str, kind: &str, data: &[(&str, &str)]) -> Option<Credential> {
        let data: BTreeMap<_, _> =
            data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        Credential::of_argo_cd(name, kind, &data)
    }

    fn found(all: &Credentials, url: &str) -> Option<(String, Option<String>)> {
        let found = all.of(&RepositoryUrl::read(url).unwrap())?;
        Some((found.from.clone(), found.password.map(|password| password.expose_secret().to_owned())))
    }

    #[test]
    fn the_repository_s_own_secret_holds_and_else_the_longest_beginning() {
        let all = Credentials::new(
            [
                secret("argocd/a", "repo-creds", &[("url", "https://example.com"), ("password", "one")]),
                secret("argocd/b", "repo-creds", &[("url", "https://example.com/team"), ("password", "two")]),
                secret(
                    "argocd/c",
                    "repository",
                    &[("url", "https://Example.com/team/a.git"), ("password", "three")],
                ),
                secret(
                    "argocd/d",
                    "repository",
                    &[("url", "https://example.com/team/b"), ("insecure", "true")],
                ),
                secret("argocd/e", "repository", &[("url", "https://example.com/charts"), ("type", "helm")]),
                secret("argocd/f", "cluster", &[("url", "https://example.com")]),
            ]
            .into_iter()
            .flatten()
            .collect(),
        );
        let of = |name: &str, password: &str| {
            Some((format!("the Secret argocd/{name}"), Some(password.to_owned())))
        };
        assert_eq!(found(&all, "https://example.com/team/a"), of("c", "three"));
        assert_eq!(found(&all, "https://example.com/team/b.git"), of("b", "two"));
        assert_eq!(found(&all, "https://example.com/team2/x"), of("a", "one"));
        assert_eq!(found(&all, "https://example.com.evil.org/x"), None);
        assert_eq!(found(&all, "http://example.com/team/a"), None);
        assert!(all.of(&RepositoryUrl::read("https://example.com/team/b").unwrap()).unwrap().insecure);
        assert!(!all.of(&RepositoryUrl::read("https://example.com/team/z").unwrap()).unwrap().insecure);
    }

    #[test]
    fn an_ssh_address_is_found_however_it_is_written() {
        let key =
            secret("argocd/a", "repo-creds", &[("url", "git@example.com:team"), ("sshPrivateKey", "key")]);
        let all = Credentials::new(key.into_iter().collect());
        assert!(all.of(&RepositoryUrl::read("git@example.com:team/a.git").unwrap()).is_some());
        assert!(all.of(&RepositoryUrl::read("ssh://git@example.com/team/a").unwrap()).is_some());
        assert!(all.of(&RepositoryUrl::read("git@example.com:teams/a.git").unwrap()).is_none());
    }

    #[test]
    fn addresses_begin_as_argo_cd_reads_them() {
        let all = |urls: &[&str]| {
            let secret = |(at, url): (usize, &&str)| {
                secret(&format!("argocd/{at}"), "repo-creds", &[("url", url), ("sshPrivateKey", "key")])
            };
            Credentials::new(urls.iter().enumerate().filter_map(secret).collect())
        };
        let ssh = "git@Example.com:team/web/a.git";
        for (beginning, url, covers) in [
            ("git@example.com", ssh, true),
            ("git@example.com:", ssh, true),
            ("git@example.com/team/", ssh, true),
            ("git@example.com:team", ssh, true),
            ("ssh://git@example.com", ssh, true),
            (" ssh://git@EXAMPLE.com/team/web/a\n", ssh, true),
            ("git@example", ssh, false),
            ("git@example.com:tea", ssh, false),
            ("ada@example.com", ssh, false),
            ("example.com", ssh, false),
            ("git@example.com", "ssh://git@example.com:2222/team/a", false),
            ("ssh://git@example.com:2222", "ssh://git@example.com:2222/team/a", true),
            ("https://ada@example.com/team", "https://example.com/team/_git/a", true),
            ("https://example.com/My Team", "https://example.com/My%20Team/a", true),
        ] {
            let found = all(&[beginning]).of(&RepositoryUrl::read(url).unwrap());
            assert_eq!(found.is_some(), covers, "{beginning} and {url}");
        }
        // The longest is that of the address, however it is written.
        let two = all(&["ssh://git@example.com/team", "git@example.com:team/web"]);
        assert_eq!(two.of(&RepositoryUrl::read(ssh).unwrap()).unwrap().from, "the Secret argocd/1");
    }

    #[test]
    fn what_argo_cd_s_secrets_hold_is_read_as_argo_cd_reads_it() {
        let url = ("url", "https://example.com/team");
        let read = |kind: &str, more: &[(&str, &str)]| secret("argocd/a", kind, &[&[url], more].concat());
        for kind in ["helm", "Helm", "oci", "oci\n"] {
            assert!(read("repository", &[("type", kind)]).is_none(), "{kind:?}");
        }
        for kind in ["git", "Git", "git\n", ""] {
            assert!(read("repository", &[("type", kind)]).is_some(), "{kind:?}");
        }
        for kind in ["repository-write", "repo-write-creds", "cluster"] {
            assert!(read(kind, &[]).is_none(), "{kind}");
        }
        for (value, insecure) in
            [("true", true), ("True", true), ("1", true), ("true\n", true), ("false", false), ("yes", false)]
        {
            for key in ["insecure", "insecureIgnoreHostKey"] {
                assert_eq!(
                    read("repository", &[(key, value)]).unwrap().insecure,
                    insecure,
                    "{key}: {value:?}"
                );
                // Argo CD has it of repositories alone.
                assert!(!read("repo-creds", &[(key, value)]).unwrap().insecure, "{key}: {value:?}");
            }
        }
        let all = Credentials::new(vec![read("repository", &[("project", "shop\n")]).unwrap()]);
        assert!(all.names(&RepositoryUrl::read(url.1).unwrap(), "shop"));
        // What goes before others in Argo CD goes before them here.
        let (app, id) = (("githubAppPrivateKey", "key"), ("githubAppID", "7"));
        let of_google = ("gcpServiceAccountKey", "{}");
        for (more, usable) in [
            (&[app][..], false),
            (&[app, id], true),
            (&[app, id, of_google], true),
            (&[app, of_google], false),
            (&[app, id, ("password", "one")], true),
            (&[app, ("sshPrivateKey", "key")], true),
            (&[app, ("tlsClientCertData", "a"), ("tlsClientCertKey", "b")], false),
            (&[("useAzureWorkloadIdentity", "false")], true),
        ] {
            let found = read("repository", more).unwrap();
            assert_eq!(found.unsupported.is_none(), usable, "{more:?}");
            let has_other = more.iter().any(|(key, _)| ["password", "sshPrivateKey"].contains(key));
            let is_app = more.contains(&id) && !has_other;
            assert_eq!(found.github_app.is_some(), is_app, "{more:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_holds_up_nothing_that_can() {
        let creds =
            |name: &str, kind: &str, url: &str, data: (&str, &str)| secret(name, kind, &[("url", url), data]);
        let app = ("githubAppPrivateKey", "key");
        let of = |all: &[Option<Credential>]| {
            let all = Credentials::new(all.iter().flatten().cloned().collect());
            found(&all, "https://example.com/team/a").unwrap().0
        };
        let own = creds("argocd/own", "repository", "https://example.com/team/a", app);
        let team = creds("argocd/team", "repo-creds", "https://example.com/team", app);
        let any = creds("argocd/any", "repo-creds", "https://example.com", ("password", "one"));
        let blank = creds("argocd/blank", "repo-creds", "https://example.com", ("username", "ada"));
        assert_eq!(of(&[own.clone(), team.clone()]), "the Secret argocd/own");
        assert_eq!(of(&[own.clone(), blank]), "the Secret argocd/own");
        assert_eq!(of(&[own, team.clone(), any.clone()]), "the Secret argocd/any");
        assert_eq!(of(&[team.clone(), any]), "the Secret argocd/any");
        assert_eq!(of(&[team]), "the Secret argocd/team");
    }

    #[test]
    fn the_files_of_a_directory_are_a_credential_of_all_addresses_that_begin_as_its_url() {
        let files = [("url", "https://example.com/team\n"), ("username", "ada"), ("password", "one\n")];
        let of = |files: &[(&str, &str)]| {
            let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
            Credential::of_files("/team", &files.collect())
        };
        let all = Credentials::new(of(&files).into_iter().collect());
        let wanted = Some(("the files of /team".to_owned(), Some("one".to_owned())));
        assert_eq!(found(&all, "https://example.com/team/a.git"), wanted);
        assert_eq!(found(&all, "https://example.com/other/a.git"), None);
        assert!(of(&files[1..]).is_none(), "it is for no address");
        let key = "-----BEGIN\nabc\n-----END\n";
        let key = of(&[("url", "git@example.com:team"), ("sshPrivateKey", key)]).unwrap().ssh_key.unwrap();
        assert_eq!(key.expose_secret(), "-----BEGIN\nabc\n-----END\n");
    }

    #[test]
    fn nothing_secret_is_shown() {
        let data = [("url", "https://example.com"), ("password", "hidden"), ("bearerToken", "hidden")];
        let shown = format!("{:?}", secret("argocd/a", "repository", &data).unwrap());
        assert_eq!(shown, r#"Credential { from: "the Secret argocd/a", url: "https://example.com", .. }"#);
    }

    #[test]
    fn credentials_of_a_project_are_those_of_its_applications_alone() {
        let url = ("url", "https://example.com/team/a");
        let all = Credentials::new(
            [
                secret("argocd/shop", "repository", &[url, ("password", "one"), ("project", "shop")]),
                secret("argocd/web", "repository", &[url, ("password", "two"), ("project", "web")]),
                secret(
                    "argocd/registered",
                    "repository",
                    &[("url", "https://example.com/open"), ("project", "shop")],
                ),
                secret(
                    "argocd/any",
                    "repository",
                    &[("url", "https://example.com/any"), ("password", "three")],
                ),
                secret(
                    "argocd/below",
                    "repo-creds",
                    &[("url", "https://below.example/shop"), ("password", "four"), ("project", "shop")],
                ),
            ]
            .into_iter()
            .flatten()
            .collect(),
        );
        let read = |url: &str| RepositoryUrl::read(url).unwrap();
        let used = |url: &str, project: &str| {
            let whose = all.scope(&read(url), project);
            let found = all.within(project).of(&read(url)).map(|found| found.from);
            (whose.scope, found, whose.own_of_project)
        };
        let of = |name: &str| Some(format!("the Secret argocd/{name}"));
        let some = |project: &str| Some(Some(project.to_owned()));
        for (url, project, expected) in [
            ("https://example.com/team/a", "shop", (some("shop"), of("shop"), true)),
            ("https://example.com/team/a.git", "web", (some("web"), of("web"), true)),
            ("https://example.com/team/a", "default", (None, None, false)),
            ("https://example.com/team/a", "", (None, None, false)),
            // One that shows nothing keeps nobody from an open repository.
            ("https://example.com/open", "shop", (some("shop"), of("registered"), true)),
            ("https://example.com/open", "web", (some(""), None, false)),
            ("https://example.com/any", "shop", (Some(None), of("any"), false)),
            ("https://below.example/shop/x", "shop", (some("shop"), of("below"), false)),
            ("https://below.example/shop/x", "web", (some(""), None, false)),
            ("https://below.example/other", "web", (Some(None), None, false)),
        ] {
            assert_eq!(used(url, project), expected, "{url} of {project:?}");
        }
        assert!(all.names(&read("https://below.example/shop/x"), "shop"));
        assert!(!all.names(&read("https://below.example/shop/x"), "web"));
        let whoever = [
            secret("argocd/any", "repository", &[url, ("password", "any")]),
            secret("argocd/shop", "repository", &[url, ("password", "one"), ("project", "shop")]),
        ];
        let both = Credentials::new(whoever.into_iter().flatten().collect());
        assert_eq!(both.within("shop").of(&read(url.1)).unwrap().from, "the Secret argocd/shop");
        assert_eq!(both.within("web").of(&read(url.1)).unwrap().from, "the Secret argocd/any");
        assert_eq!(
            both.scope(&read(url.1), "web").scope,
            some(""),
            "what one of a project brought is not theirs"
        );
    }
}
