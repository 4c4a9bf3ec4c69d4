//! What keeps the reporter busy: as JSON, as text, and on a terminal.

mod terminal;

use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use serde_json::{Value, json};

use self::terminal::Terminal;
use crate::ask::{answer, ask, json};
use crate::runtime::{Runtime, eventually, taken};
use crate::told::{self, REPORTS, change};

/// Changes of the hot application.
const CHANGES: u64 = 30;
/// How long the platform takes over one report of the slow application: less than is waited for an answer.
const SLOW_MS: u64 = 5_000;

/// A reporter with one application that changes often, one of which a report takes long, one that fails twice, and
/// one at rest.
async fn busy() -> (Simulation, Runtime) {
    let simulation = told::world(|_| {}).await;
    let names = ["calm", "failing", "hot", "slow"];
    names.iter().for_each(|name| told::put(&simulation, name));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, REPORTS * names.len() as u64).await;
    let before = runtime.idle(names.len() as u64).await.total.observed;
    for number in 1..=CHANGES {
        change(&simulation, "hot", &number.to_string());
    }
    let failing = Rule::always(Fault::Status { status: 503, retry_after: None }).of("failing").times(2);
    simulation.platform.faults().add(failing);
    // Longer than anything else takes on a busy machine.
    let slow = Rule::always(Fault::Delay { ms: SLOW_MS }).of("slow").times(1).after_effect();
    simulation.platform.faults().add(slow);
    change(&simulation, "failing", "again");
    change(&simulation, "slow", "again");
    // They changed last: what was shown of the hot one before has come in with them.
    let told =
        |name| simulation.platform.last_of_application("argocd", name).is_some_and(|it| it.reports > 1);
    eventually("what changed last", || told("failing") && told("slow")).await;
    runtime.idle(before + CHANGES + 2).await;
    (simulation, runtime)
}

