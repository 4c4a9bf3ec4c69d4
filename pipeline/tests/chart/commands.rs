//! The commands that judge and convert values.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::{get, patch, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::sim::server::serve;
use serde_json::{Value, json};

use crate::helm::{ROOT, values};

/// Runs the program without any variable.
pub(crate) fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The program without any variable.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gitops-runtime"));
    command.args(arguments).env_clear().env("HOSTNAME", "host").current_dir(ROOT);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// What `validate` says of these values, in a file `values.yaml`.
fn validated(values: impl AsRef<[u8]>) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    run(&["validate", "--skip", "network", "-f", file.to_str().unwrap()])
}

#[test]
fn the_exit_code_says_what_was_found() {
    let good = values("good-minimal").remove(0);
    let bad = values("bad-replicas").remove(0);
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let code =
        |arguments: &[&str]| run(&[&["validate", "--skip", "network"], arguments].concat()).status.code();
    assert_eq!(code(&["-f", good]), Some(0));
    assert_eq!(code(&["-f", good, "-f", bad]), Some(1));
    assert_eq!(code(&["-f", "no-such-file.yaml"]), Some(1));
    assert_eq!(code(&["-f", good, "--strict"]), Some(3));
    assert_eq!(code(&["-f", bad, "--strict"]), Some(1));
    assert_eq!(code(&["-f", bad, "--skip", "static"]), Some(0));
    assert_eq!(code(&["--formt", "json"]), Some(2));
}

#[test]
fn settings_of_the_reporter_are_judged_by_the_reporter() {
    let text = "global:\n  runtime:\n    name: prod\nreporter:\n  config:\n    log: {level: chatty}\n    reporter:\n      \
                lane: {}\n";
    let output = validated(text);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("values.yaml:6: reporter.config.log.level"), "{said}");
    assert!(said.contains("values.yaml:8: reporter.config.reporter.lane"), "{said}");
    assert_eq!(said.matches("error GR0067").count(), 2, "{said}");
}

#[test]
fn settings_of_every_component_are_judged() {
    let all =
        pipeline_doctor::Chart::get().values.iter().filter_map(|value| value.path.strip_suffix(".config"));
    let all: Vec<&str> = all.filter(|component| !component.contains('.')).collect();
    assert!(all.len() >= 9, "{all:?}");
    let settings = |component: &&str| format!("{component}:\n  config:\n    log: {{level: chatty}}\n");
    let said = said(&validated(all.iter().map(settings).collect::<String>()));
    for component in all {
        assert!(said.contains(&format!(": {component}.config.log.level\n")), "{component}: {said}");
    }
}

#[test]
fn values_that_become_settings_are_judged_by_whoever_takes_them() {
    let text = "appProxy: {namespaces: [A b]}\nreporter: {applicationNamespaces: ['[']}\nresourceReporter: {kinds: [{namespaces: \
                [a]}], namespaces: ['[']}\nrouter: {trustedProxies: [x], webhooks: [a]}\nsourceServer: {allowed: \
                [git.example.com]}\ntunnelClient: {allow: [x]}\ntunnelServer: {trustedProxies: [x]}\n";
    let said = said(&validated(text));
    for path in [
        "appProxy.namespaces",
        "reporter.applicationNamespaces",
        "resourceReporter.kinds",
        "resourceReporter.namespaces",
        "router.trustedProxies",
        "router.webhooks",
        "sourceServer.allowed",
        "tunnelClient.allow",
        "tunnelServer.trustedProxies",
    ] {
        assert!(said.contains(&format!(": {path}\n")), "{path}: {said}");
    }
}

#[test]
fn what_is_converted_is_valid_and_keeps_its_secrets_to_the_values() {
    let output = run(&["values", "convert", "pipeline/doctor/tests/incumbent/tunnel.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let values = String::from_utf8(output.stdout).unwrap();
    assert!(values.contains("token: not-to-be-shown"));
    let output = validated(values);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!said(&output).contains("not-to-be-shown"));
}

#[test]
fn a_reporter_that_is_not_there_is_not_ready() {
    // Nobody listens at a port that was free a moment ago, and nobody may take it again in between but this test.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let missing = "503 Service Unavailable\r\ncontent-length: 7\r\n\r\nmissing";
        for answer in [missing, missing, "200 OK\r\ncontent-length: 5\r\n\r\nready"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1_024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
        }
    });
    let output = run(&["check", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("is not ready: missing"), "{}", said(&output));
    let output = run(&["check", &address, "--within", "1m"]);
    let waited = format!("ready\ngitops-runtime: waiting: {address}/ is not ready: missing\n");
    assert_eq!((output.status.code(), said(&output)), (Some(0), waited), "what is waited for is said once");
    served.join().unwrap();
}

