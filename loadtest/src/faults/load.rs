//! Changes in the cluster, chosen by the seed: resources drift and fail, operations run and end, applications go and
//! come back under their name, and states return exactly to what they were.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use loadtest_judge::truth::End;
use loadtest_judge::witness::{Life, Witness};
use loadtest_sim::generate::{AppState, Fleet, ResourceState, Shape};
use loadtest_sim::kube::Collection;
use loadtest_sim::platform::Keep;
use loadtest_sim::{Load as Served, Setup, Simulation};

/// An application is deleted at the earliest so long after its first report: one whose very first report met a kill
/// is not known to have been.
pub(crate) const KNOWN_FOR: Duration = Duration::from_secs(5);
/// Operation ends of one application that are told apart while none can be reported.
pub(crate) const ENDS_KEPT: usize = 64;
/// Within so many steps a state returns to what it was.
const RETURN_WITHIN: u32 = 6;

/// Simulated peers with every application in them, who looks on at the platform, and the load.
pub(crate) async fn generated(
    shape: Shape,
    [argocd_latency, platform_latency]: [Duration; 2],
    keep: Keep,
) -> anyhow::Result<(Simulation, Witness, Load)> {
    let seed = shape.seed;
    let simulation = Simulation::start(Setup {
        load: Served::Generated(shape),
        argocd_latency,
        platform_latency,
        history: 200_000,
        keep,
        ..Setup::default()
    })
    .await?;
    simulation.populate()?;
    let witness = Witness::at(&simulation.platform);
    let load = Load::new(&simulation, &witness, seed)?;
    Ok((simulation, witness, load))
}

/// So many applications with so many resources each, of small bodies.
pub(crate) fn small(applications: u32, resources: u32, seed: u64) -> Shape {
    Shape {
        applications,
        resources,
        application_bytes: 2_000,
        resource_bytes: 1_000,
        seed,
        ..Shape::default()
    }
}

/// Makes the changes, and remembers which of them must be told whatever comes after.
#[derive(Debug)]
pub(crate) struct Load {
    fleet: Arc<Fleet>,
    witness: Witness,
    chance: fastrand::Rng,
    /// Applications that are left alone.
    spared: u32,
    /// No application is deleted.
    keeps: bool,
    pub(crate) changes: u64,
    /// Lives that ended.
    pub(crate) ended: Vec<Life>,
    /// Operations that ended.
    pub(crate) ends: Vec<End>,
    /// No application gets more operation ends than this; `None` is no bound.
    bound: Option<HashMap<u32, usize>>,
    /// States to return to: at which step, what, and what it was changed to.
    returns: Vec<(u64, AppState, AppState)>,
    steps: u64,
}

impl Load {
    fn new(simulation: &Simulation, witness: &Witness, seed: u64) -> anyhow::Result<Self> {
        let fleet = simulation.fleet.clone().context("the simulation generates no applications")?;
        Ok(Self {
            fleet,
            witness: witness.clone(),
            chance: fastrand::Rng::with_seed(seed),
            spared: 0,
            keeps: false,
            changes: 0,
            ended: Vec::new(),
            ends: Vec::new(),
            bound: None,
            returns: Vec::new(),
            steps: 0,
        })
    }

    /// The first `count` applications change no more.
    pub(crate) fn spare(&mut self, count: u32) {
        self.spared = count;
    }

    /// From now on no application is deleted (`true`), or some are again: where the ledger itself is lost, nothing tells of
    /// one that goes at the same time.
    pub(crate) fn keep_all(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// From now on no application ends more operations than are kept for it while none can be reported; `false`
    /// takes the bound away.
    pub(crate) fn bound(&mut self, bound: bool) {
        self.bound = bound.then(HashMap::new);
    }

    /// Makes changes, `per_second` of them, until it is dropped.
    pub(crate) async fn run(&mut self, simulation: &Simulation, per_second: f64) -> anyhow::Result<()> {
        self.make(simulation, u64::MAX, per_second).await
    }

    /// Makes so many changes, `per_second` of them.
    pub(crate) async fn make(
        &mut self,
        simulation: &Simulation,
        count: u64,
        per_second: f64,
    ) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
        let before = self.changes;
        while self.changes - before < count {
            ticks.tick().await;
            self.step(simulation)?;
        }
        Ok(())
    }

