//! Everybody at once: some follow logs, of whom a few do not read what comes, and the others ask for lists.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use loadtest_sim::people::User;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::argocd::{ArgoCd, ENDLESS, Writing};
use crate::bodies::team;
use crate::platform::{Platform, RUNTIME};
use crate::times::Times;

/// Whoever does not read what comes reads so many lines when all others are done.
const LATE: u64 = 2_000;
/// Lines of a page.
const PAGE: usize = 50;

const LIST: &str = "query($labels: [String!], $first: Int) { applications(pagination: {first: $first}, filters: {labels: $labels, deleted: false}) { edges { node { metadata { runtime namespace name } healthStatus healthMessage syncStatus revision deployedAt lastReportAt environment } } pageInfo { endCursor hasNextPage } } }";
const FOLLOW: &str = "subscription($application: ApplicationId!, $podName: String, $resource: ResourceId, $options: ApplicationLogsOptionsInput) { applicationLogs(application: $application, podName: $podName, resource: $resource, options: $options) { data { content podName timestamp } error done } }";

/// How much everybody does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Users who follow logs, of whom
    pub(super) followers: usize,
    /// so many do not read what comes.
    pub(super) stuck: usize,
    /// Pages that the others ask for, and how many in a second.
    pub(super) pages: usize,
    pub(super) rate: usize,
    pub(super) writing: Writing,
}

/// What came of it.
pub(super) struct Worked {
    /// From when a page was due to when it was there.
    pub(super) pages: Times,
    /// The same of whether the platform is there, asked meanwhile.
    pub(super) pings: Times,
    /// From when a line was written to when it was there.
    pub(super) lines: Times,
    /// Bytes that Argo CD could send to those who did not read.
    pub(super) held: u64,
}

/// Somebody who follows the log of a pod.
struct Follower {
    answer: reqwest::Response,
    pod: String,
    begun: Instant,
    held: Vec<u8>,
    next: u64,
}

/// Has everybody at work, until all have what they asked for.
pub(super) async fn work(
    platform: &Platform,
    argocd: &ArgoCd,
    users: &[User],
    work: Work,
) -> anyhow::Result<Worked> {
    let (following, asking) = users.split_at_checked(work.followers).context("there are too few users")?;
    let (stuck, reading) = following.split_at_checked(work.stuck).context("there are too few users")?;
    let mut late = Vec::new();
    for (number, user) in stuck.iter().enumerate() {
        let mut follower = Follower::begin(user, format!("{ENDLESS}-{number}"), argocd.begun()).await?;
        ensure!(follower.line().await?.is_some(), "a log without an end has ended");
        late.push(follower);
    }
    let followed = follow(reading, argocd, work.writing);
    let (lines, (pages, pings)) = tokio::try_join!(followed, ask(platform, asking, work))?;
    let held = argocd.endless();
    for follower in &mut late {
        for _ in 0..LATE {
            ensure!(follower.line().await?.is_some(), "a log without an end has ended");
        }
    }
    Ok(Worked { pages, pings, lines, held })
}

/// Each gets every line, in their order; gives how late they came.
async fn follow(users: &[User], argocd: &ArgoCd, writing: Writing) -> anyhow::Result<Times> {
    let mut tasks = JoinSet::new();
    for (number, user) in users.iter().cloned().enumerate() {
        let begun = argocd.begun();
        tasks.spawn(async move {
            let mut follower = Follower::begin(&user, format!("web-{number}"), begun).await?;
            let mut late = Vec::new();
            while let Some(time) = follower.line().await? {
                late.push(time);
            }
            let lines = writing.lines;
            ensure!(follower.next == lines, "{} had {} lines, not {lines}", follower.pod, follower.next);
            anyhow::Ok(late)
        });
    }
    let mut times = Times::new()?;
    while let Some(ended) = tasks.join_next().await {
        for late in ended.context("follow a log")?? {
            times.add(late)?;
        }
    }
    Ok(times)
}

