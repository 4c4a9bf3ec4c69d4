//! What a runtime says is wrong with it, from its own call to the pages that people read.

use serde_json::{Value, json};
use stages_platform_store::Role;

use crate::platform::Platform;

/// The runtime `prod` says what is wrong with it, by its token.
pub(crate) async fn report(platform: &Platform, token: &str, errors: &Value) {
    let query =
        "mutation Report($args: ReportRuntimeErrorsArgs!) { reportRuntimeErrors(reportErrorsArgs: $args) }";
    let args = json!({"runtime": "prod", "errors": errors});
    let body = json!({"query": query, "variables": {"args": args}});
    let url = format!("{}/2.0/api/graphql", platform.url);
    let asked = platform.client.post(url).header("authorization", token).json(&body);
    let answer: Value = asked.send().await.unwrap().json().await.unwrap();
    let count = errors.as_array().unwrap().len();
    assert_eq!(answer, json!({"data": {"reportRuntimeErrors": count}}));
}

#[tokio::test]
async fn what_a_runtime_says_is_wrong_stands_on_its_page_and_at_home_with_what_to_do_until_it_is_not() {
    let platform = Platform::new().await;
    let (ada, lin) =
        (platform.session("ada", Role::Admin).await, platform.session("lin", Role::Member).await);
    let token = platform.token().await;
    let error = |title: &str, message: &str, suggestion: Value, code: &str| {
        json!({"level": "ERROR", "title": title, "message": message, "suggestion": suggestion, "code": code,
            "lastSeen": "2026-11-24T00:00:00Z"})
    };
    let git =
        error("Git token", "it was refused\nby the host", "register another".into(), "BROKEN_REFERENCE");
    let other = error("Argo CD", "", Value::Null, "TRANSITIVE_ERROR");
    let mut warning = error("Quota", "92 % are used", Value::Null, "INSUFFICIENT_RESOURCES");
    warning["level"] = "WARNING".into();
    report(&platform, &token, &json!([warning, git, other])).await;

    let runtimes = platform.page(&ada, "/runtimes").await;
    for said in [
        "<b>Git token</b>: it was refused\nby the host",
        "<span class=\"mute\">What to do: </span>register another",
        "<b>Argo CD</b></p>",
        "What to do: </span>It follows from another error: mend that one first.",
        "<b>Quota</b>: 92 % are used",
    ] {
        assert!(runtimes.contains(said), "{said}: {runtimes}");
    }
    let place = |text: &str| runtimes.find(text).unwrap();
    assert!(place("<b>Argo CD</b>") < place("<b>Quota</b>"), "a warning stands behind errors");
    let home = platform.page(&ada, "/").await;
    assert!(home.contains("Git token: it was refused, and 1 more"), "{home}");
    assert!(home.contains("href=\"/runtimes\">prod</a>"), "{home}");

    // It begins when it was said first, however often it is said again; what began anew does not.
    let since = async || {
        let kept = platform.store.registrations(Some("prod")).await.unwrap().remove(0).problems;
        let kept: Value = serde_json::from_str(&kept).unwrap();
        kept.as_array().unwrap().iter().map(|one| one["since"].clone()).collect::<Vec<_>>()
    };
    let first = since().await;
    let mut again = git.clone();
    again["message"] = "it was refused twice".into();
    report(&platform, &token, &json!([again])).await;
    assert_eq!(since().await, [first[1].clone()]);
    assert!(platform.page(&ada, "/").await.contains("Git token: it was refused twice<"));

    // Warnings alone need nobody at home, and whoever sees nothing of the runtime is told nothing.
    report(&platform, &token, &json!([warning])).await;
    assert!(!platform.page(&ada, "/").await.contains("Quota"));
    assert!(platform.page(&ada, "/runtimes").await.contains("Quota"));
    assert!(!platform.page(&lin, "/runtimes").await.contains("Quota"));
    report(&platform, &token, &json!([])).await;
    assert!(!platform.page(&ada, "/runtimes").await.contains("What to do"));
}
