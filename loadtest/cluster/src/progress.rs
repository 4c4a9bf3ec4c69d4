//! What a long start says on standard error while it goes on.

use std::time::Instant;

/// Says what is started, and how long it took, a line each.
#[derive(Debug, Clone, Copy)]
pub struct Progress;

impl Progress {
    /// Runs a step and says `starting NAME ... 0.4 s` when it has ended well; the steps of a cluster run beside each
    /// other, so no line is begun before it can be ended.
    #[expect(clippy::print_stderr, reason = "progress is for whoever started the program")]
    pub async fn step<T>(
        self,
        name: &str,
        step: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let began = Instant::now();
        let done = step.await?;
        eprintln!("starting {name} ... {:.1} s", began.elapsed().as_secs_f64());
        Ok(done)
    }
}
