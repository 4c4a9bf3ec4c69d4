use std::os::unix::fs::PermissionsExt as _;

use axum::routing::post;
use axum::{Json, Router};

use super::*;

/// A folder with kwok's stages, and one for the files of a control plane.
fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (stages, plane) = (root.path().join("stages"), root.path().join("plane"));
    for file in flags::stage_files(&stages) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("kind: Stage\nfile: {}\n", file.file_name().unwrap().display()))
            .unwrap();
    }
    std::fs::create_dir(&plane).unwrap();
    (root, stages, plane)
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|one| one == flag)
}

#[tokio::test]
async fn the_files_are_the_owners_alone_and_each_cluster_has_tokens_of_its_own() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    let first = files.admin_token().to_owned();
    for entry in std::fs::read_dir(&plane).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            entry.path().display()
        );
    }
    let tokens = std::fs::read_to_string(files.tokens()).unwrap();
    assert_eq!(tokens.lines().next().unwrap(), format!("{first},admin,admin,\"system:masters\""));
    assert_eq!(tokens.lines().count(), 2);
    assert!(!format!("{files:?}").contains(&first));

    let second = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    assert_ne!(first, second.admin_token());
    assert_eq!(first.len(), 43);
}

#[tokio::test]
async fn the_kubeconfig_is_read_by_clients() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    let kubeconfig = Kubeconfig::read_from(files.admin_kubeconfig()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:4/");
    assert_eq!(config.default_namespace, "argocd");
    assert_eq!(config.root_cert.unwrap().len(), 1);

    let mine = plane.join("reporter.kubeconfig");
    files.kubeconfig("https://127.0.0.1:4", "event-reporter", "t0ken", &mine).await.unwrap();
    let kubeconfig = Kubeconfig::read_from(&mine).unwrap();
    assert_eq!(kubeconfig.current_context.as_deref(), Some("event-reporter"));
}

#[tokio::test]
async fn the_stages_are_put_into_one_file() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    let text = std::fs::read_to_string(files.stages()).unwrap();
    assert_eq!(text.matches("---\nkind: Stage\n").count(), 4);

    std::fs::remove_file(stages.join("pod/fast/pod-ready.yaml")).unwrap();
    let error = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap_err().to_string();
    assert_eq!(error, format!("read {}", stages.join("pod/fast/pod-ready.yaml").display()));
}

#[tokio::test]
async fn the_api_server_asks_for_rights_and_logs_one_user_before_it_answers() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    let flags = flags::api_server(&files, "http://127.0.0.1:5", 4, None);
    for flag in [
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        "--bind-address=127.0.0.1",
        "--secure-port=4",
        "--etcd-servers=http://127.0.0.1:5",
        "--etcd-compaction-interval=0",
        "--audit-log-mode=blocking-strict",
        &format!("--audit-log-path={}", files.audit_log().display()),
    ] {
        assert!(has(&flags, flag), "{flag} is not in {flags:?}");
    }
    let policy: Value = serde_json::from_slice(&std::fs::read(files.audit_policy()).unwrap()).unwrap();
    let rules = json!([
        { "level": "Metadata", "users": super::AUDITED },
        { "level": "Metadata", "userGroups": [super::AUDITED_GROUP] },
        { "level": "None" },
    ]);
    assert_eq!(policy["rules"], rules);
    assert_eq!(policy["omitStages"], json!(["RequestReceived"]));
}

#[tokio::test]
async fn nobody_elects_a_leader_or_listens_beyond_loopback() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    for flags in [flags::controllers(&files, None), flags::scheduler(&files)] {
        assert!(has(&flags, "--leader-elect=false"), "{flags:?}");
        assert!(has(&flags, "--secure-port=0"), "{flags:?}");
    }
    assert!(has(&flags::kwok(&files, 7, None), "--server-address=127.0.0.1:7"));
    let flags = etcd::flags("http://127.0.0.1:1", "http://127.0.0.1:2", Path::new("/data"));
    assert!(has(&flags, "--initial-cluster=one=http://127.0.0.1:2"));
    assert!(has(&flags, "--unsafe-no-fsync"));
}

#[tokio::test]
async fn beside_a_real_node_the_api_server_is_where_pods_reach_it() {
    let (_root, stages, plane) = folders();
    let network = Network::new(0);
    let files = Files::write(&plane, "https://198.18.0.1:4", Some(network), &stages).await.unwrap();
    let flags = flags::api_server(&files, "http://127.0.0.1:5", 4, Some(network));
    for flag in [
        "--bind-address=198.18.0.1",
        "--advertise-address=198.18.0.1",
        "--service-cluster-ip-range=198.18.1.0/24",
        "--kubelet-preferred-address-types=InternalIP",
        "--anonymous-auth=false",
    ] {
        assert!(has(&flags, flag), "{flag} is not in {flags:?}");
    }
    assert!(!flags.iter().any(|flag| flag.contains("disable-admission")), "accounts are given to pods");
    assert!(flags::controllers(&files, Some(network)).iter().any(|flag| flag.contains("node-lifecycle")));
    assert!(!flags::controllers(&files, None).iter().any(|flag| flag.contains("node-lifecycle")));
}

#[tokio::test]
async fn kwok_plays_its_own_node_alone_and_pods_avoid_that_one_beside_a_real_one() {
    let (_root, stages, plane) = folders();
    let files = Files::write(&plane, "https://127.0.0.1:4", None, &stages).await.unwrap();
    assert!(has(&flags::kwok(&files, 7, None), "--manage-single-node=node"));
    assert_eq!(flags::node(None)["spec"], Value::Null);
    let taints = json!([{ "key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule" }]);
    assert_eq!(flags::node(Some(Network::new(0)))["spec"]["taints"], taints);
}

#[test]
fn the_node_is_the_one_that_is_waited_for() {
    let reference = Reference::of(&flags::node(None)).unwrap();
    assert_eq!(reference, Reference::new("v1", "Node", None, flags::NODE_NAME));
}

#[test]
fn a_node_is_ready_when_its_condition_says_so() {
    let node = |status| {
        json!({ "status": { "conditions": [
        { "type": "MemoryPressure", "status": "True" },
        { "type": "Ready", "status": status },
    ] } })
    };
    assert!(is_ready(&node("True")));
    assert!(!is_ready(&node("False")));
    assert!(!is_ready(&json!({})));
}

/// A gateway of etcd at revision 41 that answers compactions with `status` and `answer`.
async fn gateway(status: u16, answer: Value) -> etcd::Gateway {
    let router = Router::new()
        .route("/v3/kv/put", post(async || Json(json!({ "header": { "revision": "41" } }))))
        .route(
            "/v3/kv/compaction",
            post(async move |Json(body): Json<Value>| {
                assert_eq!(body, json!({ "revision": "41", "physical": true }));
                (axum::http::StatusCode::from_u16(status).unwrap(), Json(answer))
            }),
        );
    let url = loadtest_sim::server::serve(router).await.unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    etcd::Gateway::new(url).unwrap()
}

#[tokio::test]
async fn history_is_dropped_up_to_the_newest_revision() {
    assert_eq!(gateway(200, json!({})).await.compact().await.unwrap(), 41);
}

#[tokio::test]
async fn a_refusal_of_etcd_is_told() {
    let error = gateway(503, json!({ "error": "etcdserver: no leader" })).await.compact().await.unwrap_err();
    let expected = "compact etcd at revision 41: etcd answers 503 Service Unavailable: etcdserver: no leader";
    assert_eq!(format!("{error:#}"), expected);
}
