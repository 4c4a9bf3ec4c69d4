//! What of a runtime's requests is not taken stands on the page of runtimes, with what to do.

use stages_platform_store::Role;

use crate::platform::Platform;

#[tokio::test]
async fn what_is_not_taken_stands_beside_its_runtime_and_what_is_nobodys_is_told_to_admins() {
    let platform = Platform::new().await;
    let (ada, lin) =
        (platform.session("ada", Role::Admin).await, platform.session("lin", Role::Member).await);
    let token = platform.token().await;
    let post = async |token: &str| {
        let url = format!("{}/2.0/api/events", platform.url);
        let asked = platform.client.post(url).header("authorization", token).body("{");
        asked.send().await.unwrap().status().as_u16()
    };
    assert_eq!((post(&token).await, post("gort_0").await), (400, 401));
    let own = "<b>1 request not taken</b>: malformed, the last ";
    let of_nobody = "<b>1 request not taken</b>: unauthorized, the last ";
    let told = async {
        loop {
            let page = platform.page(&ada, "/runtimes").await;
            if page.contains(own) && page.contains(of_nobody) {
                return page;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let page = tokio::time::timeout(std::time::Duration::from_secs(120), told).await.expect("it is shown");
    assert!(page.contains("<code>gitops-runtime parked</code>"), "{page}");
    let seen = platform.page(&lin, "/runtimes").await;
    assert!(!seen.contains("not taken"), "{seen}");
}
