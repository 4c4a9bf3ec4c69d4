//! What the oracle finds in states made by hand; a state that is right comes first, then each way to be wrong.

mod ends;
mod judge;
mod manifests;
mod secret;
mod shown;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::judged::differences;
use super::told::Told;
use super::truth::Application;
use super::witness::{Life, listed};
use loadtest_sim::platform::{EntityName, KeptReport, Last, ResourceKey};

const UID: &str = "11111111-0000-4000-8000-000000000001";

/// An application with a Deployment and a Secret.
fn app() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "web", "namespace": "argocd", "uid": UID, "resourceVersion": "70", "generation": 12,
            "managedFields": [{"manager": "argocd-controller"}],
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": "http://127.0.0.1/web.git", "path": "app", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
        },
        "status": {
            "reconciledAt": "2026-11-21T10:00:09Z",
            "sync": {"status": "Synced", "revision": "new"}, "health": {"status": "Progressing"},
            "history": [{"id": 1, "revision": "new"}],
            "operationState": {"phase": "Succeeded", "startedAt": "s", "finishedAt": "f"},
            "resources": [
                {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "web", "name": "web",
                 "status": "Synced", "health": {"status": "Progressing"}},
                {"version": "v1", "kind": "Secret", "namespace": "web", "name": "login", "status": "Synced"},
            ],
        },
    })
}

fn deployment(live: bool) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "web"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "main", "image": "nginx:1", "env": [{"name": "DB_PASSWORD", "value": "hunter22"}]},
        ]}}},
    });
    if live {
        object["metadata"]["uid"] = json!("d1");
        object["metadata"]["resourceVersion"] = json!("60");
        object["status"] = json!({"readyReplicas": 1});
    }
    object
}

/// The Deployment when it was told.
fn was() -> Value {
    let mut was = deployment(true);
    was["status"] = json!({"readyReplicas": 0});
    was
}

/// The Deployment now: its controller went on.
fn now() -> Value {
    let mut now = deployment(true);
    now["metadata"]["resourceVersion"] = json!("62");
    now["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    now["spec"]["paused"] = json!(false);
    now
}

/// As it is told: the password is a digest.
fn redacted(mut deployment: Value) -> Value {
    let value = &mut deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
    *value = json!(format!("redacted:hmac-sha256:{}", "0123456789abcdef".repeat(2)));
    deployment
}

fn secret(live: bool, value: &str) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "web"},
        "type": "Opaque", "data": {"password": value},
    });
    if live {
        object["metadata"]["uid"] = json!("s1");
        object["metadata"]["resourceVersion"] = json!("61");
    }
    object
}

fn key(api: &str, kind: &str, name: &str) -> ResourceKey {
    ResourceKey { api_version: api.into(), kind: kind.into(), namespace: "web".into(), name: name.into() }
}

fn entity(resource: Option<ResourceKey>) -> EntityName {
    EntityName { app_namespace: "argocd".into(), app_name: "web".into(), resource }
}

fn life(object: Value, gone: bool) -> Life {
    let resources: BTreeSet<ResourceKey> = listed(&object).collect();
    Life { uid: object["metadata"]["uid"].as_str().unwrap().to_owned(), object, gone, resources }
}

/// What the cluster and Argo CD say.
fn is() -> Application {
    let item = |group: &str, kind: &str, name: &str, target: &Value, live: &Value| {
        json!({"group": group, "kind": kind, "namespace": "web", "name": name,
               "targetState": target.to_string(), "liveState": live.to_string()})
    };
    let managed = json!({"items": [
        item("apps", "Deployment", "web", &deployment(false), &deployment(true)),
        item("", "Secret", "login", &secret(false, "++++++++"), &secret(true, "++++++++")),
    ]});
    Application {
        namespace: "argocd".into(),
        name: "web".into(),
        lives: vec![life(app(), false)],
        object: Some(app()),
        managed: Some(managed),
        tree: Some(json!({"nodes": []})),
        live: [
            (key("apps/v1", "Deployment", "web"), now()),
            (key("v1", "Secret", "login"), secret(true, &STANDARD.encode("hunter2-hunter2"))),
        ]
        .into(),
        past: [(key("apps/v1", "Deployment", "web"), was())].into(),
        commit: Some(("Ann <ann@example.com>".into(), "more replicas\n".into())),
        ..Application::default()
    }
}

/// One report, to be spoilt.
#[derive(Clone)]
struct Draft {
    entity: EntityName,
    object: Value,
    source: Value,
}

