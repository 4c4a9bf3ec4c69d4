//! Who owns which shard, as the replicas tell it of themselves: asked again and again while something is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use loadtest_sim::reporter::Status;
use loadtest_sim::{local_client, until};

/// How many shards replicas that come and go have.
pub(super) const SHARDS: u32 = 32;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// A replica that does not answer within this time is asked again,
const ANSWERS_WITHIN: Duration = Duration::from_millis(800);
/// and after this one owns nothing that is known of: so long its leases live at most, unless it renews them. On a machine
/// that is busy with other things a page that comes late says nothing of a lease. What it has lost meanwhile counts as owned
/// by nobody since it said to own it.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// Shards by the replica that says to own them.
pub(super) type Told = BTreeMap<String, BTreeSet<u32>>;

/// Asks all replicas, until it is dropped.
#[derive(Debug)]
pub(super) struct Owners {
    state: Arc<Mutex<State>>,
    asking: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Where each replica serves.
    pages: BTreeMap<String, String>,
    /// Those that are cut off: what they say to own is as good as owned by nobody.
    apart: BTreeSet<String>,
    /// As of the last look.
    told: Told,
    /// What each said last, and when.
    last: BTreeMap<String, (BTreeSet<u32>, Instant)>,
    /// Shards that nobody owns, and since when.
    free: BTreeMap<u32, Instant>,
    /// The longest that a shard was owned by nobody.
    longest: Duration,
    /// Counts looks.
    looks: u64,
}

impl State {
    fn take(&mut self, told: Told, now: Instant) {
        // One that has gone meanwhile says nothing any more.
        self.told = told.into_iter().filter(|(name, _)| self.pages.contains_key(name)).collect();
        self.looks += 1;
        let before = std::mem::take(&mut self.last);
        let owned_at = |shard: u32| {
            let said =
                before.iter().filter(|(name, (own, _))| own.contains(&shard) && !self.apart.contains(*name));
            said.map(|(_, (_, at))| *at).max().unwrap_or(now)
        };
        let since: Vec<Instant> = (0..SHARDS).map(owned_at).collect();
        self.last = before;
        self.last.retain(|_, (_, at)| now.duration_since(*at) <= KNOWN_FOR);
        self.last.extend(self.told.iter().map(|(name, own)| (name.clone(), (own.clone(), now))));
        self.count(now, |shard| since.get(shard as usize).copied().unwrap_or(now));
    }

    /// Counts what is owned; what is not has been free since a moment of its own.
    fn count(&mut self, now: Instant, since: impl Fn(u32) -> Instant) {
        let reached = self.last.iter().filter(|(name, _)| !self.apart.contains(*name));
        let owned: BTreeSet<u32> = reached.flat_map(|(_, (shards, _))| shards).copied().collect();
        for shard in 0..SHARDS {
            if !owned.contains(&shard) {
                self.free.entry(shard).or_insert_with(|| since(shard));
            } else if let Some(since) = self.free.remove(&shard) {
                self.longest = self.longest.max(now.duration_since(since));
            }
        }
    }

    fn longest(&self, now: Instant) -> Duration {
        let lasting = self.free.values().map(|since| now.duration_since(*since));
        lasting.fold(self.longest, Duration::max)
    }

    fn is_settled(&self) -> bool {
        is_settled(self.pages.keys().filter(|name| !self.apart.contains(*name)), &self.told)
    }
}

/// Whether every shard is owned once, by these alone, and evenly.
fn is_settled<'a>(members: impl Iterator<Item = &'a String>, told: &Told) -> bool {
    let members: Vec<Option<&BTreeSet<u32>>> = members.map(|name| told.get(name)).collect();
    let least = SHARDS as usize / members.len().max(1);
    let owned: Vec<u32> = members.iter().flatten().copied().flatten().copied().collect();
    let each: BTreeSet<u32> = owned.iter().copied().collect();
    owned.len() == SHARDS as usize
        && each.len() == owned.len()
        && members.iter().all(|own| own.is_some_and(|own| own.len() >= least))
}

impl Owners {
    /// Begins to ask.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let client = local_client().timeout(ANSWERS_WITHIN).build().context("make a client")?;
        let state = Arc::new(Mutex::new(State::default()));
        let asking = tokio::spawn(ask(client, state.clone()));
        Ok(Self { state, asking })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A replica serves there from now on.
    pub(super) fn joined(&self, name: &str, url: &str) {
        self.lock().pages.insert(name.to_owned(), url.to_owned());
    }

    /// A replica has gone, or stands still: what it last said to own is owned by nobody.
    pub(super) fn left(&self, name: &str) {
        let mut state = self.lock();
        state.pages.remove(name);
        state.told.remove(name);
        state.last.remove(name);
        let now = Instant::now();
        state.count(now, |_| now);
    }

    /// A replica is cut off: it goes on saying what it owns, until it knows better.
    pub(super) fn cut(&self, name: &str) {
        let mut state = self.lock();
        state.apart.insert(name.to_owned());
        let now = Instant::now();
        state.count(now, |_| now);
    }

    /// It is reached again.
    pub(super) fn mended(&self, name: &str) {
        self.lock().apart.remove(name);
    }

    /// Who says to own what, as of the last look.
    pub(super) fn told(&self) -> Told {
        self.lock().told.clone()
    }

