//! Repositories for tests.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::poll;
use git2::{Repository, Signature, Time};
use stages_git::{Checkout, Checkouts, FetchError, RepositoryUrl};

/// A commit to a branch of the repository in this directory, which is made where there is none; its only file holds the text.
pub(crate) fn commit(directory: &Path, branch: &str, text: &str) -> String {
    let made = Repository::init_bare(directory).unwrap();
    let mut tree = made.treebuilder(None).unwrap();
    tree.insert("a.yaml", made.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
    let tree = made.find_tree(tree.write().unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    let name = format!("refs/heads/{branch}");
    let parent = made.find_reference(&name).ok().map(|of| of.peel_to_commit().unwrap());
    let parents: Vec<_> = parent.iter().collect();
    made.commit(Some(&name), &who, &who, text, &tree, &parents).unwrap().to_string()
}

/// Fetches that hang.
pub(crate) struct Hanging {
    _fetches: Vec<BoxFuture<'static, Result<Checkout, Arc<FetchError>>>>,
    _silent: TcpListener,
}

/// Begins as many fetches as such checkouts have open at a time, none of which goes on: whatever is fetched while they are held waits.
pub(crate) async fn all_slots_taken(checkouts: &Checkouts) -> Hanging {
    let silent = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut fetches = Vec::new();
    for host in 1..100 {
        let url = RepositoryUrl::read(&format!("http://127.0.0.{host}:{port}/a.git")).unwrap();
        let checkouts = checkouts.clone();
        let mut fetch: BoxFuture<'static, _> =
            Box::pin(async move { checkouts.checkout(&url, "main").await });
        assert!(poll!(&mut fetch).is_pending());
        fetches.push(fetch);
    }
    Hanging { _fetches: fetches, _silent: silent }
}
