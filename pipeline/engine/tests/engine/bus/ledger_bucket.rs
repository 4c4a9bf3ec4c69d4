//! A bucket: compare-and-set, reading all of it, watching it, and losing it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_bus::jetstream::{
    Bucket, BucketShow, Change, Config, Entry, Expect, LEDGER, PutError, Watch, Watched,
};
use pipeline_bus::{BusError, Keep, Subject};

use crate::bus::ledger_world::until;
use crate::bus::world::{DEADLINE, SOURCE, config, connected, durable, soon, state};
use crate::server::{Server, client};

async fn bucket(server: &Server) -> Bucket {
    let bucket = connected(config(server)).await.bucket(LEDGER);
    bucket.ensure().await.unwrap();
    bucket
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn put(bucket: &Bucket, key: &str, value: &str) -> u64 {
    bucket.put(key, bytes(value), Expect::Anything).await.unwrap()
}

async fn load(bucket: &Bucket, filters: &[&str]) -> Vec<(String, String)> {
    let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
    let entries = bucket.load(&filters, None, DEADLINE).await.unwrap();
    let text = |entry: Entry| (entry.key, String::from_utf8(entry.value.to_vec()).unwrap());
    entries.into_iter().map(text).collect()
}

fn is_conflict(result: &Result<u64, PutError>) -> bool {
    matches!(result, Err(PutError::Conflict))
}

#[tokio::test]
async fn it_is_made_once_like_any_other_bucket() {
    let server = Server::start();
    let bus = connected(config(&server)).await;
    let bucket = bus.bucket(LEDGER);
    assert_eq!(
        bucket.check().await.unwrap()[0].to_string(),
        "bucket KV_gitops-runtime_ledger is absent, and should be present"
    );
    assert_eq!(bucket.show().await.unwrap(), None);
    assert_eq!(bucket.ensure().await.unwrap().created, ["bucket KV_gitops-runtime_ledger"]);
    let again = bucket.ensure().await.unwrap();
    assert_eq!((again.created, again.differences), (Vec::new(), Vec::new()));
    assert_eq!(bucket.check().await.unwrap(), []);

    let first = put(&bucket, "a.b", "value").await;
    assert!(first > 1_700_000_000_000, "sequences begin with the time: {first}");
    let mark = bucket.remove("a.b", Expect::Last(first)).await.unwrap();
    let raw = client(&server.url()).await;
    let stream = raw.get_stream("KV_gitops-runtime_ledger").await.unwrap();
    let found = stream.get_raw_message(mark).await.unwrap();
    assert_eq!(found.subject.as_str(), "$KV.gitops-runtime_ledger.a.b");
    assert_eq!(found.headers.get("KV-Operation").unwrap().as_str(), "PURGE");
    let show = bucket.show().await.unwrap().unwrap();
    let BucketShow { stream, keys, bytes, last } = show;
    assert_eq!((stream.as_str(), keys, last), ("KV_gitops-runtime_ledger", 1, first + 1));
    assert!(bytes > 0);

    let other = connected(Config { prefix: "other.one".into(), ..config(&server) }).await.bucket("x");
    other.ensure().await.unwrap();
    assert_eq!(other.show().await.unwrap().unwrap().stream, "KV_other_one_x");
}

#[tokio::test]
async fn what_differs_is_said_and_not_changed() {
    let server = Server::start();
    let raw = client(&server.url()).await;
    raw.create_stream(async_nats::jetstream::stream::Config {
        name: "KV_gitops-runtime_ledger".into(),
        subjects: vec!["$KV.gitops-runtime_ledger.>".into()],
        max_messages_per_subject: 5,
        discard: async_nats::jetstream::stream::DiscardPolicy::New,
        allow_rollup: true,
        allow_direct: true,
        max_bytes: 1_000_000,
        ..Default::default()
    })
    .await
    .unwrap();
    let bucket = connected(config(&server)).await.bucket(LEDGER);
    let expected = [
        "bucket KV_gitops-runtime_ledger: max_msgs_per_subject is 5, and should be 1",
        "bucket KV_gitops-runtime_ledger: max_bytes is 1000000, and should be none",
        "bucket KV_gitops-runtime_ledger: allow_msg_ttl is false, and should be true",
    ];
    for _ in 0..2 {
        let ensured = bucket.ensure().await.unwrap();
        let said: Vec<String> = ensured.differences.iter().map(ToString::to_string).collect();
        assert_eq!((said.as_slice(), ensured.created.len()), (expected.map(str::to_owned).as_slice(), 0));
    }
}

#[tokio::test]
async fn a_write_is_made_only_where_what_is_expected_stands() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    let claim = bucket.put("claim", bytes("1"), Expect::Last(0)).await.unwrap();
    let conflict = bucket.put("claim", bytes("2"), Expect::Last(0)).await.unwrap_err();
    assert_eq!(conflict.to_string(), "something else stands in the bucket than was expected");
    assert!(matches!(conflict, PutError::Conflict));

    let mine = Expect::Other { key: "claim", sequence: claim };
    let row = bucket.put("row", bytes("1"), mine).await.unwrap();
    bucket.put("row", bytes("2"), mine).await.unwrap();
    let newer = bucket.put("claim", bytes("2"), Expect::Last(claim)).await.unwrap();
    assert!(newer > row);
    assert!(is_conflict(&bucket.put("row", bytes("3"), mine).await));
    assert!(is_conflict(&bucket.remove("row", mine).await));
    assert_eq!(bucket.get("row").await.unwrap().unwrap().0, bytes("2"));

    let theirs = Expect::Other { key: "claim", sequence: newer };
    let mark = bucket.remove("row", theirs).await.unwrap();
    assert_eq!(bucket.get("row").await.unwrap(), None);
    assert!(is_conflict(&bucket.put("row", bytes("4"), Expect::Last(0)).await), "its mark stands there");
    bucket.put("row", bytes("4"), Expect::Last(mark)).await.unwrap();
    assert_eq!(bucket.get("nothing").await.unwrap(), None);
}

