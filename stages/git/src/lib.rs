//! Git in the process: what a repository holds, and which commits changed which application.
//!
//! The library is `git2` (libgit2), compiled in without its own TLS and SSH. What was looked at:
//! - `gix`, in Rust alone: cannot push yet, and whoever commits, rebases and pushes needs that. Two libraries for one format
//!   are one too many.
//! - `git2` with `https` and `ssh`: brings OpenSSL, a second provider of TLS beside the one that everything else here uses,
//!   and its time limits can be set through `unsafe` alone. So it speaks to no server itself: [`remote`] does.
//! - the programs `git` and `ssh`: the image holds neither, and a process for each application and commit is what takes the
//!   incumbent's way minutes.
//!
//! Neither library filters blobs while it fetches.

mod address;
pub mod application;
mod build_environment;
mod draft;
mod error;
mod file_change;
mod jsonnet;
mod made_from;
mod manifest_files;
pub mod manifests;
mod paths;
mod pattern;
pub mod remote;
mod repository;
mod series;
mod snapshot;
#[cfg(test)]
mod testing;
mod trees;
pub mod walk;
pub mod yaml;

pub use address::Address;
pub use draft::{Content, DraftError, MOST_FILES, NewCommit, NewFile};
pub use error::{GitError, in_one_line};
pub use file_change::{BesideParent, FileContent, FileId, unified};
pub use git2::Oid;
pub use made_from::MadeFrom;
pub use manifest_files::{ManifestFiles, file_pattern};
pub use paths::{MAX_SOURCES, Paths};
pub use remote::{Checkout, Checkouts, FetchError, RepositoryUrl, UrlPrefix};
pub use repository::{Commit, GitRepository};
pub use series::GitSeries;
pub use snapshot::{Listed, Snapshot, join, shown};
pub use stages_client::{SyncedSources, has_commits, synced_sources};
