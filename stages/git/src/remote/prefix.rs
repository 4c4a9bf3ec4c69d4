//! How addresses of repositories begin.

use std::borrow::Cow;

use super::{FetchError, RepositoryUrl};

/// The beginning of addresses: `https://git.example.com/team` is one of `https://git.example.com/team/mono.git`, and none of
/// `https://git.example.com/team2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPrefix(String);

impl UrlPrefix {
    /// Reads an address, or how one begins: at least its scheme and host.
    ///
    /// # Errors
    /// As [`RepositoryUrl::read`].
    pub fn read(text: &str) -> Result<Self, FetchError> {
        RepositoryUrl::read(text).map(|url| Self(comparable_text(url.as_str())))
    }

    /// As addresses are compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an address begins so.
    pub fn covers(&self, url: &RepositoryUrl) -> bool {
        begins(&comparable_text(url.as_str()), &self.0)
    }
}

/// An address as two are compared: without case, `.git` and a slash at the end, and always as a URL.
pub(super) fn comparable(url: &str) -> String {
    match RepositoryUrl::read(url) {
        Ok(url) => comparable_text(url.as_str()),
        Err(_) => comparable_text(&beginning_of_ssh(url.trim())),
    }
}

/// `git@host`, `git@host:` and `git@host/team` are no addresses, but how those of SSH begin: to Argo CD their first colon is a
/// slash.
fn beginning_of_ssh(text: &str) -> Cow<'_, str> {
    let is_one =
        |(user, host): (&str, &str)| !user.contains(['/', ':']) && !host.is_empty() && !host.contains('@');
    match text.split_once('@').is_some_and(is_one) {
        true => format!("ssh://{}", text.replacen(':', "/", 1)).into(),
        false => text.into(),
    }
}

fn comparable_text(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let lower = lower.trim_end_matches('/');
    lower.strip_suffix(".git").unwrap_or(lower).to_owned()
}

/// Whether an address begins with another at the end of a part: `https://host/team` is no beginning of `https://host/team2`,
/// and `https://host` none of `https://host.example.com`.
pub(super) fn begins(url: &str, prefix: &str) -> bool {
    prefix.is_empty()
        || url
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{RepositoryUrl, UrlPrefix};

    #[test]
    fn an_address_begins_so_only_at_the_end_of_a_part_and_on_the_same_host() {
        for (prefix, url, covers) in [
            ("https://git.example/team", "https://git.example/team/mono.git", true),
            ("https://git.example/team/", "https://Git.example/Team/mono", true),
            ("https://git.example/team/mono.git", "https://git.example/team/mono", true),
            ("https://git.example", "https://git.example/a", true),
            ("https://git.example/team", "https://git.example/team2/mono", false),
            ("https://git.example", "https://git.example.attacker.example/a", false),
            ("https://git.example", "https://git.example:8443/a", false),
            ("https://git.example", "http://git.example/a", false),
            ("https://git.example/team", "https://git.example/team/../other", false),
            ("git@git.example:team", "ssh://git@git.example/team/mono.git", true),
            ("git@git.example:team", "ssh://root@git.example/team/mono.git", false),
            ("/srv/git", "file:///srv/git/mono.git", true),
        ] {
            let found = UrlPrefix::read(prefix).unwrap().covers(&RepositoryUrl::read(url).unwrap());
            assert_eq!(found, covers, "{prefix} and {url}");
        }
        for none in ["", "https://", "git.example"] {
            UrlPrefix::read(none).unwrap_err();
        }
    }
}
