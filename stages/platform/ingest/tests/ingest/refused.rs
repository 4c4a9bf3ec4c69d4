//! Every refusal, with its exact text, what it is counted under, and nothing of what was sent in it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::forms::event;
use crate::support::{Platform, Reply, config, gzip, refused, start, taken};

const CANARY: &str = "canary-3f9c51";

fn object(version: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": version.to_string()}})
}

/// Headers, a body, and status and text of the refusal.
type Wrong<'a> = (&'a [(&'a str, &'a str)], Vec<u8>, u16, &'a str);

fn counted(platform: &Platform, reason: &str) -> u64 {
    let families = platform.registry.gather();
    let family =
        families.iter().find(|family| family.name() == "gitops_runtime_platform_refused_total").unwrap();
    let of =
        |metric: &&prometheus::proto::Metric| metric.get_label().iter().any(|label| label.value() == reason);
    family.get_metric().iter().find(of).map_or(0, |metric| metric.get_counter().get_value() as u64)
}

#[tokio::test]
async fn each_refusal_has_its_text_and_is_counted() {
    let platform = start(config()).await;
    let token = platform.token.clone();
    let no_token = "the request needs the token of a runtime, in the header Authorization";
    let unknown =
        "this token is not known: make one with `gitops-runtime platform token create --runtime NAME`";
    let good = event(&object(1), "01").to_string();
    for (headers, text) in [
        (vec![], no_token),
        (vec![("authorization", "Bearer ")], no_token),
        (vec![("authorization", CANARY)], unknown),
        (vec![("authorization", &*token.replace("gort_", "gort_0"))], unknown),
    ] {
        for path in
            ["events", "events/batch", "events/changes", "events/digest", "events/error", "applications"]
        {
            let reply = platform.post(&format!("/2.0/api/{path}"), &headers, good.clone()).await;
            assert_eq!(reply, refused(401, text), "{path}");
        }
        let reply = platform.client.get(platform.url("/api/v1/applications")).send().await.unwrap();
        assert_eq!(reply.status(), 401);
        assert_eq!(reply.headers()["www-authenticate"], "Bearer");
    }
    assert_eq!(counted(&platform, "unauthorized"), 28);

    let not_json =
        |line, column| format!("the body is not JSON that holds a report, at line {line} column {column}");
    let (no_object, odd) =
        ("the report has no object", "the report's object is neither JSON nor base64 of it");
    let no_name = "the report's object has no kind or no name";
    let large = "x".repeat((1 << 20) + 1);
    let bomb = gzip(&vec![b' '; (4 << 20) + 1]);
    let bodies: [Wrong<'_>; 17] = [
        (&[], CANARY.into(), 400, &not_json(1, 1)),
        (&[], b"{}".to_vec(), 400, &not_json(1, 2)),
        (&[], format!("{{\"data\": \"{CANARY}\"}}").into(), 400, &not_json(1, 24)),
        (&[], br#"{"data": {}}"#.to_vec(), 400, no_object),
        (&[], format!(r#"{{"data": {{"object": "{CANARY}"}}}}"#).into(), 400, odd),
        (&[], br#"{"data": {"object": 7}}"#.to_vec(), 400, odd),
        (&[], br#"{"data": {"object": "e30="}}"#.to_vec(), 400, no_name),
        (&[], br#"{"data": {"object": {"kind": "A"}}}"#.to_vec(), 400, no_name),
        (&[("content-encoding", "br")], b"{}".to_vec(), 415, "the Content-Encoding must be gzip, or none"),
        (
            &[("content-encoding", "gzip")],
            b"{}".to_vec(),
            400,
            "the body is not gzip, as its Content-Encoding says",
        ),
        (&[("content-encoding", "gzip")], large.into(), 413, "the body is larger than 1048576 bytes"),
        (&[("content-encoding", "gzip")], bomb, 413, "the body unpacks to more than 4194304 bytes"),
        (
            &[("idempotency-key", "")],
            good.clone().into(),
            400,
            "the Idempotency-Key must be text of at most 256 bytes",
        ),
        (&[("fencing-epoch", "-1")], good.clone().into(), 400, "the Fencing-Epoch must be a whole number"),
        (&[("fencing-epoch", "new")], good.clone().into(), 400, "the Fencing-Epoch must be a whole number"),
        (&[("fencing-epoch", "")], good.clone().into(), 400, "the Fencing-Epoch must be a whole number"),
        (&[("cluster-era", "-1")], good.clone().into(), 400, "the Cluster-Era must be a whole number"),
    ];
    for (headers, body, status, text) in bodies {
        let headers = [&[("authorization", &*token)], headers].concat();
        let reply = platform.post("/2.0/api/events", &headers, body).await;
        assert_eq!(reply, refused(status, text));
        assert!(!reply.body.to_string().contains(CANARY));
    }
    assert_eq!((counted(&platform, "malformed"), counted(&platform, "too_large")), (15, 2));
    let headers = [("authorization", &*token)];
    let many = json!({"reports": vec![json!({"idempotencyKey": "k", "data": {}}); 1_001]}).to_string();
    let of_shards = |shards: u32, known: u32| {
        let known: Vec<_> = (0..known).map(|number| format!("argocd/app-{number}")).collect();
        json!({"shards": shards, "own": [0], "known": known}).to_string()
    };
    for (path, body, status, text) in [
        ("events/batch", CANARY.to_owned(), 400, "the body is no batch of reports, at line 1 column 1"),
        ("events/batch", many, 413, "a batch may have at most 1000 reports"),
        ("events/digest", "{}".to_owned(), 400, "the body is no digest to compare"),
        ("events/digest", r#"{"shard": 0, "shards": 0}"#.to_owned(), 400, "the body is no digest to compare"),
        ("events/digest/applications", "[]".to_owned(), 400, "the body is no digest to compare"),
        ("events/digest/objects", "[]".to_owned(), 400, "the body is no digest to compare"),
        ("events/digest/others", "{}".to_owned(), 400, "the body is no digest to compare"),
        ("events/digest/others", of_shards(0, 0), 400, "the body is no digest to compare"),
        ("events/digest/others", of_shards(1, 1_001), 400, "the body is no digest to compare"),
        ("resources", r#"{"actualManifest": ""}"#.to_owned(), 400, no_object),
        ("applications", r#"{"actualManifest": "kind: A"}"#.to_owned(), 400, odd),
    ] {
        let reply = platform.post(&format!("/2.0/api/{path}"), &headers, body).await;
        assert_eq!(reply, refused(status, text), "{path}");
    }
    let nobody = "there is no such application, or nothing was reported of it";
    assert_eq!(platform.get("/api/v1/applications/a/b/timeline").await, refused(404, nobody));
    assert_eq!(
        platform.get("/api/v1/applications?limit=x").await,
        refused(400, "`limit` must be a whole number")
    );
    let before = platform.get("/api/v1/applications/a/b/timeline?before=x").await;
    assert_eq!(before, refused(400, "`before` must be a whole number"));
    assert_eq!(platform.store.entities(platform.runtime.id).await.unwrap(), [], "nothing of it was kept");
    assert_eq!(platform.report(&event(&object(1), "01")).await, taken());
}

/// A request whose body does not come.
async fn hanging(platform: &Platform, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(platform.address).await.unwrap();
    let head = format!(
        "POST /2.0/api/events HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_flood_of_one_runtime_is_told_to_slow_down_and_another_is_served() {
    let platform = start(stages_platform_ingest::IngestConfig { runtime_requests: 3, ..config() }).await;
    let place = stages_platform_store::Place::Sqlite(platform.folder.path().join("platform.db"));
    let other = stages_platform_store::create_token(&place, "other").await.unwrap();
    let other = pipeline_core::ExposeSecret::expose_secret(&other).to_owned();
    let mut flood = Vec::new();
    let body = event(&object(1), "01");
    let message = "this runtime has 3 requests under way: fewer at a time are taken";
    let slow_down =
        Reply { status: 429, retry_after: Some("1".to_owned()), body: json!({"message": message}) };
    let answered = async |wanted: &Reply| {
        let reply = platform.report(&event(&object(2), "01")).await;
        assert!([200, 429].contains(&reply.status), "{reply:?}");
        reply == *wanted
    };
    // One that comes while the report is under way may be the fourth, and is refused itself.
    let full = async {
        while flood.len() < 3 || !answered(&slow_down).await {
            flood.push(hanging(&platform, &platform.token).await);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), full).await.unwrap();
    assert!(counted(&platform, "quota") > 0);
    let headers = [("authorization", &*other)];
    assert_eq!(platform.post("/2.0/api/events", &headers, body.to_string()).await, taken());
    drop(flood);
    let room = async {
        while !answered(&taken()).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), room).await.unwrap();
}

/// As a proxy does that passes on what it has: it reads the answer when all of it is sent.
#[tokio::test]
async fn whoever_sends_all_of_a_body_before_they_read_is_told_why_it_is_refused() {
    let platform = start(stages_platform_ingest::IngestConfig { max_unpacked: 32 << 20, ..config() }).await;
    for (token, status, said) in [
        (CANARY, 401, "this token is not known"),
        (&*platform.token, 413, "the body is larger than 1048576 bytes"),
    ] {
        // More than the system keeps of it on the way.
        let body = vec![b'x'; 24 << 20];
        let head = format!(
            "POST /2.0/api/events HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Encoding: gzip\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(platform.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(said), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let platform =
        start(stages_platform_ingest::IngestConfig { body_timeout: Duration::from_secs(1), ..config() })
            .await;
    let mut stream = hanging(&platform, &platform.token).await;
    let mut answer = vec![0; 4096];
    let read =
        tokio::time::timeout(Duration::from_secs(120), stream.read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains(r#"{"message":"the body did not arrive within 1 seconds"}"#), "{answer}");
    assert_eq!(counted(&platform, "late"), 1);
}

#[tokio::test]
async fn a_store_that_is_gone_is_told_and_nothing_is_acknowledged() {
    let platform = start(config()).await;
    assert_eq!(platform.report(&event(&object(1), "01")).await, taken());
    // Its tables are taken away under it.
    let url = format!("sqlite://{}", platform.folder.path().join("platform.db").display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    sqlx::query("DROP TABLE blobs").execute(&pool).await.unwrap();
    let message = "nothing was kept: the store cannot be written now, and the log of the platform says why";
    let away = Reply { status: 503, retry_after: Some("5".to_owned()), body: json!({"message": message}) };
    assert_eq!(platform.report(&event(&object(2), "02")).await, away);
    assert_eq!(counted(&platform, "store"), 1);
    sqlx::query("DROP TABLE tokens").execute(&pool).await.unwrap();
    let message = "the store cannot be read now: the log of the platform says why";
    let away = Reply { status: 503, retry_after: Some("5".to_owned()), body: json!({"message": message}) };
    let headers =
        [("authorization", "gort_0123456789012345678901234567890123456789012345678901234567890123")];
    assert_eq!(platform.post("/2.0/api/events", &headers, "{}").await, away);
    pool.close().await;
}

#[tokio::test]
async fn what_is_too_long_to_be_kept_is_refused_by_its_field_and_the_rest_of_a_batch_is_kept() {
    let platform = start(config()).await;
    let long = |length: usize| "x".repeat(length);
    let with = |pointer: &str, value: Value| {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "uid": "u", "resourceVersion": "1", "labels": {}},
            "spec": {}, "status": {"sync": {}, "health": {}, "summary": {}, "operationState": {"startedAt": "2026-11-21T11:00:00Z"}},
        });
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        let mut body = event(&object, "01");
        body["data"]["source"] = json!({});
        body
    };
    let in_source = |name: &str, length| {
        let mut body = event(&object(1), "01");
        body["data"]["source"][name] = long(length).into();
        body
    };
    let many = |count: usize| (0..count).map(|number| (number.to_string(), json!(1))).collect::<Value>();
    let (mut fields, mut sources) = (event(&object(1), "01"), event(&object(1), "01"));
    fields["data"]["more"] = json!(1);
    for (name, value) in many(1_000).as_object().unwrap() {
        fields["data"][name] = value.clone();
    }
    sources["data"]["source"] = many(1_001);
    let mut resource = object(1);
    resource["metadata"]["namespace"] = long(254).into();
    let mut version = object(1);
    version["apiVersion"] = long(513).into();
    let listed = json!(vec![json!({}); 65_537]);
    let state = "status.operationState";
    let cases = [
        (with("/metadata/namespace", long(254).into()), "application's namespace".to_owned(), 253, "bytes"),
        (with("/metadata/name", long(1_025).into()), "application's name".to_owned(), 1_024, "bytes"),
        (version, "apiVersion".to_owned(), 512, "bytes"),
        (resource, "metadata.namespace".to_owned(), 253, "bytes"),
    ]
    .map(|(body, field, most, of)| {
        let body = if body.get("data").is_some() { body } else { event(&body, "01") };
        (body, field, most, of)
    });
    let more = [
        (with("/metadata/uid", long(254).into()), "metadata.uid".to_owned(), 253, "bytes"),
        (with("/status/sync/status", long(254).into()), "sync status".to_owned(), 253, "bytes"),
        (in_source("syncStatus", 254), "sync status".to_owned(), 253, "bytes"),
        (in_source("healthStatus", 254), "health status".to_owned(), 253, "bytes"),
        (in_source("revision", 65_537), "revision".to_owned(), 65_536, "bytes"),
        (in_source("appName", 1_025), "application's name".to_owned(), 1_024, "bytes"),
        (
            with("/status/operationState/syncResult", json!({"revision": long(65_537)})),
            format!("{state}.syncResult"),
            65_536,
            "bytes",
        ),
        (with("/spec/project", long(254).into()), "spec.project".to_owned(), 253, "bytes"),
        (
            with("/spec/destination", json!({"server": long(1_025)})),
            "spec.destination".to_owned(),
            1_024,
            "bytes",
        ),
        (with("/spec/sources", json!([{"repoURL": long(4_097)}])), "spec.source".to_owned(), 4_096, "bytes"),
        (
            with("/status/summary/images", json!([long(1 << 20)])),
            "status.summary.images".to_owned(),
            1 << 20,
            "bytes",
        ),
        (with("/status/resources", listed), "status.resources".to_owned(), 65_536, "entries"),
        (fields, "data".to_owned(), 1_000, "entries"),
        (sources, "source".to_owned(), 1_000, "entries"),
    ];
    let mut batch = vec![json!({"idempotencyKey": "first", "data": event(&object(1), "01")["data"]})];
    let mut results = vec![json!({"status": 200})];
    for (number, (body, field, most, of)) in cases.into_iter().chain(more).enumerate() {
        let message = match of {
            "bytes" => format!("the report's {field} is longer than {most} bytes"),
            _ => format!("the report's {field} has more than {most} entries"),
        };
        assert_eq!(platform.report(&body).await, refused(400, &message));
        batch.push(json!({"idempotencyKey": number.to_string(), "data": body["data"]}));
        results.push(json!({"status": 400, "message": message}));
    }
    batch.push(json!({"idempotencyKey": "last", "data": event(&object(2), "02")["data"]}));
    results.push(json!({"status": 200}));
    let headers = [("authorization", &*platform.token), ("content-encoding", "gzip")];
    let body = json!({"reports": batch}).to_string();
    let reply = platform.post("/2.0/api/events/batch", &headers, gzip(body.as_bytes())).await;
    assert_eq!((reply.status, &reply.body["results"]), (200, &json!(results)));
    assert_eq!(platform.timeline(("argocd", "shop")).await.len(), 2, "those around it are kept");
}

/// A request that waits for a store that another holds, as often as it takes to see it within the time that a store waits.
#[tokio::test]
async fn what_waits_for_the_store_counts_when_its_sender_is_gone() {
    const BODY: usize = 1_500_000;
    let quota = stages_platform_ingest::IngestConfig { runtime_bytes: 4 << 20, ..config() };
    let platform = start(quota).await;
    let url = format!("sqlite://{}", platform.folder.path().join("platform.db").display());
    let large = |name: &str| {
        let mut body = event(&object(1), "01");
        body["data"]["padding"] = name.repeat(BODY).into();
        gzip(body.to_string().as_bytes())
    };
    let headers = [("authorization", &*platform.token), ("content-encoding", "gzip")];
    let slow_down = Reply {
        status: 429,
        retry_after: Some("1".to_owned()),
        body: json!({"message": "this runtime has 4194304 bytes under way: fewer at a time are taken"}),
    };
    let is_full = async || platform.post("/2.0/api/events", &headers, large("y")).await == slow_down;
    for _ in 0..20 {
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        let mut other = pool.acquire().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *other).await.unwrap();
        let begun = std::time::Instant::now();
        let request = axum::http::Request::post("/2.0/api/events")
            .header("authorization", &platform.token)
            .header("content-encoding", "gzip")
            .body(axum::body::Body::from(large("x")))
            .unwrap();
        let service = hyper_util::service::TowerToHyperService::new(platform.routes.clone());
        let mut sent = Box::pin(hyper::service::Service::call(&service, request));
        // What it holds, twice its size, leaves no room for another one.
        let came = tokio::select! {
            biased;
            _ = &mut sent => false,
            full = is_full() => full,
        };
        drop(sent);
        let counts = came && is_full().await;
        let in_time = begun.elapsed() < Duration::from_secs(8);
        sqlx::query("ROLLBACK").execute(&mut *other).await.unwrap();
        drop(other);
        pool.close().await;
        // It is kept, and makes room.
        let room = async {
            while platform.post("/2.0/api/events", &headers, large("z")).await != taken() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), room).await.expect("it makes room");
        // Where the other one was faster there was nothing to see.
        if came && in_time {
            assert!(counts, "what waits no longer counts when its sender is gone");
            return;
        }
    }
    panic!("what waits never counted");
}
