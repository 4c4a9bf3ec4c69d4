//! `loadtest cluster kinds`: a hundred kinds that a real API server serves at once are reported; one in two versions, one whose
//! definition goes and comes back while the resource reporter runs, one with an object as large as the server takes. One more may
//! not be read.
//!
//! takes: nothing - gives: a line for each step, what the rights were used for, what is wrong
//! calls: a control plane and the binary, which it starts and ends - fails: exit code 1 unless each object was reported as it is,
//! the reporter said what it lacks, once, and went on with all else, and no right was missing or is one too many, but for the one
//! that was withheld

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::argocd::ArgoCd;
use super::binaries::Binaries;
use super::control::Control;
use super::definitions::unchecked;
use super::objects::{Objects, Reference};
use super::progress::Progress;
use super::role::{Role, said_of, write};
use loadtest_judge::screen::say;
use loadtest_sim::PATIENCE;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::process::Lines;

const ROLE: &str = "resource-reporter";
const GROUP: &str = "example.org";
const DEFINITIONS: &str = "apiextensions.k8s.io/v1";
/// Kinds that are served at once.
const KINDS: usize = 100;
/// The one that is served in two versions,
const CONVERTED: usize = 1;
/// the one whose definition goes,
const GOES: usize = 2;
/// and the one that no right was granted for.
const FORBIDDEN: usize = KINDS;
/// The one that has a large object: etcd takes requests of one and a half mebibytes,
const LARGE: usize = 3;
const LARGE_BYTES: usize = 1_400_000;
/// and the API server none of more than three.
const TOO_LARGE_BYTES: usize = 5_000_000;
const LOOK: Duration = Duration::from_millis(100);
const TOKEN: &str = "cluster-platform-token";
/// What is said of a kind that is not there, and of one that may not be read.
const NOT_SERVED: &str = "the api server serves no such objects: they are reported once they are installed";
const NO_RIGHT: &str = "a right is missing: grant it to the account that this process runs as";

