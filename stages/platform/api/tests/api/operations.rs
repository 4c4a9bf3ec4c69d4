//! The operations that clients of this API know, as they send them.

use serde_json::{Value, json};
use stages_platform_store::{CommitOf, FileDiff, MadeFrom, Operation, SourceChange};

use crate::served::{Credential, Served, told};

const CREATE: &str = "mutation CreateRuntime($installationArgs: RuntimeInstallationArgs!) { createRuntime(installationArgs: $installationArgs) { name newAccessToken } }";
const REPORT: &str = "mutation ReportRuntimeErrors($reportErrorsArgs: ReportRuntimeErrorsArgs!) { reportRuntimeErrors(reportErrorsArgs: $reportErrorsArgs) }";
const VERSION: &str = "mutation($reportVersionArgs: ReportRuntimeVersionArgs!) { reportRuntimeVersion(reportVersionArgs: $reportVersionArgs) }";
const RUNTIME: &str = "query Runtime($name: String!) { runtime(name: $name) { metadata { account namespace name } installationStatus installationType ingressHost runtimeVersion cluster managed errors { level code message object } } }";

/// As a runtime says it of itself when it is installed.
fn arguments(name: &str) -> Value {
    json!({"installationArgs": {
        "runtimeName": name, "runtimeNamespace": "codefresh", "componentNames": [], "isExternalArgoCd": false,
        "chartVersion": "0.30.1", "cluster": "https://kubernetes.default.svc", "ingressClass": "", "ingressController": "",
        "ingressHost": "https://runtime.example.com", "installationType": "HELM", "managed": false, "runtimeVersion": "0.1.72",
    }})
}

async fn rest(served: &Served, who: &Credential, method: &str, path: &str, body: &str) -> (u16, String) {
    let asked = served.client.request(method.parse().unwrap(), format!("{}{path}", served.url));
    told(asked.header(who.0, &who.1).body(body.to_owned()).send().await.unwrap()).await
}

const TEAM: &str = "the name of a team has no comma, no control character and no white space around it";

