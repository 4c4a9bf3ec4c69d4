//! The address of a repository elsewhere, as it is shown, compared and called.

use std::fmt;

use sha2::{Digest as _, Sha256};
use url::Url;

use super::FetchError;

/// How a repository is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `https://`.
    Https,
    /// `http://`.
    Http,
    /// `ssh://` or `user@host:path`.
    Ssh,
    /// `file://` or a path of this machine.
    File,
}

/// The address of a repository, without a password: what stands in one is never shown, and never kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryUrl {
    text: String,
    /// Its path is below the home of its user: `host:path` without a slash.
    below_home: bool,
    /// Below a slash, the path of `host:path` where it holds a `%`, which stands for itself there.
    literal: Option<String>,
}

impl RepositoryUrl {
    /// Reads `https://host/path`, `http://`, `ssh://user@host:port/path`, `user@host:path`, `file:///path` or `/path`.
    ///
    /// # Errors
    /// It is none of these, or holds a password.
    pub fn read(text: &str) -> Result<Self, FetchError> {
        let text = text.trim();
        let refused = |why| FetchError::Address { why };
        if text.is_empty() || text.len() > 2_048 || text.contains(char::is_control) {
            return Err(refused("it is empty, longer than 2,048 characters, or holds control characters"));
        }
        // A server may read `%2f` as a slash, so that the path would not be below where it seems to be.
        let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
        if text.contains('%') && climbs(&decoded) || text.starts_with('/') && climbs(text) {
            return Err(refused("its path leads upwards"));
        }
        if let Some(path) = text.strip_prefix('/') {
            return Ok(Self { text: format!("file:///{path}"), below_home: false, literal: None });
        }
        let (whole, below_home, literal) = match text.contains("://") {
            true => (text.to_owned(), false, None),
            false => of_host_and_path(text).ok_or_else(|| {
                refused("it does not begin with https://, http://, ssh://, file:// or a host")
            })?,
        };
        let mut url = Url::parse(&whole).map_err(|error| {
            refused(match error {
                url::ParseError::InvalidPort => {
                    "no port follows the colon behind its host: write user@host:path or ssh://user@host/path"
                }
                _ => "it is no URL",
            })
        })?;
        if let Some(why) = refusal(&url) {
            return Err(refused(why));
        }
        if matches!(url.scheme(), "https" | "http") {
            // The user of an address is no part of where it is; credentials are found by the address.
            let _ = url.set_username("");
        }
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), below_home, literal })
    }

    /// As it is shown.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is called.
    pub fn scheme(&self) -> Scheme {
        match self.text.split_once("://").map(|(scheme, _)| scheme) {
            Some("https") => Scheme::Https,
            Some("http") => Scheme::Http,
            Some("ssh") => Scheme::Ssh,
            _ => Scheme::File,
        }
    }

    /// `host`, or `host:port` where it is not the scheme's own.
    pub fn host(&self) -> String {
        let url = self.url();
        let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default().to_owned();
        match url.and_then(|url| url.port()) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    pub(super) fn url(&self) -> Option<Url> {
        Url::parse(&self.text).ok()
    }

    /// The path as the host of an SSH address is asked for it.
    pub(super) fn ssh_path(&self) -> String {
        let path = self.literal.clone().unwrap_or_else(|| {
            let path = self.url().map(|url| url.path().to_owned()).unwrap_or_default();
            percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned()
        });
        // `/~user/path` is below that user's home.
        if self.below_home || path.starts_with("/~") { path.replacen('/', "", 1) } else { path }
    }

    /// A name for its directory: no two addresses share one, nor two projects, and nothing of an address stands in it.
    pub(super) fn directory(&self, project: Option<&str>) -> String {
        let below_home = if self.below_home { "~" } else { "" };
        // No address holds a tab or a new line.
        let literal = self.literal.as_ref().map_or_else(String::new, |path| format!("\t{path}"));
        let of = project.map_or_else(String::new, |project| format!("\n{project}"));
        let digest = Sha256::digest(format!("{}{below_home}{literal}{of}", self.text));
        format!("{}.git", hex::encode(&digest[..16]))
    }
}

/// `host:path` as a URL, whether the path is below the home of its user, and the path where it stands for itself.
fn of_host_and_path(text: &str) -> Option<(String, bool, Option<String>)> {
    let (host, path) = text.split_once(':')?;
    if host.contains('/') || host.is_empty() || path.is_empty() || path.starts_with(':') {
        return None;
    }
    // One with a `%` that leads upwards is refused before: it leads nowhere else than the text does.
    let literal = path.contains('%').then(|| format!("/{}", path.trim_matches('/')));
    let whole = format!("ssh://{host}/{}", path.trim_start_matches('/'));
    Some((whole, !path.starts_with('/'), literal))
}

