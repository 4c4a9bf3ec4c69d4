//! Generated load: any number of applications with their resources, and changes to them.
//!
//! An application is a few numbers; its text and Argo CD's answers about it are filled into templates when
//! they are asked for, so that 50,000 applications need little memory. The same seed gives the same
//! applications and the same changes.

mod answers;
mod application;
mod change;
mod life;
mod template;
#[cfg(test)]
mod tests;
mod workload;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::ensure;
use pipeline_core::Key;

use answers::Answers;
use application::Application;
pub use change::{Change, Mix};
pub use workload::{Workload, WorkloadKind, WorkloadShape, Workloads};

/// Which Argo CD is pretended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// 2.x of the fork: health in `status.resources`, `manifests` as objects with raw manifest and path.
    V2,
    /// 3.x: health in the tree alone, `manifests` as plain texts.
    #[default]
    V3,
}

/// What is generated.
#[derive(Debug, Clone)]
pub struct Shape {
    /// How many applications.
    pub applications: u32,
    /// Resources of each, 1 to 1,000.
    pub resources: u32,
    /// Their namespace.
    pub namespace: String,
    /// Size of an Application's JSON, at least.
    pub application_bytes: usize,
    /// Size of one item of `managed-resources`, at least.
    pub resource_bytes: usize,
    /// Which Argo CD.
    pub line: Line,
    /// Decides everything that looks random.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            applications: 100,
            resources: 10,
            namespace: "argocd".to_owned(),
            application_bytes: 5_000,
            resource_bytes: 4_000,
            line: Line::default(),
            seed: 1,
        }
    }
}

/// The state of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceState {
    /// How often it changed; it is out of sync when odd.
    pub changes: u32,
    /// Whether it is degraded.
    pub degraded: bool,
}

impl ResourceState {
    /// Whether the live state differs from the desired one.
    #[must_use]
    pub fn drifted(self) -> bool {
        self.changes % 2 == 1
    }
}

/// The state of one application: everything that is not the same for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppState {
    /// Which application.
    pub index: u32,
    /// How often it was made anew under its name; each life has a uid of its own.
    pub life: u32,
    /// Changes so far.
    pub serial: u32,
    /// The commit that it is compared with.
    pub commit: u32,
    /// The commit that its history ends with.
    pub deployed: u32,
    /// Its resources.
    pub resources: Arc<[ResourceState]>,
    /// It was deleted.
    pub gone: bool,
}

impl AppState {
    /// Synced and healthy, before any change.
    fn first(index: u32, resources: u32) -> Self {
        let resources = vec![ResourceState::default(); resources as usize].into();
        Self { index, life: 0, serial: 0, commit: 1, deployed: 1, resources, gone: false }
    }

    /// Whether every resource is in sync.
    #[must_use]
    pub fn synced(&self) -> bool {
        !self.resources.iter().any(|resource| resource.drifted())
    }

    /// Whether no resource is degraded.
    #[must_use]
    pub fn healthy(&self) -> bool {
        !self.resources.iter().any(|resource| resource.degraded)
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The new state.
    pub state: AppState,
    /// What happened.
    pub change: Change,
    /// How many reports it is worth when no other change comes before they are made.
    pub reports: u32,
}

/// All generated applications, as the cluster and Argo CD both see them.
#[derive(Debug)]
pub struct Fleet {
    shape: Shape,
    states: Mutex<Vec<AppState>>,
    application: Application,
    answers: Answers,
}

impl Fleet {
    /// Generates the applications in their first state: synced and healthy.
    pub fn new(shape: Shape) -> anyhow::Result<Self> {
        ensure!((1..=1_000).contains(&shape.resources), "generate 1 to 1,000 resources an application");
        let first = AppState::first(0, shape.resources);
        let states = (0..shape.applications).map(|index| AppState { index, ..first.clone() }).collect();
        let application = Application::new(&shape);
        let answers = Answers::new(&shape);
        Ok(Self { states: Mutex::new(states), application, answers, shape })
    }

    /// What was asked for.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The name of an application.
    #[must_use]
    pub fn name(index: u32) -> String {
        format!("app-{index:05}")
    }

    /// The key of an application.
    pub fn key(&self, index: u32) -> anyhow::Result<Key> {
        Ok(Key::new(&self.shape.namespace, &Self::name(index))?)
    }

    /// The application of this name as it is now; `None` when there is none, or it was deleted.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<AppState> {
        let index: usize = name.strip_prefix("app-")?.parse().ok()?;
        self.states().get(index).filter(|state| !state.gone).cloned()
    }

    /// Every application as it is now, those that were deleted too.
    #[must_use]
    pub fn snapshot(&self) -> Vec<AppState> {
        self.states().clone()
    }

    /// Marks an application as deleted: Argo CD does not know it any more.
    pub fn remove(&self, index: u32) {
        if let Some(state) = self.states().get_mut(index as usize) {
            state.gone = true;
        }
    }

