//! Who is to own which shard.
//!
//! The way is rendezvous hashing with bounds. Each pair of a shard and a replica has a [`weight`]; a shard that is free
//! goes to the replica with the highest, among those that have room. Room is even: of `s` shards and `n` replicas each
//! gets `s / n`, and `s % n` of them one more.
//!
//! The trade: plain rendezvous asks nothing but the names. With 32 shards it is lumpy, though: of six replicas one may
//! own 13 shards and another none, and a sixth replica moves anything from 1 to 13 shards instead of 5. Rendezvous with
//! bounds that depends on the names alone is even, but bounds that shrink push shards from old replica to old replica:
//! a sixth one moves up to 10. No rule that knows the names alone is even and moves the least for all of them. So the
//! rule asks for one thing more, which everybody reads in the same place: who holds what now. What a replica holds
//! within its bound stays. A replica that comes then moves `s / (n + 1)` shards, to itself alone; one that goes moves
//! its own alone; and where nobody holds anything, the names alone decide.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use super::Replica;

/// How much a shard wants to be with a replica: seahash (its default seed) of the shard's number, as four bytes, the
/// lowest first, followed by the bytes of the replica's name.
#[must_use]
pub fn weight(shard: u32, replica: &Replica) -> u64 {
    let mut bytes = shard.to_le_bytes().to_vec();
    bytes.extend_from_slice(replica.as_str().as_bytes());
    seahash::hash(&bytes)
}

/// Who is to own each shard, by its number, when `members` are there and `held` says who owns one now; empty when
/// nobody is there. Another implementation gives the same with these steps, names compared byte by byte:
/// 1. A shard that is held by nobody, or by somebody who is no member, is free.
/// 2. Bounds: put the members that hold more than `s / n` first, then the others, both by name. The first `s % n` may
///    have `s / n + 1`, the others `s / n`.
/// 3. A member that holds more than its bound keeps those of the highest weight with it; the others are free.
/// 4. Take the pairs of a free shard and a member by weight, the highest first (of equal ones the lower shard, then the
///    lesser name). A pair whose shard is still free and whose member has room comes together.
///
/// While a change is under way, with some shards handed over and others not yet, the answer stays what it was.
#[must_use]
pub fn place<'a>(
    shards: NonZeroU32,
    members: &'a BTreeSet<Replica>,
    held: impl Fn(u32) -> Option<&'a Replica>,
) -> Vec<&'a Replica> {
    let (shards, count) = (shards.get() as usize, members.len());
    if count == 0 {
        return Vec::new();
    }
    let mut owned: BTreeMap<&Replica, Vec<u32>> = members.iter().map(|member| (member, Vec::new())).collect();
    let mut free: Vec<u32> = Vec::new();
    for shard in 0..shards as u32 {
        match held(shard).and_then(|owner| owned.get_mut(owner)) {
            Some(own) => own.push(shard),
            None => free.push(shard),
        }
    }

    let (least, more) = (shards / count, shards % count);
    let (full, others): (Vec<&Replica>, Vec<&Replica>) =
        members.iter().partition(|member| owned.get(member).is_some_and(|own| own.len() > least));
    let order = full.into_iter().chain(others);
    let mut room: BTreeMap<&Replica, usize> =
        order.enumerate().map(|(at, member)| (member, least + usize::from(at < more))).collect();
    let mut placed: Vec<Option<&Replica>> = vec![None; shards];
    for (member, own) in &mut owned {
        let left = room.entry(member).or_default();
        let kept = own.len().min(*left);
        if kept < own.len() {
            own.sort_by_cached_key(|shard| (Reverse(weight(*shard, member)), *shard));
        }
        free.extend(own.split_off(kept));
        *left -= kept;
        for shard in own {
            placed[*shard as usize] = Some(member);
        }
    }

    room.retain(|_, left| *left > 0);
    let pairs = free.iter().flat_map(|shard| room.keys().map(|member| (*shard, *member)));
    let mut pairs: Vec<(u64, u32, &Replica)> =
        pairs.map(|(shard, member)| (weight(shard, member), shard, member)).collect();
    pairs.sort_by(|left, right| (right.0, left.1, left.2).cmp(&(left.0, right.1, right.2)));
    for (_, shard, member) in pairs {
        let (place, Some(left)) = (&mut placed[shard as usize], room.get_mut(member)) else { continue };
        if place.is_none() && *left > 0 {
            *place = Some(member);
            *left -= 1;
        }
    }
    // Bounds add up to the number of shards: nothing is left over.
    placed.into_iter().flatten().collect()
}

