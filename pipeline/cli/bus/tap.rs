//! `gitops-runtime tap`: the messages on the bus as they are published, without their payloads.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_bus::jetstream::Tapped;
use pipeline_bus::{BusError, Message};
use pipeline_core::Timestamp;
use serde::Serialize;

use super::{BusConnection, say_json};
use crate::cli::ask::{complain, say};
use crate::cli::{TapArgs, until_interrupted};

/// What is shown of one message, without its payload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TappedLine {
    /// When it was received.
    at: Timestamp,
    /// The source that published it; `None` for a subject of no source.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u32>,
    #[serde(flatten)]
    what: TappedContent,
    bytes: usize,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum TappedContent {
    #[serde(rename_all = "camelCase")]
    Message {
        kind: &'static str,
        /// The entity of a report: the application, or a resource.
        #[serde(skip_serializing_if = "Option::is_none")]
        report: Option<String>,
        app: String,
        resource_version: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// A message that this version cannot read.
    Unread { problem: String },
}

/// Follows until Ctrl-C, or until so many messages were shown as were asked for.
pub(super) async fn run(connection: &BusConnection, asked: &TapArgs) -> anyhow::Result<ExitCode> {
    until_interrupted(follow(connection, asked)).await
}

async fn follow(connection: &BusConnection, asked: &TapArgs) -> anyhow::Result<ExitCode> {
    let mut tap = match connection.bus.tap(asked.source.as_deref(), asked.shard).await {
        Err(error @ BusError::Gone { .. }) => {
            return Err(error).context("listen to the bus: a reporter makes the stream when it starts");
        }
        tap => tap.context("listen to the bus")?,
    };
    complain("listening");
    let mut left = asked.count;
    while left != Some(0) {
        let Some(tapped) = tap.next().await else { bail!("the connection to the bus is closed") };
        if !is_wanted(&tapped, asked.app.as_deref()) {
            continue;
        }
        let line = line(&tapped, Timestamp::now());
        if asked.place.json {
            say_json(&line)?;
        } else {
            say(&text(&line))?;
        }
        left = left.map(|left| left - 1);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a message is of the application that was asked for; all are if none was.
fn is_wanted(tapped: &Tapped, app: Option<&str>) -> bool {
    let Some(app) = app else { return true };
    let Ok(Message { key, .. }) = &tapped.message else { return false };
    if app.contains('/') { key.as_str() == app } else { key.name() == app }
}

fn line(tapped: &Tapped, at: Timestamp) -> TappedLine {
    let subject = tapped.subject.as_ref();
    TappedLine {
        at,
        source: subject.map(|subject| shown(&subject.source)),
        shard: subject.map(|subject| subject.shard),
        what: match &tapped.message {
            Ok(message) => TappedContent::Message {
                kind: message.kind().as_str(),
                report: message.about().map(|about| shown(&about.report)),
                app: shown(message.key.as_str()),
                resource_version: message.version.number(),
                trace: (message.trace != 0).then(|| format!("{:032x}", message.trace)),
            },
            Err(error) => TappedContent::Unread { problem: error.to_string() },
        },
        bytes: tapped.size,
    }
}

fn text(line: &TappedLine) -> String {
    let at = line.at.strftime("%H:%M:%S%.3f");
    let (source, shard) = match (&line.source, line.shard) {
        (Some(source), Some(shard)) => (source.as_str(), shard.to_string()),
        _ => ("?", "?".to_owned()),
    };
    let bytes = line.bytes;
    match &line.what {
        TappedContent::Message { kind, report, app, resource_version, trace } => {
            let kind = report.as_ref().map_or((*kind).to_owned(), |report| format!("{kind} {report}"));
            let trace = trace.as_deref().unwrap_or("-");
            format!(
                "{at}  {source:<12}  {shard:>3}  {kind:<20}  {app}  {resource_version}  {bytes} B  {trace}\n"
            )
        }
        TappedContent::Unread { problem } => {
            format!("{at}  {source:<12}  {shard:>3}  {problem}  {bytes} B\n")
        }
    }
}

/// A published name, with control characters escaped.
fn shown(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use pipeline_bus::{About, DecodeError, Keep, Payload, Subject};
    use pipeline_core::{Digest, EntityId, Key, Version};

    use super::*;

    const AT: &str = "2026-11-22T07:00:01.5Z";

    fn message(name: &str, payload: Payload) -> Message {
        Message {
            key: Key::new("argocd", name).unwrap(),
            uid: "uid".into(),
            version: Version(42),
            observed: AT.parse().unwrap(),
            trace: 0xab,
            fact: None,
            coalesced: Vec::new(),
            labels: pipeline_core::ObjectLabels::default(),
            again: false,
            payload,
        }
    }

    fn tapped(message: Message) -> Tapped {
        let subject = Subject::of("applications", 7, &message, Keep::Newest);
        Tapped { subject: Some(subject), message: Ok(message), size: 321 }
    }

    fn of(tapped: &Tapped) -> (String, String) {
        let line = line(tapped, AT.parse().unwrap());
        (text(&line), serde_json::to_string(&line).unwrap())
    }

    #[test]
    fn a_line_tells_all_but_what_is_carried() {
        let body = || b"canary".as_slice().into();
        let (text, json) = of(&tapped(message("shop", Payload::Change { body: body() })));
        let trace = "000000000000000000000000000000ab";
        assert_eq!(
            text,
            format!(
                "07:00:01.500  applications    7  change                argocd/shop  42  321 B  {trace}\n"
            )
        );
        assert_eq!(
            json,
            format!(
                r#"{{"at":"{AT}","source":"applications","shard":7,"kind":"change","app":"argocd/shop","resourceVersion":42,"trace":"{trace}","bytes":321}}"#
            )
        );
        let about = About { entity: EntityId::OBJECT, report: "app".into(), content: Digest(1) };
        let (text, json) = of(&tapped(message("shop", Payload::Result { about, body: body() })));
        assert!(text.contains("  result app  ") && json.contains(r#""report":"app""#), "{text}{json}");
    }

    #[test]
    fn what_cannot_be_read_is_said_and_nothing_of_it_shown() {
        let newer = Tapped { subject: None, message: Err(DecodeError::Newer { format: 9 }), size: 5 };
        let (text, json) = of(&newer);
        let problem = "the message is of format 9, and the newest that is known is 2";
        assert_eq!(text, format!("07:00:01.500  ?               ?  {problem}  5 B\n"));
        assert_eq!(json, format!(r#"{{"at":"{AT}","problem":"{problem}","bytes":5}}"#));
    }

    #[test]
    fn a_terminal_is_told_nothing() {
        let (text, _) = of(&tapped(message("a\u{1b}[2Jb\n", Payload::Overlarge { about: None })));
        assert!(text.contains("argocd/a\\u{1b}[2Jb\\n  42"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn an_application_is_asked_for_with_its_namespace_or_without() {
        let shop = tapped(message("shop", Payload::Overlarge { about: None }));
        for (app, wanted) in [
            (None, true),
            (Some("shop"), true),
            (Some("argocd/shop"), true),
            (Some("team/shop"), false),
            (Some("sho"), false),
        ] {
            assert_eq!(is_wanted(&shop, app), wanted, "{app:?}");
        }
        let garbage = Tapped { subject: None, message: Err(DecodeError::Newer { format: 9 }), size: 5 };
        assert!(is_wanted(&garbage, None) && !is_wanted(&garbage, Some("shop")));
    }
}
