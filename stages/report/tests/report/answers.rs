//! What becomes of a report by what the platform answers, or does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::post;
use pipeline_core::{Reason, Sink as _, StageError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{host, platform, serve, ship, shipment};

/// A platform that answers with whatever status stands there.
async fn answering(status: u16) -> (String, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(status));
    let now = status.clone();
    let answer = move || async move {
        // A body that a careless client would log or keep.
        (StatusCode::from_u16(now.load(Ordering::Relaxed)).unwrap(), "canary-of-the-platform".repeat(10_000))
    };
    (serve(Router::new().route("/2.0/api/events", post(answer))).await, status)
}

fn shown(error: &StageError) -> (bool, Reason, String) {
    (error.is_retry(), error.reason(), error.to_string())
}

#[tokio::test]
async fn every_success_is_one() {
    for status in [200, 201, 202, 204, 207] {
        let (address, _) = answering(status).await;
        ship(&platform(&address, |_| {}).await).await.unwrap();
    }
}

#[tokio::test]
async fn statuses_retry_or_reject() {
    for (status, retry, reason) in [
        (400, false, Reason::Refused),
        (401, true, Reason::Unauthorized),
        (402, false, Reason::Refused),
        (403, true, Reason::Forbidden),
        (404, true, Reason::NotFound),
        (405, true, Reason::NotFound),
        (407, true, Reason::ServerError),
        (408, true, Reason::Timeout),
        (409, false, Reason::Refused),
        (410, false, Reason::Refused),
        (412, false, Reason::Refused),
        (413, false, Reason::Refused),
        (415, false, Reason::Refused),
        (421, true, Reason::ServerError),
        (422, false, Reason::Refused),
        (425, true, Reason::RateLimited),
        (429, true, Reason::RateLimited),
        (499, true, Reason::ServerError),
        (500, true, Reason::ServerError),
        (501, true, Reason::ServerError),
        (502, true, Reason::ServerError),
        (503, true, Reason::ServerError),
        (504, true, Reason::ServerError),
    ] {
        let (address, _) = answering(status).await;
        let error = ship(&platform(&address, |_| {}).await).await.unwrap_err();
        let host = host(&address);
        let message = format!("cannot send a report at {host}: it answered {status}");
        assert_eq!(shown(&error), (retry, reason, message));
    }
}

#[tokio::test]
async fn an_outdated_owner_is_told_to_retry_and_nothing_is_parked() {
    let (address, status) = answering(412).await;
    let sink = platform(&address, |_| {}).await;
    let message = format!("cannot send a report at {}: it answered 412", host(&address));
    let owned = [shipment("{}", 0).with_epoch(Some(7))];
    for taken_before in [false, true] {
        let [Err(error)] = &sink.ship(&owned).await[..] else { panic!("a lower epoch was taken") };
        assert_eq!(shown(error), (true, Reason::Refused, message.clone()), "{taken_before}");
        status.store(200, Ordering::Relaxed);
        ship(&sink).await.unwrap();
        status.store(412, Ordering::Relaxed);
    }
    // Without an epoch the status is one of any other refusal.
    assert_eq!(shown(&ship(&sink).await.unwrap_err()), (false, Reason::Refused, message));
}

#[tokio::test]
async fn not_found_means_the_address_until_a_first_success() {
    for missing in [404, 405] {
        let (address, status) = answering(missing).await;
        let sink = platform(&address, |_| {}).await;
        assert!(ship(&sink).await.unwrap_err().is_retry());
        status.store(503, Ordering::Relaxed);
        assert!(ship(&sink).await.unwrap_err().is_retry());
        status.store(missing, Ordering::Relaxed);
        assert!(ship(&sink).await.unwrap_err().is_retry(), "a failure is no success");
        status.store(200, Ordering::Relaxed);
        ship(&sink).await.unwrap();
        status.store(missing, Ordering::Relaxed);
        let error = ship(&sink).await.unwrap_err();
        assert_eq!((error.is_retry(), error.reason()), (false, Reason::NotFound));
    }
}

