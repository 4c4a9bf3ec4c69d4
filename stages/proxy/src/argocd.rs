//! Argo CD's API: what is asked of an application there, and what is changed.
//!
//! takes: an application and what is to be done - gives: what Argo CD answers - calls: `{argocd}/api/v1/applications/...`, and of
//! repositories, projects and clusters `{argocd}/api/v1/{repositories,projects,clusters}/...`
//! fails: with what Argo CD said, secrets taken out; a session that is refused is renewed once. Nothing is tried again but the
//! end of an operation: whoever asked decides that.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Call, NoMeter};
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stages_client::header::AUTHORIZATION;
use stages_client::{
    Client, HttpError, Login, Method, Opened, Reply, RequestBuilder, Session, Sessions, SyncedSources, Token,
    synced_sources,
};

use crate::clusters::ListedCluster;
use crate::error::ActError;
use crate::rendered::Rendered;
use crate::series::ARGOCD;

const PEER: &str = "Argo CD";
const SESSION: Call = Call::new(ARGOCD, "session");
/// The most characters of Argo CD's error message that are told.
const MAX_MESSAGE: usize = 1_000;
/// How its error ends where the application was written by others at each try to end an operation.
const TOO_MANY_CONFLICTS: &str = "Too many conflicts";
/// How its error ends where there is no operation to end.
const NO_OPERATION: &str = "No operation is in progress";
/// The pauses before an operation is looked at again, or told again to end.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1_600),
    Duration::from_millis(3_200),
];

/// The credentials that Argo CD is called with.
#[derive(Debug, Clone)]
pub enum Access {
    /// A token of an account.
    Token(Token),
    /// The session of an account that logs in.
    Login(Login),
}

/// A client of Argo CD's API.
pub(crate) struct ArgoCd {
    client: Client,
    access: Credentials,
    redactor: Redactor,
}

enum Credentials {
    Token(Token),
    Sessions(Arc<Sessions>),
}

/// The name of an application in Argo CD.
#[derive(Debug, Clone)]
pub(crate) struct ApplicationName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The last operation of an application. Operations have no names: one is told from others by its start.
struct Operation {
    phase: String,
    started_at: String,
}

/// A request to Argo CD's API.
struct ApiRequest<'a> {
    /// Completes "Argo CD did not ...".
    act: &'static str,
    method: Method,
    /// Below the path of the application that it is about, if it is about one.
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

/// A resource tree, as far as it is read.
#[derive(Deserialize)]
struct Tree {
    #[serde(default)]
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    group: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    uid: String,
}

impl<'a> ApiRequest<'a> {
    fn get(act: &'static str, path: &'a [&'a str]) -> Self {
        Self { act, method: Method::GET, path, query: Vec::new(), body: None }
    }
}

impl std::fmt::Debug for ArgoCd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgoCd").field("host", self.client.host()).finish_non_exhaustive()
    }
}

impl ArgoCd {
    pub(crate) fn new(client: Client, access: Access, redactor: Redactor) -> Self {
        let access = match access {
            Access::Token(token) => Credentials::Token(token),
            Access::Login(login) => Credentials::Sessions(Arc::new(Sessions::new(login, SESSION))),
        };
        Self { client, access, redactor }
    }

    /// Takes secrets out of texts of Argo CD.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The application, as it is.
    pub(crate) async fn application(&self, app: &ApplicationName) -> Result<Value, ActError> {
        self.about(app, ApiRequest::get("read the application", &[])).await
    }

    pub(crate) async fn refresh(&self, app: &ApplicationName, kind: &'static str) -> Result<Value, ActError> {
        let query = vec![("refresh", kind.to_owned())];
        self.about(app, ApiRequest { query, ..ApiRequest::get("refresh the application", &[]) }).await
    }

    /// Begins a sync; `options` are the fields of Argo CD's own request. A revision is refused for an application of several sources:
    /// Argo CD passes over it there, and would sync to those that the sources follow.
    pub(crate) async fn sync(&self, app: &ApplicationName, options: Value) -> Result<Value, ActError> {
        if options.get("revision").and_then(Value::as_str).is_some_and(|revision| !revision.is_empty()) {
            let found = self.application(app).await?;
            let SyncedSources { all, are_several, .. } = synced_sources(&found["spec"]);
            if are_several {
                let sources = all.len();
                return Err(ActError::Wrong(format!(
                    "the sources of the application are a list of {sources}, for which Argo CD passes over a revision: leave it out"
                )));
            }
        }
        self.post(app, "sync the application", "sync", options).await
    }

    pub(crate) async fn rollback(&self, app: &ApplicationName, options: Value) -> Result<Value, ActError> {
        self.post(app, "roll the application back", "rollback", options).await
    }

