//! What is looked for: applications by a resource of theirs, resources by name in the palette, what was done by who did it, and
//! deployments that stand on no first page.

use jiff::Timestamp;
use stages_platform_store::{Delivery, Operation, Role};

use crate::platform::{Platform, report};

#[tokio::test]
async fn applications_are_found_by_their_resources_and_resources_by_their_names() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    for (filter, is_there) in
        [("resource:rollout/we", true), ("resource:web", true), ("resource:service/web", false)]
    {
        let page = platform.page(&ada, &format!("/applications?q={filter}")).await;
        assert_eq!(
            page.contains("href=\"/applications/prod/argocd/shop?q=resource"),
            is_there,
            "{filter}: {page}"
        );
    }
    let found = platform.page(&ada, "/find?q=web").await;
    let link = "href=\"/applications/prod/argocd/shop?tab=resources&amp;r=apps%2FDeployment%2Fshop%2Fweb\"";
    assert!(found.contains(link) && found.contains("of shop · prod"), "{found}");
    // As it is written on every page.
    let found = platform.page(&ada, "/find?q=Deployment/web").await;
    assert!(found.contains(link) && !found.contains("Rollout"), "{found}");
    let listed = platform.page(&ada, "/resources?q=Deployment/web").await;
    assert!(listed.contains(link) && !listed.contains("Nothing matches"), "{listed}");
    let lin = platform.session("lin", Role::Member).await;
    assert!(!platform.page(&lin, "/find?q=web").await.contains("shop"), "whoever sees nothing finds nothing");
    // Neither does an application by its own name have its resources listed.
    assert!(!platform.page(&ada, "/find?q=shop").await.contains("Deployment/"));
}

#[tokio::test]
async fn the_audit_log_is_searched_and_its_older_pages_keep_what_is_searched() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    for _ in 0..101 {
        platform.token().await;
    }
    let page = platform.page(&ada, "/audit?q=TOKEN.add").await;
    assert_eq!(page.matches("<code>token.add</code>").count(), 100, "{page}");
    assert!(!page.contains("user.add") && page.contains("href=\"/audit?q=TOKEN.add&amp;before="), "{page}");
    let older = page.split_once("href=\"/audit?q=TOKEN.add&amp;before=").unwrap().1;
    let older = older.split_once('"').unwrap().0;
    let page = platform.page(&ada, &format!("/audit?q=TOKEN.add&before={older}")).await;
    assert_eq!(page.matches("<code>token.add</code>").count(), 1, "{page}");
    assert!(platform.page(&ada, "/audit?q=nobody-did").await.contains("Nothing matches"));
}

#[tokio::test]
async fn deployments_go_on_behind_the_first_page() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let id = platform.store.runtime_named("prod").await.unwrap().unwrap();
    let now = Timestamp::now().as_millisecond();
    for number in 0..201_u8 {
        let at = now + i64::from(number);
        let mut report = report(None, at);
        report.version = Some(2 + i64::from(number));
        report.operation = Some(Operation {
            started_at: at - 600_000 * i64::from(number),
            finished_at: Some(at),
            phase: "Succeeded".to_owned(),
            revision: format!("rev{number}"),
            initiated_by: "lin".to_owned(),
            ..Operation::default()
        });
        let mut key = [7; 32];
        key[0] = number;
        let delivery = Delivery { runtime: id, key, keyed: true, epoch: None, era: 0, report };
        platform.store.keep(vec![delivery]).await.unwrap();
    }
    let page = platform.page(&ada, "/deployments?q=shop").await;
    assert_eq!(page.matches("data-key=\"deployment/").count(), 200);
    assert!(
        page.contains("synced by lin") && page.contains("href=\"/deployments?q=shop&amp;page=1\""),
        "{page}"
    );
    let page = platform.page(&ada, "/deployments?q=shop&page=1").await;
    assert_eq!(page.matches("data-key=\"deployment/").count(), 1);
    assert!(page.contains("href=\"/deployments?q=shop\"") && !page.contains("rel=\"next\""), "{page}");
}
