//! Leases as objects of an API server: who may write, and what is shown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::Timestamp;
use pipeline_core::leases::{Answer, Lease, Presence, Replica, Shown, Store as _};
use serde_json::json;
use stages_watch::{Cluster, LeaseConfig, LeaseObjects, Right, Scope};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::lease_server::{Mood, Server};
use crate::said::Log;

const PATIENCE: Duration = Duration::from_secs(60);

fn config(server: &Server) -> LeaseConfig {
    let url = format!("http://{}", server.address);
    LeaseConfig {
        cluster: Cluster::Server { url, token: None, token_file: None, ca_file: None },
        namespace: "argocd".to_owned(),
        name: "reporter".to_owned(),
        ttl: Duration::from_secs(2),
    }
}

async fn store(server: &Server) -> Arc<LeaseObjects> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Arc::new(config(server).build().await.unwrap())
}

fn replica(name: &str) -> Replica {
    Replica::new(name).unwrap()
}

fn lease(shard: u32, epoch: u64, owner: Option<&str>) -> Lease {
    Lease { shard, epoch, owner: owner.map(replica), until: "2026-11-22T04:00:10Z".parse().unwrap() }
}

fn presence(name: &str) -> Presence {
    Presence { replica: replica(name), until: Timestamp::now(), refused: Vec::new() }
}

/// What is shown to one who watches.
struct Watch {
    changes: mpsc::Receiver<Shown>,
    task: JoinHandle<()>,
}

impl Watch {
    fn start(store: &Arc<LeaseObjects>) -> Self {
        let (out, changes) = mpsc::channel(1);
        let store = Arc::clone(store);
        Self { changes, task: tokio::spawn(async move { store.watch(out).await }) }
    }

    async fn next(&mut self) -> Shown {
        tokio::time::timeout(PATIENCE, self.changes.recv())
            .await
            .expect("something in time")
            .expect("a watch")
    }

    async fn listed(&mut self) -> (Vec<(Lease, u64)>, BTreeSet<String>) {
        match self.next().await {
            Shown::Listed { leases, members } => {
                (leases, members.into_iter().map(|(replica, _)| replica.to_string()).collect())
            }
            other => panic!("a list is to come, not {other:?}"),
        }
    }
}

fn revision(answer: &Answer) -> u64 {
    match answer {
        Answer::Granted { revision } => *revision,
        other => panic!("it is to be granted, not {other:?}"),
    }
}

#[tokio::test]
async fn of_two_who_write_at_once_one_is_refused_and_told_what_there_is() {
    let server = Server::start().await;
    let (one, two) = (store(&server).await, store(&server).await);
    let made = revision(&one.write(&lease(3, 9, Some("one.1")), None).await);
    let refused = Answer::Refused { current: Some((lease(3, 9, Some("one.1")), made)) };
    assert_eq!(two.write(&lease(3, 10, Some("two.2")), None).await, refused);

    let renewed = revision(&one.write(&lease(3, 9, Some("one.1")), Some(made)).await);
    assert!(renewed > made);
    let refused = Answer::Refused { current: Some((lease(3, 9, Some("one.1")), renewed)) };
    assert_eq!(two.write(&lease(3, 10, Some("two.2")), Some(made)).await, refused);

    let given_back = revision(&one.write(&lease(3, 9, None), Some(renewed)).await);
    revision(&two.write(&lease(3, 10, Some("two.2")), Some(given_back)).await);
    let refused = one.write(&lease(3, 11, Some("one.1")), Some(given_back)).await;
    assert!(
        matches!(&refused, Answer::Refused { current: Some((lease, _)) } if lease.epoch == 10),
        "{refused:?}"
    );
    assert_eq!(server.object("reporter-shard-3").unwrap()["spec"]["holderIdentity"], "two.2");
}

/// A `PUT` of a lease makes what is not there, unless it names the life of the object that it is to replace.
#[tokio::test]
async fn what_was_deleted_is_not_made_anew_by_its_former_owner() {
    let server = Server::start().await;
    let one = store(&server).await;
    let made = revision(&one.write(&lease(3, 9, Some("one.1")), None).await);
    server.delete("reporter-shard-3");
    assert_eq!(one.write(&lease(3, 9, Some("one.1")), Some(made)).await, Answer::Refused { current: None });
    assert_eq!(server.object("reporter-shard-3"), None);

    // One that was made meanwhile is another, whatever its version.
    let two = store(&server).await;
    let made = revision(&two.write(&lease(3, 10, Some("two.2")), None).await);
    let refused = Answer::Refused { current: Some((lease(3, 10, Some("two.2")), made)) };
    assert_eq!(one.write(&lease(3, 11, Some("one.1")), Some(made)).await, refused, "it was never shown");
    revision(&one.write(&lease(3, 11, Some("one.1")), Some(made)).await);
}