    /// One step: a change, seldom none.
    pub(crate) fn step(&mut self, simulation: &Simulation) -> anyhow::Result<()> {
        self.steps += 1;
        if let Some(at) = self.returns.iter().position(|(due, ..)| *due <= self.steps) {
            let (_, was, is) = self.returns.swap_remove(at);
            if self.state(was.index)? == is {
                return self.put(simulation, was);
            }
        }
        let all = self.fleet.shape().applications;
        let index = self.chance.u32(self.spared..all);
        let mut state = self.state(index)?;
        if state.gone {
            state.gone = false;
            state.life += 1;
            state.serial += 1;
            state.resources = state.resources.iter().map(|_| ResourceState::default()).collect();
            return self.put(simulation, state);
        }
        let part = self.chance.usize(0..state.resources.len());
        let mut resources = state.resources.to_vec();
        match self.chance.u32(0..100) {
            0..50 => {
                resources[part].changes += 1;
                state.serial += 1;
            }
            50..62 => {
                resources[part].degraded = !resources[part].degraded;
                state.serial += 1;
            }
            62..75 => {
                // There and back again, in everything but the resourceVersion.
                let was = state.clone();
                resources[part].degraded = !resources[part].degraded;
                state.resources = resources.into();
                let due = self.steps + u64::from(self.chance.u32(1..=RETURN_WITHIN));
                self.returns.push((due, was, state.clone()));
                return self.put(simulation, state);
            }
            75..93 => return self.operate(simulation, state),
            _ => return self.delete(simulation, &state),
        }
        state.resources = resources.into();
        self.put(simulation, state)
    }

    /// A drift of one application's resource; gives the new resourceVersion.
    pub(crate) fn drift(&mut self, simulation: &Simulation, index: u32) -> anyhow::Result<u64> {
        let mut state = self.state(index)?;
        let mut resources = state.resources.to_vec();
        let part = self.chance.usize(0..resources.len());
        resources[part].changes += 1;
        state.serial += 1;
        state.resources = resources.into();
        self.put(simulation, state)?;
        let key = self.fleet.key(index)?;
        simulation.kube.version_of(Collection::Applications, &key).context("find a generated application")
    }

    /// Changes every application once more, so that whoever knows all of these changes has been told of every change before them.
    pub(crate) fn change_all(&mut self, simulation: &Simulation) -> anyhow::Result<()> {
        let living = self.fleet.snapshot().into_iter().skip(self.spared as usize).filter(|state| !state.gone);
        for state in living {
            self.drift(simulation, state.index)?;
        }
        Ok(())
    }

    /// Ends an operation of an application, and begins another one, which hides that end in the cluster.
    pub(crate) fn end_and_hide(&mut self, simulation: &Simulation, index: u32) -> anyhow::Result<()> {
        let before = self.ends.len();
        // Where none runs, one begins before it ends.
        for _ in 0..2 {
            if self.ends.len() == before {
                let state = self.state(index)?;
                self.operate(simulation, state)?;
            }
        }
        anyhow::ensure!(self.ends.len() > before, "no operation of {} ends", Fleet::name(index));
        let state = self.state(index)?;
        self.operate(simulation, state)
    }

    /// The first application that is there and not left alone.
    pub(crate) fn first_living(&self) -> anyhow::Result<u32> {
        let all = self.fleet.snapshot().into_iter().skip(self.spared as usize);
        let mut living = all.filter(|state| !state.gone).map(|state| state.index);
        living.next().context("find an application that is there")
    }

    /// Begins an operation, or ends the one that runs.
    fn operate(&mut self, simulation: &Simulation, mut state: AppState) -> anyhow::Result<()> {
        state.serial += 1;
        if state.commit == state.deployed {
            state.commit += 1;
            return self.put(simulation, state);
        }
        if let Some(bound) = &mut self.bound {
            let count = bound.entry(state.index).or_default();
            if *count >= ENDS_KEPT {
                return Ok(());
            }
            *count += 1;
        }
        state.deployed = state.commit;
        if let Some(finished) = Fleet::operation_end(&state) {
            let (name, uid) = (Fleet::name(state.index), self.fleet.uid(&state));
            self.ends.push(End { name, uid, finished, at: Instant::now() });
        }
        self.put(simulation, state)
    }

    /// Deletes an application that has been known for a while.
    pub(crate) fn delete(&mut self, simulation: &Simulation, state: &AppState) -> anyhow::Result<()> {
        let life = (Fleet::name(state.index), self.fleet.uid(state));
        let known = self.witness.lock().lives.get(&life).is_some_and(|since| since.elapsed() >= KNOWN_FOR);
        if known && !self.keeps && simulation.delete(state.index)? {
            self.witness.happened(&life.0, "is deleted");
            self.ended.push(life);
            self.changes += 1;
        }
        Ok(())
    }

    fn put(&mut self, simulation: &Simulation, state: AppState) -> anyhow::Result<()> {
        let key = self.fleet.key(state.index)?;
        let before = self.state(state.index)?;
        for (part, (was, is)) in before.resources.iter().zip(&state.resources[..]).enumerate() {
            if was != is {
                let application = Fleet::name(state.index);
                self.witness.touched(&application, &format!("{application}-r{part}"));
            }
        }
        self.fleet.set(state.clone());
        let (name, health) = (Fleet::name(state.index), state.healthy());
        let version = simulation.kube.apply_generated(&key, state);
        self.witness
            .happened(&name, &format!("is {version} {}", if health { "healthy" } else { "degraded" }));
        self.changes += 1;
        Ok(())
    }

    fn state(&self, index: u32) -> anyhow::Result<AppState> {
        self.fleet.find_any(index).context("find a generated application")
    }
}
