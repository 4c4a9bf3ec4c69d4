//! What the incumbent's public client library sends, in its own operations: each is answered, and in a form that it can read.

use serde_json::{Value, json};
use stages_platform_store::Text;

use crate::served::{Served, still};

const GET_RUNTIME: &str = "query GetRuntime($name: String!) { runtime(name: $name) { metadata { name namespace } \
     self { syncStatus healthMessage healthStatus } syncStatus healthStatus healthMessage cluster managed \
     isRemoteClusterConnected ingressHost internalIngressHost ingressClass ingressController runtimeVersion \
     installationStatus installationType repo managedClustersNum gitProvider accessMode } }";
const RUNTIMES: &str = "query Runtimes { runtimes { edges { node { metadata { name namespace } \
     self { syncStatus healthMessage healthStatus } syncStatus healthMessage healthStatus managed cluster ingressHost \
     runtimeVersion installationStatus installationType } } } }";
const ME: &str = "query Me { me { id name email isAdmin accounts { id name } activeAccount { id name gitProvider \
     gitApiUrl sharedConfigRepo admins } } }";
const LIMITS: &str = "query LimitsStatus { limitsStatus { usage { clusters applications } limits { clusters applications } status } }";
const GIT_SOURCES: &str = "query GitSources($runtime: String) { gitSources(runtime: $runtime) { edges { node { \
     metadata { name } self { path repoURL status { syncStatus healthStatus } } } } } }";

fn error(level: &str, title: &str) -> Value {
    json!({"level": level, "title": title, "message": "no token", "code": "UNKNOWN", "lastSeen": "2026-11-24T00:00:00Z"})
}

#[tokio::test]
async fn a_runtime_is_as_well_as_it_says_unless_it_is_silent() {
    let served = Served::new().await;
    let ask = async || {
        let told = served.data(&served.runtime, GET_RUNTIME, json!({"name": "prod"})).await;
        let listed = served.data(&served.runtime, RUNTIMES, json!({})).await;
        let node = listed["runtimes"]["edges"][0]["node"].clone();
        let health = |of: &Value| (of["healthStatus"].clone(), of["healthMessage"].clone());
        let runtime = &told["runtime"];
        assert_eq!((health(runtime), health(&runtime["self"])), (health(&node), health(&node["self"])));
        assert_eq!(health(runtime), health(&runtime["self"]));
        assert_eq!((&runtime["syncStatus"], &runtime["self"]["syncStatus"]), (&Value::Null, &Value::Null));
        health(runtime)
    };
    assert_eq!(ask().await, (Value::Null, Value::Null), "it was never heard of");
    let report = "mutation($args: ReportRuntimeErrorsArgs!) { reportRuntimeErrors(reportErrorsArgs: $args) }";
    let say = async |errors: Vec<Value>| {
        let args = json!({"args": {"runtime": "prod", "errors": errors}});
        served.data(&served.runtime, report, args).await;
    };
    say(vec![]).await;
    assert_eq!(ask().await, (json!("HEALTHY"), Value::Null));
    say(vec![error("WARNING", "Disk")]).await;
    assert_eq!(ask().await, (json!("HEALTHY"), Value::Null), "a warning does not keep it from its work");
    say(vec![error("WARNING", "Disk"), error("ERROR", "Git")]).await;
    assert_eq!(ask().await, (json!("DEGRADED"), json!("Git: no token")));
    say(vec![error("ERROR", &"é".repeat(2_000))]).await;
    assert_eq!(ask().await.1.as_str().unwrap().chars().count(), 1_024);
    // What it said twenty minutes ago need not hold any more.
    let ago = still().as_millisecond() - 20 * 60_000;
    for (at, expected) in [
        (ago + 1, (json!("HEALTHY"), Value::Null)),
        (ago, (json!("UNKNOWN"), json!("nothing was heard of it since 2030-03-17T17:26:40Z"))),
    ] {
        let served = Served::new().await;
        served.store.keep_problems("prod", "[]", at).await.unwrap();
        let told = served.data(&served.runtime, GET_RUNTIME, json!({"name": "prod"})).await;
        let runtime = &told["runtime"];
        assert_eq!((runtime["healthStatus"].clone(), runtime["healthMessage"].clone()), expected);
    }
    // What its proxy says does not hide that its reporter says nothing.
    let served = Served::new().await;
    let id = served.store.runtime_named("prod").await.unwrap().unwrap();
    served.store.keep_heard(id, ("reporter", ""), ago).await.unwrap();
    served.store.keep_problems("prod", "[]", still().as_millisecond()).await.unwrap();
    let told = served.data(&served.runtime, GET_RUNTIME, json!({"name": "prod"})).await;
    let said = "nothing was heard of its reporter since 2030-03-17T17:26:40Z";
    assert_eq!(told["runtime"]["healthMessage"], said);
}

