//! What the platform holds, and how it answers whether that is all.

use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::platform::{Comparisons, Keep, PlatformSim, ResourceKey};
use serde_json::{Value, json};
use sha2::Digest as _;

use super::client;
use super::platform::{application, config_map, key, post, report, start};

/// The exclusive or of the first 16 bytes of the SHA-256 of each key, as 32 hexadecimal digits.
fn digest(keys: &[u8]) -> String {
    let one = |number: &u8| {
        let full: [u8; 32] = sha2::Sha256::digest(key(*number).as_bytes()).into();
        u128::from_be_bytes(full[..16].try_into().unwrap())
    };
    format!("{:032x}", keys.iter().map(one).fold(0, |sum, one| sum ^ one))
}

async fn ask(platform: &PlatformSim, below: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}/2.0/api/events/{below}", platform.url());
    let answer =
        client().post(url).header("authorization", "raw").body(body.to_string()).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
}

async fn equal(platform: &PlatformSim, applications: u64, keys: &[u8]) -> bool {
    let body = json!({
        "ledger": "l", "shard": 0, "shards": 1, "applications": applications, "entities": keys.len(),
        "digest": digest(keys), "at": "2026-11-21T12:00:00Z",
    });
    let (status, answer) = ask(platform, "digest", &body).await;
    assert_eq!(status, 200);
    answer["equal"].as_bool().unwrap()
}

async fn differing(platform: &PlatformSim, applications: &[(&str, &str, &[u8])]) -> Vec<String> {
    let one = |(key, uid, keys): &(&str, &str, &[u8])| json!({"key": key, "uid": uid, "entities": keys.len(), "digest": digest(keys)});
    let body = json!({"applications": applications.iter().map(one).collect::<Vec<_>>()});
    let (status, answer) = ask(platform, "digest/applications", &body).await;
    assert_eq!(status, 200);
    serde_json::from_value(answer["differing"].clone()).unwrap()
}

fn of_life(name: &str, uid: &str, deleted: bool) -> String {
    let mut object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {
        "name": name, "namespace": "argocd", "uid": uid, "resourceVersion": "9",
    }});
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
    }
    report(&object, "")
}

#[tokio::test]
async fn the_last_key_of_every_entity_is_held_until_its_application_ends() {
    let platform = start(Keep::default()).await;
    assert!(equal(&platform, 0, &[]).await);
    post(&platform, &key(1), &application("a", 5)).await;
    post(&platform, &key(2), &config_map("a", 3)).await;
    post(&platform, &key(3), &application("b", 6)).await;
    assert!(equal(&platform, 2, &[1, 2, 3]).await);
    assert!(!equal(&platform, 2, &[1, 2]).await);
    assert!(!equal(&platform, 3, &[1, 2, 3]).await);
    // A newer report takes the older one's place, and a repeated one no place at all.
    post(&platform, &key(4), &application("a", 7)).await;
    post(&platform, &key(4), &application("a", 7)).await;
    assert!(equal(&platform, 2, &[4, 2, 3]).await);
    assert_eq!(
        differing(
            &platform,
            &[
                ("argocd/a", "u", &[4, 2]),
                ("argocd/b", "u", &[4]),
                ("argocd/b", "other life", &[3]),
                ("argocd/c", "u", &[]),
            ]
        )
        .await,
        ["argocd/b", "argocd/b", "argocd/c"]
    );
    // Its end takes its resources along; another life takes the earlier one's.
    post(&platform, &key(5), &of_life("a", "u", true)).await;
    assert!(equal(&platform, 1, &[3]).await);
    post(&platform, &key(6), &of_life("a", "v", false)).await;
    post(&platform, &key(7), &config_map("a", 3)).await;
    post(&platform, &key(8), &of_life("a", "w", false)).await;
    assert!(equal(&platform, 2, &[3, 8]).await);
    assert_eq!(differing(&platform, &[("argocd/a", "w", &[8]), ("argocd/b", "u", &[3])]).await, [""; 0]);
    platform.reset();
    assert!(equal(&platform, 0, &[]).await);
}

