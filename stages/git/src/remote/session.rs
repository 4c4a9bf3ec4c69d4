//! From a revision's name to its commit on this machine: finds out what it means, and fetches what is not there.

use std::sync::Arc;

use git2::{Oid, Repository};

use super::access::Access;
use super::advertised::{Advertised, Ref};
use super::clone_dir::CloneDir;
use super::config::Config;
use super::connection::{Connection, Way};
use super::github_tokens::GitHubApps;
use super::http::{HttpCall, HttpExchange, Service};
use super::pack::{PackLimits, PackReceiver};
use super::push::{Push, Pushed};
use super::slots::Slot;
use super::ssh::{SshCall, SshChannel};
use super::url::Scheme;
use super::{FetchError, RepositoryUrl, bare, blocking, fetch as protocol, local};

/// Branches that are fetched to find a commit that the server does not send by its id.
const MOST_BRANCHES: usize = 1_000;

/// What the names of all branches and tags begin with.
const ALL: [&str; 2] = ["refs/heads/", "refs/tags/"];

/// What is fetched: names in the clone, and what they mean.
type Wanted = Vec<(String, Oid)>;

/// What a server is reached with.
pub(super) struct Reach<'a> {
    pub(super) config: &'a Config,
    pub(super) access: &'a Access,
    pub(super) apps: &'a GitHubApps,
    pub(super) slot: Arc<Slot>,
}

/// Fetches what a revision means into the clone.
pub(super) async fn fetch(
    url: &RepositoryUrl,
    clone: &Arc<CloneDir>,
    revision: &str,
    reach: Reach<'_>,
) -> Result<Oid, FetchError> {
    if url.scheme() == Scheme::File {
        return local::fetch(url, clone, revision, reach.config).await;
    }
    let session = Session { url, clone, reach };
    let is_id = (7..=40).contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let whole = bare::whole(revision);
    let mut is_again = false;
    loop {
        let mut connection = session.connect().await?;
        let found = advertised(url, &mut connection, &prefixes(revision)).await?;
        let named = named(&found.refs, revision);
        let first = match (named, whole) {
            (Some(of), _) => (bare::kept_as(&of.name, of.commit()), of.commit()),
            (None, Some(commit)) => (bare::kept_as(revision, commit), commit),
            (None, None) if is_id => return session.by_branches(revision).await,
            (None, None) => return Err(session.none(revision)),
        };
        let id = first.1;
        match session.take(&mut connection, &found, vec![first]).await {
            // A server may refuse to send a commit that no branch points at; one of SSH may end the connection then.
            Err(FetchError::Remote { .. }) if named.is_none() => {
                return session.by_branches(revision).await;
            }
            Err(FetchError::Connect { .. }) if named.is_none() && url.scheme() == Scheme::Ssh => {
                return session.by_branches(revision).await;
            }
            // The branch may have been pushed to since it was named, and points elsewhere now.
            Err(FetchError::Remote { .. }) if !is_again => is_again = true,
            taken => {
                taken?;
                let commit = session.in_clone(move |clone| Ok(bare::commit_of(clone, id))).await?;
                return commit.ok_or_else(|| session.none(revision));
            }
        }
    }
}

/// What the names of branches and tags begin with that a revision may mean.
fn prefixes(revision: &str) -> Vec<String> {
    let mut all = vec!["refs/tags/".to_owned()];
    if revision.starts_with("refs/") {
        all.push(revision.to_owned());
    } else if git2::Reference::is_valid_name(&format!("refs/heads/{revision}")) {
        all.push(format!("refs/heads/{revision}"));
    }
    all
}

/// What a revision means: as Argo CD reads it, a branch goes before a tag.
fn named<'a>(refs: &'a [Ref], revision: &str) -> Option<&'a Ref> {
    let forms = [revision.to_owned(), format!("refs/heads/{revision}"), format!("refs/tags/{revision}")];
    let is = |form: &String| refs.iter().find(|of| of.name == *form);
    forms.iter().filter(|form| *form == "HEAD" || form.starts_with("refs/")).find_map(is)
}

/// The branches and tags of a server.
pub(super) async fn refs(url: &RepositoryUrl, reach: &Reach<'_>) -> Result<Vec<Ref>, FetchError> {
    let mut connection = connect(url, Service::Upload, reach).await?;
    Ok(advertised(url, &mut connection, &ALL.map(str::to_owned)).await?.refs)
}

/// Pushes, over HTTP.
pub(super) async fn push(
    url: &RepositoryUrl,
    push: &Push<'_>,
    reach: &Reach<'_>,
) -> Result<Pushed, FetchError> {
    push.over(&mut connect(url, Service::Receive, reach).await?).await
}

