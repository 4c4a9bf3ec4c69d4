//! What values of the chart exclude or need of each other, and those of the incumbent's components.

use super::{Chart, Judged, Severity};
use crate::finding::MASKED;

/// Settings that are secrets, of whichever process.
const SECRETS: &[&str] = &[
    "admin.token",
    "argocd.password",
    "argocd.token",
    "bus.password",
    "bus.token",
    "changeRevision.repositories.credential.password",
    "kubernetes.token",
    "platform.token",
    "platformServer.oidc.clientSecret",
    "platformServer.store.postgresUrl",
    "sourceServer.git.repositories.credential.password",
    "traces.otlp.headers",
    "traces.otlp.token",
    "tunnelClient.token",
];

/// Those that the chart has a value for, and that value.
const REFERRED: &[(&str, &str)] = &[
    ("changeRevision.repositories.credential.password", "changeRevision.git.credentialSecrets"),
    ("platformServer.oidc.clientSecret", "platform.oidc.secretKeyRef"),
    ("platformServer.store.postgresUrl", "platform.postgres.secretKeyRef"),
    ("sourceServer.git.repositories.credential.password", "sourceServer.git.credentialSecrets"),
    ("tunnelClient.token", "tunnelClient.tokenSecretKeyRef"),
];

/// Where budgets stand, ours first.
const BUDGETS: &[&str] = &[
    "reporter.pdb",
    "resourceReporter.pdb",
    "sourceServer.pdb",
    "router.pdb",
    "tunnelClient.pdb",
    "tunnelServer.pdb",
    "appProxy.pdb",
    "changeRevision.pdb",
    "global.event-reporters.pdb",
    "app-proxy.pdb",
    "gitops-operator.pdb",
    "argo-gateway.pdb",
    "internal-router.pdb",
    "redis.pdb",
];

/// Those that the incumbent has where nothing is said.
const USUAL_BUDGETS: [&str; 2] = ["global.event-reporters.pdb", "argo-gateway.pdb"];

/// Where replicas may come and go.
const SCALED: &[&str] = &["reporter.autoscaling", "router.autoscaling", "sourceServer.autoscaling"];

pub(super) fn check(judged: &mut Judged) {
    bus(judged);
    secrets(judged);
    bus_address(judged);
    let password = super::argocd_access(judged) == "password" && judged.truth("reporter.enabled");
    let (replicas, most) = ("reporter.replicaCount", "reporter.autoscaling.maxReplicas");
    let scaled = judged.truth("reporter.autoscaling.enabled");
    let path = if scaled { most } else { replicas };
    if password && judged.number(path).is_some_and(|count| count > 4.0) {
        let todo = "give a token, which no login is needed for: Argo CD locks an account at the fifth wrong password";
        judged.warning("GR0069", path, "4 at most where replicas log in by password", todo);
    }
    let host = "platform.ingress.host";
    if judged.truth("platform.ingress.enabled") && judged.is_empty(host) {
        judged.error("GR0068", host, "the host of the Ingress", "give it, or set enabled to false");
    }
    route(judged, "platform.httpRoute");
    if !judged.is_empty("platform.oidc.issuer") {
        for (path, wanted) in [
            ("platform.oidc.clientId", "who the platform is at the provider"),
            ("platform.oidc.secretKeyRef", "the Secret by which the platform proves that"),
        ] {
            if judged.is_empty(path) {
                judged.error("GR0075", path, wanted, "give it, or take the issuer away");
            }
        }
    }
    namespaces(judged);
    for group in BUDGETS {
        let empty = |key: &str| judged.is_empty(&format!("{group}.{key}"));
        let enabled = format!("{group}.enabled");
        let is_usual = USUAL_BUDGETS.contains(group) && judged.at(&enabled).is_none();
        if (judged.truth(&enabled) || is_usual)
            && judged.at(group).is_some_and(|node| node.get("minAvailable").is_some())
            && empty("minAvailable")
            && empty("maxUnavailable")
        {
            judged.error(
                "GR0051",
                group,
                "minAvailable or maxUnavailable",
                "give one, or set enabled to false",
            );
        }
    }
    source_server(judged);
    incumbent(judged);
}

