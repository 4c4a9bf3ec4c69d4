//! Every form of body, keys, epochs, batches, comparisons, and what is read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stages_platform_store::{Condition, Selection, View};

use crate::support::{Platform, config, gzip, refused, start, taken};

pub(crate) fn application(uid: &str, version: u32) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd", "uid": uid, "resourceVersion": version.to_string()},
        "status": {
            "sync": {"status": "OutOfSync", "revision": "abc"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"}],
            "operationState": {
                "phase": "Succeeded", "startedAt": "2026-11-21T11:00:00Z", "finishedAt": "2026-11-21T11:00:05Z",
                "operation": {"initiatedBy": {"username": "ada"}}, "syncResult": {"revision": "abc"},
            },
        },
    })
}

fn deployment(version: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d", "resourceVersion": version.to_string()},
    })
}

pub(crate) fn event(object: &Value, at: &str) -> Value {
    let source = json!({"appName": "shop", "appNamespace": "argocd", "syncStatus": "Synced", "healthStatus": "Healthy"});
    let object = STANDARD.encode(object.to_string());
    json!({"data": {"timestamp": format!("2026-11-21T12:00:{at}.000Z"), "object": object, "source": source}})
}

/// Kind, version and sync of each entry of the timeline of `shop`, the oldest first, and which is the state.
async fn told(platform: &Platform) -> Vec<(String, i64, Option<String>, bool)> {
    let all = platform.timeline(("argocd", "shop")).await;
    let kind = |resource: Option<stages_platform_store::ResourceName>| {
        resource.map_or("app".to_owned(), |it| it.kind)
    };
    let one = all.into_iter().rev();
    one.map(|one| (kind(one.resource), one.version.unwrap_or(-1), one.sync, one.current)).collect()
}

#[tokio::test]
async fn every_form_of_body_is_taken() {
    let platform = start(config()).await;
    let token = platform.token.clone();
    let bearer = format!("bEARER {token}");
    assert_eq!(platform.report(&event(&application("u", 1), "01")).await, taken());
    // Neither gzip nor base64, and what an end has beside it.
    let plain = json!({"data": {"object": deployment(2)}}).to_string();
    assert_eq!(platform.post("/2.0/api/events", &[("authorization", &bearer)], plain).await, taken());
    assert_eq!(platform.report(&event(&deployment(3), "03")).await, taken());
    // Of a reporter that knows objects alone: an older one, and then a newer one.
    for version in [1, 4] {
        assert_eq!(platform.report(&json!({"data": {"object": deployment(version)}})).await, taken());
    }
    let alone = |manifest: &Value| {
        json!({
            "timestamp": "2026-11-21T12:00:05.000Z", "actualManifest": manifest.to_string(), "desiredManifest": "",
            "source": {"appName": "shop", "appNamespace": "argocd", "syncStatus": "OutOfSync"},
        })
    };
    for (path, manifest) in [("resources", deployment(5)), ("applications", application("u", 6))] {
        let body = gzip(alone(&manifest).to_string().as_bytes());
        let headers = [("authorization", &*token), ("content-encoding", "gzip")];
        assert_eq!(platform.post(&format!("/2.0/api/{path}"), &headers, body).await, taken());
    }
    let mut ended = event(&application("u", 7), "07");
    ended["data"]["deleted"] = json!(true);
    assert_eq!(platform.report(&ended).await, taken());
    let (synced, out) = (Some("Synced".to_owned()), Some("OutOfSync".to_owned()));
    let expected = [
        ("app".to_owned(), 1, synced.clone(), false),
        ("Deployment".to_owned(), 3, synced.clone(), false),
        ("Deployment".to_owned(), 1, synced.clone(), false),
        ("Deployment".to_owned(), 4, synced.clone(), false),
        ("Deployment".to_owned(), 5, out.clone(), true),
        ("app".to_owned(), 6, out, false),
        ("app".to_owned(), 7, synced, true),
    ];
    assert_eq!(told(&platform).await, expected);

    let ignored = [("event-payload", "{\"id\":\"1\"}"), ("error", "\"it broke\"")];
    for (path, body) in ignored {
        let headers = [("authorization", &*token)];
        assert_eq!(platform.post(&format!("/2.0/api/events/{path}"), &headers, body).await, taken());
    }
    let page = platform.get("/api/v1/applications").await.body;
    let shown = json!({
        "namespace": "argocd", "name": "shop", "uid": "u", "sync": "Synced", "health": "Healthy", "healthMessage": null,
        "revision": "abc", "deleted": true, "at": "2026-11-21T12:00:07.000Z",
    });
    assert_eq!(page, json!({"runtime": "prod", "applications": [shown], "next": null}));
    let page = platform.get("/api/v1/applications/argocd/shop/timeline?limit=2").await.body;
    assert_eq!(page["transitions"].as_array().unwrap().len(), 2);
    assert_eq!(page["transitions"][0]["at"], "2026-11-21T12:00:07.000Z");
    let rest = platform
        .get(&format!("/api/v1/applications/argocd/shop/timeline?before={}", page["next"]))
        .await
        .body;
    assert_eq!(rest["transitions"].as_array().unwrap().len(), 5);
    let deployment = json!({
        "startedAt": "2026-11-21T11:00:00.000Z", "phase": "Succeeded", "revision": "abc", "initiatedBy": "ada",
        "commitAuthor": "", "ended": true, "changes": [],
    });
    assert_eq!(page["deployments"], json!([deployment]));
}

