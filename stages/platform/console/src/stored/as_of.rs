//! How an application is, or was at a moment, and why it is not well.

use jiff::Timestamp;
use stages_platform_store::{KnownApplication, Millis, ObjectAt, StateOf};

use super::rows;
use crate::page::pieces::first_line;
use crate::view::application::{ApplicationRow, Cause, Change};
use crate::view::deployment::Deployment;
use crate::view::resource::Resource;
use crate::view::state::Health;

/// The health of an application, and what was said of it.
pub(super) struct HealthAt {
    health: Health,
    message: String,
    since: Timestamp,
    gone: bool,
}

impl HealthAt {
    pub(super) fn now(known: &KnownApplication) -> Self {
        Self {
            health: rows::health(&known.listed.health),
            message: known.health_message.clone(),
            since: rows::moment(known.health_since),
            gone: known.deleted,
        }
    }

    /// By what was last reported by a moment, and the states around it; nothing was where nothing was reported by then.
    pub(super) fn then(object: Option<&ObjectAt>, states: &[StateOf], at: Millis) -> Self {
        let health = object.and_then(|object| object.health.as_deref());
        let before = states.iter().rev().skip_while(|state| state.at > at);
        let alike = before.take_while(|state| !state.deleted && state.health.as_deref() == health);
        let since = alike.last().map(|state| state.at).or(object.map(|object| object.at));
        Self {
            health: rows::health(health.unwrap_or_default()),
            message: object.and_then(|object| object.health_message.clone()).unwrap_or_default(),
            since: rows::moment(since.unwrap_or_default()),
            gone: object.is_none_or(|object| object.deleted),
        }
    }

    /// Since when it is not well, if it is not.
    pub(super) fn unwell_since(&self) -> Option<Timestamp> {
        let is_unwell = !self.gone && matches!(self.health, Health::Degraded | Health::Missing);
        is_unwell.then_some(self.since)
    }

    /// Why it is not well: what fails, or what is said of it, and the deployment before.
    pub(super) fn cause(&self, resources: &[Resource], deployments: &[Deployment]) -> Option<Cause> {
        let (health, since) = (self.health, self.unwell_since()?);
        let worst = resources.iter().filter(|one| one.health == Some(health));
        let failing = worst.max_by_key(|one| !one.message.is_empty());
        let message = match failing {
            _ if !self.message.is_empty() => first_line(&self.message).to_owned(),
            Some(one) if !one.message.is_empty() => {
                format!("{}/{}: {}", one.key.kind, one.key.name, first_line(&one.message))
            }
            Some(one) => format!("{}/{} is {}", one.key.kind, one.key.name, health.word().to_lowercase()),
            None => format!("It is {}", health.word().to_lowercase()),
        };
        let before = deployments.iter().rev().find(|one| one.at <= since);
        let after = before.map(|one| (one.change.clone(), one.at));
        Some(Cause { message, since, after })
    }
}

/// What stands at the top of an application, as it was said last by a moment.
pub(super) fn row(now: ApplicationRow, object: Option<&ObjectAt>) -> ApplicationRow {
    let revision = object.and_then(|object| object.revision.clone()).filter(|revision| !revision.is_empty());
    ApplicationRow {
        health: rows::health(object.and_then(|object| object.health.as_deref()).unwrap_or_default()),
        sync: rows::sync(object.and_then(|object| object.sync.as_deref()).unwrap_or_default()),
        change: revision.map(|revision| Change { revision, ..Change::default() }),
        ..now
    }
}
