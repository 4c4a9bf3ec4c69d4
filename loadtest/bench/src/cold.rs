//! The arrival of all applications: how long until each is reported, at what cost.

use std::time::{Duration, Instant};

use super::drive::Driver;
use super::watch::{Seen, while_it_moves};
use super::windows::Field;
use loadtest_judge::screen::bar;
use loadtest_sim::reporter::Usage;

const LOOK: Duration = Duration::from_millis(50);

/// What an arrival came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cold {
    /// Applications that were there.
    pub(super) applications: u32,
    /// Of those, the ones that were reported with every resource.
    pub(super) reported: u32,
    /// From the start to the last report.
    pub(super) took: Duration,
    /// Calls to Argo CD.
    pub(super) calls: u64,
    /// Reads of single objects at the API server.
    pub(super) reads: u64,
    /// Reports.
    pub(super) reports: u64,
    /// Memory and processor time when all was reported.
    pub(super) usage: Usage,
}

/// Waits until every application and resource was reported, or nothing moves any more.
pub(super) async fn arrival(
    field: &Field<'_>,
    driver: &Driver<'_>,
    applications: u32,
    began: Instant,
) -> anyhow::Result<Cold> {
    let progress = bar(u64::from(applications), "first reports");
    let look = || {
        let whole = driver.heard().counts().whole;
        progress.set_position(whole);
        let at = field.simulation.platform.totals().taken;
        Ok(Seen { at, is_over: whole >= u64::from(applications) })
    };
    let moved = while_it_moves(field.patience, LOOK, look).await?;
    progress.finish_and_clear();
    let took = moved.duration_since(began);
    // The last acknowledgements reach the ledger, and a reporter that sends anything twice has done so.
    field.running.settle(field.patience).await?;
    let reported = u32::try_from(driver.heard().counts().whole).unwrap_or(u32::MAX);
    Ok(Cold {
        applications,
        reported,
        took,
        calls: field.simulation.argocd.calls(),
        reads: field.simulation.kube.counts().gets,
        reports: field.simulation.platform.totals().taken,
        usage: field.running.usage()?,
    })
}
