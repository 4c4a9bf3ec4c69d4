//! What a long start says on standard error while it goes on.

use std::time::Instant;

/// Says what is started, and how long it took, a line each.
#[derive(Debug, Clone, Copy)]
pub struct Progress;

impl Progress {
    /// Runs a step and says `starting NAME ... 0.4 s` when it has ended well; the steps of a cluster run beside each
    /// other, so no line is begun before it can be ended.
    pub async fn step<T>(
        self,
        name: &str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.said("starting", name, step).await
    }

    /// The same of something that is looked at: `checking NAME ... 0.4 s`.
    pub async fn check<T>(
        self,
        name: &str,
        check: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.said("checking", name, check).await
    }

    #[expect(clippy::print_stderr, reason = "progress is for whoever started the program")]
    async fn said<T>(
        self,
        act: &str,
        name: &str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let began = Instant::now();
        let done = step.await?;
        eprintln!("{act} {name} ... {:.1} s", began.elapsed().as_secs_f64());
        Ok(done)
    }
}
