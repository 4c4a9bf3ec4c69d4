//! The commands that ask a running reporter, as child processes of their own, and the admin server that answers them.

mod distribution;
mod doors;

use std::process::{Output, Stdio};
use std::time::Duration;

use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::runtime::{PROGRAM, Runtime, SOON, start, taken};
use crate::told::{self, REPORTS, application, change, thing};

/// A command that asks, with the settings of the simulation's reporter and no other variable.
fn command(simulation: &Simulation, arguments: &[&str]) -> Command {
    let settings = simulation.directory().join("config.yaml");
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_clear().env("GITOPS_RUNTIME_CONFIG", settings).kill_on_drop(true);
    command
}

/// Exit code, standard output and standard error of a command that asks.
pub(crate) async fn ask(simulation: &Simulation, arguments: &[&str]) -> (Option<i32>, String, String) {
    let running = command(simulation, arguments).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } = tokio::time::timeout(SOON, running).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// What a command prints that must work.
pub(crate) async fn answer(simulation: &Simulation, arguments: &[&str]) -> String {
    let (code, out, error) = ask(simulation, arguments).await;
    assert_eq!((code, error.as_str()), (Some(0), ""), "{arguments:?}: {out}");
    out
}

/// What a command prints as JSON.
pub(crate) async fn json(simulation: &Simulation, arguments: &[&str]) -> Value {
    let text = answer(simulation, &[arguments, &["--json"]].concat()).await;
    serde_json::from_str(&text).unwrap()
}

/// A command that tells of what happens for as long as it lives.
pub(crate) struct Following {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Starts such a command.
pub(crate) fn follow(simulation: &Simulation, arguments: &[&str]) -> Following {
    let mut child = command(simulation, arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Following { _child: child, lines }
}

impl Following {
    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        until(&mut self.lines, |_| true).await
    }
}

/// A reporter that has reported the applications named.
pub(crate) async fn reported(names: &[&str]) -> (Simulation, Runtime) {
    let simulation = told::world(|_| {}).await;
    names.iter().for_each(|name| told::put(&simulation, name));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, REPORTS * names.len() as u64).await;
    runtime.idle(names.len() as u64).await;
    (simulation, runtime)
}

/// The sentences of the steps that `explain` prints.
fn sentences(text: &str) -> Vec<&str> {
    let steps = text.lines().skip_while(|line| !line.trim_start().starts_with("TIME"));
    steps.skip(1).filter_map(|line| line.rsplit("  ").next()).map(str::trim).collect()
}

#[tokio::test]
async fn explain_tells_what_happened_to_an_application() {
    let simulation = told::world(|_| {}).await;
    let mut object = application("shop", &thing());
    object["status"]["resourceHealthSource"] = json!("appTree");
    told::put_object(&simulation, object.clone());
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, REPORTS).await;
    runtime.idle(1).await;
    let version = simulation.kube.version();
    let text = answer(&simulation, &["explain", "shop"]).await;
    for part in [" application   argocd/shop\n", " lane          not busy\n", " parked        no\n"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let acknowledged = format!(" acknowledged  resourceVersion {version} at ");
    assert!(text.contains(&acknowledged) && text.contains(": 1 report of its own; 2 resources\n"), "{text}");
    let steps = sentences(&text);
    assert_eq!(steps.first(), Some(&format!("seen at resourceVersion {version}").as_str()), "{text}");
    for (part, times) in [
        ("argocd managed_resources answered in ", 1),
        ("3 reports made in ", 1),
        ("the report of the application was acknowledged in ", 1),
        ("the report of a resource was acknowledged in ", 2),
        ("acknowledged ", 1),
    ] {
        assert_eq!(steps.iter().filter(|step| step.starts_with(part)).count(), times, "{part} in\n{text}");
    }

    // Why something was not reported.
    object["status"]["reconciledAt"] = json!("2026-01-01T00:00:07Z");
    simulation.kube.apply(Collection::Applications, object).unwrap();
    runtime.until("the second event", |status| status.total.filtered == 1).await;
    let text = answer(&simulation, &["explain", "argocd/shop"]).await;
    assert!(sentences(&text).contains(&"filtered: only status.reconciledAt moved"), "{text}");

    // As data, and while it waits.
    simulation.platform.faults().add(Rule::always(Fault::Status { status: 503, retry_after: Some(600) }));
    change(&simulation, "shop", "slow");
    runtime.until("a retry", |status| status.total.waiting == 1).await;
    let explained = json(&simulation, &["explain", "shop"]).await;
    assert_eq!(explained["app"], "argocd/shop");
    // That of the first event, or of the second if its turn came so late that a tree was read for it.
    let acknowledged = explained["acknowledged"]["version"].as_u64().unwrap();
    assert!((version..simulation.kube.version()).contains(&acknowledged), "{explained:#}");
    assert_eq!(explained["standing"]["state"], "waiting", "{explained:#}");
    assert_eq!((&explained["standing"]["blame"], &explained["parked"]), (&json!("sink"), &Value::Null));
    assert!(explained["acknowledged"]["in_doubt"].as_u64() > Some(0), "{explained:#}");
    let steps = explained["steps"].as_array().unwrap();
    assert!(
        steps.iter().any(|step| step["step"] == "not_taken" && step["reason"] == "server_error"),
        "{steps:#?}"
    );
    let text = answer(&simulation, &["explain", "shop"]).await;
    assert!(
        text.contains("lane          waiting, 1 event, 1 failed try so far because of the sink, goes on in "),
        "{text}"
    );
    runtime.kill().await;
}