#[tokio::test]
async fn a_runtime_registers_as_an_incumbents_does_reports_what_is_wrong_and_is_taken_away() {
    let served = Served::new().await;
    assert_eq!(
        rest(&served, &("x-none", String::new()), "GET", "/api/ping", "").await,
        (200, "pong\n".to_owned())
    );
    let made = served.data(&served.admin, CREATE, arguments("eu1")).await;
    assert_eq!(made["createRuntime"]["name"], "eu1");
    let runtime = ("authorization", made["createRuntime"]["newAccessToken"].as_str().unwrap().to_owned());
    let me = "query Me { me { id name isAdmin runtimeName accounts { id name } activeAccount { id name } } }";
    let account = json!({"id": "default", "name": "default"});
    let expected = json!({"me": {
        "id": "eu1", "name": "eu1", "isAdmin": false, "runtimeName": "eu1", "accounts": [account], "activeAccount": account,
    }});
    assert_eq!(served.data(&runtime, me, json!({})).await, expected);
    let shown = json!({"runtime": {
        "metadata": {"account": "default", "namespace": "codefresh", "name": "eu1"},
        "installationStatus": "IN_PROGRESS", "installationType": "HELM", "ingressHost": "https://runtime.example.com",
        "runtimeVersion": "0.1.72", "cluster": "https://kubernetes.default.svc", "managed": false, "errors": [],
    }});
    assert_eq!(served.data(&runtime, RUNTIME, json!({"name": "eu1"})).await, shown);
    served.report("eu1", "argocd/shop").await;
    let shown = served.data(&runtime, RUNTIME, json!({"name": "eu1"})).await;
    assert_eq!(shown["runtime"]["installationStatus"], "COMPLETED");

    let error = json!({
        "level": "ERROR", "title": "Git", "message": "no token", "code": "BROKEN_REFERENCE", "lastSeen": "2026-11-24T00:00:00Z",
        "object": {"kind": "Secret", "name": "git"},
    });
    let report = |name: &str| json!({"reportErrorsArgs": {"runtime": name, "errors": [error]}});
    assert_eq!(served.data(&runtime, REPORT, report("eu1")).await, json!({"reportRuntimeErrors": 1}));
    let another = served.refused(&runtime, REPORT, report("prod")).await;
    assert_eq!(another, "a runtime may do this for itself alone");
    assert_eq!(served.refused(&served.admin, REPORT, report("none")).await, "there is no runtime 'none'");
    let shown = served.data(&served.admin, RUNTIME, json!({"name": "eu1"})).await;
    let object = json!({"kind": "Secret", "name": "git"});
    let expected =
        json!([{"level": "ERROR", "code": "BROKEN_REFERENCE", "message": "no token", "object": object}]);
    assert_eq!(shown["runtime"]["errors"], expected);
    assert_eq!(shown["runtime"]["installationStatus"], "COMPLETED");
    // An installation that failed, until the runtime says so no more.
    let mut failed = report("eu1");
    failed["reportErrorsArgs"]["errors"][0]["code"] = "RUNTIME_INSTALLATION_ERROR".into();
    served.data(&runtime, REPORT, failed.clone()).await;
    let shown = served.data(&served.admin, RUNTIME, json!({"name": "eu1"})).await;
    assert_eq!(shown["runtime"]["installationStatus"], "FAILED");
    failed["reportErrorsArgs"]["errors"][0]["level"] = "WARNING".into();
    served.data(&runtime, REPORT, failed).await;
    let shown = served.data(&served.admin, RUNTIME, json!({"name": "eu1"})).await;
    assert_eq!(shown["runtime"]["installationStatus"], "COMPLETED");
    let none = json!({"reportErrorsArgs": {"runtime": "eu1", "errors": []}});
    assert_eq!(served.data(&runtime, REPORT, none).await, json!({"reportRuntimeErrors": 0}));

    // It was upgraded, and says so.
    let runs = |name: &str, version: &str| json!({"reportVersionArgs": {"runtime": name, "runtimeVersion": version}});
    let said = served.data(&runtime, VERSION, runs("eu1", " 0.1.73 ")).await;
    assert_eq!(said, json!({"reportRuntimeVersion": true}));
    let shown = served.data(&served.admin, RUNTIME, json!({"name": "eu1"})).await;
    assert_eq!(shown["runtime"]["runtimeVersion"], "0.1.73");
    for (name, version, said) in [
        ("prod", "1.0.0", "a runtime may do this for itself alone"),
        ("eu1", " ", "a version has 1 to 100 characters"),
        ("eu1", &"1".repeat(101), "a version has 1 to 100 characters"),
    ] {
        assert_eq!(served.refused(&runtime, VERSION, runs(name, version)).await, said);
    }
    let said = served.refused(&served.admin, VERSION, runs("none", "1.0.0")).await;
    assert_eq!(said, "there is no runtime 'none'");

    let gone = "mutation DeleteRuntime($name: String!) { deleteRuntime(name: $name) }";
    assert_eq!(served.data(&served.admin, gone, json!({"name": "eu1"})).await, json!({"deleteRuntime": 1}));
    assert_eq!(
        served.refused(&served.admin, gone, json!({"name": "eu1"})).await,
        "there is no runtime 'eu1'"
    );
    // What it reported is still there, and nobody says more of it.
    for (query, variables) in [(REPORT, report("eu1")), (VERSION, runs("eu1", "1.0.0"))] {
        assert_eq!(served.refused(&served.admin, query, variables).await, "there is no runtime 'eu1'");
    }
    let (status, _) = told(served.ask(&runtime, me, &json!({})).send().await.unwrap()).await;
    assert_eq!(status, 401, "its token is not known any more");
    let log = served.data(&served.admin, "{ auditLog(first: 2) { who how act subject } }", json!({})).await;
    let entry = |act: &str| json!({"who": "ada", "how": "key", "act": act, "subject": "eu1"});
    assert_eq!(log["auditLog"], json!([entry("runtime.remove"), entry("runtime.add")]));
}

