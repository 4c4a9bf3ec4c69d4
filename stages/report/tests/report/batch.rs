//! Several reports in a request: what is sent, what each answer means, and that nothing waits in vain.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use futures::future::join_all;
use pipeline_core::{Outcome, Peer, Reason, Shipment, Sink as _, StageError, Version};
use serde_json::json;
use stages_report::labels;
use stages_report::platform::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use self::receiver::{Receiver, at_once, list, ok};
use crate::support::{Remembering, host, platform, shipment, unzipped};

mod given_up;
mod receiver;

const PATH: &str = "/2.0/api/events/batch";
const SOON: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::from_secs(3_600);

fn shipments(count: u32) -> Vec<Shipment> {
    (0..count).map(|n| shipment(&format!("{{\"n\":{n}}}"), n)).collect()
}

fn key(shipment: &Shipment) -> String {
    shipment.idempotency_key.to_string()
}

/// `ok`, or what becomes of a report, why, and when.
fn said(answers: &[Result<(), StageError>]) -> Vec<String> {
    let one = |answer: &Result<(), StageError>| match answer {
        Ok(()) => "ok".to_owned(),
        Err(StageError::Retry { reason, after, .. }) => format!("retry {} {after:?}", reason.as_str()),
        Err(StageError::Reject { reason, .. }) => format!("reject {}", reason.as_str()),
    };
    answers.iter().map(one).collect()
}

#[tokio::test]
async fn each_report_of_a_batch_has_its_own_answer_and_the_wire_is_as_described() {
    let answer = json!({"results": [
        {"status": 200}, {"status": 503, "retryAfter": 7, "why": "busy"}, {"status": 400}, {"status": 201},
        {"status": 429}, {"status": 404}, {"status": 401}, {"status": 302},
    ]})
    .to_string();
    let receiver = Receiver::new(move |_, _, _| at_once(answer.clone().into_response())).await;
    let meter = Arc::new(Remembering::default());
    let config =
        Config { batch: Some(crate::support::batch(PATH)), ..crate::support::config(&receiver.address, "t") };
    let sink = config.build(meter.clone()).await.unwrap();
    let mut shipments = shipments(8);
    shipments[1].report.trace = 0;
    shipments[2].report.body = Bytes::from_static(b"{ \"canary\": 1,\n\"b\":\"\\u003c\" , \"b\": 2 }");
    let answers = sink.ship(&shipments).await;
    assert_eq!(
        said(&answers),
        [
            "ok",
            "retry server_error Some(7s)",
            "reject refused",
            "ok",
            "retry rate_limited None",
            "reject not_found",
            "retry unauthorized None",
            "retry redirect None",
        ]
    );
    let refused = answers[2].as_ref().unwrap_err().to_string();
    let host = host(&receiver.address);
    assert_eq!(
        refused,
        format!("cannot send a report at {host}: it answered 400"),
        "or it holds more than it may"
    );

    let (headers, body) = receiver.requests.lock().unwrap().remove(0);
    let body = unzipped(&body);
    let member = |shipment: &Shipment, payload: &str| {
        let trace = stages_report::traceparent(shipment);
        let trace = trace.map_or_else(String::new, |trace| format!("\"traceparent\":\"{trace}\","));
        format!("{{\"idempotencyKey\":\"{}\",{trace}\"data\":{payload}}}", shipment.idempotency_key)
    };
    let members: Vec<String> = shipments
        .iter()
        .map(|shipment| member(shipment, std::str::from_utf8(&shipment.report.body).unwrap()))
        .collect();
    assert_eq!(body, format!("{{\"reports\":[{}]}}", members.join(",")), "the payloads are not as they were");
    assert!(body.matches("traceparent").count() == 7);
    for (name, value) in
        [("authorization", "t"), ("content-encoding", "gzip"), ("content-type", "application/json")]
    {
        assert_eq!(headers[name], value);
    }
    assert!(!headers.contains_key("idempotency-key") && !headers.contains_key("traceparent"));

    let samples = meter.0.lock().unwrap();
    assert_eq!(samples.len(), 8, "each report is counted, and not each request");
    assert!(
        samples.iter().all(|sample| sample.call.peer() == Peer::PLATFORM && sample.call == labels::REPORT)
    );
    assert_eq!(samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count(), 2);
}

