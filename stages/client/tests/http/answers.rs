//! Every way in which an answer can be bad, over real connections.

use std::io::Write as _;
use std::time::Duration;

use crate::support::{chain, client, get, host, serve};
use axum::http::header::{CONTENT_ENCODING, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{any, get as on_get};
use axum::{Router, extract::Path};
use pipeline_core::Reason;
use stages_client::{Config, Method, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

/// A server that reads a request's head, writes `answer` as it is, and closes.
async fn raw(answer: Vec<u8>) -> String {
    raw_then(answer, false).await
}

/// As [`raw`]; but with `hold` the connection stays open, and nothing more comes.
async fn raw_then(answer: Vec<u8>, hold: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            stream.write_all(&answer).await.unwrap();
            if hold {
                held.push(stream);
            } else {
                stream.shutdown().await.unwrap();
            }
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn statuses_are_classified() {
    let app = Router::new().route(
        "/thing",
        any(|headers: HeaderMap| async move {
            let status: u16 = headers.get("x-answer").unwrap().to_str().unwrap().parse().unwrap();
            StatusCode::from_u16(status).unwrap()
        }),
    );
    let address = serve(app).await;
    let client = client(&address, crate::support::config()).await;
    for (status, reason) in [
        (400, Reason::Refused),
        (401, Reason::Unauthorized),
        (403, Reason::Forbidden),
        (404, Reason::NotFound),
        (405, Reason::NotFound),
        (407, Reason::ServerError),
        (408, Reason::Timeout),
        (409, Reason::Refused),
        (413, Reason::Refused),
        (425, Reason::RateLimited),
        (429, Reason::RateLimited),
        (500, Reason::ServerError),
        (503, Reason::ServerError),
        (599, Reason::ServerError),
    ] {
        let request = client.request("read the thing", Method::GET, &["thing"]).unwrap();
        let request = request.header("x-answer", status.to_string());
        let reply = client.send("read the thing", request).await.unwrap();
        assert_eq!(reply.status(), status);
        let error = reply.into_body().unwrap_err();
        assert_eq!((error.reason(), error.status()), (reason, Some(status)));
        let host = host(&address);
        assert_eq!(error.to_string(), format!("cannot read the thing at {host}: it answered {status}"));
    }
}

#[tokio::test]
async fn a_whole_answer_is_given_compressed_or_not() {
    let app = Router::new().route("/thing", on_get(async || "whole")).route(
        "/small",
        on_get(async || {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(&vec![b'x'; 100_000]).unwrap();
            ([(CONTENT_ENCODING, "gzip")], gzip.finish().unwrap())
        }),
    );
    let address = serve(app).await;
    let client = client(&address, Config { max_body: 100_000, ..crate::support::config() }).await;
    assert_eq!(get(&client).await.unwrap().into_body().unwrap(), "whole");
    let request = || client.request("read the archive", Method::GET, &["small"]).unwrap();
    let body = client.send("read the archive", request()).await.unwrap().into_body().unwrap();
    assert_eq!(body.len(), 100_000);

    let tight =
        crate::support::client(&address, Config { max_body: 99_999, ..crate::support::config() }).await;
    let error = tight.send("read the archive", request()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::TooLarge);
    let host = host(&address);
    assert_eq!(
        error.to_string(),
        format!("cannot read the archive at {host}: its answer is larger than 99999 bytes")
    );
    // Whoever only wants the status gets it.
    assert_eq!(tight.deliver("send it", request()).await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_announced_length_over_the_limit_is_not_even_read() {
    let address = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec()).await;
    let client = client(&address, Config { max_body: 999, ..crate::support::config() }).await;
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.reason(), Reason::TooLarge);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let app = Router::new().route(
        "/{which}",
        on_get(async |Path(which): Path<String>| {
            let to = match which.as_str() {
                "thing" => "https://me:canary@other.example:8443/canary?token=canary",
                "same" => "/login?canary",
                _ => return StatusCode::NOT_MODIFIED.into_response(),
            };
            (StatusCode::FOUND, [(LOCATION, to)]).into_response()
        }),
    );
    let address = serve(app).await;
    let client = client(&address, crate::support::config()).await;
    let at = host(&address);
    for (path, told) in [
        ("thing", "it answered 302, a redirect to other.example:8443, which is not followed".to_owned()),
        ("same", format!("it answered 302, a redirect to {at}, which is not followed")),
        ("bare", "it answered 304, a redirect, which is not followed".to_owned()),
    ] {
        let request = client.request("read the thing", Method::GET, &[path]).unwrap();
        let error = client.send("read the thing", request).await.unwrap().into_body().unwrap_err();
        assert_eq!(error.reason(), Reason::Redirect);
        assert_eq!(error.to_string(), format!("cannot read the thing at {at}: {told}"));
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_cut_short() {
    let mut archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    archive.write_all(&[b'x'; 1000]).unwrap();
    let mut archive = archive.finish().unwrap();
    archive.truncate(500);
    let mut zipped = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n".to_vec();
    zipped.extend(archive);
    for answer in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".to_vec(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n".to_vec(),
        zipped,
    ] {
        let address = raw(answer).await;
        let client = client(&address, crate::support::config()).await;
        let error = get(&client).await.unwrap_err();
        assert_eq!(error.reason(), Reason::CutShort, "{:?}", chain(&error));
        let host = host(&address);
        assert_eq!(
            error.to_string(),
            format!("cannot read the thing at {host}: its answer ended before its end")
        );
        let request = client.request("send it", Method::GET, &["thing"]).unwrap();
        assert_eq!(client.deliver("send it", request).await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_body_that_is_no_gzip_is_malformed() {
    let address = raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 30\r\n\r\nthis is no archive, not at all!".to_vec()).await;
    let client = client(&address, crate::support::config()).await;
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Malformed, "{:?}", chain(&error));
    let host = host(&address);
    assert_eq!(
        error.to_string(),
        format!("cannot read the thing at {host}: its answer is not what its encoding says")
    );
}

#[tokio::test]
async fn a_connection_that_fails_is_unreachable() {
    // A port that is taken and does not listen, and one whose owner hangs up without an answer.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = format!("http://{}", taken.local_addr().unwrap());
    for address in [closed, raw(Vec::new()).await] {
        let client = client(&address, crate::support::config()).await;
        let error = get(&client).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Unreachable, "{:?}", chain(&error));
        let host = host(&address);
        assert_eq!(error.to_string(), format!("cannot read the thing at {host}: the connection failed"));
        assert!(chain(&error).iter().all(|text| !text.contains("/thing")), "{:?}", chain(&error));
    }
}

#[tokio::test]
async fn silence_times_out_before_and_within_the_body() {
    // Accepts by the kernel alone, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let stalling = raw_then(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun".to_vec(), true).await;
    for address in [silent, stalling] {
        let config = Config { timeout: Duration::from_millis(200), ..crate::support::config() };
        let client = client(&address, config).await;
        let error = get(&client).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Timeout, "{:?}", chain(&error));
        let host = host(&address);
        assert_eq!(error.to_string(), format!("cannot read the thing at {host}: no answer in time"));
    }
}

#[tokio::test]
async fn retry_after_travels_with_the_answer_and_the_error() {
    let app = Router::new().route(
        "/thing",
        on_get(async || (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "7")], "peer's own text")),
    );
    let client = client(&serve(app).await, crate::support::config()).await;
    let reply = get(&client).await.unwrap();
    assert_eq!((reply.after(), &reply.body()[..]), (Some(Duration::from_secs(7)), &b"peer's own text"[..]));
    assert_eq!(format!("{reply:?}"), "Reply { status: 429, .. }");
    let error = reply.into_body().unwrap_err();
    assert_eq!(error.after(), Some(Duration::from_secs(7)));
    let pipeline_core::StageError::Retry { reason, after, source } = error.into_retry() else {
        panic!("not a retry")
    };
    assert_eq!((reason, after), (Reason::RateLimited, Some(Duration::from_secs(7))));
    assert!(!source.to_string().contains("peer's own text"));
}

#[tokio::test]
async fn an_answer_that_would_be_read_as_it_comes_is_refused_with_all_that_its_head_says() {
    let app = Router::new()
        .route("/late", on_get(async || (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "7")], "later")))
        .route("/moved", on_get(async || (StatusCode::FOUND, [(LOCATION, "https://other.example/canary")])));
    let address = serve(app).await;
    let client = client(&address, crate::support::config()).await;
    let refused = async |path| {
        let request = client.request("follow the thing", Method::GET, &[path]).unwrap();
        client.open("follow the thing", request).await.unwrap().unwrap_err()
    };
    let late = refused("late").await;
    assert_eq!((late.after(), &late.body()[..]), (Some(Duration::from_secs(7)), &b"later"[..]));
    assert_eq!(late.into_body().unwrap_err().after(), Some(Duration::from_secs(7)));
    let host = host(&address);
    assert_eq!(
        refused("moved").await.into_body().unwrap_err().to_string(),
        format!(
            "cannot follow the thing at {host}: it answered 302, a redirect to other.example, which is not followed"
        )
    );
}

