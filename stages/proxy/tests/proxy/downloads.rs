//! The runtime's own logs, as an archive.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::json;
use tar::Archive;

use crate::support::Running;

const PODS: &str = "/api/v1/namespaces/argocd/pods";

fn log(pod: &str, container: &str, previous: bool, lines: u32) -> String {
    format!("{PODS}/{pod}/log?container={container}&previous={previous}&tailLines={lines}&limitBytes=4194304")
}

/// Two pods, one of them restarted; a log that is longer than one may be, and one that cannot be read.
fn fill(running: &Running) {
    let pod = |name: &str, containers: &[&str], restarts: u32| {
        let containers: Vec<_> = containers.iter().map(|name| json!({"name": name})).collect();
        json!({
            "metadata": {"name": name}, "spec": {"containers": containers},
            "status": {"containerStatuses": [{"name": "proxy", "restartCount": restarts}]},
        })
    };
    let mut objects = running.cluster.objects.lock().unwrap();
    objects.insert(format!("{PODS}/a-1"), pod("a-1", &["proxy"], 1));
    objects.insert(format!("{PODS}/b-2"), pod("b-2", &["proxy", "waits"], 0));
    objects.insert(
        log("a-1", "proxy", false, 10_000),
        json!("began\nclone https://ada:canary-of-a-log@git.example.com/x\n"),
    );
    objects.insert(log("a-1", "proxy", true, 10_000), json!("before\n"));
    objects.insert(log("b-2", "proxy", false, 10_000), json!("x".repeat(4 << 20)));
    objects.insert(log("b-2", "proxy", false, 2_500), json!("the last lines\n"));
}

async fn get(running: &Running, prefix: &str, token: Option<&str>) -> reqwest::Response {
    let asked = running.client.get(format!("{}{prefix}/api/applications/logs", running.url));
    let asked = match token {
        Some(token) => asked.header("authorization", token),
        None => asked,
    };
    asked.send().await.unwrap()
}

#[tokio::test]
async fn an_admin_downloads_the_logs_of_the_runtimes_own_pods() {
    let running = Running::start().await;
    fill(&running);
    for prefix in ["", "/app-proxy"] {
        let answer = get(&running, prefix, Some(&running.admin)).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/gzip");
        let file = "attachment; filename=\"gitops-runtime-logs.tar.gz\"";
        assert_eq!(answer.headers()["content-disposition"], file);
        let bytes = answer.bytes().await.unwrap();
        let mut files = BTreeMap::new();
        for entry in Archive::new(GzDecoder::new(&bytes[..])).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            files.insert(entry.path().unwrap().to_str().unwrap().to_owned(), text);
        }
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["a-1/proxy.log", "a-1/proxy.previous.log", "about.txt", "b-2/proxy.log"]);
        let redacted = &files["a-1/proxy.log"];
        assert!(redacted.starts_with("began\nclone https://") && !redacted.contains("canary"), "{redacted}");
        assert_eq!(files["a-1/proxy.previous.log"], "before\n");
        assert_eq!(files["b-2/proxy.log"], "the last lines\n", "fewer lines of one that is too long");
        let about = "The logs of the pods of argocd with the labels app.kubernetes.io/instance=runtime, of at most 10000 lines and 4 MiB each.\n\n\
                     Missing:\nb-2/waits.log: the API server answered 400\n";
        assert_eq!(files["about.txt"], about);
    }
    let row = ("ada".to_owned(), "downloadLogs".to_owned(), "prod/: done".to_owned());
    assert_eq!(running.audit(2).await, [row.clone(), row]);
}

#[tokio::test]
async fn nobody_but_an_admin_may_and_nothing_is_read_for_them() {
    let running = Running::start().await;
    fill(&running);
    running.allow("VIEW_POD_LOGS", "gitopsApplications", "").await;
    let admins = "'lin' may not: no rule allows this, it is for admins";
    for (token, status, said) in [
        (None, 401, "send an API key of the platform in the header Authorization"),
        (Some("goak_stranger"), 401, "this key, token or session is not known, or has ended"),
        (
            Some(&*running.runtime),
            401,
            "only a person may do this: send an API key instead of the token of a runtime",
        ),
        (Some(&*running.member), 403, admins),
        (Some(&*running.reads), 403, "this key may only read: make one of the scope 'full'"),
    ] {
        let answer = get(&running, "/app-proxy", token).await;
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (status, format!("{said}\n")));
    }
    assert!(running.cluster.logs.lock().unwrap().is_empty());
    let refused = running.audit(2).await;
    assert_eq!(
        refused[1],
        ("lin".to_owned(), "downloadLogs".to_owned(), format!("prod/: refused: {admins}"))
    );
    running.platform.abort();
    let away = get(&running, "", Some(&running.admin)).await;
    assert_eq!(away.status(), 503);
}
