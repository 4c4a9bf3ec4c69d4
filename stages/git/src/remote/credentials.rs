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
    all: Vec<Credential>,
}

impl Credentials {
    /// Those of a list, of which the first holds where two are for the same address.
    pub fn new(all: Vec<Credential>) -> Self {
        Self { all }
    }

    /// Whether one of them is for this address.
    pub fn names(&self, url: &RepositoryUrl) -> bool {
        self.of(url).is_some()
    }

    /// The credential of an address, as Argo CD finds it: that of the repository itself; where it holds none, that of the
    /// longest address that it begins with. Whether certificates are verified is said by the repository's own.
    pub fn of(&self, url: &RepositoryUrl) -> Option<Credential> {
        let wanted = comparable(url.as_str());
        let own = self.all.iter().find(|of| !of.is_prefix && comparable(&of.url) == wanted);
        if own.is_some_and(Credential::shows_something) {
            return own.cloned();
        }
        let prefixes = self.all.iter().filter(|of| of.is_prefix && begins(&wanted, &comparable(&of.url)));
        // Of equally long ones the first.
        let longest = prefixes.rev().max_by_key(|of| of.url.len());
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
}