/// Why a repository is not asked for at an address.
fn refusal(url: &Url) -> Option<&'static str> {
    if !matches!(url.scheme(), "https" | "http" | "ssh" | "file") {
        return Some("it must begin with https://, http://, ssh:// or file://");
    }
    if url.password().is_some() {
        return Some("it holds a password: give it in a Secret, a file or the environment");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Some("it holds a query or a fragment");
    }
    if url.scheme() != "file" && url.host_str().is_none_or(str::is_empty) {
        return Some("it names no host");
    }
    // A host or user that begins with a dash is an option to many a program.
    if url.host_str().is_some_and(|host| host.starts_with('-')) || url.username().starts_with('-') {
        return Some("its host or user begins with a dash");
    }
    None
}

/// Whether a part of a path is `..`.
fn climbs(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "..")
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{RepositoryUrl, Scheme};

    #[test]
    fn an_address_is_read_in_each_of_its_ways() {
        for (text, shown, scheme, host) in [
            ("https://Example.com/a/b.git/", "https://example.com/a/b.git", Scheme::Https, "example.com"),
            (
                "https://me@example.com:8443/a",
                "https://example.com:8443/a",
                Scheme::Https,
                "example.com:8443",
            ),
            ("http://example.com:80/a", "http://example.com/a", Scheme::Http, "example.com"),
            ("git@example.com:team/a.git", "ssh://git@example.com/team/a.git", Scheme::Ssh, "example.com"),
            ("ssh://git@example.com:2222/a", "ssh://git@example.com:2222/a", Scheme::Ssh, "example.com:2222"),
            ("/srv/git/a.git", "file:///srv/git/a.git", Scheme::File, ""),
            ("file:///srv/git/a.git", "file:///srv/git/a.git", Scheme::File, ""),
        ] {
            let url = RepositoryUrl::read(text).unwrap();
            assert_eq!((url.as_str(), url.scheme(), &*url.host()), (shown, scheme, host), "{text}");
        }
    }

    #[test]
    fn an_address_that_is_refused_is_not_repeated() {
        for (text, why) in [
            ("", "it is empty, longer than 2,048 characters, or holds control characters"),
            ("https://a/b\nc", "it is empty, longer than 2,048 characters, or holds control characters"),
            ("just-a-name", "it does not begin with https://, http://, ssh://, file:// or a host"),
            ("ftp://example.com/a", "it must begin with https://, http://, ssh:// or file://"),
            ("ext::sh -c true", "it does not begin with https://, http://, ssh://, file:// or a host"),
            (
                "https://me:hidden@example.com/a",
                "it holds a password: give it in a Secret, a file or the environment",
            ),
            (
                "ssh://git@github.com:team/a.git",
                "no port follows the colon behind its host: write user@host:path or ssh://user@host/path",
            ),
            ("https://example.com/a?token=hidden", "it holds a query or a fragment"),
            ("https://example.com/team%2f..%2fother/a", "its path leads upwards"),
            ("ssh://git@example.com/team/%2e%2E/a", "its path leads upwards"),
            ("/srv/git/../../etc", "its path leads upwards"),
            ("ssh://-oProxyCommand=true/a", "its host or user begins with a dash"),
        ] {
            let error = RepositoryUrl::read(text).unwrap_err().to_string();
            assert_eq!(error, format!("the address of the repository is refused: {why}"), "{text}");
        }
    }

    #[test]
    fn an_ssh_host_is_asked_for_the_path_that_was_meant() {
        for (text, path) in [
            ("git@example.com:team/a.git", "team/a.git"),
            ("git@example.com:/srv/a.git", "/srv/a.git"),
            ("ssh://git@example.com/srv/a%20b.git", "/srv/a b.git"),
            ("git@example.com:v3/team/My Project/a", "v3/team/My Project/a"),
            ("git@example.com:v3/team/My%20Project/a", "v3/team/My%20Project/a"),
            ("git@example.com:/srv/100%.git/", "/srv/100%.git"),
            ("ssh://git@example.com/~ada/a.git", "~ada/a.git"),
        ] {
            assert_eq!(RepositoryUrl::read(text).unwrap().ssh_path(), path, "{text}");
        }
    }

    #[test]
    fn each_address_has_a_directory_of_its_own() {
        let of = |text, project| RepositoryUrl::read(text).unwrap().directory(project);
        let name = |text| of(text, None);
        assert_eq!(name("https://example.com/a"), name("https://me@example.com/a/"));
        assert_ne!(name("https://example.com/a"), name("http://example.com/a"));
        assert_ne!(name("git@example.com:a%20b"), name("git@example.com:a b"));
        assert_eq!(name("https://example.com/a").len(), 36);
        let of_projects =
            [None, Some(""), Some("shop"), Some("web")].map(|project| of("https://example.com/a", project));
        assert_eq!(std::collections::BTreeSet::from(of_projects).len(), 4, "each project has its own");
    }
}
