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
/// So much of what Argo CD says of a failure is told.
const SAID: usize = 1_000;
/// What it says at the end where others wrote the application at each of its tries to end an operation.
const TOO_MANY: &str = "Too many conflicts";
/// What it says at the end where there is no operation to end.
const NONE: &str = "No operation is in progress";
/// Before it is told again to end one, and before each look at what became of it.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1_600),
    Duration::from_millis(3_200),
];

/// What Argo CD is called with.
#[derive(Debug, Clone)]
pub enum Access {
    /// A token of an account.
    Token(Token),
    /// The session of an account that logs in.
    Login(Login),
}

/// One Argo CD.
pub(crate) struct ArgoCd {
    client: Client,
    access: Credentials,
    redactor: Redactor,
}

enum Credentials {
    Token(Token),
    Sessions(Arc<Sessions>),
}

/// An application there.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What an application's last operation does, and since when: its name, for there is no other.
struct Operation {
    phase: String,
    started_at: String,
}

/// A call: what it is, and where.
struct Asked<'a> {
    act: &'static str,
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

/// What an application has, as far as it is looked for.
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

impl<'a> Asked<'a> {
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

    /// What takes secrets out of texts of Argo CD.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The application, as it is.
    pub(crate) async fn application(&self, app: &Name) -> Result<Value, ActError> {
        self.about(app, Asked::get("read the application", &[])).await
    }

    pub(crate) async fn refresh(&self, app: &Name, kind: &'static str) -> Result<Value, ActError> {
        let query = vec![("refresh", kind.to_owned())];
        self.about(app, Asked { query, ..Asked::get("refresh the application", &[]) }).await
    }

