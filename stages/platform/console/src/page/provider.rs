//! Where the provider of a repository shows a commit. Of those that are known by their host; of others nothing is said, and
//! whatever was reported as an address leads nowhere else.

use percent_encoding::utf8_percent_encode;
use url::Url;

use super::link::SEGMENT;

/// Providers by the first word of their host, as the public ones and those that people run are called: what stands between a
/// repository and a commit's id.
const PROVIDERS: [(&str, &str); 6] = [
    ("github", "commit"),
    ("gitlab", "-/commit"),
    ("codeberg", "commit"),
    ("forgejo", "commit"),
    ("gitea", "commit"),
    ("bitbucket", "commits"),
];

/// The address of a commit's page; `None` where it is not known.
pub(super) fn commit_link(repository: &str, revision: &str) -> Option<String> {
    let is_commit =
        (7..=64).contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (host, path) = parts(repository).filter(|_| is_commit)?;
    let word = host.split('.').next().filter(|_| host.contains('.'))?;
    let (_, between) = PROVIDERS.iter().find(|(known, _)| *known == word)?;
    let segments = named(&path)?.split('/');
    let escaped = segments.map(|segment| utf8_percent_encode(segment, SEGMENT).to_string());
    Some(format!("https://{host}/{}/{between}/{revision}", escaped.collect::<Vec<_>>().join("/")))
}

/// The host of a repository, with the port of its pages.
pub(super) fn host(repository: &str) -> Option<String> {
    parts(repository).map(|(host, _)| host)
}

/// Its owner and its name, such as `team/mono`; `None`: it has no such two.
pub(super) fn project(repository: &str) -> Option<String> {
    let (_, path) = parts(repository)?;
    let path = named(&path)?;
    // As Bitbucket Server has them.
    let path = path.strip_prefix("scm/").unwrap_or(path);
    path.contains('/').then(|| path.to_owned())
}

/// A path without what is about it, if each of its parts, of which there are two at least, is a name.
fn named(path: &str) -> Option<&str> {
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_named = path.split('/').all(|segment| !["", ".", ".."].contains(&segment));
    (is_named && path.contains('/')).then_some(path)
}

/// Host and path, without credentials: of a URL, or of what `git` takes as `user@host:path`. A port is kept where it is that of
/// pages.
fn parts(repository: &str) -> Option<(String, String)> {
    if let Some((before, path)) = repository.split_once(':').filter(|(_, path)| !path.starts_with("//")) {
        let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
        // The same reading of a host as in a URL, and nothing beside a host.
        let url = Url::parse(&format!("https://{host}/")).ok()?;
        let read = url.host_str().filter(|read| read.eq_ignore_ascii_case(host))?;
        return Some((read.to_owned(), path.to_owned()));
    }
    let url = Url::parse(repository).ok()?;
    let host = url.host_str()?;
    let host = match (url.scheme(), url.port()) {
        ("https", Some(port)) => format!("{host}:{port}"),
        ("https" | "http" | "ssh" | "git", _) => host.to_owned(),
        _ => return None,
    };
    let path = percent_encoding::percent_decode_str(url.path()).decode_utf8().ok()?;
    Some((host, path.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::{commit_link, host, project};

    #[test]
    fn a_repository_is_known_by_its_host_and_by_owner_and_name() {
        for (repository, of, named) in [
            ("https://github.com/team/mono.git", Some("github.com"), Some("team/mono")),
            (
                "https://ada:word@git.example.com:8443/team/mono/",
                Some("git.example.com:8443"),
                Some("team/mono"),
            ),
            ("git@gitlab.com:group/sub/mono.git", Some("gitlab.com"), Some("group/sub/mono")),
            ("https://git.example.com/scm/shop/mono.git", Some("git.example.com"), Some("shop/mono")),
            ("https://charts.example.com", Some("charts.example.com"), None),
            ("registry.example.com/charts", None, None),
            ("", None, None),
        ] {
            assert_eq!(host(repository).as_deref(), of, "{repository}");
            assert_eq!(project(repository).as_deref(), named, "{repository}");
        }
    }

    const ID: &str = "3f9c1e2aaa";

    #[test]
    fn each_provider_shows_a_commit_in_its_own_way() {
        for (repository, link) in [
            ("git@github.com:team/mono.git", "https://github.com/team/mono/commit/3f9c1e2aaa"),
            ("https://x:secret@gitlab.com/a/b/c.git", "https://gitlab.com/a/b/c/-/commit/3f9c1e2aaa"),
            ("ssh://git@gitlab.example.com:2222/a/b", "https://gitlab.example.com/a/b/-/commit/3f9c1e2aaa"),
            ("https://gitea.example.com:3000/a/b/", "https://gitea.example.com:3000/a/b/commit/3f9c1e2aaa"),
            ("https://bitbucket.org/team/mono", "https://bitbucket.org/team/mono/commits/3f9c1e2aaa"),
            ("https://github.com/a b/c\"d", "https://github.com/a%20b/c%22d/commit/3f9c1e2aaa"),
        ] {
            assert_eq!(commit_link(repository, ID).as_deref(), Some(link), "{repository}");
        }
    }

    #[test]
    fn what_is_no_repository_of_a_known_provider_leads_nowhere() {
        for repository in [
            "",
            "https://git.example.com/a/b",
            "https://example.com/github.com/a",
            "https://github/a/b",
            "javascript:github.com/a/b",
            "javascript://github.com/a/b",
            "file:///srv/github.com/a",
            "https://github.com/a",
            "https://github.com/a/%2e%2e/b",
            "git@github.com:../b",
            "git@github.com/x y:a/b",
            "oci://github.com/a/b",
        ] {
            assert_eq!(commit_link(repository, ID), None, "{repository}");
        }
        for revision in ["", "main", "abc123", "3f9c1e2\"onclick=", &"a".repeat(65)] {
            assert_eq!(commit_link("https://github.com/a/b", revision), None, "{revision}");
        }
    }
}