#[tokio::test]
async fn many_writes_are_on_their_way_at_once() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    let claim = put(&bucket, "claim", "1").await;
    let mut last = claim;
    for _ in 0..4 {
        let mut sent = Vec::new();
        for n in 0..256 {
            let mine = Expect::Other { key: "claim", sequence: claim };
            sent.push(bucket.send(&format!("rows.{n}"), bytes("x"), mine).await.unwrap());
        }
        for writing in sent {
            let sequence = writing.answer().await.unwrap();
            assert_eq!(sequence, last + 1, "in the order in which they were sent");
            last = sequence;
        }
    }
    assert_eq!(load(&bucket, &["rows.>"]).await.len(), 256);
}

#[tokio::test]
async fn all_that_is_there_is_loaded_and_nothing_else() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    assert_eq!(load(&bucket, &["rows.>"]).await, []);
    for n in 0..1_500 {
        put(&bucket, &format!("rows.{}.{n}", n % 3), &n.to_string()).await;
    }
    let newest = put(&bucket, "claim.1", "c").await;
    bucket.remove("rows.1.1", Expect::Anything).await.unwrap();
    put(&bucket, "rows.1.4", "new").await;
    let found = load(&bucket, &["rows.1.>", "claim.1"]).await;
    assert_eq!(found.len(), 500);
    assert_eq!(found[498], ("claim.1".to_owned(), "c".to_owned()), "in the order of sequences");
    assert_eq!(found[499], ("rows.1.4".to_owned(), "new".to_owned()));
    assert!(found.iter().all(|(key, _)| key != "rows.1.1"));

    let filters = ["claim.1".to_owned()];
    assert_eq!(bucket.load(&filters, Some(newest), DEADLINE).await.unwrap().len(), 1);
    let begun = Instant::now();
    let patience = Duration::from_millis(700);
    let missing = bucket.load(&filters, Some(newest + 1), patience).await.unwrap_err();
    assert!(matches!(missing, BusError::NoAnswer), "{missing}");
    assert!(begun.elapsed() >= patience);
}

#[tokio::test]
async fn a_key_is_plain_parts_between_dots() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    for wrong in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "ä", "a\r\n"] {
        let error = bucket.put(wrong, Bytes::new(), Expect::Anything).await.unwrap_err();
        assert_eq!(error.to_string(), "a subject is not one of the bus", "{wrong:?}");
    }
    let long = bucket.put(&"a".repeat(2_049), Bytes::new(), Expect::Anything).await.unwrap_err();
    assert!(matches!(long, PutError::Bus(BusError::Subject(_))));
    put(&bucket, &"a".repeat(2_048), "").await;
    put(&bucket, "aZ09.-/_=.x", "").await;
    assert_eq!(
        bucket.get("aZ09.-/_=.x").await.unwrap().unwrap().0,
        Bytes::new(),
        "an empty value is a value"
    );
}

#[tokio::test]
async fn a_value_with_an_end_goes_by_itself() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    bucket.put_for("member", bytes("x"), Duration::from_secs(10)).await.unwrap();
    assert!(bucket.get("member").await.unwrap().is_some());
    let gone = async {
        while bucket.get("member").await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the end of the value", gone).await;
    assert_eq!(load(&bucket, &[">"]).await, []);
}

