//! `loadtest cluster kinds`: a hundred kinds that a real API server serves at once are reported; one in two versions, one that may
//! not be read, one whose definition goes and comes back while the resource reporter runs, one with an object as large as the server
//! takes.
//!
//! takes: nothing - gives: a line for each step, and what is wrong
//! calls: a control plane and the binary, which it starts and ends - fails: exit code 1 unless each object was reported as it is,
//! and the reporter said what it lacks, once, and went on with all else

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Ground;
use super::argocd::ArgoCd;
use super::binaries::Binaries;
use super::control::Control;
use super::objects::{Objects, Propagation, Reference};
use super::progress::Progress;
use super::role::{Role, said_of, write};
use loadtest_judge::interrupt;
use loadtest_judge::screen::say;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::process::Lines;

const ROLE: &str = "resource-reporter";
const GROUP: &str = "example.org";
/// Kinds that are served at once.
const KINDS: usize = 100;
/// The one that is served in two versions,
const CONVERTED: usize = 1;
/// the one whose definition goes,
const GOES: usize = 2;
/// and the one that no right was granted for.
const FORBIDDEN: usize = KINDS;
/// Bytes of the large object: etcd takes requests of one and a half mebibytes.
const LARGE: usize = 1_400_000;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(100);
const TOKEN: &str = "cluster-platform-token";
/// What is said of a kind that is not there, and of one that may not be read.
const NOT_SERVED: &str = "the api server serves no such objects: they are reported once they are installed";
const NO_RIGHT: &str = "a right is missing: grant it to the account that this process runs as";

/// Arguments of `loadtest cluster kinds`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  loadtest cluster kinds                    builds the binary first
  loadtest cluster kinds --program PROGRAM  with this program")]
pub struct Args {
    /// Programs, and what stays.
    #[command(flatten)]
    pub ground: Ground,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let ground = &args.ground;
    interrupt::exit_of(ground.play("kinds", async |program, folder| {
        let binaries = Binaries::find(ground.binaries.as_deref()).await?;
        played(program, &binaries, folder).await
    }))
}

/// What is wrong in the end.
async fn played(program: &Path, binaries: &Binaries, folder: &Path) -> anyhow::Result<Vec<String>> {
    let plane = super::made(&folder.join("control")).await?;
    let control = Box::pin(Control::start(binaries, &plane, None)).await?;
    let objects = Objects::new(control.client());
    let all: Vec<usize> = (0..=KINDS).collect();
    Progress.step("definitions", define(&objects, &all)).await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ArgoCd::NAMESPACE}});
    // JSON is YAML.
    objects.apply(&own.to_string(), "default").await?;
    let platform = PlatformSim::start(platform::Config {
        token: Some(TOKEN.to_owned()),
        keep: Keep { last: false, reports: 10 * KINDS },
        ..platform::Config::default()
    })
    .await?;
    let file = folder.join(ROLE).join("platform-token");
    let named = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|number| format!("{}.{GROUP}", plural(*number))).collect()
    };
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": file},
        "reporter": {"sink": {"kind": "platform"}},
        "resources": {"discovery": "1s", "applications": false, "kinds": named(&all[..KINDS])},
    });
    let mut role = Role::prepare((ROLE, ROLE), (program, &control, folder), settings).await?;
    write(&file, TOKEN).await?;
    role.reconfigure(&json!({"resources": {"kinds": named(&all)}})).await?;
    role.start().await?;
    let log = role.lines()?;
    let play = Play { objects, platform, log };

    play.make(&all[..KINDS], "first", "").await?;
    play.reported("one object of each kind", &all[..KINDS], "first").await?;
    play.converted()?;
    play.says(NO_RIGHT, &format!("{}.{GROUP}", plural(FORBIDDEN))).await?;
    say("a kind that may not be read was said to lack a right");

    let definition = Reference::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        None,
        &format!("{}.{GROUP}", plural(GOES)),
    );
    play.objects.delete(&definition, Propagation::Background).await?;
    play.says(NOT_SERVED, &definition.name).await?;
    play.ended(GOES, "first").await?;
    say("a definition went: its object was reported as gone, and that it is not served was said");
    play.make(&[0], "meanwhile", "").await?;
    play.reported("an object of another kind meanwhile", &[0], "meanwhile").await?;
    define(&play.objects, &[GOES]).await?;
    play.make(&[GOES], "second", "").await?;
    play.reported("an object after the definition came back", &[GOES], "second").await?;

    let text = "x".repeat(LARGE);
    play.make(&[3], "large", &text).await?;
    play.reported("an object as large as the server takes", &[3], "large").await?;
    let mut wrong = play.whole(3, &text)?;

    role.stop().await?;
    wrong.extend(play.log.panics());
    for said in [NO_RIGHT, NOT_SERVED] {
        let times = said_of(&play.log, said).len();
        if times != 1 {
            wrong.push(format!("it was said {times} times, and not once: {said}"));
        }
    }
    let verdict = role.asked(&control).await?;
    say(&format!("rights: {} requests", verdict.requests));
    // One by its name is read when a queue is full; the kind that went was not served for a while.
    let expected = |what: &String| {
        what.starts_with("granted and never used: get ")
            || (what.starts_with("answered 403: ") && what.contains(&plural(FORBIDDEN)))
    };
    wrong.extend(verdict.failures.into_iter().filter(|what| !expected(what)));
    wrong.extend(play.platform.totals().wrong());
    control.stop().await?;
    Ok(wrong)
}