/// Argo CD reads a Rollout later than it is watched, and not at all while its status alone changes.
#[tokio::test]
async fn what_is_said_of_an_object_that_was_told_of_sooner_is_said_of_its_state() {
    let platform = start(config()).await;
    let rollout = |version: u32, phase: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "r", "resourceVersion": version.to_string()},
            "status": {"phase": phase},
        })
    };
    let watched = async |version: u32, phase: &str| {
        let body = json!({"data": {"object": rollout(version, phase)}});
        assert_eq!(platform.report(&body).await, taken());
    };
    let of_application = async |version: u32, sync: &str, headers: &[(&str, &str)]| {
        let mut body = event(&rollout(version, "Progressing"), "02");
        body["data"]["source"]["syncStatus"] = sync.into();
        body["data"]["source"]["healthStatus"] = "Progressing".into();
        assert_eq!(platform.report_with(&body, headers).await, taken());
    };
    let state = async || {
        let all = platform.timeline(("argocd", "shop")).await;
        let one = all.into_iter().find(|one| one.current).unwrap();
        (one.version, one.sync, one.health)
    };
    let is = |version: i64, sync: &str, health: &str| {
        (Some(version), Some(sync.to_owned()), Some(health.to_owned()))
    };
    of_application(3, "OutOfSync", &[("idempotency-key", "a")]).await;
    assert_eq!(state().await, is(3, "OutOfSync", "Progressing"));
    watched(9, "Healthy").await;
    assert_eq!(state().await, is(9, "OutOfSync", "Healthy"));
    for key in ["b", "c"] {
        of_application(7, "Synced", &[("idempotency-key", key)]).await;
        assert_eq!(state().await, is(9, "Synced", "Healthy"), "its object is older, and its sync is not");
    }
    watched(10, "Paused").await;
    assert_eq!(state().await, is(10, "Synced", "Suspended"), "what the application says of it stays");
    // Of whoever sends no keys nobody knows what came first.
    of_application(8, "OutOfSync", &[]).await;
    assert_eq!(state().await, is(10, "Synced", "Suspended"));
}

