//! `gitops-runtime bus show`: the streams, durables and buckets of the server.

use std::process::ExitCode;

use anyhow::Context as _;
use pipeline_bus::jetstream::{BucketShow, DurableShow, Show, StreamShow};
use serde::Serialize;

use super::{BusConnection, behind, refusing, say_json};
use crate::cli::ask::say;
use crate::cli::ask::show::{count, size, table};

/// The content of the bus as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BusContent<'a> {
    server: &'a str,
    max_payload: usize,
    stream: Option<Stream<'a>>,
    reports: Option<Stream<'a>>,
    durables: Vec<Durable<'a>>,
    buckets: Vec<Bucket<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stream<'a> {
    name: &'a str,
    messages: u64,
    bytes: u64,
    max_bytes: u64,
    first: u64,
    last: u64,
}

/// A durable, with the messages that it has not delivered yet (pending), that it delivered and that are not acknowledged, and that it
/// delivered again; and the requests that wait for messages: without any, nobody consumes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Durable<'a> {
    name: &'a str,
    filter: &'a str,
    pending: u64,
    unacknowledged: u64,
    redelivered: u64,
    waiting: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bucket<'a> {
    name: &'a str,
    keys: u64,
    bytes: u64,
    last: u64,
}

/// Prints the content of the bus; an empty one is no error.
pub(super) async fn run(connection: &BusConnection, json: bool) -> anyhow::Result<ExitCode> {
    const ACT: &str = "ask what stands on the bus";
    let show = connection.bus.show(connection.pipeline).await.context(ACT)?;
    let mut buckets = Vec::new();
    for bucket in connection.buckets() {
        buckets.extend(bucket.show().await.context(ACT)?);
    }
    if json {
        say_json(&shown(&show, &buckets))?;
    } else {
        say(&text(&show, &buckets))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown<'a>(show: &'a Show, buckets: &'a [BucketShow]) -> BusContent<'a> {
    let stream = |it: &'a StreamShow| Stream {
        name: &it.name,
        messages: it.messages,
        bytes: it.bytes,
        max_bytes: it.max_bytes,
        first: it.first,
        last: it.last,
    };
    let durable = |it: &'a DurableShow| Durable {
        name: &it.name,
        filter: &it.filter,
        pending: it.pending,
        unacknowledged: it.in_flight,
        redelivered: it.redelivered,
        waiting: it.waiting,
    };
    let bucket =
        |it: &'a BucketShow| Bucket { name: &it.stream, keys: it.keys, bytes: it.bytes, last: it.last };
    BusContent {
        server: &show.server,
        max_payload: show.max_payload,
        stream: show.stream.as_ref().map(stream),
        reports: show.reports.as_ref().map(stream),
        durables: show.durables.iter().map(durable).collect(),
        buckets: buckets.iter().map(bucket).collect(),
    }
}

fn text(show: &Show, buckets: &[BucketShow]) -> String {
    let mut text = format!("nats-server {}, messages up to {}\n", show.server, size(show.max_payload as u64));
    match &show.stream {
        None => text += "there is no stream: a reporter makes it when it starts\n",
        Some(stream) => text += &line(stream),
    }
    if let Some(behind) = refusing(show) {
        text += &format!("it is full and refuses what is watched: {behind}\n");
    }
    if let Some(reports) = &show.reports {
        text += &line(reports);
    }
    if let Some(behind) = behind(show) {
        text += &format!("its oldest reports are discarded: {behind} does not keep up\n");
    }
    if !show.durables.is_empty() {
        let rows: Vec<Vec<String>> = show.durables.iter().map(row).collect();
        let header = ["DURABLE", "PENDING", "UNACKNOWLEDGED", "REDELIVERED", "CONSUMED"];
        text += &format!("\n{}", table(1, &header, &rows));
    }
    if !buckets.is_empty() {
        let row = |it: &BucketShow| vec![it.stream.clone(), it.keys.to_string(), size(it.bytes)];
        let rows: Vec<Vec<String>> = buckets.iter().map(row).collect();
        text += &format!("\n{}", table(1, &["BUCKET", "KEYS", "BYTES"], &rows));
    }
    text
}

fn line(stream: &StreamShow) -> String {
    format!(
        "stream {}: {}, {} of {}\n",
        stream.name,
        count(stream.messages, "message"),
        size(stream.bytes),
        size(stream.max_bytes)
    )
}

fn row(durable: &DurableShow) -> Vec<String> {
    let consumed = if durable.waiting > 0 { "yes" } else { "no" };
    let figures = [durable.pending, durable.in_flight, durable.redelivered];
    let mut row = vec![durable.name.clone()];
    row.extend(figures.iter().map(u64::to_string));
    row.push(consumed.to_owned());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(name: &str, waiting: u64) -> DurableShow {
        let filter = format!("gitops-runtime.{name}.>");
        DurableShow { name: name.to_owned(), filter, pending: 12, in_flight: 3, redelivered: 1, waiting }
    }

    #[test]
    fn what_stands_there_is_shown_as_tables() {
        let show = Show {
            server: "2.15.0".to_owned(),
            max_payload: 1 << 20,
            stream: Some(StreamShow {
                name: "gitops-runtime".to_owned(),
                messages: 1,
                bytes: 20_000,
                max_bytes: 1 << 30,
                first: 4,
                last: 9,
            }),
            reports: None,
            durables: vec![durable("reporter_applications_0", 1), durable("x", 0)],
        };
        let stream = "KV_gitops-runtime_leases".to_owned();
        let buckets = [BucketShow { stream, keys: 35, bytes: 4_000, last: 40 }];
        assert_eq!(
            text(&show, &buckets),
            "nats-server 2.15.0, messages up to 1048 kB
stream gitops-runtime: 1 message, 20 kB of 1073 MB

 DURABLE                  PENDING  UNACKNOWLEDGED  REDELIVERED  CONSUMED
 reporter_applications_0       12               3            1       yes
 x                             12               3            1        no

 BUCKET                    KEYS   BYTES
 KV_gitops-runtime_leases    35  4000 B
"
        );
        let name = "gitops-runtime_reports".to_owned();
        let full = StreamShow { name, messages: 12, bytes: 99_000, max_bytes: 100_000, first: 4, last: 15 };
        let (less, mut slow) = (durable("archive_reports", 0), durable("slow_reports", 0));
        (slow.filter, slow.pending) = ("gitops-runtime.reports.>".to_owned(), 13);
        let filled = Show { reports: Some(full.clone()), durables: vec![less, slow], ..show.clone() };
        let told = "
stream gitops-runtime_reports: 12 messages, 99 kB of 100 kB
its oldest reports are discarded: durable slow_reports does not keep up
";
        assert!(text(&filled, &[]).contains(told), "{}", text(&filled, &[]));
        let room = Show { reports: Some(StreamShow { bytes: 80_000, ..full }), ..filled };
        assert!(!text(&room, &[]).contains("discarded"));
        let nothing = Show { stream: None, durables: Vec::new(), ..show };
        assert_eq!(
            text(&nothing, &[]),
            "nats-server 2.15.0, messages up to 1048 kB\nthere is no stream: a reporter makes it when it starts\n"
        );
    }
}
