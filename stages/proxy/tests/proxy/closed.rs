//! Nobody is let in by guess: what is remembered, and what is said while the platform is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stages_proxy::ProxyConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::operations::asked;
use crate::support::{Running, SOON, by, now, soon};

#[tokio::test]
async fn nobody_is_let_in_while_the_platform_is_away() {
    let running = Running::start().await;
    let tree = asked("{ resourceTree(application: APP) { nodes { name } } }");
    running.data(&running.admin, &tree).await;
    running.platform.abort();
    let said = "nobody is let in while the platform does not answer: see that this app proxy reaches it, and try again";
    // Connections that are open may be answered a little longer.
    let asks = async || running.ask(&running.admin, &tree).await;
    soon(asks, |answer| answer["errors"][0]["message"] == said).await;
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    running.refuses(&running.admin, &sync, said, "PLATFORM_AWAY").await;
    assert!(running.argocd.take().is_empty());
}

#[tokio::test]
async fn an_answer_is_remembered_for_the_same_question_alone() {
    let running = Running::remembering(Duration::from_secs(60)).await;
    let rule = running.allow("VIEW", "gitopsApplications", "argocd").await;
    let tree = asked("{ resourceTree(application: APP) { nodes { name } } }");
    running.data(&running.member, &tree).await;
    running.take_away(rule).await;
    // It was asked just now.
    running.data(&running.member, &tree).await;
    let none = |action: &str| {
        format!("'lin' may not: no rule of a team of theirs allows {action} of gitopsApplications")
    };
    // Another application, another action and another token are other questions.
    let other = tree.replace("\"argocd\"", "\"team\"");
    assert_eq!(running.refused(&running.member, &other).await.0, none("VIEW"));
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    assert_eq!(running.refused(&running.member, &sync).await.0, none("SYNC"));
    let scope = stages_platform_store::Scope::Full;
    let key = running.store.add_key(&by("lin"), "again", scope, now() + 60_000, now()).await.unwrap();
    use pipeline_core::ExposeSecret as _;
    assert_eq!(running.refused(key.expose_secret(), &tree).await.0, none("VIEW"));
}

#[tokio::test]
async fn a_pass_is_good_for_its_own_runtime_and_is_never_remembered() {
    use pipeline_core::ExposeSecret as _;
    let running = Running::remembering(Duration::from_secs(60)).await;
    let full = stages_platform_store::Scope::Full;
    let tree = asked("{ resourceTree(application: APP) { nodes { name } } }");
    let pass = running.store.add_pass(&by("ada"), full, "prod", None, now()).await.unwrap().unwrap();
    running.data(pass.expose_secret(), &tree).await;
    // One that is over is refused at once, though it was good just now.
    let ended =
        running.store.add_pass(&by("ada"), full, "prod", None, now() - 61_000).await.unwrap().unwrap();
    let unknown = "this key, token or session is not known, or has ended";
    assert_eq!(running.refused(ended.expose_secret(), &tree).await.0, unknown);
    assert!(running.store.register(&by("ada"), "eu1", "{}", false, now()).await.unwrap().is_some());
    let other = running.store.add_pass(&by("ada"), full, "eu1", None, now()).await.unwrap().unwrap();
    assert_eq!(running.refused(other.expose_secret(), &tree).await.0, unknown);
}

