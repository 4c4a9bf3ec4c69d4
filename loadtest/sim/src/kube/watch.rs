//! Watch streams: one JSON object a line, in chunks, until the client, the server or a fault ends them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use pipeline_core::Key;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::Shared;
use super::labels::Labels;
use super::request::Query;
use super::status;
use super::store::{Collection, Did, Entry, NotAt, Past};
use crate::fault::PeerResponse;
use crate::generate::Fleet;

/// Changes that go out in one chunk at most.
const CHUNK: usize = 64;

/// What streams are told; each field counts up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signal {
    /// Newest resourceVersion.
    pub(super) version: u64,
    /// Every stream breaks without an end.
    pub(super) drops: u64,
    /// Every stream gets a bookmark.
    pub(super) bookmarks: u64,
    /// Streams stand and say nothing.
    pub(super) stalled: bool,
}

struct Stream {
    shared: Arc<Shared>,
    collection: Collection,
    wanted: Box<dyn Fn(&Key) -> bool + Send + Sync>,
    labels: Labels,
    cursor: u64,
    signals: watch::Receiver<Signal>,
    began: Signal,
    lines: broadcast::Receiver<Bytes>,
    ends_at: Option<Instant>,
    bookmarks: Option<Duration>,
    next_bookmark: Option<Instant>,
    ready: VecDeque<Bytes>,
    over: bool,
}

/// Answers a watch, from after the asked resourceVersion.
pub(super) fn watch(
    shared: &Arc<Shared>,
    collection: Collection,
    namespace: Option<&str>,
    query: &Query,
) -> Result<Response, PeerResponse> {
    let bad = |message: &str| PeerResponse::new(400, status::status(400, message));
    let wanted = query.selector(namespace).map_err(|message| bad(&message))?;
    let labels = query.labels().map_err(|message| bad(&message))?;
    let version = query.version().map_err(|()| bad("resourceVersion: Invalid value"))?;
    let streaming_list = query.is_true("sendInitialEvents");
    let signals = shared.signals.subscribe();
    let lines = shared.lines.subscribe();
    let began = *signals.borrow();
    let bookmarks = query.is_true("allowWatchBookmarks").then_some(shared.bookmark_every);
    let mut ready = VecDeque::new();
    let mut over = false;
    let mut cursor = version.unwrap_or(0);
    if cursor == 0 || streaming_list {
        let page = {
            let store = shared.store();
            let wanted = |key: &Key, entry: &Entry| wanted(key) && labels.select(entry, shared.fleet());
            store.list(collection, wanted, store.version(), None, usize::MAX)
        };
        // The newest version is always there.
        if let Ok(page) = page {
            cursor = page.version;
            let mut object = Vec::new();
            for chunk in page.items.chunks(CHUNK) {
                let mut out = Vec::new();
                for (_, entry) in chunk {
                    object.clear();
                    entry.render(shared.fleet(), &mut object);
                    status::event("ADDED", &object, &mut out);
                }
                ready.push_back(out.into());
            }
        }
        if streaming_list {
            let mut out = Vec::new();
            status::bookmark(collection, cursor, true, &mut out);
            ready.push_back(out.into());
        }
    } else if let Err(NotAt::Compacted { oldest }) = shared.store().after(cursor, 0) {
        let mut out = Vec::new();
        status::event("ERROR", &status::too_old(cursor, oldest), &mut out);
        ready.push_back(out.into());
        over = true;
    }
    let seconds = query.get("timeoutSeconds").and_then(|seconds| seconds.parse::<u64>().ok());
    let now = Instant::now();
    let stream = Stream {
        shared: shared.clone(),
        collection,
        wanted: Box::new(wanted),
        labels,
        cursor,
        signals,
        began,
        lines,
        ends_at: seconds.filter(|&seconds| seconds > 0).map(|seconds| now + Duration::from_secs(seconds)),
        bookmarks,
        next_bookmark: bookmarks.map(|every| now + every),
        ready,
        over,
    };
    let body = Body::from_stream(futures::stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next().await?;
        Some((chunk, stream))
    }));
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// What a watch of some labels shows of a change: an object that gets them is added, and one that loses them is deleted, with
/// the content that it had before and the version of the change.
fn seen<'a>(past: &'a Past, labels: &Labels, fleet: Option<&Fleet>) -> Option<(Did, Cow<'a, Entry>)> {
    let Past { did, now, before, .. } = past;
    if labels.is_all() {
        return Some((*did, Cow::Borrowed(now)));
    }
    let had = before.as_ref().filter(|before| labels.select(before, fleet));
    let has = *did != Did::Deleted && labels.select(now, fleet);
    match (had, has) {
        (Some(_), true) => Some((Did::Modified, Cow::Borrowed(now))),
        (None, true) => Some((Did::Added, Cow::Borrowed(now))),
        (Some(_), false) if *did == Did::Deleted => Some((Did::Deleted, Cow::Borrowed(now))),
        (Some(before), false) => Some((Did::Deleted, Cow::Owned(before.at(now.version)))),
        (None, false) => None,
    }
}

