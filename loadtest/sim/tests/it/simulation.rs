use std::path::Path;

use loadtest_sim::certificate::Identity;
use loadtest_sim::generate::{Change, Mix, Shape};
use loadtest_sim::kube::Collection;
use loadtest_sim::recordings::packed;
use loadtest_sim::{Load, Setup, Simulation};
use pipeline_core::Key;
use reqwest::Certificate;
use serde_json::{Value, json};

fn read(settings: &Value, pointer: &str) -> String {
    settings.pointer(pointer).unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_settings_lead_to_all_three() {
    let simulation = Simulation::start(Setup {
        load: Load::Generated(Shape { applications: 7, ..Shape::default() }),
        tls: [Some(Identity::Good), Some(Identity::Good), None],
        argocd_root: "/argo-cd".to_owned(),
        ..Setup::default()
    })
    .await
    .unwrap();
    assert_eq!(simulation.populate().unwrap(), 7);
    let more = json!({"reporter": {"queue": {"events": 5}}, "argocd": {"retries": 1}});
    let environment = simulation.environment(&more).unwrap();
    assert_eq!(environment.len(), 1);
    assert_eq!(environment[0].0, "GITOPS_RUNTIME_CONFIG");
    let settings: Value = serde_json::from_str(&std::fs::read_to_string(&environment[0].1).unwrap()).unwrap();
    assert_eq!(settings["reporter"]["queue"]["events"], 5);
    assert_eq!(settings["argocd"]["retries"], 1);

    let config: Value =
        serde_json::from_str(&std::fs::read_to_string(read(&settings, "/kubernetes/kubeconfig")).unwrap())
            .unwrap();
    let ca = std::fs::read(read(&config, "/clusters/0/cluster/certificate-authority")).unwrap();
    let client = super::builder().tls_certs_only([Certificate::from_pem(&ca).unwrap()]).build().unwrap();
    let list =
        format!("{}/apis/argoproj.io/v1alpha1/applications", read(&config, "/clusters/0/cluster/server"));
    let listed = client.get(list).bearer_auth(read(&config, "/users/0/user/token")).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 7);

    let token = std::fs::read_to_string(read(&settings, "/argocd/tokenFile")).unwrap();
    let tree = format!(
        "{}{}/api/v1/applications/app-00000/resource-tree",
        read(&settings, "/argocd/url"),
        read(&settings, "/argocd/rootPath")
    );
    assert_eq!(client.get(tree).bearer_auth(token).send().await.unwrap().status(), 200);
    assert_eq!(read(&settings, "/argocd/caFile"), read(&config, "/clusters/0/cluster/certificate-authority"));
    assert_eq!(read(&settings, "/platform/caFile"), "");

    let token = std::fs::read_to_string(read(&settings, "/platform/tokenFile")).unwrap();
    let events = format!("{}/2.0/api/events", read(&settings, "/platform/url"));
    let refused = client.post(events).header("authorization", token).send().await.unwrap();
    assert_eq!(refused.status(), 400);

    let directory = simulation.directory().to_path_buf();
    assert!(Path::new(&read(&settings, "/state/directory")).starts_with(&directory));
    simulation.stop().await.unwrap();
    assert!(!directory.exists());
}

#[tokio::test]
async fn changes_reach_argocd_and_the_cluster_the_same_way_each_time() {
    let run = || async {
        let setup = Setup {
            load: Load::Generated(Shape { applications: 5, ..Shape::default() }),
            tls: [None; 3],
            ..Setup::default()
        };
        let simulation = Simulation::start(setup).await.unwrap();
        simulation.populate().unwrap();
        let mut chance = fastrand::Rng::with_seed(9);
        let mut changes = Vec::new();
        for number in 0..100 {
            let (changed, version) = simulation.change(Mix::default(), &mut chance).unwrap().unwrap();
            assert_eq!(version, 7 + number);
            changes.push((changed.state.index, changed.change, changed.reports));
        }
        assert!(simulation.delete(3).unwrap());
        assert!(!simulation.delete(3).unwrap());
        let key = Key::new("argocd", "app-00004").unwrap();
        changes.push((
            0,
            Change::Drift,
            u32::try_from(simulation.kube.len(Collection::Applications)).unwrap(),
        ));
        (changes, simulation.kube.text(Collection::Applications, &key).unwrap())
    };
    let (first, second) = (run().await, run().await);
    assert_eq!(first, second);
    let commits = first.0.iter().filter(|(_, change, _)| *change == Change::Commit).count();
    assert!((3..25).contains(&commits), "{commits}");
    assert_eq!(first.0.last().unwrap().2, 4);
}

#[tokio::test]
async fn what_is_generated_is_selected_by_the_labels_that_it_is_served_with() {
    let load = Load::Generated(Shape { applications: 3, ..Shape::default() });
    let simulation = Simulation::start(Setup { load, tls: [None; 3], ..Setup::default() }).await.unwrap();
    simulation.populate().unwrap();
    let token = "simulated-kubernetes-token";
    for (selector, selected) in [("", 3), ("env=test", 3), ("env=test,team in (web)", 3), ("env!=test", 0)] {
        let list = format!("{}/apis/argoproj.io/v1alpha1/applications", simulation.kube.url());
        let list = super::client().get(list).query(&[("labelSelector", selector)]).bearer_auth(token);
        let list: Value = list.send().await.unwrap().json().await.unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), selected, "{selector}");
    }
}

#[tokio::test]
async fn recordings_replay_to_their_end() {
    for (set, left) in [("incumbent-2.12", 8), ("argocd-3.2", 8)] {
        let cases = packed(set).unwrap();
        let mut versions: Vec<u64> = Vec::new();
        for line in cases.iter().flat_map(|case| &case.watch) {
            let object: Value = serde_json::from_str(line.object.get()).unwrap();
            versions.push(read(&object, "/metadata/resourceVersion").parse().unwrap());
        }
        versions.sort_unstable();
        let setup = Setup { load: Load::Recording(cases), tls: [None; 3], ..Setup::default() };
        let mut simulation = Simulation::start(setup).await.unwrap();
        let mut player = simulation.player.take().unwrap();
        assert_eq!(player.remaining(), versions.len());
        player.play(&simulation.kube, 0.0, std::time::Duration::ZERO).await.unwrap();
        assert_eq!((player.remaining(), simulation.kube.version()), (0, *versions.last().unwrap()));
        assert_eq!(simulation.kube.len(Collection::Applications), left, "{set}");
        let recorded = player.recorded();
        let there = recorded.applications().filter(|name| recorded.object(name).is_some()).count();
        assert_eq!(there, left);
    }
}

#[tokio::test]
async fn a_recorded_event_that_is_older_is_refused() {
    let setup = Setup { load: Load::Told, tls: [None; 3], ..Setup::default() };
    let simulation = Simulation::start(setup).await.unwrap();
    let object = |version| {
        json!({"metadata": {"namespace": "argocd", "name": "a", "resourceVersion": version}}).to_string()
    };
    simulation.kube.replay("ADDED", &object("50")).unwrap();
    assert_eq!(
        simulation.kube.replay("MODIFIED", &object("50")).unwrap_err().to_string(),
        "replay argocd/a at resourceVersion 50: the cluster is at 50"
    );
}
