//! Whose a token is.

use pipeline_core::SecretString;
use stages_kube::{Cluster, QuestionError, Reader, Scope};

use crate::fake::{Answer, Asked, Fake};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn reader(answer: impl FnMut(&Asked) -> Answer + Send + 'static) -> (Fake, Reader) {
    let fake = Fake::start(answer).await;
    let token = Some(SecretString::from("own"));
    let url = format!("http://{}", fake.address);
    let cluster = Cluster::Server { url, token, token_file: None, ca_file: None };
    (fake, cluster.reader().await.unwrap())
}

fn review(status: &str) -> Answer {
    Answer::Json(format!(
        "{{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":{status}}}"
    ))
}

#[tokio::test]
async fn the_cluster_says_whose_a_token_is() {
    let owner = r#"{"authenticated": true, "user": {"username": "system:serviceaccount:argocd:reporter"}}"#;
    for (status, expected) in [
        (owner, Some("system:serviceaccount:argocd:reporter")),
        (r#"{"error": "no such token"}"#, None),
        (r#"{"authenticated": false, "user": {"username": "x"}}"#, None),
        (r#"{"authenticated": true}"#, None),
    ] {
        let (_fake, reader) = reader(move |asked| {
            assert_eq!(asked.path, REVIEWS);
            review(status)
        })
        .await;
        assert_eq!(reader.owner("theirs").await.unwrap().as_deref(), expected, "{status}");
    }
}

#[tokio::test]
async fn without_the_right_to_ask_nobody_is_known() {
    let (_fake, reader) = reader(|_| Answer::Status(403)).await;
    let error = reader.owner("theirs").await.unwrap_err();
    assert!(matches!(error, QuestionError::Status(403)));
    assert_eq!(error.to_string(), "the API server answered 403");
    let right = Reader::review_right();
    assert_eq!(
        (right.group, right.resource, right.verbs, right.scope),
        ("authentication.k8s.io", "tokenreviews", &["create"][..], Scope::Cluster)
    );
}
