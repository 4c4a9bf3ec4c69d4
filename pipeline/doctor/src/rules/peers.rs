//! The platform, Git and Argo CD: tokens, certificates, addresses.

use super::{Judged, Severity, argocd_access};

const SERVER: &str = "global.integrations.argo-cd.server";

/// The Git token of the values, which nothing of this runtime uses: what is wrong with it stops nobody.
pub(crate) const GIT_CREDENTIALS: &str = "global.runtime.gitCredentials";

/// What does what that token is for.
pub(crate) const GIVES_GIT_TOKEN: &str =
    "the app proxy keeps the runtime's Git token once an admin gives it by updateRuntimeGitToken";

/// References to Secrets that are always there: what they are for says whether they are needed.
pub(super) const ALWAYS: [&str; 3] = [
    "global.codefresh.runtimeToken.secretKeyRef",
    "global.integrations.argo-cd.server.auth.tokenSecretKeyRef",
    "global.integrations.argo-cd.server.auth.passwordSecretKeyRef",
];

/// References to Secrets that are complete or absent.
pub(super) const REFERENCES: &[&str] = &[
    "global.codefresh.userToken.secretKeyRef",
    "global.codefresh.tls.caCerts.secretKeyRef",
    "global.runtime.gitCredentials.password.secretKeyRef",
    "global.integrations.argo-cd.server.tls.caSecretKeyRef",
    "platform.postgres.secretKeyRef",
    "platform.oidc.secretKeyRef",
    "platform.oidc.caSecretKeyRef",
    "reporter.redactionKey.secretKeyRef",
    "nats.auth.tokenSecretKeyRef",
    "nats.auth.credentialsSecretKeyRef",
    "nats.tls.caSecretKeyRef",
    "tunnelClient.tokenSecretKeyRef",
    "tunnelClient.tls.caSecretKeyRef",
    "tunnelServer.tokensSecretKeyRef",
    "appProxy.git.caSecretKeyRef",
    "changeRevision.git.caSecretKeyRef",
    "changeRevision.git.knownHostsSecretKeyRef",
    "sourceServer.git.caSecretKeyRef",
    "sourceServer.git.knownHostsSecretKeyRef",
];

/// Secrets that may stand in the values, and the reference that is better.
const INLINE: &[(&str, &str)] = &[
    ("global.codefresh.userToken.token", "global.codefresh.userToken.secretKeyRef"),
    (
        "global.integrations.argo-cd.server.auth.token",
        "global.integrations.argo-cd.server.auth.tokenSecretKeyRef",
    ),
    (
        "global.integrations.argo-cd.server.auth.password",
        "global.integrations.argo-cd.server.auth.passwordSecretKeyRef",
    ),
];

pub(super) fn check(judged: &mut Judged) {
    secrets(judged);
    certificates(judged);
    git(judged);
    argocd(judged);
}

fn secrets(judged: &mut Judged) {
    let user = "global.codefresh.userToken";
    // The chart's own platform asks nobody to register.
    let registers = !judged.truth("platform.enabled") && !judged.truth("appProxy.register");
    if registers && ["token", "secretKeyRef"].iter().all(|key| judged.is_empty(&format!("{user}.{key}"))) {
        let todo =
            "give it for a registration; a runtime that is registered has its token in codefresh-token";
        judged.warning("GR0030", user, "token or secretKeyRef", todo);
    }
    registration(judged);
    proxies(judged);
    let kind = argocd_access(judged);
    let is_inline = !judged.is_empty(&format!("{SERVER}.auth.{kind}"));
    let argocd = format!("{SERVER}.auth.{kind}SecretKeyRef");
    let needed = [(argocd.as_str(), !is_inline), ("global.codefresh.runtimeToken.secretKeyRef", true)];
    let needed = needed.into_iter().filter(|(_, needed)| *needed).map(|(path, _)| path);
    let given: Vec<&str> = REFERENCES.iter().copied().filter(|path| !judged.is_empty(path)).collect();
    for path in needed.chain(given) {
        let lacks = |key: &str| judged.is_empty(&format!("{path}.{key}"));
        if lacks("name") || lacks("key") {
            let severity =
                if path.starts_with(GIT_CREDENTIALS) { Severity::Warning } else { Severity::Error };
            judged.add(
                severity,
                "GR0031",
                path,
                "name and key, both given",
                "name the Secret and the key in it",
            );
        }
    }
    let reserved = "global.codefresh.userToken.secretKeyRef.name";
    if judged.text(reserved) == "codefresh-token" {
        judged.error(
            "GR0032",
            reserved,
            "another name",
            "codefresh-token is the runtime's own: use another Secret",
        );
    }
    for (path, better) in INLINE {
        if !judged.is_empty(path) {
            let todo = "make a Secret, and give its name and key: Helm keeps values with the release";
            judged.warning("GR0033", path, &format!("{better} instead"), todo);
        }
    }
}

