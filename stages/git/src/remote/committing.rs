//! Commits of people, on branches elsewhere.
//!
//! takes: a [`NewCommit`], and the credential of whoever makes it - gives: the commit, once its branch holds it
//! calls: the repository's server, as them - fails: with a [`CommitError`]
//!
//! A commit is made on what the branch is now; where others push meanwhile, it is made anew on what they pushed. A branch that is
//! to be new is made with its commit, on what it begins at; a repository without branches takes its first commit. It is pushed
//! whole or not at all. Where a push breaks off, the branch is looked at: a commit that arrived is not made again.

use std::collections::BTreeMap;
use std::time::Duration;

use git2::Oid;

use super::checkouts::{Checkout, Checkouts, CloneGuard};
use super::push::{Push, Pushed};
use super::{Credential, FetchError, RepositoryUrl};
use crate::draft::{self, Draft, DraftError, NewCommit};

/// Tries to push what others push to as well.
const TRIES: u32 = 20;
/// The pause after a try doubles up to this one.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Tries where Git says that it cannot lock a branch: another push may hold it, or a branch stands above or below it.
const LOCKED_TRIES: u32 = 4;
/// What it says then.
const LOCKED: [&str; 2] = ["failed to update ref", "cannot lock ref"];
/// Revisions that the files of one commit may be of.
const REVISIONS: usize = 20;

/// A commit that its branch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub id: Oid,
    /// How often it was made anew, because others had pushed.
    pub rebased: u32,
}

/// Why there is no commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The repository could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It cannot be made.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The branch was to be made.
    #[error("there is a branch {branch} already: commit to it as it is, or name another one")]
    Exists {
        /// Which.
        branch: String,
    },
    /// The files are of too many revisions.
    #[error("the files of one commit may be of at most {REVISIONS} revisions")]
    Revisions,
    /// The server does not take it.
    #[error("{host} does not take the commit: {why}")]
    Refused {
        /// Who.
        host: String,
        /// Its words, one line.
        why: String,
    },
    /// Others were always faster.
    #[error("others pushed to {branch} each of {TRIES} times: nothing was committed, try again")]
    Busy {
        /// Where to.
        branch: String,
    },
    /// The connection broke, and the branch could not be looked at again.
    #[error("it is not known whether {branch} holds the commit {commit}: look at it before you try again")]
    InDoubt {
        /// Where to.
        branch: String,
        /// Which.
        commit: Oid,
        /// Why.
        source: FetchError,
    },
}

/// What may become of a commit, as metrics have it.
pub(crate) const COMMIT_OUTCOMES: [&str; 6] =
    ["busy", "committed", "conflict", "failed", "in_doubt", "refused"];

impl CommitError {
    /// One of [`COMMIT_OUTCOMES`].
    const fn outcome(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::Draft(DraftError::Conflict { .. }) | Self::Exists { .. } => "conflict",
            Self::InDoubt { .. } => "in_doubt",
            Self::Refused { .. } => "refused",
            Self::Fetch(_) | Self::Draft(_) | Self::Revisions => "failed",
        }
    }
}

/// Somebody's commit on its way.
struct Committing<'a> {
    checkouts: &'a Checkouts,
    url: &'a RepositoryUrl,
    who: &'a Credential,
    /// `refs/heads/…`.
    name: String,
    new: NewCommit,
    /// What the commit was to follow when they asked.
    base: Option<Oid>,
    /// The commits that revisions of files name.
    bases: BTreeMap<String, Oid>,
}

/// A branch, and what a commit on it is made on.
struct BranchState {
    held: CloneGuard,
    /// Where the branch is; `None`: there is none.
    at: Option<Oid>,
    /// What the commit follows; `None`: it is the first of the repository.
    follows: Option<Oid>,
}

/// What came of one try.
enum Try {
    Done(Oid),
    /// Others were faster, or it is not known what became of it.
    Again,
}

/// What was tried so far.
#[derive(Default)]
struct Tried {
    /// Commits that were sent, or would have been: each on another one of the branch.
    made: Vec<Oid>,
    /// Why it is not known what became of the last.
    doubt: Option<FetchError>,
    /// Tries that ended where the branch was locked.
    locked: u32,
}

impl Checkouts {
    /// Commits to a branch as whoever has a credential.
    ///
    /// # Errors
    /// [`CommitError`]. After any but [`CommitError::InDoubt`] the branch does not hold the commit.
    pub async fn commit_as(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
        new: NewCommit,
    ) -> Result<Committed, CommitError> {
        let done = self.try_commit_as(url, who, new).await;
        self.series().commit(done.as_ref().map_or_else(CommitError::outcome, |_| "committed"));
        done
    }

    async fn try_commit_as(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
        new: NewCommit,
    ) -> Result<Committed, CommitError> {
        draft::check(&new)?;
        let name = format!("refs/heads/{}", new.branch);
        let seen = self.seen(url, who, &name, &new).await?;
        if new.base.is_some() && seen.at.is_some() {
            return Err(CommitError::Exists { branch: new.branch });
        }
        let bases = self.bases(url, who, &new).await?;
        let committing = Committing { checkouts: self, url, who, name, new, base: seen.follows, bases };
        // Within this process one after another: they need not overtake each other.
        let Ok(_turn) = seen.held.turn().await else { return Err(FetchError::Stopping.into()) };
        committing.run().await
    }

