//! The settings of the role `source-server`, and of whoever asks it. What each means, and its default, stands in
//! `config/default.yaml`, and there alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stages_git::UrlPrefix;
use stages_source::{Operation, Operations, VersionSource};
use url::Url;

use super::problem::Problems;
use super::repositories::Repositories;
use super::units::{As, Size, Unit};

/// What is wrong where the bus is to carry questions and there is none.
pub(super) const NO_BUS: &str = "needs a bus, and bus.url is not set; set it (--bus nats://nats:4222)";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SourceServer {
    pub(crate) listen: As<Option<SocketAddr>>,
    pub(crate) callers: Callers,
    pub(crate) repositories: Vec<As<Place>>,
    pub(crate) git: Git,
    #[schemars(range(min = 1, max = 256))]
    pub(crate) concurrency: usize,
    pub(crate) timeout: As<Duration>,
    pub(crate) max_body: As<Size>,
    pub(crate) cache: As<Size>,
    versions: Versions,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Callers {
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) accounts: Vec<As<ServiceAccount>>,
    pub(crate) bus: bool,
    pub(crate) bus_operations: Vec<As<Operation>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Versions {
    file: As<Option<String>>,
    json_path: As<Option<String>>,
    ask_platform: bool,
}

/// Repositories that are fetched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Git {
    pub(crate) allowed: Vec<As<UrlPrefix>>,
    pub(crate) repositories: Repositories,
}

impl Git {
    /// Whether any repository is fetched.
    pub(crate) fn is_used(&self) -> bool {
        !self.allowed.is_empty() || self.repositories.has_credentials()
    }
}

impl SourceServer {
    pub(super) fn check(&self, has_bus: bool, problems: &mut Problems) {
        self.git.repositories.check("sourceServer.git.repositories", problems);
        problems.positive("sourceServer.timeout", *self.timeout);
        problems.at_least("sourceServer.maxBody", &self.max_body, "1Ki");
        if self.listen.is_none() {
            problems.add("sourceServer.listen", "must be an address to listen on such as 0.0.0.0:8090");
        }
        if self.callers.token_file.is_some() && !self.callers.accounts.is_empty() {
            let text = "callers have one token, or are ServiceAccounts: set tokenFile or accounts, not both";
            problems.add("sourceServer.callers", text);
        }
        if !self.callers.bus_operations.is_empty() && !self.callers.bus {
            let text = "nothing is asked over the bus, since callers.bus is off; set it, or leave this";
            problems.add("sourceServer.callers.busOperations", text);
        }
        for (place, of) in self.callers.accounts.iter().enumerate() {
            if self.callers.accounts.iter().take(place).any(|other| other.name == of.name) {
                let account = of.name.trim_start_matches("system:serviceaccount:").replacen(':', "/", 1);
                let text = format!("{account} stands there twice; leave the one that is to count");
                problems.add("sourceServer.callers.accounts", text);
            }
        }
        if self.callers.bus && !has_bus {
            problems.missing("sourceServer.callers.bus", NO_BUS);
        }
        if self.versions.ask_platform && self.versions.file.is_some() {
            let text = "the platform is asked, or a file is named for all: set askPlatform or file, not both";
            problems.add("sourceServer.versions", text);
        }
        if self.versions.file.is_some() != self.versions.json_path.is_some() {
            problems.add("sourceServer.versions", "needs both file and jsonPath, or neither of them");
        }
    }

    /// Whether the platform is asked where they stand.
    pub(crate) fn asks_platform(&self) -> bool {
        self.versions.ask_platform
    }

    /// Where versions stand, if that is said.
    pub(crate) fn version_source(&self) -> Option<VersionSource> {
        let (file, json_path) = (self.versions.file.clone()?, self.versions.json_path.clone()?);
        Some(VersionSource { file, json_path })
    }
}

/// A repository that somebody keeps in a directory of this machine: `ADDRESS=DIRECTORY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) directory: PathBuf,
}

impl Unit for Place {
    const FORMAT: &'static str = "repository-place";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = "is not a repository and its directory such as https://git.example.com/mono.git=/repositories/mono";
        match text.rsplit_once('=') {
            Some((address, _)) if address.contains('@') && address.contains("://") => {
                Err("a repository's address is written without user and password".to_owned())
            }
            Some((address, directory)) if !address.is_empty() && directory.starts_with('/') => {
                Ok(Self { address: address.to_owned(), directory: directory.into() })
            }
            // What is not one may hold a password.
            _ => Err(format!("it {wrong}")),
        }
    }
}

