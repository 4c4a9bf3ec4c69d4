//! Reports as reporters post them, each of whose fields would be a script wherever it is not taken for text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use self::Shown::{Api, Everywhere, Nowhere, Pages};

/// Where a field that is reported is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// On a page, and in an answer of the API.
    Everywhere,
    /// On a page alone.
    Pages,
    /// In an answer of the API alone.
    Api,
    Nowhere,
}

/// Every field that is hostile, each told by its place in this list, and where it is seen: of authors the name alone
/// is, which ends where an address begins, and a label's key ends at the first `=`, which no key of Kubernetes has.
pub(crate) const FIELDS: &[(&str, Shown)] = &[
    ("application namespace", Everywhere),
    ("application name", Everywhere),
    ("application uid", Api),
    ("label key", Nowhere),
    ("label value", Api),
    ("environment", Everywhere),
    ("product", Pages),
    ("commit author", Api),
    ("commit message", Everywhere),
    ("commit date", Nowhere),
    ("avatar", Nowhere),
    ("synced author", Nowhere),
    ("synced message", Nowhere),
    ("tag", Nowhere),
    ("change revision", Everywhere),
    ("change author", Api),
    ("change message", Everywhere),
    ("external link", Nowhere),
    ("external URL", Nowhere),
    ("project", Everywhere),
    ("cluster", Everywhere),
    ("server", Nowhere),
    ("destination namespace", Api),
    ("repository", Everywhere),
    ("path", Api),
    ("target revision", Nowhere),
    ("revision", Everywhere),
    ("application message", Everywhere),
    ("condition", Pages),
    ("condition message", Pages),
    ("image", Pages),
    ("operation message", Everywhere),
    ("synced revision", Everywhere),
    ("initiated by", Everywhere),
    ("synced resource", Pages),
    ("synced resource message", Pages),
    ("resource namespace", Everywhere),
    ("resource name", Everywhere),
    ("listed message", Pages),
    ("resource message", Everywhere),
    ("live manifest", Pages),
    ("desired manifest", Everywhere),
    ("Git manifest", Everywhere),
    ("another live manifest", Everywhere),
    ("custom group", Everywhere),
    ("custom kind", Everywhere),
    ("custom name", Everywhere),
    ("rollout name", Everywhere),
    ("rollout phase", Pages),
    ("rollout message", Pages),
    ("pod hash", Pages),
    ("pause", Pages),
    ("step", Pages),
    ("analysis", Pages),
    ("analysis status", Pages),
    ("analysis message", Pages),
    ("run name", Everywhere),
    ("metric", Pages),
    ("metric message", Pages),
    ("measurement", Pages),
    ("workflow name", Everywhere),
    ("progress", Pages),
    ("node", Pages),
    ("node type", Pages),
    ("node message", Pages),
    ("error message", Pages),
    ("chart version", Nowhere),
    ("query", Pages),
    ("commit that changed it", Everywhere),
    ("author of what changed it", Api),
    ("message of what changed it", Everywhere),
    ("date of what changed it", Api),
    ("path that changed", Everywhere),
    ("repository of what changed it", Everywhere),
    ("revision before", Api),
    ("why it is not known", Everywhere),
    ("runtime version", Everywhere),
    ("file that differs", Pages),
    ("line that differs", Pages),
    ("why it does not tell", Nowhere),
    ("runtime error title", Everywhere),
    ("runtime error message", Everywhere),
    ("runtime error suggestion", Everywhere),
];

/// The number of a field: all have as many digits, so that none is part of another.
pub(crate) fn number(field: &str) -> usize {
    100 + FIELDS.iter().position(|(known, _)| *known == field).expect(field)
}

/// What the field holds that is a name: it has no slash, which parts names in addresses.
pub(crate) fn name(field: &str) -> String {
    let number = number(field);
    format!("z{number}z\"'><img src=x onerror=owned={number}><svg onload=owned={number}>")
}

/// What the field holds that is a text.
pub(crate) fn text(field: &str) -> String {
    let number = number(field);
    format!(
        "{}<script>owned={number}</script>\" autofocus onfocus=owned={number} x=\"&{{{{7*7}}}}",
        name(field)
    )
}

/// What the field holds that is an address.
pub(crate) fn link(field: &str) -> String {
    format!("javascript:owned={}//{}", number(field), name(field))
}

