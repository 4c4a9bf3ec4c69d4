use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use loadtest_sim::platform::Keep;
use loadtest_sim::recordings::{self, load_dir};
use loadtest_sim::{Load, Setup, Simulation};

/// A client of the simulated API server.
async fn kubernetes(simulation: &Simulation) -> kube::Client {
    let text = std::fs::read_to_string(simulation.directory().join("kubeconfig")).unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

fn secret(simulation: &Simulation, name: &str) -> String {
    std::fs::read_to_string(simulation.directory().join(name)).unwrap()
}

fn config(simulation: &Simulation, directory: &Path) -> Config {
    Config {
        directory: directory.to_path_buf(),
        cases: BTreeMap::from([("drift".to_owned(), vec!["store".to_owned()])]),
        argocd: simulation.argocd.url(),
        token: secret(simulation, "argocd-token"),
        namespace: "argocd".to_owned(),
        hidden: vec![("registry.example.com".to_owned(), "registry.hidden".to_owned())],
    }
}

async fn recorded() -> Simulation {
    let cases = recordings::packed("argocd-3.2").unwrap();
    let cases = cases.into_iter().filter(|case| case.name == "directory-drift").collect();
    let setup = Setup { load: Load::Recording(cases), ..Setup::default() };
    Simulation::start(Setup { keep: Keep { last: true, reports: 10 }, ..setup }).await.unwrap()
}

fn zipped(data: &Value) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(json!({ "data": data }).to_string().as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn encode(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_of_the_simulators_can_be_loaded_and_holds_what_they_were_asked() {
    let mut simulation = recorded().await;
    let folder = tempfile::tempdir().unwrap();
    let config = config(&simulation, folder.path());
    let token = config.token.clone();
    let witness = Witness::start(kubernetes(&simulation).await, "argocd").await.unwrap();
    let recorder = Recorder::start(config, &simulation.platform, &witness).await.unwrap();

    let mut player = simulation.player.take().unwrap();
    let events = player.remaining();
    for _ in 0..events / 2 {
        player.step(&simulation.kube).unwrap();
    }
    let url = recorder.url();
    let ask = async |path: &str, token: &str| {
        let call = client().unwrap().get(format!("{url}{path}")).bearer_auth(token);
        let answer = call.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let path = "/api/v1/applications/store/managed-resources?appNamespace=argocd&project=default";
    let (status, through) = ask(path, &token).await;
    assert_eq!(status, 200);
    let call = client().unwrap().get(format!("{}{path}", simulation.argocd.url())).bearer_auth(&token);
    assert_eq!(through, call.send().await.unwrap().text().await.unwrap());
    let (status, _) = ask(path, "wrong").await;
    assert_eq!(status, 401);
    let (status, _) = ask("/api/v1/settings", &token).await;
    assert_eq!(status, 200);

    for (name, image) in [("store", "registry.example.com/a"), ("another", "x")] {
        let object = json!({"kind": "Application", "apiVersion": "argoproj.io/v1alpha1",
            "metadata": {"name": name, "namespace": "argocd", "annotations": {"image": image}}});
        let data = json!({"object": encode(&object), "source": {"appName": "", "appNamespace": ""}});
        let post = client().unwrap().post(format!("{}/2.0/api/events", simulation.platform.url()));
        let post = post
            .header("authorization", secret(&simulation, "platform-token"))
            .header("content-encoding", "gzip")
            .header("content-type", "application/json")
            .body(zipped(&data));
        assert_eq!(post.send().await.unwrap().status(), 200);
    }
    while player.step(&simulation.kube).unwrap().is_some() {}
    let mut seen = recorder.seen();
    let all = seen.wait_for(|seen| *seen == events as u64);
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap().unwrap();
    recorder.settle(&["store".to_owned()]).await;
    let folders = recorder.finish(&simulation.platform).await.unwrap();
    assert_eq!(folders, [folder.path().join("drift")]);

    let cases = load_dir(folder.path()).unwrap();
    let [case] = cases.as_slice() else { panic!("{} cases", cases.len()) };
    assert_eq!(case.name, "drift");
    assert_eq!(case.meta.applications, ["store"]);
    assert_eq!(case.meta.tracking_method, "annotation");
    assert_eq!(case.watch.len(), events);
    let by =
        |by: &str| case.calls.iter().filter(|call| call.by == by).map(|call| call.status).collect::<Vec<_>>();
    assert_eq!(by("reporter"), [200, 401]);
    assert!(by("observer").len() >= 2, "{:?}", by("observer"));
    let body = case.answer(case.calls.iter().find(|call| call.by == "reporter").unwrap()).unwrap();
    assert_eq!(body.get(), through.replace("registry.example.com", "registry.hidden"));
    let [report] = case.reports.as_slice() else { panic!("{} reports", case.reports.len()) };
    let object = object(&report.data);
    assert_eq!(object["metadata"]["annotations"]["image"], "registry.hidden/a");

    for file in std::fs::read_dir(folder.path().join("drift")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(&token) && !text.contains("registry.example.com"));
    }
}

/// The object of a report.
fn object(data: &Value) -> Value {
    let text = STANDARD.decode(data["object"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&text).unwrap()
}