#[tokio::test]
async fn the_hot_the_slow_and_the_failing_application_come_first() {
    let (simulation, runtime) = busy().await;
    let top = json(&simulation, &["top"]).await;
    let of = |list: &str, number: usize| top[list][number].clone();
    let names = |list: &str| {
        let list = top[list].as_array().unwrap().iter();
        list.map(|entry| entry["app"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };

    let hot = of("hottest", 0);
    assert_eq!((&hot["app"], &hot["events_up_to"]), (&json!("argocd/hot"), &hot["events"]), "{top:#}");
    assert!(hot["events"].as_u64() > Some(CHANGES) && hot["reports"].as_u64() > Some(REPORTS), "{hot:#}");
    assert_eq!(names("hottest").len(), 4);
    let acked: u64 =
        top["shards"].as_array().unwrap().iter().map(|shard| shard["acked"].as_u64().unwrap()).sum();
    assert_eq!(acked, runtime.status().await.total.acked);
    assert_eq!(top["circuit"], "closed");

    let failing = of("failing", 0);
    assert_eq!((&failing["app"], &failing["reason"]), (&json!("argocd/failing"), &json!("server_error")));
    assert!(failing["failures"].as_u64() >= Some(1) && failing["parked"] == 0, "{failing:#}");
    let error = of("errors", 0);
    assert_eq!((&error["peer"], &error["reason"]), (&json!("platform"), &json!("server_error")));
    assert_eq!(
        (&error["app"], &error["count"], &error["trace"]),
        (&failing["app"], &json!(2), &failing["trace"])
    );

    let calls = of("most_calls", 0);
    assert_eq!(calls["app"], "argocd/hot", "{top:#}");
    assert_eq!(calls["calls_up_to"], calls["calls"]);
    let asked: u64 =
        top["most_calls"].as_array().unwrap().iter().map(|app| app["calls"].as_u64().unwrap()).sum();
    assert_eq!(asked, simulation.argocd.calls(), "every call is some application's");
    assert_eq!(names("longest_fetch").len(), 4);

    // The slowest event is one that explain tells of, and an example of its bucket.
    let slow = of("slowest", 0);
    assert_eq!(slow["app"], "argocd/slow", "{top:#}");
    let (trace, seconds) = (slow["trace"].as_str().unwrap(), slow["seconds"].as_f64().unwrap());
    assert!(seconds >= SLOW_MS as f64 / 1e3 && slow["acked"] == 2, "{slow:#}");
    let explained = json(&simulation, &["explain", "slow"]).await;
    let steps = explained["steps"].as_array().unwrap();
    let acked = |step: &&Value| step["step"] == "acked" && step["trace"] == trace;
    let same = steps.iter().find(acked).and_then(|step| step["seconds"].as_f64());
    assert!(same.is_some_and(|same| (same - seconds).abs() < 0.001), "{seconds} in\n{explained:#}");
    let text = answer(&simulation, &["explain", "slow"]).await;
    assert!(text.lines().any(|line| line.trim_start().starts_with(trace)), "{trace} is not in\n{text}");
    let latency = top["latency"].as_array().unwrap();
    let has_it = |bucket: &&Value| {
        bucket["examples"].as_array().unwrap().iter().any(|example| example["trace"] == trace)
    };
    let bucket = latency.iter().find(has_it).unwrap();
    assert!(bucket["up_to_seconds"].as_f64().is_none_or(|up_to| seconds <= up_to), "{bucket:#}");
    let counted: u64 = latency.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, runtime.status().await.total.acked);

    // Fewer, as text, and where text is all that there is.
    let first = json(&simulation, &["top", "--limit", "1"]).await;
    for list in ["hottest", "slowest", "most_calls", "longest_fetch", "failing"] {
        assert_eq!(first[list].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(first[list][0]["app"], top[list][0]["app"], "{list}");
    }
    let text = answer(&simulation, &["top"]).await;
    let after = |title: &str| {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(title)).skip(2);
        lines.next().unwrap_or_else(|| panic!("{title} is not in\n{text}")).trim_start().to_owned()
    };
    for (title, row) in [
        ("hottest applications", "argocd/hot "),
        ("slowest applications", "argocd/slow "),
        ("applications by calls", "argocd/hot "),
        ("failing applications", "argocd/failing "),
        ("errors", "platform  server error "),
        ("shards", "0 "),
    ] {
        assert!(after(title).starts_with(row), "{title}\n{text}");
    }
    assert!(text.contains(trace), "{text}");
    assert!(answer(&simulation, &["top", "--once"]).await.starts_with("Of the last "));
    runtime.stop().await;
}

#[tokio::test]
async fn names_are_told_where_questions_are_answered_and_nowhere_else() {
    let simulation = told::world(|_| {}).await;
    told::put(&simulation, "shop");
    let runtime = Runtime::start(&simulation, &json!({})).await;
    taken(&simulation, REPORTS).await;
    for path in ["/top", "/v1/top"] {
        let refused = (404, "no such page: / lists them\n".to_owned());
        assert_eq!(runtime.page(path).await, refused, "a page that needs no token");
    }
    let none: [reqwest::Certificate; 0] = [];
    let socket = simulation.directory().join("state/admin.sock");
    let client = reqwest::Client::builder().unix_socket(socket).tls_certs_only(none).build().unwrap();
    for (query, said) in [
        ("limit=0", "`limit` is to be from 1 to 100"),
        ("limit=101", "`limit` is to be from 1 to 100"),
        ("limit=some", "Failed to deserialize query string: limit: invalid digit found in string"),
        ("apps=1", "Failed to deserialize query string: apps: unknown field `apps`, expected `limit`"),
    ] {
        let asked = client.get(format!("http://localhost/v1/top?{query}")).send().await.unwrap();
        assert_eq!(asked.status().as_u16(), 400, "{query}");
        let text = asked.text().await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"error": said}), "{query}");
    }
    let (code, _, error) = ask(&simulation, &["top", "--limit", "0"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("invalid value '0' for '--limit <NUMBER>': 0 is not in 1..=100"), "{error}");
    runtime.stop().await;
    let (code, out, error) = ask(&simulation, &["top"]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let (start, end) = (
        "gitops-runtime: no reporter answers at ",
        "give --socket or --state as the reporter has them, or --address\n",
    );
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
}

#[tokio::test]
async fn the_terminal_shows_it_and_is_given_back() {
    let (simulation, runtime) = busy().await;
    let mut terminal = Terminal::start(&simulation, &[]).await;
    terminal.shows("argocd/hot").await;
    terminal.types("s").await;
    terminal.shows("SLOWEST").await;
    terminal.shows("argocd/slow").await;
    terminal.types("\r").await;
    terminal.shows("RESOURCEVERSION").await;
    terminal.types("\u{1b}").await;
    terminal.hides("RESOURCEVERSION").await;
    terminal.types("?").await;
    terminal.shows("the hottest, by events").await;
    terminal.types("x").await;
    terminal.hides("the hottest, by events").await;
    terminal.types("q").await;
    let shown = terminal.ended(0).await;
    assert!(shown.contains("\u{1b}[38;5;"), "no colours: {shown:?}");

    for signal in ["-TERM", "-INT"] {
        let mut terminal = Terminal::start(&simulation, &[("NO_COLOR", "1")]).await;
        terminal.shows("argocd/hot").await;
        terminal.signal(signal).await;
        let shown = terminal.ended(0).await;
        assert!(!shown.contains("\u{1b}[38;"), "colours: {shown:?}");
    }

    // A reporter that goes away is told of, and the view goes on.
    let mut terminal = Terminal::start(&simulation, &[]).await;
    terminal.shows("argocd/hot").await;
    runtime.stop().await;
    terminal.shows("no reporter answers at ").await;
    terminal.types("q").await;
    terminal.ended(0).await;
}
