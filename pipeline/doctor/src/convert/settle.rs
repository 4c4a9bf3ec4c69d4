//! What follows from several keys together, and from what the other chart has where nothing is said.

use serde_json::{Map, Value as Json};

use super::bundled::{TUNNELS, USUAL_NAMESPACES};
use super::{Beside, Bundled, Converted, Note, at, set};
use crate::chart::Chart;
use crate::rules::{GIT_CREDENTIALS, GIVES_GIT_TOKEN, quantity};

impl Converted {
    /// Says a word about what stands in no file, as the other chart has it where nothing is said.
    fn say(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.notes.push(Note { path: path.into(), file: None, line: 0, why: why.into() });
    }

    /// Sets what no file gives, and says why.
    fn give(&mut self, path: &str, value: Json, why: &str) {
        set(&mut self.values, path, value);
        self.say(path, why);
    }
}

/// What follows from several keys together.
pub(super) fn settle(converted: &mut Converted) {
    // Values of this chart say all that they mean.
    if !converted.is_foreign {
        return;
    }
    tunnel(converted);
    components(converted);
    argocd(converted);
    beside(converted);
    scaling(converted);
    limits(converted);
    budgets(converted);
    proxies(converted);
    annotations(converted);
    without_effect(converted);
    let number = |path: &str| converted.values.pointer(path).and_then(Json::as_u64);
    let needs_bus = number("/reporter/replicaCount").is_some_and(|count| count > 1);
    let single = converted.values.pointer("/global/runtime/singleNamespace") == Some(&Json::Bool(true));
    let reports = at(&converted.values, "reporter.enabled") != Some(&Json::Bool(false));
    let is_unsaid = at(&converted.values, "reporter.applicationNamespaces").is_none();
    if converted.argocd.has_usual_namespaces && reports && is_unsaid && !single {
        converted.give(
            "reporter.applicationNamespaces",
            vec![USUAL_NAMESPACES].into(),
            "the Argo CD of the other chart takes Applications of these as well: they need rights in the whole cluster, and [] reports \
             those of its own namespace alone",
        );
    }
    let namespaces = converted.values.pointer("/reporter/applicationNamespaces");
    if single && namespaces.and_then(Json::as_array).is_some_and(|names| !names.is_empty()) {
        set(&mut converted.values, "reporter.applicationNamespaces", Json::Array(Vec::new()));
        converted.say(
            "argo-cd.configs.params.application.namespaces",
            "global.runtime.singleNamespace excludes other namespaces: left out",
        );
    }
    if single && converted.values.get("resourceReporter").is_some() {
        converted.give(
            "resourceReporter.namespaces",
            Json::Array(Vec::new()),
            "global.runtime.singleNamespace excludes other namespaces: none",
        );
    }
    let has_bus = at(&converted.values, "nats.mode").is_some_and(|mode| mode != "none");
    if needs_bus && !has_bus {
        set(&mut converted.values, "nats.mode", "embedded".into());
        converted.say("reporter.replicaCount", "replicas share a bus here: nats.mode is set to embedded; nats.mode existing takes servers that you have");
    }
}

/// The incumbent's tunnel is there unless something else leads in: to the public platform's servers, where no other is named.
fn tunnel(converted: &mut Converted) {
    let values = &converted.values;
    let at = |path: &str| values.pointer(path);
    let is_on = |path: &str| at(path) == Some(&Json::Bool(true));
    let is_given = |path: &str| at(path).and_then(Json::as_str).is_some_and(|text| !text.is_empty());
    let has_server = is_given("/tunnelClient/to");
    let leads_in = ["/global/runtime/ingress/enabled", "/global/runtime/httpRoute/enabled"]
        .iter()
        .any(|path| is_on(path));
    let is_off = at("/tunnelClient/enabled") == Some(&Json::Bool(false));
    let is_public = at("/global/codefresh/url")
        .and_then(Json::as_str)
        .is_none_or(|url| url.trim_end_matches('/') == "https://g.codefresh.io");
    let has_address = is_given("/global/runtime/ingressUrl");
    let is_meant = is_given("/global/codefresh/accountId") && is_public && !leads_in && !is_off;
    if !has_server && !is_meant {
        return;
    }
    let has_server = match converted.beside.tunnels.clone() {
        Some(address) => {
            set(&mut converted.values, "tunnelClient.to", address.into());
            true
        }
        None => has_server,
    };
    if let Some(address) = converted.beside.forward.clone() {
        set(&mut converted.values, "tunnelClient.forward", address.into());
    }
    if leads_in {
        if !is_off {
            set(&mut converted.values, "tunnelClient.enabled", false.into());
            let why = "the other chart opens no tunnel where an Ingress or an HTTPRoute leads in";
            converted.say("tunnelClient", why);
        }
        return;
    }
    if has_address && !is_off {
        let why = "the other chart opens a tunnel beside it, and the platform comes by that: tunnelClient.enabled: false leaves it to this address";
        converted.say("global.runtime.ingressUrl", why);
    }
    let mut added = Vec::new();
    if !has_server {
        set(&mut converted.values, "tunnelClient.to", format!("https://{TUNNELS}").into());
        added.push("to");
    }
    if converted.values.pointer("/tunnelClient/domain").is_none() {
        set(&mut converted.values, "tunnelClient.domain", "tunnels.cf-cd.com".into());
        added.push("domain");
    }
    if converted.values.pointer("/tunnelClient/protocol").is_none() {
        set(&mut converted.values, "tunnelClient.protocol", "frp".into());
        added.push("protocol");
    }
    if added.is_empty() {
        return;
    }
    let mut why = format!("{} set as the other chart has it", added.join(", "));
    why.push_str(": its servers speak frp; native is better where yours do");
    converted.say("tunnelClient", why);
}