/// What a server says that it has, or why it refuses.
async fn advertised(
    url: &RepositoryUrl,
    connection: &mut Connection,
    prefixes: &[String],
) -> Result<Advertised, FetchError> {
    match Advertised::read(connection, prefixes).await {
        Err(error @ FetchError::Protocol { .. }) => Err(connection.refusal_at_once(url).unwrap_or(error)),
        other => other,
    }
}

async fn connect(url: &RepositoryUrl, service: Service, reach: &Reach<'_>) -> Result<Connection, FetchError> {
    let (config, access, slot) = (reach.config, reach.access, &reach.slot);
    let credential = access.credentials.of(url);
    let (connect_timeout, idle) = (config.connect_timeout, config.idle);
    let credential = credential.as_ref();
    let way = if url.scheme() == Scheme::Ssh {
        let call = SshCall { url, credential, hosts: &access.hosts, connect_timeout };
        Way::Ssh(Box::new(slot.wait(Box::pin(SshChannel::open(call))).await?))
    } else {
        let call = HttpCall { url, service, credential, access, apps: reach.apps, connect_timeout, idle };
        Way::Http(Box::new(slot.wait(Box::pin(HttpExchange::open(call))).await?))
    };
    Ok(Connection::new(way, url.host(), idle, slot.clone()))
}

struct Session<'a> {
    url: &'a RepositoryUrl,
    clone: &'a Arc<CloneDir>,
    reach: Reach<'a>,
}

impl Session<'_> {
    fn none(&self, revision: &str) -> FetchError {
        self.none_on(None, revision)
    }

    fn none_on(&self, branches: Option<usize>, revision: &str) -> FetchError {
        FetchError::NoRevision { url: self.url.to_string(), revision: crate::shown(revision), branches }
    }

    async fn connect(&self) -> Result<Connection, FetchError> {
        connect(self.url, Service::Upload, &self.reach).await
    }

    /// Fetches all branches, and looks for a commit among what they follow.
    async fn by_branches(&self, revision: &str) -> Result<Oid, FetchError> {
        let mut connection = self.connect().await?;
        let found = advertised(self.url, &mut connection, &ALL.map(str::to_owned)).await?;
        let branches = found.refs.iter().filter(|of| of.name.starts_with("refs/heads/")).take(MOST_BRANCHES);
        let wanted: Wanted = branches.map(|of| (bare::kept_as(&of.name, of.commit()), of.commit())).collect();
        if wanted.is_empty() {
            return Err(self.none(revision));
        }
        let branches = (wanted.len() >= MOST_BRANCHES).then_some(MOST_BRANCHES);
        self.take(&mut connection, &found, wanted).await?;
        let id = revision.to_owned();
        let commit = self.in_clone(move |clone| Ok(bare::abbreviated(clone, &id))).await?;
        commit.ok_or_else(|| self.none_on(branches, revision))
    }

    /// Fetches what is not there of what is wanted, and names it.
    async fn take(
        &self,
        connection: &mut Connection,
        found: &Advertised,
        wanted: Wanted,
    ) -> Result<(), FetchError> {
        let of = wanted.clone();
        let (clone, url) = (self.clone.clone(), self.url.clone());
        let (missing, haves) = blocking(move || {
            let clone = &bare::prepare(&clone, &url)?;
            let mut missing: Vec<Oid> =
                of.iter().map(|(_, id)| *id).filter(|id| !bare::has(clone, *id)).collect();
            missing.sort_unstable();
            missing.dedup();
            Ok((missing, bare::haves(clone)))
        })
        .await?;
        if !missing.is_empty() {
            let config = self.reach.config;
            let limits = PackLimits { bytes: config.fetch_bytes, object: config.object_bytes };
            let series = config.series.clone();
            let receiver = PackReceiver::new(self.clone.path(), self.url, limits, series);
            protocol::fetch(connection, found, &missing, &haves, receiver).await?;
            let (url, all) = (self.url.clone(), self.clone.clone());
            self.in_clone(move |clone| {
                if let Some(commit) = missing.iter().find(|id| !bare::has(clone, **id)) {
                    return Err(FetchError::NotSent { url: url.to_string(), commit: *commit });
                }
                if bare::is_whole(clone, &missing, &haves) {
                    return Ok(());
                }
                bare::condemn(&all);
                let why = "a commit lacks what it follows, or its files".to_owned();
                Err(FetchError::Damaged { url: url.to_string(), why })
            })
            .await?;
        }
        let (url, refs) = (self.url.clone(), found.refs.clone());
        self.in_clone(move |clone| bare::name(clone, &url, &wanted, &refs)).await
    }

    async fn in_clone<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Repository) -> Result<T, FetchError> + Send + 'static,
    ) -> Result<T, FetchError> {
        let clone = self.clone.clone();
        blocking(move || act(&bare::open(clone.path())?)).await
    }
}
