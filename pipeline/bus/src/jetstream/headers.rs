//! What stands beside a message, for whoever does not read it.

use async_nats::HeaderMap;
use pipeline_core::{Digest, Key, Uid, Version};

use crate::{Kind, Message, subject};

/// The header of the publisher's epoch.
const EPOCH: &str = "epoch";
/// The header of how many ends of streams the publisher found lost in that epoch.
const LOST_ENDS: &str = "lost-ends";

/// Bytes that the headers of one message take at most: their names and frame, and of their values the key and twice the uid
/// at three times what a message allows, and figures.
pub(super) const BYTES: usize = 8 * 1024;

pub(super) fn of(message: &Message, whole: bool, life: u64) -> HeaderMap {
    let kind = if whole { message.kind() } else { message.without_body().kind() };
    let mut headers = HeaderMap::new();
    headers.insert("kind", kind.as_str());
    headers.insert("key", printable(message.key.as_str()));
    headers.insert("uid", printable(&message.uid));
    headers.insert("resourceversion", message.version.0.to_string());
    if message.trace != 0 {
        // A span of its own; its id is a part of the trace's, and never 0.
        let span = (message.trace as u64).max(1);
        headers.insert("traceparent", format!("00-{:032x}-{span:016x}-01", message.trace));
    }
    if let Some(id) = id(message, life) {
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
    }
    headers
}

/// Adds of whoever publishes in which epoch that began to watch, and how many ends of streams it found lost since.
pub(super) fn publisher(headers: &mut HeaderMap, epoch: u64, lost_ends: u64) {
    for (name, figure) in [(EPOCH, epoch), (LOST_ENDS, lost_ends)] {
        if figure != 0 {
            headers.insert(name, figure.to_string());
        }
    }
}

/// By what the server knows a repetition: `uid:resourceVersion`; for a deletion, which may be noticed at the version that
/// was seen last, and for reports, of which there are many of one version, with what tells them from it. Without a version
/// nothing is known as a repetition. What is published again of an object, since stream or durables were lost and made anew, is
/// none: it ends in the `life` of those that it is for, the same in each process.
fn id(message: &Message, life: u64) -> Option<String> {
    let uid = printable(&message.uid);
    let version = match message.version.0 {
        0 => return None,
        version => version,
    };
    let id = match (message.kind(), message.about()) {
        (_, Some(about)) => {
            format!("{uid}:{version}:{:016x}:{:016x}", about.entity.0, about.content.0)
        }
        (Kind::Deleted, None) => format!("{uid}:{version}:deleted"),
        _ => format!("{uid}:{version}"),
    };
    // What was published before may not have brought these facts along.
    let id = match message.brought() {
        None => id,
        Some(Digest(facts)) => format!("{id}:{facts:016x}"),
    };
    let is_report = message.about().is_some();
    Some(if life == 0 || is_report { id } else { format!("{id}:{life:016x}") })
}

/// Epoch and lost ends of whoever published it; 0 where that is not said.
pub(super) fn published_by(headers: &HeaderMap) -> (u64, u64) {
    let figure = |name| headers.get(name).and_then(|value| value.as_str().parse().ok()).unwrap_or_default();
    (figure(EPOCH), figure(LOST_ENDS))
}

/// The object, which life and which state of it, that the headers of a message name.
pub(super) fn object(headers: &HeaderMap) -> Option<(Key, Uid, Version)> {
    let text = |name| headers.get(name).and_then(|value| subject::plain(value.as_str()));
    let version = text("resourceversion")?.parse().ok()?;
    Some((Key::parse(&text("key")?).ok()?, text("uid")?.into(), Version(version)))
}

/// Text as a header may hold it: other bytes than printable ASCII as `=` and two hex digits.
fn printable(text: &str) -> String {
    subject::escape_all_but(|byte| byte.is_ascii_graphic() && byte != b'=', text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_is_known_of_the_publisher() {
        for of in [(0, 0), (7, 0), (7, 2)] {
            let mut headers = HeaderMap::new();
            publisher(&mut headers, of.0, of.1);
            assert_eq!(published_by(&headers), of);
        }
        let mut headers = HeaderMap::new();
        headers.insert(LOST_ENDS, "many");
        assert_eq!(published_by(&headers), (0, 0));
    }

    #[test]
    fn headers_name_an_object_or_nothing() {
        let headers = |key: &str, uid: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("key", key);
            headers.insert("uid", uid);
            headers.insert("resourceversion", "7");
            headers
        };
        let (key, uid) = (Key::new("ns", "shop").unwrap(), "ä =1");
        let told = object(&headers(&printable(key.as_str()), &printable(uid)));
        assert_eq!(told, Some((key, Uid::from(uid), Version(7))));
        for (key, uid) in [("shop", "1"), ("ns/shop", "=zz"), ("ns/shop", "=4"), ("=ff/x", "1")] {
            assert_eq!(object(&headers(key, uid)), None, "{key} {uid}");
        }
        assert_eq!(object(&HeaderMap::new()), None);
    }
}