/// What the incumbent's chart always runs, where this one has a switch for it: the app proxy behind each way in, the reporter of
/// resources, and the server of sources where there is a reporter to ask it.
fn components(converted: &mut Converted) {
    let values = &converted.values;
    let is = |path: &str, on: &dyn Fn(&Json) -> bool| values.pointer(path).is_some_and(on);
    let way_in = ["/global/runtime/ingress/enabled", "/global/runtime/httpRoute/enabled"]
        .iter()
        .any(|path| is(path, &|value| *value == Json::Bool(true)))
        || ["/global/runtime/ingressUrl", "/tunnelClient/to"]
            .iter()
            .any(|path| is(path, &|value| value.as_str().is_some_and(|text| !text.is_empty())));
    let reports = !is("/reporter/enabled", &|value| *value == Json::Bool(false));
    for (component, runs, why) in [
        (
            "appProxy",
            way_in || values.get("appProxy").is_some(),
            "always runs in the other chart: enabled; its account in Argo CD must be allowed what people ask for",
        ),
        ("resourceReporter", true, "always runs in the other chart: enabled"),
        (
            "sourceServer",
            reports,
            "always runs in the other chart: enabled; it fetches what Argo CD has Secrets of, with their credentials; whoever asks it for \
             getAppVersion needs a token here, which callers of the other send none of: sourceServer.callers",
        ),
    ] {
        let path = format!("{component}.enabled");
        let said = at(&converted.values, &path).and_then(Json::as_bool);
        if said == Some(false) {
            continue;
        }
        if component == "sourceServer" {
            let is_given = converted.values.get(component).is_some();
            if runs {
                set(&mut converted.values, "sourceServer.argocdCredentials", true.into());
            } else if is_given {
                set(&mut converted.values, &path, false.into());
                let why =
                    "is off, as nobody asks it where the reporter is: give sourceServer.callers with it";
                converted.say(component, why);
            }
        } else if said.is_some() {
            continue;
        }
        if runs {
            set(&mut converted.values, &path, true.into());
            converted.say(component, why);
        }
    }
    let routes = at(&converted.values, "router.enabled") != Some(&Json::Bool(false));
    if way_in && routes && at(&converted.values, "router.webhooks").is_none() {
        converted.say(
            "router.webhooks",
            "the other chart's router leads /webhooks to event sources of every namespace, and here to those of the release's alone: list \
             others as NAMESPACE/NAME",
        );
    }
    let name = converted.values.pointer("/appProxy/service/name").and_then(Json::as_str);
    if let Some(name) = name.filter(|name| *name != "cap-app-proxy") {
        let url = format!("http://{name}:3017");
        set(&mut converted.values, "router.appProxyUrl", url.into());
    }
}

