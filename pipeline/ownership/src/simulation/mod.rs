//! Several replicas, a store of leases, and everything that may go wrong between them: repeated from a seed.
//!
//! There is no thread and no clock: one seeded generator decides what is lost, late, paused or killed, and time goes on
//! in steps of 50 ms. The state machines are the real ones. Every replica counts time from a beginning of its own.
//! Reports are begun whenever a replica believes that it may; each lasts as long as a report may. What must hold is
//! checked at every step: see [`Simulation::check`].

mod replica;
mod store;
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;

use self::replica::Process;
use self::store::Store;
use super::{Config, Replica, SHARDS};

const STEP: Duration = Duration::from_millis(50);
/// How long a report may take.
const POST: Duration = Duration::from_secs(3);
/// How long everything may go wrong.
const TROUBLE: Duration = Duration::from_secs(120);
/// By then every shard is owned, and evenly, once nothing goes wrong any more: an owner within 15 s, and then a hand-over
/// for which shards have to drain.
const OWNED: Duration = Duration::from_secs(15);
const EVEN: Duration = Duration::from_secs(45);
/// From when one owner has drained until the next has begun.
const HANDED_OVER: Duration = Duration::from_secs(2);

/// Something that is broken on purpose: a simulation that does not find it checks nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    /// The store writes whatever comes.
    BlindStore,
    /// A report is begun as long as the lease lives, not only as long as the report ends before it.
    LateReports,
    /// A replica says that a shard has drained while reports of it are under way.
    HastyDrain,
    /// A lease is counted from the answer to its renewal.
    CountedFromAnswer,
    /// Every other replica waits only half as long as a lease lives.
    Impatient,
}

/// A report that is under way.
struct Report {
    replica: Replica,
    epoch: u64,
    until: Duration,
}

struct Simulation {
    rng: Rng,
    mutant: Option<Mutant>,
    config: Config,
    now: Duration,
    store: Store,
    processes: Vec<Process>,
    born: u64,
    reports: BTreeMap<u32, Vec<Report>>,
    /// The highest epoch of which a report was begun.
    begun: BTreeMap<u32, u64>,
    /// Nothing new goes wrong.
    calm: bool,
    /// When each shard was last owned, or drained.
    owned: BTreeMap<u32, Duration>,
    /// Reports that were begun: a run without any would prove nothing.
    sent: u64,
}

/// Runs one simulation; gives how many reports were begun, or how it failed.
fn run(seed: u64, mutant: Option<Mutant>) -> Result<u64, String> {
    let mut simulation = Simulation::new(seed, mutant);
    let told = |why: String, now: Duration| format!("seed {seed} at {now:?}: {why}");
    simulation.whole().map_err(|why| told(why, simulation.now))?;
    Ok(simulation.sent)
}

