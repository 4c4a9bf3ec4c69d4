use std::sync::Arc;

use loadtest_sim::Player;
use loadtest_sim::argocd::{ArgoCdSim, Ask, Config, Content, Kind, ResourceName};
use loadtest_sim::generate::{Change, Fleet, Shape};
use loadtest_sim::kube::{self, KubeSim};
use loadtest_sim::recordings::packed;
use serde_json::{Value, json as value};

use super::{client, json};

async fn serve(content: Content) -> ArgoCdSim {
    ArgoCdSim::start(Config { listen: Default::default(), root: String::new(), token: None, content })
        .await
        .unwrap()
}

#[tokio::test]
async fn recorded_answers_move_with_the_watch() {
    let cases = packed("argocd-3.2").unwrap();
    let case = cases.iter().find(|case| case.name == "directory-drift").unwrap();
    let mut player = Player::new(std::slice::from_ref(case)).unwrap();
    let argocd = serve(Content::Recorded(player.recorded())).await;
    let kube = KubeSim::start(kube::Config::default()).await.unwrap();
    let url = format!("{}/api/v1/applications/store", argocd.url());

    let (status, early) = json(&format!("{url}/managed-resources?appNamespace=argocd")).await;
    assert_eq!(
        (status, early["message"].as_str()),
        (404, Some("applications.argoproj.io \"store\" not found"))
    );
    assert_eq!(
        json(&url).await,
        (403, value!({"error": "permission denied", "code": 7, "message": "permission denied"}))
    );

    let key = player.step(&kube).unwrap().unwrap();
    assert_eq!(key.as_str(), "argocd/store");
    let (_, first) = json(&format!("{url}/managed-resources")).await;
    assert_eq!(json(&url).await.0, 200);
    while player.step(&kube).unwrap().is_some() {}
    let (status, last) = json(&format!("{url}/managed-resources?project=default")).await;
    assert_eq!(status, 200);
    assert_ne!(first, last);
    let recorded = case.calls.iter().rfind(|call| call.path.contains("managed-resources")).unwrap();
    let recorded: Value = serde_json::from_str(case.answer(recorded).unwrap().get()).unwrap();
    assert_eq!(last, recorded);

    let (_, live) = json(&format!(
        "{url}/resource?namespace=store&resourceName=store-web&version=v1&group=apps&kind=Deployment"
    ))
    .await;
    let item = last["items"].as_array().unwrap().iter().find(|item| item["kind"] == "Deployment").unwrap();
    let parse = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    assert_eq!(parse(&live["manifest"]), parse(&item["liveState"]));
    let (status, missing) = json(&format!(
        "{url}/resource?namespace=store&resourceName=no&version=v1&group=apps&kind=Deployment"
    ))
    .await;
    assert_eq!(
        (status, missing["message"].as_str()),
        (400, Some("Deployment apps no not found as part of application store"))
    );
    assert_eq!(argocd.count(Kind::ManagedResources), 3);
    assert_eq!(argocd.count(Kind::Application), 2);
    assert_eq!(argocd.calls(), 7);
}

#[tokio::test]
async fn every_recorded_call_has_its_last_answer_at_the_end() {
    for set in ["incumbent-2.12", "argocd-3.2"] {
        let cases = packed(set).unwrap();
        let player = Player::new(&cases).unwrap();
        let recorded = player.recorded();
        recorded.finish();
        let argocd = serve(Content::Recorded(recorded.clone())).await;
        let client = client();
        let mut compared = 0;
        for case in &cases {
            for name in &case.meta.applications {
                if recorded.object(name).is_none() {
                    let url = format!("{}/api/v1/applications/{name}", argocd.url());
                    let tree = client.get(format!("{url}/resource-tree")).send().await.unwrap();
                    assert_eq!(tree.status(), 404, "{set} {name}");
                    assert_eq!(client.get(url).send().await.unwrap().status(), 403);
                    continue;
                }
                let wanted = format!("/api/v1/applications/{name}/managed-resources?");
                let call = case.calls.iter().rfind(|call| call.path.starts_with(&wanted)).unwrap();
                let response = client.get(format!("{}{}", argocd.url(), call.path)).send().await.unwrap();
                assert_eq!(response.status().as_u16(), call.status);
                assert_eq!(response.text().await.unwrap(), case.answer(call).unwrap().get());
                compared += 1;
            }
        }
        assert!(compared >= 7, "{set}: {compared}");
    }
}

