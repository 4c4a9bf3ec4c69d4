//! Credentials of repositories, authorities and the keys of hosts that stand in files, and the credential of the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use pipeline_core::Digest;
use stages_git::remote::Credential;

use super::repositories::Found;
use crate::config::Repositories;

/// Bytes of a file that is read.
const LARGEST: u64 = 1 << 20;
/// Files of a directory that are read.
const MOST: usize = 64;

/// Where they stand.
#[derive(Debug)]
pub(super) struct CredentialFiles {
    directories: Vec<PathBuf>,
    authorities: Option<PathBuf>,
    hosts: Option<PathBuf>,
    own: Option<Credential>,
}

impl CredentialFiles {
    pub(super) fn new(of: &Repositories) -> Self {
        let own = of.credential.url.as_ref().map(|url| Credential {
            from: "the settings".to_owned(),
            url: url.as_str().to_owned(),
            is_prefix: true,
            username: of.credential.username.clone(),
            password: of.credential.password.clone(),
            ..Credential::default()
        });
        Self {
            directories: of.credentials.iter().map(|directory| directory.0.clone()).collect(),
            authorities: of.ca_file.clone(),
            hosts: of.known_hosts_file.clone(),
            own,
        }
    }

    /// Authorities alone.
    pub(super) fn authorities(file: PathBuf) -> Self {
        Self { directories: Vec::new(), authorities: Some(file), hosts: None, own: None }
    }

    /// Whether there is any file.
    pub(super) fn may_change(&self) -> bool {
        !self.directories.is_empty() || self.authorities.is_some() || self.hosts.is_some()
    }

    /// What stands there now.
    pub(super) async fn read(&self) -> anyhow::Result<Found> {
        let mut found = Found { credentials: self.own.clone().into_iter().collect(), ..Found::default() };
        for directory in &self.directories {
            let files = files(directory).await?;
            for (name, content) in &files {
                found.versions.push(format!("{name} {}", Digest::of(content).0));
            }
            let shown = directory.display().to_string();
            let Some(credential) = Credential::of_files(&shown, &files) else {
                bail!("{shown} holds no credential: its file `url` says how addresses begin that it is for");
            };
            found.credentials.push(credential);
        }
        if let Some(path) = &self.authorities {
            found.everywhere.push(text(path, &mut found.versions).await?);
        }
        if let Some(path) = &self.hosts {
            found.hosts = text(path, &mut found.versions).await?;
        }
        Ok(found)
    }
}

/// The files of a directory by name, but for those that begin with a dot: a mounted Secret has some.
async fn files(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let cannot = || format!("read the credential in {}", directory.display());
    let mut files = BTreeMap::new();
    let mut entries = tokio::fs::read_dir(directory).await.with_context(cannot)?;
    while let Some(entry) = entries.next_entry().await.with_context(cannot)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if files.len() >= MOST {
            bail!("{} holds more than {MOST} files, and is no credential", directory.display());
        }
        files.insert(name, content(&entry.path()).await?);
    }
    Ok(files)
}

async fn text(path: &Path, versions: &mut Vec<String>) -> anyhow::Result<String> {
    let content = content(path).await?;
    versions.push(Digest::of(&content).0.to_string());
    String::from_utf8(content).with_context(|| format!("read {}", path.display()))
}

async fn content(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("read {}", path.display());
    let size = tokio::fs::metadata(path).await.with_context(cannot)?.len();
    if size > LARGEST {
        bail!("{} has {size} bytes, and no more than {LARGEST} are read", path.display());
    }
    tokio::fs::read(path).await.with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Given, Variables};

    fn of(flags: &[(&str, &str)]) -> CredentialFiles {
        let flag = |(path, text): &(&str, &str)| (path.to_string(), "--set".to_owned(), text.to_string());
        let given = Given { file: None, flags: flags.iter().map(flag).collect() };
        CredentialFiles::new(
            &Config::load_given(&given, &Variables::new()).unwrap().change_revision.repositories,
        )
    }

    #[tokio::test]
    async fn files_are_read_anew_and_told_apart_by_what_stands_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
        std::fs::create_dir(folder.path().join("team")).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (team, hosts, authorities) = (at("team"), at("hosts"), at("ca.pem"));
        let files = of(&[
            ("changeRevision.repositories.credentials", &team),
            ("changeRevision.repositories.knownHostsFile", &hosts),
            ("changeRevision.repositories.caFile", &authorities),
        ]);
        assert!(files.may_change());
        write("team/password", "one\n");
        assert_eq!(
            files.read().await.unwrap_err().to_string(),
            format!("{team} holds no credential: its file `url` says how addresses begin that it is for")
        );
        write("team/url", "https://git.example.com/team\n");
        assert_eq!(files.read().await.unwrap_err().to_string(), format!("read {authorities}"));
        write("hosts", "git.example.com ssh-ed25519 A");
        write("ca.pem", "PEM");
        let first = files.read().await.unwrap();
        let credential = first.credentials.first().unwrap();
        assert_eq!(
            (credential.from.as_str(), credential.is_prefix),
            (&*format!("the files of {team}"), true)
        );
        assert_eq!(
            (first.hosts.as_str(), first.everywhere.as_slice()),
            ("git.example.com ssh-ed25519 A", &["PEM".to_owned()][..])
        );
        assert_eq!(files.read().await.unwrap().versions, first.versions);
        for (name, content) in [("team/password", "two"), ("hosts", ""), ("ca.pem", "another")] {
            let before = files.read().await.unwrap().versions;
            write(name, content);
            assert_ne!(files.read().await.unwrap().versions, before, "{name}");
        }
        write("team/large", &"x".repeat(1 << 21));
        let refused = files.read().await.unwrap_err().to_string();
        assert_eq!(refused, format!("{team}/large has 2097152 bytes, and no more than 1048576 are read"));
    }

    #[test]
    fn without_a_file_nothing_changes() {
        assert!(!of(&[]).may_change());
    }
}