/// What has another default in the other chart: how the runtime is let in by Argo CD, and what its Service is called.
fn argocd(converted: &mut Converted) {
    const SERVER: &str = "global.integrations.argo-cd.server";
    let given = |key: &str| at(&converted.values, &format!("{SERVER}.{key}")).is_some();
    let token = ["auth.token", "auth.tokenSecretKeyRef"].iter().any(|key| given(key));
    let takes_password = !token && !given("auth.type");
    let has_address = given("svc") || given("url");
    if takes_password {
        let why = "password is what the other chart takes where nothing is said";
        converted.give(&format!("{SERVER}.auth.type"), "password".into(), why);
    }
    let Bundled { is_off, service, rootpath, speaks_tls, .. } = converted.argocd.clone();
    // Older versions call another one as this chart does.
    let is_older = converted.kept.iter().any(|(from, _)| from.contains("global.external-argo-cd."));
    let is_known = has_address || (is_off && is_older);
    if let Some(service) = service.filter(|_| !is_known) {
        let why =
            "the Argo CD of the other chart is called so: take it out where argo-cd.enabled makes a new one";
        converted.give(&format!("{SERVER}.svc"), service.into(), why);
    }
    if at(&converted.values, &format!("{SERVER}.url")).is_some() {
        return;
    }
    let given = |converted: &Converted, key: &str| at(&converted.values, &format!("{SERVER}.{key}")).cloned();
    if let Some(rootpath) = rootpath.filter(|_| given(converted, "rootpath").is_none_or(|path| path == "")) {
        let why = "argo-cd.configs.params has it as server.rootpath";
        converted.give(&format!("{SERVER}.rootpath"), rootpath.into(), why);
    }
    if speaks_tls && given(converted, "port").is_none_or(|port| port == 80) {
        let why = "argo-cd.configs.params has server.insecure: false, so that Argo CD speaks TLS: give tls.caSecretKeyRef as well";
        converted.give(&format!("{SERVER}.port"), 443.into(), why);
    }
}

/// What the router and the app proxy ask of others that the other chart brings along: where that is off there, nobody is asked.
fn beside(converted: &mut Converted) {
    let Beside { workflows, sealing, .. } = converted.beside.clone();
    let is_on = at(&converted.values, "appProxy.enabled") == Some(&Json::Bool(true));
    for (path, address, off) in [
        (
            "router.workflowsUrl",
            workflows,
            "Argo Workflows is off in the other chart, which leads no /workflows then: give the address of another",
        ),
        (
            "appProxy.sealingUrl",
            sealing.filter(|_| is_on),
            "sealed-secrets is off in the other chart, and nothing is sealed: give the address of another controller",
        ),
    ] {
        let Some(address) = address.filter(|_| at(&converted.values, path).is_none()) else { continue };
        let why = if address.is_empty() { off } else { "the other chart calls it so" };
        converted.give(path, address.into(), why);
    }
}

/// Replicas of the server of sources come and go in the other chart, from 1 to 10, where nothing is said.
fn scaling(converted: &mut Converted) {
    const SCALING: &str = "sourceServer.autoscaling";
    let given =
        |converted: &Converted, key: &str| at(&converted.values, &format!("{SCALING}.{key}")).is_some();
    let of = at(&converted.values, SCALING).and_then(Json::as_object);
    if of.is_none_or(Map::is_empty)
        || at(&converted.values, &format!("{SCALING}.enabled")) == Some(&Json::Bool(false))
    {
        return;
    }
    let mut added = Vec::new();
    for (key, usual) in [("enabled", Json::Bool(true)), ("minReplicas", 1.into()), ("maxReplicas", 10.into())]
    {
        if !given(converted, key) {
            set(&mut converted.values, &format!("{SCALING}.{key}"), usual);
            added.push(key);
        }
    }
    if !added.is_empty() {
        let why = format!("{} set as the other chart has it", added.join(", "));
        converted.say(SCALING, why);
    }
}

/// Requests above this chart's own limits, where no others are given: the other chart has fewer limits, and higher ones.
fn limits(converted: &mut Converted) {
    for value in Chart::get().values.iter().filter(|value| value.path.ends_with(".resources")) {
        let place = format!("/{}", value.path.replace('.', "/"));
        let requests =
            converted.values.pointer(&format!("{place}/requests")).and_then(Json::as_object).cloned();
        // A null takes the chart's own limits away.
        if converted.values.pointer(&format!("{place}/limits")).is_some_and(Json::is_null) {
            continue;
        }
        for (name, request) in requests.into_iter().flatten() {
            let is_given = converted.values.pointer(&format!("{place}/limits/{name}")).is_some();
            let own = value.default["limits"].get(&name).map(quantity);
            if is_given || own.is_none_or(|own| own >= quantity(&request)) {
                continue;
            }
            let why = "the limit of this chart is less than what is requested: set to that";
            converted.give(&format!("{}.limits.{name}", value.path), request, why);
        }
    }
}

