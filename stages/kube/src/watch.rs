//! Watches the objects of one kind.
//!
//! takes: nothing - gives: an event for every object that was added, changed or deleted
//! calls: `GET {group and version}/[namespaces/{ns}/]{plural}` as a list in pages and as a watch, `GET .../{name}` for
//! one - fails: never for good; whatever breaks is said, counted and begun anew after a growing wait: a watch from the
//! last version seen, a list from its start
//!
//! Where a former process has left how far it came, a first list leaves what changed since then to the watch, which goes on
//! from there: see [`crate::resume`].
//!
//! What vanished while nobody watched is found when a list is complete: what was known (seen by this
//! process, or in the ledger when it started) and is not in the list is deleted, once it has been asked for by
//! name if that is most of it. A list that failed half way says nothing about what it did not reach. No object
//! is kept: keys, uids and versions are.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pipeline_core::{
    Cause, Emitter, Event, Key, KindState, Meter, ObjectIndex, Reason, Remembered, Shutdown, Source,
    SourceNote, StageError, Survey, SurveyResult, Timestamp, Version, async_trait,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use crate::Config;
use crate::api::Api;
use crate::era::Era;
use crate::failure::Failure;
use crate::failure_tracker::FailureTracker;
use crate::kind::{Kind, Mapping};
use crate::lines::Line;
use crate::namespaces::Namespaces;
use crate::object::{self, Head, Unreadable};
use crate::resume::Resumed;

/// A watch that the server ends sooner than this, without having sent anything, counts as a failure.
const SHORTEST_WATCH: Duration = Duration::from_millis(500);
/// A server takes 0 seconds for no limit.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// After so many failures in a row that its version may have caused the watch is begun anew with a list.
const RESUMES: u32 = 3;

/// Hears of an object whose namespace is not watched.
pub type Unwatched = Arc<dyn Fn(&Key) + Send + Sync>;

/// What the watch is given beside its configuration.
#[derive(Clone)]
pub struct Deps {
    /// Where every object that is there is noted, whoever owns its shard.
    pub seen: ObjectIndex,
    /// Takes a sample of every request.
    pub meter: Arc<dyn Meter>,
    /// Hears of each object that is shown and whose namespace is not watched, where somebody wants to know.
    pub unwatched: Option<Unwatched>,
}

/// The source of the events of one kind of objects.
pub struct Watch<M> {
    pub(crate) config: Config,
    pub(crate) kind: Kind,
    pub(crate) namespaces: Namespaces,
    pub(crate) api: Api,
    pub(crate) seen: ObjectIndex,
    pub(crate) era: Era,
    pub(crate) unwatched: Option<Unwatched>,
    pub(crate) mapping: M,
}

impl<M> std::fmt::Debug for Watch<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Where a run stands.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// The version a watch goes on from; `None` when a list has to come first.
    pub(crate) at: Option<String>,
    /// A list has been completed by this run.
    pub(crate) listed: bool,
    /// Since the last failure something came over a watch.
    pub(crate) moved: bool,
    /// A line of the watch could not be read: a list has to find what it said.
    pub(crate) lost: bool,
    /// Failures since a watch last worked that its version may have caused.
    pub(crate) doubts: u32,
    /// Watches in a row on which nothing came until they were given up.
    pub(crate) silent: u32,
    /// Since a watch last worked its version was too old once.
    pub(crate) expired: bool,
    /// The first list left to the watch what changed since a former process ended.
    pub(crate) resumed: Option<Resumed>,
    /// Up to this version nothing that a former process left can be gone on from.
    pub(crate) forgotten: Version,
    /// Everything is handed over as it is now, whatever a former process left.
    pub(crate) anew: bool,
    /// Objects in the last complete list.
    pub(crate) objects: usize,
    /// The last thing that was said is that the kind cannot be read.
    pub(crate) unreadable: bool,
    /// A watch was begun since the last list: what it goes on from may be of a store that was restored since.
    pub(crate) begun: bool,
}