/// How the addresses of repositories begin that are fetched.
impl Unit for UrlPrefix {
    const FORMAT: &'static str = "repository-prefix";

    fn read(text: &str) -> Result<Self, String> {
        // What is none may hold a password.
        let wrong =
            |error| format!("it is not how an address begins, such as https://git.example.com/team: {error}");
        Self::read(text).map_err(wrong)
    }
}

impl Unit for Option<UrlPrefix> {
    const FORMAT: &'static str = "repository-prefix-or-empty";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            text => <UrlPrefix as Unit>::read(text).map(Some),
        }
    }
}

impl Unit for Operation {
    const FORMAT: &'static str = "source-operation";

    fn read(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("'{text}' is nothing that is asked; there are {all}")
        })
    }
}

/// A ServiceAccount that may ask, everything or some of it: `NAMESPACE/NAME`, `NAMESPACE/NAME=commit+changes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceAccount {
    pub(crate) name: String,
    pub(crate) may: Operations,
}

impl Unit for ServiceAccount {
    const FORMAT: &'static str = "service-account";

    fn read(text: &str) -> Result<Self, String> {
        let (account, operations) = match text.split_once('=') {
            Some((account, operations)) => (account, Some(operations)),
            None => (text, None),
        };
        let may = match operations {
            Some(operations) => {
                operations.split('+').map(<Operation as Unit>::read).collect::<Result<_, _>>()?
            }
            None => Operations::ALL,
        };
        match account.split_once('/') {
            Some((namespace, name))
                if crate::cli::is_label(namespace) && name.split('.').all(crate::cli::is_label) =>
            {
                Ok(Self { name: format!("system:serviceaccount:{namespace}:{name}"), may })
            }
            _ => Err(format!("'{account}' is not a ServiceAccount such as argocd/event-reporter")),
        }
    }
}

/// Whom the reporter asks what Git says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum From {
    ArgoCd,
    Here,
    Server,
    Bus,
}

/// Whom it asks about repositories whose addresses begin so: `PREFIX=FROM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FromOf {
    pub(crate) prefix: UrlPrefix,
    pub(crate) from: From,
}

impl Unit for FromOf {
    const FORMAT: &'static str = "repository-origin";

    fn read(text: &str) -> Result<Self, String> {
        // What is none may hold a password.
        let wrong =
            "it is not how addresses begin and who is asked, such as https://git.example.com/team=server";
        let (prefix, from) = text.rsplit_once('=').ok_or(wrong)?;
        let from = match from {
            "argocd" => From::ArgoCd,
            "here" => From::Here,
            "server" => From::Server,
            "bus" => From::Bus,
            _ => return Err(format!("{wrong}: behind = stands argocd, here, server or bus")),
        };
        let prefix = UrlPrefix::read(prefix).map_err(|error| format!("{wrong}: {error}"))?;
        Ok(Self { prefix, from })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Sources {
    pub(crate) from: From,
    pub(crate) repositories: Vec<As<FromOf>>,
    pub(crate) url: As<Option<Url>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) timeout: As<Duration>,
}

impl Sources {
    /// The setting by which these are asked, if they are.
    pub(crate) fn asks(&self, from: From) -> Option<&'static str> {
        if self.from == from {
            return Some("reporter.sources.from");
        }
        self.repositories.iter().any(|of| of.from == from).then_some("reporter.sources.repositories")
    }

