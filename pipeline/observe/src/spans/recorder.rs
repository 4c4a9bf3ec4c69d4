//! The events that one shard is busy with, as far as their spans go. Belongs to the shard's task.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pipeline_core::{Event, Key, Reason, Step, Timestamp, Trace, Uid, Version};

use super::{Activity, AttemptSpans, EventEnd, EventSpan, Span, SpanBatch, Tap, root, span_id};

/// How many events of one shard are followed at a time: as many as are queued, wait or run, and some more.
const OPEN: usize = 4096;

/// One moment by both clocks: since the engine started, and on the wall. Both are read together, as what is told of one
/// event at different times would be out of step otherwise.
type BothClocks = (Duration, Timestamp);

/// Which event it is: its trace and its version, as two lives of an application may end in one trace.
type EventId = (u128, Version);

/// Follows the events of one shard.
#[derive(Debug)]
pub struct Recorder {
    tap: Tap,
    shard: u32,
    started: Instant,
    open: HashMap<EventId, OpenEvent>,
    /// Keys that are being read, since when, and the trace of the newest event that the read stands for.
    reads: HashMap<Key, (Duration, u128)>,
    /// The read whose events are told now.
    read: Option<FinishedRead>,
    /// The event that goes into the lane now: its trace, its life, and how long ago the watch saw it.
    arriving: Option<(u128, Uid, Duration)>,
}

/// A read of an application that succeeded, while the events that it brought are told.
#[derive(Debug)]
struct FinishedRead {
    key: Key,
    from: Duration,
    to: Duration,
    trace: u128,
}

/// An event that has not ended.
#[derive(Debug)]
struct OpenEvent {
    id: u64,
    parent: Option<u64>,
    follows: Option<(u128, u64)>,
    key: Key,
    uid: Option<Uid>,
    from: Duration,
    /// What it waits for, and since when.
    waits: Option<(Duration, Activity)>,
    spans: Vec<Span>,
    left_out: u32,
}

impl Recorder {
    /// Tells `tap`; times are kept since `started`, when the engine started.
    pub fn new(tap: Tap, shard: u32, started: Instant) -> Self {
        Self { tap, shard, started, open: HashMap::new(), reads: HashMap::new(), read: None, arriving: None }
    }

    /// An event is about to be taken in.
    pub fn arrives(&mut self, event: &Event) {
        if self.tap.samples(event.trace) {
            let ago = Timestamp::now().duration_since(event.observed);
            let ago = Duration::try_from(ago).unwrap_or_default();
            self.arriving = Some((event.trace, event.uid.clone(), ago));
        }
    }