pub(crate) enum Stopped {
    Failed(Failure),
    /// Another era began: everything has to be listed.
    Restored,
    /// Nobody takes events any more: the process is stopping.
    NobodyListens,
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One line of a watch; `kind` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
#[derive(Deserialize)]
struct Change<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What an ERROR line carries.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

#[async_trait]
impl<M: Mapping> Source for Watch<M> {
    fn name(&self) -> &'static str {
        self.kind.plural
    }

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        // Wherever it waits it may be dropped: what was not handed over is listed again at the next start.
        stop.run_until_cancelled(Box::pin(self.watch(&out))).await;
        Ok(())
    }

    fn delivered(&self, event: &Event) {
        self.era.knows(event.version);
        self.seen.shown(&event.key, &event.uid, event.version, event.is_deleted());
    }

    fn as_survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }

    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError> {
        self.era.knows(not_older_than);
        // A version of a former era may never come again.
        let known = not_older_than.era() == self.era.now();
        let asked = if known { Version(not_older_than.number()) } else { Version(0) };
        let era = self.era.now();
        let Some(body) = self.api.object(key, asked).await? else { return Ok(None) };
        let malformed = |what| Failure::Malformed { act: self.kind.get(), what };
        let text = String::from_utf8_lossy(&body);
        if serde_json::from_str::<&RawValue>(&text).is_err() {
            return Err(malformed("the answer is not json").into());
        }
        match object::head::<M::Status>(self.mapping.named(), &text) {
            Ok(head) if head.key == *key => {
                let head = head.in_era(era);
                if self.namespaces.contains(key.namespace()) {
                    self.seen.read(key, &head.uid, head.version);
                }
                Ok(Some(self.event(&head, false, Cause::Read)))
            }
            Ok(_) => Err(StageError::reject(Reason::Malformed, malformed("the answer is another object"))),
            Err(_) => Err(StageError::reject(Reason::Malformed, malformed("the object has no identity"))),
        }
    }
}

#[async_trait]
impl<M: Mapping> Survey for Watch<M> {
    fn watches(&self, key: &Key) -> bool {
        self.namespaces.contains(key.namespace())
    }

    fn watches_kind(&self, kind: &str) -> bool {
        self.mapping.named() == kind
    }

