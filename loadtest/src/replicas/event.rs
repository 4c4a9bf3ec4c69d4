//! What happens to the replicas and to their bus, while applications change.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::sleep;

use super::group::Group;
use super::late::Late;
use loadtest_judge::witness::Witness;
use loadtest_sim::PATIENCE;
use loadtest_sim::nats::NatsServer;
use loadtest_sim::platform::PlatformSim;
use loadtest_sim::proxy::Network;

/// So long after a replica or the bus is there again, answers may go astray: connections are made, groups are written.
const MENDS: Duration = Duration::from_secs(2);
/// How long the server of the bus is gone, at most.
const GONE: u64 = 2_000;
/// So long a replica that lost its shards to others is cut off or stands still in addition, at most.
const LONGER: u64 = 3_000;

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A replica is killed, and started again when others own its shards.
    Kill,
    /// Two replicas more.
    Add,
    /// Two replicas fewer.
    Remove,
    /// The server of the bus is stopped, and starts again with what it stored.
    Restart,
    /// A replica does not reach the bus until others own its shards, and is not told so.
    Cut,
    /// The same, but its connections break.
    Break,
    /// A replica stands still until others own its shards, and so does a report of it, which then arrives.
    Pause,
    /// The server of the bus is killed, and starts again without what it stored.
    Disk,
}

/// What an event is told and may touch.
pub(super) struct Stage<'a> {
    pub(super) group: &'a mut Group,
    pub(super) nats: &'a NatsServer,
    pub(super) witness: &'a Witness,
    pub(super) platform: &'a PlatformSim,
    pub(super) chance: &'a mut fastrand::Rng,
}

impl Event {
    /// Each once, in the order in which they happen first.
    pub(super) const SHORT: [Self; 7] =
        [Self::Kill, Self::Add, Self::Remove, Self::Restart, Self::Cut, Self::Pause, Self::Disk];

    /// What happens in one round of the long form, before it is shuffled.
    pub(super) const LONG: [Self; 8] =
        [Self::Kill, Self::Add, Self::Restart, Self::Cut, Self::Break, Self::Pause, Self::Remove, Self::Disk];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Break => "break",
            Self::Pause => "pause",
            Self::Disk => "disk",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Kill => "kill -9 of a replica, which comes back",
            Self::Add => "two replicas more",
            Self::Remove => "two replicas fewer",
            Self::Restart => "the NATS server is stopped and started again",
            Self::Cut => "a replica's network to NATS is cut and mended",
            Self::Break => "a replica's connections to NATS break until they are mended",
            Self::Pause => "a replica stands still for longer than its lease",
            Self::Disk => "the NATS server loses its disk",
        }
    }

    /// Whether shards go from owner to owner without anything being broken.
    pub(super) fn hands_over(self) -> bool {
        matches!(self, Self::Add | Self::Remove)
    }

    /// Lets it happen, and waits until every shard is owned evenly again; in a few words what it was.
    pub(super) async fn strike(self, stage: &mut Stage<'_>) -> anyhow::Result<String> {
        match self {
            Self::Kill => stage.kill().await,
            Self::Add => {
                let names = stage.group.add(2).await?;
                stage.group.settled(PATIENCE).await?;
                Ok(format!("{} more", names.join(" and ")))
            }
            Self::Remove => {
                let names = stage.two()?;
                stage.group.stop(&names).await?;
                stage.group.settled(PATIENCE).await?;
                Ok(format!("{} fewer", names.join(" and ")))
            }
            Self::Restart => stage.restart(false).await,
            Self::Disk => stage.restart(true).await,
            Self::Cut => stage.cut(Network::Silent).await,
            Self::Break => stage.cut(Network::Broken).await,
            Self::Pause => stage.pause().await,
        }
    }
}

