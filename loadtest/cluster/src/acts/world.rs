//! All that carries operations out, and those who ask for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::Request;
use loadtest_judge::screen::say;
use loadtest_sim::people::{Admin, FIRST};
use loadtest_sim::platform_process::PlatformProcess;
use loadtest_sim::port;
use loadtest_sim::{PATIENCE, local_client, until};
use serde_json::{Value, json};

use super::installing::{self, Installer};
use super::operations::{APPLICATIONS, Operation, WORKFLOWS};
use crate::argo::{Controller, EXECUTOR};
use crate::argocd::ArgoCd;
use crate::audit::UNUSED;
use crate::binaries::Binaries;
use crate::git::Repository;
use crate::objects::Objects;
use crate::role::{Role, write};
use crate::{Cluster, Options};

/// The namespace of what is acted on.
pub(super) const NAMESPACE: &str = "acts";
/// The application that has it.
pub(super) const APPLICATION: &str = "shop";
const RUNTIME: &str = "prod";
/// The role, and its account.
const PROXY: &str = "app-proxy";
/// The account that the server of Argo Workflows is called with.
const CALLER: &str = "caller";
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// Who asks: by the place of their key.
const NOBODY: usize = 0;
const NO_RULE: usize = 1;
const ELSEWHERE: usize = 2;
const READS: usize = 3;
const MEMBER: usize = 4;
const ADMIN: usize = 5;
/// Their names; the key that reads is the member's.
const NAMES: [&str; 6] = ["", "lin", "eve", "kim", "kim", "ada"];
/// All that rules grant of each kind.
const ACTIONS: [(&str, &[&str]); 2] = [
    (
        APPLICATIONS,
        &[
            "VIEW",
            "VIEW_POD_LOGS",
            "CREATE",
            "SYNC",
            "TERMINATE_SYNC",
            "REFRESH",
            "APP_ROLLBACK",
            "DELETE_RESOURCE",
            "RESTART",
            "ROLLOUT_RESUME",
            "ROLLOUT_PROMOTE_FULL",
            "ROLLOUT_PAUSE",
            "ROLLOUT_ABORT",
            "ROLLOUT_RETRY",
            "ROLLOUT_RESTART",
            "ROLLOUT_SKIP_CURRENT_STEP",
        ],
    ),
    (WORKFLOWS, &["VIEW", "ACCESS_LOGS", "CREATE", "RESUBMIT", "TERMINATE", "STOP"]),
];

/// What somebody is answered.
pub(super) enum Answer {
    /// What was asked for; of a log all its items.
    Given(Value),
    Refused(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(value) => write!(f, "{value}"),
            Self::Refused(why) => write!(f, "{why:?}"),
        }
    }
}

/// What whoever may not is told: where the number of a rule stands in it, `*` does here.
pub(super) struct Said(String);

