//! Who asks a server of NATS, and whom it trusts: the same settings for the bus and for the routes that lead to a subject.

use std::path::PathBuf;

use pipeline_bus::jetstream::{self, Credentials, Secret, Tls};
use pipeline_core::SecretString;

use super::problem::Problems;
use super::units::Unit;

/// What settings say of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NatsAccess<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) password: Option<&'a SecretString>,
    pub(crate) password_file: Option<&'a PathBuf>,
    pub(crate) token: Option<&'a SecretString>,
    pub(crate) token_file: Option<&'a PathBuf>,
    pub(crate) credentials_file: Option<&'a PathBuf>,
    pub(crate) nkey_file: Option<&'a PathBuf>,
    pub(crate) ca_file: Option<&'a PathBuf>,
    pub(crate) certificate_file: Option<&'a PathBuf>,
    pub(crate) key_file: Option<&'a PathBuf>,
    /// What subjects of answers begin with; `None`: as usual.
    pub(crate) inbox_prefix: Option<&'a str>,
}

impl NatsAccess<'_> {
    /// What is wrong with it, where it stands below `at`; and the settings of credentials that are given, one for each kind.
    pub(super) fn check(&self, at: &str, problems: &mut Problems) -> Vec<String> {
        let path = |name: &str| format!("{at}.{name}");
        match (self.certificate_file, self.key_file) {
            (Some(_), None) => {
                problems.add(path("certificateFile"), format!("needs its key; set {at}.keyFile"));
            }
            (None, Some(_)) => {
                problems.add(path("keyFile"), format!("needs its certificate; set {at}.certificateFile"));
            }
            _ => {}
        }
        let both = |value: Option<&SecretString>, file: Option<&PathBuf>| value.is_some() && file.is_some();
        problems.exclusive(both(self.password, self.password_file), &path("password"), &path("passwordFile"));
        problems.exclusive(both(self.token, self.token_file), &path("token"), &path("tokenFile"));
        let user = self.user.is_some();
        let settings = [
            ("user", user),
            ("password", !user && self.password.is_some()),
            ("passwordFile", !user && self.password_file.is_some()),
            ("token", self.token.is_some()),
            ("tokenFile", self.token.is_none() && self.token_file.is_some()),
            ("credentialsFile", self.credentials_file.is_some()),
            ("nkeyFile", self.nkey_file.is_some()),
        ];
        let given: Vec<String> =
            settings.into_iter().filter(|(_, given)| *given).map(|(name, _)| path(name)).collect();
        if let [first, others @ ..] = &*given {
            for other in others {
                problems.add(other, format!("excludes {first}: give one kind of credentials"));
            }
        }
        given
    }

    /// Who asks; `None`: a user without a password. What stands in files is read by whoever connects.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        let secret = |value: Option<&SecretString>, file: Option<&PathBuf>| {
            value.cloned().map(Secret::Value).or_else(|| file.cloned().map(Secret::File))
        };
        if let Some(user) = self.user {
            let password = secret(self.password, self.password_file)?;
            return Some(Credentials::Password { user: user.to_owned(), password });
        }
        let token = secret(self.token, self.token_file).map(Credentials::Token);
        let given = token.or_else(|| self.credentials_file.cloned().map(Credentials::File));
        let seed = || self.nkey_file.cloned().map(|file| Credentials::Nkey(Secret::File(file)));
        Some(given.or_else(seed).unwrap_or(Credentials::None))
    }

    /// `None`: TLS only if the server asks for it.
    pub(crate) fn tls(&self) -> Option<Tls> {
        let identity = self.certificate_file.cloned().zip(self.key_file.cloned());
        let ca = self.ca_file.cloned();
        (ca.is_some() || identity.is_some()).then_some(Tls { ca, identity })
    }
}

/// Addresses of NATS servers, without a user or password; none where the text is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Servers(pub(crate) Vec<String>);

impl Unit for Servers {
    const FORMAT: &'static str = "bus-addresses";

    fn read(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let urls: Vec<String> = parts.map(str::to_owned).collect();
        if urls.is_empty() {
            return Ok(Self(urls));
        }
        match jetstream::servers(&urls) {
            Ok(_) => Ok(Self(urls)),
            Err(jetstream::ConfigError::Secret(_)) => {
                Err("must hold no user and no password; give user and passwordFile, or tokenFile, beside it"
                    .to_owned())
            }
            Err(_) => {
                Err("must be addresses such as nats://nats:4222 or tls://nats:4222, with commas between them"
                    .to_owned())
            }
        }
    }
}