#[tokio::test]
async fn the_token_the_agent_and_the_escaped_path_arrive() {
    let app = Router::new().fallback(async |uri: axum::http::Uri, headers: HeaderMap| {
        format!("{} {:?} {:?}", uri, headers.get("authorization"), headers.get("user-agent"))
    });
    let client = client(&serve(app).await, crate::support::config()).await;
    let request = client.request("ask", Method::GET, &["a/b", "c d"]).unwrap();
    let request = client.authorize("ask", request, &Token::literal("secret"), "Bearer ").await.unwrap();
    let body = client.send("ask", request).await.unwrap().into_body().unwrap();
    let agent = concat!("gitops-runtime/", env!("CARGO_PKG_VERSION"));
    assert_eq!(body, format!("/a%2Fb/c%20d Some(\"Bearer secret\") Some({agent:?})"));

    let error = client.request("ask", Method::GET, &[".."]).unwrap_err();
    let host = client.host();
    assert_eq!(
        error.to_string(),
        format!("cannot ask at {host}: an empty path segment, `.` and `..` cannot be addressed")
    );
    let request = client.request_escaped("ask", Method::GET, "/a%2Fb?c=%26").unwrap();
    let error = client.authorize("ask", request, &Token::literal("two\nlines"), "").await.unwrap_err();
    assert_eq!(error.reason(), Reason::Unauthorized);
    assert_eq!(
        error.to_string(),
        format!("cannot ask at {host}: the token holds characters that no header may hold")
    );
}
