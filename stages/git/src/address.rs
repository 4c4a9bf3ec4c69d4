//! Whether two ways to write a repository's address mean the same one.

/// Hosts at which others take SSH where its own port is closed.
const ALSO_SSH: [(&str, &str); 3] = [
    ("ssh.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
];

/// A repository's address without what does not tell repositories apart: scheme, user, port of the scheme, `.git`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(String);

impl Address {
    /// Reads `https://host/path.git`, `ssh://git@host/path`, `git@host:path` or a path of a file system.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        let place = match text.split_once("://") {
            Some((_, place)) => place.to_owned(),
            None => match text.split_once(':') {
                // As in `git@host:path`; a colon after a slash is part of a path.
                Some((host, path)) if !host.contains('/') => {
                    format!("{host}/{}", path.trim_start_matches('/'))
                }
                _ => text.to_owned(),
            },
        };
        let (host, path) = place.split_once('/').unwrap_or((&place, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
        let host = [":443", ":80", ":22"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
        let host = ALSO_SSH.iter().find(|(also, _)| *also == host).map_or(host, |(_, of)| *of);
        let path = path.trim_matches('/');
        // Argo CD compares addresses without their case.
        Self(format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path).to_ascii_lowercase()))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn a_repository_is_the_same_however_its_address_is_written() {
        let one = Address::read("https://github.com/Team/mono.git");
        for same in [
            "http://github.com/team/mono",
            "https://user:secret@GitHub.com:443/team/mono.git/",
            "git@github.com:team/mono.git",
            "ssh://git@github.com:22/team/mono",
            "ssh://git@ssh.github.com:443/team/mono.git",
        ] {
            assert_eq!(Address::read(same), one, "{same}");
        }
        for other in ["https://github.com/team/mono2", "https://example.com/team/mono", "/srv/team/mono"] {
            assert_ne!(Address::read(other), one, "{other}");
        }
        assert!(!Address::read("https://user:secret@github.com/a").to_string().contains("secret"));
    }
}
