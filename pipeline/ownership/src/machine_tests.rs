//! Single steps of the state machine; everything at once is what the simulation is for.

use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_core::Timestamp;

use super::*;

const ZERO: Duration = Duration::ZERO;

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn replica(name: &str) -> Replica {
    Replica::new(name).unwrap()
}

fn config(shards: u32) -> Config {
    Config { shards: NonZeroU32::new(shards).unwrap(), ..Config::tested(1_000) }
}

fn lease(shard: u32, epoch: u64, owner: Option<&str>) -> Lease {
    Lease { shard, epoch, owner: owner.map(replica), until: Timestamp::UNIX_EPOCH }
}

fn listed(leases: &[(Lease, u64)], members: &[&str]) -> Input {
    let members = members.iter().map(|name| (replica(name), 1)).collect();
    Input::Shown(Shown::Listed { leases: leases.to_vec(), members })
}

/// The writes among what is to be done.
fn writes(actions: Vec<Action>) -> Vec<Write> {
    let write = |action| match action {
        Action::Write(write) => Some(write),
        _ => None,
    };
    actions.into_iter().filter_map(write).collect()
}

/// The only write among what is to be done.
fn write(actions: Vec<Action>) -> Write {
    let writes = writes(actions);
    assert_eq!(writes.len(), 1, "{writes:?}");
    writes.into_iter().next().unwrap()
}

fn answered(write: &Write, answer: LeaseWrite) -> Input {
    Input::Answered { request: write.request, shard: write.shard, answer }
}

fn granted(write: &Write, revision: u64) -> Input {
    answered(write, LeaseWrite::Granted { revision })
}

fn refused(write: &Write, current: Option<(Lease, u64)>) -> Input {
    answered(write, LeaseWrite::Refused { current })
}

/// `me` owns shard 0 of one, asked for at 0 s, granted as revision 2 at 1 s, in epoch 1000.
fn owner() -> Ownership {
    owner_with(config(1))
}

fn owner_with(config: Config) -> Ownership {
    let mut machine = Ownership::new(config, replica("me"));
    let given_back = [(lease(0, 7, None), 1)];
    let acquire = write(machine.step(listed(&given_back, &[]), ZERO));
    let started = machine.step(granted(&acquire, 2), s(1.0));
    assert_eq!(started, [Action::Start { shard: 0, epoch: 1_000 }]);
    machine
}

#[test]
fn what_was_given_back_is_claimed_at_once_with_a_higher_epoch() {
    let mut machine = Ownership::new(config(1), replica("me"));
    assert_eq!(
        machine.step(Input::Tick, ZERO),
        [Action::Announce],
        "nothing is claimed before all is listed"
    );
    let acquire = write(machine.step(listed(&[(lease(0, 4_711, None), 9)], &[]), ZERO));
    let expected = Write {
        request: acquire.request,
        purpose: Purpose::Acquire,
        shard: 0,
        epoch: 4_712,
        owner: Some(replica("me")),
        expected: Some(9),
    };
    assert_eq!(acquire, expected);
    assert_eq!(machine.term(0), None, "an answer is awaited");
    assert_eq!(machine.step(granted(&acquire, 10), s(0.1)), [Action::Start { shard: 0, epoch: 4_712 }]);
    assert_eq!(machine.owned(), [0]);
}

#[test]
fn without_a_record_or_with_one_that_stays_the_same_a_lease_long_is_waited() {
    let other = lease(0, 5, Some("other"));
    for (records, epoch, expected) in [(vec![], 1_060, None), (vec![(other.clone(), 3)], 1_060, Some(3))] {
        let mut machine = Ownership::new(config(1), replica("me"));
        assert_eq!(writes(machine.step(listed(&records, &[]), s(50.0))), []);
        assert_eq!(writes(machine.step(Input::Tick, s(59.9))), []);
        let acquire = write(machine.step(Input::Tick, s(60.0)));
        assert_eq!((acquire.epoch, acquire.expected), (epoch, expected));
    }
    // One that is renewed is waited for, from then on.
    let mut machine = Ownership::new(config(1), replica("me"));
    machine.step(listed(&[(other.clone(), 3)], &[]), ZERO);
    machine.step(Input::Shown(Shown::Lease { lease: other, revision: 4 }), s(9.0));
    // What comes late changes nothing.
    machine.step(Input::Shown(Shown::Lease { lease: lease(0, 5, None), revision: 3 }), s(9.5));
    assert_eq!(writes(machine.step(Input::Tick, s(18.9))), []);
    assert_eq!(write(machine.step(Input::Tick, s(19.0))).expected, Some(4));
    // Where the store lost everything the owner may not know of it yet.
    let mut machine = Ownership::new(config(1), replica("me"));
    machine.step(listed(&[(lease(0, 5_000, Some("other")), 3)], &[]), ZERO);
    machine.step(Input::Shown(Shown::LeaseGone { shard: 0 }), s(9.0));
    assert_eq!(writes(machine.step(Input::Tick, s(18.9))), []);
    let acquire = write(machine.step(Input::Tick, s(19.0)));
    assert_eq!((acquire.epoch, acquire.expected), (5_001, None));
}

