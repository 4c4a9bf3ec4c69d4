//! Changes that go on all the time, one after the other for each application and all applications at once.

use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::application::{self, MORTAL, SUBJECTS, Subject};
use super::driver::Driver;
use crate::git::{Git, Repository};

/// Between two changes of one application, in milliseconds.
const PAUSE: std::ops::Range<u64> = 1_000..4_000;

/// What is done to an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A commit, compared and synced.
    Commit,
    /// A live object is changed by hand, and repaired by a sync.
    Drift,
    /// An object is added, or the one that was added is pruned.
    Prune,
    /// It is deleted, with what it made or without, and made anew.
    Recreate,
}

/// Makes the applications.
pub(super) async fn begin(driver: &Driver, git: &Git) -> anyhow::Result<Vec<(Subject, Repository)>> {
    let mut made = Vec::new();
    for subject in SUBJECTS {
        let repository = git.repository(subject.name).await?;
        driver.create(&subject, &repository).await?;
        made.push((subject, repository));
    }
    Ok(made)
}

/// Changes them until it is told to stop, and lets each finish its change; what is changed in which order follows from
/// the seed. Tells what could not be changed, a line each.
pub(super) async fn go_on(
    driver: &Driver,
    subjects: &[(Subject, Repository)],
    seed: u64,
    stop: &CancellationToken,
) -> Vec<String> {
    let works = subjects.iter().zip(1..).map(|((subject, repository), number)| async move {
        let dice = Rng::with_seed(seed.wrapping_add(number));
        let work = work(driver, subject, repository, dice, stop).await;
        work.with_context(|| format!("change {}", subject.name))
    });
    let ended = futures::future::join_all(works).await;
    ended.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect()
}

/// The applications that are out of sync. A resource that is out of sync and drifts further, or is wanted otherwise by a
/// later commit, is out of sync as before: Argo CD tells of no change, so none is reported, and what was reported last
/// need not be what is there.
pub(super) async fn out_of_sync(driver: &Driver) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in application::names().into_iter().filter(|name| *name != MORTAL.name) {
        let object = driver.get(&application::application(&name)).await?;
        if object.as_ref().is_some_and(is_out_of_sync) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Syncs these applications.
pub(super) async fn repair(driver: &Driver, names: &[String]) -> anyhow::Result<()> {
    for name in names {
        driver.sync(name).await?;
    }
    Ok(())
}

fn is_out_of_sync(object: &Value) -> bool {
    object.pointer("/status/sync/status").and_then(Value::as_str) == Some("OutOfSync")
}

async fn work(
    driver: &Driver,
    subject: &Subject,
    repository: &Repository,
    mut dice: Rng,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    driver.refresh(subject.name).await?;
    driver.sync(subject.name).await?;
    let (mut extra, mut number) = (false, 0);
    while !stop.is_cancelled() {
        number += 1;
        match choose(&mut dice) {
            Change::Drift => drift(driver, subject, number).await?,
            Change::Prune if subject.extra(true, number).is_some() => {
                extra = !extra;
                let files = subject.extra(extra, number).unwrap_or_default();
                driver.commit(subject, repository, format!("Change {number}"), files).await?;
                driver.sync(subject.name).await?;
            }
            Change::Recreate if !subject.is_parent() => {
                let recreated = recreate(driver, subject, repository, dice.bool());
                tokio::select! {
                    // One that takes its time to go need not come back.
                    () = stop.cancelled() => {}
                    recreated = recreated => recreated?,
                }
            }
            _ => commit(driver, subject, repository, number).await?,
        }
        let pause = Duration::from_millis(dice.u64(PAUSE));
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(pause) => {}
        }
    }
    Ok(())
}

fn choose(dice: &mut Rng) -> Change {
    match dice.u8(0..20) {
        0..10 => Change::Commit,
        10..14 => Change::Drift,
        14..17 => Change::Prune,
        _ => Change::Recreate,
    }
}

async fn commit(
    driver: &Driver,
    subject: &Subject,
    repository: &Repository,
    number: u64,
) -> anyhow::Result<()> {
    driver.commit(subject, repository, format!("Change {number}"), subject.commit(number)).await?;
    if !subject.is_automated() {
        driver.sync(subject.name).await?;
    }
    Ok(())
}

async fn drift(driver: &Driver, subject: &Subject, number: u64) -> anyhow::Result<()> {
    let (object, patch) = subject.drift(number);
    driver.drift(&object, &patch).await?;
    // A parent's resources are those of its child.
    let Some(name) = subject.concerned().pop() else { return Ok(()) };
    driver.until(&name, |object| object.is_none_or(is_out_of_sync)).await;
    driver.sync(&name).await
}

async fn recreate(
    driver: &Driver,
    subject: &Subject,
    repository: &Repository,
    cascade: bool,
) -> anyhow::Result<()> {
    let Some(uid) = driver.delete(subject.name, cascade).await? else { return Ok(()) };
    driver.gone(subject.name, &uid).await?;
    driver.create(subject, repository).await?;
    driver.refresh(subject.name).await?;
    driver.sync(subject.name).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_chosen_and_the_seed_says_when() {
        let chosen = |seed| {
            let mut dice = Rng::with_seed(seed);
            (0..100).map(|_| choose(&mut dice)).collect::<Vec<_>>()
        };
        for change in [Change::Commit, Change::Drift, Change::Prune, Change::Recreate] {
            assert!(chosen(1).contains(&change), "{change:?}");
        }
        assert_eq!(chosen(5), chosen(5));
        assert_ne!(chosen(5), chosen(6));
    }
}
