//! Where applications come from and go to: Git sources and clusters, as clients of an incumbent ask for them.

use serde_json::{Value, json};

use crate::served::Served;

/// As an app proxy asks for them.
const GIT_SOURCES: &str = "query GitSources($pagination: SlicePaginationArgs, $project: String, $runtime: String) { \
     gitSources(pagination: $pagination, project: $project, runtime: $runtime) { edges { node { \
     metadata { account runtime group version kind name namespace } self { repoURL path revision } \
     permissions { userId read write } } } pageInfo { startCursor endCursor hasNextPage hasPrevPage } } }";
/// As the command line asks for them.
const CLUSTERS: &str = "query clusters($runtime: String!, $pagination: SlicePaginationArgs) { \
     clusters(runtime: $runtime, pagination: $pagination) { edges { node { metadata { name } server info { \
     connectionState { status message } serverVersion cacheInfo { resourcesCount apisCount } } } } \
     pageInfo { endCursor hasNextPage } } }";

async fn with_sources(served: &Served) {
    for (runtime, name, project, entity) in [
        ("prod", "argocd/apps", "default", "git-source"),
        ("prod", "argocd/infra", "infra", "git-source"),
        ("prod", "argocd/other", "default", "component"),
        ("eu1", "argocd/apps", "default", "git-source"),
    ] {
        let change = |report: &mut stages_platform_store::Report| {
            report.placement.project = project.to_owned();
            report.placement.repository = "https://git.example.com/isc".to_owned();
            report.placement.path = format!("resources/{runtime}");
            report.placement.labels = vec![("codefresh.io/entity".to_owned(), entity.to_owned())];
        };
        served.report_of(runtime, name, change).await;
    }
}

#[tokio::test]
async fn git_sources_are_the_applications_that_say_so() {
    let served = Served::new().await;
    with_sources(&served).await;
    let ask = async |variables: Value| {
        served.data(&served.admin, GIT_SOURCES, variables).await["gitSources"].clone()
    };
    let found =
        ask(json!({"runtime": "prod", "project": "infra", "pagination": {"first": 10, "after": ""}})).await;
    let expected = json!({
        "edges": [{"node": {
            "metadata": {"account": "default", "runtime": "prod", "group": "argoproj.io", "version": "v1alpha1",
                "kind": "Application", "name": "infra", "namespace": "argocd"},
            "self": {"repoURL": "https://git.example.com/isc", "path": "resources/prod", "revision": "abc"},
            "permissions": [],
        }}],
        "pageInfo": {"startCursor": "prod/argocd/infra", "endCursor": "prod/argocd/infra", "hasNextPage": false,
            "hasPrevPage": false},
    });
    assert_eq!(found, expected);
    let names = |found: &Value| {
        let one = |edge: &Value| {
            let metadata = &edge["node"]["metadata"];
            format!("{}/{}", metadata["runtime"].as_str().unwrap(), metadata["name"].as_str().unwrap())
        };
        found["edges"].as_array().unwrap().iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(names(&ask(json!({})).await), ["eu1/apps", "prod/apps", "prod/infra"]);
    assert_eq!(names(&ask(json!({"project": "default"})).await), ["eu1/apps", "prod/apps"]);
    let first = ask(json!({"pagination": {"first": 1}})).await;
    assert_eq!(
        (names(&first), &first["pageInfo"]["hasNextPage"]),
        (vec!["eu1/apps".to_owned()], &json!(true))
    );
    let more = ask(json!({"pagination": {"first": 1, "after": first["pageInfo"]["endCursor"]}})).await;
    assert_eq!(names(&more), ["prod/apps"]);
    // As another client of theirs asks, without a word of pages or of which.
    let all = "{ gitSources { edges { node { metadata { name } self { path repoURL revision status { syncStatus healthStatus revision } } } } } }";
    let found = served.data(&served.runtime, all, json!({})).await;
    let one = json!({"syncStatus": "OUT_OF_SYNC", "healthStatus": "DEGRADED", "revision": "abc"});
    assert_eq!(found["gitSources"]["edges"].as_array().unwrap().len(), 2, "a runtime sees its own");
    assert_eq!(found["gitSources"]["edges"][0]["node"]["self"]["status"], one);
    let nothing = served.data(&served.member, GIT_SOURCES, json!({})).await;
    assert_eq!(nothing["gitSources"]["edges"], json!([]), "whoever sees no application sees no source");
}

#[tokio::test]
async fn clusters_are_those_that_applications_go_to() {
    let served = Served::new().await;
    for (runtime, name, cluster) in [
        ("prod", "argocd/a", "in-cluster"),
        ("prod", "argocd/b", "https://10.0.0.1:6443"),
        ("prod", "argocd/c", "east"),
        ("prod", "argocd/d", "east"),
        ("prod", "argocd/e", ""),
        ("eu1", "argocd/a", "in-cluster"),
    ] {
        served.report_of(runtime, name, |report| report.placement.cluster = cluster.to_owned()).await;
    }
    let found =
        served.data(&served.admin, CLUSTERS, json!({"runtime": "prod", "pagination": {"after": ""}})).await;
    let node = |name: &str, server: Option<&str>| {
        json!({"node": {"metadata": {"name": name}, "server": server, "info": {
            "connectionState": {"status": "Unknown", "message": null}, "serverVersion": null,
            "cacheInfo": {"resourcesCount": null, "apisCount": null}}}})
    };
    let expected = json!({
        "edges": [
            node("east", None),
            node("https://10.0.0.1:6443", Some("https://10.0.0.1:6443")),
            node("in-cluster", Some("https://kubernetes.default.svc")),
        ],
        "pageInfo": {"endCursor": "prod/in-cluster", "hasNextPage": false},
    });
    assert_eq!(found["clusters"], expected);
    let query = "query($p: SlicePaginationArgs) { clusters(pagination: $p) { edges { cursor node { metadata { runtime name } info { applicationsCount healthyCount unwellCount outOfSyncCount } } } pageInfo { endCursor hasNextPage hasPrevPage } } }";
    let page = served.data(&served.admin, query, json!({"p": {"first": 2}})).await;
    let counts = |count: u64| json!({"applicationsCount": count, "healthyCount": 0, "unwellCount": count, "outOfSyncCount": count});
    let edge = |runtime: &str, name: &str, count: u64| json!({"cursor": format!("{runtime}/{name}"), "node": {"metadata": {"runtime": runtime, "name": name}, "info": counts(count)}});
    assert_eq!(page["clusters"]["edges"], json!([edge("eu1", "in-cluster", 1), edge("prod", "east", 2)]));
    let info = json!({"endCursor": "prod/east", "hasNextPage": true, "hasPrevPage": false});
    assert_eq!(page["clusters"]["pageInfo"], info);
    // A name may have slashes: what stands behind it is found all the same.
    let after = json!({"p": {"first": 2, "after": "prod/https://10.0.0.1:6443"}});
    let page = served.data(&served.admin, query, after).await;
    assert_eq!(page["clusters"]["edges"], json!([edge("prod", "in-cluster", 1)]));
    let own = served.data(&served.runtime, query, json!({})).await;
    assert_eq!(own["clusters"]["edges"].as_array().unwrap().len(), 3, "a runtime sees its own");
    let nothing = served.data(&served.member, query, json!({})).await;
    assert_eq!(nothing["clusters"]["edges"], json!([]));
}
