//! What is too much is refused before it is answered.

use serde_json::{Value, json};

use crate::served::{Credential, Served, told};

#[tokio::test]
async fn what_is_too_deep_too_much_or_too_long_is_refused() {
    let served = Served::new().await;
    let ask = async |query: String| served.refused(&served.runtime, &query, json!({})).await;
    let introspection = "{ __schema { types { fields { type { ofType { ofType { ofType { ofType { ofType { ofType { ofType { name } } } } } } } } } } } }";
    assert!(
        served.ask(&served.runtime, introspection, &json!({})).send().await.unwrap().status().is_success()
    );
    let deep = format!(
        "{{ __schema {{ types {{ fields {{ type {} name {} }} }} }} }}",
        "{ ofType".repeat(20),
        "}".repeat(20)
    );
    assert_eq!(ask(deep).await, "Query is nested too deep.");
    // Each alias counts, and each row of a page with its own fields.
    let rows = "applications(pagination: {first: 500}) { edges { node { timeline(first: 500) { id } } } }";
    assert_eq!(ask(format!("{{ {rows} }}")).await, "Query is too complex.");
    let aliases: String =
        (0..400).map(|alias| format!("a{alias}: runtimes {{ edges {{ cursor }} }} ")).collect();
    assert_eq!(ask(format!("{{ {aliases} }}")).await, "Query is too complex.");
    // What a commit changed is a quarter of a megabyte.
    let diffs = |many: usize| {
        let one = |n: usize| {
            format!(
                r#"d{n}: fileDiffs(startedAt: "2026-11-21T11:48:20Z", revision: "a") {{ files {{ text }} }} "#
            )
        };
        let all: String = (0..many).map(one).collect();
        format!(r#"{{ application(runtime: "prod", namespace: "argocd", name: "a") {{ {all} }} }}"#)
    };
    assert_eq!(ask(diffs(10)).await, "Query is too complex.");
    served.data(&served.runtime, &diffs(5), json!({})).await;
    let directives = "@include(if: true) ".repeat(9);
    assert_eq!(
        ask(format!("{{ me {directives} {{ name }} }}")).await,
        "The number of directives on the field `me` cannot be greater than `8`"
    );
    let fragments = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }";
    let circle = "The recursion depth of the query cannot be greater than `32`";
    assert_eq!(ask(fragments.to_owned()).await, circle, "fragments that name each other");
    let long = json!({"query": " ".repeat(65_537)}).to_string();
    let asked = served.client.post(format!("{}/2.0/api/graphql", served.url));
    let response = asked.header(served.runtime.0, &served.runtime.1).body(long.clone()).send().await.unwrap();
    let said = "the query is longer than 65536 bytes: put long values into its variables\n";
    assert_eq!(told(response).await, (413, said.to_owned()));
    // The values of a runtime may be longer, as it tells of all its clusters.
    let ask_long = async |who: &Credential, length: usize| {
        let asked = json!({"query": "{ me { name } }", "variables": {"a": " ".repeat(length)}}).to_string();
        let sent = served.client.post(format!("{}/2.0/api/graphql", served.url)).header(who.0, &who.1);
        told(sent.body(asked).send().await.unwrap()).await
    };
    assert_eq!(ask_long(&served.runtime, 2_000_000).await.0, 200);
    let said = (413, "the body is longer than 2097152 bytes\n".to_owned());
    assert_eq!(ask_long(&served.runtime, 2_097_152).await, said);
    let said = (413, "the body is longer than 262144 bytes\n".to_owned());
    assert_eq!(ask_long(&served.admin, 300_000).await, said);
    // Who is not known is told so before anything is read.
    let response = served.client.post(format!("{}/2.0/api/graphql", served.url)).body(long).send().await;
    assert_eq!(response.unwrap().status(), 401);
}