impl Draft {
    fn payload(&self) -> bytes::Bytes {
        let data = json!({"object": STANDARD.encode(self.object.to_string()), "source": self.source});
        data.to_string().into()
    }
}

/// All that is to be told of it.
fn told() -> Vec<Draft> {
    let mut object = app();
    object["metadata"]["annotations"] = json!({"app.meta.revisions-metadata": "{}"});
    object["metadata"]["labels"] = json!({"app.meta.commit-author": "Ann <ann@example.com>", "app.meta.commit-message": "more replicas"});
    object["metadata"]["resourceVersion"] = json!("69");
    object["status"]["reconciledAt"] = json!("2026-11-21T10:00:01Z");
    object["status"]["summary"] = json!({});
    let of_resource = |live: &Value, desired: &Value, health: &str| {
        json!({
            "appName": "web", "appNamespace": "argocd", "appUID": UID, "revision": "new", "syncStatus": "Synced",
            "healthStatus": health, "actualManifest": live.to_string(), "desiredManifest": desired.to_string(),
            "gitManifest": serde_saphyr::to_string(desired).unwrap(), "commitAuthor": "Ann <ann@example.com>",
        })
    };
    let web = redacted(was());
    let login = secret(true, "++++++++");
    vec![
        Draft {
            entity: entity(None),
            source: json!({"appName": "", "syncStatus": "Synced", "healthStatus": "Progressing",
                           "actualManifest": object.to_string()}),
            object,
        },
        Draft {
            entity: entity(Some(key("apps/v1", "Deployment", "web"))),
            source: of_resource(&web, &redacted(deployment(false)), "Progressing"),
            object: web,
        },
        Draft {
            entity: entity(Some(key("v1", "Secret", "login"))),
            source: of_resource(&login, &secret(false, "++++++++"), "Healthy"),
            object: login,
        },
    ]
}

/// What the platform holds after these reports, in this order.
fn held(drafts: &[Draft]) -> Told {
    let mut told = Told::default();
    for draft in drafts {
        let payload = draft.payload();
        told.kept.push(KeptReport { key: None, entity: draft.entity.clone(), payload: payload.clone() });
        let last = Last { reports: 1, uid: String::new(), era: 0, version: None, payload: Some(payload) };
        match told.last.iter_mut().find(|(entity, _)| *entity == draft.entity) {
            Some((_, before)) => *before = Last { reports: before.reports + 1, ..last },
            None => told.last.push((draft.entity.clone(), last)),
        }
    }
    told
}

fn found(is: &Application, drafts: &[Draft]) -> Vec<String> {
    differences(is, &held(drafts))
}

/// What is found when one report is spoilt.
fn spoilt(at: usize, spoil: impl FnOnce(&mut Draft)) -> Vec<String> {
    let mut drafts = told();
    spoil(&mut drafts[at]);
    found(&is(), &drafts)
}

#[test]
fn what_was_told_in_full_has_no_difference() {
    assert_eq!(found(&is(), &told()), Vec::<String>::new());
}

