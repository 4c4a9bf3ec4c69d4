//! The platform of the chart, restored from a backup that its job made, as the chart's README says.
//!
//! takes: an installed release - gives: what of the platform is not what it was at the backup, and what the reporter does not find
//! lost and report again
//! calls: `helm`, `kubectl`, the platform's API from this machine - fails: when a job does not end well, or nothing is reported in
//! time

use anyhow::{Context as _, bail, ensure};
use loadtest_cluster::argocd::ArgoCd;
use loadtest_judge::screen::say;
use reqwest::Client;
use serde_json::{Value, json};

use crate::access::{self, Knocks};
use crate::applications::NAMES;
use crate::ground::{Ground, NAME, NAMESPACE};
use crate::until;

/// The jobs.
const BACKUP: &str = "backup-now";
const RESTORE: &str = "restore";
/// How long a job may take.
const DONE_WITHIN: &str = "--timeout=5m";

/// Backs up, changes what there is, restores, and compares.
pub(crate) async fn take(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let (mut wrong, before) = (Vec::new(), ground.values.clone());
    let token = access::platform(ground).await?;
    let given = json!({"codefresh": {"accountId": "default", "runtimeToken": {"secretKeyRef": {"name": access::TOKEN}}}});
    ground.upgrade(&json!({"global": given})).await?;
    let kept = Kept::find(ground, token).await?;
    let first = kept.follow(ground).await?;
    let admin = access::admin(ground, &kept.http, &kept.platform).await?;
    let early = admin.0.key("full").await?;

    // Nothing is reported between the look and the backup.
    scaled(ground, "reporter", 0).await?;
    let then = kept.state(&early).await?;
    let job = format!("--from=cronjob/{NAME}-platform-backup");
    ground.tools.run("kubectl", &["create", "job", BACKUP, "--namespace", NAMESPACE, &job]).await?;
    say(&format!("  the backup says: {}", done(ground, BACKUP).await?));
    scaled(ground, "reporter", 1).await?;
    let second = kept.follow(ground).await?;
    let late = admin.0.key("full").await?;
    scaled(ground, "reporter", 0).await?;
    let meanwhile = kept.state(&early).await?;
    ensure!(then != meanwhile, "the platform holds nothing new after a commit");
    say(&format!("  {} is held at the backup, and {} then", short(&first), short(&second)));

    scaled(ground, "platform", 0).await?;
    restore(ground).await?;
    say(&format!("  the restore says: {}", done(ground, RESTORE).await?));
    scaled(ground, "platform", 1).await?;
    let now = kept.state(&early).await?;
    if now != then {
        wrong.push(format!("the platform is restored to {now}, and was {then}"));
    }
    if kept.ask(&late).await?.0 == 200 {
        wrong.push("a key that was made after the backup is known".to_owned());
    }

    // What came after the backup is found lost, and reported again.
    scaled(ground, "reporter", 1).await?;
    let pod = format!("deploy/{NAME}-reporter");
    let verify = [
        "exec",
        "--namespace",
        NAMESPACE,
        &pod,
        "--container",
        "reporter",
        "--",
        "/gitops-runtime",
        "verify",
    ];
    match ground.tools.run("kubectl", &verify).await {
        Ok(said) => say(&format!("  verify says: {}", said.trim())),
        Err(error) => wrong.push(format!("verify after the restore: {error:#}")),
    }
    kept.holds(&second).await?;

    // Of jobs that went well the CronJob keeps one, whoever made them.
    let jobs = ["delete", "job", BACKUP, RESTORE, "--namespace", NAMESPACE, "--ignore-not-found"];
    ground.tools.run("kubectl", &jobs).await?;
    // Steps after this one begin with a platform of their own. A Deployment that is given more pods together with another template
    // makes some of the old one, which would show the former platform's token to that one: so there is none to be made more of.
    scaled(ground, "reporter", 0).await?;
    ground.values = before;
    ground.upgrade(&json!({})).await?;
    for claim in ["platform", "platform-backup"] {
        let claim = format!("{NAME}-{claim}");
        ground.tools.run("kubectl", &["delete", "pvc", &claim, "--namespace", NAMESPACE]).await?;
    }
    wrong.extend(ground.applications.follow().await?.0);
    Ok(wrong)
}

/// The platform, and whoever reports to it.
struct Kept {
    http: Client,
    platform: String,
    token: String,
}