#[test]
fn why_nobody_answers_is_said() {
    // A port that is bound and not listened on refuses, and nobody else gets it.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = bound.local_addr().unwrap();
    let no_tls = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = no_tls.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let mut stream = no_tls.accept().unwrap().0;
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Until the client has read it: what is closed before is reset.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    for (url, why) in [
        (format!("http://{address}/"), "does not answer: the connection is refused"),
        (
            format!("https://{plain}/"),
            "does not answer: no TLS: received corrupt message of type InvalidContentType",
        ),
    ] {
        let output = run(&["check", &url]);
        let expected = format!("gitops-runtime: {url} {why}\n");
        assert_eq!((output.status.code(), said(&output)), (Some(1), expected));
    }
    let output = run(&["check", &format!("http://ada:not-to-be-shown@{address}/")]);
    let expected = format!("gitops-runtime: http://{address}/ does not answer: the connection is refused\n");
    assert_eq!((output.status.code(), said(&output)), (Some(1), expected));
    served.join().unwrap();
    for url in ["foo", "ftp://a", "localhost:8088"] {
        let output = run(&["check", url]);
        let begin = format!(
            "error: invalid value '{url}' for '[URL]': it is no address, such as https://runtime.example.com\n"
        );
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).starts_with(&begin), "{}", said(&output));
    }
}

#[test]
fn a_file_that_cannot_be_converted_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let directory = folder.path().to_str().unwrap().to_owned();
    let in_utf_16 = "text in UTF-16, as Windows PowerShell writes it; write it in UTF-8: iconv -f UTF-16 -t UTF-8, or \
                     Set-Content -Encoding utf8 of PowerShell";
    for (path, why) in [
        ("missing.yaml".to_owned(), "no such file; give the path of a file"),
        (directory, "a directory, and no file; give the path of a file"),
        (file("marked.yaml", b"\xff\xfea\0:\0 \0b\0"), in_utf_16),
        (file("unmarked.yaml", b"\0a\0:\0 \0b"), in_utf_16),
        (file("packed.yaml", b"\x1f\x8b\x08"), "packed by gzip; unpack it first"),
        (
            file("latin.yaml", b"a: 1\nb: \xe9t\xe9\n"),
            "line 2: a byte that is none of a text in UTF-8; correct the file",
        ),
        (file("broken.yaml", b"a: 1\nb: [\n"), "line 2: no YAML; correct the file"),
    ] {
        let output = run(&["values", "convert", &path]);
        let expected = format!("gitops-runtime: {path}: {why}\n");
        assert_eq!((output.status.code(), said(&output)), (Some(1), expected));
        let judged = run(&["validate", "--skip", "cluster", "--skip", "network", "-f", &path]);
        let judged = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(why.split("; ").all(|part| judged.contains(part.trim_start_matches("line 2: "))), "{judged}");
    }
    // A mark of UTF-8 is none of the text.
    let marked = file("mark.yaml", b"\xef\xbb\xbfglobal: {runtime: {name: prod}}\n");
    assert_eq!(run(&["values", "convert", &marked]).status.code(), Some(0));
    let settings = file("settings.yaml", b"\xff\xfea\0:\0 \0b\0");
    let output = run(&["config", "check", &settings]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&format!("{settings}: cannot be read: {in_utf_16}")), "{}", said(&output));
}

#[test]
fn where_no_cluster_is_known_it_is_said_what_names_one() {
    let home = tempfile::tempdir().unwrap();
    let given = ["secrets", "ensure", "--namespace", "a", "--name", "b", "--key", "c"];
    let output = command(&given).env("HOME", home.path()).output().unwrap();
    let expected = "gitops-runtime: cannot ask for the secret `b`: there is neither a kubeconfig ($KUBECONFIG, ~/.kube/config) \
                    nor a pod's service account: failed to read an incluster environment variable: environment variable not \
                    found\n";
    assert_eq!(
        (output.status.code(), said(&output).as_str()),
        (Some(1), expected),
        "each cause is said once"
    );
}

