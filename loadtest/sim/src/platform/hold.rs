//! One report that is held up at the door, whole and not yet taken, as in a queue before a platform.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{oneshot, watch};

use super::PlatformSim;
use super::wire::Parsed;

/// A report that came to the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldUp {
    /// Namespace of its application.
    pub namespace: String,
    /// Name of its application.
    pub application: String,
    /// The epoch that it names.
    pub epoch: Option<u64>,
    /// Its `Idempotency-Key`.
    pub key: Option<String>,
}

/// Holds up one report, until this is dropped.
#[derive(Debug)]
pub struct Hold {
    came: oneshot::Receiver<HeldUp>,
    _opens: watch::Sender<()>,
}

impl Hold {
    /// Waits until there is one; `None` when another hold has taken this one's place before. Not to be called again then.
    pub async fn came(&mut self) -> Option<HeldUp> {
        (&mut self.came).await.ok()
    }
}

/// At the door.
#[derive(Default)]
pub(super) struct Door {
    waiting: Mutex<Option<Waiting>>,
}

struct Waiting {
    wants: Box<dyn Fn(&Parsed) -> bool + Send>,
    tell: oneshot::Sender<HeldUp>,
    opened: watch::Receiver<()>,
}

impl Door {
    /// Lets a report in, once it may.
    pub(super) async fn pass(&self, report: &Parsed, epoch: Option<u64>, key: Option<&str>) {
        let wanted = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.take_if(|waiting| (waiting.wants)(report))
        };
        let Some(Waiting { tell, mut opened, .. }) = wanted else { return };
        let (namespace, application) = (report.entity.app_namespace.clone(), report.entity.app_name.clone());
        // Nobody hears it where the hold is over already.
        let _ = tell.send(HeldUp { namespace, application, epoch, key: key.map(str::to_owned) });
        // It is never told anything: an error means that it is dropped.
        let _ = opened.changed().await;
    }
}

impl PlatformSim {
    /// Holds up the next report that is as wanted, one alone, until the hold is dropped. It is judged and taken after that.
    pub fn hold_up(&self, wants: impl Fn(&Parsed) -> bool + Send + 'static) -> Hold {
        let (tell, came) = oneshot::channel();
        let (opens, opened) = watch::channel(());
        let waiting = Waiting { wants: Box::new(wants), tell, opened };
        *self.shared.hold.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
        Hold { came, _opens: opens }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use tokio::time::timeout;

    use super::super::{Config, EntityName};
    use super::*;
    use crate::PATIENCE;

    fn report(name: &str) -> Parsed {
        let entity = EntityName { app_namespace: "argocd".into(), app_name: name.into(), resource: None };
        Parsed {
            entity,
            parent: String::new(),
            uid: "u".into(),
            version: None,
            ends: false,
            listed: Vec::new(),
        }
    }

    #[tokio::test]
    async fn one_report_that_is_wanted_waits_until_the_hold_is_dropped_and_all_others_pass() {
        let platform = PlatformSim::start(Config::default()).await.unwrap();
        let door = &platform.shared.hold;
        let mut hold = platform.hold_up(|report| report.entity.app_name == "a");
        let (a, b) = (report("a"), report("b"));
        door.pass(&b, Some(7), None).await;
        let mut waits = Box::pin(door.pass(&a, Some(8), Some("k")));
        assert!(poll!(waits.as_mut()).is_pending());
        let (namespace, application) = ("argocd".to_owned(), "a".to_owned());
        let held = HeldUp { namespace, application, epoch: Some(8), key: Some("k".to_owned()) };
        assert_eq!(hold.came().await, Some(held));
        door.pass(&a, Some(9), None).await;
        assert!(poll!(waits.as_mut()).is_pending(), "the first one alone waits");
        drop(hold);
        timeout(PATIENCE, waits).await.expect("it may pass");

        let mut first = platform.hold_up(|_| true);
        let _second = platform.hold_up(|_| false);
        assert_eq!(first.came().await, None);
        door.pass(&a, None, None).await;
    }
}