#[tokio::test]
async fn explain_of_an_unknown_application_offers_what_may_have_been_meant() {
    let (simulation, runtime) = reported(&["shop", "database"]).await;
    for (name, said) in [
        ("shpo", "argocd/shpo is not known; did you mean argocd/shop?"),
        ("team-a/shop", "team-a/shop is not known; did you mean argocd/shop?"),
        ("zebra", "argocd/zebra is not known"),
    ] {
        let expected = (Some(1), String::new(), format!("gitops-runtime: {said}\n"));
        assert_eq!(ask(&simulation, &["explain", name]).await, expected);
    }
    let (code, _, error) = ask(&simulation, &["explain", "rollout/a/b"]).await;
    assert_eq!(
        (code, error.as_str()),
        (Some(1), "gitops-runtime: no object of the kind `rollout` is known\n")
    );
    let (code, _, error) = ask(&simulation, &["explain", "a/b/c/d"]).await;
    assert_eq!(code, Some(2));
    assert!(
        error.contains(
            "must be the name of an application, its namespace and name, such as argocd/shop, or kind, namespace and name of \
             another object, such as rollout/shop/web"
        )
    );
    runtime.stop().await;
}

#[tokio::test]
async fn what_is_parked_is_listed_shown_replayed_and_dropped() {
    let simulation = told::world(|_| {}).await;
    let refuse = || Rule::always(Fault::Status { status: 422, retry_after: None }).of("shop");
    let refusing = simulation.platform.faults().add(refuse());
    ["shop", "web"].into_iter().for_each(|name| told::put(&simulation, name));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    runtime.until("one to be parked", |status| status.total.parked == 1).await;
    taken(&simulation, REPORTS).await;

    let list = answer(&simulation, &["parked", "list"]).await;
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with(" APPLICATION ") && rows[1].starts_with(" argocd/shop  refused  "), "{list}");
    let parked = json(&simulation, &["parked", "show", "shop"]).await;
    assert_eq!((&parked["app"], &parked["reason"]), (&json!("argocd/shop"), &json!("refused")));
    let refused = parked["refused"].as_array().unwrap();
    assert!(refused.iter().any(|report| report["entity"] == "application"), "{parked:#}");
    let text = answer(&simulation, &["parked", "show", "shop"]).await;
    assert!(
        text.lines().any(|line| line.split_whitespace().take(2).eq(["application", "refused"])),
        "{text}"
    );
    let explained = answer(&simulation, &["explain", "shop"]).await;
    assert!(explained.contains("; gitops-runtime parked show argocd/shop\n"), "{explained}");

    // Tried again in vain it stays; what is not parked is said.
    assert_eq!(answer(&simulation, &["parked", "replay", "shop"]).await, "argocd/shop is read again\n");
    runtime.until("the second refusal", |status| status.total.parked == 2).await;
    let (code, out, error) = ask(&simulation, &["parked", "replay", "web", "shop"]).await;
    assert_eq!((code, out.as_str()), (Some(1), "argocd/shop is read again\n"));
    assert_eq!(error, "gitops-runtime: argocd/web is not parked\n");
    runtime.until("the third refusal", |status| status.total.parked == 3).await;

    simulation.platform.faults().remove(refusing);
    assert_eq!(answer(&simulation, &["parked", "replay", "--all"]).await, "argocd/shop is read again\n");
    taken(&simulation, 2 * REPORTS).await;
    runtime.until("the end", |status| status.total.idle()).await;
    assert_eq!(answer(&simulation, &["parked", "list"]).await, "nothing is parked\n");

    simulation.platform.faults().add(refuse());
    change(&simulation, "shop", "again");
    runtime.until("another refusal", |status| status.total.parked == 4).await;
    let (code, _, error) = ask(&simulation, &["parked", "drop", "shop"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("--yes"), "{error}");
    assert_eq!(answer(&simulation, &["parked", "drop", "shop", "--yes"]).await, "argocd/shop is given up\n");
    let again = ask(&simulation, &["parked", "drop", "shop", "--yes"]).await;
    let said = "gitops-runtime: argocd/shop is not parked\n".to_owned();
    assert_eq!(again, (Some(1), "0 applications are given up\n".to_owned(), said));
    assert_eq!(json(&simulation, &["parked", "list"]).await, json!({"parked": []}));
    runtime.stop().await;
}

