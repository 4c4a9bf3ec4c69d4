//! Who installs is asked for the right to create whatever the chart renders, and for what its Roles grant, and for nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::routing::{get, post};
use loadtest::sim::server::serve;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::commands::{kubeconfig, run};
use crate::helm::{NAMESPACE, objects, values};

/// A verb, the group and the kind as the API server's addresses have it, and the namespace; none for the whole cluster.
type Right = (String, String, String, Option<String>);

/// An API server that lets whoever asks do everything but make roles of what they have not.
struct ApiServer {
    asked: Arc<Mutex<BTreeSet<Right>>>,
    folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl ApiServer {
    fn start() -> Self {
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let kept = Arc::clone(&asked);
        let review = async move |Json(review): Json<Value>| {
            let of = &review["spec"]["resourceAttributes"];
            let text = |key: &str| of[key].as_str().unwrap_or_default().to_owned();
            let may_grant = ["escalate", "bind"].contains(&&*text("verb"));
            if !may_grant {
                let kinds =
                    [text("resource"), text("subresource")].join("/").trim_end_matches('/').to_owned();
                let namespace = Some(text("namespace")).filter(|name| !name.is_empty());
                kept.lock().unwrap().insert((text("verb"), text("group"), kinds, namespace));
            }
            Json(json!({"status": {"allowed": !may_grant}}))
        };
        let routes = axum::Router::new()
            .route("/version", get(Json(json!({"major": "1", "minor": "31"}))))
            .route("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", post(review));
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        kubeconfig(folder.path(), &runtime.block_on(serve(routes)).unwrap());
        Self { asked, folder, _runtime: runtime }
    }

    /// What `validate` asks of these values whether it may be done.
    fn asked_of(&self, file: &Path) -> BTreeSet<Right> {
        self.asked.lock().unwrap().clear();
        let config = self.folder.path().join("kubeconfig");
        let (file, config) = (file.to_str().unwrap(), config.to_str().unwrap());
        let place = ["--namespace", NAMESPACE, "--skip", "network", "--kubeconfig", config];
        let output = run(&[&["validate", "-f", file][..], &place].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!said.contains("not measured GR0103"), "{file}: {said}");
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// What creates an object.
fn right(object: &Value) -> Right {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let version = text(&object["apiVersion"]).unwrap();
    let group = version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let kinds = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    };
    ("create".to_owned(), group, kinds, text(&object["metadata"]["namespace"]))
}

/// What a Role or a ClusterRole grants.
fn granted(object: &Value) -> BTreeSet<Right> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    let mut granted = BTreeSet::new();
    for rule in object["rules"].as_array().into_iter().flatten() {
        for (group, kinds) in texts(&rule["apiGroups"])
            .iter()
            .flat_map(|group| texts(&rule["resources"]).into_iter().map(move |kinds| (group, kinds)))
        {
            let right = |verb| (verb, group.clone(), kinds.clone(), namespace.clone());
            granted.extend(texts(&rule["verbs"]).into_iter().map(right));
        }
    }
    granted
}

/// What is rendered when it is installed takes these rights: tests are run by whoever tests.
fn rendered(file: &Path) -> BTreeSet<Right> {
    let objects = objects(file);
    let is_test = |object: &&Value| object["metadata"]["annotations"]["helm.sh/hook"] == "test";
    let created = objects.iter().filter(|object| !is_test(object)).map(right);
    let granted = objects.iter().flat_map(granted);
    // Helm itself keeps the release in a Secret.
    let of_helm = ["create", "", "secrets"].map(str::to_owned);
    let [verb, group, kinds] = of_helm;
    created.chain(granted).chain([(verb, group, kinds, Some(NAMESPACE.to_owned()))]).collect()
}

/// Values whose settings say of namespaces what nothing else does.
fn more_values(folder: &Path) -> Vec<PathBuf> {
    let minimal = std::fs::read_to_string(values("good-minimal").remove(0)).unwrap();
    let all = [
        "validation: {enabled: true}\nrbac: {create: false}\n",
        "reporter: {enabled: false}\n",
        "reporter: {enabled: false}\nvalidation: {enabled: true}\n",
        "reporter: {config: {kubernetes: {namespace: elsewhere}}}\n",
        "reporter: {config: {kubernetes: {namespace: elsewhere, applicationNamespaces: [team-*]}}}\n",
        "reporter: {config: {kubernetes: {namespace: elsewhere}}}\nchangeRevision: {enabled: true}\n",
        "changeRevision: {enabled: true, argocdCredentials: true, config: {kubernetes: {namespace: changes}}}\n",
        "reporter: {applicationNamespaces: [team-*]}\nchangeRevision: {enabled: true, argocdCredentials: true}\n",
        "resourceReporter: {enabled: true, namespaces: [], config: {kubernetes: {namespace: resources}}}\n",
        "resourceReporter: {enabled: true, namespaces: [], config: {resources: {namespaces: [a]}}}\n",
        "sourceServer: {enabled: true, allowed: ['https://git.example.com'], argocdCredentials: true, config: {kubernetes: {namespace: sources}}}\n",
        "appProxy: {enabled: true, config: {argocd: {namespace: argocd}, appProxy: {namespaces: ['*']}}}\n",
        "appProxy: {enabled: true, namespaces: [a, b]}\n",
        "networkPolicy: {enabled: false}\nreporter: {pdb: {enabled: false}, persistence: {existingClaim: kept}}\n",
        "reporter: {serviceAccount: {create: false, name: own}, persistence: {enabled: false}}\n",
        "rbac: {create: false}\nreporter: {serviceAccount: {create: false, name: own}, redactionKey: {secretKeyRef: {name: a, key: b}}}\n",
        "reporter: {enabled: false}\nruntimeConfigMap: {create: false}\nmetrics: {dashboards: {enabled: true}}\n",
        "reporter: {enabled: false}\nplatform: {enabled: true, postgres: {secretKeyRef: {name: a, key: b}}}\n",
        "appProxy: {enabled: true, serviceAccount: {create: false, name: own}}\nreporter: {serviceAccount: {create: false, name: own}}\n",
        "reporter: {enabled: false}\nplatform: {enabled: true, serviceAccount: {create: true}}\n",
        "platform: {enabled: true, httpRoute: {enabled: true, host: platform.example.com, parentRefs: [{name: public}]}}\n",
        "platform: {enabled: true}\ntunnelServer: {enabled: true, domain: tunnels.example.com, httpRoute: {enabled: true, host: a.example.com, parentRefs: [{name: public}]}}\n",
    ];
    let write = |(number, more): (usize, &&str)| {
        let path = folder.join(format!("{number}.yaml"));
        std::fs::write(&path, format!("{minimal}{more}")).unwrap();
        path
    };
    all.iter().enumerate().map(write).collect()
}

#[test]
fn who_installs_is_asked_for_the_rights_to_whatever_the_chart_renders_and_for_no_others() {
    let (server, folder) = (ApiServer::start(), tempfile::tempdir().unwrap());
    let mut wrong = Vec::new();
    for file in values("good-").into_iter().chain(more_values(folder.path())) {
        let (asked, rendered) = (server.asked_of(&file), rendered(&file));
        let values = std::fs::read_to_string(&file).unwrap();
        let unasked: Vec<_> = rendered.difference(&asked).collect();
        let needless: Vec<_> = asked.difference(&rendered).collect();
        if !unasked.is_empty() || !needless.is_empty() {
            wrong.push(format!("{values}is not asked for {unasked:?}, and needlessly for {needless:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
