//! `gitops-runtime rbac print`: the rights that a role declares, as a manifest.
//!
//! takes: the settings in force - gives: a ServiceAccount, the roles with what the stages say they need with these
//! settings and nothing else, and their bindings, as YAML for `kubectl apply`
//! calls: nothing - fails: when the settings are wrong, or a name in them is none for Kubernetes

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use stages_kube::{Generated, Right, Scope};

use super::applications::APPLICATIONS;
use super::build;
use crate::cli::{Account, RbacCommand, Role, is_label, print};
use crate::config::{Config, SourcesFrom, Token, Variables};

/// Runs one of the commands.
///
/// # Errors
/// With everything that is wrong with the settings; or when standard output cannot be written.
pub(crate) fn run(command: &RbacCommand, variables: &Variables) -> anyhow::Result<()> {
    let RbacCommand::Print { role, service_account, secret, given } = command;
    let config = Config::load_given(&given.given(), variables)?;
    let text = manifest(*role, service_account, secret.as_deref(), &config)?;
    print(&text)
}

/// What the stages of a role need to be allowed with these settings.
fn rights(role: Role, namespace: &str, secret: Option<&str>, config: &Config) -> Vec<Right> {
    match role {
        // A secret that is missing is missed by the command line.
        Role::Secrets => {
            let name = secret.unwrap_or_default().to_owned();
            vec![Generated { namespace: namespace.to_owned(), name, keys: Vec::new() }.right()]
        }
        Role::ResourceReporter => super::resources::rights(config),
        Role::AppProxy => super::app_proxy::rights(config),
        Role::SourceServer => super::source_server::rights(config),
        Role::ChangeRevision => super::change_revision::rights(config),
        Role::Reporter => {
            let watch = build::watch(config);
            let mut rights = vec![watch.watch_right(APPLICATIONS)];
            if let Token::Secret { name, .. } = config.argocd.access().secret() {
                rights.push(watch.secret_right(name));
            }
            if config.reporter.sources.asks(SourcesFrom::Here).is_some() {
                rights.extend(super::sources::rights(config));
            }
            rights.extend(super::changes::rights(config));
            rights
        }
    }
}

fn manifest(role: Role, account: &Account, secret: Option<&str>, config: &Config) -> anyhow::Result<String> {
    let own: &String = &config.kubernetes.namespace;
    for (setting, name) in
        [("kubernetes.namespace", own.as_str()), ("argocd.namespace", config.argocd_namespace())]
    {
        if !is_label(name) {
            bail!(
                "config: {setting}: '{name}' is not the name of a namespace: lower-case letters, digits and -, such as \
                 argocd"
            );
        }
    }
    let namespace = account.namespace.as_ref().unwrap_or(own);
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(role, &account.name, Some(namespace)),
    })];
    // Accounts of one name in several namespaces do not take each other's roles.
    let own = match role {
        Role::Reporter => "",
        Role::Secrets => ":secrets",
        Role::ResourceReporter => ":resources",
        Role::AppProxy => ":app-proxy",
        Role::SourceServer => ":sources",
        Role::ChangeRevision => ":changes",
    };
    let name = format!("gitops-runtime:{namespace}:{}{own}", account.name);
    // One role for each place, whatever number of rights holds there; the cluster's comes last.
    let mut places: BTreeMap<(bool, String), Vec<Value>> = BTreeMap::new();
    for right in rights(role, namespace, secret, config) {
        let place = match &right.scope {
            Scope::Namespace(namespace) => (false, namespace.clone()),
            Scope::Cluster => (true, String::new()),
        };
        places.entry(place).or_default().push(rule(&right));
    }
    for ((everywhere, place), rules) in places {
        let (kind, place) = if everywhere { ("ClusterRole", None) } else { ("Role", Some(place.as_str())) };
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": metadata(role, &name, place),
            "rules": rules,
        }));
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": format!("{kind}Binding"),
            "metadata": metadata(role, &name, place),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": namespace}],
        }));
    }
    let documents: Result<Vec<String>, _> = objects.iter().map(serde_saphyr::to_string).collect();
    Ok(documents.context("write the rights as YAML")?.join("---\n"))
}

fn metadata(role: Role, name: &str, namespace: Option<&str>) -> Value {
    let component = match role {
        Role::Reporter => "reporter",
        Role::Secrets => "secrets",
        Role::ResourceReporter => "resource-reporter",
        Role::AppProxy => "app-proxy",
        Role::SourceServer => "source-server",
        Role::ChangeRevision => "change-revision",
    };
    let mut metadata = json!({
        "labels": {"app.kubernetes.io/component": component, "app.kubernetes.io/name": "gitops-runtime"},
        "name": name,
    });
    if let (Value::Object(metadata), Some(namespace)) = (&mut metadata, namespace) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata
}

fn rule(right: &Right) -> Value {
    let mut rule = json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
    if let (Value::Object(rule), false) = (&mut rule, right.names.is_empty()) {
        rule.insert("resourceNames".to_owned(), right.names.clone().into());
    }
    rule
}
