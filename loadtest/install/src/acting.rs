//! What somebody asks for at a command line, the whole way and back: the platform of the chart, tunnel, router, app proxy and
//! Argo CD, whose reports the command waits for.
//!
//! takes: a release with all components, and the key of an admin of its platform - gives: what is wrong with what is said and
//! done
//! calls: the program as a person runs it, the platform's API, the API server - fails: when one of them cannot be asked

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use loadtest_cluster::argocd::ArgoCd;
use loadtest_cluster::objects::Reference;
use loadtest_judge::screen::say;
use loadtest_sim::command::Said;
use loadtest_sim::people::Admin;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;

use crate::access::{APPLICATION, HOST};
use crate::ground::Ground;
use crate::until;

/// What is deleted, and comes back by a sync.
const RESOURCE: &str = "ConfigMap/shop";
/// The context of somebody who may only read.
const READER: &str = "reader";

/// Somebody at a command line.
pub(crate) struct Person<'a> {
    admin: &'a Admin,
    platform: &'a str,
    key: &'a str,
    program: PathBuf,
    home: PathBuf,
}

impl<'a> Person<'a> {
    /// Tells the platform where its runtime is, lets the account of the app proxy do what people may ask for, and signs in: as
    /// an admin, and as somebody who may only read.
    pub(crate) async fn arrives(
        ground: &Ground,
        admin: &'a Admin,
        (platform, key): (&'a str, &'a str),
    ) -> anyhow::Result<Self> {
        let home = ground.folder.join("person");
        std::fs::create_dir_all(&home).context("make a home")?;
        let program = ground.program.clone();
        let person = Self { admin, platform, key, program, home };
        admin.register("prod", &format!("http://{HOST}")).await?;
        ground.objects.patch(&rights(), &policy(true), None).await?;
        person.signed_in("admin", key).await?;
        person.signed_in(READER, &admin.0.key("read").await?).await?;
        Ok(person)
    }

    /// Leaves the account of the app proxy with the rights that it had.
    pub(crate) async fn leaves(self, ground: &Ground) -> anyhow::Result<()> {
        ground.objects.patch(&rights(), &policy(false), None).await.map(drop)
    }

    /// Deletes a resource and has it made anew, which Argo CD does; then asks for it as somebody who may not.
    pub(crate) async fn acts(&self, ground: &Ground) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let first = uid(ground).await?.context("find the resource that is deleted")?;
        let delete = ["app", "delete-resource", APPLICATION, RESOURCE, "--yes"];
        self.does(&delete).await?;
        let left = until(async || uid(ground).await, Option::is_none).await?;
        ensure!(left.is_none(), "{RESOURCE} is still there");
        let begun = Instant::now();
        let said = self.does(&["app", "sync", APPLICATION, "--wait"]).await?;
        say(&format!("  a sync and its report took {:.1} s: {said:?}", begun.elapsed().as_secs_f64()));
        let made = uid(ground).await?;
        if made.is_none() || made.as_deref() == Some(&first) {
            wrong.push(format!("after a sync {RESOURCE} is {made:?}, and was {first}"));
        }
        for act in [&delete[..], &["app", "sync", APPLICATION]] {
            let may_not = "this key may only read: make one of the scope 'full'\n";
            wrong.extend(self.refused(act, READER, may_not).await?);
        }
        if uid(ground).await? != made {
            wrong.push(format!("somebody who may only read changed {RESOURCE}"));
        }
        let query = json!({"query": "{ auditLog(first: 100) { who act subject } }"});
        let log = self.admin.0.ask(&query).await?.to_string();
        for act in ["deleteResource", "syncApplication"] {
            if !log.contains(act) {
                wrong.push(format!("the audit log of the platform has no {act}: {log}"));
            }
        }
        Ok(wrong)
    }

    /// Asks while the tunnel is away.
    pub(crate) async fn is_told_that_the_tunnel_is_away(&self) -> anyhow::Result<Vec<String>> {
        let why = format!(
            "runtime 'prod' has no tunnel connected at {HOST}: look whether its tunnel client runs, and what its log says\n"
        );
        self.refused(&["app", "sync", APPLICATION], "admin", &why).await
    }

    async fn signed_in(&self, name: &str, key: &str) -> anyhow::Result<()> {
        let said = self.types(&["login", self.platform, "--name", name], key).await?;
        ensure!(said.0 == 0, "signing in as {name} says: {said:?}");
        Ok(())
    }

    /// What a command prints that does what an admin asks for.
    async fn does(&self, act: &[&str]) -> anyhow::Result<String> {
        let said = self.types(&[act, &["--context", "admin"]].concat(), "").await?;
        ensure!(said.0 == 0, "{} says: {said:?}", act.join(" "));
        Ok(said.1)
    }

    /// What is wrong with how a command is refused.
    async fn refused(&self, act: &[&str], context: &str, why: &str) -> anyhow::Result<Vec<String>> {
        let said = self.types(&[act, &["--context", context]].concat(), "").await?;
        let is_refused = said.0 == 1 && said.1.is_empty() && said.2.ends_with(why);
        say(&format!("  {context} is told of {}: {}", act.join(" "), said.2.trim_end()));
        Ok(if is_refused { Vec::new() } else { vec![format!("{} says: {said:?}", act.join(" "))] })
    }

    async fn types(&self, args: &[&str], input: &str) -> anyhow::Result<Said> {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().env("HOME", &self.home).current_dir(&self.home);
        let said = Said::by(&mut command, input).await.with_context(|| args.join(" "))?;
        ensure!(
            !format!("{}{}", said.1, said.2).contains(self.key),
            "{} prints the key",
            args.first().unwrap_or(&"")
        );
        Ok(said)
    }
}

/// What is deleted and made anew.
pub(crate) fn resource() -> Reference {
    Reference::new("v1", "ConfigMap", Some(APPLICATION), "shop")
}

/// Its uid.
pub(crate) async fn uid(ground: &Ground) -> anyhow::Result<Option<String>> {
    let object = ground.objects.get(&resource()).await?;
    let object = object.filter(|object| object.pointer("/metadata/deletionTimestamp").is_none());
    Ok(object.and_then(|object| object.pointer("/metadata/uid")?.as_str().map(str::to_owned)))
}

/// Where Argo CD reads what its accounts may do.
fn rights() -> Reference {
    Reference::new("v1", "ConfigMap", Some(ArgoCd::NAMESPACE), "argocd-rbac-cm")
}

/// What the account of the app proxy may do beside what the reporter needs, or no more than that.
fn policy(acts: bool) -> Value {
    let acts_may = "p, role:reporter, applications, sync, */*, allow\np, role:reporter, applications, delete/*, */*, allow\n";
    json!({"data": {"policy.acts.csv": if acts { acts_may.into() } else { Value::Null }}})
}
