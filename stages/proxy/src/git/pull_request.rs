//! Pull requests, which GitLab calls merge requests: of one branch of a repository into another.

use async_graphql::SimpleObject;

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

impl PullRequest {
    /// One that is there.
    pub(super) fn new(number: u64, title: String, url: String, of: &NewPullRequest) -> Self {
        Self { number, title, url, head: of.head.clone(), base: of.base.clone(), is_new: false }
    }
}
