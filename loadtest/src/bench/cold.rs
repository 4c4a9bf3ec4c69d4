//! The start with many applications: how long until each is reported, at what cost.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::reporter::{Reporter, Usage};
use crate::screen::bar;
use crate::sim::Simulation;

/// The start is given up when nothing was reported for this long.
const STANDSTILL: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// What a start came to.
#[derive(Debug, Clone, Copy)]
pub struct Cold {
    /// Applications that were there.
    pub applications: u32,
    /// Of those, the ones that were reported with every resource.
    pub reported: u32,
    /// Seconds from the first list to the last report.
    pub seconds: f64,
    /// Calls to Argo CD for each application.
    pub calls: f64,
    /// Reports for each application.
    pub reports: f64,
    /// Memory and processor time when all was reported.
    pub usage: Usage,
}

/// Waits until every application and resource was reported, or nothing moves any more.
///
/// # Errors
/// When the reporter ends.
pub(super) async fn start(
    simulation: &Simulation,
    reporter: &Reporter,
    applications: u32,
    resources: u32,
) -> anyhow::Result<Cold> {
    let began = Instant::now();
    let progress = bar(u64::from(applications), "cold start");
    let wanted = u64::from(applications) * u64::from(resources);
    let mut last = (0, began);
    loop {
        let totals = simulation.platform.totals();
        progress.set_position(totals.applications.min(u64::from(applications)));
        reporter.usage()?;
        if totals.taken != last.0 {
            last = (totals.taken, Instant::now());
        }
        let all = totals.applications >= u64::from(applications) && totals.resources >= wanted;
        if all || last.1.elapsed() > STANDSTILL {
            break;
        }
        sleep(LOOK).await;
    }
    progress.finish_and_clear();
    let seconds = last.1.duration_since(began).as_secs_f64();
    // The last acknowledgements reach the ledger.
    let settled = reporter.wait(STANDSTILL, "the reporter to settle", |status| status.total.idle()).await;
    if let Err(error) = settled {
        tracing::debug!(error = format!("{error:#}"), "the start did not settle");
    }
    let totals = simulation.platform.totals();
    let mut seen: HashMap<String, (bool, u32)> = HashMap::new();
    for (entity, _) in simulation.platform.last() {
        let entry = seen.entry(entity.app_name).or_default();
        match entity.resource {
            None => entry.0 = true,
            Some(_) => entry.1 += 1,
        }
    }
    let whole = seen.values().filter(|(application, own)| *application && *own >= resources).count();
    let each = |count: u64| count as f64 / f64::from(applications);
    Ok(Cold {
        applications,
        reported: u32::try_from(whole).unwrap_or(u32::MAX).min(applications),
        seconds,
        calls: each(simulation.argocd.calls()),
        reports: each(totals.taken),
        usage: reporter.usage()?,
    })
}
