//! The way in, by pods of the chart: a visitor at the tunnel server, its client, the router, the app proxy and Argo CD, with
//! the platform of the chart saying whose token opens the tunnel and who may ask; then the same through Traefik, and what the
//! other chart's files become, installed as they are.
//!
//! takes: an installed release - gives: what is wrong with the answers that a visitor is given
//! calls: the Services of the release by their addresses, from this machine; the platform makes the runtime's token and the
//! first account, as its notes say - fails: when nobody answers in time

use anyhow::{Context as _, bail};
use loadtest_cluster::argocd::ArgoCd;
use loadtest_judge::screen::say;
use loadtest_sim::people::{ADMIN, Admin, FIRST};
use loadtest_sim::{PATIENCE, local_client};
use reqwest::{Client, RequestBuilder, redirect};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::acting::Person;
use crate::browsing::Visitor;
use crate::connections;
use crate::converted;
use crate::ground::{Ground, NAME, NAMESPACE, secret};
use crate::traefik;
use crate::{granted, rights, until};

/// The host that visitors ask for: the account of a platform of one's own is `default`.
pub(crate) const HOST: &str = "default-prod.tunnels.example.com";
/// A host that nobody has a tunnel for.
const STRANGER: &str = "other-prod.tunnels.example.com";
/// What is said to its visitors.
const NO_TUNNEL: &str = "no tunnel is open for this host\n";
/// The Secret with the token that the platform of the chart makes.
pub(crate) const TOKEN: &str = "token-of-the-platform";
/// An application, by its name.
pub(crate) const APPLICATION: &str = "shop-one";

/// What a visitor was answered.
type Answer = (u16, String);

/// Brings all of it up, visits, and takes the tunnel away and back.
pub(crate) async fn take(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let (mut wrong, before) = (Vec::new(), ground.values.clone());
    let token = platform(ground).await?;
    granted::prepare(ground).await?;
    ground
        .upgrade(&json!({
            "global": {"codefresh": {"accountId": "default", "runtimeToken": {"secretKeyRef": {"name": TOKEN}}}},
            "tunnelServer": {"enabled": true, "domain": "tunnels.example.com"},
            "tunnelClient": {
                "to": format!("http://{NAME}-tunnel-server.{NAMESPACE}.svc"), "domain": "tunnels.example.com",
            },
            "router": {"workflowsUrl": ""},
            "appProxy": {"enabled": true},
        }))
        .await?;

    let world = World::find(ground).await?;
    let admin = admin(ground, &world.http, &world.platform).await?;
    let key = admin.0.key("full").await?;
    wrong.extend(world.led().await?);
    wrong.extend(world.asked(&key).await?);
    wrong.extend(world.strange().await?);
    wrong.extend(world.reported(&token).await?);
    wrong.extend(granted::take(&world, &key).await?);
    let person = Person::arrives(ground, &admin, (&world.platform, &key)).await?;
    wrong.extend(person.acts(ground).await?);
    let visitor = Visitor::signs_in(&world.platform, ADMIN).await?;
    wrong.extend(visitor.syncs(ground).await?);
    wrong.extend(looks_only(ground, &admin, &world.platform).await?);

    // Without the client nobody is led anywhere, and a visitor is told so.
    ground.upgrade(&json!({"tunnelClient": {"replicaCount": 0}})).await?;
    let told = world.settles(HOST, 404).await?;
    if told.1 != NO_TUNNEL {
        wrong.push(format!("without the client a visitor is told: {told:?}"));
    }
    wrong.extend(person.is_told_that_the_tunnel_is_away().await?);
    wrong.extend(visitor.is_told_that_the_tunnel_is_away().await?);
    visitor.leaves().await?;
    person.leaves(ground).await?;
    ground.upgrade(&json!({"tunnelClient": {"replicaCount": 1}})).await?;
    wrong.extend(world.led().await?);

    // Each pod on the way is killed once, and another one leads on.
    for component in ["app-proxy", "router", "tunnel-client", "tunnel-server", "platform"] {
        let killed = ground.kill_all(component).await?;
        ground.ready(component, killed.len(), &killed).await?;
        wrong.extend(world.led().await?);
    }

    // All is asked as Helm and Prometheus would, while it is there.
    ground.helm("test", &[]).await?;
    connections::scraped(ground).await?;

    wrong.extend(Box::pin(traefik::take(ground, &world, &key)).await?);
    wrong.extend(rights::judged(ground, "app-proxy").await?);
    granted::clear(ground).await?;

    converted::take(ground).await?;

    // Steps after this one report to the platform that stands outside; what the chart's own has kept stays.
    ground.values = before;
    ground.upgrade(&json!({})).await?;
    for claim in ["platform", "platform-backup"] {
        ground.before.push(format!("PersistentVolumeClaim {NAMESPACE}/{NAME}-{claim}"));
    }
    Ok(wrong)
}

