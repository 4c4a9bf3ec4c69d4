//! Replicas that own shards by leases on a real server, with everything that may happen to replicas and server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_bus::jetstream::{Bucket, Expect, LEASES, LEDGER};
use pipeline_core::Timestamp;
use pipeline_ownership::{Lease, LeaseWrite, Replica, SHARDS, Shown, Store as _};
use tokio::sync::mpsc;

use crate::bus::lease_world::{Crew, Member, TTL, config, long};
use crate::bus::world::{DEADLINE, config as bus_config, connected, soon};
use crate::server::{Server, client};

/// Leases that were given back: they are claimed at once.
async fn given_back(bucket: &Bucket) {
    bucket.ensure().await.unwrap();
    for shard in 0..SHARDS.get() {
        let lease = Lease { shard, epoch: 7, owner: None, until: Timestamp::UNIX_EPOCH };
        bucket.put(&format!("lease.{shard}"), lease.encode().into(), Expect::Last(0)).await.unwrap();
    }
}

#[tokio::test]
async fn leases_and_a_ledger_are_kept_in_an_account_that_wants_each_stream_to_have_a_bound() {
    let server = Server::with(
        "accounts { A { jetstream { max_file: 2G, max_mem: 64M, max_bytes_required: true }, users: [ { user: a, password: a } ] } }\n\
         no_auth_user: a",
    );
    let bus = connected(bus_config(&server)).await;
    for (name, bound) in [(LEASES, 16 << 20), (LEDGER, 1 << 30)] {
        let bucket = bus.bucket(name);
        let made = bucket.ensure().await.unwrap();
        assert_eq!(made.created, [format!("bucket KV_gitops-runtime_{name}")]);
        // What is there by now is as it should be.
        assert_eq!((made.differences, bucket.check().await.unwrap()), (vec![], vec![]));
        assert_eq!(bucket.ensure().await.unwrap().created, Vec::<String>::new());
        bucket.put("a", Bytes::from_static(b"kept"), Expect::Last(0)).await.unwrap();
        assert_eq!(bucket.get("a").await.unwrap().unwrap().0, "kept");
        let stream = client(&server.url()).await.get_stream(format!("KV_gitops-runtime_{name}")).await;
        assert_eq!(stream.unwrap().cached_info().config.max_bytes, bound);
    }
}

#[tokio::test]
async fn two_replicas_own_every_shard_once_and_a_third_takes_its_part() {
    let server = Server::start();
    let mut crew = Crew::default();
    crew.add(Member::start(&server, "one", config()).await);
    crew.add(Member::start(&server, "two", config()).await);
    crew.all_owned("two replicas", &[16, 16]).await;
    crew.add(Member::start(&server, "three", config()).await);
    crew.all_owned("three replicas", &[10, 11, 11]).await;
    let told = |crew: &Crew| {
        let told = crew.members.iter().map(|member| (member.name().to_owned(), member.epoch(0)));
        let owner = told.into_iter().find_map(|(name, epoch)| Some((name, epoch?)))?;
        let knows = |member: &Member| {
            let standing = member.standing();
            let zero = standing.zero.map(|(owner, epoch)| (owner.as_str().to_owned(), epoch));
            standing.listed && standing.members.len() == 3 && zero == Some(owner.clone())
        };
        crew.members.iter().all(knows).then_some(())
    };
    crew.until("all know the owner of shard 0", told).await;
}

#[tokio::test]
async fn the_shards_of_a_replica_that_died_without_a_word_are_owned_again_with_higher_epochs() {
    let server = Server::start();
    let mut crew = Crew::default();
    for name in ["one", "two", "three"] {
        crew.add(Member::start(&server, name, config()).await);
    }
    crew.all_owned("three replicas", &[10, 11, 11]).await;
    let dead = crew.members.remove(0);
    let epochs: Vec<(u32, u64)> = (0..32).filter_map(|shard| Some((shard, dead.epoch(shard)?))).collect();
    dead.kill();
    crew.leaving.push(dead);
    let now = crew.all_owned("those that are left", &[16, 16]).await;
    for (shard, epoch) in epochs {
        assert!(now[shard as usize] > epoch, "shard {shard}: {} after {epoch}", now[shard as usize]);
    }
}

