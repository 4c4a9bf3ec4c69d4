use loadtest_sim::Listen;
use loadtest_sim::certificate::{Authority, Identity};
use loadtest_sim::kube::{Config, KubeSim};
use reqwest::{Certificate, Client};
use serde_json::Value;

const APPS: &str = "/apis/argoproj.io/v1alpha1/applications";

async fn server(authority: &Authority, identity: Identity) -> KubeSim {
    let listen = Listen::default().with_tls(authority.server(identity).unwrap());
    KubeSim::start(Config { listen, token: Some("right".to_owned()), ..Config::default() }).await.unwrap()
}

fn trusting(authority: &Authority) -> Client {
    let certificate = Certificate::from_pem(authority.pem().as_bytes()).unwrap();
    super::builder().tls_certs_only([certificate]).build().unwrap()
}

#[tokio::test]
async fn the_token_is_checked_behind_tls() {
    let authority = Authority::new().unwrap();
    let kube = server(&authority, Identity::Good).await;
    assert!(kube.url().starts_with("https://127.0.0.1:"));
    let client = trusting(&authority);
    let url = format!("{}{APPS}", kube.url());
    let ok = client.get(&url).bearer_auth("right").send().await.unwrap();
    assert_eq!(ok.status(), 200);
    for request in [client.get(&url), client.get(&url).bearer_auth("wrong")] {
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), 401);
        let status: Value = refused.json().await.unwrap();
        assert_eq!(
            (status["kind"].as_str(), status["message"].as_str()),
            (Some("Status"), Some("Unauthorized"))
        );
    }
    assert_eq!(kube.counts().unauthorized, 2);
}

#[tokio::test]
async fn certificates_that_do_not_verify_are_refused_by_a_client() {
    let authority = Authority::new().unwrap();
    let stranger = Authority::new().unwrap();
    for (identity, trusted) in
        [(Identity::WrongHost, &authority), (Identity::Expired, &authority), (Identity::Good, &stranger)]
    {
        let kube = server(&authority, identity).await;
        let refused =
            trusting(trusted).get(format!("{}{APPS}", kube.url())).bearer_auth("right").send().await;
        assert!(refused.is_err(), "{identity:?}");
        assert_eq!(kube.counts().lists, 0);
    }
}
