//! A report that is held up on its way, and arrives when another owner has followed its sender.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::timeout;

use super::group::Group;
use loadtest_sim::platform::{HeldUp, Hold, PlatformSim};
use loadtest_sim::{PATIENCE, until};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// It.
#[derive(Debug)]
pub(super) struct Late {
    report: HeldUp,
    hold: Hold,
}

impl Late {
    /// Holds up the next report of `name`. It was noted before it was sent, so that whoever owns its shard next reports its
    /// application as well.
    pub(super) async fn of(name: &str, group: &Group, platform: &PlatformSim) -> anyhow::Result<Self> {
        let own = group.applications(name).await?;
        let mut hold = platform.hold_up(move |report| {
            let entity = &report.entity;
            own.contains(&format!("{}/{}", entity.app_namespace, entity.app_name))
        });
        let report = timeout(PATIENCE, hold.came()).await.ok().flatten();
        let report = report.with_context(|| format!("wait for a report of {name}"))?;
        Ok(Self { report, hold })
    }

    /// Waits until another owner has reported the same application, and lets this report go on: it is refused.
    pub(super) async fn arrives(self, platform: &PlatformSim) -> anyhow::Result<()> {
        let Self { report: HeldUp { namespace, application, epoch, key }, hold } = self;
        let key = key.with_context(|| format!("a report of {application} has no key"))?;
        let followed = || platform.epoch(&namespace, &application) > epoch;
        if !comes_to(followed).await? {
            bail!("nobody reports {application}, although a report of it was not answered");
        }
        drop(hold);
        if !comes_to(|| platform.is_stale(&key)).await? {
            bail!("the report of {application} was not refused, although another owner had followed");
        }
        Ok(())
    }
}

async fn comes_to(holds: impl Fn() -> bool) -> anyhow::Result<bool> {
    until(PATIENCE, LOOK, async || Ok(holds()), |holds| *holds).await
}
