//! SIGTERM while browsers and programs listen: their streams end with the process, which waits for none of them.

use std::time::{Duration, Instant};

use loadtest::sim::local_client;
use loadtest::sim::people::Admin;
use reqwest::Response;
use serde_json::json;

use super::{Platform, first_link};
use crate::runtime::{SOON, ensure};

/// Browsers that are open, and as many programs.
const STREAMS: usize = 8;
/// So long what is under way may take when the process is asked to stop.
const GRACE: &str = "shutdown.grace=10m";
/// It takes a fraction of a second: only a process that waits for its streams takes longer than this.
const LIMIT: Duration = Duration::from_secs(60);

/// What comes of a stream until an event of that name is there.
async fn read_until(stream: &mut Response, event: &str) {
    let (name, mut text) = (format!("event: {event}\n"), String::new());
    while !text.contains(&name) {
        let piece = tokio::time::timeout(SOON, stream.chunk()).await.expect("the stream is silent").unwrap();
        let piece = piece.expect("the stream has ended");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

/// How long after `begun` a stream ended.
async fn ended(mut stream: Response, begun: Instant) -> Duration {
    let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(SOON, end).await.expect("the stream goes on");
    begun.elapsed()
}

#[tokio::test]
async fn sigterm_ends_the_streams_of_browsers_and_of_programs_at_once() {
    let mut platform = Platform::start().await;
    platform.runtime.take().unwrap().stop().await;
    platform.up_with("unlimited", &[GRACE]).await;
    let link = first_link(platform.runtime()).expect("nobody has an account yet");
    // A stream lasts for longer than an answer may take: there is no limit.
    let browser = local_client().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let admin = Admin::first(&browser, &platform.url(), &link).await.unwrap();
    let session = admin.0.session().expect("somebody with a session").to_owned();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let asked = browser.get(format!("{}/live", platform.url())).header("cookie", &session);
        let mut stream = asked.send().await.unwrap().error_for_status().unwrap();
        read_until(&mut stream, "hello").await;
        streams.push(stream);
    }
    // The same of programs, which subscribe with the token of a runtime.
    let query = json!({"query": "subscription { applicationsChanged { sequence } }"});
    for _ in 0..STREAMS {
        let asked = browser.post(format!("{}/2.0/api/graphql", platform.url())).json(&query);
        let asked =
            asked.header("authorization", platform.token.trim()).header("accept", "text/event-stream");
        let mut stream = asked.send().await.unwrap().error_for_status().unwrap();
        read_until(&mut stream, "next").await;
        streams.push(stream);
    }
    // One of them has heard that it lives since, the others are in the middle of a silence.
    read_until(&mut streams[0], "beat").await;

    let begun = Instant::now();
    let ends: Vec<_> = streams.into_iter().map(|stream| tokio::spawn(ended(stream, begun))).collect();
    platform.runtime.take().unwrap().stop().await;
    let process = begun.elapsed();
    let mut last = Duration::ZERO;
    for end in ends {
        last = last.max(end.await.unwrap());
    }
    println!("{STREAMS} streams of each: the last ended after {last:?}, the process after {process:?}");
    ensure(process.max(last), "it waited for its streams", |took| *took < LIMIT);
}