/// Other namespaces than the one that the runtime is to keep to.
fn namespaces(judged: &mut Judged) {
    if !judged.truth("global.runtime.singleNamespace") {
        return;
    }
    let either = "take one of the two away";
    let acts = "take it away: Rollouts and Workflows of the release's namespace are changed";
    let reports = "set it to []: objects of Argo CD's namespace are reported";
    for (component, path, todo) in [
        ("", "reporter.applicationNamespaces", either),
        ("", "reporter.config.kubernetes.applicationNamespaces", either),
        ("appProxy", "appProxy.namespaces", acts),
        ("appProxy", "appProxy.config.appProxy.namespaces", acts),
        ("changeRevision", "changeRevision.config.kubernetes.applicationNamespaces", either),
        ("resourceReporter", "resourceReporter.namespaces", reports),
        ("resourceReporter", "resourceReporter.config.resources.namespaces", reports),
    ] {
        let runs = component.is_empty() || judged.is_on(component);
        if runs && !judged.is_empty(path) {
            judged.error("GR0064", path, "none with global.runtime.singleNamespace", todo);
        }
    }
}

/// Secrets among the settings of a process, which stand in a ConfigMap.
fn secrets(judged: &mut Judged) {
    let components = Chart::get().values.iter().filter_map(|value| value.path.strip_suffix(".config"));
    for component in components {
        for setting in SECRETS {
            let path = format!("{component}.config.{setting}");
            if judged.is_empty(&path) {
                continue;
            }
            let value = REFERRED.iter().find(|(of, value)| of == setting && value.starts_with(component));
            let todo = match value {
                Some((_, value)) => format!("give {value}"),
                None => format!("mount a Secret by {component}.extraVolumes, and give the file"),
            };
            let wanted = "no secret: settings stand in a ConfigMap";
            judged.told(Severity::Error, "GR0066", &path, MASKED.to_owned(), wanted, &todo);
        }
    }
}

/// The addresses of the bus stand in a ConfigMap as well.
fn bus_address(judged: &mut Judged) {
    if judged.text("nats.url").contains('@') {
        let todo = "give nats.auth.tokenSecretKeyRef or nats.auth.credentialsSecretKeyRef";
        judged.error("GR0066", "nats.url", "no user and no password: settings stand in a ConfigMap", todo);
    }
}

fn source_server(judged: &mut Judged) {
    let enabled = "sourceServer.enabled";
    if judged.truth(enabled) && judged.truth("global.runtime.singleNamespace") && judged.truth("rbac.create")
    {
        let wanted = "false where nobody may make a ClusterRole: `create` of tokenreviews is of no namespace";
        let todo = "have whoever may make it install the chart; or set rbac.create to false, and have them apply what \
                    `gitops-runtime rbac print` prints for each role";
        judged.warning("GR0076", enabled, wanted, todo);
    }
    let given = judged.at("sourceServer.config.sourceServer").is_some();
    if !judged.truth("sourceServer.enabled") || given {
        return;
    }
    let allowed = "sourceServer.allowed";
    let credentials = ["sourceServer.argocdCredentials", "sourceServer.git.credentialSecrets"];
    let has_credentials = judged.truth(credentials[0]) || !judged.is_empty(credentials[1]);
    if judged.is_empty(allowed) && !has_credentials {
        let todo = "give them, or sourceServer.git.credentialSecrets, or set sourceServer.argocdCredentials";
        judged.error("GR0074", allowed, "how addresses of repositories begin that it fetches", todo);
    }
    let callers = "sourceServer.callers";
    if judged.is_empty(callers) && !judged.truth("reporter.enabled") {
        let wanted = "ServiceAccounts that may ask, where the reporter is off";
        judged.error("GR0074", callers, wanted, "give them, such as argocd/event-reporter");
    }
}

