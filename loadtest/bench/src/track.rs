//! Follows every change from its emission to the acknowledgement of its last report. Pure but for the time that
//! is handed in.
//!
//! A change is worth a report of the application at the change's resourceVersion, and one of each resource that has
//! another resourceVersion by it; resources that are told again at the same one are neither waited for nor repetitions.
//! An application that is reported in the state of a later change without having been reported in this one was coalesced:
//! that is counted apart, and is no reported change. Its latency counts all the same, up to the report of the later
//! state, which made it known: a reporter that falls behind is not the faster for what it skips.

#[cfg(test)]
mod tests;

use std::time::Instant;

use pipeline_core::Digest;

use crate::times::Times;
use loadtest_sim::generate::ResourceState;
use loadtest_sim::platform::Parsed;

/// The live state of a generated resource starts at this resourceVersion and counts its changes.
const FIRST: u64 = 1_000;

/// A change that is not acknowledged in full yet.
#[derive(Debug, Clone)]
struct Pending {
    version: u64,
    /// The next change's version: whoever reports that state, or a later one, has skipped this.
    superseded: u64,
    due: Instant,
    timed: bool,
    application_told: bool,
    /// Which resources are still to be reported, each at this resourceVersion or a newer one.
    parts: Vec<(usize, u64)>,
}

/// What is known of one resource.
#[derive(Debug, Clone, Copy)]
struct Part {
    state: ResourceState,
    /// The newest reported resourceVersion; 0 before the first.
    told: u64,
    /// Digest of what was reported last, see [`content`].
    content: Digest,
    /// So many more reports of the same are no repetitions: it is worth one whether it changed or not.
    again: u32,
}

impl Part {
    fn version(self) -> u64 {
        FIRST + u64::from(self.state.changes)
    }
}

#[derive(Debug)]
struct App {
    /// The newest emitted resourceVersion.
    newest: u64,
    /// The newest that is worth a report.
    worth: u64,
    /// The newest reported resourceVersion; 0 before the first.
    told: u64,
    parts: Vec<Part>,
    /// Entities that were never reported.
    untold: usize,
    pending: Vec<Pending>,
}

impl App {
    /// How many of its entities were last reported in another state than their newest.
    fn wrong(&self) -> u64 {
        let parts = self.parts.iter().filter(|part| part.told > 0 && part.told != part.version()).count();
        let own = self.told > 0 && !(self.worth..=self.newest).contains(&self.told);
        parts as u64 + u64::from(own)
    }
}

/// Counts of the tracked changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Changes that are worth a report and were emitted.
    pub(super) emitted: u64,
    /// Of those, acknowledged in their own state.
    pub(super) done: u64,
    /// Of those, known only through a newer state.
    pub(super) coalesced: u64,
    /// Changes that are worth none.
    pub(super) empty: u64,
    /// Reports of a state that had been reported before.
    pub(super) repeated: u64,
    /// Applications that were reported with all their resources.
    pub(super) whole: u64,
}

impl Counts {
    /// Changes that are done with.
    pub(super) fn known(&self) -> u64 {
        self.done + self.coalesced
    }
}

/// One change, as it is emitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Emitted<'a> {
    /// Which application.
    pub(super) index: usize,
    /// Its new resourceVersion.
    pub(super) version: u64,
    /// Its resources from now on.
    pub(super) resources: &'a [ResourceState],
    /// How many reports it is worth.
    pub(super) reports: u32,
    /// When it was to be made.
    pub(super) due: Instant,
    /// Its latency is kept.
    pub(super) timed: bool,
}

#[derive(Debug)]
pub(super) struct Tracker {
    apps: Vec<App>,
    pub(super) counts: Counts,
    latencies: Times,
}

