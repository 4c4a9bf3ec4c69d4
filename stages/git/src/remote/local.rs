//! A repository of this machine, fetched by the library itself.

use std::sync::Arc;

use git2::{AutotagOption, ErrorCode, FetchOptions, Oid, RemoteCallbacks};
use tokio_util::sync::CancellationToken;

use super::clone_dir::CloneDir;
use super::config::Config;
use super::{FetchError, RepositoryUrl, bare, blocking};

pub(super) async fn fetch(
    url: &RepositoryUrl,
    clone: &Arc<CloneDir>,
    revision: &str,
    config: &Config,
) -> Result<Oid, FetchError> {
    let stop = CancellationToken::new();
    // What runs on the other thread ends once nobody waits for it.
    let _cancel = stop.clone().drop_guard();
    let (url, clone, revision) = (url.clone(), clone.clone(), revision.to_owned());
    let (limit, series) = (config.fetch_bytes, config.series.clone());
    blocking(move || {
        let mut received = 0;
        let fetched = copy(&url, &clone, &revision, limit, (&stop, &mut received));
        series.received(received);
        fetched
    })
    .await
}

fn copy(
    url: &RepositoryUrl,
    clone: &CloneDir,
    revision: &str,
    limit: u64,
    (stop, received): (&CancellationToken, &mut u64),
) -> Result<Oid, FetchError> {
    let clone = bare::prepare(clone, url)?;
    let path = url.url().and_then(|url| url.to_file_path().ok());
    let path = path.ok_or(FetchError::Address { why: "it is no path of this machine" })?;
    let gone = || FetchError::NoRepository { url: url.to_string() };
    if !path.exists() {
        return Err(gone());
    }
    let mut remote = clone.remote_anonymous(path.to_str().ok_or_else(gone)?).map_err(|_| gone())?;
    let mut too_large = false;
    let fetched = {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.transfer_progress(|progress| {
            *received = progress.received_bytes() as u64;
            too_large = *received > limit;
            !too_large && !stop.is_cancelled()
        });
        let mut options = FetchOptions::new();
        options.remote_callbacks(callbacks).download_tags(AutotagOption::None).prune(git2::FetchPrune::On);
        let what = [
            "+refs/heads/*:refs/remotes/origin/*",
            "+refs/tags/*:refs/tags/*",
            "+HEAD:refs/remotes/origin/HEAD",
        ];
        remote.fetch(&what, Some(&mut options), None)
    };
    match fetched {
        Ok(()) => {}
        Err(_) if too_large => return Err(FetchError::TooLarge { url: url.to_string(), limit }),
        Err(_) if stop.is_cancelled() => return Err(FetchError::Stopping),
        Err(error) if error.code() == ErrorCode::NotFound => return Err(gone()),
        Err(error) => {
            return Err(FetchError::Damaged { url: url.to_string(), why: error.message().to_owned() });
        }
    }
    let none =
        || FetchError::NoRevision { url: url.to_string(), revision: crate::shown(revision), branches: None };
    let names =
        [format!("refs/remotes/origin/{revision}"), format!("refs/tags/{revision}"), revision.to_owned()];
    let named = names.iter().find_map(|name| clone.revparse_single(name).ok());
    named.and_then(|object| object.peel_to_commit().ok()).map(|commit| commit.id()).ok_or_else(none)
}