#[tokio::test]
async fn a_watch_lists_and_follows_and_goes_on_where_a_server_ended_it() {
    let server = Server::start().await;
    let (one, two) = (store(&server).await, store(&server).await);
    let made = revision(&one.write(&lease(3, 9, Some("one.1")), None).await);
    one.announce(&presence("one.1")).await;
    server.put("somebody-elses", json!({"metadata": {"name": "somebody-elses"}}));
    let mut watch = Watch::start(&two);
    let (leases, members) = watch.listed().await;
    assert_eq!(leases, [(lease(3, 9, Some("one.1")), made)]);
    assert_eq!(members, BTreeSet::from(["one.1".to_owned()]));

    let renewed = revision(&one.write(&lease(3, 9, Some("one.1")), Some(made)).await);
    let shown = Shown::Lease { lease: lease(3, 9, Some("one.1")), revision: renewed };
    assert_eq!(watch.next().await, shown);
    server.end_watches();
    one.leave(&replica("one.1")).await;
    assert_eq!(watch.next().await, Shown::MemberGone { replica: replica("one.1") });
    two.announce(&presence("two.2")).await;
    assert!(matches!(watch.next().await, Shown::Member { replica, .. } if replica.as_str() == "two.2"));
    server.delete("reporter-shard-3");
    assert_eq!(watch.next().await, Shown::LeaseGone { shard: 3 });
    assert_eq!(server.asked("LIST"), 1, "a watch that ends goes on from its version");

    drop(watch.changes);
    tokio::time::timeout(PATIENCE, watch.task).await.expect("it ends with whoever watches").unwrap();
}

/// Waits until something was asked of the server more often than before.
async fn asked(server: &Server, what: &str, before: usize) {
    let more = async {
        while server.asked(what) <= before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, more).await.expect("it is asked in time");
}

#[tokio::test]
async fn a_watch_that_breaks_says_so_and_lists_again() {
    let (log, _guard) = Log::start();
    let server = Server::start().await;
    let one = store(&server).await;
    let mut watch = Watch::start(&one);
    assert_eq!(watch.listed().await.0, []);
    asked(&server, "WATCH", 0).await;
    server.mood(Mood::Fails(503));
    let before = server.asked("LIST");
    server.cut();
    assert_eq!(watch.next().await, Shown::Unwatched);
    asked(&server, "LIST", before + 1).await;
    assert!(watch.changes.try_recv().is_err(), "nothing is shown as long as nothing can be listed");
    server.mood(Mood::Well);
    watch.listed().await;

    server.mood(Mood::Expired);
    server.end_watches();
    assert_eq!(watch.next().await, Shown::Unwatched);
    server.mood(Mood::Well);
    watch.listed().await;
    let said = log.text();
    assert_eq!(said.matches("list leases: the api server answered 503").count(), 1, "{said}");
}

#[tokio::test]
async fn what_a_replica_left_that_is_long_gone_is_deleted() {
    let server = Server::start().await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let short = LeaseConfig { ttl: Duration::from_millis(100), ..config(&server) };
    let one = Arc::new(short.build().await.unwrap());
    store(&server).await.announce(&presence("dead.1")).await;
    let mut watch = Watch::start(&one);
    assert_eq!(watch.listed().await.1, BTreeSet::from(["dead.1".to_owned()]));
    let swept = async {
        loop {
            one.announce(&presence("one.1")).await;
            match watch.next().await {
                Shown::MemberGone { replica } => return replica,
                Shown::Member { .. } => {}
                other => panic!("{other:?} is nothing that happens here"),
            }
        }
    };
    let gone = tokio::time::timeout(PATIENCE, swept).await.expect("it is deleted in time");
    assert_eq!(gone, replica("dead.1"));
    assert_eq!(server.object("reporter-replica-dead-1"), None);
    assert!(server.object("reporter-replica-one-1").is_some());
}