#[tokio::test]
async fn the_time_to_wait_is_passed_on() {
    let answer = || async { (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "17")]) };
    let address = serve(Router::new().route("/2.0/api/events", post(answer))).await;
    let error = ship(&platform(&address, |_| {}).await).await.unwrap_err();
    assert!(
        matches!(error, StageError::Retry { after: Some(after), reason: Reason::RateLimited, .. } if after == Duration::from_secs(17)),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_time_to_wait_may_be_a_date_and_is_a_day_at_most() {
    let hours = |hours: i64| {
        let date = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
        date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    for (status, value, least, most) in [
        (503, hours(2), 7_190, 7_200),
        (425, hours(72), 86_400, 86_400),
        (408, "7200".to_owned(), 7_200, 7_200),
        (429, "86400000".to_owned(), 86_400, 86_400),
        (500, hours(-1), 0, 0),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = move || async move { (status, [(header::RETRY_AFTER, value)]) };
        let address = serve(Router::new().route("/2.0/api/events", post(answer))).await;
        let error = ship(&platform(&address, |_| {}).await).await.unwrap_err();
        let StageError::Retry { after: Some(after), .. } = error else { panic!("{error:?}") };
        assert!((least..=most).contains(&after.as_secs()), "{status} {after:?}");
    }
}

/// Reads a request to its end, answers `answer`, and closes.
async fn answers_and_closes(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = tokio::io::BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).await.unwrap() > 2 {
                let number = line.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse());
                length = number.map_or(length, Result::unwrap);
                line.clear();
            }
            stream.read_exact(&mut vec![0; length]).await.unwrap();
            stream.get_mut().write_all(answer.as_bytes()).await.unwrap();
            stream.get_mut().shutdown().await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn only_the_whole_head_of_a_success_is_one() {
    for cut in ["", "HTTP/1.1 ", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"] {
        let address = answers_and_closes(cut).await;
        let error = ship(&platform(&address, |_| {}).await).await.unwrap_err();
        let message = format!("cannot send a report at {}: the connection failed", host(&address));
        assert_eq!(shown(&error), (true, Reason::Unreachable, message), "{cut:?}");
    }
    for whole in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"half\":",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        ship(&platform(&answers_and_closes(whole).await, |_| {}).await).await.unwrap();
    }
    // A refusal is one by its head as well.
    let address = answers_and_closes("HTTP/1.1 422 No\r\nContent-Length: 20\r\n\r\n{").await;
    assert!(!ship(&platform(&address, |_| {}).await).await.unwrap_err().is_retry());
}

#[tokio::test]
async fn a_success_stands_whatever_becomes_of_its_body() {
    let endless = || async {
        Body::from_stream(futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(9_999))))
    };
    let address =
        serve(Router::new().route("/2.0/api/events", post(async move || endless().await.into_response())))
            .await;
    ship(&platform(&address, |_| {}).await).await.unwrap();
}

/// Answers each request with `head` and nothing more; tells when the other side has closed.
async fn hangs_after(head: &'static str) -> (String, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (closed, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let closed = closed.clone();
            tokio::spawn(async move {
                let mut some = [0; 4096];
                let _read = stream.read(&mut some).await.unwrap();
                stream.write_all(head.as_bytes()).await.unwrap();
                while stream.read(&mut some).await.is_ok_and(|read| read > 0) {}
                closed.send(()).unwrap();
            });
        }
    });
    (address, told)
}

#[tokio::test]
async fn an_answer_stands_by_its_head_and_its_body_may_hang() {
    // Nobody waits so long for a body: the test ends by the condition, not by this limit.
    let patient =
        |config: &mut stages_report::platform::Config| config.http.timeout = Duration::from_secs(3_600);
    for body in [
        "Content-Length: 20\r\n\r\n",
        "Content-Length: 20\r\n\r\n{\"half\":",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ] {
        for (status, taken) in [("200 OK", true), ("202 Accepted", true), ("422 No", false)] {
            let head = format!("HTTP/1.1 {status}\r\n{body}").leak();
            let (address, mut closed) = hangs_after(head).await;
            let sink = platform(&address, patient).await;
            let answer = tokio::time::timeout(Duration::from_secs(60), ship(&sink)).await;
            let answer = answer.unwrap_or_else(|_| panic!("the body was waited for: {head:?}"));
            assert_eq!(
                answer.as_ref().map_err(StageError::is_retry),
                if taken { Ok(&()) } else { Err(false) },
                "{head:?}"
            );
            // The connection is of no use any more, and is not kept.
            tokio::time::timeout(Duration::from_secs(60), closed.recv()).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_read_retries() {
    let (address, _) = answering(200).await;
    let sink = platform(&address, |config| config.token = stages_client::Token::file("/no/such/token")).await;
    let message =
        format!("cannot send a report at {}: cannot read the token file /no/such/token", host(&address));
    assert_eq!(shown(&ship(&sink).await.unwrap_err()), (true, Reason::Unauthorized, message));
}