impl Stage<'_> {
    /// One of the replicas: as often as not the one that owns the first shard, and so watches for all.
    fn one(&mut self) -> anyhow::Result<String> {
        let owners = self.group.owners.told();
        let first = owners.into_iter().find(|(_, shards)| shards.contains(&0)).map(|(name, _)| name);
        let names = self.group.names();
        let any = self.chance.choice(&names).cloned();
        first.filter(|_| self.chance.bool()).or(any).context("there is no replica")
    }

    fn two(&mut self) -> anyhow::Result<Vec<String>> {
        let mut names = self.group.names();
        self.chance.shuffle(&mut names);
        anyhow::ensure!(names.len() > 2, "there are not enough replicas for two of them to go");
        names.truncate(2);
        names.sort();
        Ok(names)
    }

    /// A name, and whether its replica watches for all.
    fn described(&self, name: &str) -> String {
        let owners = self.group.owners.told();
        let watches = owners.get(name).is_some_and(|shards| shards.contains(&0));
        if watches { format!("{name}, which watches,") } else { name.to_owned() }
    }

    async fn kill(&mut self) -> anyhow::Result<String> {
        let name = self.one()?;
        let described = self.described(&name);
        let Self { group, witness, .. } = self;
        group.kill(&name, || witness.killed()).await?;
        group.settled(PATIENCE).await?;
        group.restart(&name).await?;
        group.settled(PATIENCE).await?;
        Ok(format!("{described} killed"))
    }

    async fn restart(&mut self, without_disk: bool) -> anyhow::Result<String> {
        self.witness.cut();
        if without_disk {
            self.nats.kill().await?;
        } else {
            // Killed, it would forget some of what was acknowledged to it in the seconds before.
            self.nats.stop().await?;
        }
        let gone = self.chance.u64(GONE / 4..=GONE);
        sleep(Duration::from_millis(gone)).await;
        if without_disk {
            self.nats.lose_storage().await?;
        }
        self.nats.restart().await?;
        if without_disk {
            self.witness.new_era();
        }
        sleep(MENDS).await;
        self.group.settled(PATIENCE).await?;
        self.witness.mended();
        if without_disk {
            // What its owners sent before they lost their leases is sent again by those who have them now.
            self.witness.new_era();
        }
        Ok(format!("gone for {:.1} s", gone as f64 / 1e3))
    }

    async fn cut(&mut self, network: Network) -> anyhow::Result<String> {
        let name = self.one()?;
        let described = self.described(&name);
        self.witness.cut();
        self.group.cut(&name, network)?;
        self.apart().await?;
        self.group.cut(&name, Network::Whole)?;
        self.back().await?;
        Ok(format!("{described} cut off"))
    }

    async fn pause(&mut self) -> anyhow::Result<String> {
        let name = self.one()?;
        let described = self.described(&name);
        // One of its reports stands still with it, and arrives behind those of the next owner.
        let late = Late::of(&name, self.group, self.platform).await?;
        self.witness.cut();
        self.group.pause(&name).await?;
        self.apart().await?;
        late.arrives(self.platform).await?;
        self.group.resume(&name).await?;
        self.back().await?;
        Ok(format!("{described} paused"))
    }

    /// The others own everything, and go on for a while.
    async fn apart(&mut self) -> anyhow::Result<()> {
        self.group.settled(PATIENCE).await?;
        sleep(Duration::from_millis(self.chance.u64(0..=LONGER))).await;
        Ok(())
    }

    /// All of them own something again.
    async fn back(&mut self) -> anyhow::Result<()> {
        sleep(MENDS).await;
        self.witness.mended();
        self.group.settled(PATIENCE).await
    }
}

/// The events of a run: one round, or as many as are asked for in an order of their own each.
pub(super) fn events(rounds: u32, chance: &mut fastrand::Rng) -> Vec<Event> {
    if rounds == 0 {
        return Event::SHORT.to_vec();
    }
    let mut all = Vec::new();
    for _ in 0..rounds {
        let mut round = Event::LONG;
        chance.shuffle(&mut round);
        // Two go only where two have come.
        let place = |event| round.iter().position(|own| *own == event);
        if let (Some(add), Some(remove)) = (place(Event::Add), place(Event::Remove))
            && remove < add
        {
            round.swap(add, remove);
        }
        all.extend(round);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_replicas_go_only_after_two_have_come() {
        for seed in 0..50 {
            let all = events(4, &mut fastrand::Rng::with_seed(seed));
            assert_eq!(all.len(), 32);
            let mut replicas = 3;
            for event in all {
                match event {
                    Event::Add => replicas += 2,
                    Event::Remove => replicas -= 2,
                    _ => {}
                }
                assert!([3, 5].contains(&replicas), "seed {seed}");
            }
        }
        assert_eq!(events(0, &mut fastrand::Rng::with_seed(1)), Event::SHORT);
    }
}