/// Brings the platform up, which makes the token that the others need: it stands in a Secret from then on.
pub(crate) async fn platform(ground: &mut Ground) -> anyhow::Result<String> {
    let local = json!({"storageClass": "local"});
    let platform = json!({"enabled": true, "persistence": local, "backup": {"persistence": local}});
    ground.begin_upgrade(&json!({"platform": platform})).await?;
    ground.ready("platform", 1, &[]).await?;
    let token = on_platform(ground, &["platform", "token", "create", "--runtime", "prod"]).await?;
    let object = secret(TOKEN, "Opaque", "token", token.trim());
    ground.objects.apply_value(&object, NAMESPACE).await?;
    ground.before.push(format!("Secret {NAMESPACE}/{TOKEN}"));
    Ok(token.trim().to_owned())
}

/// The first account, which the link in the platform's log makes.
pub(crate) async fn admin(ground: &Ground, http: &Client, platform: &str) -> anyhow::Result<Admin> {
    let pod = format!("deploy/{NAME}-platform");
    let log = ground.tools.run("kubectl", &["logs", "--namespace", NAMESPACE, &pod]).await?;
    let link = log.lines().find_map(|line| line.strip_prefix(FIRST)).context("find the first link")?;
    Admin::first(http, platform, link).await
}

/// Who knocks at the platform, and where.
pub(crate) struct Knocks {
    pub(crate) http: Client,
    pub(crate) platform: String,
}

/// Finds the platform by its Service.
pub(crate) async fn knocks(ground: &Ground) -> anyhow::Result<Knocks> {
    let http = local_client().redirect(redirect::Policy::none()).timeout(PATIENCE);
    let http = http.build().context("make a client")?;
    Ok(Knocks { http, platform: format!("http://{}:8088", address(ground, "platform").await?) })
}

/// Lets somebody in who may look at everything of the runtime, and do nothing.
async fn looks_only(ground: &Ground, admin: &Admin, platform: &str) -> anyhow::Result<Vec<String>> {
    let of_runtime = json!({"name": "RUNTIME", "value": "prod"});
    let rule = json!({
        "entityType": "gitopsApplications", "teams": ["looks"], "actions": ["VIEW"], "attributes": [of_runtime],
    });
    admin.allow(&rule).await?;
    admin.invite("kim", "looks").await?;
    let visitor = Visitor::signs_in(platform, "kim").await?;
    let wrong = visitor.may_only_look(ground).await?;
    visitor.leaves().await?;
    Ok(wrong)
}

/// Runs the program in the platform's pod.
async fn on_platform(ground: &Ground, command: &[&str]) -> anyhow::Result<String> {
    let pod = format!("deploy/{NAME}-platform");
    let args = ["exec", "--namespace", NAMESPACE, &pod, "--", "/gitops-runtime"];
    ground.tools.run("kubectl", &[&args[..], command].concat()).await
}