#[tokio::test]
async fn manifests_are_found_under_any_revision_and_commits_for_any_application() {
    let cases = packed("incumbent-2.12").unwrap();
    let player = Player::new(&cases).unwrap();
    let recorded = player.recorded();
    recorded.finish();
    let ask = |revision: Option<&str>| Ask::Manifests { revision: revision.map(str::to_owned) };
    let plain = recorded.answer("store", &ask(None));
    assert_eq!(plain.0, 200);
    assert_eq!(recorded.answer("store", &ask(Some("not-recorded"))), plain);
    let missing = Ask::RevisionMetadata { revision: "x".to_owned(), source_index: "0".to_owned() };
    assert_eq!(recorded.answer("store", &missing).0, 404);
    let call = cases.iter().flat_map(|case| &case.calls).find(|call| {
        call.status == 200 && call.path.contains("/revisions/") && call.path.ends_with("sourceIndex=0")
    });
    let revision = call.unwrap().path.split('/').nth(6).unwrap().to_owned();
    let known = Ask::RevisionMetadata { revision, source_index: "0".to_owned() };
    assert_eq!(recorded.answer("store", &known).0, 200);
}

#[tokio::test]
async fn root_path_token_and_settings() {
    let cases = packed("incumbent-2.12").unwrap();
    let player = Player::new(&cases).unwrap();
    let argocd = ArgoCdSim::start(Config {
        listen: Default::default(),
        root: "/argo-cd/".to_owned(),
        token: Some("right".to_owned()),
        content: Content::Recorded(player.recorded()),
    })
    .await
    .unwrap();
    let settings = format!("{}/argo-cd/api/v1/settings", argocd.url());
    let (status, refused) = json(&settings).await;
    assert_eq!((status, refused["message"].as_str()), (401, Some("no session information")));
    let get = |url: String| async move {
        let response = client().get(url).bearer_auth("right").send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, body) = get(settings).await;
    assert_eq!((status, body["trackingMethod"].as_str()), (200, Some("annotation")));
    let (_, version) = get(format!("{}/argo-cd/api/version", argocd.url())).await;
    assert!(version["Version"].as_str().unwrap().starts_with("v2.12"));
    assert_eq!(get(format!("{}/api/v1/settings", argocd.url())).await.0, 404);
    assert_eq!((argocd.unauthorized(), argocd.count(Kind::Settings), argocd.count(Kind::Other)), (1, 1, 1));
}

#[tokio::test]
async fn generated_answers_follow_the_application() {
    let fleet = Arc::new(Fleet::new(Shape { applications: 3, ..Shape::default() }).unwrap());
    let argocd = serve(Content::Generated(fleet.clone())).await;
    argocd.traffic().keep(2);
    let url = format!("{}/api/v1/applications/app-00001", argocd.url());
    let (_, before) = json(&format!("{url}/managed-resources")).await;
    fleet.change_one(1, Change::Drift, &mut fastrand::Rng::with_seed(5)).unwrap();
    let (_, after) = json(&format!("{url}/managed-resources")).await;
    let items = |body: &Value| body["items"].as_array().unwrap().clone();
    assert_eq!(items(&before).iter().zip(&items(&after)).filter(|(a, b)| a != b).count(), 1);
    let state = fleet.find("app-00001").unwrap();
    let mut application = Vec::new();
    fleet.application(&state, 1, &mut application);
    let application: Value = serde_json::from_slice(&application).unwrap();
    let revision = application["status"]["sync"]["revision"].as_str().unwrap();
    let (status, commit) = json(&format!("{url}/revisions/{revision}/metadata?sourceIndex=0")).await;
    assert_eq!((status, commit["message"].as_str()), (200, Some("Change number 1")));
    assert_eq!(json(&format!("{url}/manifests?revision={revision}")).await.1["revision"], *revision);
    assert_eq!(json(&format!("{url}/resource-tree")).await.0, 200);
    let one = format!(
        "{url}/resource?namespace=app-00001&resourceName=app-00001-r0&version=v1&group=apps&kind=Deployment"
    );
    assert_eq!(json(&one).await.0, 200);
    assert_eq!(json(&one.replace("-r0", "-r99")).await.0, 400);
    fleet.remove(1);
    assert_eq!(json(&format!("{url}/resource-tree")).await.0, 404);
    assert_eq!(json(&url).await.0, 403);
    assert_eq!(
        argocd.traffic().kept(),
        ["/api/v1/applications/app-00001/resource-tree", "/api/v1/applications/app-00001"]
    );
}

#[tokio::test]
async fn names_that_need_escaping_are_understood() {
    let argocd = serve(Content::Told).await;
    argocd.set(Kind::ResourceTree, "a b", 200, "{}");
    assert_eq!(json(&format!("{}/api/v1/applications/a%20b/resource-tree", argocd.url())).await.0, 200);
    let name =
        ResourceName { kind: "Role".to_owned(), name: "system:x y".to_owned(), ..ResourceName::default() };
    let url =
        format!("{}/api/v1/applications/a/resource?kind=Role&resourceName=system%3Ax%20y", argocd.url());
    assert_eq!(json(&url).await.0, 404);
    let (status, body) = serve_empty().answer("a", &Ask::Resource(name));
    assert_eq!((status, body), (404, r#"{"code":5,"error":"applications.argoproj.io \"a\" not found","message":"applications.argoproj.io \"a\" not found"}"#.into()));
}

fn serve_empty() -> loadtest_sim::argocd::Recorded {
    loadtest_sim::argocd::Recorded::new(&[])
}