/// What is wrong in the end.
pub(super) async fn played(
    program: &Path,
    binaries: &Binaries,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let plane = super::made(&folder.join("control")).await?;
    let control = Box::pin(Control::start(binaries, &plane, None)).await?;
    let objects = Objects::new(control.client());
    let all: Vec<usize> = (0..=KINDS).collect();
    let readable = all.get(..KINDS).unwrap_or_default();
    Progress.step("definitions", define(&objects, &all)).await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ArgoCd::NAMESPACE}});
    objects.apply_value(&own, "default").await?;
    let platform = PlatformSim::start(platform::Config {
        token: Some(TOKEN.to_owned()),
        keep: Keep { last: false, reports: 10 * KINDS },
        ..platform::Config::default()
    })
    .await?;
    let file = folder.join(ROLE).join("platform-token");
    let named = |numbers: &[usize]| -> Vec<String> { numbers.iter().copied().map(resource).collect() };
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": file},
        "reporter": {"sink": {"kind": "platform"}},
        "resources": {"discovery": "1s", "applications": false, "kinds": named(readable)},
    });
    let mut role = Role::prepare((ROLE, ROLE), (program, &control, folder), settings).await?;
    write(&file, TOKEN).await?;
    role.reconfigure(&json!({"resources": {"kinds": named(&all)}})).await?;
    make(&objects, &all, "first", "").await?;
    // What is served in the other version is told a moment later, perhaps.
    objects.get(&Reference::new(&format!("{GROUP}/v2"), &kind(CONVERTED), Some("default"), "first")).await?;
    role.start().await?;
    let play = Play { objects, platform, log: role.lines()? };

    play.reported("one object of each of a hundred kinds", readable, "first").await?;
    play.converted()?;
    make(&play.objects, &all, "second", "").await?;
    play.reported("one more of each", readable, "second").await?;
    play.says(NO_RIGHT, &resource(FORBIDDEN)).await?;
    say("that a kind may not be read was said, and the others went on");
    play.without_definition().await?;
    let mut wrong = play.large().await?;

    role.stop().await?;
    wrong.extend(play.log.panics());
    wrong.extend(play.said_once());
    if play.reports().iter().any(|payload| payload["object"]["kind"] == kind(FORBIDDEN)) {
        wrong.push("what may not be read was reported".to_owned());
    }
    let verdict = role.asked(&control).await?;
    say(&format!("rights: {} requests, with {} rights", verdict.requests, verdict.used.len()));
    // An object is read by its name when a queue is full, or a list lacks most of what was known.
    let expected = |what: &str| {
        what.starts_with("granted and never used: get ")
            || (what.starts_with("answered 403: ") && what.contains(&resource(FORBIDDEN)))
    };
    wrong.extend(verdict.wrong(expected));
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
    /// What was reported, the payloads.
    fn reports(&self) -> Vec<Value> {
        let kept = self.platform.kept();
        kept.iter().filter_map(|report| serde_json::from_slice::<Value>(&report.payload).ok()).collect()
    }

    /// What was reported of objects of this name.
    fn payloads(&self, name: &str) -> Vec<Value> {
        let mut payloads = self.reports();
        payloads.retain(|payload| payload["object"]["metadata"]["name"] == name);
        payloads
    }

    /// Waits until an object of each of these kinds was reported.
    async fn reported(&self, what: &str, kinds: &[usize], name: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let wanted: BTreeSet<String> = kinds.iter().copied().map(kind).collect();
        until(what, async || {
            let there = self.payloads(name).into_iter().filter(|payload| payload["deleted"] != true);
            let there: BTreeSet<String> =
                there.filter_map(|payload| Some(payload["object"]["kind"].as_str()?.to_owned())).collect();
            Ok(wanted.is_subset(&there))
        })
        .await?;
        say(&format!("{what}: reported after {:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// An object that was made in one version is reported in the one that the server prefers.
    fn converted(&self) -> anyhow::Result<()> {
        let payloads = self.payloads("first");
        let of_it = |payload: &&Value| payload["object"]["kind"] == kind(CONVERTED);
        let version = payloads.iter().find(of_it).map(|payload| payload["object"]["apiVersion"].clone());
        if version != Some(json!(format!("{GROUP}/v2"))) {
            bail!("an object of version v1 is reported as {version:?}, and not in the preferred version v2");
        }
        say("an object of version v1: reported in the preferred version v2");
        Ok(())
    }

    /// A definition goes and comes back, and all else goes on.
    async fn without_definition(&self) -> anyhow::Result<()> {
        let definition = Reference::new(DEFINITIONS, "CustomResourceDefinition", None, &resource(GOES));
        self.objects.delete(&definition).await?;
        self.says(NOT_SERVED, &definition.name).await?;
        for name in ["first", "second"] {
            let is_end =
                |payload: &Value| payload["object"]["kind"] == kind(GOES) && payload["deleted"] == true;
            let ended = async || Ok(self.payloads(name).iter().any(is_end));
            until("the end of an object whose definition went", ended).await?;
        }
        say("a definition went: the ends of its objects were reported, and that it is not served was said");
        make(&self.objects, &[0], "meanwhile", "").await?;
        self.reported("an object of another kind meanwhile", &[0], "meanwhile").await?;
        until("a definition to be gone", async || Ok(self.objects.get(&definition).await?.is_none())).await?;
        define(&self.objects, &[GOES]).await?;
        make(&self.objects, &[GOES], "again", "").await?;
        self.reported("an object after the definition came back", &[GOES], "again").await
    }

    /// What is wrong with how an object is reported that is as large as it may be. The server takes none of 5 MB.
    async fn large(&self) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        match make(&self.objects, &[LARGE], "too-large", &"x".repeat(TOO_LARGE_BYTES)).await {
            Ok(()) => wrong.push(format!("the API server took an object of {TOO_LARGE_BYTES} bytes")),
            Err(why) => {
                say(&format!(
                    "the API server takes no object of {TOO_LARGE_BYTES} bytes: {}",
                    why.root_cause()
                ));
            }
        }
        let text = "x".repeat(LARGE_BYTES);
        make(&self.objects, &[LARGE], "large", &text).await?;
        self.reported(&format!("an object of {LARGE_BYTES} bytes"), &[LARGE], "large").await?;
        let payloads = self.payloads("large");
        let payload = payloads.first().context("find the report of the large object")?;
        if payload["object"]["spec"]["text"] != text || payload.get("cut").is_some() {
            wrong.push("the large object was not reported whole".to_owned());
        }
        Ok(wrong)
    }

    /// Waits until something was said of a kind.
    async fn says(&self, what: &str, resource: &str) -> anyhow::Result<()> {
        until(what, async || Ok(said_of(&self.log, what).iter().any(|said| said == resource))).await
    }

    /// What was said more than once, or of others.
    fn said_once(&self) -> Vec<String> {
        let expected = [(NO_RIGHT, resource(FORBIDDEN)), (NOT_SERVED, resource(GOES))];
        let differs = |(what, of): (&str, String)| {
            let said = said_of(&self.log, what);
            (said != [of]).then(|| format!("it was said of {said:?}, and not once of one: {what}"))
        };
        expected.into_iter().filter_map(differs).collect()
    }
}

/// Makes an object of each of these kinds.
async fn make(objects: &Objects, kinds: &[usize], name: &str, text: &str) -> anyhow::Result<()> {
    for number in kinds {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind(*number),
            "metadata": {"name": name, "namespace": "default"}, "spec": {"text": text},
        });
        objects.apply_value(&object, "default").await?;
    }
    Ok(())
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let is_so = loadtest_sim::until(PATIENCE, LOOK, holds, |holds| *holds).await?;
    ensure!(is_so, "waited {PATIENCE:?} in vain for this: {what}");
    Ok(())
}

fn kind(number: usize) -> String {
    format!("Kind{number}")
}

fn plural(number: usize) -> String {
    format!("kind{number}s")
}

/// As the settings call a kind.
fn resource(number: usize) -> String {
    format!("{}.{GROUP}", plural(number))
}

/// Defines kinds, all at once; the one of two versions prefers the newer one, in which nothing is stored.
async fn define(objects: &Objects, numbers: &[usize]) -> anyhow::Result<()> {
    let definitions = numbers.iter().map(|number| {
        let versions: &[&str] = if *number == CONVERTED { &["v1", "v2"] } else { &["v1"] };
        unchecked(GROUP, &kind(*number), &plural(*number), versions, false)
    });
    let all: Vec<Value> = definitions.collect();
    objects.apply_value(&json!({"kind": "List", "items": all}), "default").await
}
