//! A provider of OpenID Connect that is slow or away: what the page to sign in says of it, and that passwords go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::json;
use stages_platform_oidc::OidcConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use crate::oidc::{by, config, host, refused, served, told};
use crate::provider::Person;
use crate::sample::Sample;
use crate::served::Served;

#[tokio::test]
async fn while_the_provider_hangs_the_page_for_passwords_comes_and_one_look_goes_on_behind() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let came = Arc::new(AtomicI64::new(0));
    let counted = came.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().await.unwrap());
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let served = Served::by(Sample::new(), Timestamp::now, async |url| {
        let config = config(&format!("http://{host}"), url);
        Some(by(OidcConfig { timeout: Duration::from_secs(600), ..config }))
    })
    .await;
    served.signed_in().await;
    let said =
        format!("{host} has not answered within 1 s: on the way there it may take longer. Passwords go on.");
    for _ in 0..3 {
        let page = served.client.get(format!("{}/sign-in", served.url)).send();
        let page = tokio::time::timeout(Duration::from_secs(120), page).await.expect("it comes").unwrap();
        let page = page.text().await.unwrap();
        assert!(page.contains(&said) && page.contains("name=\"password\""), "{page}");
        assert!(!page.contains("not possible now") && page.contains("Sign in with Example</a>"), "{page}");
    }
    assert_eq!(came.load(Ordering::SeqCst), 1, "it is asked once");
}

#[tokio::test]
async fn a_provider_that_did_not_answer_at_all_is_told_from_one_that_is_slow() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let served = Served::by(Sample::new(), Timestamp::now, async |url| {
        let config = config(&format!("http://{host}"), url);
        Some(by(OidcConfig { timeout: Duration::from_secs(20), ..config }))
    })
    .await;
    served.signed_in().await;
    let page = async || {
        served.client.get(format!("{}/sign-in", served.url)).send().await.unwrap().text().await.unwrap()
    };
    assert!(page().await.contains("has not answered within 1 s"));
    // Once that look is over it is known to be away, also while another look is under way.
    let away = "Sign in with Example is not possible now. Cannot ask for what a provider says of itself";
    let known = async { while !page().await.contains(away) {} };
    tokio::time::timeout(Duration::from_secs(120), known).await.expect("it is told");
    for _ in 0..3 {
        assert!(page().await.contains(away));
    }
}

/// The page, once it says so: of what is only late it is told later.
async fn until(page: &impl AsyncFn() -> String, said: &str) -> String {
    let ends = tokio::time::Instant::now() + Duration::from_secs(120);
    loop {
        let shown = page().await;
        if shown.contains(said) {
            return shown;
        }
        assert!(tokio::time::Instant::now() < ends, "{shown}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_provider_that_is_slow_is_not_told_to_be_away_because_it_was_so_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    // It is away the first time, and says nothing from then on.
    let answering = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            assert!(first.read_buf(&mut asked).await.unwrap() > 0);
        }
        let away = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        first.write_all(away).await.unwrap();
        drop(first);
        let mut held = Vec::new();
        while let Ok((other, _)) = listener.accept().await {
            held.push(other);
        }
    });
    let call = Duration::from_secs(5);
    let served = Served::by(Sample::new(), Timestamp::now, async |url| {
        let config = config(&format!("http://{host}"), url);
        Some(by(OidcConfig { timeout: call, ..config }))
    })
    .await;
    served.signed_in().await;
    let page = async || {
        served.client.get(format!("{}/sign-in", served.url)).send().await.unwrap().text().await.unwrap()
    };
    until(&page, "it answered 503").await;
    // So much later that says nothing of now.
    tokio::time::sleep(call + Duration::from_millis(1_200)).await;
    assert!(page().await.contains("has not answered within 1 s"));
    answering.abort();
}

#[tokio::test]
async fn while_the_provider_is_away_the_page_says_so_and_passwords_go_on() {
    let (served, provider, _) = served(Timestamp::now, |by| by).await;
    provider.set(json!({ "away": true })).await;
    let host = host(&provider);
    let why = format!("Cannot ask for what a provider says of itself at {host}: it answered 503.");
    let page = async || {
        served.client.get(format!("{}/sign-in", served.url)).send().await.unwrap().text().await.unwrap()
    };
    let said = format!("Sign in with Example is not possible now. {why} Passwords go on.");
    let shown = until(&page, &said).await;
    assert!(shown.contains("name=\"password\""), "{shown}");
    let start = Url::parse(&served.start()).unwrap();
    let again = "Begin again in a moment, and if it comes back, ask whoever manages it.";
    let told_there = told(Person::new().get(&start).await).await;
    assert_eq!(told_there, refused(StatusCode::SERVICE_UNAVAILABLE, format!("{why} {again}")));
    let form = [("name", "ada"), ("password", "correct horse battery")];
    assert_eq!(served.post("/sign-in", &form).await.status(), StatusCode::SEE_OTHER);

    // It is back, and goes for good while somebody is there.
    provider.set(json!({ "away": false })).await;
    assert!(!page().await.contains("is not possible now"));
    let mut mia = Person::new();
    let back = mia.through(&served.start(), "mia").await;
    provider.end().await;
    let why = format!("Cannot exchange a code at {host}: the connection failed. {again}");
    assert_eq!(told(mia.get(&back).await).await, refused(StatusCode::SERVICE_UNAVAILABLE, why));
    assert_eq!(served.post("/sign-in", &form).await.status(), StatusCode::SEE_OTHER);
}
