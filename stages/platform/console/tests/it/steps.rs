//! What goes through phases beside an application, from the reports of its object to the application's timeline.

use serde_json::json;
use stages_platform_store::Role;

use crate::platform::Platform;

#[tokio::test]
async fn the_steps_of_a_rollout_stand_in_the_timeline_of_its_application() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let token = platform.token().await;
    let rollout = |version: u32, phase: &str, step: u32, weight: u32| {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "frontend", "namespace": "cart", "uid": "of-frontend", "resourceVersion": version.to_string()},
            "spec": {"strategy": {"canary": {"steps": [{"setWeight": 25}, {"pause": {}}]}}},
            "status": {"phase": phase, "currentStepIndex": step, "canary": {"weights": {"canary": {"weight": weight}}}},
        });
        let application =
            json!({"name": "cart", "namespace": "argocd", "project": "shop", "revision": "abc"});
        json!({"data": {"object": object, "application": application}})
    };
    let mut begun = rollout(1, "", 0, 0);
    begun["data"]["object"]["status"] = json!({});
    platform.post(&token, &begun).await;
    for (version, (phase, step, weight)) in (2..).zip([
        ("Progressing", 0, 0),
        ("Progressing", 0, 0),
        ("Progressing", 1, 25),
        ("Paused", 1, 25),
        ("Healthy", 2, 100),
    ]) {
        platform.post(&token, &rollout(version, phase, step, weight)).await;
    }
    let page = platform.page(&ada, "/applications/prod/argocd/cart?tab=timeline").await;
    assert!(page.contains("not reported itself"), "{page}");
    let rows: Vec<&str> = page.split("<tr data-key=\"state/").skip(1).collect();
    let expected = [
        ("Healthy", "step 2 of 2, 100 % of the traffic"),
        ("Suspended", "step 1 of 2, 25 % of the traffic"),
        ("", "step 1 of 2, 25 % of the traffic"),
        ("Progressing", "step 0 of 2, 0 % of the traffic"),
    ];
    assert_eq!(rows.len(), expected.len(), "what says nothing, or the same again, is no step: {page}");
    for (row, (health, step)) in rows.iter().zip(expected) {
        assert!(row.contains(">Rollout/frontend</a>") && row.contains(step), "{step}: {row}");
        assert!(health.is_empty() || row.contains(&format!("aria-label=\"{health}\"")), "{health}: {row}");
    }
    let resources = platform.page(&ada, "/applications/prod/argocd/cart?tab=resources").await;
    assert!(resources.contains("aria-label=\"Healthy\""), "{resources}");
}

#[tokio::test]
async fn the_changes_of_all_resources_stand_in_the_timeline_of_their_application_where_somebody_wants_them() {
    let platform = Platform::new().await;
    let (ada, token) = (platform.session("ada", Role::Admin).await, platform.token().await);
    for (version, health, said) in
        [(10, "Degraded", "back-off 5m0s"), (11, "Degraded", "back-off 5m0s"), (12, "Healthy", "")]
    {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "uid-Deployment", "resourceVersion": version.to_string()},
        });
        let source = json!({
            "appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": health, "healthMessage": said,
        });
        let at = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(30 - version);
        let data = json!({"timestamp": at.to_string(), "object": object, "source": source});
        platform.post(&token, &json!({ "data": data })).await;
    }
    let path = "/applications/prod/argocd/shop?tab=timeline";
    let rows = async |path: &str| {
        let page = platform.page(&ada, path).await;
        let rows: Vec<String> = page.split("<tr data-key=\"state/").skip(1).map(str::to_owned).collect();
        rows.into_iter().filter(|row| row.contains(">Deployment/web</a>")).collect::<Vec<_>>()
    };
    assert_eq!(rows(path).await, Vec::<String>::new(), "it goes through no phases");
    let told = rows(&format!("{path}&of=all")).await;
    assert_eq!(told.len(), 3, "what says the same again is no change: {told:#?}");
    let holds = |row: &str, all: &[&str]| all.iter().all(|text| row.contains(text));
    assert!(holds(&told[0], &["Degraded → </span>Healthy"]), "{}", told[0]);
    assert!(
        holds(&told[1], &["Healthy → </span>Degraded", "OutOfSync → </span>Synced", "back-off 5m0s"]),
        "{}",
        told[1]
    );
}