/// Whether a text has what the field holds, as it is or as YAML quotes it: its beginning, since lines of YAML are wrapped.
pub(crate) fn is_of(field: &str, found: &str) -> bool {
    let number = number(field);
    let begin = format!("z{number}z\"'><img src=x onerror=owned={number}>");
    [begin.replace('\'', "''"), begin.replace('"', "\\\""), begin]
        .iter()
        .any(|begin| found.contains(begin.as_str()))
}

/// A report of the application `shop`, as it is posted.
fn event(object: &Value, mut source: Value, at: Timestamp) -> Value {
    for (key, value) in [
        ("appName", name("application name")),
        ("appNamespace", name("application namespace")),
        ("commitAuthor", text("commit author")),
        ("commitMessage", text("commit message")),
        ("commitDate", text("commit date")),
        ("repoURL", link("repository")),
        ("path", text("path")),
    ] {
        source[key] = value.into();
    }
    let error = json!({
        "type": "sync", "level": "error", "message": text("error message"), "lastSeen": at.to_string(),
        "sourceReference": {"group": "apps", "kind": "Deployment", "name": name("resource name")},
    });
    json!({"data": {
        "timestamp": at.to_string(), "object": STANDARD.encode(object.to_string()), "source": source, "errors": [error],
        "appVersions": {"appVersion": text("chart version")},
    }})
}

/// The application, in the state and at the version that are said.
pub(crate) fn application(health: &str, version: u32, at: Timestamp) -> Value {
    let began = at - SignedDuration::from_secs(20);
    let metadata = |author: &str, message: &str| {
        json!({
            "author": text(author), "message": text(message), "date": text("commit date"), "tags": [text("tag")], "avatarURL": link("avatar"),
        })
    };
    let revisions = json!({
        "syncRevisions": [{"revision": text("synced revision"), "metadata": metadata("synced author", "synced message")}],
        "changeRevisions": [{"revision": text("change revision"), "metadata": metadata("change author", "change message")}],
    });
    let listed = |group: &str, kind: &str, name: &str| {
        json!({
            "group": group, "version": "v1", "kind": kind, "namespace": self::name("resource namespace"), "name": name,
            "status": "OutOfSync", "health": {"status": "Degraded", "message": text("listed message")},
        })
    };
    let mut labels = json!({
        "env": text("environment"),
        "app.meta.commit-author": text("commit author"),
        "app.meta.commit-message": text("commit message"),
        "app.meta.commit-date": text("commit date"),
    });
    labels[name("label key")] = text("label value").into();
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name("application name"), "namespace": name("application namespace"), "uid": name("application uid"),
            "resourceVersion": version.to_string(), "labels": labels,
            "annotations": {
                "app.meta.revisions-metadata": revisions.to_string(),
                "link.argocd.argoproj.io/external-link": link("external link"),
                "codefresh.io/product": text("product"),
            },
        },
        "spec": {
            "project": name("project"),
            "destination": {"name": text("cluster"), "server": link("server"), "namespace": text("destination namespace")},
            "source": {"repoURL": link("repository"), "path": text("path"), "targetRevision": text("target revision")},
        },
        "status": {
            "sync": {"status": "OutOfSync", "revision": text("revision")},
            "health": {"status": health, "message": text("application message")},
            "conditions": [{"type": format!("{}Error", name("condition")), "message": text("condition message")}],
            "resources": [
                listed("apps", "Deployment", &name("resource name")),
                listed("argoproj.io", "Rollout", &name("rollout name")),
                listed(&name("custom group"), &name("custom kind"), &name("custom name")),
            ],
            "summary": {"images": [format!("{}:1", name("image"))], "externalURLs": [link("external URL")]},
            "operationState": {
                "phase": "Failed", "message": text("operation message"),
                "startedAt": began.to_string(), "finishedAt": (began + SignedDuration::from_secs(5)).to_string(),
                "operation": {"initiatedBy": {"username": text("initiated by")}},
                "syncResult": {"revision": text("synced revision"), "resources": [{
                    "kind": "Deployment", "name": name("synced resource"), "status": "SyncFailed", "message": text("synced resource message"),
                }]},
            },
        },
    });
    let source = json!({
        "syncStatus": "OutOfSync", "healthStatus": health, "healthMessage": text("application message"), "revision": text("revision"),
        "actualManifest": object.to_string(), "gitManifest": "", "desiredManifest": "",
    });
    event(&object, source, at)
}

