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
use crate::stream::Items;

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