fn bus(judged: &mut Judged) {
    let mode = judged.text("nats.mode").to_owned();
    let scaled = judged.truth("reporter.autoscaling.enabled");
    let todo = "set nats.mode to embedded or existing";
    if mode == "none" {
        if judged.number("reporter.replicaCount").is_some_and(|count| count > 1.0) {
            judged.error("GR0060", "reporter.replicaCount", "1 without a bus", todo);
        }
        if scaled {
            judged.error("GR0060", "reporter.autoscaling.enabled", "false without a bus", todo);
        }
    }
    let replicas = "changeRevision.replicaCount";
    if judged.truth("changeRevision.enabled") && judged.number(replicas).is_some_and(|count| count > 1.0) {
        needs_bus(judged, replicas, "1");
    }
    if judged.truth("sourceServer.enabled") && judged.truth("sourceServer.overBus") {
        needs_bus(judged, "sourceServer.overBus", "false");
    }
    if mode == "existing" && judged.is_empty("nats.url") {
        judged.error("GR0061", "nats.url", "addresses such as nats://nats.nats:4222", "give them");
    }
    let credentials = ["nats.auth.tokenSecretKeyRef", "nats.auth.credentialsSecretKeyRef"];
    if mode == "existing" && credentials.iter().all(|path| judged.is_empty(path)) {
        let todo =
            "give tokenSecretKeyRef or credentialsSecretKeyRef: applications travel on the bus as they are";
        judged.warning("GR0065", "nats.auth", "credentials for existing servers", todo);
    }
    for group in SCALED {
        let number = |name: &str| judged.number(&format!("{group}.{name}"));
        let is_wrong =
            number("minReplicas").zip(number("maxReplicas")).is_some_and(|(least, most)| least > most);
        if is_wrong && judged.is_on(group) {
            let path = format!("{group}.minReplicas");
            judged.error("GR0062", &path, "no more than maxReplicas", "lower it, or raise the other");
        }
    }
    let path = "nats.auth.credentialsSecretKeyRef";
    if mode == "embedded" && !judged.is_empty(path) {
        judged.error("GR0063", path, "none for embedded servers", "give tokenSecretKeyRef");
    }
}

/// What an HTTPRoute needs, where a group of values makes one.
pub(super) fn route(judged: &mut Judged, group: &str) {
    if !judged.truth(&format!("{group}.enabled")) {
        return;
    }
    for (code, key, wanted) in [
        ("GR0025", "parentRefs", "a list of Gateways, as [{name, namespace}]"),
        ("GR0026", "host", "the host of the HTTPRoute"),
    ] {
        let path = format!("{group}.{key}");
        if judged.is_empty(&path) {
            judged.error(code, &path, wanted, "give it, or set enabled to false");
        }
    }
}

/// A value of a role besides the reporter that makes it need the bus, and what it is to be where there is none.
pub(super) fn needs_bus(judged: &mut Judged, path: &str, otherwise: &str) {
    let mode = judged.text("nats.mode");
    if mode == "none" {
        let wanted = format!("{otherwise} without a bus");
        judged.error("GR0060", path, &wanted, "set nats.mode to embedded or existing");
    } else if mode == "embedded" && !judged.truth("reporter.enabled") {
        let wanted =
            format!("{otherwise} with embedded servers of the bus, which run beside the reporter alone");
        judged.error("GR0060", path, &wanted, "set nats.mode to existing");
    }
}

/// Rules of components that are the incumbent's; they hold where its values are given, and what these leave unsaid is as the
/// incumbent has it.
fn incumbent(judged: &mut Judged) {
    let is_incumbent = judged.is_incumbent();
    let given = |judged: &Judged, path: &str| judged.at(path).is_some();
    let is_on = |judged: &Judged, path: &str| match given(judged, path) {
        true => judged.truth(path),
        false => is_incumbent,
    };
    let (enrichment, workflows) = ("app-proxy.image-enrichment.enabled", "argo-workflows.enabled");
    if is_on(judged, enrichment) && given(judged, workflows) && !judged.truth(workflows) {
        let (path, wanted) = match given(judged, enrichment) {
            true => (enrichment, "false without argo-workflows"),
            false => (workflows, "true with app-proxy.image-enrichment, which is on where nothing is said"),
        };
        judged.error("GR0050", path, wanted, "switch one on or the other off");
    }
    let replicas = "app-proxy.replicaCount";
    if judged.number(replicas).is_some_and(|count| count > 1.0)
        && !judged.truth("redis.enabled")
        && !judged.truth("redis-ha.enabled")
    {
        judged.error(
            "GR0052",
            replicas,
            "1 without redis.enabled or redis-ha.enabled",
            "switch one of them on",
        );
    }
    let (store, account) = ("codefreshWorkflowLogStoreCM.enabled", "global.codefresh.accountId");
    if is_on(judged, store) && judged.is_empty(account) {
        let (path, wanted) = match given(judged, store) {
            true => (store, "false without global.codefresh.accountId"),
            false => {
                (account, "the account with codefreshWorkflowLogStoreCM, which is on where nothing is said")
            }
        };
        judged.error("GR0053", path, wanted, "give the account");
    }
}
