//! What a runtime tells of its clusters, and the keys that it has here against their loss.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::served::{Credential, Served, by};

const UPDATE: &str = "mutation updateRuntimeClusters($clusters: [ClusterUpsertArgs!]!) { updateRuntimeClusters(clusters: $clusters) }";
/// As the incumbent's public client library lists them.
const CLUSTERS: &str = "query clusters($runtime: String, $pagination: SlicePaginationArgs) { clusters(runtime: $runtime, pagination: $pagination) { \
     edges { node { metadata { name runtime } server info { connectionState { status message } serverVersion \
     cacheInfo { resourcesCount apisCount } } } } pageInfo { endCursor hasNextPage } } }";
const SAVE: &str =
    "mutation saveSealingKey($privateKey: String!) { saveSealingKey(privateKey: $privateKey) }";
const GET: &str = "query getSealingKey($id: String!) { getSealingKey(id: $id) }";

fn cluster(name: &str, server: &str, status: &str) -> Value {
    json!({"name": name, "runtime": "prod", "server": server, "info": {
        "connectionState": {"status": status, "message": format!("{name} it is"), "attemptedAt": "2026-11-24T00:00:00Z"},
        "serverVersion": "1.31", "applicationsCount": 7, "apiVersions": ["v1", "apps/v1", null],
        "cacheInfo": {"resourcesCount": 12, "apisCount": 3, "lastCacheSyncTime": "2026-11-24T00:00:01Z"},
    }})
}

async fn tell(served: &Served, clusters: &[Value]) {
    let told = served.data(&served.runtime, UPDATE, json!({"clusters": clusters})).await;
    assert_eq!(told, json!({"updateRuntimeClusters": clusters.len()}));
}

async fn names(served: &Served, who: &Credential) -> Vec<String> {
    let listed = served.data(who, "{ clusters { edges { cursor } } }", json!({})).await;
    let edges = listed["clusters"]["edges"].as_array().unwrap();
    edges.iter().map(|edge| edge["cursor"].as_str().unwrap().to_owned()).collect()
}

async fn runtime(served: &Served, name: &str) -> (Value, Value) {
    let query =
        "query($name: String!) { runtime(name: $name) { managedClustersNum isRemoteClusterConnected } }";
    let told = served.data(&served.admin, query, json!({"name": name})).await["runtime"].take();
    (told["managedClustersNum"].clone(), told["isRemoteClusterConnected"].clone())
}

#[tokio::test]
async fn a_cluster_is_as_its_runtime_told_last_also_one_that_no_application_goes_to() {
    let served = Served::new().await;
    let own = "https://kubernetes.default.svc";
    for (runtime, name, cluster) in [
        ("prod", "argocd/a", "in-cluster"),
        ("prod", "argocd/b", "https://10.0.0.1:6443"),
        ("prod", "argocd/c", "untold"),
        ("eu1", "argocd/a", "in-cluster"),
    ] {
        served.report_of(runtime, name, |report| report.placement.cluster = cluster.to_owned()).await;
    }
    tell(&served, &[cluster("in-cluster", own, "Successful")]).await;
    assert_eq!(runtime(&served, "prod").await, (json!(3), json!(false)), "its own is none beside it");
    let east = cluster("east", "https://10.0.0.1:6443", "Failed");
    tell(&served, &[east, cluster("west", "https://10.0.0.2:6443", "Unknown")]).await;
    assert_eq!(runtime(&served, "prod").await, (json!(4), json!(false)), "one has a name and an address");
    tell(&served, &[cluster("east", "https://10.0.0.1:6443", "Successful")]).await;
    assert_eq!(runtime(&served, "prod").await, (json!(4), json!(true)));
    assert_eq!(runtime(&served, "eu1").await, (json!(1), Value::Null));
    let told = |name: &str, of: &str, server: &str, status: &str| {
        json!({"node": {"metadata": {"name": name, "runtime": "prod"}, "server": server, "info": {
            "connectionState": {"status": status, "message": format!("{of} it is")}, "serverVersion": "1.31",
            "cacheInfo": {"resourcesCount": 12, "apisCount": 3}}}})
    };
    let untold = json!({"node": {"metadata": {"name": "untold", "runtime": "prod"}, "server": null, "info": {
        "connectionState": {"status": "Unknown", "message": null}, "serverVersion": null,
        "cacheInfo": {"resourcesCount": null, "apisCount": null}}}});
    let edges = json!([
        told("https://10.0.0.1:6443", "east", "https://10.0.0.1:6443", "Successful"),
        told("in-cluster", "in-cluster", own, "Successful"),
        untold,
        told("west", "west", "https://10.0.0.2:6443", "Unknown"),
    ]);
    let variables = json!({"runtime": "prod", "pagination": {"after": ""}});
    for who in [&served.admin, &served.runtime] {
        let listed = served.data(who, CLUSTERS, variables.clone()).await["clusters"].take();
        assert_eq!(listed["edges"], edges);
        assert_eq!(listed["pageInfo"], json!({"endCursor": "prod/west", "hasNextPage": false}));
    }
    let more = "{ clusters(runtime: \"prod\", pagination: {after: \"prod/in-cluster\"}) { edges { node { info { apiVersions applicationsCount \
                connectionState { attemptedAt } cacheInfo { lastCacheSyncTime } } } } } }";
    let more = served.data(&served.admin, more, json!({})).await;
    let info = |versions: Value, count: u64, attempted: Value, cached: Value| {
        json!({"node": {"info": {"apiVersions": versions, "applicationsCount": count,
            "connectionState": {"attemptedAt": attempted}, "cacheInfo": {"lastCacheSyncTime": cached}}}})
    };
    let west =
        info(json!(["v1", "apps/v1"]), 0, json!("2026-11-24T00:00:00Z"), json!("2026-11-24T00:00:01Z"));
    assert_eq!(more["clusters"]["edges"], json!([info(Value::Null, 1, Value::Null, Value::Null), west]));
}