impl Kept {
    async fn find(ground: &Ground, token: String) -> anyhow::Result<Self> {
        let Knocks { http, platform } = access::knocks(ground).await?;
        Ok(Self { http, platform, token })
    }

    /// Commits, and waits until the platform holds what came of it; gives the revision.
    async fn follow(&self, ground: &Ground) -> anyhow::Result<String> {
        let (_, revision) = ground.applications.commit().await?;
        self.holds(&revision).await?;
        Ok(revision)
    }

    /// Waits until the platform shows every application at a revision.
    async fn holds(&self, revision: &str) -> anyhow::Result<()> {
        let is_there = |shown: &Value| {
            let all = shown["applications"].as_array().map(Vec::as_slice).unwrap_or_default();
            let at = |name: &&str| {
                all.iter().any(|one| {
                    one["name"] == **name && one["revision"] == revision && one["sync"] == "Synced"
                })
            };
            NAMES.iter().all(at)
        };
        let shown = until(async || self.get("/api/v1/applications").await, is_there).await?;
        ensure!(is_there(&shown), "the platform does not show {revision}: {shown}");
        Ok(())
    }

    /// What the platform shows of applications, of their past, and of who did what, for whoever has this key.
    async fn state(&self, key: &str) -> anyhow::Result<Value> {
        let mut all = vec![self.get("/api/v1/applications").await?];
        for name in NAMES {
            all.push(self.get(&format!("/api/v1/applications/{}/{name}/timeline", ArgoCd::NAMESPACE)).await?);
        }
        all.push(self.ask(key).await?.1);
        Ok(Value::Array(all))
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.platform);
        let ask = async || Ok(self.http.get(&url).bearer_auth(&self.token).send().await);
        // It may have nothing of a new runtime yet, or be on its way.
        match until(ask, |asked| asked.as_ref().is_ok_and(|answer| answer.status() == 200)).await? {
            Ok(answer) if answer.status() == 200 => {
                answer.json().await.with_context(|| format!("read {path}"))
            }
            other => bail!("{path} of the platform: {other:?}"),
        }
    }

    /// What the audit log tells whoever has a key; and the status of that answer.
    async fn ask(&self, key: &str) -> anyhow::Result<(u16, Value)> {
        let query = json!({"query": "{ auditLog(first: 100) { who act subject } }"});
        let asked = self.http.post(format!("{}/2.0/api/graphql", self.platform)).header("authorization", key);
        let answer = asked.json(&query).send().await.context("ask the platform for its audit log")?;
        let status = answer.status().as_u16();
        Ok((status, answer.json().await.unwrap_or_default()))
    }
}

/// Has so many pods of a component, and waits until they are there.
async fn scaled(ground: &Ground, component: &str, replicas: usize) -> anyhow::Result<()> {
    let (deployment, number) = (format!("{NAME}-{component}"), format!("--replicas={replicas}"));
    let args = ["scale", "deployment", &deployment, "--namespace", NAMESPACE, &number];
    ground.tools.run("kubectl", &args).await?;
    ground.ready(component, replicas, &[]).await
}

/// Makes the job that restores: that of backups, with other arguments, and wherever the volume lets it run, as the platform's pod,
/// beside which it runs else, is gone.
async fn restore(ground: &Ground) -> anyhow::Result<()> {
    let from = format!("--from=cronjob/{NAME}-platform-backup");
    let args =
        ["create", "job", RESTORE, "--namespace", NAMESPACE, &from, "--dry-run=client", "--output=json"];
    let mut job = ground.tools.json("kubectl", &args).await?;
    let pod = job.pointer_mut("/spec/template/spec").context("find the pod of a job")?;
    pod.as_object_mut().context("read the pod of a job")?.remove("affinity");
    pod["containers"][0]["args"] = json!(["platform", "restore", "/backups"]);
    ground.objects.apply_value(&job, NAMESPACE).await
}

/// Waits until a job has ended well, and gives what it said.
async fn done(ground: &Ground, job: &str) -> anyhow::Result<String> {
    let job = format!("job/{job}");
    let wait = ["wait", "--for=condition=complete", &job, "--namespace", NAMESPACE, DONE_WITHIN];
    ground.tools.run("kubectl", &wait).await?;
    let said = ground.tools.run("kubectl", &["logs", &job, "--namespace", NAMESPACE]).await?;
    Ok(said.trim().replace('\n', "; "))
}

fn short(revision: &str) -> &str {
    revision.get(..7).unwrap_or(revision)
}
