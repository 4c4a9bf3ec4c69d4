//! The runtime's own Git token: what Argo CD reads repositories with, in a Secret that it finds by its label.
//!
//! takes: a token - gives: whose it is - calls: the provider, which says what it may; the API server, which keeps it
//! fails: one that may too little is not kept, nor one of another server than the Secret is for

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use stages_client::Url;
use stages_kube::QuestionError;

use super::git_secret::{MAX_TRIES, decoded, failed};
use super::integration::DEFAULT_INTEGRATION;
use super::integrations::Integrations;
use super::offered::{CheckedGitToken, OfferedToken};
use super::provider::{Provider, is_of, repositories_of};
use super::token_type::GitTokenType;
use crate::error::ActError;
use crate::secret_names::REPOSITORIES_SECRET;

/// A token that the runtime is to have.
pub(crate) struct NewRuntimeToken {
    /// None: that of the integration `default`.
    pub(crate) provider: Option<Provider>,
    /// None: that of the provider's own cloud, or of the integration.
    pub(crate) api_url: Option<String>,
    pub(crate) username: Option<String>,
    pub(crate) token: SecretString,
}

/// Where the repositories are that the Secret is for; it is refused for another server's.
fn url_of(secret: &Value, api: &Url) -> Result<String, ActError> {
    let url = secret.pointer("/data/url").and_then(decoded).and_then(|bytes| String::from_utf8(bytes).ok());
    match url.filter(|url| !url.is_empty()) {
        None => Ok(repositories_of(api)),
        Some(url) if is_of(api, &url) => Ok(url),
        Some(_) => Err(ActError::Wrong(format!(
            "the Secret {REPOSITORIES_SECRET} is for repositories of another server than {}: delete it, so that it is made anew",
            api.host_str().unwrap_or_default()
        ))),
    }
}

impl Integrations {
    /// Keeps a token as the runtime's, once its provider says that it may enough.
    pub(crate) async fn update_runtime_token(
        &self,
        new: NewRuntimeToken,
    ) -> Result<CheckedGitToken, ActError> {
        let NewRuntimeToken { provider, api_url, username, token } = new;
        let (provider, api_url) = match provider {
            Some(provider) => (provider, api_url),
            None => {
                let integration = self.find(DEFAULT_INTEGRATION).await?;
                (integration.provider, api_url.or(Some(integration.api_url)))
            }
        };
        let of = GitTokenType::RuntimeToken;
        let offered = OfferedToken::new((provider, api_url.as_deref()), (username, token), of)?;
        let api = Url::parse(&offered.api_url).map_err(|_| ActError::Wrong("apiUrl is no URL".to_owned()))?;
        // Before the token goes anywhere.
        url_of(&self.repository_credentials().await?.unwrap_or_default(), &api)?;
        let checked = offered.checked(self).await?;
        let (username, token) = offered.of_git(&checked.person.username, &self.calls).await?;
        self.keep_runtime_token(&api, (&username, &token)).await?;
        Ok(checked.into())
    }

    async fn repository_credentials(&self) -> Result<Option<Value>, ActError> {
        let found = self.of_argocd.cluster.get(&self.of_argocd.path(REPOSITORIES_SECRET)).await;
        found.map_err(failed("read the runtime's Git token"))
    }

    /// All of it at once: Argo CD takes a Secret of that label without a url for one of every repository.
    async fn keep_runtime_token(
        &self,
        api: &Url,
        (username, token): (&str, &SecretString),
    ) -> Result<(), ActError> {
        for _ in 0..MAX_TRIES {
            let Some(secret) = self.repository_credentials().await? else {
                self.of_argocd.make(REPOSITORIES_SECRET).await?;
                continue;
            };
            let encoded = |text: &str| STANDARD.encode(text);
            let patch = json!({
                "metadata": {
                    "resourceVersion": secret.pointer("/metadata/resourceVersion"),
                    "labels": {"argocd.argoproj.io/secret-type": "repo-creds"},
                },
                "data": {
                    "type": encoded("git"), "url": encoded(&url_of(&secret, api)?),
                    "username": encoded(username), "password": encoded(token.expose_secret()),
                },
            });
            match self.of_argocd.cluster.merge(&self.of_argocd.path(REPOSITORIES_SECRET), &patch, false).await
            {
                Err(QuestionError::Status(409)) => {}
                done => return done.map(drop).map_err(failed("keep the runtime's Git token")),
            }
        }
        Err(ActError::Busy("the runtime's Git token is written by others: try again"))
    }
}
