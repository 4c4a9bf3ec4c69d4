//! Routes, limits and what pages of other sites may do.

use serde_json::{Value, json};

use crate::support::Running;

#[tokio::test]
async fn it_lives_at_each_of_its_paths() {
    let running = Running::start().await;
    for path in ["readyz", "healthz", "health"] {
        for prefix in ["/app-proxy", ""] {
            let response =
                running.client.get(format!("{}{prefix}/api/{path}", running.url)).send().await.unwrap();
            assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "OK"));
        }
    }
}

#[tokio::test]
async fn the_pages_of_the_platform_may_ask_with_a_token_and_no_others() {
    let running = Running::start().await;
    let url = format!("{}/app-proxy/api/graphql", running.url);
    let before =
        running.client.request(reqwest::Method::OPTIONS, &url).header("origin", "https://evil.example");
    let before = before.send().await.unwrap();
    assert_eq!(before.status(), 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://platform.example"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET,HEAD,PUT,PATCH,POST,DELETE"),
        ("access-control-allow-headers", "content-type,authorization,x-access-token"),
        ("vary", "origin"),
    ] {
        assert_eq!(before.headers()[name], value);
    }
    let nobody = running
        .client
        .post(&url)
        .json(&json!({"query": "{ versionInfo { version } }"}))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.headers()["access-control-allow-origin"], "https://platform.example");
    assert_eq!(nobody.status(), 401);
    assert_eq!(nobody.text().await.unwrap(), "send an API key of the platform in the header Authorization\n");
}

#[tokio::test]
async fn a_token_is_taken_as_it_is_after_bearer_and_of_its_own_header() {
    let running = Running::start().await;
    for (name, value) in [
        ("authorization", running.admin.clone()),
        ("authorization", format!("Bearer {}", running.admin)),
        ("authorization", format!("bearer  {}", running.admin)),
        ("x-access-token", running.admin.clone()),
    ] {
        let asked = running.client.post(format!("{}/api/graphql", running.url)).header(name, value);
        let answer: Value = asked
            .json(&json!({"query": "{ versionInfo { version } }"}))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert_eq!(answer, json!({"data": {"versionInfo": {"version": env!("CARGO_PKG_VERSION")}}}));
    }
}

#[tokio::test]
async fn what_is_too_much_is_refused() {
    let running = Running::start().await;
    let post = async |body: String| {
        let asked = running
            .client
            .post(format!("{}/api/graphql", running.url))
            .header("authorization", &running.admin);
        let response = asked.body(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(post("x".repeat(70_000)).await, (413, "the body is longer than 65536 bytes\n".to_owned()));
    let wrong = "the body is no JSON of the form {\"query\": \"…\", \"variables\": {}}: line 1, column 1\n";
    assert_eq!(post("x".to_owned()).await, (400, wrong.to_owned()));
    let many: String = (0..600).map(|n| format!("a{n}: versionInfo {{ version }} ")).collect();
    let (status, text) = post(json!({"query": format!("{{ {many} }}")}).to_string()).await;
    assert_eq!((status, text.contains("Query is too complex")), (200, true), "{text}");
    let deep = "ofType { name ".repeat(12) + &"}".repeat(12);
    let deep = format!("{{ __schema {{ types {{ fields {{ type {{ {deep} }} }} }} }} }}");
    let (status, text) = post(json!({"query": deep}).to_string()).await;
    assert_eq!((status, text.contains("Query is nested too deep")), (200, true), "{text}");
    let directives = "@include(if: true) ".repeat(9);
    let (_, text) =
        post(json!({"query": format!("{{ versionInfo {{ version {directives} }} }}")}).to_string()).await;
    assert!(text.contains("directives on the field `version` cannot be greater than `8`"), "{text}");
}