/// Facts 0.5, and what `gitops-runtime check` asks of a platform.
#[tokio::test]
async fn what_an_app_proxy_asks_at_its_start_and_the_doctor_before_it_is_answered() {
    let served = Served::new().await;
    let made = served.data(&served.admin, CREATE, arguments("eu1")).await;
    let runtime = ("authorization", made["createRuntime"]["newAccessToken"].as_str().unwrap().to_owned());
    let me = "query me { me { runtimeName activeAccount { id name gitProvider gitApiUrl sharedConfigRepo csdpValidated } } }";
    let account = json!({
        "id": "default", "name": "default", "gitProvider": null, "gitApiUrl": null, "sharedConfigRepo": null, "csdpValidated": null,
    });
    let expected = json!({"me": {"runtimeName": "eu1", "activeAccount": account}});
    assert_eq!(served.data(&runtime, me, json!({})).await, expected);
    let limits = "query limits { me { activeAccount { features { gitopsPlanEnforcement } } } \
                  limitsStatus { usage { clusters applications } limits { clusters applications } } }";
    let before = served.data(&served.admin, limits, json!({})).await;
    assert_eq!(before["me"]["activeAccount"]["features"]["gitopsPlanEnforcement"], false);
    assert_eq!(before["limitsStatus"]["limits"], json!({"clusters": null, "applications": null}));
    let used = |said: &Value| said["limitsStatus"]["usage"]["applications"].as_u64().unwrap();
    served.report("eu1", "argocd/shop").await;
    let after = served.data(&served.admin, limits, json!({})).await;
    assert_eq!(used(&after), used(&before) + 1);
    let applications = "query Applications { applications(pagination: {first: 50}, filters: {inactive: true, includeComponents: true}) { edges { node { metadata { name } } } } }";
    let expected = json!({"applications": {"edges": [{"node": {"metadata": {"name": "shop"}}}]}});
    assert_eq!(served.data(&runtime, applications, json!({})).await, expected);
    let sources = "query GitSources($pagination: SlicePaginationArgs, $project: String, $runtime: String) { gitSources(pagination: $pagination, project: $project, runtime: $runtime) { edges { node { metadata { account runtime group version kind name namespace } self { repoURL path revision } permissions { userId read write } } } pageInfo { startCursor endCursor hasNextPage hasPrevPage } } }";
    let page = json!({"startCursor": null, "endCursor": null, "hasNextPage": false, "hasPrevPage": false});
    let expected = json!({"gitSources": {"edges": [], "pageInfo": page}});
    let variables = json!({"pagination": {"first": 50, "after": ""}, "project": null, "runtime": "eu1"});
    assert_eq!(served.data(&runtime, sources, variables).await, expected);
}

#[tokio::test]
async fn a_name_is_given_once_and_refused_where_it_is_none() {
    let served = Served::new().await;
    served.data(&served.admin, CREATE, arguments("eu1")).await;
    let taken = "there is a runtime 'eu1': choose another name, or send recover: true to register it anew";
    assert_eq!(served.refused(&served.admin, CREATE, arguments("eu1")).await, taken);
    let mut again = arguments("eu1");
    again["installationArgs"]["recover"] = json!(true);
    served.data(&served.admin, CREATE, again).await;
    let of = |installation: &str| {
        let mut arguments = arguments("eu3");
        arguments["installationArgs"]["installationId"] = json!(installation);
        arguments
    };
    let (one, two) = ("0123456789abcdef".repeat(4), "fedcba9876543210".repeat(4));
    for wrong in ["", "one", one.get(1..).unwrap(), &"a".repeat(64), &one.replace('a', "g")] {
        let said = "an installationId has 64 hexadecimal digits, chosen at random";
        assert_eq!(served.refused(&served.admin, CREATE, of(wrong)).await, said, "{wrong}");
    }
    let lost = served.data(&served.admin, CREATE, of(&one)).await;
    assert_eq!(served.data(&served.admin, CREATE, of(&one)).await, lost);
    assert_eq!(served.refused(&served.admin, CREATE, of(&two)).await, taken.replace("eu1", "eu3"));
    let kept = served.store.registrations(Some("eu3")).await.unwrap().remove(0);
    assert!(!kept.body.contains(&one), "{}", kept.body);
    let none = "'EU/1' is no name of a runtime: an adopter's has letters, digits, '-', '_' and '.', begins and ends with one of the \
                first two, and has at most 63";
    assert_eq!(served.refused(&served.admin, CREATE, arguments("EU/1")).await, none);
    let mut long = arguments("eu2");
    long["installationArgs"]["repo"] = json!("x".repeat(20_000));
    let said = "what a runtime says of itself has at most 16384 bytes";
    assert_eq!(served.refused(&served.admin, CREATE, long).await, said);
    assert_eq!(served.data(&served.admin, RUNTIME, json!({"name": "eu2"})).await, json!({"runtime": null}));
}

