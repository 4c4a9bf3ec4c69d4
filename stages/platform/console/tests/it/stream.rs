//! The stream of what changed: from where a browser was, told to start over when that is too long ago, ended at once.

use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use crate::served::Served;

const GIVE_UP: Duration = Duration::from_secs(180);

async fn open(served: &Served, session: &str, after: Option<u64>) -> Response {
    let mut asked = served.client.get(format!("{}/live", served.url)).header("cookie", session);
    if let Some(after) = after {
        asked = asked.header("last-event-id", after);
    }
    asked.send().await.unwrap()
}

/// The next event that is no beat: its name, id and data.
async fn event(stream: &mut Response) -> Option<(String, String, String)> {
    loop {
        let mut text = String::new();
        while !text.ends_with("\n\n") {
            let chunk = timeout(GIVE_UP, stream.chunk()).await.unwrap().ok()??;
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        };
        if field("event:") != "beat" {
            return Some((field("event:"), field("id:"), field("data:")));
        }
    }
}

#[tokio::test]
async fn what_changed_while_a_browser_was_away_is_told_when_it_comes_back() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let mut stream = open(&served, &session, None).await;
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
    assert_eq!(event(&mut stream).await.unwrap().0, "hello");
    served.fleet.sequence.send_modify(|sequence| *sequence += 1);
    let (name, id, data) = event(&mut stream).await.unwrap();
    assert_eq!((&*name, &*id, &*data), ("changed", "2", "[\"eu-1/argocd-production/basket\"]"));
    drop(stream);

    served.fleet.sequence.send_modify(|sequence| *sequence += 3);
    let mut stream = open(&served, &session, Some(2)).await;
    let (name, id, _) = event(&mut stream).await.unwrap();
    assert_eq!((&*name, &*id), ("hello", "2"));
    assert_eq!(event(&mut stream).await.unwrap().1, "5");
    drop(stream);
    // A page says in the address where it begins; what a browser says by itself afterwards is newer.
    for (header, from) in [(None, "2"), (Some("4"), "4")] {
        let asked = served.client.get(format!("{}/live?after=2", served.url)).header("cookie", &session);
        let asked = header.into_iter().fold(asked, |asked, id| asked.header("last-event-id", id));
        let mut stream = asked.send().await.unwrap();
        assert_eq!(event(&mut stream).await.unwrap().1, from);
        assert_eq!(event(&mut stream).await.unwrap().1, "5");
    }

    served.fleet.sequence.send_modify(|sequence| *sequence += 1_000);
    let mut stream = open(&served, &session, Some(5)).await;
    event(&mut stream).await.unwrap();
    let (name, id, _) = event(&mut stream).await.unwrap();
    assert_eq!((&*name, &*id), ("resync", "1005"));
}

#[tokio::test]
async fn a_stream_ends_with_the_platform_and_with_its_session() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let mut stream = open(&served, &session, None).await;
    event(&mut stream).await.unwrap();
    served.client.post(format!("{}/sign-out", served.url)).header("cookie", &session).send().await.unwrap();
    assert_eq!(event(&mut stream).await, None, "whoever signed out hears nothing more");

    let form = [("name", "ada"), ("password", "correct horse battery")];
    let session = crate::served::cookie(&served.post("/sign-in", &form).await);
    let mut stream = open(&served, &session, None).await;
    event(&mut stream).await.unwrap();
    served.stop.cancel();
    assert_eq!(event(&mut stream).await, None);
}
