//! Repositories of a provider, and their files: read and committed to as whoever asks, with the token that they registered, and
//! their branches brought together by pull requests of theirs.
//!
//! takes: who asks, an integration, a repository - gives: what they see of it, their commit, or their pull request - calls: the
//! provider's API and its Git server, both with their token - fails: what they may not see is not there; a commit is whole or is
//! not
//!
//! Clones are shared, and nobody reads of one what its server did not let them fetch just now.

use async_graphql::{InputObject, SimpleObject};
use jiff::Timestamp;
use pipeline_core::ExposeSecret as _;
use stages_client::Url;
use stages_git::remote::{Credential, Named};
use stages_git::{Checkouts, Content, NewCommit, NewFile, RepositoryUrl, Snapshot};

use super::forge::{Forge, Person};
use super::integrations::Integrations;
use super::provider::is_of;
use super::pull_request::{NewPullRequest, PullRequest, takes_pull_requests};
use super::repository::Repository;
use crate::account::Account;
use crate::error::ActError;

/// The most bytes of a file that is read.
const MAX_FILE: usize = 1 << 20;
/// The most names of a directory that are listed.
const MAX_NAMES: usize = 2_000;
/// The most branches, and the most tags, that are listed.
const MAX_BRANCHES: usize = 2_000;
/// The most bytes of a commit's message.
const MAX_MESSAGE: usize = 8 << 10;
/// How many repositories a page has where no number is asked for, and the most that it has.
const PAGE: (u32, u32) = (30, 100);

/// Reads and changes repositories of people. Cloning shares.
#[derive(Clone)]
pub(crate) struct GitFiles {
    pub(crate) integrations: Integrations,
    pub(crate) checkouts: Checkouts,
}

/// A page of repositories.
#[derive(SimpleObject)]
pub(crate) struct RepositoriesPage {
    data: Vec<Repository>,
    page: u32,
    /// Of this page.
    count: u32,
    has_next: bool,
}

/// An organisation, or a group.
#[derive(SimpleObject)]
pub(crate) struct GitOrganization {
    name: String,
}

/// Branches and tags, sorted: the first 2,000 of each.
#[derive(SimpleObject)]
pub(crate) struct RepositoryBranchesAndTagsOutput {
    branches: Vec<String>,
    tags: Vec<String>,
}

/// A name in a directory.
#[derive(SimpleObject)]
pub(crate) struct RepositoryFile {
    /// From the root of the repository.
    path: String,
    is_directory: bool,
}

/// A directory of a repository: its first 2,000 names.
#[derive(SimpleObject)]
pub(crate) struct RepositoryFiles {
    /// The commit that it was read of.
    revision: String,
    files: Vec<RepositoryFile>,
}

/// A file of a repository.
#[derive(SimpleObject)]
pub(crate) struct GitFile {
    path: String,
    /// The commit that it was read of: given to `commitFiles`, what others change meanwhile is merged, or a conflict.
    revision: String,
    data: String,
}

/// A file that is to be.
#[derive(InputObject)]
pub(crate) struct CommitFile {
    path: String,
    /// The commit that the file was read of; none: the branch as it is now.
    revision: Option<String>,
    data: String,
}

/// Whoever made a commit.
#[derive(SimpleObject)]
pub(crate) struct Committer {
    name: String,
    email: Option<String>,
    avatar_url: Option<String>,
    profile_url: Option<String>,
}

/// A commit.
#[derive(SimpleObject)]
pub(crate) struct Commit {
    sha: String,
    committer: Committer,
    date: String,
    message: String,
    tags: Vec<String>,
}

/// A commit that somebody asks for.
pub(crate) struct CommitRequest {
    /// The branch; `None`: the repository's default one.
    pub(crate) branch: Option<String>,
    /// The branch or commit that a new branch begins at; `None`: the branch is there.
    pub(crate) base: Option<String>,
    /// The branch that a pull request is to merge it into, which must exist.
    pub(crate) target: Option<String>,
    pub(crate) files: Vec<NewFile>,
    /// The first line of its message, and the text below that.
    pub(crate) message: (Option<String>, Option<String>),
    pub(crate) force: bool,
    pub(crate) allow_empty: bool,
}

/// A pull request that somebody asks for.
pub(crate) struct RequestedPull {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) head: String,
    /// `None`: the repository's default branch.
    pub(crate) base: Option<String>,
}

