//! What the app proxy of a runtime asks, and what it tells.

use serde_json::{Value, json};
use stages_platform_store::{Identity, PROVIDED_LASTS, Provided, Rule};

use crate::served::{Credential, Served, by, still, told};

async fn judged(served: &Served, who: &str, action: &str, attributes: Value) -> Value {
    let asked =
        json!({"token": who, "action": action, "entity": "gitopsApplications", "attributes": attributes});
    let url = format!("{}/2.0/api/authorize", served.url);
    let asked = served.client.post(url).header(served.runtime.0, &served.runtime.1).json(&asked);
    asked.send().await.unwrap().json().await.unwrap()
}

async fn allow(served: &Served, attributes: Value) -> i64 {
    let rule = json!({"entityType": "gitopsApplications", "teams": ["shop"], "actions": ["SYNC"], "attributes": attributes});
    let rule: Rule = serde_json::from_value(rule).unwrap();
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    assert!(served.store.add_rule(&by("ada"), &rule, now).await.unwrap());
    served.store.rules().await.unwrap().last().unwrap().id
}

#[tokio::test]
async fn rules_decide_by_what_was_reported_of_an_application() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let lin = served.member.1.clone();
    let shop = json!({"namespace": "argocd", "name": "shop"});
    let rule = allow(
        &served,
        json!([{"name": "NAMESPACE", "value": "argocd"}, {"name": "RUNTIME", "value": "prod"}]),
    )
    .await;
    let uid =
        async |name: &str| served.store.access(name, still().as_millisecond()).await.unwrap().unwrap().uid;
    let yes = json!({"allowed": true, "who": "lin", "uid": uid("lin").await, "account": "default", "rule": rule, "why": null, "refusal": null, "lasts": true});
    assert_eq!(judged(&served, &lin, "SYNC", shop.clone()).await, yes);
    // What is not known of an application is no match.
    let now = still().as_millisecond();
    assert!(served.store.remove_rule(&by("ada"), rule, now).await.unwrap());
    let first = allow(&served, json!([{"name": "LABEL", "key": "team", "value": "billing"}])).await;
    let second = allow(&served, json!([{"name": "PRODUCT_NAME", "value": "shop"}])).await;
    let no = judged(&served, &lin, "SYNC", shop.clone()).await;
    let why = format!(
        "'lin' may not: rules {first}, {second} allow SYNC of gitopsApplications, and none of them of this one"
    );
    assert_eq!(
        no,
        json!({"allowed": false, "who": "lin", "uid": uid("lin").await, "account": "default", "rule": null, "why": why, "refusal": "another_subject", "lasts": true})
    );
    let session = judged(&served, "of-ada", "SYNC", shop.clone()).await;
    assert_eq!(
        session,
        json!({"allowed": true, "who": "ada", "uid": uid("ada").await, "account": "default", "rule": null, "why": null, "refusal": null, "lasts": true})
    );
    let nobody = judged(&served, "of-nobody", "SYNC", shop).await;
    let why = "this key, token or session is not known, or has ended";
    assert_eq!(
        nobody,
        json!({"allowed": false, "who": null, "uid": null, "account": null, "rule": null, "why": why, "refusal": "unknown", "lasts": true})
    );
}