    /// Ends the operation that is under way, and gives when it started, if that may be read.
    ///
    /// Argo CD ends an operation by a phase that it writes into the application, and its controller may write `Running` over that:
    /// so the application is read again, and Argo CD is told again. An operation that began meanwhile goes on.
    pub(crate) async fn terminate(&self, app: &ApplicationName) -> Result<Option<String>, ActError> {
        let before = self.operation(app).await.ok();
        let is_under_way = |operation: &Operation| matches!(&*operation.phase, "Running" | "Terminating");
        let mut ended = before.filter(is_under_way).map(|operation| operation.started_at);
        self.tell_to_end(app).await?;
        for pause in PAUSES {
            tokio::time::sleep(pause).await;
            // Argo CD was told to end it; an account that may not read the application learns no more.
            let Ok(Operation { phase, started_at }) = self.operation(app).await else { break };
            let is_it = *ended.get_or_insert_with(|| started_at.clone()) == started_at;
            match &*phase {
                "Running" if is_it => match self.tell_to_end(app).await {
                    Err(ActError::Peer { said, .. }) if said.ends_with(NO_OPERATION) => break,
                    told => told?,
                },
                "Terminating" if is_it => {}
                _ => break,
            }
        }
        Ok(ended.filter(|started_at| !started_at.is_empty()))
    }

    /// Tells Argo CD to end the operation, again where it gave up because others wrote the application meanwhile.
    async fn tell_to_end(&self, app: &ApplicationName) -> Result<(), ActError> {
        let act = "end the application's operation";
        let mut pauses = PAUSES.into_iter();
        loop {
            let asked = ApiRequest { method: Method::DELETE, ..ApiRequest::get(act, &["operation"]) };
            match (self.about::<Value>(app, asked).await, pauses.next()) {
                (Err(ActError::Peer { said, .. }), Some(pause)) if said.ends_with(TOO_MANY_CONFLICTS) => {
                    tokio::time::sleep(pause).await;
                }
                (ended, _) => return ended.map(drop),
            }
        }
    }

    async fn operation(&self, app: &ApplicationName) -> Result<Operation, ActError> {
        let application = self.application(app).await?;
        let of = |field| application.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (phase, started_at) =
            (of("/status/operationState/phase"), of("/status/operationState/startedAt"));
        Ok(Operation { phase, started_at })
    }

    pub(crate) async fn tree<T: DeserializeOwned>(&self, app: &ApplicationName) -> Result<T, ActError> {
        self.about(app, ApiRequest::get("read the resource tree", &["resource-tree"])).await
    }