#[test]
fn a_lease_is_counted_from_when_it_was_asked_for_and_sending_ends_before_it() {
    let mut machine = owner();
    let post = s(4.0);
    assert_eq!(machine.term(0), Some(LeaseTerm { epoch: 1_000, until: s(10.0) }));
    assert!(machine.may_send(0, s(5.9), post) && !machine.may_send(0, s(6.0), post));
    assert!(!machine.may_send(1, s(1.0), post), "there is no such shard");
    assert_eq!(writes(machine.step(Input::Tick, s(2.9))), []);
    let renewal = write(machine.step(Input::Tick, s(3.0)));
    assert_eq!((renewal.purpose, renewal.epoch, renewal.expected), (Purpose::Renew, 1_000, Some(2)));
    assert_eq!(machine.term(0).unwrap().until, s(10.0), "it is not renewed before the answer");
    machine.step(granted(&renewal, 3), s(4.9));
    assert_eq!(machine.term(0).unwrap().until, s(13.0));
}

#[test]
fn who_was_paused_owns_nothing_until_it_is_renewed() {
    let mut machine = owner();
    assert!(!machine.may_send(0, s(60.0), ZERO), "asked before anything else is");
    let stopped = machine.step(Input::Tick, s(60.0));
    assert_eq!(stopped[0], Action::Stop { shard: 0, epoch: 1_000, how: StopHow::Now });
    assert_eq!(writes(stopped), [], "it still ends");
    // Nobody else took it: it is claimed anew, with another epoch.
    let acquire = write(machine.step(Input::Drained { shard: 0, epoch: 1_000 }, s(60.1)));
    assert_eq!((acquire.purpose, acquire.epoch, acquire.expected), (Purpose::Acquire, 1_060, Some(2)));
    let taken = (lease(0, 1_060, Some("other")), 8);
    assert_eq!(machine.step(refused(&acquire, Some(taken)), s(60.2)), []);
    assert_eq!(machine.owned(), [0; 0]);
}

#[test]
fn what_has_ended_just_when_its_lease_did_is_not_told_to_end() {
    let mut machine = owner();
    machine.step(Input::Stop, s(8.0));
    assert_eq!(machine.step(Input::Drained { shard: 0, epoch: 1_000 }, s(12.0)), []);
    assert!(machine.is_over());
}

#[test]
fn while_nothing_is_watched_nothing_is_claimed_and_what_is_owned_is_renewed() {
    let mut machine = Ownership::new(config(2), replica("me"));
    let records = [(lease(0, 7, None), 1), (lease(1, 7, Some("other")), 2)];
    let acquire = write(machine.step(listed(&records, &[]), ZERO));
    machine.step(granted(&acquire, 3), s(0.1));
    machine.step(Input::Shown(Shown::Unwatched), s(1.0));
    machine.step(Input::Shown(Shown::Lease { lease: lease(1, 7, None), revision: 4 }), s(1.1));
    let renewal = write(machine.step(Input::Tick, s(3.0)));
    assert_eq!((renewal.purpose, renewal.shard), (Purpose::Renew, 0));
    machine.step(granted(&renewal, 5), s(3.1));
    let mine = (lease(0, acquire.epoch, Some("me")), 5);
    // The record went while nobody looked: it may have come and gone.
    assert_eq!(writes(machine.step(listed(std::slice::from_ref(&mine), &[]), s(3.2))), []);
    let claimed = |actions| writes(actions).into_iter().find(|write| write.purpose == Purpose::Acquire);
    let held = machine.step(Input::Tick, s(9.0));
    let renewal = write(held);
    machine.step(granted(&renewal, 6), s(9.1));
    assert_eq!(claimed(machine.step(Input::Tick, s(13.1))), None);
    let acquire = claimed(machine.step(Input::Tick, s(13.2))).unwrap();
    assert_eq!((acquire.shard, acquire.expected), (1, None));
}