/// Pages of lists at a steady rate, each of another user, and beside every tenth whether the platform is there.
async fn ask(platform: &Platform, users: &[User], work: Work) -> anyhow::Result<(Times, Times)> {
    let (mut tasks, begun) = (JoinSet::new(), tokio::time::Instant::now());
    for number in 0..work.pages {
        let due = begun + Duration::from_secs_f64(number as f64 / work.rate as f64);
        tokio::time::sleep_until(due).await;
        let user = users.get(number % users.len().max(1)).context("there is nobody to ask")?.clone();
        tasks.spawn(async move {
            let variables = json!({"labels": [format!("team={}", team(number))], "first": PAGE});
            let answer = user.ask(&json!({"query": LIST, "variables": variables})).await?;
            let edges = answer["applications"]["edges"].as_array().map_or(0, Vec::len);
            ensure!(edges > 0, "{number}: a page is empty");
            anyhow::Ok((true, due.elapsed()))
        });
        if number.is_multiple_of(10) {
            let ping = platform.client().get(format!("{}/api/ping", platform.url()));
            tasks.spawn(async move {
                ping.send().await?.error_for_status()?.bytes().await?;
                anyhow::Ok((false, due.elapsed()))
            });
        }
    }
    let (mut pages, mut pings) = (Times::new()?, Times::new()?);
    while let Some(ended) = tasks.join_next().await {
        let (is_page, time) = ended.context("ask for a page")??;
        if is_page { &mut pages } else { &mut pings }.add(time)?;
    }
    Ok((pages, pings))
}

impl Follower {
    async fn begin(user: &User, pod: String, begun: Instant) -> anyhow::Result<Self> {
        let variables = json!({
            "application": {"runtime": RUNTIME, "namespace": "argocd", "name": "store-0"},
            "podName": pod, "options": {"follow": true},
            "resource": {"group": "", "version": "v1", "kind": "Pod", "namespace": "store", "name": pod},
        });
        let asked = user.post(&format!("/2.0/api/runtimes/{RUNTIME}/app-proxy/graphql"));
        let asked = asked.header("accept", "text/event-stream");
        let asked = asked.json(&json!({"query": FOLLOW, "variables": variables}));
        let answer = asked.send().await.with_context(|| format!("follow {pod}"))?;
        let status = answer.status();
        if !status.is_success() {
            bail!("the log of {pod} is answered {status}: {}", answer.text().await.unwrap_or_default());
        }
        Ok(Self { answer, pod, begun, held: Vec::new(), next: 0 })
    }

    /// How late the next line came; `None`: the log has ended.
    async fn line(&mut self) -> anyhow::Result<Option<Duration>> {
        loop {
            while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                let Some(data) = line.strip_prefix(b"data:") else { continue };
                let event: Value = serde_json::from_slice(data).context("read an event")?;
                let item = &event["data"]["applicationLogs"];
                if let Some(content) = item["data"]["content"].as_str() {
                    return self.read(content).map(Some);
                }
                let is_end = item["done"] == true && item["error"].is_null();
                ensure!(is_end, "the log of {} breaks off: {event}", self.pod);
                return Ok(None);
            }
            match self.answer.chunk().await.with_context(|| format!("read the log of {}", self.pod))? {
                Some(chunk) => self.held.extend_from_slice(&chunk),
                None => bail!("the log of {} has no end", self.pod),
            }
        }
    }

    fn read(&mut self, content: &str) -> anyhow::Result<Duration> {
        let mut words = content.split(' ');
        let (pod, number, at) = (words.next(), words.next(), words.next());
        let wanted = self.next.to_string();
        ensure!(
            pod == Some(&*self.pod) && number == Some(&*wanted),
            "line {wanted} of {} is {content:?}",
            self.pod
        );
        self.next += 1;
        let at =
            Duration::from_micros(at.and_then(|at| at.parse().ok()).context("read when a line was written")?);
        Ok(self.begun.elapsed().saturating_sub(at))
    }
}