    /// A step was told.
    pub fn told(&mut self, trace: &Trace, at: BothClocks) {
        let now = at.0;
        let id = (trace.trace, trace.version);
        match trace.step {
            Step::Reading => drop(self.reads.insert(trace.key.clone(), (now, trace.trace))),
            _ if !self.tap.samples(trace.trace) => {}
            Step::Observed => self.observed(trace, now),
            Step::Started { .. } => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.waited(now);
                }
            }
            Step::Limited(_) => self.waits(id, Activity::RateLimit, now),
            Step::Retried { reason, .. } => {
                self.waits(id, Activity::RetryWait { reason }, now);
                self.flush(id, at);
            }
            Step::Acked { .. } => self.end(id, EventEnd::Acked, None, at),
            Step::Filtered(why) => self.end(id, EventEnd::Filtered, Some(why.as_str()), at),
            Step::Coalesced(folded) => self.end(id, EventEnd::Coalesced, Some(folded.as_str()), at),
            Step::Parked(reason) => self.end(id, EventEnd::Parked, Some(reason.as_str()), at),
            Step::Fetched { .. }
            | Step::Enriched { .. }
            | Step::Reported { .. }
            | Step::NotTaken { .. }
            | Step::Refetch(_)
            | Step::GaveUp(_) => {}
        }
    }

    /// An attempt begins.
    pub fn starts(&mut self, event: &Event, attempt: u32) -> AttemptSpans {
        let id = (event.trace, event.version);
        let open = self.open.get_mut(&id).map(|open| {
            open.uid = Some(event.uid.clone());
            open.id
        });
        AttemptSpans::new(id, open, attempt, self.started)
    }

    /// An attempt is over; its end is told next.
    pub fn attempted(&mut self, attempt: AttemptSpans) {
        if let Some(open) = self.open.get_mut(&(attempt.trace, attempt.version)) {
            open.spans.extend(attempt.spans);
            open.left_out = open.left_out.saturating_add(attempt.left_out);
        }
    }

    /// A read is over; what it found, unless it `failed`, is told next.
    pub fn read(&mut self, key: &Key, failed: Option<Reason>, at: BothClocks) {
        let now = at.0;
        let Some((from, trace)) = self.reads.remove(key) else { return };
        if failed.is_none() {
            self.read = Some(FinishedRead { key: key.clone(), from, to: now, trace });
        } else if self.tap.samples(trace) {
            // Its event is told as folded already: what failed is a late part of that.
            let activity = Activity::Read { failed };
            let span = Span { id: span_id(), parent: root(trace), from, to: now, activity };
            self.tell(trace, None, vec![span], at);
        }
    }

    /// What the last read found was told.
    pub fn read_told(&mut self) {
        self.read = None;
    }

    /// The process stops: what has not ended is told as it is.
    pub fn stop(&mut self, at: BothClocks) {
        let open: Vec<EventId> = self.open.keys().copied().collect();
        for id in open {
            self.end(id, EventEnd::Stopped, None, at);
        }
    }

    fn observed(&mut self, trace: &Trace, now: Duration) {
        let arriving = self.arriving.take_if(|(of, ..)| *of == trace.trace);
        if self.open.len() >= OPEN {
            return self.tap.lose(1);
        }
        let read = self.read.as_ref().filter(|read| read.key == trace.key);
        let (uid, ago) = arriving.map_or((None, Duration::ZERO), |(_, uid, ago)| (Some(uid), ago));
        let mut open = OpenEvent {
            id: root(trace.trace),
            parent: None,
            follows: None,
            key: trace.key.clone(),
            uid,
            from: now.saturating_sub(ago),
            waits: None,
            spans: Vec::new(),
            left_out: 0,
        };
        open.waits = Some((open.from, Activity::Queue));
        if let Some(read) = read {
            open.from = read.from;
            open.waits = Some((now, Activity::Queue));
            let former = Some(read.trace).filter(|former| *former != 0);
            if read.trace == trace.trace {
                open.id = span_id();
                open.parent = Some(root(trace.trace));
            } else {
                open.follows = former.map(|former| (former, root(former)));
            }
            let activity = Activity::Read { failed: None };
            open.spans.push(Span { id: span_id(), parent: open.id, from: read.from, to: read.to, activity });
        }
        self.open.insert((trace.trace, trace.version), open);
    }

    fn waits(&mut self, id: EventId, activity: Activity, now: Duration) {
        if let Some(open) = self.open.get_mut(&id) {
            open.waited(now);
            open.waits = Some((now, activity));
        }
    }

    /// Tells what is known of an event that goes on: it may do so for hours.
    fn flush(&mut self, id: EventId, at: BothClocks) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let spans = std::mem::take(&mut open.spans);
        self.tell(id.0, None, spans, at);
    }

    fn end(&mut self, id: EventId, end: EventEnd, reason: Option<&'static str>, at: BothClocks) {
        let Some(mut open) = self.open.remove(&id) else { return };
        open.waited(at.0);
        let event = EventSpan {
            id: open.id,
            parent: open.parent,
            follows: open.follows,
            key: open.key,
            uid: open.uid,
            version: id.1,
            shard: self.shard,
            from: open.from,
            to: at.0,
            end,
            reason,
            left_out: open.left_out,
        };
        self.tell(id.0, Some(event), open.spans, at);
    }

    fn tell(&self, trace: u128, event: Option<EventSpan>, spans: Vec<Span>, at: BothClocks) {
        self.tap.tell(SpanBatch { trace, event, spans, now: at });
    }
}

impl OpenEvent {
    /// It does not wait any more.
    fn waited(&mut self, now: Duration) {
        if let Some((from, activity)) = self.waits.take() {
            self.spans.push(Span { id: span_id(), parent: self.id, from, to: now, activity });
        }
    }
}