    /// What a sync does; `options` are those of Argo CD's own request. Of an application that has several sources Argo CD passes over
    /// a revision, and would sync it to those that it follows.
    pub(crate) async fn sync(&self, app: &Name, options: Value) -> Result<Value, ActError> {
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

    pub(crate) async fn rollback(&self, app: &Name, options: Value) -> Result<Value, ActError> {
        self.post(app, "roll the application back", "rollback", options).await
    }

    /// Argo CD ends an operation by a word that it writes into the application, and its controller may write `Running` over
    /// it: so it is looked after, and told again. One that began meanwhile is another's, and goes on. Gives when that which is
    /// ended started, if it may be read.
    pub(crate) async fn terminate(&self, app: &Name) -> Result<Option<String>, ActError> {
        let before = self.operation(app).await.ok();
        let is_under_way = |operation: &Operation| matches!(&*operation.phase, "Running" | "Terminating");
        let mut ended = before.filter(is_under_way).map(|operation| operation.started_at);
        self.told_to_end(app).await?;
        for pause in PAUSES {
            tokio::time::sleep(pause).await;
            // That it was told is what was asked for: whoever may not read it learns no more.
            let Ok(Operation { phase, started_at }) = self.operation(app).await else { break };
            let is_it = *ended.get_or_insert_with(|| started_at.clone()) == started_at;
            match &*phase {
                "Running" if is_it => match self.told_to_end(app).await {
                    Err(ActError::Peer { said, .. }) if said.ends_with(NONE) => break,
                    told => told?,
                },
                "Terminating" if is_it => {}
                _ => break,
            }
        }
        Ok(ended.filter(|started_at| !started_at.is_empty()))
    }

    /// Argo CD gives it up where others write the application at each of its tries: it is told again then.
    async fn told_to_end(&self, app: &Name) -> Result<(), ActError> {
        let act = "end the application's operation";
        let mut pauses = PAUSES.into_iter();
        loop {
            let asked = Asked { method: Method::DELETE, ..Asked::get(act, &["operation"]) };
            match (self.about::<Value>(app, asked).await, pauses.next()) {
                (Err(ActError::Peer { said, .. }), Some(pause)) if said.ends_with(TOO_MANY) => {
                    tokio::time::sleep(pause).await;
                }
                (ended, _) => return ended.map(drop),
            }
        }
    }

    async fn operation(&self, app: &Name) -> Result<Operation, ActError> {
        let application = self.application(app).await?;
        let of = |field| application.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (phase, started_at) =
            (of("/status/operationState/phase"), of("/status/operationState/startedAt"));
        Ok(Operation { phase, started_at })
    }

    pub(crate) async fn tree<T: DeserializeOwned>(&self, app: &Name) -> Result<T, ActError> {
        self.about(app, Asked::get("read the resource tree", &["resource-tree"])).await
    }

    /// The uid of an object that an application has, of a group and kind, by its namespace and name.
    pub(crate) async fn uid(
        &self,
        app: &Name,
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

    pub(crate) async fn managed<T: DeserializeOwned>(&self, app: &Name) -> Result<T, ActError> {
        self.about(app, Asked::get("read the managed resources", &["managed-resources"])).await
    }

    /// What repositories say at these revisions, one for each source.
    pub(crate) async fn rendered(&self, app: &Name, revisions: &[String]) -> Result<Rendered, ActError> {
        let found = self.application(app).await?;
        let SyncedSources { all: sources, are_several, .. } = synced_sources(&found["spec"]);
        let query = match (are_several, revisions) {
            (false, [revision]) => vec![("revision", revision.clone())],
            // Argo CD counts them from 1, and passes over the revision of an application that has several.
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
        self.about(app, Asked { query, ..Asked::get("make the manifests", &["manifests"]) }).await
    }

    pub(crate) async fn events<T: DeserializeOwned>(
        &self,
        app: &Name,
        query: Vec<(&'static str, String)>,
    ) -> Result<T, ActError> {
        self.about(app, Asked { query, ..Asked::get("read events", &["events"]) }).await
    }

    pub(crate) async fn delete(
        &self,
        app: &Name,
        query: Vec<(&'static str, String)>,
    ) -> Result<(), ActError> {
        let asked = Asked::get("delete the resource", &["resource"]);
        self.about::<Value>(app, Asked { method: Method::DELETE, query, ..asked }).await.map(drop)
    }

    pub(crate) async fn actions<T: DeserializeOwned>(
        &self,
        app: &Name,
        query: Vec<(&'static str, String)>,
    ) -> Result<T, ActError> {
        self.about(app, Asked { query, ..Asked::get("list actions", &["resource", "actions"]) }).await
    }

    pub(crate) async fn run(
        &self,
        app: &Name,
        query: Vec<(&'static str, String)>,
        action: &str,
    ) -> Result<(), ActError> {
        let asked = Asked::get("run the action", &["resource", "actions"]);
        let asked = Asked { method: Method::POST, query, body: Some(action.into()), ..asked };
        self.about::<Value>(app, asked).await.map(drop)
    }

    /// The links that it is set to show beside an application, or beside a resource that is asked for.
    pub(crate) async fn links<T: DeserializeOwned>(
        &self,
        app: &Name,
        resource: Option<Vec<(&'static str, String)>>,
    ) -> Result<T, ActError> {
        let act = "list links";
        match resource {
            Some(query) => self.about(app, Asked { query, ..Asked::get(act, &["resource", "links"]) }).await,
            None => {
                // Of all that is asked of an application, this alone calls its namespace so.
                let query = vec![("namespace", app.namespace.clone())];
                self.about(app, Asked { query, ..Asked::get(act, &["links"]) }).await
            }
        }
    }

    /// What a source in a repository is made of; `details` is Argo CD's own request.
    pub(crate) async fn details<T: DeserializeOwned>(
        &self,
        repository: &str,
        details: Value,
    ) -> Result<T, ActError> {
        let path = ["api", "v1", "repositories", repository, "appdetails"];
        let asked = Asked::get("read the source", &[]);
        self.ask(&Asked { method: Method::POST, body: Some(details), ..asked }, &path, None).await
    }

    pub(crate) async fn project(&self, name: &str) -> Result<Value, ActError> {
        self.ask(&Asked::get("read the project", &[]), &["api", "v1", "projects", name], None).await
    }

    /// A cluster, by its address (`url`) or its name (`name`).
    pub(crate) async fn cluster(&self, (kind, value): (&str, &str)) -> Result<Value, ActError> {
        let asked = Asked::get("read the cluster", &[]);
        let query = vec![("id.type", kind.to_owned())];
        self.ask(&Asked { query, ..asked }, &["api", "v1", "clusters", value], None).await
    }

    /// All clusters that it may tell of.
    pub(crate) async fn clusters(&self) -> Result<Vec<ListedCluster>, ActError> {
        #[derive(Deserialize)]
        struct List {
            items: Option<Vec<ListedCluster>>,
        }
        let list: List =
            self.ask(&Asked::get("list clusters", &[]), &["api", "v1", "clusters"], None).await?;
        Ok(list.items.unwrap_or_default())
    }

    /// Lines of logs, as Argo CD streams them, for at most so long.
    pub(crate) async fn logs(
        &self,
        app: &Name,
        query: Vec<(&'static str, String)>,
        within: Duration,
    ) -> Result<Opened, ActError> {
        let asked = Asked { query, ..Asked::get("read logs", &["logs"]) };
        let (act, path) = (asked.act, of(app, asked.path));
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

    /// Whether the token is one of Argo CD; `None`: it does not answer.
    pub(crate) async fn knows_us(&self) -> Result<bool, ActError> {
        let asked = Asked::get("ask who this is", &[]);
        let answer: Value = self.ask(&asked, &["api", "v1", "session", "userinfo"], None).await?;
        Ok(answer.get("loggedIn") == Some(&Value::Bool(true)))
    }

    async fn post(
        &self,
        app: &Name,
        act: &'static str,
        path: &str,
        mut body: Value,
    ) -> Result<Value, ActError> {
        if let Value::Object(fields) = &mut body {
            fields.retain(|_, value| !value.is_null());
            fields.insert("name".to_owned(), json!(app.name));
            fields.insert("appNamespace".to_owned(), json!(app.namespace));
        }
        self.about(app, Asked { method: Method::POST, body: Some(body), ..Asked::get(act, &[path]) }).await
    }

    async fn about<T: DeserializeOwned>(&self, app: &Name, asked: Asked<'_>) -> Result<T, ActError> {
        let path = of(app, asked.path);
        self.ask(&asked, &path, Some(app)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        asked: &Asked<'_>,
        path: &[&str],
        app: Option<&Name>,
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
        app: Option<&Name>,
        asked: &Asked<'_>,
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
            // It refuses a change that says no type.
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

    /// Whether another session may help.
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
        let said: String = said.unwrap_or("it does not say why").chars().take(SAID).collect();
        ActError::Peer { peer: PEER, act, status, said: self.redactor.text(&said).into_owned() }
    }
}

fn of<'a>(app: &'a Name, rest: &[&'a str]) -> Vec<&'a str> {
    [&["api", "v1", "applications", &app.name], rest].concat()
}

fn away(act: &'static str, source: HttpError) -> ActError {
    ActError::Away { peer: PEER, act, source }
}