/// Budgets by which no pod may go: of reporters, of which the other chart runs two where nothing is said, and this one runs one.
fn budgets(converted: &mut Converted) {
    for component in ["reporter", "resourceReporter"] {
        let of = |key: &str| at(&converted.values, &format!("{component}.{key}"));
        let holds =
            of("pdb.minAvailable").is_some_and(|least| !["", "0", "0%"].contains(&shown(least).as_str()));
        let is_one = of("replicaCount").is_none() || component == "resourceReporter";
        if !is_one || !holds || of("pdb.enabled") == Some(&Json::Bool(false)) {
            continue;
        }
        set(&mut converted.values, &format!("{component}.pdb.minAvailable"), "".into());
        set(&mut converted.values, &format!("{component}.pdb.maxUnavailable"), 1.into());
        converted.say(format!("{component}.pdb"), "the other chart runs two, and here is one: maxUnavailable 1 was set in the place of minAvailable, which would keep \
                  its node from being drained");
    }
}

/// A value of one line as a text.
fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Variables of a component that the chart sets itself, of the proxies that all pods have.
fn proxies(converted: &mut Converted) {
    let is_set = |values: &Json, path: &str| {
        at(values, path).and_then(Json::as_str).is_some_and(|text| !text.is_empty())
    };
    let (http, https) =
        (is_set(&converted.values, "global.httpProxy"), is_set(&converted.values, "global.httpsProxy"));
    let of_all = [("HTTP_PROXY", http), ("HTTPS_PROXY", https), ("NO_PROXY", http || https)];
    let has_exceptions = is_set(&converted.values, "global.noProxy");
    let (mut gone, mut exceptions) = (Vec::new(), None);
    for (component, values) in converted.values.as_object_mut().into_iter().flatten() {
        let Some(variables) = values.get_mut("extraEnv").and_then(Json::as_object_mut) else { continue };
        for (name, _) in of_all.iter().filter(|(_, is_set)| *is_set) {
            let Some(value) = variables.remove(*name) else { continue };
            gone.push(format!("{component}.extraEnv.{name}"));
            if *name == "NO_PROXY" && !has_exceptions {
                exceptions = Some(value);
            }
        }
        if variables.is_empty() {
            values.as_object_mut().and_then(|values| values.remove("extraEnv"));
        }
    }
    if let Some(value) = exceptions {
        set(&mut converted.values, "global.noProxy", value);
    }
    if let Some(components) = converted.values.as_object_mut() {
        let is_gone = |name: &str| gone.iter().any(|path: &String| path.starts_with(&format!("{name}.")));
        components.retain(|name, values| {
            !is_gone(name) || values.as_object().is_none_or(|values| !values.is_empty())
        });
    }
    for path in gone {
        let why = "the proxies of `global` are those of every pod, and so is global.noProxy";
        converted.say(path, why);
    }
}

/// What is taken over, as this chart knows it, and serves nothing.
fn without_effect(converted: &mut Converted) {
    let given = |path: &str| {
        at(&converted.values, path).is_some_and(|value| *value != Json::Bool(false) && *value != "")
    };
    let gives_password =
        ["value", "secretKeyRef"].iter().any(|key| given(&format!("{GIT_CREDENTIALS}.password.{key}")));
    let is_hosted = given("global.runtime.codefreshHosted");
    if gives_password {
        converted.say(GIT_CREDENTIALS, format!("is without effect here: {GIVES_GIT_TOKEN}"));
    }
    if is_hosted {
        converted.say("global.runtime.codefreshHosted", "is without effect here");
    }
}

/// Annotations of the Ingress that say what is said otherwise here: its class has a key, and its Service no port of each node.
fn annotations(converted: &mut Converted) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    const TARGETS: &str = "alb.ingress.kubernetes.io/target-type";
    let Some(ingress) = converted.values.pointer_mut("/global/runtime/ingress").and_then(Json::as_object_mut)
    else {
        return;
    };
    let has_class = ingress.get("className").and_then(Json::as_str).is_some_and(|name| !name.is_empty());
    let Some(all) = ingress.get_mut("annotations").and_then(Json::as_object_mut) else { return };
    let mut whys = Vec::new();
    if let Some(kind) = all.get_mut(TARGETS).filter(|kind| **kind == "instance") {
        *kind = "ip".into();
        whys.push(format!(
            "{TARGETS} is set to ip: instance leads to ports of nodes, which a ClusterIP has none of"
        ));
    }
    if let Some(class) = all.remove(CLASS) {
        whys.push(format!("{CLASS} is className here: Kubernetes refuses both"));
        if !has_class {
            ingress.insert("className".to_owned(), class);
        }
    }
    for why in whys {
        converted.say("global.runtime.ingress.annotations", why);
    }
}
