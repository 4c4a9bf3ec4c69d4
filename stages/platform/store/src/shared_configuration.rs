//! The repository that runtimes have their configuration in together, and the Git server that has it: set by an admin, or by the first
//! runtime that suggests one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::audit::By;
use crate::error::StoreError;
use crate::report::Millis;
use crate::settings::{set_setting, setting};
use crate::statement::Statement;
use crate::store::Store;

const NAME: &str = "shared-configuration";
/// The longest URL.
const LONGEST: usize = 500;
/// What the URL of a repository looks like.
const GRAMMAR: &str =
    "the URL of a repository is https://HOST/OWNER/REPO.git, with /PATH and ?ref=BRANCH behind it if need be";

/// Where runtimes have their configuration together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedConfiguration {
    /// The kind of the Git server, such as `GITHUB`; `None`: that is not known.
    pub git_provider: Option<String>,
    /// The URL of its API; `None`: that is not known.
    pub git_api_url: Option<String>,
    /// The URL of the repository, with the path and the branch in it.
    pub repository: String,
}

/// The host of a URL, and what stands behind it.
fn parts(url: &str) -> Result<(&str, &str), &'static str> {
    if url.len() > LONGEST {
        return Err("a URL has at most 500 bytes");
    }
    let rest = url.strip_prefix("https://").ok_or("a URL begins with https://")?;
    let (host, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if host.contains('@') {
        return Err("a URL has no user and no token in it: each runtime has its own");
    }
    let is_well = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && !"#\\".contains(letter);
    if host.is_empty() || !host.chars().all(is_well) || !rest.chars().all(is_plain) {
        return Err("a URL has a host, and no space, '#' or '\\'");
    }
    Ok((host, rest))
}

/// Whether each part of a path is a name.
fn are_names<'p>(mut path: impl Iterator<Item = &'p str>) -> bool {
    path.all(|part| !matches!(part, "" | "." | ".."))
}

impl SharedConfiguration {
    /// Whether the URLs can be used, by whoever has a token of their own.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), &'static str> {
        if let Some(url) = &self.git_api_url
            && parts(url)?.1.contains('?')
        {
            return Err("the URL of a Git server's API has no query");
        }
        let (_, rest) = parts(&self.repository)?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let names: Vec<&str> = path.split('/').skip(1).collect();
        let is_repository = |name: &&str| name.len() > 4 && name.ends_with(".git");
        let has_owner = names.iter().position(is_repository).is_some_and(|at| at > 0);
        let is_branch = |query: &str| {
            query
                .strip_prefix("ref=")
                .is_some_and(|branch| !branch.is_empty() && !branch.contains(['&', '?']))
        };
        if !has_owner || !are_names(names.into_iter()) || !query.is_none_or(is_branch) {
            return Err(GRAMMAR);
        }
        Ok(())
    }
}

impl Store {
    /// Where runtimes have their configuration together; `None`: nobody said so.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn shared_configuration(&self) -> Result<Option<SharedConfiguration>, StoreError> {
        setting(&mut self.read().await?, NAME).await
    }

    /// Sets where that is.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn set_shared_configuration(
        &self,
        by: &By,
        shared: &SharedConfiguration,
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let body = serde_json::to_string(shared).map_err(StoreError::from)?;
        self.change(vec![set_setting(NAME, &body), by.did("shared-configuration.set", &body, now)]).await
    }

    /// Sets it where nobody has; what holds then.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn suggest_shared_configuration(
        &self,
        by: &By,
        shared: SharedConfiguration,
        now: Millis,
    ) -> Result<SharedConfiguration, Arc<StoreError>> {
        let sql = "INSERT INTO settings (name, body) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        let body = serde_json::to_string(&shared).map_err(StoreError::from)?;
        let set = Statement::must(sql, [NAME.into(), (&*body).into()]);
        match self.whether(vec![set, by.did("shared-configuration.set", &body, now)]).await? {
            true => Ok(shared),
            // Whoever said so before was not taken back since: nobody can.
            false => Ok(self.shared_configuration().await?.unwrap_or(shared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(repository: &str, api: Option<&str>) -> Result<(), &'static str> {
        let (git_api_url, repository) = (api.map(str::to_owned), repository.to_owned());
        SharedConfiguration { git_provider: None, git_api_url, repository }.check()
    }

    #[test]
    fn a_repository_may_be_below_groups_with_a_path_and_a_branch_behind_it() {
        for repository in [
            "https://git.example.com/shop/isc.git",
            "https://git.example.com:8443/shop/isc.git/runtimes/eu?ref=main",
            "https://gitlab.com/group/part/isc.git?ref=feature/one",
            "https://[2001:db8::1]/scm/shop/isc.git",
        ] {
            assert_eq!(check(repository, Some("https://git.example.com/api/v3")), Ok(()), "{repository}");
        }
    }

    #[test]
    fn anything_else_is_refused_and_a_token_is_not_repeated() {
        let token = "a URL has no user and no token in it: each runtime has its own";
        let letters = "a URL has a host, and no space, '#' or '\\'";
        let long = format!("https://git.example.com/shop/{}.git", "a".repeat(LONGEST));
        for (repository, said) in [
            ("git@git.example.com:shop/isc.git", "a URL begins with https://"),
            ("http://git.example.com/shop/isc.git", "a URL begins with https://"),
            ("", "a URL begins with https://"),
            (&*long, "a URL has at most 500 bytes"),
            ("https://ada:secret@git.example.com/shop/isc.git", token),
            ("https://secret@git.example.com/shop/isc.git", token),
            ("https:///shop/isc.git", letters),
            ("https://git.example.com/shop/isc.git#main", letters),
            ("https://git.example.com/shop/i sc.git", letters),
            ("https://git.example.com\\@evil/shop/isc.git", token),
            ("https://git.example.com", GRAMMAR),
            ("https://git.example.com/shop/isc", GRAMMAR),
            ("https://git.example.com/isc.git", GRAMMAR),
            ("https://git.example.com/shop/.git", GRAMMAR),
            ("https://git.example.com/shop/isc.git/", GRAMMAR),
            ("https://git.example.com/shop/isc.git/../other", GRAMMAR),
            ("https://git.example.com/shop/isc.git?ref=", GRAMMAR),
            ("https://git.example.com/shop/isc.git?access_token=secret", GRAMMAR),
            ("https://git.example.com/shop/isc.git?ref=main&access_token=secret", GRAMMAR),
        ] {
            assert_eq!(check(repository, None), Err(said), "{repository}");
        }
        let well = "https://git.example.com/shop/isc.git";
        for (api, said) in [
            ("git.example.com", "a URL begins with https://"),
            ("https://secret@git.example.com/api", token),
            ("https://git.example.com/api?token=secret", "the URL of a Git server's API has no query"),
        ] {
            assert_eq!(check(well, Some(api)), Err(said), "{api}");
        }
    }
}
