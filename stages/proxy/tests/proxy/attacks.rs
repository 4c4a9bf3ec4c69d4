//! What is tried to be let in for one thing and to do another, or to do it unseen.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::operations::asked;
use crate::support::{Running, SOON};

#[tokio::test]
async fn a_name_that_no_object_has_reaches_neither_the_platform_nor_argo_cd() {
    let running = Running::start().await;
    let long = "a".repeat(254);
    let no_application = "that is no name of an application in Kubernetes";
    let no_namespace = "that is no name of a namespace in Kubernetes";
    for name in
        ["", ".", "..", "%2e%2e", "shop/operation", "shop%2Foperation", "shop?x=", "shop#", "Shop", &long]
    {
        for field in ["terminateOperation", "refreshApplication", "syncApplication"] {
            let of = if field == "terminateOperation" { "terminated" } else { "metadata { name }" };
            let application = format!("{{namespace: \"argocd\", name: {}}}", json!(name));
            let query = format!("mutation {{ {field}(application: {application}) {{ {of} }} }}");
            running.wrong(&query, no_application).await;
        }
    }
    // Argo CD takes its own namespace for an empty one, of which the platform was not asked.
    for namespace in ["", "..", "argocd&appNamespace=team", &long] {
        let application = format!("{{namespace: {}, name: \"shop\"}}", json!(namespace));
        let query =
            format!("mutation {{ syncApplication(application: {application}) {{ metadata {{ name }} }} }}");
        running.wrong(&query, no_namespace).await;
    }
    let runtime = format!("{{runtime: \"{long}\", namespace: \"argocd\", name: \"shop\"}}");
    let query = format!("{{ resourceTree(application: {runtime}) {{ nodes {{ name }} }} }}");
    let said = "the name of a runtime has at most 253 bytes";
    running.wrong(&query, said).await;
    let query = r#"{ workflows(namespace: "../secrets") { phase } }"#;
    assert_eq!(running.refused(&running.admin, query).await.0, no_namespace);
    assert!(running.argocd.take().is_empty() && running.cluster.take().is_empty());
}

#[tokio::test]
async fn a_long_name_does_not_keep_the_acts_beside_it_out_of_the_audit_log() {
    let running = Running::start().await;
    // One record of these is short of what the app proxy takes, and many of them together are more than the platform does.
    let long = format!("x\\u001b[2J{}", "ü".repeat(28_000));
    let act = format!(
        "mutation {{ stopWorkflow(namespace: \"default\", workflowName: \"{long}\") {{ metadata {{ name }} }} }}"
    );
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    let mut acts = Vec::new();
    for number in 0..20 {
        let query = if number == 10 { &sync } else { &act };
        acts.push(running.ask(&running.admin, query));
    }
    futures::future::join_all(acts).await;
    let rows = running.audit(20).await;
    assert_eq!(rows.iter().filter(|(_, act, _)| act == "syncApplication").count(), 1, "{rows:?}");
    let stopped = rows.iter().find(|(_, act, _)| act == "stopWorkflow").unwrap();
    let place = format!("prod/default Workflow x[2J{}", "ü".repeat(300));
    assert!(stopped.2.starts_with(&place) && stopped.2.ends_with("…: failed: BAD_REQUEST"), "{}", stopped.2);
}

#[tokio::test]
async fn what_stands_hundreds_deep_within_itself_is_refused_and_the_process_goes_on() {
    let running = Running::start().await;
    let deep =
        |open: &str, close: &str, times: usize| format!("{}{}", open.repeat(times), close.repeat(times));
    let too_deep = "the query has more than 64 brackets open at once: ask for less at a time, and put deep values into its variables";
    for query in [
        "{a".repeat(30_000),
        deep("{a", "}", 20_000),
        // What the parser's own guard lets through: it ended the process.
        format!("{{ workflows(namespace: {}) {{ phase }} }}", deep("[", "]", 350)),
        format!("{{ workflows(namespace: {}) {{ phase }} }}", deep("[", "]", 1_000)),
        format!("{{ workflows(namespace: {}) {{ phase }} }}", deep("{a:", "}", 1_000)),
        format!("query Q($a: {}) {{ versionInfo {{ version }} }}", deep("[", "]", 30_000)),
        format!("{{ {} versionInfo {{ version }} }}", deep("...{", "}", 10_000)),
    ] {
        let answer = running.ask("nobody-knows-this", &query).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAUTHENTICATED", "{answer}");
        running.wrong(&query, too_deep).await;
    }
    // As deep as may be: it is read, and is no namespace.
    let query = format!("{{ workflows(namespace: {}) {{ phase }} }}", deep("[", "]", 62));
    let said = running.ask(&running.admin, &query).await["errors"][0]["message"].to_string();
    assert!(said.contains("Invalid value for argument"), "{said}");
    running.data(&running.admin, "{ versionInfo { version } }").await;
}