#[test]
fn whoever_reads_no_further_has_read_enough_and_a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    for arguments in [
        &["schema", "--of", "resources"][..],
        &["completion", "bash"],
        &["man", pages.to_str().unwrap()],
        &["source-server", "schema"],
        &["config", "print"],
        &["config", "schema"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""), "{arguments:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(arguments).stdout(full).output().unwrap();
        let expected = "gitops-runtime: write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(1), expected), "{arguments:?}");
    }
}

/// An API server that has nothing but a version and a Secret, and allows everything.
async fn api() -> String {
    let secret = Json(json!({"data": {"token": "bm90LXRvLWJlLXNob3du"}}));
    let routes = axum::Router::new()
        .route("/version", get(Json(json!({"major": "1", "minor": "21"}))))
        .route("/api/v1/namespaces/gitops/secrets/argocd-token", get(secret))
        .route("/api/v1/nodes", get(StatusCode::FORBIDDEN))
        .route(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            post(Json(json!({"status": {"allowed": true}}))),
        );
    serve(routes).await.unwrap()
}

#[test]
fn a_cluster_is_asked_what_the_values_need_of_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(api());
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &address);
    let good = values("good-minimal").remove(0);
    let given = ["validate", "--skip", "network", "-f", good.to_str().unwrap(), "--namespace", "gitops"];
    let output = run(&[&given[..], &["--kubeconfig", &config]].concat());
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for found in
        ["Kubernetes 1.21", "no Secret codefresh-token in namespace gitops", "no default storage class"]
    {
        assert!(said.contains(found), "{found}: {said}");
    }
    assert!(said.contains("not measured GR0105") && said.contains("(the API server answered 403)"), "{said}");
    assert!(!said.contains("argocd-token") && !said.contains("bm90") && !said.contains("GR0103"), "{said}");
    // One that does not answer is said to be away.
    kubeconfig(folder.path(), "http://127.0.0.1:1");
    let output = run(&[&given[..], &["--kubeconfig", &config]].concat());
    let said = self::said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let away =
        |line: &str| line.contains("GR0102, ") && line.ends_with("(offline: the API server did not answer)");
    assert!(said.lines().any(|line| line.starts_with("not measured ") && away(line)), "{said}");
    let alone = run(&[&given[..], &["--skip", "cluster"]].concat());
    assert_eq!(alone.status.code(), Some(0));
}

