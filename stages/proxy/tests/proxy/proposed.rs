//! What Argo CD says of sources and of applications that are to be, and the links that it shows.

use serde_json::{Value, json};

use crate::operations::asked;
use crate::support::Running;

const SOURCE: &str = r#"{repoURL: "https://git.example/shop", path: "chart", targetRevision: "main"}"#;

fn details(source: &str) -> String {
    asked(&format!(
        "{{ repositoryAppDetails(application: APP, source: {source}) {{ type helm {{ valueFiles values parameters {{ name value }} fileParameters {{ name }} }} kustomize {{ images }} }} }}"
    ))
}

async fn problems(running: &Running, args: &str) -> Value {
    let query =
        asked(&format!("{{ validateApplication(application: APP, args: {args}) {{ entity error }} }}"));
    running.data(&running.admin, &query).await["validateApplication"].clone()
}

#[tokio::test]
async fn links_are_shown_without_secrets_and_none_that_no_browser_is_to_follow() {
    let running = Running::start().await;
    let query = asked("{ applicationLinks(application: APP) { title url description iconClass } }");
    let found = running.data(&running.admin, &query).await["applicationLinks"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let link = &found[0];
    let rest = (&link["title"], &link["description"], &link["iconClass"]);
    assert_eq!(rest, (&json!("Runbook"), &json!("What to do"), &json!("fa-book")));
    let url = link["url"].as_str().unwrap();
    assert!(url.starts_with("https://") && url.ends_with("@wiki.example/shop"), "{url}");
    assert!(!url.contains("canary"), "{url}");
    let query = asked("{ applicationLinks(application: APP, resource: DEPLOYMENT) { title url } }");
    let found = running.data(&running.admin, &query).await["applicationLinks"].clone();
    assert_eq!(found, json!([{"title": "Graphs", "url": "https://graphs.example/web"}]));
}

#[tokio::test]
async fn a_source_is_told_without_the_secrets_of_its_values() {
    let running = Running::start().await;
    let found = running.data(&running.admin, &details(SOURCE)).await["repositoryAppDetails"].clone();
    assert!(!found.to_string().contains("canary"), "{found}");
    let helm = &found["helm"];
    assert_eq!((&found["type"], &found["kustomize"]), (&json!("Helm"), &Value::Null));
    assert_eq!((&helm["valueFiles"], &helm["fileParameters"]), (&json!(["values.yaml"]), &json!([])));
    assert!(helm["values"].as_str().unwrap().starts_with("replicas: 1\npassword: redacted:"), "{helm}");
    assert_eq!(helm["parameters"][0], json!({"name": "replicas", "value": "1"}));
    let asked = running.argocd.details.lock().unwrap().remove(0);
    let source = json!({"repoURL": "https://git.example/shop", "path": "chart", "targetRevision": "main"});
    assert_eq!(asked, json!({"source": source, "appName": "", "appProject": "default"}));

    let own =
        r#"{appName: "shop", repoURL: "https://git.example/shop", path: "base", targetRevision: "main"}"#;
    let found = running.data(&running.admin, &details(own)).await["repositoryAppDetails"].clone();
    assert_eq!((&found["type"], &found["kustomize"]["images"]), (&json!("Kustomize"), &json!(["web:1"])));
    assert_eq!(running.argocd.details.lock().unwrap()[0]["appName"], "argocd/shop");
    for (source, said, code) in [
        (
            r#"{appName: "till", repoURL: "https://git.example/shop", targetRevision: "main"}"#,
            "source.appName is to be the application's own name, or left out",
            "BAD_REQUEST",
        ),
        (
            r#"{repoURL: "", targetRevision: "main"}"#,
            "source.repoURL is to be the address of a repository",
            "BAD_REQUEST",
        ),
        (
            r#"{repoURL: "https://git.example/other", targetRevision: "main"}"#,
            "Argo CD refused to read the source (403): permission denied",
            "PEER_REFUSED",
        ),
    ] {
        let refused = running.refused(&running.admin, &details(source)).await;
        assert_eq!(refused, (said.to_owned(), code.to_owned()));
    }
}

#[tokio::test]
async fn what_argo_cd_would_refuse_of_an_application_is_told_by_its_parts() {
    let running = Running::start().await;
    let args = |source: &str, project: &str, destination: &str| {
        format!(
            r#"{{project: "{project}", source: {{repoURL: "https://git.example/shop", path: "{source}", targetRevision: "main"}}, destination: {{{destination}}}}}"#
        )
    };
    let here = r#"name: "in-cluster", namespace: "shop""#;
    let cluster = "Argo CD refused to read the cluster (404): not found";
    let project = "Argo CD refused to read the project (404): not found";
    let source = "Argo CD refused to read the source (500): missing: app path does not exist";
    let forbidden =
        "the project default permits no application in the namespace 'kube-system' of this cluster";
    let of = |entity: &str, error: &str| json!({"entity": entity, "error": error});
    for (asked, expected) in [
        (args("shop", "default", here), json!([])),
        (
            args("shop", "default", r#"server: "https://kubernetes.default.svc", namespace: "shop""#),
            json!([]),
        ),
        (args("missing", "default", here), json!([of("SOURCE", source)])),
        (
            args("missing", "none", r#"server: "https://elsewhere""#),
            json!([of("PROJECT", project), of("SOURCE", source), of("DESTINATION", cluster)]),
        ),
        (
            args("shop", "default", r#"name: "in-cluster", namespace: "kube-system""#),
            json!([of("DESTINATION", forbidden)]),
        ),
        (
            args("shop", "default", ""),
            json!([of("DESTINATION", "say in which cluster: destination.server, or destination.name")]),
        ),
        (
            args("shop", "default", r#"name: "in-cluster", server: "https://kubernetes.default.svc""#),
            json!([of("DESTINATION", "a destination has a server or a name, and not both")]),
        ),
    ] {
        assert_eq!(problems(&running, &asked).await, expected, "{asked}");
    }
    assert!(running.argocd.take().is_empty(), "nothing was changed");

    // What Argo CD cannot be asked is wrong with nothing.
    *running.argocd.broken.lock().unwrap() = Some((401, "no session".to_owned()));
    let query = asked(&format!(
        "{{ validateApplication(application: APP, args: {}) {{ error }} }}",
        args("shop", "default", here)
    ));
    let said = "(401): it does not know this app proxy: see the token or the login under the setting argocd";
    let (message, code) = running.refused(&running.admin, &query).await;
    assert!(message.ends_with(said), "{message}");
    assert_eq!(code, "PEER_REFUSED");
}