#[tokio::test]
async fn a_cluster_that_applications_name_by_its_name_and_by_its_address_is_one() {
    let served = Served::new().await;
    let own = "https://kubernetes.default.svc";
    for (name, cluster) in [
        ("argocd/a", "in-cluster"),
        ("argocd/b", own),
        ("argocd/c", "east"),
        ("argocd/d", "https://10.0.0.1:6443"),
    ] {
        served.report_of("prod", name, |report| report.placement.cluster = cluster.to_owned()).await;
    }
    assert_eq!(
        names(&served, &served.admin).await,
        ["prod/east", "prod/https://10.0.0.1:6443", "prod/in-cluster"]
    );
    // Argo CD's own may be called otherwise.
    let east = cluster("east", "https://10.0.0.1:6443", "Successful");
    tell(&served, &[cluster("hub", own, "Successful"), east]).await;
    assert_eq!(runtime(&served, "prod").await, (json!(2), json!(true)));
    let query = "{ clusters { edges { node { metadata { name } server info { applicationsCount } } } } }";
    let listed = served.data(&served.admin, query, json!({})).await;
    let one = |name: &str, server: &str| json!({"node": {"metadata": {"name": name}, "server": server, "info": {"applicationsCount": 2}}});
    assert_eq!(
        listed["clusters"]["edges"],
        json!([one("east", "https://10.0.0.1:6443"), one("in-cluster", own)])
    );
}

#[tokio::test]
async fn whoever_sees_a_part_of_a_runtime_sees_the_clusters_of_that_part() {
    let served = Served::new().await;
    served.report_of("prod", "argocd/a", |report| report.placement.cluster = "east".to_owned()).await;
    tell(
        &served,
        &[cluster("east", "https://10.0.0.1:6443", "Failed"), cluster("west", "https://w", "Failed")],
    )
    .await;
    assert_eq!(names(&served, &served.admin).await, ["prod/east", "prod/west"]);
    assert_eq!(names(&served, &served.runtime).await, ["prod/east", "prod/west"]);
    assert_eq!(names(&served, &served.member).await, [""; 0]);
    let rule = r#"mutation { createAbacRule(rule: {entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{name: "RUNTIME", value: "prod"}]}) }"#;
    served.data(&served.admin, rule, json!({})).await;
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], 0).await.unwrap();
    assert_eq!(names(&served, &served.member).await, ["prod/east"]);
    // What was told goes with the runtime.
    assert!(served.store.unregister(&by("ada"), "prod", 0).await.unwrap());
    assert_eq!(names(&served, &served.admin).await, ["prod/east"]);
}

#[tokio::test]
async fn a_runtime_tells_of_its_own_clusters_alone_and_of_so_many() {
    let served = Served::new().await;
    let refused =
        async |clusters: Value| served.refused(&served.runtime, UPDATE, json!({"clusters": clusters})).await;
    let mut of_another = cluster("east", "https://e", "Failed");
    of_another["runtime"] = json!("eu1");
    assert_eq!(refused(json!([of_another])).await, "a runtime may do this for itself alone");
    let many: Vec<Value> = (0..1_001).map(|n| cluster(&format!("c{n}"), "https://e", "Failed")).collect();
    assert_eq!(refused(json!(many)).await, "at most 1000 clusters are told of at a time");
    for (name, server, said) in [
        ("", "https://e", "the name of a cluster has 1 to 500 bytes"),
        ("a\nb", "https://e", "the name of a cluster has 1 to 500 bytes"),
        (&"x".repeat(501), "https://e", "the name of a cluster has 1 to 500 bytes"),
        ("east", "", "the server of a cluster has 1 to 500 bytes"),
    ] {
        assert_eq!(refused(json!([cluster(name, server, "Failed")])).await, said);
    }
    assert_eq!(names(&served, &served.admin).await, [""; 0]);
    // What is long of the rest is cut, and of the versions of kinds the first are kept.
    let mut long = cluster("east", "https://e", "Failed");
    long["info"]["connectionState"]["message"] = json!("é".repeat(2_000));
    long["info"]["serverVersion"] = json!("1".repeat(200));
    let versions: Vec<String> = (0..2_000).map(|n| format!("example.com/v1/Kind{n}")).collect();
    long["info"]["apiVersions"] = json!(versions);
    tell(&served, &[long]).await;
    let query =
        "{ clusters { edges { node { info { serverVersion apiVersions connectionState { message } } } } } }";
    let told =
        served.data(&served.admin, query, json!({})).await["clusters"]["edges"][0]["node"]["info"].take();
    let length = |of: &Value| of.as_str().unwrap().chars().count();
    assert_eq!((length(&told["serverVersion"]), length(&told["connectionState"]["message"])), (100, 1_024));
    let kept = told["apiVersions"].as_array().unwrap();
    let bytes: usize = kept.iter().map(|one| length(one) + 1).sum();
    assert!(bytes <= 8_192 && bytes > 8_100, "{bytes}");
    assert_eq!(kept[0], "example.com/v1/Kind0");
}