#[tokio::test]
async fn each_report_of_a_batch_says_its_own_epoch_and_may_be_outdated_by_itself() {
    let results: Vec<_> = [412, 200, 412].map(|status| json!({ "status": status })).into();
    let answer = json!({ "results": results }).to_string();
    let receiver = Receiver::new(move |_, _, _| at_once(answer.clone().into_response())).await;
    let sink = receiver.sink(|_| {}).await;
    let epochs = [Some(3), Some(9), None];
    let shipments: Vec<Shipment> =
        shipments(3).into_iter().zip(epochs).map(|(shipment, epoch)| shipment.with_epoch(epoch)).collect();
    assert_eq!(said(&sink.ship(&shipments).await), ["retry refused None", "ok", "reject refused"]);
    let (headers, body) = receiver.requests.lock().unwrap().remove(0);
    assert!(!headers.contains_key("fencing-epoch"), "no epoch is that of all");
    let sent: serde_json::Value = serde_json::from_str(&unzipped(&body)).unwrap();
    let sent = sent["reports"].as_array().unwrap().iter().map(|report| report.get("fencingEpoch").cloned());
    assert_eq!(sent.collect::<Vec<_>>(), epochs.map(|epoch| epoch.map(|epoch| json!(epoch))));
}

#[tokio::test]
async fn each_report_of_a_batch_says_the_era_of_its_cluster() {
    let receiver = Receiver::of(200).await;
    let sink = receiver.sink(|_| {}).await;
    let mut shipments = shipments(2);
    shipments[1].report.version = Version(7).in_era(2);
    sink.ship(&shipments).await;
    let (_, body) = receiver.requests.lock().unwrap().remove(0);
    let sent: serde_json::Value = serde_json::from_str(&unzipped(&body)).unwrap();
    let eras = sent["reports"].as_array().unwrap().iter().map(|report| report.get("clusterEra").cloned());
    assert_eq!(eras.collect::<Vec<_>>(), [None, Some(json!(2))]);
}

#[tokio::test]
async fn a_report_alone_is_sent_as_ever_and_waits_for_nobody() {
    let receiver = Receiver::of(200).await;
    let sink = receiver.sink(|_| {}).await;
    for shipment in shipments(3) {
        let answers = timeout(SOON, sink.ship(&[shipment])).await.expect("it waits for others in vain");
        assert_eq!(said(&answers), ["ok"]);
    }
    assert_eq!(receiver.sizes(), [0, 0, 0]);
}

#[tokio::test]
async fn what_comes_while_a_request_is_under_way_shares_the_next_one() {
    let receiver = Receiver::of(200).await;
    let sink = receiver.sink(|_| {}).await;
    let shipments = shipments(10);
    let all = join_all(shipments.iter().map(|shipment| sink.ship(std::slice::from_ref(shipment))));
    let answers = timeout(SOON, all).await.expect("they wait although no request is under way");
    assert!(answers.iter().all(|answers| said(answers) == ["ok"]));
    let keys: Vec<String> = shipments.iter().map(key).collect();
    assert_eq!(receiver.keys(), [(false, keys[..1].to_vec()), (true, keys[1..].to_vec())]);
}

#[tokio::test]
async fn who_waits_long_enough_is_sent_beside_a_request_that_hangs() {
    let go = Arc::new(Notify::new());
    let going = go.clone();
    let receiver = Receiver::new(move |n, batch, keys| {
        let going = going.clone();
        Box::pin(async move {
            if n == 0 {
                going.notified().await;
            }
            if batch { list(&vec![200; keys.len()]) } else { ok() }
        })
    })
    .await;
    let sink = receiver.sink(|batch| batch.linger = Duration::from_millis(5)).await;
    let shipments = shipments(4);
    let others = async {
        let rest = shipments[1..].iter().map(|shipment| sink.ship(std::slice::from_ref(shipment)));
        let answers = timeout(SOON, join_all(rest)).await.expect("they wait for one that hangs");
        go.notify_one();
        answers
    };
    let (first, rest) = futures::join!(sink.ship(&shipments[..1]), others);
    assert_eq!(said(&first), ["ok"]);
    assert!(rest.iter().all(|answers| said(answers) == ["ok"]));
    let sent: usize = receiver.keys().iter().map(|(_, keys)| keys.len()).sum();
    assert_eq!(sent, 4);
}

