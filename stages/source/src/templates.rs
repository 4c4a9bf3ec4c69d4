//! The places of versions, as the platform knows them by the promotion template of an application's product.
//!
//! takes: an application's `metadata` - gives: a file and a JSON path, kept for three minutes
//! calls: `POST {platform}/2.0/api/graphql` - fails: never; what the platform does not say is as everywhere, and asked again

use moka::future::Cache;
use pipeline_core::async_trait;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use stages_client::{Client, HttpError, Token};

use crate::version_sources::{KEPT, VersionSources};
use crate::versions::VersionSource;

const ACT: &str = "ask the platform where a version stands";
const QUERY: &str = "query promotionTemplateByRuntime($applicationMetadata: Object!) { \
                     promotionTemplateByRuntime(applicationMetadata: $applicationMetadata) { versionSource { file jsonPath } } }";
/// The most applications whose answers are cached.
const MAX_APPLICATIONS: u64 = 10_000;

/// Asks the platform for the places of versions.
#[derive(Debug)]
pub struct PromotionTemplates {
    client: Client,
    token: Token,
    known: Cache<String, Option<VersionSource>>,
}

#[derive(Deserialize)]
struct TemplateResponse {
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    promotion_template_by_runtime: Option<Template>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    version_source: Option<TemplateSource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TemplateSource {
    file: Option<String>,
    json_path: Option<String>,
}

impl PromotionTemplates {
    /// Asks the platform that the client calls, with this token.
    pub fn new(client: Client, token: Token) -> Self {
        let known = Cache::builder().max_capacity(MAX_APPLICATIONS).time_to_live(KEPT).build();
        Self { client, token, known }
    }

    async fn ask(&self, metadata: &Value) -> Result<Option<VersionSource>, HttpError> {
        let body = json!({"query": QUERY, "variables": {"applicationMetadata": metadata}});
        let request = self.client.request(ACT, Method::POST, &["2.0", "api", "graphql"])?.json(&body);
        let request = self.client.authorize(ACT, request, &self.token, "").await?;
        let answer: TemplateResponse = self.client.send(ACT, request).await?.checked()?.json()?;
        let source =
            answer.data.and_then(|data| data.promotion_template_by_runtime).and_then(|of| of.version_source);
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(source.and_then(|TemplateSource { file, json_path }| {
            Some(VersionSource { file: filled(file)?, json_path: filled(json_path)? })
        }))
    }
}

#[async_trait]
impl VersionSources for PromotionTemplates {
    async fn of(&self, metadata: &Value) -> Option<VersionSource> {
        let text = |name: &str| metadata[name].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        if name.is_empty() {
            return None;
        }
        let said = self.known.try_get_with(format!("{namespace}:{name}"), self.ask(metadata)).await;
        said.unwrap_or_else(|error| {
            let error: &dyn std::error::Error = &*error;
            tracing::warn!(
                error,
                "the platform did not say where a version stands: it is looked for as everywhere"
            );
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use axum::{Json, Router};
    use serde_json::{Value, json};
    use stages_client::{Config, Target, Token};

    use super::PromotionTemplates;
    use crate::version_sources::VersionSources as _;
    use crate::versions::VersionSource;

    /// A platform that answers each question with the next of these, and notes what it was asked.
    async fn platform(answers: Vec<(u16, Value)>) -> (PromotionTemplates, Arc<Mutex<Vec<Value>>>) {
        stages_client::install_crypto();
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let noted = asked.clone();
        let answer = move |headers: HeaderMap, Json(body): Json<Value>| {
            let mut noted = noted.lock().unwrap();
            assert_eq!(headers["authorization"], "the-token");
            let (status, answer) = answers[noted.len()].clone();
            noted.push(body);
            let answer = (StatusCode::from_u16(status).unwrap(), Json(answer));
            async move { answer }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().route("/2.0/api/graphql", post(answer));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let config = Config::new(Duration::from_secs(60), 1 << 20);
        let client = config.build(Target::new(&url, "").unwrap()).await.unwrap();
        (PromotionTemplates::new(client, Token::literal("the-token")), asked)
    }

    #[tokio::test]
    async fn the_platform_is_asked_once_for_each_application() {
        let said = json!({"data": {"promotionTemplateByRuntime": {"versionSource": {"file": "v.json", "jsonPath": "$.v"}}}});
        let nothing = json!({"data": {"promotionTemplateByRuntime": null}});
        let (templates, asked) = platform(vec![(200, said), (200, nothing)]).await;
        let shop = json!({"namespace": "argocd", "name": "shop", "labels": {"a": "b"}});
        let expected = VersionSource { file: "v.json".to_owned(), json_path: "$.v".to_owned() };
        for _ in 0..3 {
            assert_eq!(templates.of(&shop).await, Some(expected.clone()));
            assert_eq!(templates.of(&json!({"name": "other"})).await, None);
        }
        assert_eq!(templates.of(&Value::Null).await, None);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0]["variables"], json!({"applicationMetadata": shop}));
        assert!(asked[0]["query"].as_str().unwrap().contains("versionSource { file jsonPath }"));
    }

    #[tokio::test]
    async fn a_platform_that_fails_is_asked_again_and_holds_nothing_up() {
        let half = json!({"data": {"promotionTemplateByRuntime": {"versionSource": {"file": "v.json"}}}});
        let (templates, asked) = platform(vec![(500, json!({})), (200, json!("?")), (200, half)]).await;
        let shop = json!({"name": "shop"});
        for _ in 0..4 {
            assert_eq!(templates.of(&shop).await, None);
        }
        assert_eq!(asked.lock().unwrap().len(), 3);
    }
}
