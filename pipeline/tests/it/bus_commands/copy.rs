//! `ledger copy`: what one process remembers becomes what replicas share.

use std::num::NonZeroU32;

use loadtest::nats::NatsServer;
use pipeline_bus::jetstream::{Expect, LEDGER};
use pipeline_ledger::{BucketOptions, Ledger};
use pipeline_ownership::sharding::Sharding;
use pipeline_redact::RedactionKey;
use serde_json::{Value, json};

use super::connected;
use crate::ask::{ask, reported};
use crate::runtime::SOON;

#[tokio::test]
async fn the_ledger_of_a_process_that_ended_goes_into_the_bucket_until_a_replica_claims_it() {
    let server = NatsServer::start().await.unwrap();
    let url = server.url();
    let (simulation, runtime) = reported(&["shop", "web", "pay"]).await;
    let file = simulation.directory().join("state/reporter-ledger.redb").display().to_string();
    let copy = ["ledger", "copy", "--from", &file, "--bus", &url];
    let said = |code: i32, out: &str, error: &str| (Some(code), out.to_owned(), error.to_owned());

    let held = format!(
        "gitops-runtime: another process holds the ledger file {file}: one process writes a ledger, so stop the other one \
         or give this one a file of its own\n"
    );
    assert_eq!(ask(&simulation, &copy).await, said(1, "", &held));
    runtime.stop().await;

    let elsewhere = ["--set", "platform.url=http://127.0.0.1:1"];
    let nothing = format!(
        "gitops-runtime: {file} remembers nothing of this cluster and receiver: give the settings that it was written \
         with\n"
    );
    assert_eq!(ask(&simulation, &[&copy[..], &elsewhere].concat()).await, said(1, "", &nothing));

    let copied = "copied: 3 applications, 0 journaled, 0 parked, in 32 shards\n";
    assert_eq!(ask(&simulation, &copy).await, said(0, copied, ""));
    let (code, again, _) = ask(&simulation, &[&copy[..], &["--json"]].concat()).await;
    let again: Value = serde_json::from_str(&again).unwrap();
    let shown = json!({"shards": 32, "records": 3, "journal": 0, "parked": 0});
    assert_eq!((code, again), (Some(0), shown), "a copy that was interrupted is made again");

    let bucket = connected(&server).await.bucket(LEDGER);
    let beside = simulation.directory().join("state/redaction.key");
    let key = RedactionKey::load_or_create(&beside).unwrap();
    let (shared, sequence) = bucket.get("redaction").await.unwrap().unwrap();
    assert_eq!(shared, key.as_bytes(), "secrets go on under the same digests");
    let other = vec![7_u8; 32];
    bucket.put("redaction", other.into(), Expect::Last(sequence)).await.unwrap();
    let another = format!(
        "gitops-runtime: the ledger was copied, and the bucket holds another redaction key: set redaction.keyFile of all \
         replicas to {}, or what has secrets is reported again\n",
        beside.display()
    );
    assert_eq!(ask(&simulation, &copy).await, said(1, "", &another));
    let given = format!("redaction.keyFile={}", beside.display());
    assert_eq!(ask(&simulation, &[&copy[..], &["--set", &given]].concat()).await, said(0, copied, ""));

    let claims = bucket.load(&["claim.>".to_owned()], None, SOON).await.unwrap();
    assert_eq!(claims.len(), 32);
    let sink = claims[0].key.split('.').nth(1).unwrap().to_owned();
    let sharding = Sharding::Jump { shards: NonZeroU32::new(32).unwrap() };
    let ledger = Ledger::in_bucket(bucket, BucketOptions::new(sink, sharding)).unwrap();
    let mut known = 0;
    for shard in 0..32 {
        let claimed = ledger.claim(shard, 7).await.unwrap();
        assert!(!claimed.new, "shard {shard}");
        known += claimed.records;
    }
    assert_eq!(known, 3);
    ledger.close().await.unwrap();
    let taken = format!(
        "gitops-runtime: copy {file}: the bucket holds a ledger already: shard 0 was claimed by a running replica; remove the \
         bucket, or leave the file's ledger behind\n"
    );
    assert_eq!(ask(&simulation, &copy).await, said(1, "", &taken));
}

#[tokio::test]
async fn only_the_file_of_a_ledger_is_copied_and_no_other_touched() {
    let server = NatsServer::start().await.unwrap();
    let url = server.url();
    let directory = tempfile::tempdir().unwrap();
    let simulation = crate::told::world(|_| {}).await;
    simulation.environment(&json!({})).unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let copy = |from: String, more: &'static [&'static str]| {
        let (url, simulation) = (&url, &simulation);
        async move {
            let arguments = [&["ledger", "copy", "--from", &from, "--bus", url], more].concat();
            let (code, out, error) = ask(simulation, &arguments).await;
            assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
            error
        }
    };
    let other = path("settings.yaml");
    for content in ["log: {level: info}\n", "", "re"] {
        std::fs::write(&other, content).unwrap();
        let refused = format!("gitops-runtime: {other} is not the file of a ledger\n");
        assert_eq!(copy(other.clone(), &[]).await, refused);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), content);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let nowhere = path("nowhere.redb");
    let refused = format!("gitops-runtime: read {nowhere}: No such file or directory (os error 2)\n");
    assert_eq!(copy(nowhere, &[]).await, refused);

    // It has the look of one, and is damaged.
    std::fs::write(&other, b"redb\x1a\x0a\xa9\x0d\x0a").unwrap();
    let damaged = copy(other.clone(), &[]).await;
    let said = format!("gitops-runtime: {other} is damaged: it was set aside as {other}.corrupt-");
    assert!(damaged.contains(&said) && damaged.ends_with(", and nothing was copied\n"), "{damaged}");

    let alone = copy(other.clone(), &["--set", "reporter.sharding.shard=all"]).await;
    let said = "gitops-runtime: with these settings the ledger is kept in no bucket: set reporter.sharding.shard to leases, or \
                reporter.ledger.storage to bucket\n";
    assert_eq!(alone, said);
    let bucket = connected(&server).await.bucket(LEDGER);
    assert_eq!(bucket.show().await.unwrap(), None, "no refusal makes anything");
}
