//! The settings of those that are asked: the Kubernetes API server, Argo CD, the platform. What each means, and its
//! default, stands in `config/default.yaml`, and there alone.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::Token;
use super::host::Host;
use super::problem::Problems;
use super::units::{As, Pattern, Size, UrlPath};

/// The namespace Argo CD is installed in, unless something says otherwise.
const NAMESPACE: &str = "argocd";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Kubernetes {
    pub(crate) kubeconfig: As<Option<PathBuf>>,
    pub(crate) context: As<Option<String>>,
    pub(crate) server: As<Option<Url>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) namespace: As<String>,
    pub(crate) application_namespaces: Vec<As<Pattern>>,
    #[schemars(range(min = 1, max = 500))]
    pub(crate) page_size: u32,
}

impl Kubernetes {
    /// For `server`.
    pub(crate) fn token(&self) -> Token {
        Token::of(&self.token, &self.token_file)
    }

    pub(super) fn settle(&mut self, host: &Host, problems: &mut Problems) {
        problems.token("kubernetes", &self.token, &self.token_file);
        if self.server.is_none() {
            if self.token().is_given() {
                problems.add("kubernetes.token", "is for kubernetes.server, which is not set");
            }
        } else if !self.token().is_given() {
            let next = "not set, and kubernetes.server needs it; set kubernetes.tokenFile, or leave \
                        kubernetes.server empty to use a kubeconfig";
            problems.missing("kubernetes.token", next);
        }
        let both = self.server.is_some() && self.kubeconfig.is_some();
        problems.exclusive(both, "kubernetes.server", "kubernetes.kubeconfig");
        if self.namespace.is_empty() {
            *self.namespace = host.namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned());
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Argocd {
    pub(crate) url: As<Option<Url>>,
    pub(crate) root_path: As<UrlPath>,
    pub(crate) namespace: As<Option<String>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    token_secret: KeyOfSecret,
    username: As<Option<String>>,
    password: As<Option<SecretString>>,
    password_file: As<Option<PathBuf>>,
    password_secret: KeyOfSecret,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    pub(crate) timeout: As<Duration>,
    pub(crate) event_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) concurrency: usize,
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) min_concurrency: usize,
    #[schemars(range(min = 0, max = 100_000))]
    pub(crate) requests_per_second: u32,
    #[schemars(range(min = 1, max = 10))]
    pub(crate) retries: u32,
    pub(crate) max_body: As<Size>,
    pub(crate) settings_interval: As<Duration>,
    pub(crate) tracking_method: TrackingMethod,
    pub(crate) instance_label_key: As<Option<String>>,
    pub(crate) cache: Cache,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyOfSecret {
    name: As<Option<String>>,
    key: As<Option<String>>,
}

impl KeyOfSecret {
    /// What stands in it, unless the same is `given` otherwise.
    fn unless(&self, given: Token, key: &str) -> Token {
        match (given, &*self.name) {
            (Token::None, Some(name)) => {
                let key = self.key.clone().unwrap_or_else(|| key.to_owned());
                Token::Secret { name: name.clone(), key }
            }
            (given, _) => given,
        }
    }
}

/// What Argo CD is asked with.
pub(crate) enum Access {
    /// A token of an account.
    Token(Token),
    /// An account that logs in.
    Login {
        /// Its name.
        username: String,
        /// Its password.
        password: Token,
    },
}

impl Access {
    /// Where the token or the password stands.
    pub(crate) fn secret(&self) -> &Token {
        let (Self::Token(secret) | Self::Login { password: secret, .. }) = self;
        secret
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cache {
    pub(crate) manifests: As<Size>,
    pub(crate) revisions: As<Size>,
    pub(crate) parents: As<Size>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrackingMethod {
    Auto,
    Label,
    Annotation,
    #[serde(rename = "annotation+label")]
    AnnotationAndLabel,
}

impl Argocd {
    /// A token stands above a login.
    pub(crate) fn access(&self) -> Access {
        let (token, password) = (self.token(), self.password());
        match &*self.username {
            Some(username) if !token.is_given() => Access::Login { username: username.clone(), password },
            _ => Access::Token(token),
        }
    }

    fn token(&self) -> Token {
        self.token_secret.unless(Token::of(&self.token, &self.token_file), "token")
    }

    fn password(&self) -> Token {
        self.password_secret.unless(Token::of(&self.password, &self.password_file), "password")
    }

    fn check_access(&self, problems: &mut Problems) {
        problems.token("argocd", &self.token, &self.token_file);
        let both = self.password.is_some() && self.password_file.is_some();
        problems.exclusive(both, "argocd.password", "argocd.passwordFile");
        let (token, password) = (self.token().is_given(), self.password().is_given());
        problems.exclusive(token && password, "argocd.password", "argocd.token");
        if self.username.is_some() && !token && !password {
            let next = "not set, and argocd.username needs it; set argocd.passwordFile or argocd.passwordSecret.name";
            problems.missing("argocd.password", next);
        } else if self.username.is_none() && password {
            problems.missing("argocd.username", "not set, and argocd.password needs it");
        } else if !token && !password {
            let next = "not set; set argocd.tokenFile (--argocd-token-file), argocd.tokenSecret.name, or the \
                        variable ARGOCD_TOKEN to the token of an account that may read applications, or \
                        argocd.username and argocd.passwordFile to log in";
            problems.missing("argocd.token", next);
        }
    }

    /// Afterwards `url` has no path, and `root_path` has the whole.
    pub(super) fn settle(&mut self, problems: &mut Problems) {
        self.check_access(problems);
        problems.positive("argocd.timeout", *self.timeout);
        problems.positive("argocd.eventTimeout", *self.event_timeout);
        problems.positive("argocd.settingsInterval", *self.settings_interval);
        if *self.event_timeout < *self.timeout {
            problems.add("argocd.eventTimeout", "must not be shorter than argocd.timeout");
        }
        problems.at_least("argocd.maxBody", &self.max_body, "1Ki");
        let Some(url) = &mut *self.url else { return problems.missing("argocd.url", "not set") };
        // The incumbent's chart gives the root path twice: in the address, and on its own.
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path("");
        let root = &mut self.root_path.0;
        *root = if path.ends_with(&*root) { path } else { path + root };
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Platform {
    pub(crate) url: As<Option<Url>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    /// With leases what they leave for a report, at most.
    pub(crate) timeout: As<Duration>,
}

impl Platform {
    pub(crate) fn token(&self) -> Token {
        Token::of(&self.token, &self.token_file)
    }

    /// `used` says whether reports go there.
    pub(super) fn check(&self, used: bool, problems: &mut Problems) {
        problems.token("platform", &self.token, &self.token_file);
        if used && !self.token().is_given() {
            let next = "not set; set platform.tokenFile (--platform-token-file) or the variable CODEFRESH_TOKEN, \
                        or choose another sink: --sink stdout needs no platform";
            problems.missing("platform.token", next);
        }
        problems.positive("platform.timeout", *self.timeout);
        if self.url.is_none() {
            problems.missing("platform.url", "not set");
        }
    }
}
