//! The simulated disk: what a crash leaves is what was committed, and the intents.

use futures::FutureExt as _;
use pipeline_core::{EntityId, Record};

use super::*;
use crate::digests::tests::report;
use crate::tests::{counted, key};

#[test]
fn a_crash_keeps_what_was_committed_and_what_was_on_its_way() {
    let disk = Disk::new(7);
    disk.set_now(60);
    let ledger = Ledger::simulated(&disk);
    assert_eq!((ledger.id(), ledger.origin()), ("00000000000000000000000000000007", &Origin::New));
    let first = report(1, "a", EntityId::OBJECT, 1);
    ledger.sending(&key(1), &first, None).now_or_never().unwrap();
    ledger.update(&key(2), |_| Some(counted(1)));
    drop(ledger);

    let ledger = Ledger::simulated(&disk);
    assert_eq!((ledger.get(&key(2)), ledger.get(&key(1)).unwrap().object().in_doubt), (None, true));
    ledger.acknowledge(&key(1), &first);
    assert!(ledger.commit_simulated());
    assert_eq!(ledger.get(&key(1)).unwrap().reported, 60);
    let committed = ledger.get(&key(1));
    ledger.sending(&key(1), &report(1, "a", EntityId::OBJECT, 2), None).now_or_never().unwrap();
    disk.power_loss();
    let ledger = Ledger::simulated(&disk);
    assert_eq!((ledger.get(&key(1)), ledger.origin()), (committed, &Origin::Existing));

    disk.full(true);
    ledger.update(&key(2), |_| Some(counted(1)));
    assert!(!ledger.commit_simulated());
    assert_eq!((ledger.status().waiting, ledger.status().errors), (1, 1));
    disk.full(false);
    ledger.flush().now_or_never().unwrap().unwrap();
    let known: Vec<Option<Record>> = [1, 2].map(|n| Ledger::simulated(&disk).get(&key(n))).into();
    assert!(known.iter().all(Option::is_some));
    let empty = Ledger::simulated(&disk.lost());
    assert_eq!((empty.id(), empty.known().len()), ("00000000000000000000000000000008", 0));
}