/// A repository, and the credentials of whoever works with it.
struct OpenedRepository {
    forge: Forge,
    repository: Repository,
    url: RepositoryUrl,
    credential: Credential,
}

impl From<String> for GitOrganization {
    fn from(name: String) -> Self {
        Self { name }
    }
}

impl CommitFile {
    pub(crate) fn written(self) -> NewFile {
        NewFile {
            path: self.path,
            content: Content::Written(self.data.into_bytes()),
            revision: self.revision,
        }
    }
}

impl GitFiles {
    /// A page of the repositories that somebody may work with.
    pub(crate) async fn repositories(
        &self,
        who: &Account,
        integration: &str,
        (page, limit): (Option<u32>, Option<u32>),
    ) -> Result<RepositoriesPage, ActError> {
        let (usual, most) = PAGE;
        let (page, limit) = (page.unwrap_or(1).max(1), limit.unwrap_or(usual).clamp(1, most));
        let (data, has_next) = self.forge(who, integration).await?.0.repositories(page, limit).await?;
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Ok(RepositoriesPage { data, page, count, has_next })
    }

    pub(crate) async fn organizations(
        &self,
        who: &Account,
        integration: &str,
    ) -> Result<Vec<GitOrganization>, ActError> {
        let names = self.forge(who, integration).await?.0.organizations().await?;
        Ok(names.into_iter().map(GitOrganization::from).collect())
    }

    pub(crate) async fn branches(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
    ) -> Result<RepositoryBranchesAndTagsOutput, ActError> {
        let opened = self.open(who, integration, repo).await?;
        let Named { mut branches, mut tags } =
            self.checkouts.named_as(&opened.url, &opened.credential).await?;
        branches.truncate(MAX_BRANCHES);
        tags.truncate(MAX_BRANCHES);
        Ok(RepositoryBranchesAndTagsOutput { branches, tags })
    }