#[tokio::test]
async fn one_of_several_shards_is_not_compared() {
    let platform = start(Keep::default()).await;
    let body = json!({"shard": 0, "shards": 2, "applications": 0, "entities": 0, "digest": digest(&[])});
    assert_eq!(ask(&platform, "digest", &body).await, (204, Value::Null));
    let beside = json!({"shards": 2, "own": [1], "after": "", "upto": null, "known": []});
    assert_eq!(ask(&platform, "digest/others", &beside).await, (204, Value::Null));
    assert_eq!(ask(&platform, "digest", &json!({})).await.0, 400);
    assert_eq!(ask(&platform, "digest/others", &json!({})).await.0, 400);
    assert_eq!(ask(&platform, "digest/applications", &json!([])).await.0, 400);
    assert_eq!(platform.comparisons(), Comparisons { shards: 1, applications: 0, others: 1 });
    let url = format!("{}/2.0/api/events/digest", platform.url());
    assert_eq!(client().post(url).body(body.to_string()).send().await.unwrap().status(), 401);
    assert_eq!(platform.totals().posts, 0, "digests are no reports");
}

#[tokio::test]
async fn what_is_forgotten_differs_until_it_is_reported_again() {
    let platform = start(Keep { last: true, reports: 0 }).await;
    post(&platform, &key(1), &application("a", 5)).await;
    post(&platform, &key(2), &config_map("a", 3)).await;
    let map = ResourceKey {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "a".to_owned(),
        name: "cm".to_owned(),
    };
    assert!(platform.forget("argocd", "a", Some(&map)));
    assert!(!platform.forget("argocd", "a", Some(&map)));
    assert_eq!(platform.last().len(), 1);
    assert_eq!(differing(&platform, &[("argocd/a", "u", &[1, 2])]).await, ["argocd/a"]);
    // Under the same key: it is no duplicate of what was lost.
    post(&platform, &key(2), &config_map("a", 3)).await;
    assert_eq!(platform.totals().duplicates, 0);
    assert!(equal(&platform, 1, &[1, 2]).await);
    assert!(platform.forget("argocd", "a", None));
    assert!(!platform.forget("argocd", "a", None));
    assert_eq!(platform.last().len(), 0);
    assert!(equal(&platform, 0, &[]).await);
    assert_eq!(platform.comparisons(), Comparisons { shards: 2, applications: 1, others: 0 });
}

#[tokio::test]
async fn what_is_restored_is_held_beside_what_is_known_until_it_ends_again() {
    let platform = start(Keep { last: true, reports: 0 }).await;
    post(&platform, &key(1), &of_life("a", "u", false)).await;
    post(&platform, &key(2), &of_life("b", "v", false)).await;
    let backup = platform.backup();
    let others = async |after: &str, upto: Option<&str>, known: &[&str]| {
        let body = json!({"shards": 2, "own": [0, 1], "after": after, "upto": upto, "known": known});
        let (status, answer) = ask(&platform, "digest/others", &body).await;
        assert_eq!(status, 200);
        let names = answer["others"].as_array().unwrap().iter();
        names
            .map(|one| format!("{} {}", one["key"].as_str().unwrap(), one["uid"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let (a, b) = ("argocd/a u", "argocd/b v");
    assert_eq!(others("", None, &[]).await, [a, b]);
    assert_eq!(others("argocd/a", None, &[]).await, [b]);
    assert_eq!(others("", Some("argocd/a"), &[]).await, [a]);
    assert_eq!(others("", None, &["argocd/a"]).await, [b]);
    let end = of_life("a", "u", true);
    post(&platform, &key(3), &end).await;
    assert_eq!(others("", None, &[]).await, [b]);
    platform.restore(backup);
    assert_eq!(others("", None, &[]).await, [a, b]);
    assert_eq!(platform.last().len(), 2);
    // Under the same key: it is no duplicate of what was lost.
    post(&platform, &key(3), &end).await;
    assert_eq!(others("", None, &[]).await, [b]);
    assert_eq!((platform.totals().duplicates, platform.totals().posts), (0, 4));
    assert_eq!(platform.comparisons(), Comparisons { shards: 0, applications: 0, others: 7 });
}

#[tokio::test]
async fn comparing_fails_as_it_is_told() {
    let platform = start(Keep::default()).await;
    let refused = |status| Rule::always(Fault::Status { status, retry_after: None }).times(1);
    platform.faults().add(refused(501).on("digest"));
    platform.faults().add(refused(503).on("differing"));
    let shard = json!({"shards": 1, "applications": 0, "entities": 0, "digest": digest(&[])});
    let none = json!({"applications": []});
    assert_eq!(ask(&platform, "digest", &shard).await.0, 501);
    assert_eq!(ask(&platform, "digest/applications", &none).await.0, 503);
    assert_eq!(ask(&platform, "digest", &shard).await.0, 200);
    assert_eq!(ask(&platform, "digest/applications", &none).await.0, 200);
}