/// What a stream waits for besides changes.
enum Woken {
    Signal,
    Line(Bytes),
    Bookmark,
    End,
}

impl Stream {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let signal = *self.signals.borrow_and_update();
            if signal.drops != self.began.drops {
                self.began.drops = signal.drops;
                self.over = true;
                self.ready.clear();
                return Some(Err(io::ErrorKind::ConnectionReset.into()));
            }
            if !signal.stalled {
                if let Some(chunk) = self.ready.pop_front() {
                    return Some(Ok(chunk));
                }
                if self.over {
                    return None;
                }
                if let Some(chunk) = self.changes(signal) {
                    return Some(Ok(chunk));
                }
            }
            match self.wait().await {
                Woken::Signal => {}
                Woken::Line(line) => return Some(Ok(line)),
                Woken::Bookmark => {
                    self.next_bookmark = self.bookmarks.map(|every| Instant::now() + every);
                    if !signal.stalled {
                        return Some(Ok(self.bookmark()));
                    }
                }
                Woken::End => self.over = true,
            }
        }
    }

    fn changes(&mut self, signal: Signal) -> Option<Bytes> {
        let changes = self.shared.store().after(self.cursor, CHUNK);
        let mut out = Vec::new();
        match changes {
            Ok(changes) => {
                let mut object = Vec::new();
                for past in &changes {
                    self.cursor = past.now.version;
                    if past.collection != self.collection || !(self.wanted)(&past.key) {
                        continue;
                    }
                    if let Some((did, entry)) = seen(past, &self.labels, self.shared.fleet()) {
                        object.clear();
                        entry.render(self.shared.fleet(), &mut object);
                        status::event(did.as_str(), &object, &mut out);
                    }
                }
                if changes.len() == CHUNK && out.is_empty() {
                    return self.changes(signal);
                }
            }
            Err(NotAt::Compacted { oldest } | NotAt::Future { newest: oldest }) => {
                status::event("ERROR", &status::too_old(self.cursor, oldest), &mut out);
                self.over = true;
            }
        }
        if out.is_empty() && signal.bookmarks != self.began.bookmarks {
            self.began.bookmarks = signal.bookmarks;
            if self.bookmarks.is_some() {
                return Some(self.bookmark());
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn bookmark(&self) -> Bytes {
        let mut out = Vec::new();
        status::bookmark(self.collection, self.cursor, false, &mut out);
        out.into()
    }

    async fn wait(&mut self) -> Woken {
        let at = |time: Option<Instant>| async move {
            match time {
                Some(time) => tokio::time::sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.signals.changed() => if changed.is_ok() { Woken::Signal } else { Woken::End },
            line = self.lines.recv() => match line {
                Ok(line) => Woken::Line(line),
                Err(broadcast::error::RecvError::Lagged(_)) => Woken::Signal,
                Err(broadcast::error::RecvError::Closed) => Woken::End,
            },
            () = at(self.next_bookmark) => Woken::Bookmark,
            () = at(self.ends_at) => { self.ends_at = None; Woken::End }
        }
    }
}
