//! `loadtest cluster restore`: puts the data of etcd back to what it was before, once under a running reporter and once
//! while it is down, and judges whether the platform holds what the restored cluster does.
//!
//! takes: nothing - gives: a line for each step, what is wrong, and one last line
//! calls: etcd, the API server and the binary; Argo CD and the platform are simulated, since nobody but the reporter has to
//! notice - fails: exit code 1 unless the platform came to hold what the cluster does

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use super::binaries::Binaries;
use super::control::Control;
use super::definitions::unchecked;
use super::objects::{Objects, Reference};
use super::progress::Progress;
use loadtest_judge::report::Report;
use loadtest_sim::platform::Keep;
use loadtest_sim::reporter::Reporter;
use loadtest_sim::{PATIENCE, Setup, Simulation, until};

const NAMESPACE: &str = "argocd";
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// What the reporter logs once for each restore.
const SAID: &str = "the versions of the cluster went back, as after a restore of its store";
/// What is wrong in the end.
pub(super) async fn played(
    program: &Path,
    binaries: &Binaries,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let control = Box::pin(Control::start(binaries, folder, None)).await?;
    let objects = Objects::new(control.client());
    // As they are written here; Argo CD's own definition is large, and nothing of it matters.
    let definition = unchecked("argoproj.io", "Application", "applications", &["v1alpha1"], false);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let both = json!({"kind": "List", "items": [namespace, definition]});
    Progress.step("definition", objects.apply_value(&both, NAMESPACE)).await?;
    let setup = Setup { tls: [None; 3], keep: Keep { last: true, reports: 0 }, ..Setup::default() };
    let play = Play { control, objects, simulation: Simulation::start(setup).await? };
    let mut wrong = Vec::new();

    let reporter = play.reporter(program).await?;
    let first = Box::pin(play.going_on("one")).await?;
    Progress.step("restore under the reporter", play.control.restore(&first)).await?;
    wrong.extend(play.followed("one").await?);
    wrong.extend(said(&reporter));

    let second = Box::pin(play.going_on("two")).await?;
    reporter.stop().await?;
    Progress.step("restore without the reporter", play.control.restore(&second)).await?;
    let reporter = play.reporter(program).await?;
    wrong.extend(play.followed("two").await?);
    wrong.extend(said(&reporter));
    reporter.stop().await?;
    wrong.extend(play.simulation.platform.totals().wrong());
    play.simulation.stop().await?;
    play.control.stop().await?;
    Ok(wrong)
}

/// What is wrong with how often it was said.
fn said(reporter: &Reporter) -> Option<String> {
    let times = reporter.process().lines().all().iter().filter(|line| line.contains(SAID)).count();
    (times != 1).then(|| format!("the reporter said {times} times that versions went back, and not once"))
}

struct Play {
    control: Control,
    objects: Objects,
    simulation: Simulation,
}

impl Play {
    async fn reporter(&self, program: &Path) -> anyhow::Result<Reporter> {
        let kubeconfig = self.control.admin_kubeconfig().display().to_string();
        let more = json!({"kubernetes": {"kubeconfig": kubeconfig}});
        Reporter::start(program, &self.simulation, &more).await
    }

    /// Makes three applications, takes the copy that is given, and goes on: one changes, one goes, one comes. All of it is
    /// reported.
    async fn going_on(&self, round: &str) -> anyhow::Result<PathBuf> {
        let name = |what: &str| format!("{what}-{round}");
        for what in ["changes", "goes", "stays"] {
            self.apply(&name(what), "before").await?;
        }
        let before = [("changes", "before"), ("goes", "before"), ("stays", "before")];
        anyhow::ensure!(self.holds(round, &before).await?.is_empty(), "the first states are not reported");
        let copy = Progress.step("copy of etcd", self.control.copy(&name("copy"))).await?;
        for message in ["first", "second"] {
            self.apply(&name("changes"), message).await?;
        }
        self.apply(&name("comes"), "after").await?;
        let goes = reference(&name("goes"));
        self.objects.delete(&goes).await?;
        let after = [("changes", "second"), ("goes", "gone"), ("stays", "before"), ("comes", "after")];
        anyhow::ensure!(self.holds(round, &after).await?.is_empty(), "what followed is not reported");
        Ok(copy)
    }

    /// What the platform does not hold of the restored state, and of what happens afterwards.
    async fn followed(&self, round: &str) -> anyhow::Result<Vec<String>> {
        let restored = [("changes", "before"), ("goes", "before"), ("stays", "before"), ("comes", "gone")];
        let mut wrong = self.holds(round, &restored).await?;
        for what in ["changes", "goes"] {
            self.apply(&format!("{what}-{round}"), "third").await?;
        }
        let then = [("changes", "third"), ("goes", "third"), ("stays", "before"), ("comes", "gone")];
        wrong.extend(self.holds(round, &then).await?);
        Ok(wrong)
    }

    /// Writes an application in a state.
    async fn apply(&self, name: &str, message: &str) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
            "spec": {
                "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
                "source": {"repoURL": "https://git.example/repo.git", "path": "shop", "targetRevision": "main"},
            },
            "status": {
                "sync": {"status": "Synced", "revision": "a3f0c1d2e4b5968778695a4b3c2d1e0f00112233"},
                "health": {"status": "Healthy", "message": message}, "resources": [],
            },
        });
        self.objects.apply_value(&object, NAMESPACE).await
    }

    /// What the platform does not hold in time of applications and their messages.
    async fn holds(&self, round: &str, expected: &[(&str, &str)]) -> anyhow::Result<Vec<String>> {
        let look = async || {
            let mut wrong = Vec::new();
            for (what, message) in expected {
                let name = format!("{what}-{round}");
                let held = self.held(&name)?;
                if held != *message {
                    wrong.push(format!("of {name} the platform holds {held:?}, and not {message:?}"));
                }
            }
            Ok(wrong)
        };
        until(PATIENCE, LOOK, look, Vec::is_empty).await
    }

    /// The health message that the platform holds of an application; `gone` of one that was deleted.
    fn held(&self, name: &str) -> anyhow::Result<String> {
        let last = self.simulation.platform.last_of_application(NAMESPACE, name);
        let Some(payload) = last.and_then(|last| last.payload) else { return Ok("nothing".to_owned()) };
        let Report { object, .. } = Report::open(&payload).context("read a report")?;
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok("gone".to_owned());
        }
        Ok(object["status"]["health"]["message"].as_str().unwrap_or("none").to_owned())
    }
}

fn reference(name: &str) -> Reference {
    Reference::new("argoproj.io/v1alpha1", "Application", Some(NAMESPACE), name)
}
