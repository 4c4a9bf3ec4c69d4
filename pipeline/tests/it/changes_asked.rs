//! Reports say which commits changed an application, asked of Git where nothing notes them with it: in the reporter's process, or of
//! the role `change-revision` over a bus.

use git2::Oid;
use loadtest::nats::NatsServer;
use loadtest::process::Start;
use loadtest::sim::{Simulation, wait_for};
use pipeline_core::RequestError;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::changes::{Monorepo, synced};
use crate::runtime::{Runtime, SOON, eventually, object, start};
use crate::sources_over_bus::connected;
use crate::told;

/// `app.meta.revisions-metadata` of the last report of an application.
fn marks(simulation: &Simulation, name: &str) -> Option<Value> {
    let all = simulation.platform.last().into_iter().filter(|(entity, _)| entity.resource.is_none());
    let objects = all.filter_map(|(_, last)| Some(object(&last.payload?)));
    let of = objects.into_iter().find(|object| object["metadata"]["name"] == name)?;
    serde_json::from_str(of["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str()?).ok()
}

pub(crate) fn changed_by(simulation: &Simulation, name: &str) -> Option<Value> {
    marks(simulation, name).map(|marks| marks["changeRevisions"].clone())
}

/// The commit as Argo CD's simulator describes any.
pub(crate) fn commit(id: Oid) -> Value {
    let commit = json!({"author": "A <a@example.com>", "date": "2026-01-01T00:00:00Z", "message": "first"});
    json!([{"revision": id.to_string(), "metadata": commit}])
}

/// Three commits: the first makes two applications, the second changes `a`, the third neither.
fn three(mono: &Monorepo) -> [Oid; 3] {
    let first = mono.commit(&[], &[("apps/a/x", "1"), ("apps/b/x", "1")]);
    let of_a = mono.commit(&[first], &[("apps/a/x", "2")]);
    [first, of_a, mono.commit(&[of_a], &[("README", "1")])]
}

#[tokio::test]
async fn reports_carry_the_commits_that_git_says_changed_the_applications() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let [first, of_a, tip] = three(&mono);
    told::put_object(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip]));
    told::put_object(&simulation, synced("b", &mono.url(), "apps/b", &[first, tip]));
    let settings = json!({
        "reporter": {"changeRevisions": {"from": "here"}},
        "changeRevision": {"repositories": {"files": true}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    eventually("what changed a", || changed_by(&simulation, "a") == Some(commit(of_a))).await;
    // No commit since the sync before changed it: the newest at all did.
    eventually("what changed b", || changed_by(&simulation, "b") == Some(commit(first))).await;
    assert_eq!(marks(&simulation, "a").unwrap()["syncRevisions"][0]["revision"], tip.to_string());

    let next = mono.commit(&[tip], &[("apps/a/x", "3"), ("apps/b/x", "2")]);
    told::put_object(&simulation, synced("b", &mono.url(), "apps/b", &[first, tip, next]));
    eventually("what the next sync brought", || changed_by(&simulation, "b") == Some(commit(next))).await;
    reporter.stop().await;
}

#[tokio::test]
async fn a_reporter_asks_git_itself_for_the_sources_of_objects_and_for_the_commits_that_changed_applications()
{
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let [first, of_a, tip] = three(&mono);
    told::put_object(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip]));
    let url = mono.url();
    let directory = url.trim_start_matches("file://");
    let settings = json!({
        "reporter": {"sources": {"from": "here"}, "changeRevisions": {"from": "here"}},
        "sourceServer": {"repositories": [format!("https://git.example.com/mono.git={directory}")]},
        "changeRevision": {"repositories": {"files": true}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    eventually("what changed a", || changed_by(&simulation, "a") == Some(commit(of_a))).await;
    assert_eq!(reporter.counted("gitops_runtime_git_cache_clones", &[]).await, 1.0);
    reporter.stop().await;
}

#[tokio::test]
async fn what_cannot_be_had_of_git_is_missing_in_a_report_and_holds_up_nothing() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let [first, _, tip] = three(&mono);
    told::put_object(&simulation, synced("away", "file:///nowhere/mono.git", "apps/a", &[first, tip]));
    told::put_object(&simulation, synced("b", &mono.url(), "apps/b", &[first, tip]));
    let settings = json!({
        "reporter": {"changeRevisions": {"from": "here"}},
        "changeRevision": {"repositories": {"files": true}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    eventually("a report without", || changed_by(&simulation, "away") == Some(Value::Null)).await;
    eventually("the other", || changed_by(&simulation, "b") == Some(commit(first))).await;
    const SAYS: &str = "it is not known which commits changed an application; they are missing in a report, and asked for again";
    let log = reporter.stop().await;
    assert!(log.iter().any(|line| line.message == SAYS), "{log:?}");
}

#[tokio::test]
async fn reports_carry_the_commits_that_the_role_change_revision_says_over_the_bus() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let (server, of_changes) = (NatsServer::start().await.unwrap(), TempDir::new().unwrap());
    let [first, of_a, tip] = three(&mono);
    let settings = |more: &Value| {
        let mut all = json!({"bus": {"url": server.url()}, "reporter": {"sharding": {"shards": 2}}});
        crate::runtime::merge(&mut all, more);
        all
    };
    let own = json!({
        "state": {"directory": of_changes.path()},
        "reporter": {"sink": {"kind": "file", "file": {"path": of_changes.path().join("changes.ndjson")}}},
        "changeRevision": {"repositories": {"files": true}},
    });
    let role = Start { args: vec!["change-revision".into()], ..start(&simulation, &settings(&own)) };
    let changes = Runtime::launch(role).await;
    let bus = connected(&server).await;
    let ask = async |question: &str| {
        let asked = bus.request("change-revisions", question.to_owned().into(), SOON).await;
        asked.map(|answer| serde_json::from_slice::<Value>(&answer).unwrap())
    };
    // It answers once it is connected.
    let is_served =
        |asked: &Result<Value, RequestError>| !matches!(asked, Err(RequestError::NobodyServes(_)));
    let unread = wait_for("an answer", async || ask("{}").await, is_served).await.unwrap();
    assert_eq!(
        unread,
        json!({"error": "it is no question: ask with {\"application\": ..} of at most 262144 bytes"})
    );
    let long = json!({"application": {"metadata": {"name": "x".repeat(262_144)}}}).to_string();
    assert_eq!(ask(&long).await.unwrap(), unread);
    assert_eq!(ask(r#"{"application": {}}"#).await.unwrap(), json!({"error": "it is no Application"}));
    let mut never = synced("never", &mono.url(), "apps/a", &[first]);
    never["status"] = json!({});
    let of = |application: &Value| json!({"application": application}).to_string();
    assert_eq!(ask(&of(&never)).await.unwrap(), json!({"error": "it is not at a revision of every source"}));
    let away = ask(&of(&synced("away", "file:///nowhere/mono.git", "", &[first]))).await.unwrap();
    assert_eq!(away["mayPass"], true, "{away}");
    assert!(away["error"].as_str().unwrap().starts_with("file:///nowhere/mono.git: "), "{away}");
    assert_eq!(
        ask(&of(&synced("a", &mono.url(), "apps/a", &[first, tip]))).await.unwrap(),
        json!({"newest": {"revisions": [tip.to_string()], "changeRevisions": [of_a.to_string()]}})
    );

    told::put_object(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip]));
    let reporter =
        Runtime::start(&simulation, &settings(&json!({"reporter": {"changeRevisions": {"from": "bus"}}})))
            .await;
    eventually("what changed it", || changed_by(&simulation, "a") == Some(commit(of_a))).await;
    reporter.stop().await;
    changes.stop().await;
}
