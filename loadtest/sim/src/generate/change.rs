//! What happens to generated applications, and how often.

/// What happens to an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// One resource goes out of sync, or comes back: two reports.
    Drift,
    /// A new revision is being synced and is not in the history yet, and one resource drifts: two reports.
    Commit,
    /// The newest revision is deployed: the application and every resource are reported.
    Deploy,
    /// One resource becomes degraded, or healthy again: two reports; every resource is reported when the
    /// application becomes healthy.
    Health,
    /// A refresh that finds nothing new, only `reconciledAt` and `managedFields` move: no report.
    Reconcile,
}

/// How often each change is chosen, in parts of their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// Weight of [`Change::Drift`].
    pub drift: u32,
    /// Weight of [`Change::Commit`].
    pub commit: u32,
    /// Weight of [`Change::Deploy`].
    pub deploy: u32,
    /// Weight of [`Change::Health`].
    pub health: u32,
    /// Weight of [`Change::Reconcile`].
    pub reconcile: u32,
}

impl Default for Mix {
    /// Two reports a change, a new revision on every tenth.
    fn default() -> Self {
        Self { drift: 90, commit: 10, ..Self::NONE }
    }
}

impl Mix {
    /// Nothing is ever chosen.
    pub const NONE: Self = Self { drift: 0, commit: 0, deploy: 0, health: 0, reconcile: 0 };

    /// Chooses a change; a drift where nothing has a weight.
    pub fn choose(self, chance: &mut fastrand::Rng) -> Change {
        let weights = [
            (Change::Drift, self.drift),
            (Change::Commit, self.commit),
            (Change::Deploy, self.deploy),
            (Change::Health, self.health),
            (Change::Reconcile, self.reconcile),
        ];
        let sum = weights.iter().map(|(_, weight)| weight).sum::<u32>().max(1);
        let mut at = chance.u32(0..sum);
        for (change, weight) in weights {
            if at < weight {
                return change;
            }
            at -= weight;
        }
        Change::Drift
    }
}
