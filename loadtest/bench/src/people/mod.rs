//! `loadtest bench people`: what people see and do, while there are many of them.
//!
//! takes: recorded applications with their resources, reported to a platform; users, each with an account and a key or a session
//! of their own, who see them by a rule; an app proxy before an Argo CD that streams logs - gives: how long `gitops-runtime app
//! list` takes, from its start to its last byte, beside a bare read of the same rows; how long a page takes, and how late lines
//! of logs come, with everybody at work and some who do not read what comes; the memory of both processes before, meanwhile and
//! after - calls: both roles and the command line as processes, and shares the machine's cores with them - fails: when a list is
//! not what the store has, a line is missing or out of order, or in the long form when a figure misses its bound

mod app_proxy;
mod argocd;
mod listing;
mod users;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use loadtest_sim::people::{Admin, FIRST, User};
use serde_json::json;

use self::app_proxy::AppProxy;
use self::argocd::{ArgoCd, Writing};
use self::listing::{Desk, Store};
use self::users::{Work, Worked};
use crate::bodies::Bodies;
use crate::measure::{Measure, Measures};
use crate::platform::{Platform, RUNTIME};
use crate::times::{Times, mib, millis};
use crate::watch::most_while;
use loadtest_judge::screen::say;

/// Bodies that are made before they are sent.
const MADE: usize = 10_000;
/// How often memory is looked at.
const OFTEN: Duration = Duration::from_millis(100);

/// What must be reached in the long form: the list of all applications takes so long nineteen times of twenty,
const LISTED: Duration = Duration::from_millis(300);
/// either process has so much memory,
const RESIDENT: u64 = 256 << 20;
/// and so much more than before while everybody is at work.
const MORE: u64 = 96 << 20;

/// Everybody's team, and what it may.
const TEAM: &str = "shop";
const MAY: [&str; 2] = ["VIEW", "VIEW_POD_LOGS"];

/// How much there is.
#[derive(Debug, Clone, Copy)]
struct Form {
    applications: usize,
    users: usize,
    /// So often each command is run.
    runs: usize,
    work: Work,
    is_judged: bool,
}

const SHORT: Form = Form {
    applications: 40,
    users: 6,
    runs: 1,
    work: Work {
        followers: 4,
        stuck: 1,
        pages: 20,
        rate: 40,
        writing: Writing { lines: 50, every: Duration::from_millis(5) },
    },
    is_judged: false,
};
const LONG: Form = Form {
    applications: 5_000,
    users: 200,
    runs: 100,
    work: Work {
        followers: 50,
        stuck: 5,
        pages: 900,
        rate: 30,
        writing: Writing { lines: 1_500, every: Duration::from_millis(20) },
    },
    is_judged: true,
};

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, is_short: bool) -> anyhow::Result<bool> {
    let form = if is_short { SHORT } else { LONG };
    say(&format!("== people: {} applications, {} users", form.applications, form.users));
    let platform = Platform::start(program, None).await?;
    let link = platform.says(FIRST).await?;
    let admin = Admin::first(platform.client(), platform.url(), &link).await?;
    let mut bodies = Bodies::new(form.applications)?;
    loop {
        let made = bodies.first(MADE)?;
        if made.is_empty() {
            break;
        }
        platform.take(&made).await?;
    }
    let argocd = ArgoCd::start(form.work.writing).await?;
    let proxy = AppProxy::start(program, &platform, &argocd.url()).await?;
    admin.register(RUNTIME, proxy.url()).await?;
    let users = invite(&admin, form.users).await?;

    let store = Store::open(&platform).await?;
    let applications = store.applications();
    ensure!(applications >= form.applications, "the store has {applications} applications alone");
    let key = admin.0.key("full").await?;
    let desk = Desk::sign_in(program, platform.url(), &key).await?;
    let bare = store.read(form.runs).await?;
    let listings = desk.list(&store, form.runs).await?;
    store.close().await;

    let memory = || Some([platform.resident().ok()?, proxy.resident().ok()?]);
    let before = memory().context("read the memory of the platform and the app proxy")?;
    let working = Box::pin(users::work(&platform, &argocd, &users, form.work));
    let (worked, most) = most_while(OFTEN, memory, working).await;
    let (worked, most) = (worked?, most.unwrap_or(before));
    let after = memory().context("read the memory of the platform and the app proxy")?;
    proxy.stop().await?;
    platform.stop().await?;

    let mut measures = Measures::new("people", !form.is_judged);
    let p95 = |times: &Times| times.quantile(0.95).as_secs_f64();
    let times = |what: String, of: &Times, beside: &Times| {
        let (half, most) = (millis(of.quantile(0.5)), millis(of.quantile(0.95)));
        let ratio = p95(of) / p95(beside).max(1e-6);
        Measure::beside(
            format!("{what}, p50 / p95 / x of {}", of.count()),
            format!("{half} / {most} / {ratio:.1}"),
        )
    };
    for one in &listings {
        measures.add([
            Measure::p95(&format!("{}, {} rows", one.what, one.rows), &one.times, LISTED),
            times(one.what.clone(), &one.times, &bare.times),
        ]);
    }
    measures.add([times(format!("{}, {} rows", bare.what, bare.rows), &bare.times, &bare.times)]);
    let Worked { pages, lines, pings, .. } = &worked;
    for (what, of) in
        [("a page of a list", pages), ("a line of a log, since it was written", lines), ("/api/ping", pings)]
    {
        measures.add([times(format!("{what}, with everybody at work"), of, pings)]);
    }
    for (name, ((before, most), after)) in
        ["platform", "app-proxy"].into_iter().zip(before.into_iter().zip(most).zip(after))
    {
        measures.add([
            Measure::memory(format!("memory of the {name}, most"), most, RESIDENT),
            Measure::memory("beyond what it had before", most.saturating_sub(before), MORE),
            Measure::beside("after", mib(after)),
        ]);
    }
    let Work { followers, stuck, rate, writing, .. } = form.work;
    say(&format!(
        "people: {applications} applications, {} users, of whom {followers} follow logs, {stuck} of these without reading, and the \
         others ask for {rate} pages a second; \"x\": as long as a bare read of the same rows, or as the answer of /api/ping; each \
         of the logs writes {:.0} lines a second; to those who did not read Argo CD could send {} before it had to wait",
        form.users,
        1.0 / writing.every.as_secs_f64(),
        mib(worked.held)
    ));
    Ok(measures.judge())
}

/// So many, who see the runtime's applications and their logs by a rule; every other one has a key, the rest a session.
async fn invite(admin: &Admin, users: usize) -> anyhow::Result<Vec<User>> {
    let attributes = [json!({"name": "RUNTIME", "value": RUNTIME})];
    admin
        .allow(&json!({
            "entityType": "gitopsApplications", "teams": [TEAM], "actions": MAY, "attributes": attributes,
        }))
        .await?;
    let mut all = Vec::new();
    for number in 0..users {
        let user = admin.invite(&format!("user-{number}"), TEAM).await?;
        all.push(match number.is_multiple_of(2) {
            true => {
                let key = user.key("full").await.context("make a key")?;
                user.with_key(key)
            }
            false => user,
        });
    }
    Ok(all)
}