#[tokio::test]
async fn a_replica_says_again_and_again_that_it_is_there_also_when_its_object_was_touched() {
    let server = Server::start().await;
    let one = store(&server).await;
    let version = || {
        server.object("reporter-replica-one-1").map(|object| object["metadata"]["resourceVersion"].clone())
    };
    one.announce(&presence("one.1")).await;
    let first = version().unwrap();
    one.announce(&presence("one.1")).await;
    let second = version().unwrap();
    assert_ne!(first, second);
    assert_eq!((server.asked("POST"), server.asked("PUT"), server.asked("GET")), (1, 1, 0));

    // Somebody wrote it, or the answer was lost.
    let touched = server.object("reporter-replica-one-1").unwrap();
    let touched = json!(server.put("reporter-replica-one-1", touched).to_string());
    one.announce(&presence("one.1")).await;
    assert_ne!(version().unwrap(), touched);
    server.delete("reporter-replica-one-1");
    one.announce(&presence("one.1")).await;
    assert!(version().is_some());
    // A process that does not know what it wrote.
    let later = store(&server).await;
    let before = version().unwrap();
    later.announce(&presence("one.1")).await;
    assert_ne!(version().unwrap(), before);
    later.leave(&replica("one.1")).await;
    assert_eq!(version(), None);
    later.leave(&replica("one.1")).await;
}

#[tokio::test]
async fn a_server_that_fails_is_an_answer_and_is_said_once_without_what_it_says() {
    let (log, _guard) = Log::start();
    let server = Server::start().await;
    let one = store(&server).await;
    let made = revision(&one.write(&lease(3, 9, Some("one.1")), None).await);
    server.mood(Mood::Fails(403));
    for _ in 0..3 {
        assert_eq!(one.write(&lease(3, 9, Some("one.1")), Some(made)).await, Answer::Failed);
        one.announce(&presence("one.1")).await;
        one.leave(&replica("one.1")).await;
    }
    assert_eq!(one.write(&lease(4, 9, Some("one.1")), None).await, Answer::Failed);
    let said = log.text();
    assert_eq!(said.matches("a right is missing").count(), 1, "{said}");
    assert!(said.contains("update a lease: the api server answered 403"), "{said}");
    assert!(said.contains("create, delete, get, list, update, watch"), "{said}");
    assert!(!said.contains("canary-hunter2"), "{said}");
    server.mood(Mood::Fails(500));
    assert_eq!(one.write(&lease(3, 9, Some("one.1")), Some(made)).await, Answer::Failed);
    server.mood(Mood::Well);
    revision(&one.write(&lease(3, 9, Some("one.1")), Some(made)).await);
    let said = log.text();
    assert!(said.contains("leases cannot be written; trying on"), "{said}");
    assert!(said.contains("leases can be written again"), "{said}");
}

#[tokio::test]
async fn an_object_of_somebody_else_is_left_alone() {
    let (log, _guard) = Log::start();
    let server = Server::start().await;
    let one = store(&server).await;
    let theirs = json!({"metadata": {"name": "reporter-shard-3", "labels": {"of": "another"}}, "spec": {}});
    server.put("reporter-shard-3", theirs);
    let before = server.object("reporter-shard-3");
    assert_eq!(one.write(&lease(3, 9, Some("one.1")), None).await, Answer::Failed);
    assert_eq!(server.object("reporter-shard-3"), before);
    let said = log.text();
    assert!(said.contains("get a lease: the object of that name is not one of these leases"), "{said}");
}

#[tokio::test]
async fn a_write_that_is_not_answered_can_be_given_up() {
    let server = Server::start().await;
    let one = store(&server).await;
    server.mood(Mood::Silent);
    let lease = lease(3, 9, Some("one.1"));
    let write = one.write(&lease, None);
    assert!(tokio::time::timeout(Duration::from_millis(50), write).await.is_err());
    server.mood(Mood::Well);
    assert!(matches!(one.write(&lease, None).await, Answer::Granted { .. } | Answer::Refused { .. }));
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused() {
    let server = Server::start().await;
    let refused = |config: LeaseConfig| async { config.build().await.unwrap_err().to_string() };
    let name = "name must be 1 to 50 lower-case letters, digits or -, with no - at an end";
    for wrong in ["", "Reporter", "a.b", "-a", "a-", &"x".repeat(51)] {
        assert_eq!(refused(LeaseConfig { name: wrong.to_owned(), ..config(&server) }).await, name, "{wrong}");
    }
    for wrong in ["", "a/b"] {
        let config = LeaseConfig { namespace: wrong.to_owned(), ..config(&server) };
        assert_eq!(refused(config).await, "namespace must be the name of a namespace");
    }
    let config = LeaseConfig { ttl: Duration::ZERO, ..config(&server) };
    assert_eq!(refused(config).await, "ttl must be more than 0s");
}

#[tokio::test]
async fn the_rights_are_those_that_are_used() {
    let server = Server::start().await;
    let rights = config(&server).rights();
    let expected = Right {
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["create", "delete", "get", "list", "update", "watch"],
        names: Vec::new(),
        scope: Scope::Namespace("argocd".to_owned()),
    };
    assert_eq!(rights, [expected]);
}