#[tokio::test]
async fn replay_reads_again_and_reports_what_differs_or_all() {
    let (simulation, runtime) = reported(&["shop", "web"]).await;
    let posts = || simulation.platform.totals().posts;
    // Nothing differs.
    assert_eq!(answer(&simulation, &["replay", "--app", "shop"]).await, "1 application is read again\n");
    runtime.idle(3).await;
    assert_eq!(posts(), 2 * REPORTS);
    assert_eq!(
        answer(&simulation, &["replay", "--app", "shop", "--whole"]).await,
        "1 application is read again\n"
    );
    runtime.idle(4).await;
    assert_eq!(posts(), 3 * REPORTS);
    let since = answer(&simulation, &["replay", "--since", "1h", "--whole"]).await;
    assert_eq!(since, "2 applications are read again\n");
    runtime.idle(6).await;
    assert_eq!(posts(), 5 * REPORTS);

    let later = ["replay", "--since", "2100-01-01T00:00:00Z", "--whole"];
    assert_eq!(answer(&simulation, &later).await, "0 applications are read again\n");
    let named = answer(&simulation, &[&later[..], &["--app", "shop"]].concat()).await;
    let left = "argocd/shop was not reported since, and is left as it is\n0 applications are read again\n";
    assert_eq!(named, left);
    let (code, out, error) = ask(&simulation, &["replay", "--app", "shpo", "--app", "web"]).await;
    assert_eq!((code, out.as_str()), (Some(1), "1 application is read again\n"));
    assert_eq!(error, "gitops-runtime: argocd/shpo is not known; did you mean argocd/shop?\n");
    let (code, _, error) = ask(&simulation, &["replay", "--since", "yesterday"]).await;
    assert_eq!(code, Some(2));
    assert!(
        error
            .contains("must be a time such as 2026-11-21T09:00:00Z, or how long ago, such as 90m, 12h or 7d")
    );
    runtime.stop().await;
}