/// Where it is played.
struct Play {
    objects: Objects,
    platform: PlatformSim,
    log: Lines,
}

impl Play {
    /// Makes an object of each of these kinds.
    async fn make(&self, kinds: &[usize], name: &str, text: &str) -> anyhow::Result<()> {
        for number in kinds {
            let object = json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": kind(*number),
                "metadata": {"name": name, "namespace": "default"}, "spec": {"text": text},
            });
            // JSON is YAML.
            self.objects.apply(&object.to_string(), "default").await?;
        }
        Ok(())
    }

    /// What was reported of objects of this name.
    fn payloads(&self, name: &str) -> Vec<Value> {
        let kept = self.platform.kept();
        let payloads = kept.iter().filter_map(|report| serde_json::from_slice::<Value>(&report.payload).ok());
        payloads.filter(|payload| payload["object"]["metadata"]["name"] == name).collect()
    }

    /// Waits until an object of each of these kinds was reported.
    async fn reported(&self, what: &str, kinds: &[usize], name: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let wanted: BTreeSet<String> = kinds.iter().map(|number| kind(*number)).collect();
        until(what, || {
            let there = self.payloads(name).into_iter().filter(|payload| payload["deleted"] != true);
            let there: BTreeSet<String> =
                there.filter_map(|payload| Some(payload["object"]["kind"].as_str()?.to_owned())).collect();
            wanted.is_subset(&there)
        })
        .await?;
        say(&format!("{what}: reported after {:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Waits until the end of an object was reported.
    async fn ended(&self, number: usize, name: &str) -> anyhow::Result<()> {
        let is_end =
            |payload: &Value| payload["object"]["kind"] == kind(number) && payload["deleted"] == true;
        until("the end of an object whose definition went", || self.payloads(name).iter().any(is_end)).await
    }

    /// An object that was made in one version is reported in the one that the server prefers.
    fn converted(&self) -> anyhow::Result<()> {
        let payloads = self.payloads("first");
        let of_it = |payload: &&Value| payload["object"]["kind"] == kind(CONVERTED);
        let version = payloads.iter().find(of_it).map(|payload| payload["object"]["apiVersion"].clone());
        if version != Some(json!(format!("{GROUP}/v2"))) {
            bail!("an object of version v1 is reported as {version:?}, and not in the preferred version v2");
        }
        say("an object of version v1 was reported in the preferred version v2");
        Ok(())
    }

    /// What is wrong with a large object as it was reported.
    fn whole(&self, number: usize, text: &str) -> anyhow::Result<Vec<String>> {
        let payloads = self.payloads("large");
        let of_it = payloads.iter().find(|payload| payload["object"]["kind"] == kind(number));
        let payload = of_it.context("find the report of the large object")?;
        let same = payload["object"]["spec"]["text"] == text && payload.get("cut").is_none();
        Ok(if same { Vec::new() } else { vec!["the large object was not reported whole".to_owned()] })
    }

    /// Waits until something was said of a kind.
    async fn says(&self, what: &str, resource: &str) -> anyhow::Result<()> {
        until(what, || said_of(&self.log, what).iter().any(|said| said == resource)).await
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} in vain for this: {what}");
        }
        sleep(LOOK).await;
    }
    Ok(())
}

fn kind(number: usize) -> String {
    format!("Kind{number}")
}

fn plural(number: usize) -> String {
    format!("kind{number}s")
}

/// Defines kinds, all at once; the one of two versions prefers the newer one, in which nothing is stored.
async fn define(objects: &Objects, numbers: &[usize]) -> anyhow::Result<()> {
    let definitions = numbers.iter().map(|number| {
        let version = |name: &str, storage: bool| {
            json!({
                "name": name, "served": true, "storage": storage,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            })
        };
        let versions = if *number == CONVERTED {
            json!([version("v1", true), version("v2", false)])
        } else {
            json!([version("v1", true)])
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{GROUP}", plural(*number))},
            "spec": {
                "group": GROUP, "scope": "Namespaced", "versions": versions,
                "names": {
                    "kind": kind(*number), "listKind": format!("{}List", kind(*number)),
                    "plural": plural(*number), "singular": plural(*number).trim_end_matches('s'),
                },
            },
        })
    });
    let all: Vec<Value> = definitions.collect();
    // JSON is YAML.
    objects.apply(&json!({"kind": "List", "items": all}).to_string(), "default").await.map(drop)
}