#[test]
fn a_claim_that_is_granted_too_late_is_none() {
    let mut machine = Ownership::new(config(1), replica("me"));
    let acquire = write(machine.step(listed(&[(lease(0, 7, None), 1)], &[]), ZERO));
    let late = machine.step(granted(&acquire, 2), s(10.0));
    assert!(!late.iter().any(|action| matches!(action, Action::Start { .. })), "{late:?}");
    assert_eq!(machine.term(0), None);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_made_good() {
    let mut machine = owner();
    let lost = write(machine.step(Input::Tick, s(3.0)));
    let again = write(machine.step(Input::Tick, s(5.0)));
    assert_eq!((again.purpose, again.expected), (Purpose::Renew, Some(2)));
    assert_eq!(writes(machine.step(granted(&lost, 3), s(5.1))), [], "the answer to the first is too late");
    assert_eq!(machine.term(0).unwrap().until, s(10.0));
    let mine = (lease(0, 1_000, Some("me")), 3);
    let third = write(machine.step(refused(&again, Some(mine)), s(5.2)));
    assert_eq!((third.purpose, third.expected), (Purpose::Renew, Some(3)));
    machine.step(granted(&third, 4), s(5.3));
    assert_eq!(machine.term(0).unwrap().until, s(15.2));
}

#[test]
fn a_lease_that_another_has_or_that_is_gone_is_lost_at_once() {
    let lost = Action::Stop { shard: 0, epoch: 1_000, how: StopHow::Now };
    let taken = lease(0, 1_001, Some("other"));
    let mut machine = owner();
    let seen = machine.step(Input::Shown(Shown::Lease { lease: taken.clone(), revision: 3 }), s(1.5));
    assert_eq!(seen, std::slice::from_ref(&lost));
    for current in [Some((taken, 3)), None] {
        let mut machine = owner();
        let renewal = write(machine.step(Input::Tick, s(3.0)));
        assert_eq!(machine.step(refused(&renewal, current), s(3.1))[0], lost);
        assert_eq!(machine.term(0), None);
    }
    let mut machine = owner();
    assert_eq!(machine.step(listed(&[], &[]), s(2.0))[0], lost);
}

#[test]
fn one_that_comes_is_given_its_share_once_it_has_drained() {
    let mut machine = Ownership::new(config(2), replica("me"));
    let free = [(lease(0, 1, None), 1), (lease(1, 1, None), 2)];
    let acquired = writes(machine.step(listed(&free, &[]), ZERO));
    machine.step(granted(&acquired[0], 3), s(0.1));
    machine.step(granted(&acquired[1], 4), s(0.1));
    assert_eq!(machine.owned(), [0, 1]);

    let handed = machine.step(Input::Shown(Shown::Member { replica: replica("other"), revision: 5 }), s(1.0));
    let [Action::Stop { shard, epoch: 1_000, how: StopHow::Drain }] = handed[..] else {
        panic!("{handed:?}")
    };
    assert!(machine.may_send(shard, s(1.0), s(1.0)), "what is under way may go on");
    let renewals = writes(machine.step(Input::Tick, s(3.0)));
    assert_eq!(renewals.len(), 2, "what drains is renewed");
    // It has drained before the renewal is answered: then it is given back.
    assert_eq!(machine.step(Input::Drained { shard, epoch: 1_000 }, s(3.1)), []);
    assert!(!machine.may_send(shard, s(3.1), ZERO));
    let renewal = renewals.iter().find(|write| write.shard == shard).unwrap();
    let release = write(machine.step(granted(renewal, 6), s(3.2)));
    assert_eq!((release.purpose, release.shard, release.epoch), (Purpose::Release, shard, 1_000));
    assert_eq!((release.owner.clone(), release.expected), (None, Some(6)));
    machine.step(granted(&release, 7), s(3.3));
    assert_eq!(machine.owned(), [1 - shard]);

    // The other sees the same, and takes it.
    let mut other = Ownership::new(config(2), replica("other"));
    let records = [(lease(shard, 1_000, None), 7), (lease(1 - shard, 1_000, Some("me")), 8)];
    let acquire = write(other.step(listed(&records, &["me"]), ZERO));
    assert_eq!((acquire.shard, acquire.epoch, acquire.expected), (shard, 1_001, Some(7)));
}

#[test]
fn what_does_not_drain_in_time_is_cut_off_and_its_lease_lapses() {
    let mut machine = owner_with(Config { drain: s(2.0), ..config(1) });
    let leave = machine.step(Input::Stop, s(1.0));
    assert_eq!(leave, [Action::Leave, Action::Stop { shard: 0, epoch: 1_000, how: StopHow::Drain }]);
    assert_eq!(machine.step(Input::Stop, s(1.1)), [], "once is enough");
    assert_eq!(
        machine.step(Input::Tick, s(3.0)),
        [Action::Stop { shard: 0, epoch: 1_000, how: StopHow::Now }]
    );
    assert_eq!(machine.step(Input::Tick, s(9.9)), [], "it is not renewed");
    assert_eq!(machine.step(Input::Tick, s(10.0)), []);
    assert!(!machine.is_over());
    assert_eq!(machine.step(Input::Drained { shard: 0, epoch: 999 }, s(10.1)), [], "another life of it");
    assert!(!machine.is_over());
    assert_eq!(machine.step(Input::Drained { shard: 0, epoch: 1_000 }, s(10.2)), []);
    assert!(machine.is_over());
}

#[test]
fn who_stops_gives_back_what_it_has_and_begins_nothing() {
    let mut machine = owner();
    machine.step(Input::Stop, s(1.0));
    let release = write(machine.step(Input::Drained { shard: 0, epoch: 1_000 }, s(1.5)));
    assert_eq!(release.purpose, Purpose::Release);
    assert_eq!(machine.step(answered(&release, LeaseWrite::Failed), s(1.6)), []);
    let again = write(machine.step(Input::Tick, s(2.1)));
    assert_eq!((again.purpose, again.expected), (Purpose::Release, Some(2)));
    // The first was written after all.
    assert_eq!(machine.step(refused(&again, Some((lease(0, 1_000, None), 3))), s(2.2)), []);
    assert!(machine.is_over());

    // A claim that was under way is given back without a start.
    let mut machine = Ownership::new(config(1), replica("me"));
    let acquire = write(machine.step(listed(&[(lease(0, 7, None), 1)], &[]), ZERO));
    machine.step(Input::Stop, s(0.1));
    let release = machine.step(granted(&acquire, 2), s(0.2));
    assert_eq!(release.len(), 1);
    assert_eq!(write(release).purpose, Purpose::Release);
}

#[test]
fn who_is_silent_is_gone_after_a_lease_and_who_left_at_once() {
    let mut machine = Ownership::new(config(1), replica("me"));
    machine.step(listed(&[], &["silent", "left"]), ZERO);
    assert_eq!(machine.members(), ["left", "me", "silent"].map(replica).into());
    machine.step(Input::Shown(Shown::MemberGone { replica: replica("left") }), s(1.0));
    assert_eq!(machine.members(), ["me", "silent"].map(replica).into());
    // The same record once more is no sign of life.
    machine.step(Input::Shown(Shown::Member { replica: replica("silent"), revision: 1 }), s(9.0));
    machine.step(Input::Tick, s(9.9));
    assert_eq!(machine.members(), ["me", "silent"].map(replica).into());
    machine.step(Input::Tick, s(10.0));
    assert_eq!(machine.members(), ["me"].map(replica).into());
    machine.step(Input::Shown(Shown::Member { replica: replica("silent"), revision: 2 }), s(11.0));
    assert_eq!(machine.members(), ["me", "silent"].map(replica).into());
}

#[test]
fn records_of_shards_that_there_are_not_change_nothing() {
    let mut machine = owner();
    let strange = lease(77, 1, Some("other"));
    assert_eq!(machine.step(Input::Shown(Shown::Lease { lease: strange.clone(), revision: 99 }), s(1.1)), []);
    assert_eq!(machine.step(Input::Shown(Shown::LeaseGone { shard: 77 }), s(1.1)), []);
    assert_eq!(machine.step(Input::Drained { shard: 77, epoch: 1 }, s(1.1)), []);
    let mine = (lease(0, 1_000, Some("me")), 2);
    assert_eq!(machine.step(listed(&[mine, (strange, 99)], &[]), s(1.2)), []);
    assert_eq!(machine.owned(), [0]);
}

fn tried_again() -> Config {
    Config { again: s(60.0), ..config(1) }
}

#[test]
fn a_shard_that_was_refused_is_given_back_and_said_and_not_claimed_again_for_a_while() {
    let mut machine = owner_with(tried_again());
    let foreign = Input::Refused { shard: 0, epoch: 1_000, why: Refusal::Foreign };
    let actions = machine.step(foreign, s(2.0));
    assert_eq!(actions.first(), Some(&Action::Announce), "before the lease is free");
    assert_eq!((machine.refusals(), machine.owned()), (vec![0], vec![]));
    let release = write(actions);
    assert_eq!((release.purpose, release.owner.as_ref()), (Purpose::Release, None));
    machine.step(granted(&release, 3), s(2.1));
    assert!(!machine.is_owned(0));
    assert_eq!(writes(machine.step(Input::Tick, s(61.9))), []);
    // Nobody else has taken it: it may have been put right.
    let acquire = write(machine.step(Input::Tick, s(62.0)));
    assert_eq!((acquire.purpose, acquire.epoch), (Purpose::Acquire, 1_062));
    assert_eq!(machine.refusals(), Vec::<u32>::new());
}

#[test]
fn a_shard_that_was_refused_goes_to_another_one_and_stays_there() {
    // There is room for one shard, and it is with the first by name.
    let [first, second] = ["me", "other"].map(replica);
    let both = || vec![(first.clone(), 1), (second.clone(), 1)];
    let leases = vec![(lease(0, 7, None), 1)];
    let listed = |members| Input::Shown(Shown::Listed { leases: leases.clone(), members });

    // Who comes later is told by the record alone.
    let mut other = Ownership::new(tried_again(), second.clone());
    assert_eq!(writes(other.step(listed(both()), ZERO)), [], "it is the first one's");
    let mut other = Ownership::new(tried_again(), second.clone());
    other.step(Input::Shown(Shown::Refused { replica: first.clone(), shards: vec![0], revision: 1 }), ZERO);
    let acquire = write(other.step(listed(both()), ZERO));
    assert_eq!(acquire.purpose, Purpose::Acquire);
    other.step(granted(&acquire, 2), s(0.1));
    // A record of the same revision says the same, and a later one that it is over.
    other.step(Input::Shown(Shown::Member { replica: first.clone(), revision: 1 }), s(0.2));
    assert_eq!(other.owned(), [0]);

    let mut one = Ownership::new(tried_again(), first.clone());
    let acquire = write(one.step(listed(both()), ZERO));
    one.step(granted(&acquire, 2), s(0.1));
    let release =
        write(one.step(Input::Refused { shard: 0, epoch: acquire.epoch, why: Refusal::Foreign }, s(0.2)));
    one.step(granted(&release, 3), s(0.3));
    for second_owns in 0..40_u64 {
        let at = s(1.0 + 3.0 * second_owns as f64);
        let owned = Lease { owner: Some(second.clone()), ..lease(0, acquire.epoch + 1, None) };
        one.step(Input::Shown(Shown::Lease { lease: owned, revision: 4 + second_owns }), at);
        let renewed = Shown::Member { replica: second.clone(), revision: 4 + second_owns };
        assert_eq!(writes(one.step(Input::Shown(renewed), at)), [], "{at:?}");
    }
    assert_eq!((one.refusals(), one.is_owned(0)), (vec![0], true), "it stays with who has it");
}

#[test]
fn a_ledger_that_was_claimed_in_a_higher_epoch_is_claimed_in_the_one_after_it() {
    let mut machine = owner();
    let found = Input::Refused { shard: 0, epoch: 1_000, why: Refusal::Epoch(5_000) };
    let release = write(machine.step(found, s(2.0)));
    let acquire = write(machine.step(granted(&release, 3), s(2.1)));
    assert_eq!((acquire.purpose, acquire.epoch), (Purpose::Acquire, 5_001));
    assert_eq!(machine.refusals(), Vec::<u32>::new());
}
