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

/// Providers by their host: what stands between a repository and a commit's id.
const PROVIDERS: [(&str, &str); 4] = [
    ("github.com", "commit"),
    ("gitlab.com", "-/commit"),
    ("bitbucket.org", "commits"),
    ("codeberg.org", "commit"),
];

/// The links of a commit of the repository at this address.
pub(crate) fn links(repo_url: &str, commit: &Commit) -> Links {
    let address = Address::read(repo_url).to_string();
    let Some((host, _)) = address.split_once('/') else { return Links::default() };
    let Some((_, between)) = PROVIDERS.iter().find(|(known, _)| *known == host) else {
        return Links::default();
    };
    let commit_url = Some(format!("https://{address}/{between}/{}", commit.revision));
    // Who hides an address at GitHub has one that says who it is.
    let login = (host == "github.com").then(|| hidden_login(&commit.author)).flatten();
    Links {
        commit_url,
        profile_url: login.as_ref().map(|login| format!("https://github.com/{login}")),
        avatar_url: login.map(|login| format!("https://github.com/{login}.png")),
    }
}

/// `name <123+login@users.noreply.github.com>`.
fn hidden_login(author: &str) -> Option<String> {
    let address = author.rsplit_once('<')?.1.strip_suffix('>')?;
    let local = address.strip_suffix("@users.noreply.github.com")?;
    let login = local.split_once('+').map_or(local, |(_, login)| login);
    let is_login =
        !login.is_empty() && login.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_login.then(|| login.to_owned())
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
            ("https://bitbucket.org/team/mono", "https://bitbucket.org/team/mono/commits/abc"),
            ("https://codeberg.org/team/mono", "https://codeberg.org/team/mono/commit/abc"),
        ] {
            assert_eq!(of(url, "Ada <ada@example.com>").commit_url.as_deref(), Some(shown));
        }
        assert_eq!(of("https://git.example.com/a/b", "Ada <ada@example.com>"), Links::default());
    }

    #[test]
    fn an_author_is_shown_where_the_address_says_who_it_is() {
        let url = "https://github.com/a/b";
        let shown = of(url, "Ada <12+ada-l@users.noreply.github.com>");
        assert_eq!(shown.profile_url.as_deref(), Some("https://github.com/ada-l"));
        assert_eq!(shown.avatar_url.as_deref(), Some("https://github.com/ada-l.png"));
        for nobody in ["Ada <ada@example.com>", "Ada <x/../y@users.noreply.github.com>", "Ada"] {
            assert_eq!(of(url, nobody).profile_url, None, "{nobody}");
        }
    }
}
