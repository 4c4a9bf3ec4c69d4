//! Credentials that are replaced while the program works.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::sim::Simulation;
use loadtest::sim::kube::Collection;
use serde_json::{Value, json};

use crate::runtime::{Runtime, fleet, taken};

const APPLICATIONS: u32 = 60;
/// An application and its one resource.
const REPORTS: u64 = 2 * APPLICATIONS as u64;

fn store(simulation: &Simulation, token: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "argocd", "name": "reporter"},
        "data": {"token": STANDARD.encode(token), "password": STANDARD.encode(token)},
    });
    simulation.kube.apply(Collection::Secrets, secret).unwrap();
}

/// What health says of one check.
fn check<'a>(page: &'a Value, name: &str) -> &'a Value {
    page["checks"].as_array().unwrap().iter().find(|check| check["check"] == name).unwrap()
}

#[tokio::test]
async fn the_token_of_the_named_secret_is_followed_under_load_and_health_tells_a_refusal() {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    simulation.argocd.set_token("canary-first").unwrap();
    store(&simulation, "canary-first");
    // One call after the other, so that the token is replaced in the middle of the work.
    let settings = json!({
        "argocd": {"tokenFile": "", "tokenSecret": {"name": "reporter"}, "concurrency": 2},
        "reporter": {"lanes": {"concurrency": 2}},
    });
    let runtime = Runtime::start(&simulation, &settings).await;
    taken(&simulation, REPORTS / 4).await;
    simulation.argocd.set_token("canary-second").unwrap();
    let refused = |page: &str| {
        let page: Value = serde_json::from_str(page).unwrap();
        let check = check(&page, "argocd");
        let text = check["text"].as_str().unwrap();
        check["state"] == "degraded"
            && text.starts_with("the token has been refused for ")
            && text.ends_with(" s")
    };
    let (status, _) = runtime.answers("/healthz?full=true", |_, page| refused(page)).await;
    assert_eq!(status, 200, "a restart does not help");
    store(&simulation, "canary-second");
    let totals = taken(&simulation, REPORTS).await;
    assert_eq!((totals.wrong(), totals.taken), (Vec::new(), REPORTS));
    let (_, page) = runtime.answers("/healthz?full=true", |_, page| !refused(page)).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(check(&page, "argocd")["text"], "the token is not refused");
    assert!(runtime.log().iter().all(|line| !format!("{line:?}").contains("canary")));
    let said = "the secret holds another value, which is used from now on";
    assert_eq!(runtime.log().iter().filter(|line| line.message == said).count(), 1);
    runtime.stop().await;
}

#[tokio::test]
async fn an_account_logs_in_and_a_changed_password_and_a_restart_cost_one_login_each() {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    simulation.argocd.set_token("canary-session-first").unwrap();
    simulation.argocd.set_account("reports", "canary-first");
    store(&simulation, "canary-first");
    let settings = json!({
        "argocd": {
            "tokenFile": "", "username": "reports", "passwordSecret": {"name": "reporter"}, "concurrency": 2,
        },
        "reporter": {"lanes": {"concurrency": 2}},
    });
    let runtime = Runtime::start(&simulation, &settings).await;
    taken(&simulation, REPORTS / 4).await;
    assert_eq!(simulation.argocd.logins(), [1, 0]);
    // As after a start of Argo CD with another signing key: the sessions of before are worth nothing.
    simulation.argocd.set_token("canary-session-second").unwrap();
    taken(&simulation, REPORTS / 2).await;
    assert_eq!(simulation.argocd.logins(), [2, 0]);
    // A changed password ends sessions too.
    simulation.argocd.set_account("reports", "canary-second");
    simulation.argocd.set_token("canary-session-third").unwrap();
    let of_login = |page: &str| {
        let page: Value = serde_json::from_str(page).unwrap();
        let text = check(&page, "argocd")["text"].as_str().unwrap().to_owned();
        text.starts_with("the login has been refused for ")
            && text.ends_with(" s: name or password are wrong, or the account may not log in")
    };
    let (status, _) = runtime.answers("/healthz?full=true", |_, page| of_login(page)).await;
    assert_eq!((status, simulation.argocd.logins()), (200, [2, 1]));
    store(&simulation, "canary-second");
    let totals = taken(&simulation, REPORTS).await;
    assert_eq!((totals.wrong(), totals.taken), (Vec::new(), REPORTS));
    assert_eq!(simulation.argocd.logins(), [3, 1]);
    let (_, page) = runtime.answers("/healthz?full=true", |_, page| !of_login(page)).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(check(&page, "argocd")["text"], "the token is not refused");
    let log = runtime.log();
    assert!(log.iter().all(|line| !format!("{line:?}").contains("canary")));
    assert_eq!(log.iter().filter(|line| line.message == "argo cd refuses the login").count(), 1);
    runtime.stop().await;
}

#[tokio::test]
async fn a_token_file_that_is_missing_is_named_until_it_is_there() {
    let simulation = fleet(1, 1, |_| {}).await;
    simulation.argocd.set_token("canary-late").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let runtime = Runtime::start(&simulation, &json!({"argocd": {"tokenFile": &file}})).await;
    let refused = |page: &str| {
        let page: Value = serde_json::from_str(page).unwrap();
        let text = check(&page, "argocd")["text"].as_str().unwrap().to_owned();
        text.starts_with("even its settings have been refused for ")
            && text.ends_with(" s: no token can be read of its file, or it is not argo cd that answers")
    };
    runtime.answers("/healthz?full=true", |_, page| refused(page)).await;
    std::fs::write(&file, "canary-late\n").unwrap();
    assert_eq!(taken(&simulation, 2).await.wrong(), Vec::<String>::new());
    runtime.answers("/healthz?full=true", |_, page| !refused(page)).await;
    let said = "no token can be read: until the file holds one nothing is sent";
    let log = runtime.log();
    let lines: Vec<_> = log.iter().filter(|line| line.message == said).collect();
    assert_eq!(lines.len(), 1, "it is said once");
    assert!(format!("{lines:?}").contains(file.to_str().unwrap()), "{lines:?}");
    assert!(log.iter().all(|line| !format!("{line:?}").contains("canary-late")));
    runtime.stop().await;
}