    /// The uid of an object that an application has, of a group and kind, by its namespace and name.
    pub(crate) async fn uid(
        &self,
        app: &ApplicationName,
        (group, kind): (&str, &str),
        (namespace, name): (&str, &str),
    ) -> Result<String, ActError> {
        let tree: Tree = self.tree(app).await?;
        let is_it = |node: &Node| {
            (&*node.group, &*node.kind, &*node.namespace, &*node.name) == (group, kind, namespace, name)
        };
        let node = tree.nodes.into_iter().find(is_it).ok_or_else(|| {
            let place = [namespace, name]
                .iter()
                .filter(|part| !part.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join("/");
            ActError::NotFound(format!(
                "the application {}/{} has no {kind} {place}",
                app.namespace, app.name
            ))
        })?;
        Ok(node.uid)
    }

    pub(crate) async fn managed<T: DeserializeOwned>(&self, app: &ApplicationName) -> Result<T, ActError> {
        self.about(app, ApiRequest::get("read the managed resources", &["managed-resources"])).await
    }

    /// The manifests at these revisions, one for each source of the application.
    pub(crate) async fn rendered(
        &self,
        app: &ApplicationName,
        revisions: &[String],
    ) -> Result<Rendered, ActError> {
        let found = self.application(app).await?;
        let SyncedSources { all: sources, are_several, .. } = synced_sources(&found["spec"]);
        let query = match (are_several, revisions) {
            (false, [revision]) => vec![("revision", revision.clone())],
            // Argo CD counts sources from 1, and ignores `revision` where an application has several sources.
            (true, all) if all.len() == sources.len() => {
                let at = |(place, revision): (usize, &String)| {
                    [("sourcePositions", (place + 1).to_string()), ("revisions", revision.clone())]
                };
                all.iter().enumerate().flat_map(at).collect()
            }
            (_, all) => {
                let (sources, given) = (sources.len(), all.len());
                let text = match sources {
                    0 | 1 => format!("the application has one source: give one revision, not {given}"),
                    _ => {
                        format!("the application has {sources} sources: give as many revisions, not {given}")
                    }
                };
                return Err(ActError::Wrong(text));
            }
        };
        self.about(app, ApiRequest { query, ..ApiRequest::get("make the manifests", &["manifests"]) }).await
    }

    pub(crate) async fn events<T: DeserializeOwned>(
        &self,
        app: &ApplicationName,
        query: Vec<(&'static str, String)>,
    ) -> Result<T, ActError> {
        self.about(app, ApiRequest { query, ..ApiRequest::get("read events", &["events"]) }).await
    }

    pub(crate) async fn delete(
        &self,
        app: &ApplicationName,
        query: Vec<(&'static str, String)>,
    ) -> Result<(), ActError> {
        let asked = ApiRequest::get("delete the resource", &["resource"]);
        self.about::<Value>(app, ApiRequest { method: Method::DELETE, query, ..asked }).await.map(drop)
    }

    pub(crate) async fn actions<T: DeserializeOwned>(
        &self,
        app: &ApplicationName,
        query: Vec<(&'static str, String)>,
    ) -> Result<T, ActError> {
        self.about(app, ApiRequest { query, ..ApiRequest::get("list actions", &["resource", "actions"]) })
            .await
    }

    pub(crate) async fn run(
        &self,
        app: &ApplicationName,
        query: Vec<(&'static str, String)>,
        action: &str,
    ) -> Result<(), ActError> {
        let asked = ApiRequest::get("run the action", &["resource", "actions"]);
        let asked = ApiRequest { method: Method::POST, query, body: Some(action.into()), ..asked };
        self.about::<Value>(app, asked).await.map(drop)
    }

    /// The deep links that Argo CD is set to show beside an application, or beside a resource of it.
    pub(crate) async fn links<T: DeserializeOwned>(
        &self,
        app: &ApplicationName,
        resource: Option<Vec<(&'static str, String)>>,
    ) -> Result<T, ActError> {
        let act = "list links";
        match resource {
            Some(query) => {
                self.about(app, ApiRequest { query, ..ApiRequest::get(act, &["resource", "links"]) }).await
            }
            None => {
                // This request alone calls the application's namespace `namespace`, and not `appNamespace`.
                let query = vec![("namespace", app.namespace.clone())];
                self.about(app, ApiRequest { query, ..ApiRequest::get(act, &["links"]) }).await
            }
        }
    }

    /// The details of a source in a repository; `details` is Argo CD's own request.
    pub(crate) async fn details<T: DeserializeOwned>(
        &self,
        repository: &str,
        details: Value,
    ) -> Result<T, ActError> {
        let path = ["api", "v1", "repositories", repository, "appdetails"];
        let asked = ApiRequest::get("read the source", &[]);
        self.ask(&ApiRequest { method: Method::POST, body: Some(details), ..asked }, &path, None).await
    }

    pub(crate) async fn project(&self, name: &str) -> Result<Value, ActError> {
        self.ask(&ApiRequest::get("read the project", &[]), &["api", "v1", "projects", name], None).await
    }

    /// A cluster, by its address (`url`) or its name (`name`).
    pub(crate) async fn cluster(&self, (kind, value): (&str, &str)) -> Result<Value, ActError> {
        let asked = ApiRequest::get("read the cluster", &[]);
        let query = vec![("id.type", kind.to_owned())];
        self.ask(&ApiRequest { query, ..asked }, &["api", "v1", "clusters", value], None).await
    }

    /// All clusters that the account may list.
    pub(crate) async fn clusters(&self) -> Result<Vec<ListedCluster>, ActError> {
        #[derive(Deserialize)]
        struct List {
            items: Option<Vec<ListedCluster>>,
        }
        let list: List =
            self.ask(&ApiRequest::get("list clusters", &[]), &["api", "v1", "clusters"], None).await?;
        Ok(list.items.unwrap_or_default())
    }

    /// Lines of logs, as Argo CD streams them, for at most so long.
    pub(crate) async fn logs(
        &self,
        app: &ApplicationName,
        query: Vec<(&'static str, String)>,
        within: Duration,
    ) -> Result<Opened, ActError> {
        let asked = ApiRequest { query, ..ApiRequest::get("read logs", &["logs"]) };
        let (act, path) = (asked.act, application_path(app, asked.path));
        for last in [false, true] {
            let (request, session) = self.request(Some(app), &asked, &path).await?;
            let opened = self.client.open(act, request.timeout(within)).await.map_err(|e| away(act, e))?;
            match opened {
                Ok(opened) => return Ok(opened),
                Err(reply) if !last && self.lost(&reply, session.as_ref()) => {}
                Err(reply) => return Err(self.refused(act, &reply)),
            }
        }
        Err(ActError::Unreadable(PEER))
    }

    /// Whether Argo CD knows the account that it is called with.
    ///
    /// # Errors
    /// If Argo CD does not answer.
    pub(crate) async fn knows_us(&self) -> Result<bool, ActError> {
        let asked = ApiRequest::get("ask who this is", &[]);
        let answer: Value = self.ask(&asked, &["api", "v1", "session", "userinfo"], None).await?;
        Ok(answer.get("loggedIn") == Some(&Value::Bool(true)))
    }

    async fn post(
        &self,
        app: &ApplicationName,
        act: &'static str,
        path: &str,
        mut body: Value,
    ) -> Result<Value, ActError> {
        if let Value::Object(fields) = &mut body {
            fields.retain(|_, value| !value.is_null());
            fields.insert("name".to_owned(), json!(app.name));
            fields.insert("appNamespace".to_owned(), json!(app.namespace));
        }
        self.about(
            app,
            ApiRequest { method: Method::POST, body: Some(body), ..ApiRequest::get(act, &[path]) },
        )
        .await
    }

    async fn about<T: DeserializeOwned>(
        &self,
        app: &ApplicationName,
        asked: ApiRequest<'_>,
    ) -> Result<T, ActError> {
        let path = application_path(app, asked.path);
        self.ask(&asked, &path, Some(app)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        asked: &ApiRequest<'_>,
        path: &[&str],
        app: Option<&ApplicationName>,
    ) -> Result<T, ActError> {
        let act = asked.act;
        for last in [false, true] {
            let (request, session) = self.request(app, asked, path).await?;
            let reply = self.client.send(act, request).await.map_err(|error| away(act, error))?;
            if !last && self.lost(&reply, session.as_ref()) {
                continue;
            }
            if !(200..300).contains(&reply.status()) {
                return Err(self.refused(act, &reply));
            }
            if let Some(session) = &session {
                session.is_taken();
            }
            return serde_json::from_slice(reply.body()).map_err(|_| ActError::Unreadable(PEER));
        }
        Err(ActError::Unreadable(PEER))
    }

    async fn request(
        &self,
        app: Option<&ApplicationName>,
        asked: &ApiRequest<'_>,
        path: &[&str],
    ) -> Result<(RequestBuilder, Option<Session>), ActError> {
        let act = asked.act;
        let request =
            self.client.request(act, asked.method.clone(), path).map_err(|error| away(act, error))?;
        let request = match app {
            Some(app) => request.query(&[("appNamespace", &app.namespace)]),
            None => request,
        };
        let mut request = request.query(&asked.query);
        request = match &asked.body {
            Some(body) => request.json(body),
            None if asked.method == Method::GET => request,
            // Argo CD refuses a change without a content type.
            None => request.header("content-type", "application/json"),
        };
        self.authorized(act, request).await
    }

    async fn authorized(
        &self,
        act: &'static str,
        request: RequestBuilder,
    ) -> Result<(RequestBuilder, Option<Session>), ActError> {
        match &self.access {
            Credentials::Token(token) => {
                let request = self.client.authorize(act, request, token, "Bearer ").await;
                Ok((request.map_err(|error| away(act, error))?, None))
            }
            Credentials::Sessions(sessions) => {
                let session = sessions.get(&self.client, &NoMeter).await.map_err(|error| away(act, error))?;
                Ok((request.header(AUTHORIZATION, session.header()), Some(session)))
            }
        }
    }

    /// Whether the session was refused, so that a new one may be accepted.
    fn lost(&self, reply: &Reply, session: Option<&Session>) -> bool {
        match (&self.access, session) {
            (Credentials::Sessions(sessions), Some(session)) if reply.status() == 401 => {
                sessions.lost(session)
            }
            _ => false,
        }
    }

    fn refused(&self, act: &'static str, reply: &Reply) -> ActError {
        let status = reply.status();
        if status == 401 {
            let said = "it does not know this app proxy: see the token or the login under the setting argocd";
            return ActError::Peer { peer: PEER, act, status, said: said.to_owned() };
        }
        let body: Value = serde_json::from_slice(reply.body()).unwrap_or_default();
        let said = ["message", "error"].iter().find_map(|key| body.get(key)?.as_str());
        let said: String = said.unwrap_or("it does not say why").chars().take(MAX_MESSAGE).collect();
        ActError::Peer { peer: PEER, act, status, said: self.redactor.text(&said).into_owned() }
    }
}

/// The path of an application, and the rest of the path behind it.
fn application_path<'a>(app: &'a ApplicationName, rest: &[&'a str]) -> Vec<&'a str> {
    [&["api", "v1", "applications", &app.name], rest].concat()
}

fn away(act: &'static str, source: HttpError) -> ActError {
    ActError::Away { peer: PEER, act, source }
}
