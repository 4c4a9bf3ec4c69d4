//! The repository that is asked: a directory of this machine, or one elsewhere that is fetched into a cache.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use stages_git::remote::{Access, Config, Credential, Credentials, KnownHosts, Scheme};
use stages_git::{Checkout, Checkouts, FetchError, GitError, GitRepository, Oid, RepositoryUrl};

use crate::cli::RepositoryArgs;
use crate::config::Variables;

/// A repository, and the commits of the revisions that were named.
pub(super) struct OpenedRepository {
    pub(super) repository: GitRepository,
    found: BTreeMap<String, Oid>,
    // Keeps the clones in the cache while they are in use.
    _held: Vec<Checkout>,
}

impl OpenedRepository {
    /// The commit of a revision.
    pub(super) fn resolve(&self, revision: &str) -> anyhow::Result<Oid> {
        match self.found.get(revision) {
            Some(found) => Ok(*found),
            None => Ok(self.repository.resolve(revision)?),
        }
    }
}

/// Opens the repository; of one elsewhere these revisions are fetched.
pub(super) fn open(
    given: &RepositoryArgs,
    revisions: &[&str],
    variables: &Variables,
) -> anyhow::Result<OpenedRepository> {
    let is_elsewhere = given.repo.contains("://") || is_scp(&given.repo);
    if !is_elsewhere {
        let repository = GitRepository::open(Path::new(&given.repo)).map_err(|error| match error {
            GitError::NoRepository { .. } => anyhow::anyhow!(
                "{error}, nor in a directory above it: run this in a clone, or name one with --repo, or a repository \
                 elsewhere, such as --repo https://git.example.com/team/mono.git"
            ),
            error => error.into(),
        })?;
        return Ok(OpenedRepository { repository, found: BTreeMap::new(), _held: Vec::new() });
    }
    let url = RepositoryUrl::read(&given.repo)?;
    let access = access(given, &url, variables)?;
    let mut config = Config { files: true, ..Config::new(cache(given, variables)?) };
    if let Some(bytes) = given.remote.max_bytes {
        config.fetch_bytes = bytes;
        config.bytes = config.bytes.max(bytes);
    }
    stages_client::install_crypto();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        let checkouts = Checkouts::new(config).await.context("--cache names another directory")?;
        checkouts.set_access(access);
        let (mut found, mut held) = (BTreeMap::new(), Vec::new());
        for revision in revisions {
            let checkout = checkouts.checkout(&url, revision).await;
            let checkout = checkout.map_err(|error| with_flags(&error).unwrap_or_else(|| error.into()))?;
            found.insert((*revision).to_owned(), checkout.commit);
            held.push(checkout);
        }
        let first = held.first().context("no revision was asked for")?;
        Ok(OpenedRepository { repository: first.open()?, found, _held: held })
    })
}

/// What helps here, where no Argo CD gives what is missing.
fn with_flags(error: &FetchError) -> Option<anyhow::Error> {
    Some(match error {
        FetchError::Certificate { host, why } => {
            anyhow!("the certificate of {host} is not trusted ({why}): give its authority with --ca-file")
        }
        FetchError::UnknownHost { host, fingerprint } => anyhow!(
            "the SSH host {host} is not known ({fingerprint}): compare that with what its operator publishes, and add the key to \
             ~/.ssh/known_hosts, or to a file that --known-hosts-file names"
        ),
        FetchError::NoCredentials { url } if url.starts_with("ssh:") => {
            anyhow!("{url} wants credentials: give a private key with --ssh-key-file")
        }
        FetchError::NoCredentials { url } => anyhow!(
            "{url} wants credentials: give a token or a password in the variable GIT_PASSWORD, or with --password-file"
        ),
        _ => return None,
    })
}

/// `user@host:path`, and no directory of this name.
fn is_scp(repo: &str) -> bool {
    let host = repo.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| host.contains('@') && !host.contains('/')) && !Path::new(repo).exists()
}

fn cache(given: &RepositoryArgs, variables: &Variables) -> anyhow::Result<PathBuf> {
    if let Some(cache) = &given.remote.cache {
        return Ok(cache.clone());
    }
    let of = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    Ok(base
        .context("neither HOME nor XDG_CACHE_HOME is set: --cache names a directory for clones")?
        .join("gitops-runtime/git"))
}

fn access(given: &RepositoryArgs, url: &RepositoryUrl, variables: &Variables) -> anyhow::Result<Access> {
    let remote = &given.remote;
    let of = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
    let file = |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("read {}", path.display()));
    let mut credential = Credential { url: url.to_string(), ..Credential::default() };
    match (&remote.password_file, of("GIT_PASSWORD")) {
        (Some(path), _) => {
            credential.password = Some(file(path)?.trim_end_matches(['\r', '\n']).to_owned().into());
            credential.from = path.display().to_string();
        }
        (None, Some(password)) => {
            credential.password = Some(password.into());
            "GIT_PASSWORD".clone_into(&mut credential.from);
        }
        (None, None) => {}
    }
    if let Some(path) = &remote.ssh_key_file {
        credential.ssh_key = Some(file(path)?.into());
        credential.from = path.display().to_string();
    }
    credential.username = remote.username.clone().or_else(|| of("GIT_USERNAME"));
    let everywhere = remote.ca_file.iter().map(file).collect::<anyhow::Result<Vec<_>>>()?;
    let hosts = if url.scheme() == Scheme::Ssh {
        known_hosts(remote.known_hosts_file.as_deref(), of("HOME"))?
    } else {
        KnownHosts::default()
    };
    let shows = credential.password.is_some() || credential.ssh_key.is_some();
    let credentials = Credentials::new(shows.then_some(credential).into_iter().collect());
    Ok(Access { credentials, hosts, everywhere, ..Access::default() })
}

/// The hosts of the file that was named, which must be there, or of the one that `ssh` keeps.
fn known_hosts(named: Option<&Path>, home: Option<String>) -> anyhow::Result<KnownHosts> {
    let (path, is_named) = match (named, home) {
        (Some(path), _) => (path.to_owned(), true),
        (None, Some(home)) => (Path::new(&home).join(".ssh/known_hosts"), false),
        (None, None) => return Ok(KnownHosts::default()),
    };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(KnownHosts::read(&text)),
        Err(error) if !is_named && error.kind() == ErrorKind::NotFound => Ok(KnownHosts::default()),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_flag_that_gives_it() {
        let (host, why) = ("git.example.com".to_owned(), "unknown issuer".to_owned());
        let of = |url: &str| FetchError::NoCredentials { url: url.to_owned() };
        let unknown = FetchError::UnknownHost { host: host.clone(), fingerprint: "SHA256:a".to_owned() };
        for (error, told) in [
            (
                FetchError::Certificate { host, why },
                "the certificate of git.example.com is not trusted (unknown issuer): give its authority with --ca-file",
            ),
            (
                unknown,
                "the SSH host git.example.com is not known (SHA256:a): compare that with what its operator publishes, and add \
                 the key to ~/.ssh/known_hosts, or to a file that --known-hosts-file names",
            ),
            (of("ssh://git@a/b"), "ssh://git@a/b wants credentials: give a private key with --ssh-key-file"),
            (
                of("https://a/b"),
                "https://a/b wants credentials: give a token or a password in the variable GIT_PASSWORD, or with --password-file",
            ),
        ] {
            assert_eq!(with_flags(&error).unwrap().to_string(), told);
        }
        let away = FetchError::Connect { host: "a".to_owned(), why: "refused".to_owned() };
        assert!(with_flags(&away).is_none(), "it is told as it is");
    }
}