#[tokio::test]
async fn a_repeat_is_answered_as_taken_and_kept_once() {
    let platform = start(config()).await;
    let first = event(&application("u", 1), "01");
    for _ in 0..3 {
        assert_eq!(platform.report(&first).await, taken(), "the body is its key");
    }
    for version in [2, 3] {
        let body = event(&application("u", version), "02");
        assert_eq!(platform.report_with(&body, &[("idempotency-key", "k")]).await, taken());
    }
    let told = told(&platform).await;
    assert_eq!(told.iter().map(|(_, version, ..)| *version).collect::<Vec<_>>(), [1, 2]);
    let again = platform.timeline(("argocd", "shop")).await;
    assert!(again.iter().all(|one| one.reports == 1), "{again:?}");
    let other = stages_platform_store::Place::Sqlite(platform.folder.path().join("platform.db"));
    let other = stages_platform_store::create_token(&other, "other").await.unwrap();
    let other = pipeline_core::ExposeSecret::expose_secret(&other).to_owned();
    let headers = [("authorization", &*other), ("idempotency-key", "k")];
    assert_eq!(platform.post("/2.0/api/events", &headers, first.to_string()).await, taken());
    let of = platform.store.runtime(&other.into()).await.unwrap().unwrap();
    assert_eq!(platform.store.entities(of.id).await.unwrap().len(), 1, "a key is of one runtime");
}

#[tokio::test]
async fn a_batch_is_answered_report_by_report() {
    let platform = start(config()).await;
    let data = |value: Value| value["data"].clone();
    let body = json!({"reports": [
        {"idempotencyKey": "a", "fencingEpoch": 7, "traceparent": "00-1-2-01", "data": data(event(&application("u", 1), "01"))},
        {"idempotencyKey": "b", "fencingEpoch": 6, "data": data(event(&deployment(1), "01"))},
        {"idempotencyKey": "c", "data": {"timestamp": "x"}},
        {"idempotencyKey": "", "data": data(event(&deployment(1), "01"))},
        {"idempotencyKey": "d", "clusterEra": -1, "data": data(event(&deployment(1), "01"))},
    ]});
    let headers = [("authorization", &*platform.token), ("content-encoding", "gzip")];
    let reply = platform.post("/2.0/api/events/batch", &headers, gzip(body.to_string().as_bytes())).await;
    let outdated = "a newer owner has reported of this application: the Fencing-Epoch is outdated";
    let expected = json!({"results": [
        {"status": 200},
        {"status": 412, "message": outdated},
        {"status": 400, "message": "the report has no object"},
        {"status": 400, "message": "the Idempotency-Key must be text of at most 256 bytes"},
        {"status": 400, "message": "the Cluster-Era must be a whole number"},
    ]});
    assert_eq!((reply.status, reply.body), (200, expected));
    assert_eq!(told(&platform).await.len(), 1);
    let late = event(&application("u", 2), "02");
    assert_eq!(platform.report_with(&late, &[("fencing-epoch", "6")]).await, refused(412, outdated));
    assert_eq!(platform.report_with(&late, &[("fencing-epoch", "8")]).await, taken());
}

#[tokio::test]
async fn what_a_restored_cluster_says_is_taken_for_newer_alone_and_in_a_batch() {
    let platform = start(config()).await;
    let versions = async || {
        let told = told(&platform).await;
        told.into_iter().filter(|(.., current)| *current).map(|(_, version, ..)| version).collect::<Vec<_>>()
    };
    let body = |version| event(&application("u", version), "01");
    assert_eq!(platform.report(&body(9)).await, taken());
    assert_eq!(platform.report(&body(4)).await, taken());
    assert_eq!(versions().await, [9], "it is late");
    assert_eq!(platform.report_with(&body(5), &[("cluster-era", "1")]).await, taken());
    assert_eq!(versions().await, [5]);
    let batch = json!({"reports": [{"idempotencyKey": "b", "clusterEra": 2, "data": body(3)["data"]}]});
    let headers = [("authorization", &*platform.token)];
    platform.post("/2.0/api/events/batch", &headers, batch.to_string()).await;
    assert_eq!(versions().await, [3]);
}