    pub(super) fn check(&self, has_bus: bool, problems: &mut Problems) {
        if let Some(setting) = self.asks(From::Bus).filter(|_| !has_bus) {
            problems.missing(setting, NO_BUS);
        }
        for (place, of) in self.repositories.iter().enumerate() {
            if self.repositories.iter().take(place).any(|other| other.prefix == of.prefix) {
                let text =
                    format!("{} stands there twice; leave the one that is to count", of.prefix.as_str());
                problems.add("reporter.sources.repositories", text);
            }
        }
        problems.positive("reporter.sources.timeout", *self.timeout);
        if let Some(setting) = self.asks(From::Server) {
            if self.url.is_none() {
                let says = if self.from == From::Server { "is" } else { "names" };
                problems.add(
                    "reporter.sources.url",
                    format!(
                        "not set, and {setting} {says} server; set the source server's address, such as \
                         http://source-server:8090"
                    ),
                );
            }
            if self.token_file.is_none() {
                problems.add(
                    "reporter.sources.tokenFile",
                    "not set, and the source server answers nobody without a token",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Operation;
    use crate::config::tests::{host, resolve, wrong};

    #[test]
    fn what_is_asked_or_answered_over_the_bus_needs_one() {
        let why = "needs a bus, and bus.url is not set; set it (--bus nats://nats:4222)";
        for (path, value) in [("reporter.sources.from", "bus"), ("sourceServer.callers.bus", "true")] {
            assert_eq!(wrong(&[(path, value)]), format!("{path}: {why}"));
            resolve(&[(path, value), ("bus.url", "nats://nats:4222")], &host()).unwrap();
        }
    }

    #[test]
    fn who_may_ask_and_for_what_is_said_once_and_by_names_that_there_are() {
        let accounts = "sourceServer.callers.accounts";
        let of = |value: &str| {
            let config = resolve(&[(accounts, value)], &host()).unwrap();
            let all = config.source_server.callers.accounts.iter();
            all.map(|of| (of.name.clone(), Operation::ALL.map(|operation| of.may.has(operation))))
                .collect::<Vec<_>>()
        };
        let name = |name: &str| format!("system:serviceaccount:{name}");
        assert_eq!(
            of("argocd/event-reporter,ops/a.b=commit+app_version"),
            [(name("argocd:event-reporter"), [true; 4]), (name("ops:a.b"), [false, true, false, true]),]
        );
        let there_are = "there are manifests, commit, changes, app_version";
        for (value, why) in [
            ("argocd", "'argocd' is not a ServiceAccount such as argocd/event-reporter".to_owned()),
            ("argocd/a=", format!("'' is nothing that is asked; {there_are}")),
            ("argocd/a=commit+all", format!("'all' is nothing that is asked; {there_are}")),
        ] {
            assert_eq!(wrong(&[(accounts, value)]), format!("{accounts}: {why} (from --set)"));
        }
        let twice = "argocd/a stands there twice; leave the one that is to count";
        assert_eq!(wrong(&[(accounts, "argocd/a,argocd/b,argocd/a=commit")]), format!("{accounts}: {twice}"));
        let over_bus = "sourceServer.callers.busOperations";
        let off = "nothing is asked over the bus, since callers.bus is off; set it, or leave this";
        assert_eq!(wrong(&[(over_bus, "manifests")]), format!("{over_bus}: {off}"));
        assert_eq!(
            wrong(&[(over_bus, "files"), ("sourceServer.callers.bus", "true")]),
            format!("{over_bus}: 'files' is nothing that is asked; {there_are} (from --set)")
        );
    }

    #[test]
    fn whom_to_ask_about_a_repository_is_said_once_and_by_a_name_that_there_is() {
        let path = "reporter.sources.repositories";
        let team = "https://git.example.com/team";
        let form =
            "it is not how addresses begin and who is asked, such as https://git.example.com/team=server";
        let behind = "behind = stands argocd, here, server or bus";
        for (value, why) in [
            (team.to_owned(), form.to_owned()),
            (format!("{team}=git"), format!("{form}: {behind}")),
            (
                "git.example.com=here".to_owned(),
                format!(
                    "{form}: the address of the repository is refused: it does not begin with https://, http://, ssh://, file:// or a host"
                ),
            ),
        ] {
            assert_eq!(wrong(&[(path, value.as_str())]), format!("{path}: {why} (from --set)"));
        }
        let twice = format!("{team}=here,{team}.git/=argocd");
        let why = format!("{team} stands there twice; leave the one that is to count");
        assert_eq!(wrong(&[(path, twice.as_str())]), format!("{path}: {why}"));
        let bus = format!("{team}=bus");
        let why = "needs a bus, and bus.url is not set; set it (--bus nats://nats:4222)";
        assert_eq!(wrong(&[(path, bus.as_str())]), format!("{path}: {why}"));
        resolve(&[(path, bus.as_str()), ("bus.url", "nats://nats:4222")], &host()).unwrap();
        let server = format!("{team}=server");
        let why = "not set, and reporter.sources.repositories names server; set the source server's address, such as \
                   http://source-server:8090";
        assert_eq!(wrong(&[(path, server.as_str())]), format!("reporter.sources.url: {why}"));
        let asked =
            [("reporter.sources.url", "http://sources:8090"), ("reporter.sources.tokenFile", "/token")];
        resolve(&[&[(path, &*server)][..], &asked].concat(), &host()).unwrap();
        resolve(&[(path, format!("{team}=here,{team}/mono=argocd").as_str())], &host()).unwrap();
    }
}
