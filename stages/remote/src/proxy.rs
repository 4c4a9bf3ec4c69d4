//! A runtime's app proxy, which carries out what people ask for: reached through the platform, or directly where its address is
//! given.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stages_client::Opened;

use crate::arguments::Way;
use crate::ask::{ANSWER, Platform, read};
use crate::contexts::Contexts;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::show::Screen;
use crate::stream::Items;
use crate::unencrypted::unencrypted;

/// Who carries out what is asked for in a runtime.
pub(crate) struct Proxy {
    /// The platform, or the app proxy itself.
    peer: Platform,
    path: Vec<String>,
    /// The runtime.
    pub(crate) runtime: String,
}

impl Proxy {
    /// That of a runtime.
    pub(crate) async fn find(
        way: &Way,
        runtime: &str,
        environment: &Environment,
    ) -> Result<Self, RemoteError> {
        let all = Contexts::read(environment)?;
        let kept = all.chosen(way.place.context.as_deref(), environment)?;
        let owned = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect();
        let (peer, path) = match &way.app_proxy {
            Some(url) => {
                let ca_file = way.app_proxy_ca_file.clone().or_else(|| kept.ca_file.clone());
                let url = url.trim_end_matches('/');
                if let Some(text) = unencrypted(url).filter(|_| !environment.completes) {
                    Screen::new(environment).note(&text);
                }
                let peer = Platform::at(url, kept.key.clone(), ca_file, kept.insecure, ANSWER).await?;
                (peer, owned(&["api", "graphql"]))
            }
            None => {
                let path = owned(&["2.0", "api", "runtimes", runtime, "app-proxy", "graphql"]);
                (Platform::of(kept, ANSWER).await?, path)
            }
        };
        Ok(Self { peer, path, runtime: runtime.to_owned() })
    }

    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Asks, and gives what the answer holds.
    pub(crate) async fn ask(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Map<String, Value>, RemoteError> {
        self.peer.post(act, &self.path(), query, variables).await
    }

    /// One field of an answer, read.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
        field: &str,
    ) -> Result<T, RemoteError> {
        read(self.ask(act, query, variables).await?.remove(field).unwrap_or_default())
    }

    /// Asks for a file, below the app proxy's own address.
    pub(crate) async fn file(&self, act: &'static str, path: &[&str]) -> Result<Opened, RemoteError> {
        self.peer.file(act, path).await
    }

    /// Asks for what comes piece by piece.
    pub(crate) async fn items(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Items, RemoteError> {
        self.peer.stream(act, &self.path(), query, variables).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Place;
    use crate::contexts::tests::kept;

    /// What is said beside the answer while the app proxy at an address is reached.
    fn said(url: &str, completes: bool) -> String {
        let folder = tempfile::TempDir::new().unwrap();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "proxy::tests::an_app_proxy_is_reached", "--ignored"])
            .env("XDG_CONFIG_HOME", folder.path())
            .env("APP_PROXY", url)
            .env("COMPLETES", completes.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn whoever_sends_a_key_unencrypted_to_an_app_proxy_is_told() {
        let url = "http://prod.example.com/app-proxy";
        let note = format!("gitops-runtime: {url} is not encrypted: whoever is on the way reads the key\n");
        assert_eq!(said(&format!("{url}/"), false), note);
        assert_eq!(said(url, true), "", "a shell that completes shows names alone");
        assert_eq!(said("https://prod.example.com/app-proxy", false), "");
        assert_eq!(said("http://localhost:8080", false), "");
    }

    #[tokio::test]
    #[ignore = "runs in a process of its own"]
    async fn an_app_proxy_is_reached() {
        let variable = |name: &str| std::env::var(name).ok();
        let mut environment = Environment::of(variable);
        environment.completes = variable("COMPLETES").unwrap() == "true";
        Contexts::change(&environment, |all| all.put(kept("prod"))).unwrap();
        let place = Place { context: Some("prod".to_owned()) };
        let way = Way { place, app_proxy: variable("APP_PROXY"), app_proxy_ca_file: None };
        Proxy::find(&way, "prod", &environment).await.unwrap();
    }
}