#[test]
fn a_wrong_health_is_found() {
    let wrong = spoilt(1, |draft| draft.source["healthStatus"] = json!("Healthy"));
    assert_eq!(wrong, [r#"argocd/web Deployment web/web: health is "Healthy", expected "Progressing""#]);
    let wrong = spoilt(0, |draft| draft.source["healthStatus"] = json!("Healthy"));
    assert_eq!(wrong, [r#"argocd/web: source health is "Healthy", expected "Progressing""#]);
}

#[test]
fn a_stale_revision_is_found() {
    let wrong = spoilt(1, |draft| draft.source["revision"] = json!("old"));
    assert_eq!(wrong, [r#"argocd/web Deployment web/web: revision is "old", expected "new""#]);
    let wrong = spoilt(0, |draft| draft.object["status"]["sync"]["revision"] = json!("old"));
    assert_eq!(
        wrong,
        [
            r#"argocd/web: revision is "old", expected "new""#,
            r#"argocd/web: status.sync.revision is "old", expected "new""#,
        ]
    );
}

#[test]
fn a_report_that_is_missing_is_found() {
    for (at, line) in [
        (0, r#"argocd/web: report is null, expected "one""#),
        (1, r#"argocd/web Deployment web/web: report is null, expected "one""#),
        (2, r#"argocd/web Secret web/login: report is null, expected "one""#),
    ] {
        let mut drafts = told();
        drafts.remove(at);
        assert_eq!(found(&is(), &drafts), [line]);
    }
    assert_eq!(found(&is(), &[]).len(), 3);
}

#[test]
fn a_report_of_what_never_was_is_found() {
    let mut drafts = told();
    let mut ghost = drafts[2].clone();
    ghost.entity = entity(Some(key("v1", "Secret", "ghost")));
    drafts.push(ghost);
    assert_eq!(
        found(&is(), &drafts),
        ["argocd/web: Secret web/ghost was reported, and never was a resource of it"]
    );
    // It was one, and left: that is no report of what never was, unless it was told of another life.
    let mut is = is();
    is.lives[0].resources.insert(key("v1", "Secret", "ghost"));
    assert_eq!(found(&is, &drafts), Vec::<String>::new());
    drafts[3].source["appUID"] = json!("u0");
    assert_eq!(
        found(&is, &drafts),
        ["argocd/web: Secret web/ghost was reported, and never was a resource of it"]
    );
    let mut other = told();
    other.insert(0, other[0].clone());
    other[0].object["metadata"]["uid"] = json!("u0");
    assert_eq!(
        found(&super::tests::is(), &other),
        ["argocd/web: reported with the uid u0, which it never had"]
    );
    let nothing = Application { lives: Vec::new(), object: None, ..is };
    assert_eq!(found(&nothing, &told()), ["argocd/web: there never was such an application"]);
}

#[test]
fn a_state_that_moves_is_no_verdict() {
    let mut moved = is();
    moved.lives[0].object["metadata"]["resourceVersion"] = json!("71");
    assert_eq!(found(&moved, &told()), ["argocd/web: it changes while it is looked at"]);
    let mut reborn = is();
    reborn.lives[0].gone = true;
    assert_eq!(found(&reborn, &told()), ["argocd/web: it changes while it is looked at"]);
    let troubled = Application { troubles: vec!["Argo CD answers 500 to resource-tree".into()], ..is() };
    assert_eq!(found(&troubled, &told()), ["argocd/web: Argo CD answers 500 to resource-tree"]);
    let mut forgotten = held(&told());
    forgotten.kept.clear();
    assert_eq!(differences(&is(), &forgotten), ["argocd/web: not all of its 3 reports were kept"]);
}

#[test]
fn an_older_state_after_a_newer_one_is_found() {
    let mut drafts = told();
    let mut older = drafts[0].clone();
    older.object["metadata"]["resourceVersion"] = json!("68");
    drafts.push(older);
    assert_eq!(found(&is(), &drafts), ["argocd/web: order is 68, expected 69"]);
}

#[test]
fn a_commit_that_is_not_the_synced_one_is_found() {
    let label =
        |name: &'static str| spoilt(0, |draft| draft.object["metadata"]["labels"][name] = json!("Bob"));
    assert_eq!(
        label("app.meta.commit-author"),
        [r#"argocd/web: label app.meta.commit-author is "Bob", expected "Ann <ann@example.com>""#]
    );
    assert_eq!(
        label("app.meta.commit-message"),
        [r#"argocd/web: label app.meta.commit-message is "Bob", expected "more replicas\n""#]
    );
}

#[test]
fn a_resource_that_was_reported_without_its_commit_is_found() {
    let of = |author: &str| spoilt(1, |draft| draft.source["commitAuthor"] = json!(author));
    assert_eq!(of(""), ["argocd/web Deployment web/web: reported without the commit"]);
    assert_eq!(of("Bob"), Vec::<String>::new());
}

#[test]
fn a_child_belongs_to_its_parent_while_that_is_there() {
    let of = |is_there| Application { parent: Some(("parent".into(), is_there)), ..is() };
    assert_eq!(found(&of(true), &told()), [r#"argocd/web: reported as a resource of "", expected "parent""#]);
    assert_eq!(found(&of(false), &told()), Vec::<String>::new());
    let mut drafts = told();
    drafts[0].source["appName"] = json!("parent");
    assert_eq!(found(&of(true), &drafts), Vec::<String>::new());
    let ended = |end| Application { parent_end: Some(end), ..of(false) };
    assert_eq!(found(&ended(70), &drafts), Vec::<String>::new());
    let stale = r#"argocd/web: reported as a resource of "parent", which was gone by then"#;
    assert_eq!(found(&ended(60), &drafts), [stale]);
}