impl Tracker {
    /// No application yet.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { apps: Vec::new(), counts: Counts::default(), latencies: Times::new()? })
    }

    /// The next application arrived, with these resources.
    pub(super) fn add(&mut self, version: u64, resources: &[ResourceState]) {
        let part = |state: &ResourceState| Part { state: *state, told: 0, content: Digest::NONE, again: 0 };
        self.apps.push(App {
            newest: version,
            worth: version,
            told: 0,
            parts: resources.iter().map(part).collect(),
            untold: 1 + resources.len(),
            pending: Vec::new(),
        });
    }

    /// Whether a change of this application is under way.
    pub(super) fn is_busy(&self, index: usize) -> bool {
        self.apps.get(index).is_some_and(|app| !app.pending.is_empty())
    }

    /// How many changes are under way.
    pub(super) fn pending(&self) -> u64 {
        self.counts.emitted - self.counts.known()
    }

    /// A change was emitted.
    pub(super) fn emitted(&mut self, change: &Emitted<'_>) {
        let Some(app) = self.apps.get_mut(change.index) else { return };
        app.newest = change.version;
        if change.reports == 0 {
            self.counts.empty += 1;
            return;
        }
        let all = change.reports as usize > change.resources.len();
        let mut parts = Vec::new();
        for (at, (part, state)) in app.parts.iter_mut().zip(change.resources).enumerate() {
            if !all && part.state == *state {
                continue;
            }
            if part.state.changes == state.changes {
                // Whether it is told again is for its content to say, which is not known here.
                part.again += 1;
                part.state = *state;
                continue;
            }
            part.state = *state;
            parts.push((at, part.version()));
        }
        app.worth = change.version;
        if let Some(last) = app.pending.last_mut() {
            last.superseded = change.version;
        }
        app.pending.push(Pending {
            version: change.version,
            superseded: u64::MAX,
            due: change.due,
            timed: change.timed,
            application_told: false,
            parts,
        });
        self.counts.emitted += 1;
    }

    /// A report arrived, of this [`content`]; how many changes are done with by it.
    pub(super) fn arrived(&mut self, report: &Parsed, content: Digest, now: Instant) -> usize {
        let Some(version) = report.version else { return 0 };
        let name = &report.entity.app_name;
        let app = name.strip_prefix("app-").and_then(|index| index.parse().ok());
        let Some(app) = app.and_then(|index: usize| self.apps.get_mut(index)) else { return 0 };
        let is_application = report.entity.resource.is_none();
        let (told, repeats) = match &report.entity.resource {
            None => {
                let repeats = app.told == version;
                (&mut app.told, repeats)
            }
            Some(resource) => {
                let at = resource.name.rsplit_once("-r").and_then(|(_, part)| part.parse().ok());
                let Some((at, part)) = at.and_then(|at: usize| Some((at, app.parts.get_mut(at)?))) else {
                    return 0;
                };
                for pending in &mut app.pending {
                    pending.parts.retain(|(wanted, least)| *wanted != at || version < *least);
                }
                // The live state may be ahead of the application that it is reported with: what is told of it then
                // differs, and its resourceVersion does not.
                let same = part.told == version && part.content == content;
                let repeats = same && part.again == 0;
                part.again = part.again.saturating_sub(u32::from(part.told == version));
                part.content = content;
                (&mut part.told, repeats)
            }
        };
        self.counts.repeated += u64::from(repeats);
        if *told == 0 {
            app.untold -= 1;
            self.counts.whole += u64::from(app.untold == 0);
        }
        *told = version.max(*told);
        let before = app.pending.len();
        let (counts, latencies) = (&mut self.counts, &mut self.latencies);
        let mut time = |pending: &Pending| {
            if pending.timed {
                // A time that cannot be counted is longer than any run.
                let _ = latencies.add(now.saturating_duration_since(pending.due));
            }
        };
        app.pending.retain_mut(|pending| {
            if is_application && !pending.application_told && pending.superseded <= version {
                // Its own state was never told: only a newer one is known.
                counts.coalesced += 1;
                time(pending);
                return false;
            }
            pending.application_told |= is_application && pending.version <= version;
            if !(pending.application_told && pending.parts.is_empty()) {
                return true;
            }
            counts.done += 1;
            time(pending);
            false
        });
        before - app.pending.len()
    }

    /// The latencies kept since the last call.
    pub(super) fn take_latencies(&mut self) -> anyhow::Result<Times> {
        Ok(std::mem::replace(&mut self.latencies, Times::new()?))
    }

    /// Gives up what is under way; how many changes that were.
    pub(super) fn give_up(&mut self) -> u64 {
        let lost = self.pending();
        self.apps.iter_mut().for_each(|app| app.pending.clear());
        self.counts.emitted -= lost;
        lost
    }

    /// Entities whose newest report is not their newest state.
    pub(super) fn wrong(&self) -> u64 {
        self.apps.iter().map(App::wrong).sum()
    }
}

/// Digest of a payload but for its `timestamp`, which is no part of what is told. Nobody makes two of them meet: a fast
/// one leaves more of the machine to who is measured.
pub(super) fn content(payload: &str) -> Digest {
    const MARK: &str = "\"timestamp\":\"";
    match payload.split_once(MARK) {
        Some((before, after)) => {
            let rest = after.split_once('"').map_or("", |(_, rest)| rest);
            Digest(seahash::hash(before.as_bytes()) ^ seahash::hash(rest.as_bytes()).rotate_left(1))
        }
        None => Digest(seahash::hash(payload.as_bytes())),
    }
}