#[tokio::test]
async fn status_tells_how_the_reporter_stands() {
    let (simulation, runtime) = reported(&["shop"]).await;
    let status = json(&simulation, &["status"]).await;
    let page: Value = serde_json::from_str(&runtime.page("/status").await.1).unwrap();
    assert_eq!((&status["total"], &status["shards"]), (&page["total"], &page["shards"]));
    let text = answer(&simulation, &["status"]).await;
    for part in [" reporter    ready, ok, up ", " circuit     closed\n", " ledger      file, 1 record, "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(text.lines().last().unwrap().starts_with(" all "), "{text}");
    // The loop ends with Ctrl-C, and well.
    let mut watching = command(&simulation, &["status", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        until(&mut lines, |line| line.starts_with(" reporter ")).await;
    }
    interrupt(&mut watching).await;
    runtime.stop().await;
}

#[tokio::test]
async fn tail_tells_what_happens_while_it_happens() {
    let (simulation, runtime) = reported(&["shop", "web"]).await;
    let follow = |arguments: &[&str]| {
        let mut child = command(&simulation, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines)
    };
    let (mut child, mut lines) = follow(&["tail", "--app", "shop", "--step", "acked", "--json"]);
    let mut other = follow(&["tail"]);
    // It listens from some moment on: until then there is something to hear.
    let chatter = async {
        for number in 0.. {
            change(&simulation, "web", &number.to_string());
            change(&simulation, "shop", &number.to_string());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let heard = async {
        let line = until(&mut lines, |_| true).await;
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["app"], &line["step"]), (&json!("argocd/shop"), &json!("acked")), "{line}");
        assert!(line["version"].as_u64() > Some(0) && line["seconds"].as_f64() > Some(0.0), "{line}");
        assert_eq!(line["trace"].as_str().map(str::len), Some(32), "{line}");
        until(&mut other.1, |line| line.contains("  argocd/web  seen at resourceVersion ")).await;
    };
    tokio::select! {
        () = chatter => unreachable!("it never ends"),
        () = heard => {}
    }
    interrupt(&mut child).await;
    let (code, _, error) = ask(&simulation, &["tail", "--shard", "999"]).await;
    assert_eq!(code, Some(1));
    assert!(error.starts_with("gitops-runtime: `999` is no shard: they are 0 to "), "{error}");
    // The end of the reporter ends the other, which says so.
    runtime.stop().await;
    let ended = tokio::time::timeout(SOON, other.0.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(1));
    let (code, _, error) = ask(&simulation, &["tail", "--step", "ackd"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("[possible values: observed, coalesced, "), "{error}");
}

/// The first line that is as wanted.
async fn until(lines: &mut Lines<BufReader<ChildStdout>>, is_it: impl Fn(&str) -> bool) -> String {
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("it ended");
            if is_it(&line) {
                return line;
            }
        }
    };
    tokio::time::timeout(SOON, found).await.expect("no such line")
}

/// Ctrl-C, which ends a command well.
async fn interrupt(child: &mut Child) {
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let status = tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
}

/// Everything that the admin server says of the applications named, for a test that looks for secrets in it.
pub(crate) async fn everything(simulation: &Simulation, names: &[&str]) -> Vec<(String, String)> {
    let none: [reqwest::Certificate; 0] = [];
    let socket = simulation.directory().join("state/admin.sock");
    let client = reqwest::Client::builder().unix_socket(socket).tls_certs_only(none).build().unwrap();
    let mut paths = vec!["status".to_owned(), "parked".to_owned(), "top".to_owned()];
    paths.extend(names.iter().map(|name| format!("explain/argocd/{name}")));
    let mut all = Vec::new();
    for path in paths {
        let answer = client.get(format!("http://localhost/v1/{path}")).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status.as_u16(), 200, "{path}: {text}");
        all.push((path, text));
    }
    let mut tail = client.get("http://localhost/v1/tail?step=observed,acked").send().await.unwrap();
    let body = json!({"app": [format!("argocd/{}", names[0])], "whole": true});
    let replayed = client.post("http://localhost/v1/replay").json(&body).send().await.unwrap();
    all.push(("replay".to_owned(), replayed.text().await.unwrap()));
    let mut heard = String::new();
    while !heard.contains("acked") {
        let chunk = tokio::time::timeout(SOON, tail.chunk()).await.unwrap().unwrap().unwrap();
        heard.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    all.push(("tail".to_owned(), heard));
    let (_, _, refused) = ask(simulation, &["explain", "nowhere"]).await;
    all.push(("a refusal".to_owned(), refused));
    all
}

/// The reporter as a process that must not start; gives what it says.
async fn refused(simulation: &Simulation, more: &Value) -> String {
    let start = start(simulation, more);
    let running = Command::new(&start.program)
        .args(&start.args)
        .env_clear()
        .envs(start.env.iter().cloned())
        .env("GITOPS_RUNTIME_LOG__LEVEL", "error")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(SOON, running).await.unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}
