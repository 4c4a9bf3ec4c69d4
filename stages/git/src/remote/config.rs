//! What repositories elsewhere may cost, and which of them are read.

use std::path::PathBuf;
use std::time::Duration;

use super::RepositoryUrl;
use super::url::Scheme;
use crate::GitSeries;

/// What repositories may cost.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where clones are kept; nothing else may be in it.
    pub directory: PathBuf,
    /// Bytes of all clones. What is in use, and one fetch more, may be beyond.
    pub bytes: u64,
    /// Bytes of one fetch.
    pub fetch_bytes: u64,
    /// Bytes of one object: so much memory, and twice that, one may take while it is indexed.
    pub object_bytes: u64,
    /// Limit of connecting, TLS and SSH included.
    pub connect_timeout: Duration,
    /// Limit of hearing nothing.
    pub idle: Duration,
    /// Limit of a whole fetch.
    pub timeout: Duration,
    /// For so long a branch is where it was seen last; a commit is where it is for ever.
    pub fresh: Duration,
    /// For so long a repository that failed is not asked again, or for as long as its server says.
    pub pause: Duration,
    /// Fetches that receive much at the same time, and conversations with one host.
    pub concurrent: usize,
    /// Repositories of this machine (`file://`) are read.
    pub files: bool,
    /// What is counted.
    pub series: GitSeries,
}

impl Config {
    /// Clones in a directory, within limits that suit most.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            bytes: 4 << 30,
            fetch_bytes: 2 << 30,
            object_bytes: 100 << 20,
            connect_timeout: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            timeout: Duration::from_secs(600),
            fresh: Duration::from_secs(30),
            pause: Duration::from_secs(10),
            concurrent: 4,
            files: false,
            series: GitSeries::default(),
        }
    }

    /// Whether repositories of that kind are read.
    pub(super) fn reads(&self, url: &RepositoryUrl) -> bool {
        url.scheme() != Scheme::File || self.files
    }
}
