//! One object by name.

use pipeline_core::{Cause, Key, Outcome, Reason, Source as _, Version};

use crate::fake::{Answer, Fake, HOME, app};
use crate::harness::{brief, build, config};
use stages_kube::labels;

fn key(name: &str) -> Key {
    Key::new("home", name).unwrap()
}

#[tokio::test]
async fn reads_an_object_not_older_than_asked() {
    let object = app("home", "a", "u1", 42);
    let sent = object.clone();
    let fake = Fake::start(move |_| Answer::Json(sent.clone())).await;
    let (watch, seen, samples) = build(config(fake.address)).await;
    let event = watch.read(&key("a"), Version(40)).await.unwrap().unwrap();
    assert_eq!((brief(&event).as_str(), event.cause), ("home/a u1 42", Cause::Read));
    assert_eq!(event.body().unwrap(), object.as_bytes());
    watch.read(&key("a"), Version(0)).await.unwrap().unwrap();
    let asked = fake.asked("get");
    assert_eq!(asked[0].path, format!("{HOME}/a"));
    assert_eq!([asked[0].get("resourceVersion"), asked[1].get("resourceVersion")], [Some("40"), None]);
    let noted = Some(("u1".into(), Version(0)));
    assert_eq!(seen.get(&key("a")), noted, "that it is there; in which state only the watch says");
    let sample = samples.0.lock().unwrap()[0];
    assert_eq!((sample.call, sample.outcome), (labels::GET, Outcome::Ok));
}

#[tokio::test]
async fn a_name_is_escaped() {
    let fake = Fake::start(|_| Answer::Status(404)).await;
    let (watch, _, _) = build(config(fake.address)).await;
    assert_eq!(watch.read(&key("a b?x=1#ü"), Version(1)).await.unwrap(), None);
    assert_eq!(fake.asked("get")[0].path, format!("{HOME}/a%20b%3Fx%3D1%23%C3%BC"));
}

#[tokio::test]
async fn an_object_that_is_not_there_is_gone_only_when_the_api_server_says_so() {
    let fake = Fake::start(|asked| match asked.nth {
        0 => Answer::Status(404),
        _ => Answer::Raw(404, "404 page not found\n".to_owned()),
    })
    .await;
    let (watch, _, samples) = build(config(fake.address)).await;
    assert_eq!(watch.read(&key("a"), Version(1)).await.unwrap(), None);
    assert_eq!(samples.0.lock().unwrap()[0].outcome, Outcome::Ok);
    let error = watch.read(&key("a"), Version(1)).await.unwrap_err();
    assert_eq!((error.reason(), error.is_retry()), (Reason::NotFound, true));
    assert_eq!(error.to_string(), "get widget: the api server answered 404");
}

#[tokio::test]
async fn every_refusal_says_what_failed_and_whether_to_try_again() {
    let secret =
        r#"{"metadata":{"name":"b","namespace":"home","uid":"u","resourceVersion":"1"},"x":"hunter2"}"#;
    let answers = [
        (Answer::Status(504), Reason::Timeout, true, "get widget: the api server answered 504"),
        (Answer::Status(500), Reason::ServerError, true, "get widget: the api server answered 500"),
        (Answer::Status(403), Reason::Forbidden, true, "get widget: the api server answered 403"),
        (Answer::Status(401), Reason::Unauthorized, true, "get widget: the api server answered 401"),
        (Answer::Status(400), Reason::Refused, false, "get widget: the api server answered 400"),
        (Answer::Status(307), Reason::Redirect, false, "get widget: the api server answered 307"),
        (Answer::Raw(200, "{\"x\":".into()), Reason::Malformed, true, "get widget: the answer is not json"),
        (Answer::Raw(200, "{}".into()), Reason::Malformed, false, "get widget: the object has no identity"),
        (
            Answer::Raw(200, secret.into()),
            Reason::Malformed,
            false,
            "get widget: the answer is another object",
        ),
        (
            Answer::Raw(200, "x".repeat(3_000)),
            Reason::TooLarge,
            false,
            "get widget: the answer is larger than 2000 bytes",
        ),
        (Answer::Hang, Reason::Timeout, true, "get widget: the api server did not answer in time"),
    ];
    for (answer, reason, retry, message) in answers {
        let mut answer = Some(answer);
        let fake = Fake::start(move |_| answer.take().unwrap()).await;
        let mut bounded = config(fake.address);
        bounded.max_body = 2_000;
        bounded.call_timeout = std::time::Duration::from_secs(2);
        let (watch, _, samples) = build(bounded).await;
        let error = watch.read(&key("a"), Version(1)).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.reason(), error.is_retry()), (message, reason, retry));
        assert!(!format!("{error:?}").contains("hunter2"));
        assert_eq!(samples.0.lock().unwrap().len(), 1, "one request, no retry of its own");
    }
}

#[tokio::test]
async fn the_servers_wish_to_wait_is_passed_on() {
    let fake = Fake::start(|_| Answer::RetryAfter(429, 7)).await;
    let (watch, _, _) = build(config(fake.address)).await;
    let error = watch.read(&key("a"), Version(1)).await.unwrap_err();
    let pipeline_core::StageError::Retry { reason, after, .. } = error else { panic!("{error}") };
    assert_eq!((reason, after), (Reason::RateLimited, Some(std::time::Duration::from_secs(7))));
}

#[tokio::test]
async fn a_body_cut_short_and_a_server_that_is_not_there_are_retried() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"metadata\":";
        tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
    });
    let (watch, _, _) = build(config(address)).await;
    let error = watch.read(&key("a"), Version(1)).await.unwrap_err();
    server.await.unwrap();
    assert_eq!(
        (error.to_string().as_str(), error.is_retry()),
        ("get widget: the answer ended before its end", true)
    );

    // Bound, so that nobody else is given the port, and not listening.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nobody = taken.local_addr().unwrap();
    let (watch, _, samples) = build(config(nobody)).await;
    let error = watch.read(&key("a"), Version(1)).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.reason()),
        ("get widget: the connection failed", Reason::Unreachable)
    );
    assert_eq!(samples.0.lock().unwrap()[0].outcome, Outcome::Failed(Reason::Unreachable));
}
