//! Who a repository is told that we are: of Argo CD's Secrets, of a file, or of the environment.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;

use super::RepositoryUrl;
use super::prefix::{begins, comparable};

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
    /// Of SSH: a private key without a passphrase.
    pub ssh_key: Option<SecretString>,
    /// Of HTTPS: a certificate and its key, both PEM.
    pub client_certificate: Option<SecretString>,
    /// Of HTTP: the proxy.
    pub proxy: Option<SecretString>,
    /// Neither certificates nor host keys are verified.
    pub insecure: bool,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("from", &self.from).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Credential {
    /// Reads the data of one of Argo CD's Secrets of the type `repository` or `repo-creds`; `None` when it is of another
    /// type, of a Helm registry, or names no address. `name` is `namespace/name`.
    ///
    /// GitHub Apps are not supported: such a Secret gives no credentials.
    pub fn of_argo_cd(name: &str, secret_type: &str, data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let is_prefix = match secret_type {
            "repository" => false,
            "repo-creds" => true,
            _ => return None,
        };
        Self::of_data(format!("the Secret {name}"), is_prefix, data)
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
        if text("type").is_some_and(|kind| kind != "git") {
            return None;
        }
        let secret = |key: &str| text(key).map(SecretString::from);
        let is_true = |key: &str| text(key).is_some_and(|value| value.trim() == "true");
        let certificate = text("tlsClientCertData").zip(text("tlsClientCertKey"));
        Some(Self {
            from,
            url: text("url")?.trim().to_owned(),
            is_prefix,
            project: text("project"),
            username: text("username"),
            password: secret("password"),
            bearer: secret("bearerToken"),
            ssh_key: secret("sshPrivateKey"),
            client_certificate: certificate.map(|(of, key)| SecretString::from(format!("{of}\n{key}\n"))),
            proxy: secret("proxy"),
            insecure: is_true("insecure") || is_true("insecureIgnoreHostKey"),
        })
    }

    /// It has something to show over HTTP.
    pub(super) fn is_for_http(&self) -> bool {
        self.password.is_some() || self.bearer.is_some() || self.client_certificate.is_some()
    }

    fn shows_something(&self) -> bool {
        self.is_for_http() || self.ssh_key.is_some()
    }
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
        let prefixes = usable().filter(|(at, of)| of.is_prefix && begins(&wanted, at)).map(|(_, of)| of);
        // Of equally long ones that of a project, and of these the first.
        let longest = prefixes.rev().max_by_key(|of| (of.url.len(), of.project.is_some()));
        match (own, longest) {
            (Some(own), Some(longest)) => Some(Credential {
                insecure: own.insecure,
                proxy: own.proxy.clone().or_else(|| longest.proxy.clone()),
                ..longest.clone()
            }),
            (own, longest) => longest.or(own).cloned(),
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
