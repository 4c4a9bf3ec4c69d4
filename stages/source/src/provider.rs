//! Where the provider of a repository shows a commit and its author. Of providers that are known; of others nothing is said.

use serde::Serialize;
use stages_git::{Address, Commit};

/// Where more is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Links {
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_url: Option<String>,
    /// Its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_url: Option<String>,
    /// A picture of its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
}

/// Providers by their host, or, where people run them, by its first word: what stands between a repository and a commit's id.
const PROVIDERS: [(&str, &str); 7] = [
    ("github", "commit"),
    ("gitlab", "-/commit"),
    ("gitea", "commit"),
    ("forgejo", "commit"),
    ("bitbucket.org", "commits"),
    ("codeberg.org", "commit"),
    ("gitea.com", "commit"),
];
/// Who hides an address at these has one that says who it is: how it ends, what stands before the name in it, where the name is a
/// page, and whether `NAME.png` is a picture there.
const HIDDEN: [(&str, &str, &str, bool); 3] = [
    ("@users.noreply.github.com", "+", "github.com", true),
    ("@users.noreply.gitlab.com", "-", "gitlab.com", false),
    ("@noreply.codeberg.org", "+", "codeberg.org", true),
];

/// The links of a commit of the repository at this address.
pub(crate) fn links(repo_url: &str, commit: &Commit) -> Links {
    let address = Address::read(repo_url).to_string();
    let Some((place, path)) = address.split_once('/') else { return Links::default() };
    // The port of another way than that of pages leads to none.
    let (host, port) = place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)));
    let shown = match port {
        Some(port) if repo_url.trim().starts_with("http") => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    // One of a single word is a machine's own name.
    let word = host.split('.').next().filter(|_| host.contains('.'));
    let is_it = |known: &str| word == Some(known) || (word.is_some() && host == known);
    if word == Some("bitbucket") && host != "bitbucket.org" {
        let page = of_bitbucket_server(path);
        let commit_url = page.map(|page| format!("https://{shown}/{page}/commits/{}", commit.revision));
        return Links { commit_url, ..Links::default() };
    }
    let Some((_, between)) = PROVIDERS.iter().find(|(known, _)| is_it(known)) else {
        return Links::default();
    };
    let (profile_url, avatar_url) = hidden(&commit.author, host).unwrap_or_default();
    let commit_url = Some(format!("https://{shown}/{path}/{between}/{}", commit.revision));
    Links { commit_url, profile_url, avatar_url }
}

/// The page of a repository of a Bitbucket that people run, which is cloned over HTTP below `scm`.
fn of_bitbucket_server(path: &str) -> Option<String> {
    let (project, repository) = path.strip_prefix("scm/").unwrap_or(path).split_once('/')?;
    let (kind, owner) = match project.strip_prefix('~') {
        Some(user) => ("users", user),
        None => ("projects", project),
    };
    (!repository.contains('/')).then(|| format!("{kind}/{owner}/repos/{repository}"))
}

/// The page of an author of a host's, and a picture: of `name <123+login@users.noreply.github.com>`.
fn hidden(author: &str, host: &str) -> Option<(Option<String>, Option<String>)> {
    let address = author.rsplit_once('<')?.1.strip_suffix('>')?;
    let (local, (_, before, at, has_picture)) = HIDDEN
        .iter()
        .find_map(|of| Some((address.strip_suffix(of.0)?, of)))
        .filter(|(_, (_, _, at, _))| *at == host)?;
    let numbered =
        local.split_once(before).filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    let login = numbered.map_or(local, |(_, login)| login);
    let is_login = !login.is_empty()
        && !login.starts_with(['.', '-'])
        && login.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let page = is_login.then(|| format!("https://{at}/{login}"))?;
    let picture = has_picture.then(|| format!("{page}.png"));
    Some((Some(page), picture))
}

#[cfg(test)]
mod tests {
    use stages_git::Commit;

    use super::{Links, links};

    fn of(url: &str, author: &str) -> Links {
        let commit = Commit {
            revision: "abc".to_owned(),
            author: author.to_owned(),
            date: String::new(),
            message: String::new(),
            tags: Vec::new(),
            signed: false,
        };
        links(url, &commit)
    }

    #[test]
    fn each_provider_shows_a_commit_in_its_own_way() {
        for (url, shown) in [
            ("git@github.com:team/mono.git", "https://github.com/team/mono/commit/abc"),
            ("https://x:secret@gitlab.com/a/b/c.git", "https://gitlab.com/a/b/c/-/commit/abc"),
            ("ssh://git@altssh.gitlab.com:443/a/b.git", "https://gitlab.com/a/b/-/commit/abc"),
            ("https://bitbucket.org/team/mono", "https://bitbucket.org/team/mono/commits/abc"),
            ("https://codeberg.org/team/mono", "https://codeberg.org/team/mono/commit/abc"),
            ("https://gitlab.example.com:8443/a/b", "https://gitlab.example.com:8443/a/b/-/commit/abc"),
            ("ssh://git@gitea.example.com:2222/a/b.git", "https://gitea.example.com/a/b/commit/abc"),
            (
                "https://bitbucket.example.com/scm/team/mono.git",
                "https://bitbucket.example.com/projects/team/repos/mono/commits/abc",
            ),
            (
                "ssh://git@bitbucket.example.com:7999/~ada/mono.git",
                "https://bitbucket.example.com/users/ada/repos/mono/commits/abc",
            ),
        ] {
            assert_eq!(of(url, "Ada <ada@example.com>").commit_url.as_deref(), Some(shown));
        }
        for other in [
            "https://git.example.com/a/b",
            "https://github/a/b",
            "https://notgithub.com/a/b",
            "https://bitbucket.example.com/a",
            "https://bitbucket.example.com/scm/a/b/c",
            "/srv/github.com/a",
        ] {
            assert_eq!(of(other, "Ada <ada@example.com>"), Links::default(), "{other}");
        }
    }

    #[test]
    fn an_author_is_shown_where_the_address_says_who_it_is() {
        let url = "https://github.com/a/b";
        let shown = of(url, "Ada <12+ada-l@users.noreply.github.com>");
        assert_eq!(shown.profile_url.as_deref(), Some("https://github.com/ada-l"));
        assert_eq!(shown.avatar_url.as_deref(), Some("https://github.com/ada-l.png"));
        for nobody in [
            "Ada <ada@example.com>",
            "Ada <x/../y@users.noreply.github.com>",
            "Ada <1+@users.noreply.github.com>",
            "Ada <..@users.noreply.github.com>",
            "Ada <12-ada@users.noreply.gitlab.com>",
            "Ada",
        ] {
            assert_eq!(of(url, nobody).profile_url, None, "{nobody}");
        }
        let shown = of("https://gitlab.com/a/b", "Ada <12-ada-l@users.noreply.gitlab.com>");
        assert_eq!(
            (shown.profile_url.as_deref(), shown.avatar_url),
            (Some("https://gitlab.com/ada-l"), None)
        );
        let shown = of("git@codeberg.org:a/b.git", "Ada <ada@noreply.codeberg.org>");
        assert_eq!(shown.profile_url.as_deref(), Some("https://codeberg.org/ada"));
        assert_eq!(shown.avatar_url.as_deref(), Some("https://codeberg.org/ada.png"));
    }
}
