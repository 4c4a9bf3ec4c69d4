//! What repositories are asked with: credentials, hosts and authorities, all given as data.

use std::collections::BTreeMap;

use super::credentials::Credentials;
use super::error::without_port;
use super::hosts::KnownHosts;
use super::tenant::{Projects, Tenant};
use super::{FetchError, RepositoryUrl};

/// Credentials, known hosts and authorities.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Who we are, by address.
    pub credentials: Credentials,
    /// SSH hosts that are known.
    pub hosts: KnownHosts,
    /// Authorities that are trusted for one host beside those of the system: PEM by host, as in `argocd-tls-certs-cm`.
    pub authorities: BTreeMap<String, String>,
    /// Authorities that are trusted for every host: PEM.
    pub everywhere: Vec<String>,
    /// What AppProjects permit applications, where they are asked.
    pub projects: Option<Projects>,
}

/// A repository, with the credentials that are used for some application.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scoped {
    pub(super) url: RepositoryUrl,
    /// Whose credentials are used: those of a project; empty are those of nobody, where others are of a project; `None` where none is.
    pub(super) project: Option<String>,
}

impl Access {
    /// The repository as an application, or somebody who is none, may have it.
    pub(super) fn scope(&self, url: &RepositoryUrl, of: Option<&Tenant>) -> Result<Scoped, FetchError> {
        let project = of.map_or("", Tenant::project);
        let found = self.credentials.scope(url, project);
        if let (Some(projects), Some(of)) = (&self.projects, of) {
            projects.permit(url, of, found.own_of_project)?;
        }
        match (found.scope, of) {
            (Some(project), _) => Ok(Scoped { url: url.clone(), project }),
            (None, Some(_)) => {
                Err(FetchError::OtherProjects { url: url.to_string(), project: project.to_owned() })
            }
            (None, None) => Err(FetchError::OfProjects { url: url.to_string() }),
        }
    }

    /// What a repository is asked with.
    pub(super) fn within(&self, of: &Scoped) -> Self {
        let project = of.project.as_deref().unwrap_or_default();
        Self { credentials: self.credentials.within(project), ..self.clone() }
    }

    /// PEM of the authorities that are trusted for a host, which may have its port.
    pub(super) fn authorities(&self, host: &str) -> Vec<String> {
        let own = self.authorities.get(host).or_else(|| self.authorities.get(without_port(host)));
        own.into_iter().chain(&self.everywhere).cloned().collect()
    }
}