/// Which commits the sync of such a report brought, as whoever looks at repositories reports it.
pub(crate) fn changes(at: Timestamp) -> Value {
    let commit = json!({
        "revision": text("commit that changed it"), "author": text("author of what changed it"),
        "message": text("message of what changed it"), "date": text("date of what changed it"), "paths": [text("path that changed"), text("path that changed"), text("path that changed")],
        "diffs": [
            {"path": text("file that differs"), "text": format!("@@ -1,1 +1,1 @@\n-a\n+{}\n", text("line that differs"))},
            {"path": text("file that differs"), "untold": text("why it does not tell")},
        ],
    });
    // More than are shown unfolded.
    let several = vec![commit; 5];
    json!({"data": {
        "namespace": name("application namespace"), "name": name("application name"),
        "startedAt": (at - SignedDuration::from_secs(20)).to_string(),
        "sources": [
            {
                "repoURL": link("repository of what changed it"), "revision": text("synced revision"),
                "previousRevision": text("revision before"), "changes": several,
            },
            {"repoURL": link("repository"), "error": text("why it is not known")},
        ],
    }})
}

/// Its resources: one that anything has, one of a kind that nobody knows, and those that are shown by their steps.
pub(crate) fn resources(at: Timestamp) -> Vec<Value> {
    let object = |api_version: &str, kind: &str, name: &str, more: Value| {
        let mut object = more;
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({
            "name": name, "namespace": self::name("resource namespace"), "uid": format!("uid {name}"), "resourceVersion": "1",
        });
        object
    };
    let manifest = |field: &str| {
        json!({"kind": "Deployment", "metadata": {"annotations": {"note": text(field)}}}).to_string()
    };
    let source = |live: String| {
        json!({
            "syncStatus": "OutOfSync", "healthStatus": "Degraded", "healthMessage": text("resource message"), "revision": text("revision"),
            "actualManifest": live, "desiredManifest": manifest("desired manifest"),
            // As it stands in Git, which is YAML.
            "gitManifest": format!("kind: Deployment\nnote: {}\n", Value::from(text("Git manifest"))),
        })
    };
    // Of these nothing is known but Git and what runs.
    let own = |object: Value, at: Timestamp| {
        let mut source = source(object.to_string());
        source["desiredManifest"] = "".into();
        event(&object, source, at)
    };
    let rollout = json!({
        "spec": {"strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {"duration": text("pause")}}, {text("step"): {}}]}}},
        "status": {
            "phase": text("rollout phase"), "message": text("rollout message"), "currentStepIndex": 1, "currentPodHash": text("pod hash"),
            "canary": {"currentStepAnalysisRunStatus": {
                "name": text("analysis"), "status": text("analysis status"), "message": text("analysis message"),
            }},
        },
    });
    let run = json!({"status": {"phase": "Failed", "metricResults": [{
        "name": text("metric"), "phase": "Failed", "message": text("metric message"), "measurements": [{"value": text("measurement")}],
    }]}});
    let workflow = json!({"status": {"phase": "Running", "progress": text("progress"), "nodes": {"1": {
        "displayName": text("node"), "type": text("node type"), "message": text("node message"), "phase": "Running",
        "startedAt": at.to_string(),
    }}}});
    let deployment = || object("apps/v1", "Deployment", &name("resource name"), json!({}));
    let earlier = at - SignedDuration::from_secs(15);
    let argo = "argoproj.io/v1alpha1";
    vec![
        event(&deployment(), source(manifest("live manifest")), at - SignedDuration::from_secs(60)),
        event(&deployment(), source(manifest("another live manifest")), earlier),
        own(
            object(
                &format!("{}/v1", name("custom group")),
                &name("custom kind"),
                &name("custom name"),
                json!({}),
            ),
            earlier,
        ),
        own(object(argo, "Rollout", &name("rollout name"), rollout), earlier),
        own(object(argo, "AnalysisRun", &name("run name"), run), earlier),
        own(object(argo, "Workflow", &name("workflow name"), workflow), earlier),
    ]
}