#[tokio::test]
async fn a_runtime_that_is_called_otherwise_already_keeps_its_name_and_gets_an_id_beside() {
    let served = Served::new().await;
    let create = CREATE.replace("newAccessToken", "id newAccessToken");
    let made = served.data(&served.admin, &create, arguments("prod-eu")).await["createRuntime"].take();
    let id = "prodeu3312b6955a";
    assert_eq!((&made["name"], &made["id"]), (&json!("prod-eu"), &json!(id)));
    let runtime = ("authorization", made["newAccessToken"].as_str().unwrap().to_owned());
    // By this a tunnel server knows whose it is.
    let me = served.data(&runtime, "{ me { id name runtimeName } }", json!({})).await;
    assert_eq!(me, json!({"me": {"id": id, "name": "prod-eu", "runtimeName": "prod-eu"}}));
    let query = "query Runtime($name: String!) { runtime(name: $name) { id metadata { name } } }";
    let expected = json!({"runtime": {"id": id, "metadata": {"name": "prod-eu"}}});
    for called in ["prod-eu", id] {
        assert_eq!(served.data(&served.admin, query, json!({"name": called})).await, expected, "{called}");
    }
    let plain = served.data(&served.admin, "{ runtimes { edges { node { id } } } }", json!({})).await;
    assert_eq!(plain["runtimes"]["edges"], json!([{"node": {"id": "prod"}}, {"node": {"id": id}}]));
    let taken = format!("'{id}' would have the id '{id}', which 'prod-eu' has: choose another name");
    assert_eq!(served.refused(&served.admin, CREATE, arguments(id)).await, taken);
}