    /// What a directory holds; an empty path is the root.
    pub(crate) async fn list(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
        (revision, path): (String, String),
    ) -> Result<RepositoryFiles, ActError> {
        let list = move |snapshot: &Snapshot<'_>| {
            let all = snapshot.list(&path)?;
            let found = !all.is_empty() || snapshot.is_directory(&path)?;
            Ok(found.then_some(all).ok_or(path))
        };
        let (revision, found) = self.look(who, (integration, repo), &revision, list).await?;
        let all = found.map_err(|path| missing(&path))?;
        let file = |of: stages_git::Listed| RepositoryFile { path: of.path, is_directory: of.is_directory };
        Ok(RepositoryFiles { revision, files: all.into_iter().take(MAX_NAMES).map(file).collect() })
    }

    /// A file of text.
    pub(crate) async fn read(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
        (revision, path): (String, String),
    ) -> Result<GitFile, ActError> {
        let of = path.clone();
        let read = move |snapshot: &Snapshot<'_>| snapshot.read(&of, MAX_FILE);
        let (revision, data) = self.look(who, (integration, repo), &revision, read).await?;
        let data = data.ok_or_else(|| missing(&path))?;
        let data = String::from_utf8(data)
            .map_err(|_| ActError::Wrong(format!("{} is no text", stages_git::shown(&path))))?;
        Ok(GitFile { path, revision, data })
    }

    /// Commits to a branch, as somebody.
    pub(crate) async fn commit(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
        change: CommitRequest,
    ) -> Result<Commit, ActError> {
        let message = message(&change)?;
        let opened = self.open(who, integration, repo).await?;
        let branch = match change.branch {
            Some(branch) => branch,
            None if change.base.is_some() => {
                return Err(ActError::Wrong("branchName is to say how the new branch is called".to_owned()));
            }
            None => default_branch(&opened.repository),
        };
        if let Some(target) = &change.target {
            let named = self.checkouts.named_as(&opened.url, &opened.credential).await?;
            takes_pull_requests(&named, target)?;
        }
        let Person { username: _, name, email } = opened.forge.me().await?;
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let new = NewCommit {
            branch,
            base: change.base,
            files: change.files,
            message: message.clone(),
            name: name.clone(),
            email: email.clone(),
            seconds: now.as_second(),
            force: change.force,
            allow_empty: change.allow_empty,
        };
        let done = self.checkouts.commit_as(&opened.url, &opened.credential, new).await?;
        tracing::info!(who = who.name, repository = repo, commit = %done.id, rebased = done.rebased, "committed");
        let committer = Committer { name, email: Some(email), avatar_url: None, profile_url: None };
        Ok(Commit { sha: done.id.to_string(), committer, date: now.to_string(), message, tags: Vec::new() })
    }

    /// Opens a pull request as somebody; both branches must exist.
    pub(crate) async fn pull_request(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
        wanted: RequestedPull,
    ) -> Result<PullRequest, ActError> {
        let opened = self.open(who, integration, repo).await?;
        let RequestedPull { title, description, head, base } = wanted;
        let base = base.unwrap_or_else(|| default_branch(&opened.repository));
        let wanted = NewPullRequest { title, description: description.unwrap_or_default(), head, base };
        let wanted = wanted.checked()?;
        let named = self.checkouts.named_as(&opened.url, &opened.credential).await?;
        if named.branches.binary_search(&wanted.head).is_err() {
            let branch = stages_git::shown(&wanted.head);
            return Err(ActError::NotFound(format!("there is no branch {branch} in the repository")));
        }
        takes_pull_requests(&named, &wanted.base)?;
        let pull = opened.forge.pull_request(&opened.repository, &wanted).await?;
        tracing::info!(
            who = who.name,
            repository = repo,
            number = pull.number,
            new = pull.is_new,
            "pull request"
        );
        Ok(pull)
    }

    /// Reads a revision as somebody; gives the commit that it means, and what was read.
    async fn look<T: Send + 'static>(
        &self,
        who: &Account,
        (integration, repo): (&str, &str),
        revision: &str,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T, stages_git::GitError> + Send + 'static,
    ) -> Result<(String, T), ActError> {
        let opened = self.open(who, integration, repo).await?;
        let at = self.checkouts.checkout_as(&opened.url, revision, &opened.credential).await?;
        let read = at.read(move |repository, commit| read(&repository.snapshot(commit)?)).await?;
        Ok((at.commit.to_string(), read?))
    }

    async fn forge(&self, who: &Account, integration: &str) -> Result<(Forge, Credential, Url), ActError> {
        let registered = self.integrations.token_of(integration, who).await?;
        let of = registered.integration;
        let who_asks = (Some(&*registered.username), &registered.token);
        let forge = Forge::new(of.provider, &of.api_url, who_asks, &self.integrations.calls).await?;
        let credential = Credential {
            from: format!("'{}'", who.name),
            username: Some(forge.of_git(&registered.username).to_owned()),
            password: Some(registered.token.expose_secret().to_owned().into()),
            ..Credential::default()
        };
        let api = Url::parse(&of.api_url).map_err(|_| ActError::Wrong("apiUrl is no URL".to_owned()))?;
        Ok((forge, credential, api))
    }

    async fn open(&self, who: &Account, integration: &str, repo: &str) -> Result<OpenedRepository, ActError> {
        let (forge, credential, api) = self.forge(who, integration).await?;
        let repository = forge.repository(repo).await?;
        let url = RepositoryUrl::read(&repository.clone_url)?;
        if !is_of(&api, url.as_str()) {
            return Err(ActError::Wrong(format!(
                "the provider says that the repository is at {}, and a token of {} is not sent there",
                url.host(),
                api.host_str().unwrap_or_default()
            )));
        }
        Ok(OpenedRepository { forge, repository, url, credential })
    }
}

/// The default branch of a repository; `main` for one without commits, which may have none.
fn default_branch(of: &Repository) -> String {
    match &*of.default_branch {
        "" => "main".to_owned(),
        branch => branch.to_owned(),
    }
}

fn missing(path: &str) -> ActError {
    ActError::NotFound(format!("there is no {} in the repository", stages_git::shown(path)))
}

/// The message of a commit; where none is given, one that names the files.
fn message(change: &CommitRequest) -> Result<String, ActError> {
    let (first, more) = &change.message;
    let first = first.as_deref().map(str::trim).filter(|first| !first.is_empty());
    let first = match (first, change.files.as_slice()) {
        (Some(first), _) => first.to_owned(),
        (None, [file]) => format!("Change {}", stages_git::shown(&file.path)),
        (None, files) => format!("Change {} files", files.len()),
    };
    let text = match more.as_deref().map(str::trim).filter(|more| !more.is_empty()) {
        Some(more) => format!("{first}\n\n{more}\n"),
        None => format!("{first}\n"),
    };
    match text.len() > MAX_MESSAGE || text.contains('\0') {
        true => Err(ActError::Wrong(format!(
            "what a commit says has at most {MAX_MESSAGE} bytes, none of them 0"
        ))),
        false => Ok(text),
    }
}