impl Said {
    pub(super) fn is(&self, why: &str) -> bool {
        match self.0.split_once('*') {
            Some((begin, end)) => why.starts_with(begin) && why.ends_with(end),
            None => why == self.0,
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// How often somebody asked for an operation, and what came of it.
type Audited = BTreeMap<(String, String, &'static str), usize>;

/// Of what was asked for, each that does not stand in the audit log as often: more often it may, as a record is sent again whose answer
/// was lost.
fn lacking(expected: &Audited, found: &Audited) -> Vec<String> {
    let of = |one: &(String, String, &'static str)| found.get(one).copied().unwrap_or_default();
    let lacking = expected.iter().filter(|(one, count)| of(one) < **count);
    let told = |(one, count): (&(String, String, &'static str), &usize)| {
        let (who, act, outcome) = one;
        format!("the audit log holds {} times that {act} of {who} was {outcome}, and not {count}", of(one))
    };
    lacking.map(told).collect()
}

/// The cluster, the platform and the app proxy, with those who ask.
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) objects: Objects,
    pub(super) repository: Repository,
    /// Commits so far, and whatever else needs a number of its own.
    pub(super) number: u64,
    workflow_server: Controller,
    platform: PlatformProcess,
    proxy: Role,
    url: String,
    platform_url: String,
    http: reqwest::Client,
    admin: Admin,
    keys: Vec<String>,
    expected: Audited,
}

impl World {
    pub(super) async fn start(
        binaries: Option<&Path>,
        program: &Path,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        // What is still to be built is built before anything runs.
        let found = Binaries::find(binaries).await?;
        found.further("argo").await?;
        let executor = found.further("argoexec").await?;
        let options = Options {
            binaries: binaries.map(Path::to_path_buf),
            directory: Some(folder.join("cluster")),
            rollouts: true,
            workflows: true,
            node: true,
        };
        let cluster = Box::pin(Cluster::start(&options)).await?;
        let node = cluster.node.as_ref().context("find the node of the cluster")?;
        node.import_program(&executor, EXECUTOR).await?;
        let workflows = cluster.directory.join("workflows");
        let server = Controller::workflow_server(&cluster.binaries, &cluster.control, &workflows);
        let (workflow_server, server) = Box::pin(server).await?;
        let objects = Objects::new(cluster.control.client());
        objects.apply(RIGHTS, NAMESPACE).await?;

        let http = local_client().redirect(reqwest::redirect::Policy::none());
        let http = http.timeout(PATIENCE).build().context("make a client")?;
        tokio::fs::create_dir_all(folder.join("platform")).await.context("make a folder for the platform")?;
        let platform = PlatformProcess::start(program, &folder.join("platform")).await?;
        let (url, token) = (platform.url().to_owned(), platform.token(RUNTIME).await?);
        let own = folder.join(PROXY);
        tokio::fs::create_dir_all(&own).await.context("make a folder for the app proxy")?;
        let argocd = cluster.argocd.token(ArgoCd::ADMIN)?;
        let caller = cluster.control.account(NAMESPACE, CALLER).await?;
        for (name, token) in
            [("platform-token", &token), ("argocd-token", &argocd), ("caller-token", &caller)]
        {
            write(&own.join(name), token).await?;
        }
        let listen = format!("127.0.0.1:{}", port::free()?);
        let settings = json!({
            "platform": {"url": url, "tokenFile": own.join("platform-token")},
            "argocd": {"url": cluster.argocd.url(), "tokenFile": own.join("argocd-token")},
            "appProxy": {
                "listen": listen, "namespaces": [NAMESPACE], "remember": "0s",
                "repositories": {"directory": own.join("clones")},
                "workflows": {"url": server, "tokenFile": own.join("caller-token")},
            },
        });
        let mut proxy = Role::prepare((PROXY, PROXY), (program, &cluster.control, folder), settings).await?;
        proxy.start().await?;

        let link = platform.lines().rest_of(FIRST).await?;
        let admin = Admin::first(&http, &url, &link).await?;
        let proxy_url = format!("http://{listen}");
        admin.register(RUNTIME, &proxy_url).await?;
        let mut keys = vec![format!("goak_{}", "0".repeat(64))];
        for (team, name) in [("none", "lin"), ("elsewhere", "eve")] {
            keys.push(admin.invite(name, team).await?.key("full").await?);
        }
        let kim = admin.invite("kim", "here").await?;
        keys.extend([kim.key("read").await?, kim.key("full").await?, admin.0.key("full").await?]);
        for (entity, actions) in ACTIONS {
            let here = if entity == WORKFLOWS { NAMESPACE } else { ArgoCd::NAMESPACE };
            for (team, namespace) in [("here", here), ("elsewhere", "elsewhere")] {
                let attributes = [json!({"name": "NAMESPACE", "value": namespace})];
                let rule = json!({
                    "entityType": entity, "teams": [team], "actions": actions, "attributes": attributes,
                });
                admin.allow(&rule).await?;
            }
        }
        let repository = cluster.git.repository("acts").await?;
        let mut world = Self {
            cluster,
            objects,
            repository,
            number: 0,
            workflow_server,
            platform,
            proxy,
            url: proxy_url,
            platform_url: url,
            http,
            admin,
            keys,
            expected: Audited::new(),
        };
        world.begin().await?;
        Ok(world)
    }

    /// What each of them is told of an operation that they may not do, in the order of the table; `None`: they may.
    pub(super) fn expected_of(&self, operation: &Operation) -> [(usize, Option<Said>); 6] {
        let Operation { action, .. } = *operation;
        let entity = operation.entity();
        let is_for_admins = action.is_empty();
        let of_admins = |who: &str| format!("'{who}' may not: no rule allows this, it is for admins");
        let [no_rule, elsewhere] = if is_for_admins {
            ["lin", "eve"].map(of_admins)
        } else {
            [
                format!("'lin' may not: no rule of a team of theirs allows {action} of {entity}"),
                format!("'eve' may not: rule * allows {action} of {entity}, and not of this one"),
            ]
        };
        let may_be_read = matches!(action, "VIEW" | "VIEW_POD_LOGS" | "ACCESS_LOGS");
        let reads = "this key may only read: make one of the scope 'full'".to_owned();
        [
            (NOBODY, Some(Said("this key, token or session is not known, or has ended".to_owned()))),
            (NO_RULE, Some(Said(no_rule))),
            (ELSEWHERE, Some(Said(elsewhere))),
            (READS, (!may_be_read).then_some(Said(reads))),
            (MEMBER, is_for_admins.then(|| Said(of_admins("kim")))),
            (ADMIN, None),
        ]
    }

    /// What somebody is answered.
    pub(super) async fn ask(
        &self,
        person: usize,
        operation: &Operation,
        place: &str,
    ) -> anyhow::Result<Answer> {
        let query = operation
            .query
            .replace("APP", &format!("{{namespace: \"{}\", name: \"{APPLICATION}\"}}", ArgoCd::NAMESPACE))
            .replace(
                "DEPLOYMENT",
                r#"{group: "apps", version: "v1", kind: "Deployment", namespace: "acts", name: "web"}"#,
            )
            .replace("ROLLOUT", r#"{namespace: "acts", name: "canary"}"#)
            .replace("REPOSITORY", self.repository.url())
            .replace("PLACE", place);
        let key = self.keys.get(person).context("find a key")?;
        let asked = self.http.post(format!("{}/api/graphql", self.url)).header("authorization", key);
        let is_log = query.starts_with("subscription");
        let asked = if is_log { asked.header("accept", "text/event-stream") } else { asked };
        let said = asked.json(&json!({"query": query})).send().await.context("ask the app proxy")?;
        let text = said.text().await.context("read what the app proxy answers")?;
        let items: Vec<Value> = if is_log {
            let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
            data.filter_map(|item| serde_json::from_str(item).ok()).collect()
        } else {
            vec![serde_json::from_str(&text).with_context(|| format!("read {text:?}"))?]
        };
        let refusal = items.iter().find_map(|item| item.pointer("/errors/0/message")?.as_str());
        Ok(match refusal {
            Some(why) => Answer::Refused(why.to_owned()),
            None if items.is_empty() => Answer::Refused(text),
            None => Answer::Given(items.into_iter().map(|mut item| item["data"].take()).collect()),
        })
    }

    /// From now on it must stand in the audit log that somebody who is known asked for an operation, and what came of it.
    pub(super) fn expect(&mut self, person: usize, operation: &Operation, outcome: &'static str) {
        let name = NAMES.get(person).copied().unwrap_or_default();
        if !name.is_empty() {
            *self.expected.entry((name.to_owned(), operation.name.to_owned(), outcome)).or_default() += 1;
        }
    }

    /// What does not stand in the audit log in time, as often as it was asked for.
    pub(super) async fn unrecorded(&self) -> anyhow::Result<Vec<String>> {
        let look = async || {
            let found = self.recorded().await?;
            Ok(lacking(&self.expected, &found))
        };
        until(PATIENCE, LOOK, look, Vec::is_empty).await
    }

    async fn recorded(&self) -> anyhow::Result<Audited> {
        let (mut found, mut before) = (Audited::new(), i64::MAX);
        loop {
            let query =
                "query($before: Int!) { auditLog(first: 500, before: $before) { id who how act subject } }";
            let page = self.admin.0.ask(&json!({"query": query, "variables": {"before": before}})).await?;
            let rows = page["auditLog"].as_array().context("read the audit log")?;
            let Some(last) = rows.last() else { return Ok(found) };
            before = last["id"].as_i64().context("read the audit log")?;
            for row in rows {
                let text = |key: &str| row[key].as_str().unwrap_or_default();
                let outcome = match text("subject") {
                    subject if subject.contains("refused: ") => "refused",
                    subject if subject.ends_with("done") => "done",
                    _ => "failed",
                };
                *found.entry((text("who").to_owned(), text("act").to_owned(), outcome)).or_default() += 1;
            }
        }
    }

    /// Installs a runtime by a command, and takes it away; what is wrong with that.
    pub(super) async fn installs(&self, program: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
        self.admin.register(installing::RUNTIME, &self.url).await?;
        let key = self.keys.get(ADMIN).context("find a key")?;
        let installer = Installer {
            program,
            helm: self.cluster.binaries.program("helm"),
            kubeconfig: self.cluster.control.admin_kubeconfig(),
            home: folder.join("installer"),
            objects: &self.objects,
        };
        installer.tries(&self.platform_url, key).await
    }

    /// The workflows that there are.
    pub(super) async fn workflows(&self) -> anyhow::Result<Vec<Value>> {
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/workflows");
        let request = Request::get(path).body(Vec::new()).context("ask for workflows")?;
        let mut list: Value =
            self.cluster.control.client().request(request).await.context("list workflows")?;
        serde_json::from_value(list["items"].take()).context("read workflows")
    }

    /// Ends everything, and gives what is wrong with what the app proxy's account asked for. It may more than is needed here: what is
    /// kept of Git in Secrets, workflows where they have no server, other namespaces.
    pub(super) async fn stop(mut self) -> anyhow::Result<Vec<String>> {
        self.proxy.stop().await?;
        let asked = self.proxy.asked(&self.cluster.control).await?;
        say(&format!("{PROXY}: {}", asked.summary()));
        self.platform.stop().await?;
        self.workflow_server.kill().await?;
        self.cluster.stop().await?;
        let wrong = asked.wrong(|what| what.starts_with(UNUSED));
        Ok(wrong.into_iter().map(|what| format!("{PROXY}: {what}")).collect())
    }
}

/// The namespace, the account of workflows, and the one that their server is called with.
const RIGHTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: acts}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: workflow}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: workflow}
rules: [{apiGroups: [argoproj.io], resources: [workflowtaskresults], verbs: [create, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: workflow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: workflow}
subjects: [{kind: ServiceAccount, name: workflow, namespace: acts}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: caller}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: caller}
rules:
  - {apiGroups: [argoproj.io], resources: [workflows], verbs: [get, list, watch, create, update, patch]}
  - {apiGroups: [argoproj.io], resources: [workflowtemplates], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [pods], verbs: [get, list, watch, delete]}
  - {apiGroups: [""], resources: [pods/log], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: caller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: caller}
subjects: [{kind: ServiceAccount, name: caller, namespace: acts}]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_twice_stands_there_twice() {
        let audited = |counts: [usize; 2]| -> Audited {
            let keys = ["done", "refused"].map(|outcome| ("kim".to_owned(), "sync".to_owned(), outcome));
            keys.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
        };
        assert_eq!(lacking(&audited([2, 1]), &audited([2, 1])), [""; 0]);
        assert_eq!(lacking(&audited([2, 0]), &audited([3, 7])), [""; 0]);
        let told = lacking(&audited([2, 1]), &audited([1, 1]));
        assert_eq!(told, ["the audit log holds 1 times that sync of kim was done, and not 2"]);
    }
}