#[tokio::test]
async fn a_runtime_manages_the_clusters_that_its_applications_go_to() {
    let served = Served::new().await;
    let ask = async |name: &str| {
        let told = served.data(&served.admin, GET_RUNTIME, json!({"name": name})).await["runtime"].take();
        (told["managedClustersNum"].clone(), told["isRemoteClusterConnected"].clone())
    };
    assert_eq!(ask("prod").await, (Value::Null, Value::Null));
    for (runtime, name, cluster) in [
        ("prod", "argocd/a", "in-cluster"),
        ("prod", "argocd/b", "east"),
        ("prod", "argocd/c", "east"),
        ("eu1", "argocd/a", "in-cluster"),
    ] {
        served.report_of(runtime, name, |report| report.placement.cluster = cluster.to_owned()).await;
    }
    assert_eq!(ask("prod").await, (json!(2), Value::Null));
    let listed =
        "{ runtimes { edges { node { ...Clusters } } } } fragment Clusters on Runtime { managedClustersNum }";
    let listed = served.data(&served.admin, listed, json!({})).await;
    let number = |number: u64| json!({"node": {"managedClustersNum": number}});
    assert_eq!(listed["runtimes"]["edges"], json!([number(1), number(2)]));
}

#[tokio::test]
async fn whoever_asks_is_told_of_their_account_and_of_its_limits() {
    let served = Served::new().await;
    let account = |admins: Value| json!({"id": "default", "name": "default", "gitProvider": null, "gitApiUrl": null, "sharedConfigRepo": null, "admins": admins});
    let me = |name: &str, is_admin: bool, admins: Value| {
        json!({"me": {"id": name, "name": name, "email": null, "isAdmin": is_admin,
            "accounts": [{"id": "default", "name": "default"}], "activeAccount": account(admins)}})
    };
    assert_eq!(served.data(&served.admin_reads, ME, json!({})).await, me("ada", true, json!(["ada"])));
    // Whoever may not list people is not told who they are.
    assert_eq!(served.data(&served.member, ME, json!({})).await, me("lin", false, Value::Null));
    assert_eq!(served.data(&served.runtime, ME, json!({})).await, me("prod", false, Value::Null));
    let limits = served.data(&served.member, LIMITS, json!({})).await;
    let none = json!({"clusters": null, "applications": null});
    let expected = json!({"usage": {"clusters": 0, "applications": 0}, "limits": none, "status": true});
    assert_eq!(limits["limitsStatus"], expected);
}

#[tokio::test]
async fn git_sources_are_listed_with_how_their_applications_are() {
    let served = Served::new().await;
    let change = |report: &mut stages_platform_store::Report| {
        report.placement.labels = vec![("codefresh.io/entity".to_owned(), "git-source".to_owned())];
    };
    served.report_of("prod", "argocd/shop", change).await;
    let node = json!({"metadata": {"name": "shop"}, "self": {"path": "deploy", "repoURL": "https://git.example.com/shop",
        "status": {"syncStatus": "OUT_OF_SYNC", "healthStatus": "DEGRADED"}}});
    let told = served.data(&served.runtime, GIT_SOURCES, json!({"runtime": "prod"})).await;
    assert_eq!(told, json!({"gitSources": {"edges": [{"node": node}]}}));
}

#[tokio::test]
async fn an_application_says_what_it_follows_of_its_repository() {
    let served = Served::new().await;
    let ask = async |name: &str| {
        let query = "query($name: String!) { application(runtime: \"prod\", namespace: \"argocd\", name: $name) { \
                     metadata { name cluster namespace account } specSource { repoURL targetRevision path } } }";
        let told = served.data(&served.runtime, query, json!({"name": name})).await["application"].take();
        let metadata = json!({"name": name, "cluster": "https://kubernetes.default.svc", "namespace": "argocd", "account": "default"});
        assert_eq!(told["metadata"], metadata);
        told["specSource"].clone()
    };
    let keep = async |name: &str, spec: Value| {
        let change = |report: &mut stages_platform_store::Report| {
            report.placement.repository = "https://git.example.com/shop".to_owned();
            report.placement.path = "deploy".to_owned();
            report.object = (!spec.is_null()).then(|| Text::new(json!({"spec": spec}).to_string()));
            report.object_is_json = true;
        };
        served.report_of("prod", &format!("argocd/{name}"), change).await;
    };
    let one = json!({"repoURL": "https://git.example.com/shop", "targetRevision": "main", "path": "deploy"});
    let other = json!({"repoURL": "https://git.example.com/other", "targetRevision": "v2", "path": "."});
    let follows = |revision: Value| json!({"repoURL": "https://git.example.com/shop", "targetRevision": revision, "path": "deploy"});
    for (name, spec, expected) in [
        ("one", json!({"source": one}), json!("main")),
        ("several", json!({"source": other, "sources": [one, other]}), json!("main")),
        (
            "hydrated",
            json!({"source": follows(json!("branch")), "sources": [follows(json!("branch"))], "sourceHydrator": {"drySource": one}}),
            json!("main"),
        ),
        (
            "head",
            json!({"source": {"repoURL": "https://git.example.com/shop", "path": "deploy"}}),
            Value::Null,
        ),
        ("odd", json!("source"), Value::Null),
        ("none", Value::Null, Value::Null),
    ] {
        keep(name, spec).await;
        assert_eq!(ask(name).await, follows(expected), "{name}");
    }
    served.report("prod", "argocd/bare").await;
    assert_eq!(ask("bare").await, Value::Null, "nothing was reported of where it comes from");
}