#[tokio::test]
async fn the_platform_knows_the_version_that_runs_also_after_an_upgrade() {
    let running = Running::start().await;
    let known = async || running.store.registrations(Some("prod")).await.unwrap().remove(0).version;
    // Nothing, what was registered, and what another version said meanwhile.
    for before in ["", "0.0.1"] {
        running.store.keep_version("prod", before).await.unwrap();
        soon(&known, |known| known == env!("CARGO_PKG_VERSION")).await;
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_runtime_is_looked_at_and_told_to_the_platform() {
    let running = Running::start().await;
    let status = "{ runtimeStatus { argoCdState syncMode eventReporterArgoCDToken { status description } encryptionKey { status description } } }";
    let settled = async |state: &str| {
        let found = async || running.data(&running.admin, status).await["runtimeStatus"].clone();
        soon(found, |found| found["argoCdState"] == state).await
    };
    let found = settled("CONNECTED").await;
    assert_eq!(found["eventReporterArgoCDToken"]["status"], "SUCCESSFUL");
    let unregistered = "the runtime 'prod' has a token and is not registered: createRuntime registers it";
    assert_eq!(found["encryptionKey"]["description"], unregistered);
    assert_eq!(found["syncMode"], "HELM");
    *running.argocd.broken.lock().unwrap() = Some((401, "invalid session".to_owned()));
    let found = settled("NOT_AUTHORIZED").await;
    let said = "Argo CD does not know the token or login under the setting argocd: give it one that it knows";
    assert_eq!(found["eventReporterArgoCDToken"]["description"], said);
    let told = async || running.store.registrations(Some("prod")).await.unwrap().remove(0).problems;
    let problems = soon(told, |problems| problems.contains("give it one that it knows")).await;
    assert!(problems.contains(r#""title":"Argo CD""#), "{problems}");
}

/// Ends with what it counts.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What stands before a platform and passes all on to it but what holds a text: that it keeps. Gives its address, and how many
/// connections it keeps so.
fn keeping(platform: &str, text: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let behind = platform.strip_prefix("http://").unwrap().to_owned();
    let kept = Arc::new(AtomicUsize::new(0));
    let counted = kept.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (behind, counted) = (behind.clone(), counted.clone());
            tokio::spawn(async move {
                let (mut said, mut heard) = client.into_split();
                let (mut answers, mut asks) =
                    tokio::net::TcpStream::connect(behind).await.unwrap().into_split();
                let back = tokio::spawn(async move { tokio::io::copy(&mut answers, &mut heard).await });
                let (mut bytes, mut held) = (vec![0; 64 << 10], None);
                while let Ok(read @ 1..) = said.read(&mut bytes).await {
                    if String::from_utf8_lossy(&bytes[..read]).contains(text) {
                        counted.fetch_add(1, Ordering::Relaxed);
                        held = Some(Held(counted.clone()));
                    }
                    if held.is_none() && asks.write_all(&bytes[..read]).await.is_err() {
                        break;
                    }
                }
                back.abort();
            });
        }
    });
    (url, kept)
}

/// An app proxy that is given no answer about tokens that begin with `nobody-`, and waits for it; and how often it does.
pub(crate) async fn kept_waiting() -> (Running, Arc<AtomicUsize>) {
    let mut kept = None;
    let patient = stages_client::Config::new(Duration::from_secs(600), 1 << 20);
    let running = Running::made(Duration::ZERO, |config| {
        let (platform, counted) = keeping(&config.platform, "nobody-");
        kept = Some(counted);
        ProxyConfig { platform, platform_http: patient, ..config }
    })
    .await;
    (running, kept.unwrap())
}

#[tokio::test]
async fn whoever_nobody_knows_keeps_no_act_waiting_and_is_forgotten_when_they_go() {
    let (running, kept) = kept_waiting().await;
    let sync = asked("mutation { syncApplication(application: APP) { metadata { name } } }");
    let mut asking = JoinSet::new();
    for number in 0..80 {
        let (client, url) = (running.client.clone(), format!("{}/app-proxy/api/graphql", running.url));
        let request = client.post(url).bearer_auth(format!("nobody-{number}"));
        asking.spawn(request.json(&serde_json::json!({ "query": sync })).send());
    }
    let waiting = async || kept.load(Ordering::Relaxed);
    soon(&waiting, |waiting| *waiting == 80).await;
    tokio::time::timeout(SOON, running.data(&running.admin, &sync)).await.unwrap();
    asking.shutdown().await;
    soon(&waiting, |waiting| *waiting == 0).await;
}