/// A kubeconfig of a server at this address.
pub(crate) fn kubeconfig(folder: &std::path::Path, address: &str) -> String {
    let path = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: '{address}'}}}}]\n\
         users: [{{name: a, user: {{token: t}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_part_of_an_installation_is_looked_at_and_waited_for() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // Ready when it was asked for three times.
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let deployments = async move |Query(asked): Query<BTreeMap<String, String>>| {
        let of = "app.kubernetes.io/part-of=codefresh-gitops-runtime,app.kubernetes.io/instance=prod";
        assert_eq!(asked["labelSelector"], of);
        let ready = usize::from(counted.fetch_add(1, Ordering::SeqCst) >= 2);
        let metadata = json!({"name": "prod-reporter", "labels": {"app.kubernetes.io/instance": "prod"}});
        let status = json!({"readyReplicas": ready, "updatedReplicas": 1});
        Json(json!({"items": [{"metadata": metadata, "spec": {"replicas": 1}, "status": status}]}))
    };
    let empty = || get(Json(json!({"items": []})));
    let routes = axum::Router::new()
        .route("/version", get(Json(json!({"major": "1", "minor": "34", "gitVersion": "v1.34.1"}))))
        .route("/apis/apps/v1/namespaces/runtime/deployments", get(deployments))
        .route("/apis/apps/v1/namespaces/runtime/statefulsets", empty())
        .route("/api/v1/namespaces/runtime/pods", empty())
        .route("/api/v1/namespaces/runtime/persistentvolumeclaims", empty())
        .route("/api/v1/namespaces/runtime/secrets", get(StatusCode::FORBIDDEN));
    let address = runtime.block_on(serve(routes)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path(), &address);
    let given = ["check", "--namespace", "runtime", "--release", "prod", "--kubeconfig", &kubeconfig];
    let output = run(&given);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("fails       Deployment prod-reporter: 0 of 1 ready: there are no pods"), "{text}");
    assert!(text.contains("unmeasured  release: the API server answered 403"), "{text}");
    let output = run(&[&given[..], &["--within", "2m", "--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["failing"], Value::Null);
    assert_eq!(found["parts"].as_array().unwrap().last().unwrap()["found"], "1 of 1 ready");
    assert!(asked.load(Ordering::SeqCst) >= 3);
    let neither = run(&["check"]);
    assert_eq!(neither.status.code(), Some(2), "neither an address nor a namespace");
    assert!(said(&neither).contains("\n  <URL|--namespace <NAME>>\n"), "{}", said(&neither));
    assert_eq!(run(&["check", "--namespace", "runtime", &address]).status.code(), Some(2));
}

/// An API server with one empty Secret, which it changes as it is told.
async fn secrets() -> String {
    let secret = Arc::new(Mutex::new(json!({"metadata": {"resourceVersion": "1"}})));
    let changed = secret.clone();
    let read = async move || Json(secret.lock().unwrap().clone());
    let patch = async move |body: axum::body::Bytes| {
        let change: Value = serde_json::from_slice(&body).unwrap();
        let mut secret = changed.lock().unwrap();
        assert_eq!(change["metadata"], secret["metadata"]);
        *secret = json!({"metadata": {"resourceVersion": "2"}, "data": change["data"]});
        Json(secret.clone())
    };
    let routes = axum::Router::new()
        .route("/api/v1/namespaces/runtime/secrets/prod-generated", get(read).patch(patch));
    serve(routes).await.unwrap()
}

/// A release as Helm keeps it.
fn packed(release: &Value) -> String {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(release.to_string().as_bytes()).unwrap();
    STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()))
}

#[test]
fn the_values_of_a_release_are_those_of_the_version_that_is_deployed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let secret = |version: &str, status: &str| {
        let labels = json!({"name": "prod", "owner": "helm", "version": version, "status": status});
        json!({"metadata": {"name": format!("sh.helm.release.v1.prod.v{version}"), "labels": labels}})
    };
    let list =
        json!({"items": [secret("9", "superseded"), secret("10", "deployed"), secret("11", "failed")]});
    let release = |chart: &str| {
        json!({
            "name": "prod",
            "chart": {"metadata": {"name": chart}, "values": {"reporter": {"replicaCount": 7}}},
            "config": {"global": {"runtime": {"name": "prod", "nmae": 1}}},
        })
    };
    let kept = |chart: &str| Json(json!({"data": {"release": packed(&release(chart))}}));
    let none = Json(json!({"items": []}));
    let at = "/api/v1/namespaces/runtime/secrets";
    let routes = axum::Router::new()
        .route("/version", get(Json(json!({"major": "1", "minor": "31"}))))
        .route(at, get(Json(list.clone())))
        .route(&format!("{at}/sh.helm.release.v1.prod.v10"), get(kept("gitops-runtime")))
        .route("/api/v1/namespaces/other/secrets", get(Json(list)))
        .route("/api/v1/namespaces/other/secrets/sh.helm.release.v1.prod.v10", get(kept("nginx")))
        .route("/api/v1/namespaces/empty/secrets", get(none));
    let address = runtime.block_on(serve(routes)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path(), &address);
    let judged = |namespace: &str, more: &[&str]| {
        let given = ["validate", "--release", "prod", "--namespace", namespace, "--kubeconfig", &kubeconfig];
        let output = run(&[&given[..], &["--skip", "network"], more].concat());
        (output.status.code(), said(&output))
    };
    let (code, text) = judged("runtime", &["--version", "v0.1.0"]);
    assert_eq!(code, Some(1), "{text}");
    let line = "error GR0002 release prod: global.runtime.nmae\n    found  an unknown key\n";
    assert!(text.contains(line) && text.contains("did you mean 'name'?"), "{text}");
    // The chart's own values are not the user's.
    assert!(!text.contains("GR0060"), "{text}");
    let (code, text) = judged("other", &[]);
    assert_eq!(
        (code, text.as_str()),
        (Some(1), "gitops-runtime: the release prod is of the chart nginx, and not of gitops-runtime\n")
    );
    let (_, text) = judged("empty", &[]);
    assert_eq!(text, "gitops-runtime: there is no release prod in namespace empty: see helm list\n");
    let (code, text) = judged("runtime", &["--version", "9.0.0"]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("this program judges values of the chart 0.1.0 alone: take gitops-runtime 9.0.0"),
        "{text}"
    );
}

#[test]
fn definitions_are_handed_over_and_those_of_another_release_only_by_force() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let definition = |name: &str, release: Value| {
        json!({"metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
            "meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "runtime"}}})
    };
    let all = Json(json!({"items": [
        definition("workflows.argoproj.io", json!("argo")),
        definition("applications.argoproj.io", Value::Null),
        definition("appprojects.argoproj.io", json!("prod")),
        definition("widgets.example.com", json!("argo")),
    ]}));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&kept);
    let change =
        async move |Path(name): Path<String>, Query(asked): Query<BTreeMap<String, String>>, body: String| {
            let dry = asked.get("dryRun").cloned().unwrap_or_default();
            seen.lock().unwrap().push((name, dry, serde_json::from_str::<Value>(&body).unwrap()));
            Json(json!({}))
        };
    let at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let routes = axum::Router::new()
        .route("/version", get(Json(json!({}))))
        .route(at, get(all))
        .route(&format!("{at}/{{name}}"), patch(change));
    let address = runtime.block_on(serve(routes)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path(), &address);
    let adopt = |more: &[&str]| {
        let given =
            ["crds", "adopt", "--release", "prod", "--namespace", "runtime", "--kubeconfig", &kubeconfig];
        let output = run(&[&given[..], more].concat());
        (output.status.code(), said(&output))
    };
    let refused = "gitops-runtime: 1 of 3 definitions belong to another release (workflows.argoproj.io to argo in namespace \
                   runtime): uninstall that, or give --force\n";
    assert_eq!(adopt(&[]), (Some(1), refused.to_owned()));
    assert_eq!(adopt(&["--dry-run"]), (Some(1), refused.to_owned()));
    assert!(kept.lock().unwrap().is_empty());
    let expected = "applications.argoproj.io: would be handed over to prod in namespace runtime
appprojects.argoproj.io: is of prod in namespace runtime already
workflows.argoproj.io: would be handed over to prod in namespace runtime from argo in namespace runtime
";
    assert_eq!(adopt(&["--dry-run", "--force"]), (Some(0), expected.to_owned()));
    assert_eq!(adopt(&["--force"]), (Some(0), expected.replace("would be", "is")));
    let patch = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
        "meta.helm.sh/release-name": "prod", "meta.helm.sh/release-namespace": "runtime"}}});
    let done = |dry: &str| {
        ["applications.argoproj.io", "workflows.argoproj.io"]
            .map(|name| (name.to_owned(), dry.to_owned(), patch.clone()))
    };
    assert_eq!(*kept.lock().unwrap(), [done("All"), done("")].concat());
}

#[test]
fn what_nobody_gives_is_made_once_and_written_for_its_owner_alone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(secrets());
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path(), &address);
    let into = folder.path().join("generated");
    std::fs::create_dir(&into).unwrap();
    let given = ["secrets", "ensure", "--namespace", "runtime", "--name", "prod-generated"];
    let keys = ["--key", "nats-token", "--key", "redaction-key"];
    let places = ["--into", into.to_str().unwrap(), "--kubeconfig", &kubeconfig];
    let made = || {
        let output = run(&[&given[..], &keys, &places].concat());
        let held = "the secret prod-generated holds nats-token, redaction-key\n";
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), held));
        ["nats-token", "redaction-key"].map(|key| {
            let file = into.join(key);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o400);
            std::fs::read_to_string(file).unwrap()
        })
    };
    let first = made();
    for value in &first {
        assert!(value.len() == 64 && value.chars().all(|c| c.is_ascii_hexdigit()));
    }
    assert_ne!(first[0], first[1]);
    // As a container that is restarted does.
    assert_eq!(made(), first);
    let output = run(&[&given[..], &["--key", "../x"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let why = "must be letters, digits, -, _ and ., such as nats-token";
    assert!(said(&output).contains(why), "{}", said(&output));
}