/// As [`place`], but that a shard goes to nobody who `refuses` it, if somebody else is there: it stays with whoever holds it,
/// or goes to the one with the highest [`weight`], however many others that one has.
#[must_use]
pub fn place_allowed<'a>(
    shards: NonZeroU32,
    members: &'a BTreeSet<Replica>,
    held: impl Fn(u32) -> Option<&'a Replica>,
    refuses: impl Fn(&Replica, u32) -> bool,
) -> Vec<&'a Replica> {
    let placed = place(shards, members, &held);
    let allowed = |(shard, owner): (u32, &'a Replica)| {
        if !refuses(owner, shard) {
            return owner;
        }
        let others = || members.iter().filter(|member| !refuses(member, shard));
        let holder = held(shard).and_then(|holder| others().find(|member| *member == holder));
        let heaviest = || others().max_by_key(|member| weight(shard, member));
        holder.or_else(heaviest).unwrap_or(owner)
    };
    (0..).zip(placed).map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use pipeline_core::Key;
    use proptest::prelude::*;

    use super::*;
    use crate::SHARDS;
    use crate::sharding::Sharding;

    fn members(names: impl IntoIterator<Item = String>) -> BTreeSet<Replica> {
        names.into_iter().map(|name| Replica::new(&name).unwrap()).collect()
    }

    fn ordinals(count: usize) -> BTreeSet<Replica> {
        members((0..count).map(|n| format!("event-reporter-{n}")))
    }

    fn loads(members: &BTreeSet<Replica>, placed: &[&Replica]) -> Vec<usize> {
        members.iter().map(|member| placed.iter().filter(|owner| **owner == member).count()).collect()
    }

    fn count(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn a_placement_can_be_repeated_elsewhere() {
        let replica = Replica::new("event-reporter-0").unwrap();
        assert_eq!(weight(0, &replica), seahash::hash(b"\0\0\0\0event-reporter-0"));
        assert_eq!(weight(258, &replica), seahash::hash(b"\x02\x01\0\0event-reporter-0"));
        let three = ordinals(3);
        let placed = place(count(8), &three, |_| None);
        let numbers: String =
            placed.iter().map(|owner| owner.as_str().chars().next_back().unwrap()).collect();
        assert_eq!(numbers, "11002120");
    }

    #[test]
    fn nobody_owns_nothing_and_one_owns_all() {
        assert!(place(SHARDS, &BTreeSet::new(), |_| None).is_empty());
        let one = ordinals(1);
        assert_eq!(loads(&one, &place(SHARDS, &one, |_| None)), [32]);
        let many = ordinals(40);
        let placed = place(SHARDS, &many, |_| None);
        assert_eq!(loads(&many, &placed).iter().max(), Some(&1));
        assert_eq!(placed.len(), 32);
    }

    /// How plain rendezvous would place, to measure what the bounds are worth.
    fn plain(members: &BTreeSet<Replica>) -> Vec<&Replica> {
        let owner = |shard| members.iter().max_by_key(|member| weight(shard, member)).unwrap();
        (0..32).map(owner).collect()
    }

    #[test]
    fn a_sixth_replica_re_homes_at_most_seventeen_percent_of_fifty_thousand_objects() {
        let keys: Vec<Key> =
            (0..50_000).map(|n| Key::new("ns", &format!("team-{}-app-{n}", n % 37)).unwrap()).collect();
        let jump = Sharding::Jump { shards: SHARDS };
        let shard_of: Vec<u32> = keys.iter().map(|key| jump.place(key)).collect();
        let moved = |before: &[&Replica], after: &[&Replica]| {
            let homes = shard_of.iter().map(|shard| *shard as usize);
            homes.filter(|shard| before[*shard] != after[*shard]).count() as f64 / keys.len() as f64
        };
        let mut random = fastrand::Rng::with_seed(7);
        let (mut worst, mut worst_plain, mut least_plain) = (0.0_f64, 0.0_f64, 32);
        for round in 0..50 {
            // First those of a StatefulSet, then names as a Deployment gives them, where the new one is anywhere.
            let mut names: Vec<String> = match round {
                0 => (0..6).map(|n| format!("event-reporter-{n}")).collect(),
                _ => (0..6).map(|_| format!("event-reporter-{:08x}", random.u32(..))).collect(),
            };
            let six = members(names.clone());
            names.pop();
            let five = members(names);
            let before = place(SHARDS, &five, |_| None);
            let after = place(SHARDS, &six, |shard| Some(before[shard as usize]));
            assert_eq!(loads(&six, &after).iter().sum::<usize>(), 32);
            assert!(loads(&six, &after).iter().all(|load| (5..=6).contains(load)), "{after:?}");
            worst = worst.max(moved(&before, &after));
            worst_plain = worst_plain.max(moved(&plain(&five), &plain(&six)));
            least_plain = least_plain.min(loads(&six, &plain(&six)).into_iter().min().unwrap());
        }
        assert!((0.15..=0.17).contains(&worst), "{worst}");
        assert!(worst_plain > 0.25 && least_plain <= 1, "plain would do: {worst_plain}, {least_plain}");

        let fnv = |replicas| Sharding::FnvModulo { replicas: count(replicas) };
        let modulo = keys.iter().filter(|key| fnv(5).place(key) != fnv(6).place(key)).count();
        let modulo = modulo as f64 / keys.len() as f64;
        assert!((0.82..0.85).contains(&modulo), "{modulo}");
        println!("5 -> 6 replicas: {:.1} % move, with FNV modulo {:.1} %", worst * 100.0, modulo * 100.0);
    }

    fn names() -> impl Strategy<Value = BTreeSet<Replica>> {
        prop::collection::btree_set("[a-z0-9]{1,12}", 1..12).prop_map(members)
    }

    proptest! {
        #[test]
        fn every_replica_has_the_same_number_or_one_more(
            names in names(),
            shards in 1_u32..80,
            held in prop::collection::vec(prop::option::of(0_usize..14), 80),
        ) {
            let all: Vec<&Replica> = names.iter().collect();
            let stranger = Replica::new("stranger").unwrap();
            let before = |shard: u32| held[shard as usize].map(|at| all.get(at).copied().unwrap_or(&stranger));
            let after = place(count(shards), &names, before);
            prop_assert_eq!(after.len(), shards as usize);
            let least = shards as usize / names.len();
            for (member, load) in names.iter().zip(loads(&names, &after)) {
                prop_assert!(load == least || load == least + 1, "{}: {}", member, load);
            }
            // Nobody gives up a shard and takes another for it.
            for member in &names {
                let had = |shard: &u32| before(*shard) == Some(member);
                let has = |shard: &u32| after[*shard as usize] == member;
                let lost = (0..shards).any(|shard| had(&shard) && !has(&shard));
                let won = (0..shards).any(|shard| !had(&shard) && has(&shard));
                prop_assert!(!(lost && won), "{}", member);
            }
        }

        #[test]
        fn one_that_comes_takes_the_least_and_one_that_goes_gives_its_own(names in names(), at in 0_usize..12) {
            prop_assume!(names.len() > 1);
            let one = names.iter().nth(at % names.len()).unwrap();
            let rest: BTreeSet<Replica> = names.iter().filter(|name| *name != one).cloned().collect();
            let before = place(SHARDS, &rest, |_| None);
            let after = place(SHARDS, &names, |shard| Some(before[shard as usize]));
            let moved: Vec<usize> = (0..32).filter(|shard| before[*shard] != after[*shard]).collect();
            prop_assert_eq!(moved.len(), 32 / names.len());
            prop_assert!(moved.iter().all(|shard| after[*shard] == one));
            let back = place(SHARDS, &rest, |shard| Some(after[shard as usize]));
            for shard in 0..32 {
                prop_assert!(after[shard] == back[shard] || after[shard] == one);
            }
        }

        #[test]
        fn a_shard_goes_to_nobody_who_refuses_it_and_soon_nothing_moves_any_more(
            names in names(),
            gone in prop::collection::vec(0_usize..14, 32),
            refused in prop::collection::btree_set((0_usize..12, 0_u32..32), 0..100),
        ) {
            let all: Vec<&Replica> = names.iter().collect();
            let refuses = |member: &Replica, shard| {
                let number = all.iter().position(|other| *other == member);
                number.is_some_and(|number| refused.contains(&(number, shard)))
            };
            let mut held: Vec<Option<&Replica>> = gone.iter().map(|at| all.get(*at).copied()).collect();
            let mut settled = false;
            for _ in 0..names.len() + 2 {
                let placed = place_allowed(SHARDS, &names, |shard| held[shard as usize], refuses);
                for (shard, owner) in (0..).zip(&placed) {
                    let nobody = names.iter().all(|member| refuses(member, shard));
                    prop_assert!(nobody || !refuses(owner, shard), "{} has {}", owner, shard);
                }
                let next: Vec<Option<&Replica>> = placed.into_iter().map(Some).collect();
                settled = next == held;
                held = next;
            }
            prop_assert!(settled, "it goes on moving");
            if refused.is_empty() {
                let plain: Vec<Option<&Replica>> =
                    place(SHARDS, &names, |shard| held[shard as usize]).into_iter().map(Some).collect();
                prop_assert_eq!(plain, held);
            }
        }

        #[test]
        fn a_change_that_is_half_done_leads_to_the_same_end(
            names in names(),
            gone in prop::collection::vec(0_usize..14, 32),
            order in any::<u64>(),
        ) {
            let all: Vec<&Replica> = names.iter().collect();
            let mut held: Vec<Option<&Replica>> = gone.iter().map(|at| all.get(*at).copied()).collect();
            let target = place(SHARDS, &names, |shard| held[shard as usize]);
            let mut random = fastrand::Rng::with_seed(order);
            for _ in 0..200 {
                let shard = random.usize(..32);
                // What is to move is first released, and then taken.
                if held[shard] != Some(target[shard]) {
                    held[shard] = if held[shard].is_some() { None } else { Some(target[shard]) };
                }
                prop_assert_eq!(&place(SHARDS, &names, |shard| held[shard as usize]), &target);
            }
        }
    }
}