#[tokio::test]
async fn batches_are_bounded_in_reports_and_bytes() {
    let receiver = Receiver::of(200).await;
    let sink = receiver.sink(|batch| batch.reports = 3).await;
    assert_eq!(said(&sink.ship(&shipments(7)).await), ["ok"; 7]);
    assert_eq!(receiver.sizes(), [3, 3, 0]);

    let receiver = Receiver::of(200).await;
    let sink = receiver.sink(|batch| batch.bytes = 100).await;
    let sizes = [40, 40, 20, 30, 200, 60, 41, 99];
    let shipments: Vec<Shipment> = sizes
        .iter()
        .zip(0..)
        .map(|(size, n)| shipment(&format!("\"{}\"", "x".repeat(size - 2)), n))
        .collect();
    assert_eq!(said(&sink.ship(&shipments).await), ["ok"; 8]);
    assert_eq!(receiver.sizes(), [3, 0, 0, 0, 0, 0], "40+40+20, 30, 200 alone, 60, 41, 99");
}

#[tokio::test]
async fn an_answer_that_is_no_such_list_leaves_every_report_unacknowledged() {
    for answer in [
        "",
        "{}",
        "[]",
        "<html>",
        r#"{"results":[{"status":200}]}"#,
        r#"{"results":[{"status":200},{"status":200},{"status":200}]}"#,
        r#"{"results":[{"status":200},{"status":99}]}"#,
        r#"{"results":[{"status":200},{"status":1000}]}"#,
        r#"{"results":[{"status":200},{"status":"200"}]}"#,
        r#"{"results":[{"status":200},{}]}"#,
        r#"{"results":[{"status":200},{"status":200,"retryAfter":-1}]}"#,
    ] {
        let receiver = Receiver::new(move |_, _, _| at_once(answer.into_response())).await;
        let sink = receiver.sink(|_| {}).await;
        let answers = sink.ship(&shipments(2)).await;
        assert_eq!(said(&answers), ["retry malformed None"; 2], "{answer}");
        let text = answers[1].as_ref().unwrap_err().to_string();
        let host = host(&receiver.address);
        let begin =
            format!("cannot send a batch of reports at {host}: its answer is not the JSON that was expected");
        assert!(text.starts_with(&begin) && !text.contains("results"), "{answer}: {text}");
    }
}

#[tokio::test]
async fn an_answer_has_room_for_4_kib_a_report_and_4_kib_more() {
    for (more, expected) in [(0, "ok"), (1, "retry too_large None")] {
        let receiver = Receiver::new(move |_, _, keys| {
            let results: Vec<_> = keys.iter().map(|_| json!({"status": 200, "why": ""})).collect();
            let short = json!({"results": results}).to_string();
            let why = "x".repeat((1 + keys.len()) * 4096 + more - short.len());
            at_once(short.replacen("\"why\":\"", &format!("\"why\":\"{why}"), 1).into_response())
        })
        .await;
        let sink = receiver.sink(|_| {}).await;
        assert_eq!(said(&sink.ship(&shipments(3)).await), [expected; 3], "{more}");
        assert_eq!(receiver.sizes(), [3]);
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_is_none_and_the_same_keys_come_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let cutting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // The request is here once its beginning is: it is small, and comes at once.
        let mut begun = [0; 64];
        stream.read_exact(&mut begun).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 45\r\n\r\n";
        stream.write_all(format!("{head}{{\"results\":[{{\"status\":200}},").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // What it sent is read before the connection ends, so that it ends in order.
        let mut rest = Vec::new();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut rest).await;
    });
    let batch = Some(crate::support::batch(PATH));
    let sink = platform(&address, |config| config.batch.clone_from(&batch)).await;
    let shipments = shipments(2);
    assert_eq!(said(&sink.ship(&shipments).await), ["retry cut_short None"; 2]);
    drop(sink);
    cutting.await.unwrap();

    // As after a kill: another process, the same keys.
    let receiver = Receiver::of(200).await;
    let again = receiver.sink(|_| {}).await;
    assert_eq!(said(&again.ship(&shipments).await), ["ok"; 2]);
    assert_eq!(receiver.keys(), [(true, shipments.iter().map(key).collect::<Vec<_>>())]);
}

#[tokio::test]
async fn a_platform_that_knows_no_batches_gets_one_report_a_request_from_then_on() {
    for status in [404, 405, 415] {
        let receiver = Receiver::new(move |_, batch, _| {
            let status = StatusCode::from_u16(status).unwrap();
            at_once(if batch { status.into_response() } else { ok() })
        })
        .await;
        let sink = receiver.sink(|_| {}).await;
        assert_eq!(said(&sink.ship(&shipments(3)).await), ["ok"; 3], "{status}");
        assert_eq!(receiver.sizes(), [3, 0, 0, 0], "{status}");
        assert_eq!(said(&sink.ship(&shipments(3)).await), ["ok"; 3], "{status}");
        assert_eq!(receiver.sizes(), [3, 0, 0, 0, 0, 0, 0], "{status}");
    }
}