async fn next(watch: &mut Watch) -> Watched {
    soon("what a watch tells", watch.next()).await
}

#[tokio::test]
async fn a_watch_lists_all_and_tells_each_change() {
    let server = Server::start();
    let bucket = bucket(&server).await;
    let a = put(&bucket, "lease.a", "1").await;
    put(&bucket, "other", "1").await;
    let mut watch = bucket.watch(&["lease.>".to_owned()]);
    let entry = Entry { key: "lease.a".into(), value: bytes("1"), sequence: a };
    assert_eq!(next(&mut watch).await, Watched::Listed { entries: vec![entry], connection: 1 });
    assert_eq!(bucket.connection(), Some(1));
    let b = put(&bucket, "lease.b", "2").await;
    let gone = bucket.remove("lease.a", Expect::Anything).await.unwrap();
    let told = |key: &str, value: Option<&str>, sequence| {
        Watched::Changed(Change { key: key.into(), value: value.map(bytes), sequence })
    };
    assert_eq!(next(&mut watch).await, told("lease.b", Some("2"), b));
    assert_eq!(next(&mut watch).await, told("lease.a", None, gone));

    let mut empty = bucket.watch(&["nothing.>".to_owned()]);
    assert_eq!(next(&mut empty).await, Watched::Listed { entries: Vec::new(), connection: 1 });
}

#[tokio::test]
async fn a_watch_says_that_it_was_interrupted_and_lists_anew() {
    let mut server = Server::start();
    let bucket = bucket(&server).await;
    put(&bucket, "lease.a", "1").await;
    let mut watch = bucket.watch(&["lease.>".to_owned()]);
    assert!(matches!(next(&mut watch).await, Watched::Listed { .. }));
    server.kill();
    assert_eq!(next(&mut watch).await, Watched::Interrupted);
    assert_eq!(bucket.connection(), None);
    let away = bucket.put("lease.a", bytes("2"), Expect::Anything).await.unwrap_err();
    assert_eq!(away.to_string(), "the bus is not connected");
    server.restart();
    let Watched::Listed { entries, connection } = next(&mut watch).await else { panic!("not listed") };
    assert_eq!((entries.len(), Some(connection)), (1, bucket.connection()));
    assert!(connection > 1);

    server.kill();
    assert_eq!(next(&mut watch).await, Watched::Interrupted);
    server.lose_storage();
    server.restart();
    assert_eq!(next(&mut watch).await, Watched::Gone);
    assert_eq!(next(&mut watch).await, Watched::Gone);
    assert!(bucket.get("lease.a").await.unwrap_err().to_string().starts_with("the bus has no stream KV_"));
    let gone = bucket.put("lease.a", bytes("2"), Expect::Anything).await.unwrap_err();
    assert_eq!(gone.to_string(), "the bus has no stream KV_gitops-runtime_ledger");
    let gone = bucket.load(&[">".to_owned()], None, DEADLINE).await.unwrap_err();
    assert!(matches!(gone, BusError::Gone { .. }));
    assert_eq!(bucket.ensure().await.unwrap().created.len(), 1);
    let listed = async {
        loop {
            match watch.next().await {
                Watched::Gone => {}
                other => return other,
            }
        }
    };
    assert!(
        matches!(soon("the new list", listed).await, Watched::Listed { entries, .. } if entries.is_empty())
    );
}

#[tokio::test]
async fn a_bucket_that_is_made_anew_has_no_sequence_of_the_old_one() {
    let mut server = Server::start();
    let bucket = bucket(&server).await;
    let old = put(&bucket, "claim", "1").await;
    server.kill();
    server.lose_storage();
    server.restart();
    until("the next connection", async || bucket.connection() > Some(1)).await;
    assert_eq!(bucket.ensure().await.unwrap().created.len(), 1);
    assert!(is_conflict(&bucket.put("row", bytes("x"), Expect::Other { key: "claim", sequence: old }).await));
    assert!(put(&bucket, "claim", "1").await > old);
}

#[tokio::test]
async fn writes_of_a_bucket_do_not_wait_for_messages() {
    let server = Server::start();
    let bus = connected(config(&server)).await;
    bus.ensure(&[durable(0)]).await.unwrap();
    let bucket = bus.bucket(LEDGER);
    bucket.ensure().await.unwrap();
    let mut held = Vec::new();
    for n in 0..256 {
        let message = state(&n.to_string(), 1, 1);
        let to = Subject::of(SOURCE, 0, &message, Keep::Newest);
        held.push(bus.send(&to, &message).await.unwrap());
    }
    soon("a write beside 256 messages", put(&bucket, "a", "1")).await;
    drop(held);
}