#[tokio::test]
async fn what_stands_hundreds_deep_within_itself_is_refused_and_the_process_goes_on() {
    let served = Served::new().await;
    let lists = |times: usize| format!("{{ me(a: {}{}) {{ name }} }}", "[".repeat(times), "]".repeat(times));
    let refused = "the query has more than 64 brackets open at once: ask for less at a time, and put deep values into its variables\n";
    for path in ["graphql", "runtimes/prod/app-proxy/graphql"] {
        for query in [lists(350), lists(1_000), "{a".repeat(1_000)] {
            let asked = served.client.post(format!("{}/2.0/api/{path}", served.url));
            let asked = asked.header(served.admin.0, &served.admin.1).json(&json!({"query": query}));
            assert_eq!(told(asked.send().await.unwrap()).await, (400, refused.to_owned()), "{path}");
        }
    }
    let said = served.refused(&served.admin, &lists(62), json!({})).await;
    assert!(said.starts_with("Unknown argument \"a\""), "{said}");
}

#[tokio::test]
async fn what_looks_through_all_there_is_counts_however_little_of_it_is_asked_for() {
    let served = Served::new().await;
    let aliases = |one: &str| {
        let all: String = (0..400).map(|alias| format!("a{alias}: {one} ")).collect();
        format!("{{ {all} }}")
    };
    for one in [
        "clusters(pagination: {first: 1}) { edges { cursor } }",
        "runtimes(pagination: {first: 1}) { edges { node { managedClustersNum isRemoteClusterConnected } } }",
        "runtimes(pagination: {first: 1}) { edges { cursor } }",
        r#"runtime(name: "prod") { managedClustersNum }"#,
        r#"runtime(name: "prod") { isRemoteClusterConnected }"#,
        r#"applications(pagination: {first: 1}, filters: {labels: ["a=b"]}) { edges { cursor } }"#,
        "applications(pagination: {first: 1}) { ends }",
        "gitSources(pagination: {first: 1}) { edges { cursor } }",
        r#"application(runtime: "prod", namespace: "argocd", name: "a") { timeline(first: 1) { id } }"#,
    ] {
        let said = served.refused(&served.runtime, &aliases(one), json!({})).await;
        assert_eq!(said, "Query is too complex.", "{one}");
    }
}

/// They are found by what their objects say, or by their application, which is no part of the order that they are looked through in:
/// so all of them are read where few or none fit.
#[tokio::test]
async fn workflows_that_are_looked_through_are_asked_for_once_at_a_time() {
    let served = Served::new().await;
    for filter in [
        "statuses: [Failed]",
        r#"workflowTemplate: "build""#,
        "workflowTemplateClusterScope: true",
        r#"startDateFrom: "2026-11-24T10:00:00Z""#,
        r#"startDateTo: "2026-11-24T10:00:00Z""#,
        r#"appNames: ["shop"]"#,
    ] {
        let one = |n: usize| {
            format!(
                "w{n}: workflows(pagination: {{first: 1}}, filters: {{{filter}}}) {{ edges {{ cursor }} }} "
            )
        };
        let all = |many: usize| format!("{{ {} }}", (0..many).map(one).collect::<String>());
        assert_eq!(
            served.refused(&served.admin, &all(2), json!({})).await,
            "Query is too complex.",
            "{filter}"
        );
        served.data(&served.admin, &all(1), json!({})).await;
    }
    // A page of them is as long as others, and those of a runtime or a namespace are found by that.
    let page = r#"{ workflows(pagination: {first: 100}, filters: {runtime: "prod", namespace: "builds", appNames: ["shop"]}) { edges { node { metadata { name } status { phase } } } } }"#;
    served.data(&served.admin, page, json!({})).await;
    let many: String = (0..20)
        .map(|n| {
            format!(
                r#"w{n}: workflows(pagination: {{first: 1}}, filters: {{runtime: "prod", namespace: "builds"}}) {{ edges {{ cursor }} }} "#
            )
        })
        .collect();
    served.data(&served.admin, &format!("{{ {many} }}"), json!({})).await;
}