    /// Makes a chosen change to a chosen application that is there; `None` when none is.
    pub fn change(&self, mix: Mix, chance: &mut fastrand::Rng) -> Option<Changed> {
        let count = self.states().len();
        if count == 0 {
            return None;
        }
        let index = u32::try_from(chance.usize(0..count)).ok()?;
        let change = mix.choose(chance);
        self.change_one(index, change, chance)
    }

    /// Makes a change to one application; `None` when it is not there.
    pub fn change_one(&self, index: u32, change: Change, chance: &mut fastrand::Rng) -> Option<Changed> {
        let which = chance.usize(0..self.shape.resources as usize);
        let mut states = self.states();
        let state = states.get_mut(index as usize).filter(|state| !state.gone)?;
        let was_healthy = state.healthy();
        let mut resources = state.resources.to_vec();
        state.serial += 1;
        match change {
            Change::Drift => resources[which].changes += 1,
            Change::Commit => {
                state.commit += 1;
                resources[which].changes += 1;
            }
            Change::Deploy => {
                state.commit += 1;
                state.deployed = state.commit;
                for resource in resources.iter_mut().filter(|resource| resource.drifted()) {
                    resource.changes += 1;
                }
            }
            Change::Health => resources[which].degraded = !resources[which].degraded,
            Change::Reconcile => {}
        }
        state.resources = resources.into();
        let all = 1 + self.shape.resources;
        let reports = match change {
            Change::Drift | Change::Commit => 2,
            Change::Deploy => all,
            Change::Health if state.healthy() && !was_healthy => all,
            Change::Health => 2,
            Change::Reconcile => 0,
        };
        Some(Changed { state: state.clone(), change, reports })
    }

    /// Appends the JSON of an application at a resourceVersion.
    pub fn application(&self, state: &AppState, version: u64, out: &mut Vec<u8>) {
        self.application.render(&self.shape, state, version, out);
    }

    /// The body of `managed-resources`.
    #[must_use]
    pub fn managed_resources(&self, state: &AppState) -> Vec<u8> {
        self.answers.managed_resources(&self.shape, state)
    }

    /// The body of `resource-tree`.
    #[must_use]
    pub fn resource_tree(&self, state: &AppState) -> Vec<u8> {
        self.answers.resource_tree(&self.shape, state)
    }

    /// The body of `manifests`.
    #[must_use]
    pub fn manifests(&self, state: &AppState) -> Vec<u8> {
        self.answers.manifests(&self.shape, state)
    }

    /// The body of `resource` for the resource of this kind and name; `None` when there is none.
    #[must_use]
    pub fn resource(&self, state: &AppState, kind: &str, name: &str) -> Option<Vec<u8>> {
        self.answers.resource(&self.shape, state, kind, name)
    }

    /// The body of `revisions/{revision}/metadata`.
    #[must_use]
    pub fn revision_metadata(revision: &str) -> Vec<u8> {
        answers::revision_metadata(revision)
    }

    fn states(&self) -> MutexGuard<'_, Vec<AppState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Spreads numbers: the same in, the same out, and nothing alike (SplitMix64).
fn mix(seed: u64, parts: [u64; 2]) -> u64 {
    parts.into_iter().fold(seed, |state, part| {
        let mut mixed = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// Appends the revision of a commit of an application: 40 hexadecimal digits.
fn revision(shape: &Shape, index: u32, commit: u32, out: &mut Vec<u8>) {
    let first = mix(shape.seed, [u64::from(index), u64::from(commit)]);
    let second = mix(first, [1, 2]);
    template::put!(out, "{first:016x}{second:016x}{commit:08x}");
}

/// Appends the uid of an application (`part` 0) or of its resource number `part - 1`.
fn uid(shape: &Shape, state: &AppState, part: u64, out: &mut Vec<u8>) {
    let life = u64::from(state.life) << 32 | u64::from(state.index);
    let first = mix(shape.seed ^ 0x75_6964, [life, part]);
    let second = mix(first, [3, 4]);
    let (a, b, c) = (first >> 32, (first >> 16) & 0xffff, first & 0xfff);
    let (d, e) = ((second >> 48) & 0x3fff | 0x8000, second & 0xffff_ffff_ffff);
    template::put!(out, "{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}");
}

/// Appends a time, so many seconds after the generated world began.
fn time(seconds: u32, out: &mut Vec<u8>) {
    const BEGAN: i64 = 1_767_225_600;
    let at = jiff::Timestamp::from_second(BEGAN + i64::from(seconds)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    template::put!(out, "{at}");
}

/// What resource number `part` is: its group, version, kind, and whether Argo CD knows a health for it.
fn kind(part: usize) -> (&'static str, &'static str, &'static str, bool) {
    const KINDS: [(&str, &str, &str, bool); 5] = [
        ("apps", "v1", "Deployment", true),
        ("", "v1", "Service", true),
        ("", "v1", "ConfigMap", false),
        ("", "v1", "Secret", false),
        ("networking.k8s.io", "v1", "Ingress", true),
    ];
    KINDS[part % KINDS.len()]
}
