//! The node below the pods: its kubelet away, and then every process of it killed at once, while applications change.
//!
//! takes: an installed release - gives: what the platform does not hold of what was committed meanwhile
//! calls: the node's programs - fails: when the node or a pod does not come back in time

use anyhow::ensure;
use loadtest_judge::screen::say;
use tokio::time::Instant;

use crate::ground::Ground;
use crate::until;

/// Commits that are made at the least in each state of the node.
const COMMITS: u64 = 2;

/// Kills the kubelet and starts it again, and then the node.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let node = ground.node()?;
    let load = ground.applications.load();
    node.kill_kubelet().await?;
    let commits = load.stop(COMMITS).await?;
    // Nobody looks after the pod, and it reports.
    let mut wrong = ground.applications.lacking().await?;
    node.start_kubelet().await?;
    ground.ready("reporter", 1, &[]).await?;
    say(&format!("  {commits} commits while the kubelet was away"));

    let before = ground.restarts("reporter").await?;
    let load = ground.applications.load();
    let began = Instant::now();
    node.crash().await?;
    load.go_on(COMMITS).await;
    let away = began.elapsed();
    node.revive().await?;
    // What the API server says of a pod is what the kubelet said before, until it says something else.
    let restarts = until(async || ground.restarts("reporter").await, |now| *now != before).await?;
    ensure!(restarts != before, "no pod of the reporter is started anew");
    ground.ready("reporter", 1, &[]).await?;
    say(&format!(
        "  {} commits, the first {COMMITS} while the node was dead for {:.0} s; reporting again after {:.0} s",
        load.stop(COMMITS).await?,
        away.as_secs_f64(),
        began.elapsed().as_secs_f64()
    ));
    wrong.extend(ground.applications.lacking().await?);
    Ok(wrong)
}