#[tokio::test]
async fn a_batch_that_is_refused_does_not_refuse_its_reports() {
    // The first batch is taken, the second is too large for the platform of now, the third is taken.
    for status in [413, 400, 404] {
        let receiver = Receiver::new(move |n, batch, keys| {
            let refused = StatusCode::from_u16(status).unwrap();
            at_once(match (n, batch) {
                (1, true) => refused.into_response(),
                (_, true) => list(&vec![200; keys.len()]),
                (3, false) => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
                (_, false) => ok(),
            })
        })
        .await;
        // One at a time, so that it is known which is the third request.
        let mut config = crate::support::config(&receiver.address, "t");
        config.batch = Some(crate::support::batch(PATH));
        config.concurrency = 1;
        let sink = config.build(Arc::new(pipeline_core::NoMeter)).await.unwrap();
        assert_eq!(said(&sink.ship(&shipments(2)).await), ["ok"; 2]);
        assert_eq!(said(&sink.ship(&shipments(3)).await), ["ok", "reject refused", "ok"], "{status}");
        assert_eq!(said(&sink.ship(&shipments(2)).await), ["ok"; 2]);
        assert_eq!(receiver.sizes(), [2, 3, 0, 0, 0, 2], "{status}");
    }
}

#[tokio::test]
async fn a_platform_in_trouble_gets_every_report_again_later() {
    for (status, reason) in [
        (503, Reason::ServerError),
        (429, Reason::RateLimited),
        (401, Reason::Unauthorized),
        (403, Reason::Forbidden),
        (407, Reason::ServerError),
        (408, Reason::Timeout),
        (302, Reason::Redirect),
    ] {
        let receiver = Receiver::new(move |_, _, _| {
            let status = StatusCode::from_u16(status).unwrap();
            at_once((status, [("retry-after", "9")]).into_response())
        })
        .await;
        let sink = receiver.sink(|_| {}).await;
        let answers = sink.ship(&shipments(2)).await;
        assert_eq!(said(&answers), vec![format!("retry {} Some(9s)", reason.as_str()); 2]);
        assert_eq!(receiver.sizes(), [2], "{status}");
    }
}

#[tokio::test]
async fn who_is_given_up_while_it_sends_for_others_holds_them_up_no_longer() {
    let (come, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (coming, going) = (come.clone(), go.clone());
    let receiver = Receiver::new(move |n, batch, keys| {
        let (coming, going) = (coming.clone(), going.clone());
        Box::pin(async move {
            if n == 0 {
                coming.notify_one();
                going.notified().await;
            } else if batch && keys.len() == 2 {
                coming.notify_one();
                std::future::pending::<()>().await;
            }
            if batch { list(&vec![200; keys.len()]) } else { ok() }
        })
    })
    .await;
    let sink = Arc::new(receiver.sink(|_| {}).await);
    let shipments = shipments(3);
    let mut tasks = Vec::new();
    for shipment in &shipments {
        let (sink, shipment) = (sink.clone(), shipment.clone());
        tasks.push(tokio::spawn(async move { sink.ship(&[shipment]).await }));
        // In this runtime's one thread it goes as far as it can: the first sends, the others wait for it.
        tokio::task::yield_now().await;
    }
    timeout(SOON, come.notified()).await.expect("the first is not sent");
    go.notify_one();
    timeout(SOON, come.notified()).await.expect("the other two are not sent");
    // The one that came first sends for both.
    tasks[1].abort();
    let answers = timeout(SOON, tasks.remove(2)).await.expect("the last one waits for ever").unwrap();
    assert_eq!(said(&answers), ["ok"]);
    let keys: Vec<String> = shipments.iter().map(key).collect();
    assert_eq!(
        receiver.keys(),
        [(false, vec![keys[0].clone()]), (true, keys[1..].to_vec()), (false, vec![keys[2].clone()])]
    );
}

#[tokio::test]
async fn a_path_of_batches_that_is_none_is_refused() {
    let mut config = crate::support::config("https://platform.example", "t");
    config.batch = Some(crate::support::batch("/a/../b"));
    let refused = config.build(Arc::new(pipeline_core::NoMeter)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the platform's path of batches: an empty path segment, `.` and `..` cannot be addressed"
    );
}
