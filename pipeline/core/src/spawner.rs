//! Work of its own for each connection of a service: bounded, and awaited at the end.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::Shutdown;

/// Spawns at most so many tasks at a time; cloning shares. A task should end soon after [`Spawner::stop`] was cancelled:
/// whoever gave the spawner awaits all of them, within a time.
#[derive(Debug, Clone)]
pub struct Spawner {
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: Shutdown,
}

impl Spawner {
    /// At most `tasks` at a time.
    #[must_use]
    pub fn new(tasks: usize, stop: Shutdown) -> Self {
        Self { places: Arc::new(Semaphore::new(tasks)), tasks: TaskTracker::new(), stop }
    }

    /// Tells tasks to end.
    #[must_use]
    pub fn stop(&self) -> &Shutdown {
        &self.stop
    }

    /// Runs `task` as soon as there is a place for it; until then it waits, so that whoever takes connections takes no more
    /// of them than are worked on. `false`: it was told to stop, and nothing was begun.
    pub async fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let place = tokio::select! {
            biased;
            () = self.stop.cancelled() => return false,
            place = self.places.clone().acquire_owned() => place,
        };
        let Ok(place) = place else { return false };
        self.tasks.spawn(async move {
            task.await;
            drop(place);
        });
        true
    }

    /// Waits until every task has ended.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn no_more_tasks_run_than_may_and_all_of_them_are_awaited() {
        let stop = Shutdown::new();
        let spawner = Spawner::new(1, stop.clone());
        let (end, ended) = oneshot::channel::<()>();
        assert!(spawner.spawn(async move { drop(ended.await) }).await);
        let mut second = std::pin::pin!(spawner.spawn(async {}));
        assert!(second.as_mut().now_or_never().is_none(), "there is one place");
        end.send(()).unwrap();
        assert!(second.await);
        stop.cancel();
        assert!(!spawner.spawn(async {}).await, "nothing begins any more");
        spawner.drained().await;
    }
}