    /// Looks at a branch, and at what it begins at where there is none.
    async fn seen(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
        name: &str,
        new: &NewCommit,
    ) -> Result<BranchState, FetchError> {
        let there = |found: Checkout| {
            let at = Some(found.commit);
            BranchState { held: found.held().clone(), at, follows: at }
        };
        match self.checkout_as(url, name, who).await {
            Err(FetchError::NoRevision { .. }) => {}
            looked => return looked.map(there),
        }
        if let Some(base) = &new.base {
            let found = self.checkout_as(url, base, who).await?;
            return Ok(BranchState { held: found.held().clone(), at: None, follows: Some(found.commit) });
        }
        match self.empty_as(url, who).await? {
            Some(held) => Ok(BranchState { held, at: None, follows: None }),
            // It has branches: of several first commits at once another one may have made this since it was looked for.
            None => self.checkout_as(url, name, who).await.map(there),
        }
    }

    /// The commits that the files' revisions name; they are here afterwards.
    async fn bases(
        &self,
        url: &RepositoryUrl,
        who: &Credential,
        new: &NewCommit,
    ) -> Result<BTreeMap<String, Oid>, CommitError> {
        let mut bases = BTreeMap::new();
        for revision in new.files.iter().filter_map(|file| file.revision.as_ref()) {
            if bases.contains_key(revision) {
                continue;
            }
            if bases.len() >= REVISIONS {
                return Err(CommitError::Revisions);
            }
            let found = self.checkout_as(url, revision, who).await?;
            bases.insert(revision.clone(), found.commit);
        }
        Ok(bases)
    }
}

impl Committing<'_> {
    async fn run(self) -> Result<Committed, CommitError> {
        let mut tried = Tried::default();
        for number in 0..TRIES {
            pause(number, tried.made.last()).await;
            match self.once(&mut tried).await? {
                Try::Done(id) => {
                    let rebased = u32::try_from(tried.made.len().saturating_sub(1)).unwrap_or(u32::MAX);
                    return Ok(Committed { id, rebased });
                }
                Try::Again => self.checkouts.series().commit_again(),
            }
        }
        let branch = self.new.branch;
        match (tried.made.last(), tried.doubt) {
            (Some(commit), Some(source)) => Err(CommitError::InDoubt { branch, commit: *commit, source }),
            _ => Err(CommitError::Busy { branch }),
        }
    }

    async fn once(&self, tried: &mut Tried) -> Result<Try, CommitError> {
        let now = match self.checkouts.seen(self.url, self.who, &self.name, &self.new).await {
            Ok(now) => now,
            // What was sent may have arrived: that is found out as long as there are tries.
            Err(_) if tried.doubt.is_some() => return Ok(Try::Again),
            Err(error) => return Err(error.into()),
        };
        if let Some(at) = now.at {
            if tried.doubt.is_some()
                && let Some(id) = arrived(&now.held, at, &tried.made).await?
            {
                return Ok(Try::Done(id));
            }
            if self.new.base.is_some() {
                return Err(CommitError::Exists { branch: self.new.branch.clone() });
            }
        }
        let draft = self.draft(&now).await?;
        if tried.made.last() != Some(&draft.id) {
            tried.made.push(draft.id);
        }
        let push = Push { name: &self.name, from: now.at, to: draft.id, pack: &draft.pack };
        match self.checkouts.push_as(self.url, self.who, &push).await {
            Ok(Pushed::Moved) => Ok(Try::Done(draft.id)),
            Ok(Pushed::Behind) => Ok(Try::Again),
            Ok(Pushed::Refused(why))
                if tried.locked < LOCKED_TRIES && LOCKED.iter().any(|words| why.contains(words)) =>
            {
                tried.locked += 1;
                Ok(Try::Again)
            }
            // Of two at once a server tells one so in words of its own. Where the branch has not moved, it means it.
            Ok(Pushed::Refused(why)) => {
                match self.checkouts.checkout_as(self.url, &self.name, self.who).await {
                    Ok(after) if Some(after.commit) != now.at => Ok(Try::Again),
                    _ => Err(CommitError::Refused { host: self.url.host(), why }),
                }
            }
            Err(error) if error.is_transient() => {
                tried.doubt = Some(error);
                Ok(Try::Again)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn draft(&self, now: &BranchState) -> Result<Draft, CommitError> {
        let (new, base, bases, follows) = (self.new.clone(), self.base, self.bases.clone(), now.follows);
        let draft = now.held.read(move |repository| repository.draft(follows, &new, base, &bases)).await?;
        Ok(draft?)
    }
}

/// The one of some commits that a branch holds.
async fn arrived(held: &CloneGuard, tip: Oid, made: &[Oid]) -> Result<Option<Oid>, FetchError> {
    let made = made.to_vec();
    held.read(move |repository| made.into_iter().find(|one| repository.follows(tip, *one))).await
}

/// None before the first try; then longer and longer ones, which differ between those who try at once.
async fn pause(number: u32, last: Option<&Oid>) {
    if number == 0 {
        return;
    }
    let longest = Duration::from_millis(50).saturating_mul(1 << number.min(6)).min(LONGEST_PAUSE);
    let share = last.and_then(|id| id.as_bytes().first()).map_or(1.0, |byte| f32::from(*byte) / 255.0);
    tokio::time::sleep(longest.mul_f32(0.5 + share / 2.0)).await;
}
