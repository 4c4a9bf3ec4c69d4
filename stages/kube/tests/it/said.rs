//! What is said in the log, and what never is.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pipeline_core::{Reason, SourceNote};
use tracing_subscriber::fmt::MakeWriter;

use crate::fake::{Answer, Fake, app, list, stream};
use crate::harness::{Run, config};

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Takes down everything that is said on this thread, by libraries too.
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let everything = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        (log, tracing::subscriber::set_default(everything))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn count(&self, words: &str) -> usize {
        self.text().lines().filter(|line| line.contains(words)).count()
    }
}

/// Fails `times` with the status, then lists.
async fn after(code: u16, times: usize) -> Log {
    let (log, _guard) = Log::start();
    let fake = Fake::start(move |asked| match asked.kind() {
        "list" if asked.nth < times => Answer::Status(code),
        "list" => list(1, &[]),
        _ => Answer::Hang,
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    run.listed().await;
    run.finish().await.unwrap();
    log
}

#[tokio::test]
async fn a_missing_right_is_said_once_and_named() {
    let log = after(403, 6).await;
    let line = "ERROR stages_kube::failure_tracker: a right is missing: grant it to the account that this process runs as";
    assert_eq!(log.count(line), 1, "{}", log.text());
    let fields = r#"error=list widgets: the api server answered 403 resource="widgets.example.org" verbs="get, list, watch" scope="home""#;
    assert_eq!(log.count(fields), 1, "{}", log.text());
    assert_eq!(log.count("DEBUG stages_kube::failure_tracker: the watch is still broken"), 5);
}

#[tokio::test]
async fn whoever_has_to_act_is_told_what_to_do() {
    for (code, line) in [
        (401, "the api server does not accept the token: renew it, or name another one"),
        (404, "the api server knows no such objects: is what defines them installed there?"),
    ] {
        let log = after(code, 2).await;
        assert_eq!(log.count(&format!("ERROR stages_kube::failure_tracker: {line}")), 1, "{}", log.text());
    }
    let log = after(500, 2).await;
    assert_eq!(log.count("WARN stages_kube::failure_tracker: the watch broke and is begun again"), 1);
}

#[tokio::test]
async fn it_says_when_it_works_again() {
    let (log, _guard) = Log::start();
    let (feed, open) = stream();
    let mut open = Some(open);
    let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
        ("list", 0) => Answer::Status(403),
        ("list", _) => list(1, &[]),
        _ => open.take().unwrap_or(Answer::Hang),
    })
    .await;
    let mut run = Run::start(config(fake.address)).await;
    run.until(|note| note == SourceNote::Alive).await;
    feed.change("ADDED", &app("home", "a", "u1", 2));
    run.next().await;
    drop(feed);
    while fake.asked("watch").len() < 2 {
        tokio::task::yield_now().await;
    }
    run.finish().await.unwrap();
    assert_eq!(log.count("INFO stages_kube::failure_tracker: the watch works again failures=1"), 1);
}

#[tokio::test]
async fn nothing_of_an_answer_and_no_token_is_logged() {
    let (log, _guard) = Log::start();
    let secret = app("home", "a", "u1", 2).replace("\"spec\":{}", "\"spec\":{\"password\":\"hunter2\"}");
    let nameless = secret.replace("\"name\":\"a\"", "\"name\":{\"n\":\"hunter2\"}");
    let cut = format!(r#"{{"metadata":{{}},"items":[{secret},{{"token":"hunter2"#);
    let items = [secret.clone(), nameless.clone()];
    let (feed, open) = stream();
    let mut open = Some(open);
    let fake = Fake::start(move |asked| match (asked.kind(), asked.nth) {
        ("list", 0) => Answer::Raw(200, cut.clone()),
        ("list", 1) => Answer::Raw(500, r#"{"kind":"Status","code":500,"message":"hunter2"}"#.to_owned()),
        ("list", 2) => Answer::Raw(200, r#"{"metadata":"hunter2","items":[]}"#.to_owned()),
        ("list", _) => list(1, &items),
        _ => open.take().unwrap_or(Answer::Hang),
    })
    .await;
    let mut secretive = config(fake.address);
    if let stages_kube::Cluster::Server { token, .. } = &mut secretive.cluster {
        *token = Some("hunter2".into());
    }
    let mut run = Run::start(secretive).await;
    run.until(|note| note == SourceNote::Alive).await;
    feed.text("hunter2\n");
    feed.change("ADDED", &nameless);
    feed.change("hunter2", &secret);
    feed.change("ERROR", r#"{"code":500,"message":"hunter2"}"#);
    run.until(|note| note == SourceNote::Broken(Reason::ServerError)).await;
    assert_eq!(fake.asked("list")[0].headers["authorization"], "Bearer hunter2");
    run.finish().await.unwrap();
    assert!(log.count("cannot be read and was skipped") >= 3, "the log is taken down: {}", log.text());
    assert!(!log.text().contains("hunter2"), "{}", log.text());
}