impl Simulation {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let drain = Duration::from_secs(rng.u64(2..12));
        let config = Config { drain, ..Config::tested(1_790_000_000) };
        config.check(POST).unwrap();
        let mut simulation = Self {
            rng,
            mutant,
            config,
            now: Duration::ZERO,
            store: Store::new(mutant == Some(Mutant::BlindStore)),
            processes: Vec::new(),
            born: 0,
            reports: BTreeMap::new(),
            begun: BTreeMap::new(),
            calm: false,
            owned: BTreeMap::new(),
            sent: 0,
        };
        for _ in 0..simulation.rng.usize(1..5) {
            simulation.begin();
        }
        simulation
    }

    fn begin(&mut self) {
        self.born += 1;
        let mut config = self.config;
        if self.mutant == Some(Mutant::Impatient) && self.born.is_multiple_of(2) {
            config.ttl /= 2;
        }
        let process = Process::begin(self.born, config, self.now, &mut self.rng, &self.store);
        self.processes.push(process);
    }

    fn whole(&mut self) -> Result<(), String> {
        while self.now < TROUBLE {
            self.trouble();
            self.advance()?;
        }
        self.calm();
        let calm = self.now;
        while self.now < calm + OWNED {
            self.advance()?;
        }
        self.all_owned()?;
        while self.now < calm + EVEN {
            self.advance()?;
            self.all_owned()?;
        }
        self.all_even()?;
        self.kill_one_and_see()
    }

    /// One owner is killed where all was well: its shards have another one within 15 s.
    fn kill_one_and_see(&mut self) -> Result<(), String> {
        if self.processes.len() < 2 {
            return Ok(());
        }
        let one = self.rng.usize(..self.processes.len());
        self.processes.remove(one);
        let killed = self.now;
        while self.now < killed + OWNED {
            self.advance()?;
        }
        self.all_owned()
    }

    /// Something may go wrong, or be put right.
    fn trouble(&mut self) {
        let (now, live) = (self.now, self.processes.len());
        match self.rng.u32(..600) {
            0..=1 if live < 6 => self.begin(),
            2 if live > 0 => {
                let one = self.rng.usize(..live);
                self.processes.remove(one);
            }
            3 if live > 0 => {
                let one = self.rng.usize(..live);
                self.processes[one].stop();
            }
            4..=6 if live > 0 => {
                let (one, long) = (self.rng.usize(..live), Duration::from_millis(self.rng.u64(100..25_000)));
                self.processes[one].paused_until = now + long;
            }
            7..=9 if live > 0 => {
                let (one, long) = (self.rng.usize(..live), Duration::from_millis(self.rng.u64(100..25_000)));
                self.processes[one].cut_until = now + long;
            }
            10..=11 => self.store.away_until = now + Duration::from_millis(self.rng.u64(100..15_000)),
            12 if self.rng.u32(..4) == 0 => self.store.lose_everything(),
            _ => {}
        }
    }

    fn calm(&mut self) {
        self.calm = true;
        self.store.away_until = self.now;
        for process in &mut self.processes {
            process.paused_until = self.now;
            process.cut_until = self.now;
        }
        if self.processes.iter().all(Process::is_stopping) {
            self.begin();
        }
    }

    fn advance(&mut self) -> Result<(), String> {
        self.now += STEP;
        for reports in self.reports.values_mut() {
            reports.retain(|report| report.until > self.now);
        }
        for at in 0..self.processes.len() {
            let mut process = self.processes.swap_remove(at);
            process.run(self);
            self.send(&process)?;
            self.processes.push(process);
            let last = self.processes.len() - 1;
            self.processes.swap(at, last);
        }
        self.processes.retain(|process| !process.is_over());
        self.note_owned();
        self.check()
    }

    /// Begins a report of every shard that a replica may send for.
    fn send(&mut self, process: &Process) -> Result<(), String> {
        if process.paused_until > self.now {
            return Ok(());
        }
        let post = if self.mutant == Some(Mutant::LateReports) { Duration::ZERO } else { POST };
        for shard in 0..SHARDS.get() {
            let Some(term) = process.may_send(shard, self.now, post) else { continue };
            self.sent += 1;
            let (name, begun) = (process.name(), self.begun.entry(shard).or_default());
            if term < *begun {
                return Err(format!("{name} begins a report of shard {shard} in epoch {term} after {begun}"));
            }
            *begun = term;
            let reports = self.reports.entry(shard).or_default();
            reports.retain(|report| report.replica != name);
            reports.push(Report { replica: name, epoch: term, until: self.now + POST });
        }
        Ok(())
    }

    /// At no time are reports of one shard under way by two owners, and epochs rise in the store.
    fn check(&self) -> Result<(), String> {
        for (shard, reports) in &self.reports {
            if let [one, other, ..] = reports.as_slice() {
                let [one, other] =
                    [one, other].map(|report| format!("{} in {}", report.replica, report.epoch));
                return Err(format!("shard {shard} is sent for by two: {one} and {other}"));
            }
        }
        self.store.check()
    }

    /// What is under way of a shard when it stops: a report ends within its time-out, whoever waits for it.
    fn under_way(&self, shard: u32, name: &Replica) -> Option<Duration> {
        if self.mutant == Some(Mutant::HastyDrain) {
            return None;
        }
        let reports = self.reports.get(&shard)?;
        reports.iter().filter(|report| report.replica == *name).map(|report| report.until).max()
    }

    /// Notes which shards are owned, or still drain.
    fn note_owned(&mut self) {
        for shard in 0..SHARDS.get() {
            let works = |process: &Process| {
                process.may_send(shard, self.now, Duration::ZERO).is_some() || process.is_draining(shard)
            };
            if self.processes.iter().any(works) {
                self.owned.insert(shard, self.now);
            }
        }
    }

    /// Every shard is owned, or was until just now, and is handed over.
    fn all_owned(&self) -> Result<(), String> {
        for shard in 0..SHARDS.get() {
            let last = self.owned.get(&shard).copied().unwrap_or_default();
            if last + HANDED_OVER < self.now {
                return Err(format!("nobody owns shard {shard} since {last:?}"));
            }
        }
        Ok(())
    }

    fn all_even(&self) -> Result<(), String> {
        let stays = || self.processes.iter().filter(|process| !process.is_stopping());
        let least = SHARDS.get() as usize / stays().count();
        for process in stays() {
            let owned = process.owned();
            if owned != least && owned != least + 1 {
                return Err(format!("{} owns {owned} shards, not {least} or one more", process.name()));
            }
        }
        Ok(())
    }
}