/// Users and passwords of proxies, which stand in every pod.
fn proxies(judged: &mut Judged) {
    for path in ["global.httpProxy", "global.httpsProxy"] {
        if judged.text(path).contains('@') {
            let todo = "let the proxy know the pods by their addresses, or give HTTP_PROXY, HTTPS_PROXY and NO_PROXY by extraEnv of each component, from a Secret";
            judged.warning("GR0033", path, "an address without a user: every pod shows it", todo);
        }
    }
}

/// What an app proxy needs that is to register the runtime.
fn registration(judged: &mut Judged) {
    if !judged.truth("appProxy.register") {
        return;
    }
    if !judged.truth("appProxy.enabled") {
        let todo = "switch it on, or leave appProxy.register out";
        judged.error("GR0077", "appProxy.register", "an app proxy (appProxy.enabled)", todo);
    }
    let user = "global.codefresh.userToken";
    if ["token", "secretKeyRef"].iter().all(|key| judged.is_empty(&format!("{user}.{key}"))) {
        let todo = "give the API key of an admin of the platform: appProxy.register asks with it";
        judged.error("GR0077", user, "token or secretKeyRef", todo);
    }
    let runtime = "global.codefresh.runtimeToken.secretKeyRef";
    let is = |key: &str, wanted: &str| judged.text(&format!("{runtime}.{key}")) == wanted;
    if !is("name", "codefresh-token") || !is("key", "token") {
        let todo = "leave it out: appProxy.register keeps the runtime's token there";
        judged.error("GR0077", runtime, "codefresh-token and token", todo);
    }
}

fn certificates(judged: &mut Judged) {
    let secret = "global.codefresh.tls.caCerts.secret";
    let content = format!("{secret}.content");
    if judged.truth(&format!("{secret}.create")) && judged.is_empty(&content) {
        judged.error(
            "GR0034",
            &content,
            "certificates in PEM where `create` is set",
            "give them, or secretKeyRef",
        );
    }
    let pem = |text: &str| {
        text.contains("-----BEGIN CERTIFICATE-----") && text.contains("-----END CERTIFICATE-----")
    };
    let mut paths = vec![content];
    // The incumbent gives certificates of Git servers to Argo CD; hosts have dots, so keys are looked up one by one.
    for group in
        ["global.codefresh.tls.workflowPipelinesGitWebhooks.certificates", "argo-cd.configs.tls.certificates"]
    {
        let Some(node) = judged.at(group) else { continue };
        let wrong = node.entries().iter().any(|(_, node)| node.text().is_none_or(|text| !pem(text)));
        if wrong {
            paths.push(group.to_owned());
        }
    }
    for path in paths {
        let is_group = judged.at(&path).is_some_and(|node| node.text().is_none());
        if is_group || (!judged.is_empty(&path) && !pem(judged.text(&path))) {
            judged.error(
                "GR0035",
                &path,
                "certificates in PEM",
                "give -----BEGIN CERTIFICATE----- and what follows",
            );
        }
    }
}

