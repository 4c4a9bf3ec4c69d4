//! Pages come packed to whoever takes that.

use std::io::Read as _;

use flate2::read::GzDecoder;
use loadtest_sim::local_client;
use reqwest::RequestBuilder;
use reqwest::header::HeaderMap;

use crate::served::Served;

/// An answer as it comes, which this client does not unpack.
async fn answer(asked: RequestBuilder, accepted: &str) -> (HeaderMap, Vec<u8>) {
    let answer = asked.header("accept-encoding", accepted).send().await.unwrap();
    (answer.headers().clone(), answer.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn pages_and_assets_come_packed_to_whoever_takes_that() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let client = local_client().no_gzip().build().unwrap();
    let get = |path: &str| client.get(format!("{}{path}", served.url)).header("cookie", &session);
    let (_, list) = answer(get("/applications"), "identity").await;
    let list = String::from_utf8(list).unwrap();
    let sheet = list.split('"').find(|text| text.ends_with("/console.css")).unwrap().to_owned();
    for path in ["/applications", &sheet] {
        let (head, plain) = answer(get(path), "br").await;
        assert_eq!(
            (head.get("content-encoding"), &head["vary"]),
            (None, &"accept-encoding".parse().unwrap())
        );
        let (head, packed) = answer(get(path), "gzip, deflate, br").await;
        assert_eq!(
            (&head["content-encoding"], &head["vary"]),
            (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
        );
        assert_eq!(head["content-length"].to_str().unwrap(), packed.len().to_string());
        assert!(packed.len() * 3 < plain.len(), "{path}: {} of {} bytes", packed.len(), plain.len());
        let mut unpacked = String::new();
        GzDecoder::new(&*packed).read_to_string(&mut unpacked).unwrap();
        let rows = |text: &str| text.matches(" data-row").count();
        assert_eq!(rows(&unpacked), rows(&String::from_utf8(plain).unwrap()), "{path}");
        assert!(path != sheet || unpacked == include_str!("../../assets/console.css"), "{path}");
    }
}

#[tokio::test]
async fn what_streams_and_what_answers_a_form_comes_as_it_is() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let client = local_client().no_gzip().build().unwrap();
    let live = client.get(format!("{}/live", served.url)).header("cookie", session);
    let mut live = live.header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(live.headers().get("content-encoding"), None);
    assert!(live.chunk().await.unwrap().unwrap().starts_with(b"event: hello"));
    let wrong = client.post(format!("{}/sign-in", served.url)).body("name=ada&password=wrong");
    let (head, page) = answer(wrong, "gzip").await;
    assert_eq!(head.get("content-encoding"), None);
    assert!(page.starts_with(b"<!DOCTYPE html>"));
}