    async fn survey(&self, known: Vec<Remembered>) -> Result<SurveyResult, StageError> {
        match self.there(known).await {
            Ok(objects) => Ok(SurveyResult { objects, ..SurveyResult::default() }),
            // A list that takes longer than the server keeps its history may be faster another time.
            Err(failure) if failure.is_gone() => Err(StageError::retry(failure.reason(), failure)),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl<M: Mapping> Watch<M> {
    pub(crate) fn new(
        config: Config,
        namespaces: Namespaces,
        api: Api,
        (seen, unwatched): (ObjectIndex, Option<Unwatched>),
        mapping: M,
    ) -> Self {
        Self { config, kind: mapping.kind(), namespaces, api, seen, unwatched, era: Era::default(), mapping }
    }

    /// What figures call the kind.
    fn named(&self) -> &'static str {
        let named = self.mapping.named();
        if named.is_empty() { self.kind.singular } else { named }
    }

    /// Says how the kind stands.
    pub(crate) fn stands(&self, out: &Emitter, state: KindState) {
        out.note(SourceNote::Kind { kind: self.named(), state });
    }

    /// Whether an object that is shown is in a namespace that is watched; of one that is not somebody may hear.
    pub(crate) fn is_ours(&self, key: &Key) -> bool {
        let ours = self.namespaces.contains(key.namespace());
        if let (false, Some(unwatched)) = (ours, &self.unwatched) {
            unwatched(key);
        }
        ours
    }

    /// Lists and follows until nobody listens any more.
    async fn watch(&self, out: &Emitter) {
        let mut position = Position::default();
        let mut failures = FailureTracker::default();
        loop {
            position.moved = false;
            if position.at.is_none()
                && let Some(resumed) = position.resumed.take()
            {
                // What the first list left to the watch is handed over by another one, or left to a watch from a later version.
                (position.listed, position.forgotten) = (false, resumed.from());
            }
            let listing = position.at.is_none();
            let result = if listing {
                self.list(out, &mut position).await
            } else {
                self.follow(out, &mut position, &mut failures).await
            };
            if position.moved || (!listing && result.is_ok()) {
                failures.over(self.kind);
                (position.doubts, position.expired) = (0, false);
            }
            if position.moved || listing {
                position.silent = 0;
            }
            if !listing && std::mem::take(&mut position.lost) {
                position.at = None;
            }
            match result {
                Ok(()) => {}
                Err(Stopped::NobodyListens) => return,
                Err(Stopped::Restored) => position.at = None,
                Err(Stopped::Failed(failure)) => {
                    self.broke(out, &failure, listing, &mut position, &mut failures);
                    tokio::time::sleep(failures.wait(&failure, &self.config)).await;
                }
            }
        }
    }

    /// Says that a list or a watch failed, and finds out where to go on.
    fn broke(
        &self,
        out: &Emitter,
        failure: &Failure,
        listing: bool,
        position: &mut Position,
        failures: &mut FailureTracker,
    ) {
        out.note(SourceNote::Broken(failure.reason()));
        self.stands(out, KindState::Unreadable);
        position.unreadable = true;
        failures.add(failure, self.kind, &self.config);
        // A server that says this is there, and a list is the remedy: it does not wait as long as for one
        // that was away. If the list does not help, all waits are as ever.
        if failure.is_gone() && !std::mem::replace(&mut position.expired, true) {
            failures.failures = 1;
        }
        position.doubts += u32::from(!listing && failure.may_blame_version());
        if failure.is_gone() || position.doubts >= RESUMES {
            if let Some(resumed) = &position.resumed {
                resumed.ends(self.kind);
            }
            if !listing {
                out.note(SourceNote::Gap { kind: self.named() });
            }
            position.at = None;
            position.doubts = 0;
        }
    }

    /// Follows one watch connection to its end. Failures are over with the first thing that comes, not when the
    /// connection ends minutes later.
    async fn follow(
        &self,
        out: &Emitter,
        position: &mut Position,
        failures: &mut FailureTracker,
    ) -> Result<(), Stopped> {
        let at = position.at.clone().unwrap_or_default();
        // Not all replicas shall come back at the same moment.
        let timeout = self.config.watch_timeout.mul_f64(0.8 + fastrand::f64() / 5.0);
        if std::mem::replace(&mut position.begun, true) {
            self.compare_with_store(object::version(&at)).await?;
        }
        let mut changes = self.api.watch(&at, timeout.max(SHORTEST_TIMEOUT)).await?;
        if std::mem::take(&mut position.unreadable) {
            self.stands(out, KindState::Watched { objects: position.objects });
        }
        out.note(SourceNote::Alive);
        let begun = Instant::now();
        let mut restored = std::pin::pin!(self.era.begun());
        loop {
            let next = tokio::select! {
                biased;
                () = &mut restored => return Err(Stopped::Restored),
                next = changes.next() => next,
            };
            let line = match next {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(failure) if failure.ends_watch() && begun.elapsed() >= self.config.settled => {
                    // Where nothing happens and where all is held back looks alike: a list tells them apart.
                    let is_silent = !position.moved && matches!(failure, Failure::Silent { .. });
                    position.silent += u32::from(is_silent);
                    position.lost |= position.silent >= RESUMES;
                    return Ok(());
                }
                Err(failure) => return Err(failure.into()),
            };
            match line {
                Line::Whole(line) => self.take_line(out, &line, position).await?,
                Line::TooLong => {
                    malformed(out, "line");
                    position.lost = true;
                }
            }
            if position.moved {
                failures.over(self.kind);
            }
            if position.lost && position.anew {
                return Ok(());
            }
        }
        if !position.moved && begun.elapsed() < SHORTEST_WATCH {
            return Err(Failure::CutShort { act: self.kind.watch() }.into());
        }
        Ok(())
    }

    /// A server that was away may have come back with a store that was restored: it would let a watch go on from a version
    /// that is still to come, and say nothing until then.
    async fn compare_with_store(&self, at: Version) -> Result<(), Stopped> {
        let known = self.era.of(at);
        self.compare(self.api.newest().await?, known)
    }

    async fn take_line(&self, out: &Emitter, line: &[u8], position: &mut Position) -> Result<(), Stopped> {
        let text = utf8(line);
        if text.trim().is_empty() {
            return Ok(());
        }
        if let Some((deleted, object)) = plain(&text)
            && let Ok(head) = object::head::<M::Status>(self.mapping.named(), object)
        {
            out.note(SourceNote::Alive);
            return self.take(out, head, deleted, position).await;
        }
        let Ok(change) = serde_json::from_str::<Change<'_>>(&text) else {
            malformed(out, "line");
            position.lost = true;
            return Ok(());
        };
        let object = change.object.get();
        let deleted = match &*change.kind {
            "ADDED" | "MODIFIED" => false,
            "DELETED" => true,
            "BOOKMARK" => {
                let at = object::resource_version(object);
                let version = at.as_deref().map_or(Version(0), object::version);
                position.go_on_from(at);
                position.moved = true;
                self.reached(out, position, self.era.of(version));
                out.note(SourceNote::Alive);
                return Ok(());
            }
            "ERROR" => {
                let code = serde_json::from_str(object).map_or(0, |status: Status| status.code);
                return Err(Failure::Status { act: self.kind.watch(), code, after: None }.into());
            }
            _ => {
                malformed(out, "type");
                position.lost = true;
                return Ok(());
            }
        };
        out.note(SourceNote::Alive);
        match object::head::<M::Status>(self.mapping.named(), object) {
            Ok(head) => self.take(out, head, deleted, position).await,
            Err(Unreadable { part, resource_version, .. }) => {
                malformed(out, part);
                position.go_on_from(resource_version);
                // Whose end it was is not known: the next list shows it.
                position.lost |= deleted;
                Ok(())
            }
        }
    }

    async fn take(
        &self,
        out: &Emitter,
        head: Head<'_, M::Status>,
        deleted: bool,
        position: &mut Position,
    ) -> Result<(), Stopped> {
        let head = head.in_era(self.era.now());
        let version = head.version;
        position.go_on_from(Some(head.resource_version.clone()));
        if self.is_ours(&head.key) {
            self.seen.shown(&head.key, &head.uid, version, deleted);
            let again = position.resumed.as_mut().is_some_and(|resumed| resumed.takes(&head, deleted));
            self.emit(out, head, deleted, again).await?;
        }
        self.reached(out, position, version);
        Ok(())
    }

    /// All up to this version was emitted.
    fn reached(&self, out: &Emitter, position: &mut Position, version: Version) {
        if let Some(progress) = out.progress() {
            progress.reached(self.mapping.named(), version);
        }
        position.caught_up(version);
    }

    pub(crate) async fn emit(
        &self,
        out: &Emitter,
        head: Head<'_, M::Status>,
        deleted: bool,
        again: bool,
    ) -> Result<(), Stopped> {
        if !out.wants(&head.key) {
            return Ok(());
        }
        let event = Event { again, ..self.event(&head, deleted, Cause::Watch) };
        if out.emit(event).await { Ok(()) } else { Err(Stopped::NobodyListens) }
    }

    fn event(&self, head: &Head<'_, M::Status>, deleted: bool, cause: Cause) -> Event {
        let event = head.event(deleted, cause, (Timestamp::now(), trace()));
        let event = Event { key: self.seen.shared(event.key), ..event };
        self.mapping.event(event, head.status.as_ref())
    }
}

impl Position {
    /// The watch has come to this version. What a former process knew, and what neither the list nor the watch has shown, is
    /// to be found by another list.
    fn caught_up(&mut self, version: Version) {
        let over = self.resumed.take_if(|resumed| resumed.is_over(version));
        if over.is_some_and(|resumed| resumed.lacks_any()) {
            (self.lost, self.listed, self.anew) = (true, false, true);
        }
    }