#[tokio::test]
async fn whoever_compares_learns_what_is_held() {
    let platform = start(config()).await;
    let key = |key: &str| u128::from_be_bytes(Sha256::digest(key)[..16].try_into().unwrap());
    for (body, name) in [(event(&application("u", 1), "01"), "app"), (event(&deployment(1), "01"), "web")] {
        assert_eq!(platform.report_with(&body, &[("idempotency-key", name)]).await, taken());
    }
    let ask = async |path: &str, body: Value| {
        let headers = [("authorization", &*platform.token)];
        let reply = platform.post(&format!("/2.0/api/events/{path}"), &headers, body.to_string()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body
    };
    let digest = format!("{:032x}", key("app") ^ key("web"));
    // In one of five shards, whichever way it is found, and in no other.
    let mut equal = 0;
    for shard in 0..5 {
        let body = json!({"ledger": "l", "shard": shard, "shards": 5, "applications": 1, "entities": 2, "digest": digest, "at": "2026-11-21T12:00:00Z"});
        equal += u32::from(ask("digest", body).await == json!({"equal": true}));
    }
    assert!((1..=2).contains(&equal), "{equal}");
    let whole =
        |digest: &str| json!({"shard": 0, "shards": 1, "applications": 1, "entities": 2, "digest": digest});
    assert_eq!(ask("digest", whole(&digest)).await, json!({"equal": true}));
    assert_eq!(ask("digest", whole(&"0".repeat(32))).await, json!({"equal": false}));
    let one = |key: &str, uid: &str| json!({"key": key, "uid": uid, "entities": 2, "digest": digest});
    let body = json!({"applications": [one("argocd/shop", "u"), one("argocd/none", "u"), one("odd", "u")]});
    assert_eq!(ask("digest/applications", body).await, json!({"differing": ["argocd/none", "odd"]}));
    let body = json!({"applications": [one("argocd/shop", "v")]});
    assert_eq!(ask("digest/applications", body).await, json!({"differing": ["argocd/shop"]}));
}

#[tokio::test]
async fn whoever_compares_learns_what_is_held_beside_what_it_knows() {
    let platform = start(config()).await;
    let of = |name: &str, uid: &str, version: u32| {
        let mut object = application(uid, version);
        object["metadata"]["name"] = name.into();
        object
    };
    let mut ended = of("ended", "e", 2);
    ended["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z".into();
    let objects = [of("a", "u1", 1), of("a-b", "u2", 1), of("ended", "e", 1), ended, of("z", "u3", 1)];
    for (number, object) in objects.iter().enumerate() {
        let key = number.to_string();
        let told = platform.report_with(&event(object, "01"), &[("idempotency-key", &key)]).await;
        assert_eq!(told, taken());
    }
    let ask = async |body: Value| {
        let headers = [("authorization", &*platform.token)];
        let reply = platform.post("/2.0/api/events/digest/others", &headers, body.to_string()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let others = reply.body["others"].as_array().unwrap().clone();
        let text = |held: &Value, part: &str| held[part].as_str().unwrap().to_owned();
        others.iter().map(|held| (text(held, "key"), text(held, "uid"))).collect::<Vec<_>>()
    };
    let held = |names: &[(&str, &str)]| -> Vec<(String, String)> {
        names.iter().map(|(name, uid)| (format!("argocd/{name}"), (*uid).to_owned())).collect()
    };
    let all = [("a", "u1"), ("a-b", "u2"), ("z", "u3")];
    assert_eq!(ask(json!({"shards": 1, "own": [0], "known": []})).await, held(&all));
    let known =
        json!({"shards": 1, "own": [0], "after": "", "upto": null, "known": ["argocd/a-b", "argocd/x"]});
    assert_eq!(ask(known).await, held(&[all[0], all[2]]));
    let range = json!({"shards": 1, "own": [0], "after": "argocd/a", "upto": "argocd/z", "known": []});
    assert_eq!(ask(range).await, held(&all[1..]), "after the one, up to the other");
    let before = json!({"shards": 1, "own": [0], "after": "argocd/a", "upto": "argocd/y", "known": []});
    assert_eq!(ask(before).await, held(&all[1..2]));
    // Each is in one of five shards, or in two: there are two ways to find it.
    let mut named = std::collections::BTreeMap::<_, u32>::new();
    for shard in 0..5 {
        for one in ask(json!({"shards": 5, "own": [shard], "known": []})).await {
            *named.entry(one).or_default() += 1;
        }
    }
    assert!(named.values().all(|times| (1..=2).contains(times)), "{named:?}");
    assert_eq!(named.into_keys().collect::<Vec<_>>(), held(&all));
    assert_eq!(ask(json!({"shards": 1, "own": [], "known": []})).await, held(&[]));
}

#[tokio::test]
async fn at_most_a_thousand_are_named_beside_what_is_known() {
    let platform = start(config()).await;
    let name = |number: usize| format!("app-{number:04}");
    for numbers in [0..600, 600..1_002] {
        let report = |number: usize| {
            let mut object = application("u", 1);
            object["metadata"]["name"] = name(number).into();
            json!({"idempotencyKey": number.to_string(), "data": event(&object, "01")["data"]})
        };
        let body = json!({"reports": numbers.map(report).collect::<Vec<_>>()}).to_string();
        let headers = [("authorization", &*platform.token), ("content-encoding", "gzip")];
        let reply = platform.post("/2.0/api/events/batch", &headers, gzip(body.as_bytes())).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let ask = async |after: &str| {
        let body = json!({"shards": 1, "own": [0], "after": after, "known": []}).to_string();
        let headers = [("authorization", &*platform.token)];
        let reply = platform.post("/2.0/api/events/digest/others", &headers, body).await;
        let others = reply.body["others"].as_array().unwrap().clone();
        others.iter().map(|held| held["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = ask("").await;
    assert_eq!((first.len(), &*first[0], &*first[999]), (1_000, "argocd/app-0000", "argocd/app-0999"));
    assert_eq!(ask(&first[999]).await, ["argocd/app-1000", "argocd/app-1001"]);
}

/// Objects are told by their lives and states: whichever reporter told them, and under whichever application.
#[tokio::test]
async fn whoever_compares_objects_learns_which_states_are_held() {
    let platform = start(config()).await;
    let rollout = |name: &str, version: u64, deleted: bool| {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version.to_string()},
        });
        let mut data = json!({"object": object});
        if deleted {
            data["deleted"] = json!(true);
        }
        json!({"data": data})
    };
    for body in [rollout("web", 7, false), rollout("gone", 8, false), rollout("gone", 9, true)] {
        assert_eq!(platform.report(&body).await, taken());
    }
    let one = |name: &str, uid: &str, version: &str| json!({"key": format!("rollout/shop/{name}@{version}"), "namespace": "shop", "name": name, "uid": uid, "resourceVersion": version});
    let asked = [
        one("web", "web", "0"),
        one("web", "web", "6"),
        one("web", "web", "7"),
        one("web", "web", "8"),
        one("web", "former", "5"),
        one("gone", "gone", "8"),
        one("none", "none", "1"),
        one("web", "web", "odd"),
    ];
    let headers = [("authorization", &*platform.token)];
    let body = json!({"objects": asked}).to_string();
    let reply = platform.post("/2.0/api/events/digest/objects", &headers, body).await;
    let differing =
        ["web@8", "web@5", "gone@8", "none@1", "web@odd"].map(|key| format!("rollout/shop/{key}"));
    assert_eq!((reply.status, reply.body), (200, json!({"differing": differing})));
}

#[tokio::test]
async fn a_clock_that_is_ahead_keeps_no_later_report_from_being_the_state() {
    let platform = start(config()).await;
    let at = |name: &str, timestamp: &str| {
        let mut body = event(&application("u", 1), "01");
        body["data"]["timestamp"] = timestamp.into();
        body["data"]["note"] = name.into();
        body
    };
    assert_eq!(platform.report(&at("first", "2999-01-01T00:00:00.000Z")).await, taken());
    let now = jiff::Timestamp::now().as_millisecond();
    assert!(platform.timeline(("argocd", "shop")).await[0].at <= now);
    assert_eq!(platform.report(&at("second", "")).await, taken());
    let all = platform.timeline(("argocd", "shop")).await;
    assert_eq!(all.iter().map(|one| one.current).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn what_owns_an_object_is_read_of_its_references_and_odd_ones_are_passed_over() {
    let platform = start(config()).await;
    platform.report(&event(&application("u", 1), "00")).await;
    let reference = |group: &str, name: &str, more: Value| {
        let mut all =
            json!({"apiVersion": format!("{group}/v1"), "kind": "ReplicaSet", "name": name, "uid": "o"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let controls = json!({"controller": true});
    let (first, other) = (reference("apps", "web-a", json!({})), reference("apps", "web-b", controls));
    let mut core = first.clone();
    core["apiVersion"] = "v1".into();
    let cases = [
        (json!([first]), "apps/ReplicaSet/web-a"),
        (json!([first, other]), "apps/ReplicaSet/web-b"),
        (json!([core]), "/ReplicaSet/web-a"),
        (json!([reference("apps", "a/b", json!({}))]), ""),
        (json!([reference("apps", &"x".repeat(254), json!({}))]), ""),
        (json!([reference("apps", "", json!({}))]), ""),
        (json!([7]), ""),
        (json!({}), ""),
        (json!(null), ""),
    ];
    for (number, (references, _)) in cases.iter().enumerate() {
        let metadata = json!({"name": format!("web-{number}"), "namespace": "shop", "uid": "p", "resourceVersion": "1", "ownerReferences": references});
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        let body =
            json!({"data": {"object": object, "application": {"name": "shop", "namespace": "argocd"}}});
        assert_eq!(platform.report(&body).await, taken(), "{references}");
    }
    let known = platform.shop().await;
    let all = platform.store.resources_at(known.id, None, None).await.unwrap();
    let owners: Vec<&str> = all.iter().filter(|one| one.name.kind == "Pod").map(|one| &*one.owner).collect();
    assert_eq!(owners, cases.each_ref().map(|(_, owner)| *owner));
}

#[tokio::test]
async fn an_object_alone_belongs_to_the_application_that_stands_beside_it() {
    let platform = start(config()).await;
    let owner = json!({"name": "shop", "namespace": "argocd", "project": "retail", "revision": "abc"});
    let rollout = |version: u32| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "r", "resourceVersion": version.to_string()},
        })
    };
    let alone = |version: u32| json!({"data": {"object": rollout(version), "application": owner}});
    assert_eq!(platform.report(&alone(1)).await, taken());
    // What others say of it stays where it is told by its object alone again.
    assert_eq!(platform.report(&event(&rollout(2), "02")).await, taken());
    assert_eq!(platform.report(&alone(3)).await, taken());
    let entry = |version, sync: Option<&str>, current| {
        ("Rollout".to_owned(), version, sync.map(str::to_owned), current)
    };
    let expected = [entry(1, None, false), entry(2, Some("Synced"), false), entry(3, Some("Synced"), true)];
    assert_eq!(told(&platform).await, expected);
}

#[tokio::test]
async fn what_is_null_odd_or_repeated_in_an_object_counts_as_little_as_if_it_were_not_there() {
    let platform = start(config()).await;
    let headers = [("authorization", &*platform.token)];
    // Of fields of one name the last counts, as it does for whoever else reads JSON.
    let metadata = r#"{"name": "other", "name": "shop", "namespace": "argocd", "uid": null, "resourceVersion": 7,
        "creationTimestamp": null, "labels": null, "annotations": 7, "ownerReferences": {}}"#;
    let status = r#"{"health": null, "sync": {"status": "Old"}, "sync": {"status": "Synced"}, "resources": null,
        "conditions": null, "operationState": null, "summary": {"images": null}}"#;
    let spec = r#"{"project": null, "destination": {"server": "https://eu", "namespace": null}, "source": 7, "sources": null}"#;
    let object = format!(
        r#"{{"apiVersion": "argoproj.io/v1alpha1", "kind": "Odd", "kind": "Application", "metadata": {metadata}, "spec": {spec}, "status": {status}}}"#
    );
    let body = format!(
        r#"{{"data": {{"timestamp": "2026-11-21T12:00:01.000Z", "object": {object}, "source": null, "errors": null, "appVersions": null}}}}"#
    );
    assert_eq!(platform.post("/2.0/api/events", &headers, body).await, taken());
    assert_eq!(told(&platform).await, [("app".to_owned(), 7, Some("Synced".to_owned()), true)]);
    let known = platform.shop().await;
    assert_eq!(known.destination, ("https://eu".to_owned(), String::new()));
    // What stands within a hundred thousand brackets is no reason to fall.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!(
        r#"{{"data": {{"object": {{"kind": "ConfigMap", "metadata": {{"name": "deep"}}, "data": {deep}, "spec": {deep}, "status": {deep}}}}}}}"#
    );
    assert_eq!(platform.post("/2.0/api/events", &headers, body).await, taken());
    // What is no text is refused, and the sender is told.
    let odd = b"{\"data\": {\"object\": {\"kind\": \"A\xff\", \"metadata\": {\"name\": \"a\"}}}}".to_vec();
    assert_eq!(platform.post("/2.0/api/events", &headers, odd).await.status, 400);
    let odd = json!({"data": {"object": STANDARD.encode(b"{\"kind\": \"A\xff\"}")}});
    let said = "the report's object is neither JSON nor base64 of it";
    assert_eq!(platform.report(&odd).await, refused(400, said));
}

/// `app sync --dry-run` ends as well as any other operation, and nothing was deployed.
#[tokio::test]
async fn what_was_only_tried_is_no_deployment() {
    let platform = start(config()).await;
    let operated = |version: u32, began: &str, sync: Value| {
        let mut application = application("u", version);
        application["status"]["operationState"]["startedAt"] = began.into();
        application["status"]["operationState"]["operation"]["sync"] = sync;
        event(&application, &format!("{version:02}"))
    };
    for body in [
        operated(1, "2026-11-21T11:00:00Z", json!({"dryRun": true, "revision": "abc"})),
        operated(2, "2026-11-21T11:00:01Z", json!({"dryRun": false, "revision": "abc"})),
        operated(3, "2026-11-21T11:00:02Z", json!({"dryRun": true})),
    ] {
        assert_eq!(platform.report(&body).await, taken());
    }
    let deployments = platform.store.deployments(platform.runtime.id, ("argocd", "shop")).await.unwrap();
    let began: Vec<i64> = deployments.iter().map(|one| one.started_at % 60_000).collect();
    assert_eq!(began, [1_000]);
    let one = ("prod", "argocd", "shop");
    let seen = platform.store.visible_one(&View::ALL, one).await.unwrap().unwrap();
    assert_eq!(seen.phase, "Succeeded", "how its last operation stands is told all the same");
}

#[tokio::test]
async fn an_application_of_several_sources_is_at_the_revisions_of_all_and_found_by_each() {
    let platform = start(config()).await;
    let mut shop = application("u", 1);
    shop["status"]["sync"] =
        json!({"status": "Synced", "revision": "", "revisions": ["3f9c1e2a", "77e2c04b"]});
    assert_eq!(platform.report(&event(&shop, "01")).await, taken());
    let page = platform.get("/api/v1/applications").await.body;
    assert_eq!(page["applications"][0]["revision"], "3f9c1e2a,77e2c04b");
    for (commit, found) in [("3F9C", 1), ("77e2c04b", 1), ("e2c0", 0), (",77", 0)] {
        let conditions = vec![Condition::Commit(commit.to_owned())];
        let selection = Selection { conditions, ..Selection::default() };
        let page = platform.store.list(&View::ALL, &selection, 0, 9).await.unwrap();
        assert_eq!(page.matching, found, "{commit}");
    }
}

/// Argo CD says of one that failed and is tried again that it runs, and when that try ended.
#[tokio::test]
async fn an_operation_that_is_tried_again_is_one_deployment_that_ends_as_its_last_try_does() {
    let platform = start(config()).await;
    let tries = [
        ("Running", None),
        ("Running", Some("2026-11-21T11:00:05Z")),
        ("Running", None),
        ("Succeeded", Some("2026-11-21T11:00:09Z")),
    ];
    for (version, (phase, finished)) in (1..).zip(tries) {
        let mut object = application("u", version);
        let operation = &mut object["status"]["operationState"];
        operation["phase"] = json!(phase);
        operation["finishedAt"] = json!(finished);
        assert_eq!(platform.report(&event(&object, &format!("{version:02}"))).await, taken());
    }
    let all = platform.store.deployments(platform.runtime.id, ("argocd", "shop")).await.unwrap();
    let told: Vec<_> = all.iter().map(|one| one.phase.as_str()).collect();
    assert_eq!(told, ["Succeeded"]);
}