#[tokio::test]
async fn the_calls_of_an_installation_are_answered_to_whom_they_are_for() {
    let served = Served::new().await;
    let made = served.data(&served.admin, CREATE, arguments("eu1")).await;
    let runtime = ("authorization", made["createRuntime"]["newAccessToken"].as_str().unwrap().to_owned());
    let body = r#"{"name":"eu1"}"#;
    let (status, text) = rest(&served, &served.admin, "POST", "/api/argo-runtime", body).await;
    let token: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    let token = ("authorization", token["token"].as_str().unwrap().to_owned());
    let me = served.data(&token, "{ me { runtimeName } }", json!({})).await;
    assert_eq!(me, json!({"me": {"runtimeName": "eu1"}}));
    let refused: [(&Credential, &str, u16, &str); 5] = [
        (&served.admin, r#"{"name":"none"}"#, 404, "there is no runtime 'none'\n"),
        (&served.admin, "{}", 400, "the body is to be {\"name\": \"the runtime's name\"}\n"),
        (&served.admin_reads, body, 403, "this key may only read: make one of the scope 'full'\n"),
        (&served.member, body, 403, "only an admin may do this\n"),
        (
            &runtime,
            body,
            403,
            "only a person may do this: send an API key instead of the token of a runtime\n",
        ),
    ];
    for (who, body, status, said) in refused {
        assert_eq!(rest(&served, who, "POST", "/api/argo-runtime", body).await, (status, said.to_owned()));
    }
    let key = async |who: &Credential, name: &str| {
        rest(&served, who, "GET", &format!("/api/argo-runtime/{name}/storeKey"), "").await
    };
    let (status, first) = key(&runtime, "eu1").await;
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((status, first["storeKey"].as_str().unwrap().len()), (200, 64));
    assert_eq!(key(&served.admin, "eu1").await.1, first.to_string(), "it stays the same");
    assert_eq!(
        key(&served.runtime, "eu1").await,
        (403, "a runtime may do this for itself alone\n".to_owned())
    );
    assert_eq!(key(&served.member, "eu1").await, (403, "only an admin may do this\n".to_owned()));
    assert_eq!(key(&served.admin, "none").await, (404, "there is no runtime 'none'\n".to_owned()));
    // One that has a token is listed, and has no key.
    let said = "runtime 'prod' has a token and is not registered, and so has no key: register it (createRuntime with recover: true)\n";
    for who in [&served.admin, &served.runtime] {
        assert_eq!(key(who, "prod").await, (404, said.to_owned()));
    }
}

#[tokio::test]
async fn lists_come_in_pages_and_an_application_with_what_happened_to_it() {
    let served = Served::new().await;
    for name in ["a", "b", "c"] {
        served.report("prod", &format!("argocd/{name}")).await;
    }
    let query = "query List($pagination: SlicePaginationArgs) { applications(pagination: $pagination) { edges { node { metadata { name } } } pageInfo { startCursor endCursor hasNextPage hasPrevPage } } }";
    let page = served.data(&served.admin, query, json!({"pagination": {"first": 2, "after": ""}})).await;
    let info = json!({"startCursor": "prod/argocd/a", "endCursor": "prod/argocd/b", "hasNextPage": true, "hasPrevPage": false});
    assert_eq!(page["applications"]["pageInfo"], info);
    let after = json!({"pagination": {"first": 2, "after": "prod/argocd/b"}});
    let page = served.data(&served.admin, query, after).await;
    let expected = json!({
        "edges": [{"node": {"metadata": {"name": "c"}}}],
        "pageInfo": {"startCursor": "prod/argocd/c", "endCursor": "prod/argocd/c", "hasNextPage": false, "hasPrevPage": true},
    });
    assert_eq!(page["applications"], expected);
    let ends =
        "query Ends($pagination: SlicePaginationArgs) { applications(pagination: $pagination) { ends } }";
    for (first, after, expected) in
        [(1, "", vec!["a", "b", "c"]), (2, "", vec!["b"]), (1, "prod/argocd/b", vec!["c"])]
    {
        let pagination = json!({"pagination": {"first": first, "after": after}});
        let expected: Vec<String> = expected.iter().map(|name| format!("prod/argocd/{name}")).collect();
        assert_eq!(
            served.data(&served.admin, ends, pagination).await["applications"]["ends"],
            json!(expected)
        );
    }
    let one = r#"{ application(runtime: "prod", namespace: "argocd", name: "a") { healthStatus syncStatus healthMessage revision lastReportAt timeline(first: 5) { healthStatus current resource { kind } } deployments { phase } drifts { ended repeats } } }"#;
    let expected = json!({"application": {
        "healthStatus": "DEGRADED", "syncStatus": "OUT_OF_SYNC", "healthMessage": "it hurts", "revision": "abc",
        "lastReportAt": "2026-11-21T11:48:48.688Z",
        "timeline": [{"healthStatus": "DEGRADED", "current": true, "resource": null}],
        "deployments": [], "drifts": [{"ended": false, "repeats": 1}],
    }});
    assert_eq!(served.data(&served.admin, one, json!({})).await, expected);
    // As an incumbent's client lists runtimes: without a word of pages.
    let runtimes = "query Runtimes { runtimes { edges { node { metadata { name namespace } cluster managed ingressHost runtimeVersion installationStatus installationType } } } }";
    let listed = served.data(&served.admin, runtimes, json!({})).await;
    let node = json!({
        "metadata": {"name": "prod", "namespace": null}, "cluster": null, "managed": false, "ingressHost": null,
        "runtimeVersion": null, "installationStatus": "COMPLETED", "installationType": null,
    });
    assert_eq!(listed["runtimes"]["edges"], json!([{"node": node}]));
}

#[tokio::test]
async fn applications_are_listed_by_name_namespace_and_label_and_told_with_where_they_come_from() {
    let served = Served::new().await;
    for name in ["argocd/shop", "argocd/shop_b", "team/shop"] {
        served.report("prod", name).await;
    }
    let list = async |filters: Value| {
        let query = "query List($filters: ApplicationsFilterArgs) { applications(filters: $filters) { edges { cursor } } }";
        let page = served.data(&served.admin, query, json!({"filters": filters})).await;
        let edges = page["applications"]["edges"].as_array().unwrap().clone();
        edges.iter().map(|edge| edge["cursor"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(json!({"name": "shop"})).await, ["prod/argocd/shop", "prod/team/shop"]);
    assert_eq!(list(json!({"name": "shop", "namespace": "team"})).await, ["prod/team/shop"]);
    assert_eq!(list(json!({"namePrefix": "shop_"})).await, ["prod/argocd/shop_b"], "a prefix means itself");
    assert_eq!(list(json!({"namePrefix": "%"})).await, [""; 0]);
    assert_eq!(list(json!({"labels": ["team=shop"]})).await, ["prod/argocd/shop"]);
    assert_eq!(list(json!({"labels": ["team=shop", "tier=web"]})).await, ["prod/argocd/shop"]);
    assert_eq!(list(json!({"labels": ["team=sho"]})).await, [""; 0]);
    assert_eq!(list(json!({"deleted": true})).await, [""; 0]);
    assert_eq!(list(json!({"deleted": false})).await.len(), 3);
    let query = "query List($filters: ApplicationsFilterArgs) { applications(filters: $filters) { edges { cursor } } }";
    let many: Vec<String> = (0..21).map(|number| format!("a{number}=b")).collect();
    for (filters, said) in [
        (json!({"labels": ["team"]}), "a label is key=value"),
        (json!({"labels": many}), "at most 20 labels may be asked for"),
        (json!({"name": "x".repeat(601)}), "a name has at most 600 bytes"),
    ] {
        assert_eq!(served.refused(&served.admin, query, json!({"filters": filters})).await, said);
    }
    let one = r#"{ application(runtime: "prod", namespace: "argocd", name: "shop") { project environment cluster destinationNamespace repoUrl path labels { key value } commitAuthor operationPhase deployedAt resources { resource { kind name } healthStatus } manifests(resource: {group: "apps", kind: "Deployment", namespace: "shop", name: "web"}) { live } } }"#;
    let expected = json!({"application": {
        "project": "default", "environment": "shop", "cluster": "in-cluster", "destinationNamespace": "shop",
        "repoUrl": "https://git.example.com/shop", "path": "deploy",
        "labels": [{"key": "team", "value": "shop"}, {"key": "tier", "value": "web"}],
        "commitAuthor": "Grace Hopper", "operationPhase": null, "deployedAt": null, "resources": [], "manifests": null,
    }});
    assert_eq!(served.data(&served.admin, one, json!({})).await, expected);
    // Whoever does not see the application sees nothing of it.
    assert_eq!(served.data(&served.member, one, json!({})).await, json!({"application": null}));
}

#[tokio::test]
async fn rows_of_a_list_are_told_alike_however_they_are_asked_for() {
    let served = Served::new().await;
    for name in ["argocd/shop", "team/shop"] {
        served.report("prod", name).await;
    }
    let fields = "__typename metadata { __typename runtime namespace name } uid healthStatus healthMessage syncStatus revision deleted \
                  lastReportAt project environment cluster destinationNamespace repoUrl path labels { key value __typename } commitAuthor \
                  commitMessage operationPhase operationMessage deployedAt again: uid";
    let list = |asked: &str| {
        format!(
            "query List($is: Boolean!) {{ applications(pagination: {{first: 2}}) {{ pageInfo @include(if: $is) {{ endCursor }} edges {{ cursor node {{ {asked} }} }} }} }}"
        )
    };
    let data = async |query: String| served.data(&served.admin, &query, json!({"is": false})).await;
    let at_once = data(list(&format!("path @include(if: $is) {fields}"))).await;
    // What stands in a fragment is resolved field by field.
    let one_by_one = data(list("...All") + &format!(" fragment All on Application {{ {fields} }}")).await;
    assert_eq!(at_once, one_by_one);
    let edges = at_once["applications"]["edges"].as_array().unwrap();
    let node = &edges[0]["node"];
    assert_eq!((edges.len(), node.as_object().unwrap().len()), (2, 22));
    assert_eq!(node["again"], node["uid"]);
    assert_eq!((&node["__typename"], &node["labels"][0]["key"]), (&json!("Application"), &json!("team")));
    // With what is looked for elsewhere, and what is asked for twice.
    let mixed = data(list("uid resources { healthStatus } metadata { name } metadata { runtime }")).await;
    let expected =
        json!({"uid": node["uid"], "resources": [], "metadata": {"name": "shop", "runtime": "prod"}});
    assert_eq!(mixed["applications"]["edges"][0]["node"], expected);
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_what_can() {
    let served = Served::new().await;
    let key = |name: &str, scope: &str, days: i64| {
        format!(r#"mutation {{ createApiKey(name: "{name}", scope: "{scope}", days: {days}) {{ key }} }}"#)
    };
    let rule = |entity: &str, action: &str, attribute: &str| {
        format!(
            r#"mutation {{ createAbacRule(rule: {{entityType: "{entity}", teams: ["shop"], actions: ["{action}"], attributes: [{{name: "{attribute}", value: "x"}}]}}) }}"#
        )
    };
    let teams =
        |team: &str| format!(r#"mutation {{ setUserTeams(name: "lin", teams: ["shop", "{team}"]) }}"#);
    let cases = [
        (key(" ", "read", 1), "the name of a key has 1 to 100 characters"),
        (key("ci", "write", 1), "the scope of a key is 'read' or 'full'"),
        (key("ci", "read", 0), "a key lasts 1 to 366 days"),
        (key("ci", "read", 367), "a key lasts 1 to 366 days"),
        (rule("gitopsApplications", "VIEW", "LABEL"), "a LABEL has a key, and no other attribute has one"),
        (teams(" "), "somebody is in at most 50 teams, each of a name of at most 100 characters"),
        (teams("ops,shop"), TEAM),
        (teams("ops\\u0007"), TEAM),
        (teams(" ops"), TEAM),
        (teams("ops\\u2003"), TEAM),
        (rule("gitopsApplications", "VIEW", "RUNTIME").replace("shop", "shop,ops"), TEAM),
        (
            r#"mutation { setUserRole(name: "lin", role: "owner") }"#.to_owned(),
            "a role is 'admin' or 'member'",
        ),
        (
            r#"mutation { setUserRole(name: "ada", role: "member") }"#.to_owned(),
            "there is no user 'ada', or it is the last admin whom a person made one: an admin by a group of a provider does not count",
        ),
        (r#"mutation { endSessions(name: "lin") }"#.to_owned(), "'lin' has no session"),
    ];
    for (query, said) in cases {
        assert_eq!(served.refused(&served.admin, &query, json!({})).await, said);
    }
    for (query, said) in [
        (
            rule("applications", "VIEW", "RUNTIME"),
            "'applications' is no entity of a rule: unknown variant `applications`, expected one of `clusters`, ",
        ),
        (
            rule("clusters", "LOOK", "RUNTIME"),
            "'LOOK' is no action of a rule: unknown variant `LOOK`, expected one of `ACCESS_ARTIFACTS`, ",
        ),
        (
            rule("clusters", "VIEW", "COLOUR"),
            "'COLOUR' is no attribute of a rule: unknown variant `COLOUR`, expected one of `CLUSTER`, ",
        ),
    ] {
        let told = served.refused(&served.admin, &query, json!({})).await;
        assert!(told.starts_with(said), "{told}");
    }
}

#[tokio::test]
async fn where_a_version_stands_is_told_as_it_was_set_for_the_application_or_its_runtime() {
    let served = Served::new().await;
    let ask = async |who: &Credential, name: &str, runtime: Option<&str>| {
        let query = "query Of($m: Object!, $r: String) { promotionTemplateByRuntime(applicationMetadata: $m, runtime: $r) { versionSource { file jsonPath } } }";
        let metadata = json!({"name": name, "namespace": "argocd", "labels": {"a": "b"}});
        let found = served.data(who, query, json!({"m": metadata, "r": runtime})).await;
        found["promotionTemplateByRuntime"].clone()
    };
    let set = "mutation Set($a: String, $s: VersionSourceInput) { setVersionSource(runtime: \"prod\", application: $a, source: $s) }";
    let source = |file: &str, path: &str| json!({"file": file, "jsonPath": path});
    assert_eq!(ask(&served.runtime, "shop", None).await, Value::Null, "nothing was set");
    served.data(&served.admin, set, json!({"s": source("Chart.yaml", "$.version")})).await;
    served
        .data(&served.admin, set, json!({"a": "argocd/shop", "s": source("values.yaml", "$.image.tag")}))
        .await;
    let of = |file: &str, path: &str| json!({"versionSource": {"file": file, "jsonPath": path}});
    assert_eq!(ask(&served.runtime, "shop", None).await, of("values.yaml", "$.image.tag"));
    assert_eq!(ask(&served.runtime, "cart", None).await, of("Chart.yaml", "$.version"));
    assert_eq!(ask(&served.admin, "cart", Some("prod")).await, of("Chart.yaml", "$.version"));
    // Whoever sees nothing of a runtime is told nothing, and a runtime nothing of another.
    assert_eq!(ask(&served.member, "cart", Some("prod")).await, Value::Null);
    assert_eq!(ask(&served.runtime, "cart", Some("eu1")).await, Value::Null);
    served.data(&served.admin, set, json!({"a": "argocd/shop", "s": null})).await;
    assert_eq!(ask(&served.runtime, "shop", None).await, of("Chart.yaml", "$.version"));
    for (file, path, why) in [
        ("../Chart.yaml", "$.version", "the file of a version is a path below that of its application"),
        ("/etc/version.yaml", "$.version", "the file of a version is a path below that of its application"),
        ("VERSION", "$.version", "the file of a version ends with .yaml, .yml or .json"),
        ("Chart.yaml", "version", "where a version stands in its file is a JSONPath such as $.appVersion"),
    ] {
        assert_eq!(served.refused(&served.admin, set, json!({"s": source(file, path)})).await, why);
    }
    for name in ["shop", "/shop", "argocd/", "/", "", "argocd/shop/web", "argocd//shop"] {
        let named = json!({"a": name, "s": source("Chart.yaml", "$.version")});
        let said = served.refused(&served.admin, set, named).await;
        assert_eq!(said, "an application is named as namespace/name", "{name}");
    }
    let query =
        "{ promotionTemplateByRuntime(applicationMetadata: {name: \"shop\"}) { versionSource { file } } }";
    assert_eq!(served.refused(&served.admin, query, json!({})).await, "say of which runtime");
}

#[tokio::test]
async fn what_a_commit_changed_in_files_is_told_of_one_deployment_to_whoever_sees_the_application() {
    let served = Served::new().await;
    let at = 1_795_261_700_000;
    served
        .report_of("prod", "argocd/shop", |report| {
            report.operation = Some(Operation {
                started_at: at,
                finished_at: Some(at + 500),
                phase: "Succeeded".to_owned(),
                revision: "c".to_owned(),
                ..Operation::default()
            });
        })
        .await;
    let commit = |revision: &str, diffs: Vec<FileDiff>| CommitOf {
        revision: revision.to_owned(),
        paths: ["a.yaml", "b.png", "c.yaml"].map(str::to_owned).to_vec(),
        more_paths: 2,
        diffs,
        ..CommitOf::default()
    };
    let text = "@@ -1,1 +1,1 @@\n-a\n+b\n";
    let diffs = vec![
        FileDiff { path: "a.yaml".to_owned(), text: text.to_owned(), cut: true, ..FileDiff::default() },
        FileDiff { path: "b.png".to_owned(), untold: "binary".to_owned(), ..FileDiff::default() },
    ];
    let source = |name: &str, commits: Vec<CommitOf>| SourceChange {
        repository: format!("https://git.example.com/{name}"),
        commits,
        ..SourceChange::default()
    };
    let made_from = MadeFrom {
        repository: "https://git.example.com/dry".to_owned(),
        revision: "d".to_owned(),
        author: "Ada".to_owned(),
        ..MadeFrom::default()
    };
    let sources = vec![
        source(
            "one",
            vec![CommitOf { made_from: Some(made_from), ..commit("c", diffs) }, commit("b", Vec::new())],
        ),
        source("two", vec![commit("b", Vec::new())]),
    ];
    let runtime = served.store.runtime_named("prod").await.unwrap().unwrap();
    served.store.keep_changes(runtime, ("argocd", "shop"), at, sources).await.unwrap();
    let of = |ask: &str| {
        format!(r#"{{ application(runtime: "prod", namespace: "argocd", name: "shop") {{ {ask} }} }}"#)
    };
    let listed = of(
        "deployments { startedAt changes { commits { revision madeFrom { repoUrl revision author date message } } } }",
    );
    let listed = served.data(&served.admin, &listed, json!({})).await;
    let deployment = &listed["application"]["deployments"][0];
    let made_from = |at: usize| &deployment["changes"][at]["commits"][0]["madeFrom"];
    let expected = json!({"repoUrl": "https://git.example.com/dry", "revision": "d", "author": "Ada", "date": null, "message": null});
    assert_eq!((made_from(0), made_from(1)), (&expected, &Value::Null));
    let (started_at, first) = (&deployment["startedAt"], &deployment["changes"][0]["commits"][0]["revision"]);
    let diffs = |started_at: &str, revision: &str| {
        of(&format!(
            r#"fileDiffs(startedAt: "{started_at}", revision: "{revision}") {{ repoUrl files {{ path text untold cut }} paths morePaths }}"#
        ))
    };
    let (started_at, first) = (started_at.as_str().unwrap(), first.as_str().unwrap());
    let told = served.data(&served.admin, &diffs(started_at, first), json!({})).await;
    let files = json!([
        {"path": "a.yaml", "text": text, "untold": null, "cut": true},
        {"path": "b.png", "text": null, "untold": "binary", "cut": false},
    ]);
    let one = json!({"repoUrl": "https://git.example.com/one", "files": files, "paths": ["c.yaml"], "morePaths": 2});
    assert_eq!(told["application"]["fileDiffs"], json!([one]));
    let told = served.data(&served.admin, &diffs(started_at, "b"), json!({})).await;
    let both = told["application"]["fileDiffs"].as_array().unwrap();
    assert_eq!(both.iter().map(|one| &one["files"]).collect::<Vec<_>>(), [&json!([]), &json!([])]);
    for (started_at, revision) in [(started_at, "gone"), ("2026-11-21T11:48:20.001Z", "c")] {
        let told = served.data(&served.admin, &diffs(started_at, revision), json!({})).await;
        assert_eq!(told["application"]["fileDiffs"], json!([]), "{started_at}, {revision}");
    }
    let said = served.refused(&served.admin, &diffs("yesterday", "c"), json!({})).await;
    assert_eq!(said, "startedAt is a moment such as 2026-11-26T10:00:00Z, as deployments tells it");
    // No rule shows the application to this one.
    let hidden = served.data(&served.member, &diffs(started_at, "c"), json!({})).await;
    assert_eq!(hidden, json!({"application": null}));
}