    /// A watch is resumed from here from now on. A version that could not be read changes nothing, and one
    /// that is known already is no progress: a server that repeats itself must not be asked without pause.
    fn go_on_from(&mut self, resource_version: Option<String>) {
        if resource_version.is_some() && resource_version != self.at {
            self.at = resource_version;
            self.moved = true;
        }
    }
}

/// A line as text. What is whole, as nearly every line is, is looked at once.
fn utf8(line: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Whether an object was deleted, and its text, of a line as API servers write it. The text is not read: only if it is
/// one object was the line what it looks like.
fn plain(line: &str) -> Option<(bool, &str)> {
    let (kind, rest) = line.strip_prefix("{\"type\":\"")?.split_once('"')?;
    let deleted = match kind {
        "ADDED" | "MODIFIED" => false,
        "DELETED" => true,
        _ => return None,
    };
    Some((deleted, rest.strip_prefix(",\"object\":")?.strip_suffix('}')?))
}

pub(crate) fn malformed(out: &Emitter, part: &'static str) {
    out.note(SourceNote::Malformed);
    warn!(part, "something in the watch cannot be read and was skipped");
}

/// A W3C trace id: any but zero.
pub(crate) fn trace() -> u128 {
    fastrand::u128(1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_as_api_servers_write_it_is_told_from_any_other() {
        let object = r#"{"metadata":{"name":"a"}}"#;
        for (kind, deleted) in [("ADDED", false), ("MODIFIED", false), ("DELETED", true)] {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            assert_eq!(plain(&line), Some((deleted, object)), "{line}");
        }
        for line in [
            "",
            "{",
            r#"{"type":"BOOKMARK","object":{}}"#,
            r#"{"type":"ERROR","object":{}}"#,
            r#"{"type":"ADDED","object":{}} "#,
            r#"{"type":"ADDED", "object":{}}"#,
            r#"{"object":{},"type":"ADDED"}"#,
        ] {
            assert_eq!(plain(line), None, "{line}");
        }
        // What is more than one object is found when it is read.
        let (_, more) = plain(r#"{"type":"ADDED","object":{},"other":{}}"#).unwrap();
        assert_eq!(object::head::<serde::de::IgnoredAny>("", more).unwrap_err().part, "object");
    }

    #[test]
    fn what_is_no_text_is_read_as_far_as_it_is() {
        assert_eq!(utf8("a\u{fc}".as_bytes()), "a\u{fc}");
        assert_eq!(utf8(b"a\xff"), "a\u{fffd}");
    }
}