#[tokio::test]
async fn the_longest_pages_that_the_command_line_asks_for_are_not_too_complex() {
    let served = Served::new().await;
    for query in [
        "query Applications($pagination: SlicePaginationArgs, $ends: Boolean!) { applications(pagination: $pagination) { ends @include(if: $ends) pageInfo { endCursor hasNextPage } edges { node { metadata { runtime namespace name } uid healthStatus healthMessage syncStatus revision deleted lastReportAt project environment cluster destinationNamespace repoUrl path labels { key value } commitAuthor commitMessage operationPhase operationMessage deployedAt } } } }",
        "query Runtimes($pagination: SlicePaginationArgs) { runtimes(pagination: $pagination) { pageInfo { endCursor hasNextPage } edges { node { id metadata { name namespace } installationStatus installationType cluster accessMode ingressHost internalIngressHost runtimeVersion chartVersion managed isExternalArgoCd gitProvider repo createdAt lastReportAt errors { level code title message suggestion lastSeen } } } } }",
        "query Clusters($pagination: SlicePaginationArgs) { clusters(pagination: $pagination) { edges { node { metadata { name } server info { connectionState { status message } serverVersion cacheInfo { resourcesCount apisCount } } } } pageInfo { endCursor hasNextPage } } }",
    ] {
        served.data(&served.admin, query, json!({"ends": true, "pagination": {"first": 500}})).await;
    }
}

#[tokio::test]
async fn what_is_no_query_is_told_without_repeating_it() {
    let served = Served::new().await;
    for body in ["", "canary-of-a-secret", "{\"query\": 7}", "[7]"] {
        let asked = served.client.post(format!("{}/2.0/api/graphql", served.url));
        let response = asked.header(served.admin.0, &served.admin.1).body(body).send().await.unwrap();
        let (status, text) = told(response).await;
        assert_eq!(status, 400, "{body}");
        assert!(
            text.starts_with(r#"the body is no JSON of the form {"query": "…", "variables": {}}: line "#)
        );
        assert!(!text.contains("canary"), "{text}");
    }
    for body in [json!({}), json!({"query": ""}), json!({"query": " \n", "variables": {}})] {
        let asked = served.client.post(format!("{}/2.0/api/graphql", served.url));
        let response = asked.header(served.admin.0, &served.admin.1).json(&body).send().await.unwrap();
        let said = "a query is missing: the body is to be {\"query\": \"…\", \"variables\": {}}\n";
        assert_eq!(told(response).await, (400, said.to_owned()), "{body}");
    }
    let unknown = served.refused(&served.admin, "{ me { nothing } }", json!({})).await;
    assert_eq!(unknown, "Unknown field \"nothing\" on type \"Me\".");
    let response = served.ask(&served.admin, "{ me { name } }", &Value::Null).send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "no-store");
}

#[tokio::test]
async fn a_body_that_is_packed_is_refused_before_it_is_read() {
    let served = Served::new().await;
    let body = r#"{"query": "{ me { name } }"}"#;
    for (path, encoding, expected) in [
        ("graphql", "gzip", 415),
        ("graphql", "br", 415),
        ("graphql", "identity", 200),
        ("authorize", "gzip", 415),
        ("runtimes/prod/app-proxy/graphql", "gzip", 415),
    ] {
        let asked = served.client.post(format!("{}/2.0/api/{path}", served.url)).body(body);
        let asked = asked.header(served.admin.0, &served.admin.1).header("content-encoding", encoding);
        let (status, said) = told(asked.send().await.unwrap()).await;
        assert_eq!(status, expected, "{path}, {encoding}: {said}");
        if expected == 415 {
            assert_eq!(said, "a body is taken as it is: send it without Content-Encoding\n", "{path}");
        }
    }
}

#[tokio::test]
async fn what_is_no_path_or_method_of_the_api_is_told() {
    let served = Served::new().await;
    for (method, path, status, said) in [
        ("GET", "/api/v1/nothing", 404, "the API has no such path\n"),
        ("POST", "/2.0/api/nothing", 404, "the API has no such path\n"),
        ("POST", "/2.0/api/runtimes/prod/nothing", 404, "the API has no such path\n"),
        (
            "GET",
            "/2.0/api/graphql",
            405,
            "the API is asked by another method here: the header Allow tells which\n",
        ),
        (
            "DELETE",
            "/api/ping",
            405,
            "the API is asked by another method here: the header Allow tells which\n",
        ),
    ] {
        let asked = served.client.request(method.parse().unwrap(), format!("{}{path}", served.url));
        let response = asked.send().await.unwrap();
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        let allowed = response.headers().get("allow").map(|allowed| allowed.to_str().unwrap().to_owned());
        let expected = (status == 405).then_some(if path.ends_with("ping") { "GET,HEAD" } else { "POST" });
        assert_eq!(allowed.as_deref(), expected, "{path}");
        assert_eq!(told(response).await, (status, said.to_owned()), "{path}");
    }
}
