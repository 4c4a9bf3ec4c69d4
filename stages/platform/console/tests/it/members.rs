//! Whoever sees nothing is told so, and is led nowhere that they may not go.

use loadtest_sim::local_client;
use reqwest::{StatusCode, redirect};
use stages_platform_store::{Action, Attribute, AttributeName, Entity, Role};

use crate::platform::{Platform, by};

#[tokio::test]
async fn whoever_no_rule_shows_anything_is_told_that_and_not_that_there_is_nothing() {
    let platform = Platform::new().await;
    let lin = platform.session("lin", Role::Member).await;
    for path in ["/", "/applications", "/runtimes"] {
        let page = platform.page(&lin, path).await;
        assert!(page.contains("No rule of your teams shows you"), "{path}: {page}");
        for untrue in ["/runtimes/add", "No runtime reports", "was reported yet"] {
            assert!(!page.contains(untrue), "{path}: {untrue}");
        }
    }
    for path in ["/deployments", "/resources"] {
        let page = platform.page(&lin, path).await;
        assert!(page.contains("was reported yet that you may see"), "{path}: {page}");
    }
    let client = local_client().redirect(redirect::Policy::none()).build().unwrap();
    let ask = async |session: &str, path: &str| {
        let asked = client.get(format!("{}{path}", platform.url)).header("accept", "text/html");
        let response = asked.header("cookie", session).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };
    // What they do not see is told as what is not there.
    let (status, hidden) = ask(&lin, "/applications/prod/argocd/shop").await;
    let (_, gone) = ask(&lin, "/applications/prod/argocd/never-reported").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(hidden.contains("is not known, or not yours to see"), "{hidden}");
    assert_eq!(gone.replace("never-reported", "shop"), hidden);
    // Whoever sees everything is told of nobody's rules.
    let ada = platform.session("ada", Role::Admin).await;
    let (_, known) = ask(&ada, "/applications/prod/argocd/gone").await;
    assert!(known.contains("This application is not known<"), "{known}");

    let (status, page) = ask(&lin, "/runtimes/add").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    for part in ["<h2>Only an admin may see this</h2>", "<nav class=\"side\"", "<main", "href=\"/\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn whoever_has_rules_that_leave_no_application_is_told_that_and_not_that_all_is_well() {
    let platform = Platform::new().await;
    platform.store.register(&by(), "empty", "{}", true, 1).await.unwrap().unwrap();
    let empty = Attribute { name: AttributeName::Runtime, key: None, value: "empty".to_owned() };
    let lin = platform.lin(vec![(Entity::GitopsApplications, vec![Action::View], vec![empty])]).await;
    for path in ["/", "/applications"] {
        let page = platform.page(&lin, path).await;
        assert!(page.contains("<h2>You see no application yet</h2>"), "{path}: {page}");
        let why = "None is deployed, or no rule of your teams shows it";
        assert!(page.contains(why) && !page.contains("No rule of your teams"), "{path}: {page}");
        assert!(!page.contains("Nothing needs you"), "{path}: {page}");
    }
    // A runtime that is silent stays to be seen.
    let home = platform.page(&lin, "/").await;
    assert!(home.contains(">empty<") && home.contains("waiting to hear of it"), "{home}");
    // The runtime is theirs to see.
    assert!(platform.page(&lin, "/runtimes").await.contains(">empty<"));
}