fn pem(body: &str) -> String {
    format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n")
}

#[tokio::test]
async fn a_sealing_key_is_given_to_its_runtime_alone_and_stands_nowhere_else() {
    let served = Served::new().await;
    let eu1 = served.store.register(&by("ada"), "eu1", "{}", false, 0).await.unwrap().unwrap();
    let eu1 = ("authorization", pipeline_core::ExposeSecret::expose_secret(&eu1).to_owned());
    let save = async |key: &str| {
        let saved = served.data(&served.runtime, SAVE, json!({"privateKey": key})).await;
        saved["saveSealingKey"].as_str().unwrap().to_owned()
    };
    let plain = pem("bWFkZS11cC1rZXk=");
    let encoded = STANDARD.encode(&plain);
    let id = save(&plain).await;
    assert!(id.len() == 24 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    // Whoever asks again, because the answer was lost, is given the same id.
    assert_eq!((save(&plain).await, save(&encoded).await), (id.clone(), id.clone()));
    let got = served.data(&served.runtime, GET, json!({"id": id})).await;
    assert_eq!(got, json!({"getSealingKey": encoded}));
    let none = "this runtime has no sealing key of that id";
    assert_eq!(served.refused(&eu1, GET, json!({"id": id})).await, none);
    assert_eq!(served.refused(&served.runtime, GET, json!({"id": "none"})).await, none);
    let person = "only the app proxy of a runtime may ask this: send the runtime's token";
    assert_eq!(served.refused(&served.admin, GET, json!({"id": id})).await, person);
    // It is told that it was kept, and not what.
    let log = served.data(&served.admin, "{ auditLog(first: 2) { who how act subject } }", json!({})).await;
    let entry =
        json!({"who": "prod", "how": "token", "act": "sealing-key.save", "subject": format!("prod: {id}")});
    assert_eq!(log["auditLog"][0], entry);
    assert_eq!(log["auditLog"][1]["act"], "runtime.add", "once");
    let long = pem(&"canary".repeat(12_000));
    for (key, said) in [
        ("canary", "a sealing key is a private key in PEM, or base64 of that"),
        (&*long, "a sealing key has at most 65536 bytes"),
    ] {
        assert_eq!(served.refused(&served.runtime, SAVE, json!({"privateKey": key})).await, said);
    }
    let wrong = json!({"privateKey": {"canary": "of-a-secret"}});
    let said = served.refused(&served.runtime, SAVE, wrong).await;
    assert!(!said.contains("canary") && !said.contains("of-a-secret"), "{said}");
}

#[tokio::test]
async fn no_sealing_key_is_dropped_for_another_and_all_go_with_the_runtime() {
    let served = Served::new().await;
    let save = |n: usize| json!({"privateKey": pem(&format!("a2V5{n}"))});
    let mut ids = Vec::new();
    for n in 0..10 {
        let saved = served.data(&served.runtime, SAVE, save(n)).await;
        ids.push(saved["saveSealingKey"].as_str().unwrap().to_owned());
    }
    let said = "a runtime has at most 10 sealing keys, and none is dropped, as what was sealed for it could not be opened any more: \
                deleteRuntime takes them with the runtime";
    assert_eq!(served.refused(&served.runtime, SAVE, save(10)).await, said);
    let again = served.data(&served.runtime, SAVE, save(0)).await;
    assert_eq!(again, json!({"saveSealingKey": ids[0]}), "one that is kept takes no place");
    for (n, id) in ids.iter().enumerate() {
        let got = served.data(&served.runtime, GET, json!({"id": id})).await;
        assert_eq!(got["getSealingKey"], STANDARD.encode(pem(&format!("a2V5{n}"))));
    }
    let known = served.store.runtime_named("prod").await.unwrap().unwrap();
    let own = stages_platform_store::Runtime { id: known, name: "prod".to_owned() };
    assert!(served.store.sealing_key(&own, &ids[0]).await.unwrap().is_some());
    assert!(served.store.unregister(&by("ada"), "prod", 0).await.unwrap());
    assert!(served.store.sealing_key(&own, &ids[0]).await.unwrap().is_none());
}
