//! An app proxy that is told to stop: what is under way is waited for, so long, and none of it stays out of the audit log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use stages_proxy::Stopping;
use tokio::time::timeout;

use crate::operations::asked;
use crate::support::{Running, SOON, soon};

/// One that waits so long for acts once it is told to stop, and has begun one that Argo CD has taken and does not answer.
async fn under_way(acts: Duration) -> (Running, impl Future<Output = (String, String)>) {
    let mut running = Running::ending(Stopping { acts, records: SOON }).await;
    running.argocd.silent.store(true, Ordering::SeqCst);
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    let asking = running.client.post(format!("{}/api/graphql", running.url)).bearer_auth(&running.admin);
    let asking = tokio::spawn(asking.json(&serde_json::json!({ "query": sync })).send());
    let told = async || running.argocd.take();
    soon(told, |told| told.iter().any(|(_, path, _)| path.contains("/sync"))).await;
    running.stop.cancel();
    let ended = running.ended.take().unwrap();
    let told = async move {
        timeout(SOON, ended).await.unwrap().unwrap();
        let answer = asking.await.unwrap().unwrap().json::<serde_json::Value>().await.unwrap();
        let error = &answer["errors"][0];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (text(&error["message"]), text(&error["extensions"]["code"]))
    };
    (running, told)
}

#[tokio::test]
async fn an_act_whose_end_is_not_known_when_the_app_proxy_stops_is_recorded_as_in_doubt() {
    let (running, told) = under_way(Duration::from_millis(100)).await;
    let told = told.await;
    // The app proxy has ended: what it recorded by then is all that it ever records.
    let rows = running.audit(1).await;
    let outcome = "prod/argocd/shop: in doubt: the app proxy stopped before its end was known";
    assert_eq!(rows, [("ada".to_owned(), "syncApplication".to_owned(), outcome.to_owned())]);
    let said =
        "this app proxy stopped before the end of this was known: it may be done; look before you ask again";
    assert_eq!(told, (said.to_owned(), "IN_DOUBT".to_owned()));
    // None begins any more that could not be recorded.
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    let (_, code) = running.refused(&running.admin, &sync).await;
    assert!(matches!(&*code, "STOPPING" | "BUSY"), "{code}");
    assert!(running.argocd.take().is_empty());
}

#[tokio::test]
async fn an_act_that_ends_after_the_app_proxy_was_told_to_stop_is_recorded_as_it_ended() {
    let (running, told) = under_way(SOON).await;
    running.argocd.go_on.notify_one();
    assert_eq!(told.await, (String::new(), String::new()), "it was done");
    assert_eq!(running.audit(1).await.first().unwrap().2, "prod/argocd/shop: done");
}
