//! A runtime of an adopter's, under a name that a new one is not given: it keeps the name, and is told by an id beside.

use reqwest::StatusCode;
use serde_json::json;
use stages_platform_store::Role;

use crate::platform::Platform;

const ID: &str = "prodeu3312b6955a";

#[tokio::test]
async fn an_adopted_runtime_keeps_its_name_and_is_found_by_its_id_as_well() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let post = async |body: &'static str| {
        let asked = platform.client.post(format!("{}/runtimes", platform.url)).header("cookie", &ada);
        asked.body(body).send().await.unwrap().text().await.unwrap()
    };
    let refused = post("name=prod-eu").await;
    let why = "A new runtime&#39;s name has lower-case letters and digits, a letter first, and at most 38 of them. For one that is called so already, say so below.";
    assert!(refused.replace('\'', "&#39;").contains(why), "{refused}");
    let why = "A name has letters, digits, &#39;-&#39;, &#39;_&#39; and &#39;.&#39;, begins and ends with one of the first two, and has at most 63.";
    let refused = post("name=prod%2Feu&adopted=on").await;
    assert!(
        refused.replace('\'', "&#39;").contains(why) && refused.contains("name=\"adopted\" checked"),
        "{refused}"
    );

    let made = post("name=prod-eu&adopted=on").await;
    assert!(made.contains(&format!("Its id is <code>{ID}</code>")), "{made}");
    let named = format!("helm install {ID} helm/gitops-runtime");
    assert!(made.contains(&named) && made.contains("global.runtime.name=prod-eu"), "{made}");
    let again = post("name=prod-eu&adopted=on").await;
    assert!(again.contains("There is a runtime named prod-eu already: choose another name."), "{again}");
    let clash = post("name=prodeu3312b6955a").await;
    assert!(clash.contains("The runtime prod-eu has an id like it: choose another name."), "{clash}");

    let token = made.split_once("--from-literal=token=").unwrap().1.split('\n').next().unwrap();
    let token = token.split('<').next().unwrap();
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "mail", "namespace": "argocd", "uid": "m", "resourceVersion": "1"},
    });
    let said = json!({"data": {"timestamp": "2026-11-26T10:00:00Z", "object": object}});
    platform.post(token, &said).await;

    let runtimes = platform.page(&ada, "/runtimes").await;
    assert!(runtimes.contains("prod-eu</a>") && runtimes.contains(&format!("id <code>{ID}</code>")));
    assert!(!runtimes.contains("id <code>prod</code>"), "its own name is the id of any other");
    let listed = platform.page(&ada, "/applications?q=runtime%3Aprod-eu").await;
    assert!(listed.contains("href=\"/applications/prod-eu/argocd/mail?q=runtime%3Aprod-eu\""), "{listed}");
    // Both lead to it, and so do both to how far it is.
    for called in [ID, "prod-eu"] {
        let page = platform.page(&ada, &format!("/applications/{called}/argocd/mail")).await;
        assert!(page.contains("data-runtime=\"prod-eu\"") && page.contains("<h1>mail</h1>"), "{page}");
        let preview = platform.page(&ada, &format!("/preview/{called}/argocd/mail")).await;
        assert!(preview.contains("prod-eu"), "{preview}");
        let progress = platform.page(&ada, &format!("/runtimes/add/{called}")).await;
        assert!(progress.contains("How far prod-eu is"), "{progress}");
    }
    let nobody = format!("{}/applications/none/argocd/mail", platform.url);
    let nobody = platform.client.get(nobody).header("cookie", &ada).send().await.unwrap();
    assert_eq!(nobody.status(), StatusCode::NOT_FOUND);
    // Whoever sees nothing of it learns nothing by the id either.
    let lin = platform.session("lin", Role::Member).await;
    let url = format!("{}/applications/{ID}/argocd/mail", platform.url);
    let hidden = platform.client.get(url).header("cookie", lin).send().await.unwrap();
    let (status, text) = (hidden.status(), hidden.text().await.unwrap());
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(!text.contains("prod-eu"), "{text}");
}