fn git(judged: &mut Judged) {
    let group = GIT_CREDENTIALS;
    let value = format!("{group}.password.value");
    let has_password =
        !judged.is_empty(&value) || !judged.is_empty(&format!("{group}.password.secretKeyRef"));
    if has_password && judged.is_empty(&format!("{group}.username")) {
        judged.warning("GR0036", &format!("{group}.username"), "a user", "give the user of the Git token");
    }
    if judged.text(&value).starts_with("github_pat") {
        let todo = "make a classic token with the scopes repo and admin:repo_hook";
        judged.warning("GR0037", &value, "a classic token, not a fine-grained one", todo);
    }
}

/// Whether an address is a name that a cluster alone knows.
pub(super) fn is_of_the_cluster(origin: &str) -> bool {
    let rest = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let host = rest.split(':').next().unwrap_or_default();
    !host.contains('.') || host.ends_with(".svc") || host.ends_with(".cluster.local")
}

fn argocd(judged: &mut Judged) {
    let username = format!("{SERVER}.auth.username");
    if argocd_access(judged) == "password" && judged.is_empty(&username) {
        judged.error("GR0040", &username, "a user, for the type password", "give the account that logs in");
    }
    let server = (format!("{SERVER}.svc"), format!("{SERVER}.port"));
    let repo = "global.integrations.argo-cd.repoServer";
    let repo = (format!("{repo}.svc"), format!("{repo}.port"));
    let has_url = !judged.is_empty(&format!("{SERVER}.url"));
    for (path, needed) in [(server.0, !has_url), (server.1, !has_url), (repo.0, true), (repo.1, true)] {
        if needed && judged.at(&path).is_some() && judged.is_empty(&path) {
            judged.error("GR0041", &path, "the name of the Service", "give it");
        }
    }
    if judged.truth("argo-cd.enabled") && !has_url {
        new_argocd(judged);
    }
}

/// The Service of Argo CD's API server where nothing is said; a new one is found whatever it is called.
const USUAL: &str = "argocd-server";

/// Whether the reporter finds a new Argo CD, which is called and listens as its own values say.
fn new_argocd(judged: &mut Judged) {
    let (svc, port, rootpath) =
        (format!("{SERVER}.svc"), format!("{SERVER}.port"), format!("{SERVER}.rootpath"));
    // Their names have dots.
    let setting = |judged: &Judged, key: &str| {
        let node = judged.at("argo-cd.configs.params").and_then(|params| params.get(key)).cloned();
        node.map(|node| node.text().map_or_else(|| node.json().to_string(), str::to_owned))
            .unwrap_or_default()
    };
    // Without a name of its own it is called after the release, and the chart asks it by that.
    let own = judged.text("argo-cd.fullnameOverride").to_owned();
    let server = judged.text("argo-cd.server.name").to_owned();
    let server = if server.is_empty() { "server" } else { server.as_str() };
    let service = format!("{own}-{server}");
    if !own.is_empty() && ![USUAL, service.as_str()].contains(&judged.text(&svc)) {
        let wanted = format!("{service}, as the new Argo CD is called by argo-cd.fullnameOverride");
        let todo = "take it away: the reporter finds a new Argo CD by the values of that";
        judged.error("GR0041", &svc, &wanted, todo);
    }
    if setting(judged, "server.insecure") != "true" && judged.number(&port) != Some(443.0) {
        let todo =
            "give 443 and tls.caSecretKeyRef, or leave argo-cd.configs.params its server.insecure: true";
        judged.error("GR0041", &port, "443 of an Argo CD that speaks TLS", todo);
    }
    let own = setting(judged, "server.rootpath");
    if own.trim_matches('/') != judged.text(&rootpath).trim_matches('/') {
        let todo = "give it as argo-cd.configs.params has server.rootpath";
        judged.error("GR0041", &rootpath, "the path that the new Argo CD is served under", todo);
    }
}