/// A lease lives longer here than the test has patience: nobody can have waited for its end.
#[tokio::test]
async fn a_replica_that_stops_hands_over_without_anybody_waiting_for_its_leases_to_end() {
    let server = Server::start();
    given_back(&connected(bus_config(&server)).await.bucket(LEASES)).await;
    assert!(long().ttl > DEADLINE);
    let mut crew = Crew::default();
    crew.add(Member::start(&server, "one", long()).await);
    crew.all_owned("one replica", &[32]).await;
    crew.add(Member::start(&server, "two", long()).await);
    crew.all_owned("two replicas", &[16, 16]).await;
    let leaving = crew.members.remove(0);
    leaving.stop();
    crew.leaving.push(leaving);
    crew.all_owned("the one that is left", &[32]).await;
    soon("the end of the driver", crew.leaving[0].ended()).await;
    assert_eq!(crew.members[0].standing().members.len(), 1);
}

/// Whether each shard is owned in a later epoch than before.
fn are_later(before: &[u64], after: &[u64]) -> bool {
    before.iter().zip(after).all(|(before, after)| after > before)
}

#[tokio::test]
async fn a_server_that_restarts_with_its_storage_finds_every_shard_owned_once() {
    let mut server = Server::start();
    let mut crew = Crew::default();
    crew.add(Member::start(&server, "one", config()).await);
    crew.add(Member::start(&server, "two", config()).await);
    let before = crew.all_owned("two replicas", &[16, 16]).await;
    server.kill();
    crew.none_owned().await;
    server.restart();
    let after = crew.all_owned("after the restart", &[16, 16]).await;
    assert!(are_later(&before, &after), "{before:?} {after:?}");
}

#[tokio::test]
async fn a_server_that_lost_its_storage_is_given_leases_anew_and_epochs_go_on_rising() {
    let mut server = Server::start();
    let mut crew = Crew::default();
    crew.add(Member::start(&server, "one", config()).await);
    crew.add(Member::start(&server, "two", config()).await);
    let before = crew.all_owned("two replicas", &[16, 16]).await;
    server.forget_everything(async {}).await;
    let later = |crew: &Crew| crew.owned_so(&[16, 16]).filter(|after| are_later(&before, after));
    let before = crew.until("later owners", later).await;
    // Who comes later has seen no epoch of before, and gives higher ones all the same.
    crew.add(Member::start(&server, "three", config()).await);
    let after = crew.all_owned("three replicas", &[10, 11, 11]).await;
    let never_lower = before.iter().zip(&after).all(|(before, after)| after >= before);
    assert!(never_lower, "{before:?} {after:?}");
}

/// The next of a kind that a store shows.
async fn shown<T>(changes: &mut mpsc::Receiver<Shown>, wanted: impl Fn(&Shown) -> Option<T>) -> T {
    let found = async {
        loop {
            let shown = changes.recv().await.unwrap();
            if let Some(found) = wanted(&shown) {
                return found;
            }
        }
    };
    soon("what is to be shown", found).await
}

fn lease(shard: u32, epoch: u64, owner: &str) -> Lease {
    Lease { shard, epoch, owner: Some(Replica::new(owner).unwrap()), until: Timestamp::UNIX_EPOCH }
}

#[tokio::test]
async fn a_shard_without_a_record_is_given_one_before_anybody_can_claim_it() {
    let server = Server::start();
    let store = connected(bus_config(&server)).await.leases(SHARDS, TTL);
    let bucket = connected(bus_config(&server)).await.bucket(LEASES);
    assert_eq!(store.write(&lease(3, 9, "one.1"), None).await, LeaseWrite::Failed, "there is no bucket");

    bucket.ensure().await.unwrap();
    let LeaseWrite::Refused { current: Some((unknown, sequence)) } =
        store.write(&lease(3, 9, "one.1"), None).await
    else {
        panic!("nothing is claimed for there being nothing")
    };
    assert_eq!(unknown, Lease::unknown(3));
    // Whoever is later is told the same.
    let again = store.write(&lease(3, 9, "two.2"), None).await;
    assert_eq!(again, LeaseWrite::Refused { current: Some((unknown, sequence)) });
    let LeaseWrite::Granted { revision } = store.write(&lease(3, 9, "one.1"), Some(sequence)).await else {
        panic!("what is there is replaced")
    };
    assert_eq!(
        store.write(&lease(3, 10, "two.2"), Some(sequence)).await,
        LeaseWrite::Refused { current: Some((lease(3, 9, "one.1"), revision)) }
    );

    // Somebody removes it by hand.
    bucket.remove("lease.3", Expect::Anything).await.unwrap();
    assert_eq!(
        store.write(&lease(3, 9, "one.1"), Some(revision)).await,
        LeaseWrite::Refused { current: None },
        "what was removed is no longer owned"
    );
    let LeaseWrite::Refused { current: Some((unknown, _)) } = store.write(&lease(3, 9, "one.1"), None).await
    else {
        panic!("nothing is claimed for there being nothing")
    };
    assert_eq!(unknown, Lease::unknown(3));
}