    /// Begins anew to look for the longest time that a shard is owned by nobody.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        state.free.clear();
        state.longest = Duration::ZERO;
    }

    /// The longest time since [`Self::begin`] that a shard was owned by nobody.
    pub(super) fn longest(&self) -> Duration {
        self.lock().longest(Instant::now())
    }

    /// Waits until every shard is owned by exactly one replica, and evenly, as seen by looks that began after this call.
    pub(super) async fn settled(&self, within: Duration) -> anyhow::Result<()> {
        // The look that is under way may have begun before.
        let first = self.lock().looks + 2;
        let look = async || {
            let state = self.lock();
            Ok((state.looks < first || !state.is_settled()).then(|| named(&state.told)))
        };
        let Some(told) = until(within, LOOK, look, Option::is_none).await? else { return Ok(()) };
        anyhow::bail!("waited {within:?} in vain for every shard to be owned once and evenly: {told}")
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

/// How many shards each one owns, for people.
fn named(told: &Told) -> String {
    let one = |(name, shards): (&String, &BTreeSet<u32>)| format!("{name} owns {}", shards.len());
    let all: Vec<String> = told.iter().map(one).collect();
    let owned: BTreeSet<u32> = told.values().flatten().copied().collect();
    format!("{}; {} of {SHARDS} shards are owned", all.join(", "), owned.len())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn ask(client: reqwest::Client, state: Arc<Mutex<State>>) {
    loop {
        let pages = lock(&state).pages.clone();
        let asked = pages.into_iter().map(async |(name, url)| {
            let answer = client.get(format!("{url}/status")).send().await.ok()?.text().await.ok()?;
            let status: Status = serde_json::from_str(&answer).ok()?;
            Some((name, status.shards.iter().map(|figures| figures.shard).collect()))
        });
        let told: Told = join_all(asked).await.into_iter().flatten().collect();
        lock(&state).take(told, Instant::now());
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(shares: &[(&str, std::ops::Range<u32>)]) -> Told {
        shares.iter().map(|(name, shards)| ((*name).to_owned(), shards.clone().collect())).collect()
    }

    fn state(pages: &[&str]) -> State {
        let pages = pages.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        State { pages, ..State::default() }
    }

    #[test]
    fn a_shard_is_free_from_the_moment_its_owner_leaves_until_somebody_else_owns_it() {
        let mut state = state(&["a", "b"]);
        let now = Instant::now();
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        state.take(told(&[("a", 0..16), ("b", 16..32)]), at(0));
        assert!(state.is_settled() && state.longest(at(0)).is_zero());
        state.pages.remove("b");
        state.told.remove("b");
        state.last.remove("b");
        state.count(at(1), |_| at(1));
        state.take(told(&[("a", 0..31), ("b", 16..32)]), at(4));
        assert_eq!(
            (state.longest, state.longest(at(6)).as_secs(), state.is_settled()),
            (at(4) - at(1), 5, false)
        );
        state.take(told(&[("a", 0..32)]), at(8));
        assert_eq!((state.longest(at(99)).as_secs(), state.is_settled()), (7, true));
    }

    #[test]
    fn a_replica_that_answers_late_owns_what_it_said_and_what_it_lost_it_lost_then() {
        let mut state = state(&["a", "b"]);
        let now = Instant::now();
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let both = [("a", 0..16), ("b", 16..32)];
        state.take(told(&both), at(0));
        state.take(told(&both[..1]), at(2));
        assert!(state.longest(at(2)).is_zero() && !state.is_settled(), "b did not answer");
        state.take(told(&both), at(4));
        assert!(state.longest(at(4)).is_zero() && state.is_settled());
        state.take(told(&both[..1]), at(6));
        state.take(told(&[("a", 0..16), ("b", 16..31)]), at(7));
        assert_eq!(
            state.longest(at(9)),
            at(9) - at(4),
            "b may have lost it as soon as it had said to own it"
        );
        state.take(told(&[("a", 0..16), ("b", 16..32)]), at(9));
        state.take(told(&both[..1]), at(20));
        assert_eq!((state.free.len(), state.longest(at(21))), (16, at(21) - at(9)), "b answers no more");
    }

    #[test]
    fn two_owners_of_a_shard_and_one_that_is_cut_off_are_not_settled() {
        let mut state = state(&["a", "b", "c"]);
        let now = Instant::now();
        state.take(told(&[("a", 0..16), ("b", 16..32), ("c", 0..1)]), now);
        assert!(!state.is_settled(), "c owns too little, and what a owns");
        state.apart.insert("c".to_owned());
        assert!(state.is_settled(), "what c says does not count");
        state.apart.insert("b".to_owned());
        state.count(now, |_| now);
        assert_eq!(state.free.len(), 16, "what b says does not count");
        state.apart.clear();
        state.take(told(&[("a", 0..11), ("b", 11..22), ("c", 22..32)]), now);
        assert!(state.is_settled() && state.free.is_empty());
        state.take(told(&[("a", 0..11), ("b", 11..21), ("c", 21..32)]), now);
        assert!(state.is_settled(), "11, 11 and 10 in any order");
        state.take(told(&[("a", 0..13), ("b", 13..23), ("c", 23..32)]), now);
        assert!(!state.is_settled(), "one owns too little");
    }
}
