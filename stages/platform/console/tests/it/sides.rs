//! What stood in Git at two moments, as somebody wrote it, beside what ran and what it should have been.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stages_platform_store::Role;

use crate::platform::Platform;

#[tokio::test]
async fn two_moments_are_compared_by_the_file_in_git_as_well() {
    let platform = Platform::new().await;
    let (ada, token) = (platform.session("ada", Role::Admin).await, platform.token().await);
    let now = Timestamp::now();
    let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
    for (version, replicas, at) in [(10, 2, ago(40)), (11, 3, ago(20))] {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
            "metadata": {"name": "web", "namespace": "shop", "uid": "uid-Deployment", "resourceVersion": version.to_string()},
        });
        let git = format!("# Ada says how many.\nkind: Deployment\nspec: {{replicas: {replicas}}}\n");
        let source = json!({
            "appName": "shop", "appNamespace": "argocd", "gitManifest": git, "actualManifest": object.to_string(),
        });
        let data = json!({"timestamp": at.to_string(), "object": object, "source": source});
        platform.post(&token, &json!({"data": data})).await;
    }
    let compared = async |resource: &str, side: &str| {
        let (from, to) = (ago(30).as_millisecond(), ago(10).as_millisecond());
        let query = format!("tab=compare&r={resource}&side={side}&from={from}&to={to}");
        platform.page(&ada, &format!("/applications/prod/argocd/shop?{query}")).await
    };
    let page = compared("apps%2FDeployment%2Fshop%2Fweb", "git").await;
    for text in ["# Ada says how many.", "spec: {replicas: 2}", "spec: {replicas: 3}"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("side=git\" aria-current=\"true\">Git</a>"), "{page}");
    let live = compared("apps%2FDeployment%2Fshop%2Fweb", "live").await;
    assert!(live.contains("replicas: 3") && !live.contains("Ada says"), "{live}");
    let none = compared("argoproj.io%2FRollout%2Fshop%2Fweb", "git").await;
    assert!(none.contains("No file of Git that makes it was reported for either moment"), "{none}");
}
