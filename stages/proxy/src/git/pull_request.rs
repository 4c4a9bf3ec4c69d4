//! Pull requests, which GitLab calls merge requests: of one branch of a repository into another.

use async_graphql::SimpleObject;
use stages_git::remote::Named;

use crate::error::ActError;

/// Characters of a title: no provider takes more.
const TITLE: usize = 255;
/// Bytes of a description: the least that a provider takes.
const DESCRIPTION: usize = 32 << 10;

/// A pull request that is to be.
pub(crate) struct NewPullRequest {
    pub(crate) title: String,
    pub(crate) description: String,
    /// The branch that is to be merged.
    pub(crate) head: String,
    /// The one that it is to be merged into.
    pub(crate) base: String,
}

/// A pull request.
#[derive(SimpleObject)]
pub(crate) struct PullRequest {
    /// As people call it within the repository.
    pub(super) number: u64,
    pub(super) title: String,
    /// Its page at the provider.
    pub(super) url: String,
    pub(super) head: String,
    pub(super) base: String,
    /// Whether it was opened by this. Else it was there for the same branches, with whatever title it has.
    pub(super) is_new: bool,
}

impl NewPullRequest {
    /// One whose texts a provider takes.
    pub(super) fn checked(self) -> Result<Self, ActError> {
        let wrong = |why: String| Err(ActError::Wrong(why));
        let title = self.title.trim();
        if title.is_empty() || title.chars().count() > TITLE || title.contains(char::is_control) {
            return wrong(format!("a title is one line of at most {TITLE} characters"));
        }
        if self.description.len() > DESCRIPTION || self.description.contains('\0') {
            return wrong(format!("a description has at most {DESCRIPTION} bytes, none of them 0"));
        }
        if self.head == self.base {
            return wrong("head and base are the same branch: there is nothing to merge".to_owned());
        }
        Ok(Self { title: title.to_owned(), ..self })
    }
}

/// Whether a pull request can be merged into what is called so in a repository: a tag and a commit never move.
pub(super) fn takes_pull_requests(named: &Named, base: &str) -> Result<(), ActError> {
    let is_of = |names: &[String]| names.binary_search_by(|name| (**name).cmp(base)).is_ok();
    if is_of(&named.branches) {
        return Ok(());
    }
    let shown = stages_git::shown(base);
    let is_id = (7..=64).contains(&base.len()) && base.bytes().all(|byte| byte.is_ascii_hexdigit());
    let what = match (is_of(&named.tags), is_id) {
        (true, _) => "a tag",
        (false, true) => "a commit",
        (false, false) => {
            return Err(ActError::NotFound(format!("there is no branch {shown} in the repository")));
        }
    };
    Err(ActError::Wrong(format!(
        "{shown} is {what}, and a pull request is merged into a branch: commit to the branch that it was made of, and have the \
         application follow that branch, or what is tagged of it next"
    )))
}

impl PullRequest {
    /// One that is there.
    pub(super) fn new(number: u64, title: String, url: String, of: &NewPullRequest) -> Self {
        Self { number, title, url, head: of.head.clone(), base: of.base.clone(), is_new: false }
    }
}