#[tokio::test]
async fn what_another_writes_is_shown_and_what_cannot_be_read_is_nobodys() {
    let server = Server::start();
    let store = connected(bus_config(&server)).await.leases(SHARDS, TTL);
    let bucket = connected(bus_config(&server)).await.bucket(LEASES);
    bucket.ensure().await.unwrap();
    for (key, value) in [
        ("lease.0", "no lease"),
        ("lease.1", r#"{"version":2,"something":"else"}"#),
        ("lease.07", "of no shard"),
        ("lease.many", "of no shard"),
        ("other.1", "of somebody else"),
        ("member.two.2", ""),
    ] {
        bucket.put(key, Bytes::from_static(value.as_bytes()), Expect::Anything).await.unwrap();
    }
    let of_another =
        bucket.put("lease.2", lease(5, 9, "one.1").encode().into(), Expect::Anything).await.unwrap();
    let (out, mut changes) = mpsc::channel(1);
    let watching = tokio::spawn(async move { store.watch(out).await });
    let Some(Shown::Listed { leases, members }) = soon("a list", changes.recv()).await else {
        panic!("a list comes first")
    };
    let shards: BTreeSet<u32> = leases.iter().map(|(lease, _)| lease.shard).collect();
    assert!(shards.into_iter().eq(0..32), "{leases:?}");
    assert!(leases.iter().all(|(lease, _)| *lease == Lease::unknown(lease.shard)));
    assert!(leases.iter().any(|(lease, at)| lease.shard == 2 && *at == of_another));
    assert_eq!(members.iter().map(|(replica, _)| replica.as_str()).collect::<Vec<_>>(), ["two.2"]);

    let written =
        bucket.put("lease.0", lease(0, 9, "one.1").encode().into(), Expect::Anything).await.unwrap();
    let seen = shown(&mut changes, |shown| match shown {
        Shown::Lease { lease, revision } if lease.shard == 0 => Some((lease.clone(), *revision)),
        _ => None,
    });
    assert_eq!(seen.await, (lease(0, 9, "one.1"), written));
    bucket.remove("lease.0", Expect::Anything).await.unwrap();
    shown(&mut changes, |shown| (*shown == Shown::LeaseGone { shard: 0 }).then_some(())).await;
    bucket.remove("member.two.2", Expect::Anything).await.unwrap();
    let gone = Shown::MemberGone { replica: Replica::new("two.2").unwrap() };
    shown(&mut changes, |shown| (*shown == gone).then_some(())).await;

    drop(changes);
    soon("the end of the watch", watching).await.unwrap();
}

#[tokio::test]
async fn a_presence_goes_by_itself_and_a_lease_does_not() {
    let server = Server::start();
    let mut crew = Crew::default();
    crew.add(Member::start(&server, "one", config()).await);
    crew.all_owned("one replica", &[32]).await;
    let bucket = connected(bus_config(&server)).await.bucket(LEASES);
    let there = ["lease.*".to_owned(), "member.>".to_owned()];
    // It goes for a moment when it is not announced in time.
    let present = async {
        while bucket.load(&there, None, DEADLINE).await.unwrap().len() < 33 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the presence", present).await;
    crew.members[0].kill();
    let begun = Instant::now();
    let gone = async {
        while bucket.load(&there, None, DEADLINE).await.unwrap().len() > 32 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    soon("the end of the presence", gone).await;
    tokio::time::sleep((TTL * 2).saturating_sub(begun.elapsed())).await;
    assert_eq!(bucket.load(&there[..1], None, DEADLINE).await.unwrap().len(), 32);
}