#[tokio::test]
async fn a_key_of_somebody_who_has_not_come_in_by_their_provider_for_thirty_days_says_so() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let rule = allow(&served, json!([])).await;
    let shop = json!({"namespace": "argocd", "name": "shop"});
    let (now, issuer) = (still().as_millisecond(), "https://id.example.com".to_owned());
    let lin = Identity { issuer, subject: "l-1".to_owned() };
    assert!(served.store.link_identity(&by("ada"), "lin", &lin, now - 2 * PROVIDED_LASTS).await.unwrap());
    let comes = async |at: i64| {
        let joined = vec!["shop".to_owned()];
        let said = Provided { decided: joined.clone(), joined, admin: None };
        let digest = [u8::try_from(at % 251).unwrap(); 32];
        assert!(served.store.sign_in_identified(digest, &lin, &said, at, now + 1_000).await.unwrap());
    };
    comes(now - PROVIDED_LASTS).await;
    let why = "the owner of this key last came in by https://id.example.com more than 30 days ago, and what its groups gave them does not \
               count any more: once they sign in by it again the key is good again";
    let query = json!({"query": "{ applications { edges { cursor } } }"});
    let ask = async || {
        let url = format!("{}/2.0/api/graphql", served.url);
        let asked = served.client.post(url).header(served.member.0, &served.member.1).json(&query);
        told(asked.send().await.unwrap()).await
    };
    assert_eq!(ask().await, (403, format!("{why}\n")));
    let verdict = judged(&served, &served.member.1, "SYNC", shop.clone()).await;
    assert_eq!((&verdict["allowed"], &verdict["why"]), (&json!(false), &json!(why)));
    assert_eq!((&verdict["who"], &verdict["refusal"]), (&json!("lin"), &json!("lapsed")));
    // Another's is as it was, and so is theirs once they came in.
    assert_eq!(judged(&served, &served.admin.1, "SYNC", shop.clone()).await["allowed"], json!(true));
    comes(now - PROVIDED_LASTS + 1).await;
    assert_eq!(ask().await.0, 200);
    assert_eq!(judged(&served, &served.member.1, "SYNC", shop).await["rule"], json!(rule));
}

#[tokio::test]
async fn a_runtime_is_seen_by_whoever_sees_something_in_it() {
    let served = Served::new().await;
    let now = still().as_millisecond();
    let rule = json!({"entityType": "gitopsApplications", "teams": ["shop"], "actions": ["VIEW"], "attributes": [{"name": "NAMESPACE", "value": "argocd"}]});
    let rule: Rule = serde_json::from_value(rule).unwrap();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    assert!(served.store.add_rule(&by("ada"), &rule, now).await.unwrap());
    let lin = served.member.1.clone();
    let refused = judged(&served, &lin, "VIEW", json!({})).await;
    assert_eq!((&refused["allowed"], &refused["refusal"]), (&json!(false), &json!("another_subject")));
    served.report("prod", "argocd/shop").await;
    assert_eq!(judged(&served, &lin, "VIEW", json!({})).await["allowed"], true);
}

#[tokio::test]
async fn a_runtime_alone_asks_and_tells_and_only_what_there_is() {
    let served = Served::new().await;
    let post = async |who: &Credential, path: &str, body: Value| {
        let asked = served.client.post(format!("{}/2.0/api/{path}", served.url)).header(who.0, &who.1);
        told(asked.json(&body).send().await.unwrap()).await
    };
    let only = "only the app proxy of a runtime may ask this: send the runtime's token\n";
    for path in ["authorize", "audit"] {
        assert_eq!(post(&served.admin, path, json!({})).await, (403, only.to_owned()));
    }
    let (status, said) =
        post(&served.runtime, "authorize", json!({"token": "canary", "action": "DANCE"})).await;
    assert_eq!(
        (status, said.contains("canary"), said.starts_with("the body is not what is asked here: line 1")),
        (400, false, true)
    );
    let record = |act: &str| json!({"who": "lin", "act": act, "place": "argocd/shop", "outcome": "done\n"});
    let (status, said) = post(&served.runtime, "audit", json!({"records": [record("rm -rf")]})).await;
    assert_eq!(
        (status, &*said),
        (400, "there are at most 100 records, and the act of each is the name of an operation\n")
    );
    let many = vec![record("syncApplication"); 101];
    assert_eq!(post(&served.runtime, "audit", json!({"records": many})).await.0, 400);
    let (status, said) =
        post(&served.runtime, "audit", json!({"records": [record("syncApplication")]})).await;
    assert_eq!((status, &*said), (200, r#"{"recorded":1}"#));
    let log = served.data(&served.admin, "{ auditLog(first: 1) { who how act subject } }", json!({})).await;
    let row = json!({"who": "lin", "how": "app-proxy", "act": "syncApplication", "subject": "prod/argocd/shop: done"});
    assert_eq!(log["auditLog"], json!([row]));
}