/// Where a visitor and a person of the platform knock.
#[derive(Clone)]
pub(crate) struct World {
    http: Client,
    /// Where a visitor's requests go, whatever host they ask for.
    entrance: String,
    /// The host that leads to the runtime.
    host: &'static str,
    platform: String,
}

impl World {
    async fn find(ground: &Ground) -> anyhow::Result<Self> {
        let Knocks { http, platform } = knocks(ground).await?;
        let entrance = format!("http://{}", address(ground, "tunnel-server").await?);
        Ok(Self { http, entrance, host: HOST, platform })
    }

    /// The same for a visitor who comes another way.
    pub(crate) fn by(&self, entrance: &str, host: &'static str) -> Self {
        Self { entrance: entrance.to_owned(), host, ..self.clone() }
    }

    fn visit(&self, host: &str, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.entrance)).header("host", host)
    }

    /// What a visitor of a host is answered when they come to the app proxy, as soon as it has this status; what comes before
    /// is said.
    async fn settles(&self, host: &str, status: u16) -> anyhow::Result<Answer> {
        let (begun, mut before) = (Instant::now(), Vec::new());
        let look = async || {
            // The server itself may be on its way.
            let Ok(answer) = text(self.visit(host, "/app-proxy/api/readyz")).await else { return Ok(None) };
            if answer.0 == status {
                return Ok(Some(answer));
            }
            if !before.contains(&answer) {
                before.push(answer);
            }
            Ok(None)
        };
        let Some(answer) = until(look, Option::is_some).await? else {
            bail!("visitors of {host} are not answered {status}, but {before:?}");
        };
        let seconds = begun.elapsed().as_secs_f64();
        say(&format!(
            "  visitors of {host} are answered {answer:?} after {seconds:.1} s; before: {before:?}"
        ));
        Ok(answer)
    }

    /// Whether a visitor comes through to the app proxy.
    pub(crate) async fn led(&self) -> anyhow::Result<Vec<String>> {
        let told = self.settles(self.host, 200).await?;
        Ok(if told.1 == "OK" { Vec::new() } else { vec![format!("the app proxy says {:?}", told.1)] })
    }

    /// Whether somebody who may is answered by Argo CD, all the way and back, and somebody else is not.
    pub(crate) async fn asked(&self, key: &str) -> anyhow::Result<Vec<String>> {
        let application = format!("{{namespace: \"{}\", name: \"{APPLICATION}\"}}", ArgoCd::NAMESPACE);
        let query = format!("{{ resourceTree(application: {application}) {{ nodes {{ kind name }} }} }}");
        let ask = |key: &str| {
            let asked = self.http.post(format!("{}/app-proxy/api/graphql", self.entrance));
            let asked = asked.header("host", self.host).json(&json!({"query": query}));
            if key.is_empty() { asked } else { asked.header("authorization", key) }
        };
        let mut wrong = self.logged(key).await?;
        let said = text(ask(key)).await?;
        let tree: Value = serde_json::from_str(&said.1).unwrap_or_default();
        match tree.pointer("/data/resourceTree/nodes").and_then(Value::as_array) {
            Some(nodes) if !nodes.is_empty() => {
                say(&format!("  a visitor with a key is told of {} resources of {APPLICATION}", nodes.len()));
            }
            _ => wrong.push(format!("a visitor who asks for the tree of {APPLICATION} is told {said:?}")),
        }
        let nobody = (401, "send an API key of the platform in the header Authorization\n".to_owned());
        for (key, expected) in [("", Some(nobody)), ("not-a-key", None)] {
            let said = text(ask(key)).await?;
            let is_refused =
                expected.map_or_else(|| said.1.contains("\"errors\""), |expected| said == expected);
            if !is_refused || said.1.contains("\"kind\"") {
                wrong.push(format!("a visitor with the key {key:?} is told {said:?}"));
            }
        }
        for (path, expected) in [("/elsewhere", 404), ("/workflows/", 404)] {
            let said = text(self.visit(self.host, path)).await?;
            if said.0 != expected {
                wrong.push(format!("a visitor of {path} is told {said:?}"));
            }
        }
        Ok(wrong)
    }

    /// What the app proxy answers to a query, all the way and back.
    pub(crate) async fn answer(&self, key: &str, query: &str) -> anyhow::Result<Value> {
        let asked = self.http.post(format!("{}/app-proxy/api/graphql", self.entrance));
        let asked = asked.header("host", self.host).header("authorization", key);
        let (status, said) = text(asked.json(&json!({"query": query}))).await?;
        serde_json::from_str(&said).with_context(|| format!("read the answer {status} {said:?}"))
    }

    /// Whether an admin is told the lines of the runtime's own pods, all the way and back.
    async fn logged(&self, key: &str) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for component in ["router", "app-proxy"] {
            let query = format!(
                "subscription {{ componentLogs(componentName: \"{component}\", options: {{tailLines: 3}}) {{ data {{ content componentName podName containerName timestamp }} error done }} }}"
            );
            let asked = self.http.post(format!("{}/app-proxy/api/graphql", self.entrance));
            let asked = asked.header("host", self.host).header("accept", "text/event-stream");
            let said = text(asked.header("authorization", key).json(&json!({"query": query}))).await?;
            let data = said.1.lines().filter_map(|line| line.strip_prefix("data:"));
            let items: Vec<Value> = data
                .filter_map(|item| serde_json::from_str::<Value>(item).ok())
                .map(|mut item| item["data"]["componentLogs"].take())
                .collect();
            let lines: Vec<&Value> =
                items.iter().map(|item| &item["data"]).filter(|data| !data.is_null()).collect();
            let is_whole = |line: &&&Value| {
                line["componentName"] == component
                    && line["timestamp"].is_string()
                    && line["podName"].is_string()
            };
            let has_ended = items.last().is_some_and(|item| item["done"] == true && item["error"].is_null());
            if lines.is_empty() || lines.iter().filter(is_whole).count() != lines.len() || !has_ended {
                wrong.push(format!("an admin who asks for lines of {component} is told {said:?}"));
            }
            say(&format!("  an admin is told {} lines of {component}", lines.len()));
        }
        Ok(wrong)
    }

    /// Whether a visitor of a host that nobody has a tunnel for is told so: a server that has just begun waits for those that
    /// it does not know.
    async fn strange(&self) -> anyhow::Result<Vec<String>> {
        let said = self.settles(STRANGER, 404).await?;
        let told = format!("a visitor of another tunnel is told {said:?}");
        Ok(if said.1 == NO_TUNNEL { Vec::new() } else { vec![told] })
    }

    /// Whether the reporter of the chart told the platform of the chart of the application.
    async fn reported(&self, token: &str) -> anyhow::Result<Vec<String>> {
        let look = async || {
            let asked = self.http.get(format!("{}/api/v1/applications", self.platform));
            let said = text(asked.bearer_auth(token)).await?;
            let is_told = said.0 == 200 && said.1.contains(APPLICATION);
            let wrong =
                (!is_told).then(|| format!("the platform of the chart says of applications: {said:?}"));
            Ok(Vec::from_iter(wrong))
        };
        until(look, Vec::is_empty).await
    }
}

/// The address of a Service of the release, which this machine reaches.
async fn address(ground: &Ground, component: &str) -> anyhow::Result<String> {
    let service = ground.object("v1", "Service", &format!("{NAME}-{component}")).await?;
    let address = service.and_then(|service| service["spec"]["clusterIP"].as_str().map(str::to_owned));
    address.with_context(|| format!("find the address of {component}"))
}

async fn text(request: RequestBuilder) -> anyhow::Result<Answer> {
    let answer = request.send().await.context("visit")?;
    let status = answer.status().as_u16();
    Ok((status, answer.text().await.context("read an answer")?))
}
