//! Applications by the words that the console takes.

use serde_json::{Value, json};

use crate::served::Served;

const LIST: &str = "query List($pagination: SlicePaginationArgs, $filters: ApplicationsFilterArgs) { applications(pagination: $pagination, filters: $filters) { mistyped ends edges { cursor } } }";

/// What is told of the applications that are asked for: what is mistyped, where pages end, and the applications.
async fn listed(served: &Served, variables: Value) -> [Vec<String>; 3] {
    let list = served.data(&served.admin, LIST, variables).await["applications"].clone();
    let text = |one: &Value| one.as_str().unwrap().to_owned();
    let texts = |all: &Value| all.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    let cursors = list["edges"].as_array().unwrap().iter().map(|edge| text(&edge["cursor"])).collect();
    [texts(&list["mistyped"]), texts(&list["ends"]), cursors]
}

#[tokio::test]
async fn applications_are_listed_by_the_words_that_the_console_takes() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let healthy = |health: &'static str, sync: &'static str| {
        move |report: &mut stages_platform_store::Report| {
            (report.health, report.sync) = (Some(health.to_owned()), Some(sync.to_owned()));
        }
    };
    served.report_of("prod", "argocd/store", healthy("Healthy", "Synced")).await;
    served.report_of("prod", "argocd/storage", healthy("Progressing", "OutOfSync")).await;
    let cases: &[(&str, &[&str])] = &[
        ("", &["shop", "storage", "store"]),
        ("stor", &["storage", "store"]),
        ("stor health:healthy", &["store"]),
        ("health:degraded,progressing", &["shop", "storage"]),
        ("health:DEGRADED", &["shop"]),
        ("sync:outofsync", &["shop", "storage"]),
        ("label:team=shop", &["shop"]),
        ("\"by:Grace Hopper\"", &["shop"]),
        ("env:shop", &["shop"]),
        ("env:-", &["storage", "store"]),
        ("runtime:eu1", &[]),
        ("deployed:7d", &[]),
    ];
    for (query, expected) in cases {
        let [mistyped, _, found] = listed(&served, json!({"filters": {"query": query}})).await;
        let expected: Vec<String> = expected.iter().map(|name| format!("prod/argocd/{name}")).collect();
        assert_eq!((mistyped, found), (Vec::new(), expected), "{query}");
    }
    // Beside other conditions, and page by page.
    let paged = json!({"filters": {"query": "stor", "deleted": false}, "pagination": {"first": 1}});
    let ends = ["prod/argocd/storage", "prod/argocd/store"].map(str::to_owned).to_vec();
    assert_eq!(listed(&served, paged).await, [Vec::new(), ends, vec!["prod/argocd/storage".to_owned()]]);
    let none = json!({"filters": {"query": "stor", "name": "shop"}});
    assert_eq!(listed(&served, none).await[2], [""; 0]);
}

#[tokio::test]
async fn a_word_that_is_no_condition_is_searched_for_as_text_and_told() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let [mistyped, _, found] = listed(&served, json!({"filters": {"query": "health:bad shop"}})).await;
    let said = "'health:bad' is no value of health:, and is searched for as text; one is health:degraded";
    assert_eq!((mistyped, found), (vec![said.to_owned()], Vec::new()));
    let long = json!({"filters": {"query": "x".repeat(1_001)}});
    assert_eq!(served.refused(&served.admin, LIST, long).await, "a query has at most 1000 characters");
    let many = json!({"filters": {"query": "x ".repeat(33)}});
    assert_eq!(served.refused(&served.admin, LIST, many).await, "a query has at most 32 words");
}