#[tokio::test]
async fn of_whom_nobody_knows_no_query_is_read() {
    let running = Running::made(Duration::ZERO, |mut config| {
        config.limits.body = 2 << 20;
        config
    })
    .await;
    // A wide query of a mebibyte is announced, and no more than its beginning comes.
    let mut stream = TcpStream::connect(running.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /app-proxy/api/graphql HTTP/1.1\r\nhost: prod\r\nauthorization: goak_none\r\ncontent-length: 1048576\r\n\r\n";
    stream.write_all(format!("{head}{{\"query\": \"{{a a a a").as_bytes()).await.unwrap();
    let answered = async {
        let mut answer = String::new();
        while !answer.contains("\"UNAUTHENTICATED\"") {
            let mut bytes = [0; 1_024];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "{answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        answer
    };
    let answer = timeout(SOON, answered).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("this key, token or session is not known, or has ended"), "{answer}");
    // Who is known is told that it is too much, before any of it is parsed.
    let wide = format!("{{ {} }}", "a ".repeat(500_000));
    let too_long = "the query is longer than 65536 bytes: put long values into its variables";
    running.wrong(&wide, too_long).await;
    let version = "query Q($long: String) { versionInfo(a: $long) { version } }";
    let asked = running.client.post(format!("{}/api/graphql", running.url)).bearer_auth(&running.admin);
    let asked = asked.json(&json!({"query": version, "variables": {"long": "a".repeat(1 << 20)}}));
    let said = asked.send().await.unwrap().text().await.unwrap();
    assert!(said.contains("Unknown argument \\\"a\\\""), "values may be long: {said}");
}

#[tokio::test]
async fn each_alias_fragment_and_variable_is_judged_by_what_it_does() {
    let running = Running::start().await;
    running.allow("REFRESH", "gitopsApplications", "argocd").await;
    let none = "'lin' may not: no rule of a team of theirs allows SYNC of gitopsApplications";
    let aliases = asked(
        "mutation { refreshApplication: syncApplication(application: APP) { metadata { name } } \
         b: refreshApplication(application: APP) { metadata { name } } }",
    );
    let fragment = asked(
        "mutation { ...All } fragment All on Mutation { ... on Mutation { syncApplication(application: APP) { metadata { name } } } }",
    );
    for query in [aliases, fragment] {
        running.refuses(&running.member, &query, none, "FORBIDDEN").await;
        let changes = running.argocd.take();
        assert!(changes.iter().all(|(_, path, _)| !path.contains("/sync")), "{changes:?}");
    }
    // A variable of another application than the one that is allowed.
    let url = format!("{}/api/graphql", running.url);
    let post = async |body: serde_json::Value| {
        let asked = running.client.post(&url).header("authorization", &running.member).json(&body);
        let answer = asked.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let query = r#"mutation M($a: ApplicationId! = {namespace: "argocd", name: "shop"}) { refreshApplication(application: $a) { metadata { name } } }"#;
    let variables = json!({"a": {"namespace": "team", "name": "shop"}});
    let (_, told) = post(json!({"query": query, "variables": variables})).await;
    assert!(told.contains("allows REFRESH of gitopsApplications, and not of this one"), "{told}");
    // Several documents at once are none.
    let (status, _) = post(json!([{"query": query}, {"query": query}])).await;
    assert_eq!(status, 400);
    assert!(running.argocd.take().is_empty());
}
