//! What goes wrong in a row: how often, what was said of it, and how long to wait.

use std::error::Error;
use std::time::Duration;

use pipeline_core::{Backoff, Reason};
use tracing::{debug, error, info, warn};

use crate::Config;
use crate::failure::Failure;
use crate::kind::Kind;

/// Failures since a watch last worked.
#[derive(Debug, Default)]
pub(crate) struct FailureTracker {
    pub(crate) failures: u32,
    said: Option<Reason>,
}

impl FailureTracker {
    /// Counts a failure and says it: once as long as it stays the same, with what somebody has to do where
    /// somebody has to.
    pub(crate) fn add(&mut self, failure: &Failure, kind: Kind, config: &Config) {
        self.failures = self.failures.saturating_add(1);
        let reason = failure.reason();
        let label = reason.as_str();
        let resource = kind.to_string();
        let resource = resource.as_str();
        let why: &dyn Error = failure;
        if self.said.replace(reason) == Some(reason) {
            debug!(
                reason = label,
                error = why,
                failures = self.failures,
                resource,
                "the watch is still broken"
            );
            return;
        }
        match reason {
            Reason::Unauthorized if matches!(failure, Failure::Credentials { .. }) => {
                error!(error = why, "there are no credentials to show to the api server");
            }
            Reason::Unauthorized => {
                error!(
                    error = why,
                    "the api server does not accept the token: renew it, or name another one"
                );
            }
            Reason::Forbidden => {
                let scope = if config.namespaces.is_empty() { &*config.namespace } else { "all namespaces" };
                error!(
                    error = why,
                    resource,
                    verbs = "get, list, watch",
                    scope,
                    "a right is missing: grant it to the account that this process runs as"
                );
            }
            Reason::Tls => {
                error!(
                    error = why,
                    "the api server's certificate does not verify: name the authority that signed it"
                );
            }
            Reason::NotFound => {
                error!(
                    error = why,
                    resource, "the api server knows no such objects: is what defines them installed there?"
                );
            }
            _ => warn!(reason = label, error = why, resource, "the watch broke and is begun again"),
        }
    }

    /// A watch works.
    pub(crate) fn over(&mut self, kind: Kind) {
        if self.said.take().is_some() {
            info!(failures = self.failures, resource = kind.to_string(), "the watch works again");
        }
        self.failures = 0;
    }

    /// How long to wait before the next try, by chance so that replicas that lost the same API server do not come back
    /// together, and never less than the server asked for.
    pub(crate) fn wait(&self, failure: &Failure, config: &Config) -> Duration {
        let backoff = Backoff { min: config.backoff_min, max: config.backoff_max };
        backoff.wait(self.failures, failure.after(), fastrand::u64(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { group: "example.org", version: "v1", plural: "widgets", singular: "widget" };

    fn failed(code: u16, after: Option<Duration>) -> Failure {
        Failure::Status { act: KIND.list(), code, after }
    }

    #[test]
    fn the_wait_is_within_the_configured_bounds_unless_the_server_asks_for_more() {
        let failures = |failures| FailureTracker { failures, said: None };
        let wait = |number, after| failures(number).wait(&failed(429, after), &Config::tested());
        for (number, least, most) in [(1, 400, 800), (2, 800, 1_600), (u32::MAX, 15_000, 30_000)] {
            let [least, most] = [least, most].map(Duration::from_millis);
            assert!((least..=most).contains(&wait(number, None)), "{number}");
        }
        assert!(wait(1, Some(Duration::from_secs(45))) >= Duration::from_secs(45));
    }

    #[test]
    fn the_same_failure_is_said_once_until_it_is_over() {
        let mut failures = FailureTracker::default();
        failures.add(&failed(403, None), KIND, &Config::tested());
        assert_eq!((failures.failures, failures.said), (1, Some(Reason::Forbidden)));
        failures.add(&failed(403, None), KIND, &Config::tested());
        assert_eq!(failures.failures, 2);
        failures.over(KIND);
        assert_eq!((failures.failures, failures.said), (0, None));
    }
}
