//! Lists all objects, and finds those that vanished while nobody watched.
//!
//! What was known and is not in a complete list is deleted. There are two kinds of list that this is not taken from
//! without a second word: one with an object whose name cannot be read, which may be any of them, and one that lacks
//! most of what was known. An API server whose cache is being filled anew, or that answers for another cluster after a
//! restore, is far likelier than somebody who deleted everything while nobody watched, and a deletion that was
//! reported cannot be taken back. So each of those is asked for by name, without a version, which is answered by the
//! store and not by a cache: only "not found" confirms its end.

use std::collections::{BTreeMap, HashSet};

use futures::future::join_all;
use pipeline_core::{Emitter, Key, KindState, SourceNote, Timestamp, Uid, Version};
use serde::de::IgnoredAny;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use crate::failure::Failure;
use crate::kind::Mapping;
use crate::object::{self, Unreadable};
use crate::pages::{self, Page, Pages};
use crate::resume::Resumed;
use crate::watch::{Position, Stopped, Watch, malformed, trace};

/// Of fewer known objects any number may vanish without being asked for: to delete a handful is ordinary.
const FEW: usize = 10;
/// Objects that are asked for at once.
const AT_ONCE: usize = 8;
/// How long so many take at least, so that an API server that has just come back is not asked more than 400 times a
/// second: 10,000 are confirmed in half a minute.
const PACE: Duration = Duration::from_millis(20);

/// What was known of each object before a list: its life, and the version of it, 0 for none.
type ObjectVersions = BTreeMap<Key, (Uid, Version)>;

/// What a list has shown so far.
#[derive(Debug)]
struct Listed<'a> {
    /// What was known before.
    known: &'a ObjectVersions,
    /// What of it is there.
    present: HashSet<&'a Key>,
    objects: usize,
    /// There was an object whose name could not be read.
    nameless: bool,
    /// What is left to the watch.
    resumed: Option<Resumed>,
}

impl<'a> Listed<'a> {
    fn of(known: &'a ObjectVersions, resumed: Option<Resumed>) -> Self {
        Self { known, present: HashSet::new(), objects: 0, nameless: false, resumed }
    }

    fn shows(&mut self, key: &Key) {
        if let Some((key, _)) = self.known.get_key_value(key) {
            self.present.insert(key);
        }
    }
}

/// What is there under the name of an object that a list lacks.
enum ByName {
    /// Nothing, or only a later life: the one that was known is over.
    Gone,
    /// It is still there, or something that cannot be told from it.
    There,
    Unknown(Failure),
}

impl<M: Mapping> Watch<M> {
    /// Reads all pages, hands over what is there, then what is not there any more.
    pub(crate) async fn list(&self, out: &Emitter, position: &mut Position) -> Result<(), Stopped> {
        out.note(SourceNote::Listing);
        let known = self.known(out, position.listed).await;
        for (_, version) in known.values() {
            self.era.knows(*version);
        }
        loop {
            match self.list_once(out, position, &known).await {
                // From its beginning: what was handed over of the former era counts for nothing.
                Err(Stopped::Restored) => {}
                done => return done,
            }
        }
    }

    async fn list_once(
        &self,
        out: &Emitter,
        position: &mut Position,
        known: &ObjectVersions,
    ) -> Result<(), Stopped> {
        let mut listed = Listed::of(known, self.resumed(out, position));
        let mut pages = Pages::new(self.kind, self.config.page_size);
        let resource_version = loop {
            if let Some(version) = self.list_page(out, &mut pages, position.listed, &mut listed).await? {
                break version;
            }
            if !position.listed {
                out.wait_for_capacity().await;
            }
        };
        let version = self.era.of(object::version(&resource_version));
        self.take_vanished(out, version, &mut listed).await?;
        (position.objects, position.unreadable) = (listed.objects, false);
        self.stands(out, KindState::Watched { objects: listed.objects });
        out.note(SourceNote::Listed { objects: listed.objects });
        (position.listed, position.begun) = (true, false);
        position.resumed = listed.resumed.map(|resumed| resumed.until(version));
        position.at = Some(match &position.resumed {
            Some(resumed) => resumed.from().number().to_string(),
            None => resource_version,
        });
        match (&position.resumed, out.progress()) {
            (Some(resumed), _) => {
                info!(resource = %self.kind, from = resumed.from().number(), "the watch goes on where the process before ended");
            }
            (None, Some(progress)) => progress.reached(self.mapping.named(), version),
            (None, None) => {}
        }
        Ok(())
    }

    /// Where a former process ended, if a first list may leave to the watch what changed since.
    fn resumed(&self, out: &Emitter, position: &Position) -> Option<Resumed> {
        let first = !position.listed && !position.anew;
        let progress = out.progress().filter(|_| first)?;
        Some(Resumed::new(progress.done(self.mapping.named()), position.forgotten))
    }

    /// Reads one page and hands over what is there; returns the version of the list after its last page.
    async fn list_page(
        &self,
        out: &Emitter,
        pages: &mut Pages,
        relist: bool,
        listed: &mut Listed<'_>,
    ) -> Result<Option<String>, Stopped> {
        let body = pages.next(&self.api).await?;
        let text = String::from_utf8_lossy(&body);
        let page = Page::read(self.kind, &text)?;
        let newest = listed.known.values().map(|(_, version)| *version).max().unwrap_or_default();
        self.compare(page.version().unwrap_or_default(), newest)?;
        let now = self.era.of(page.version().unwrap_or_default());
        listed.resumed.take_if(|resumed| !resumed.begins(now));
        for item in page.items() {
            self.take_listed(out, &page.whole(item.get()), relist, listed).await?;
        }
        out.note(SourceNote::Page { objects: page.items().len() });
        Ok(pages.turn(page)?)
    }

    /// Begins another era if `now`, as a list says it, is older than what was `known` before it.
    pub(crate) fn compare(&self, now: Version, known: Version) -> Result<(), Stopped> {
        if self.era.is_over(now, known) {
            self.era.next(now, known);
            return Err(Stopped::Restored);
        }
        Ok(())
    }

    /// What was known before the list: seen by this process, whoever owns it, and until a first list is complete what
    /// the ledger knows. What the ledger knows in namespaces that are not watched (any more) is left alone: no list can
    /// say anything of it.
    async fn known(&self, out: &Emitter, relist: bool) -> ObjectVersions {
        let mut known = BTreeMap::new();
        if !relist {
            let ours = |key: &Key| self.namespaces.contains(key.namespace()) && out.wants(key);
            let ledger = out.known().await.into_iter().filter(|(key, ..)| ours(key));
            known.extend(ledger.map(|(key, uid, version)| (key, (uid, version))));
        }
        for key in self.seen.keys() {
            if let Some((uid, version)) = self.seen.get(&key) {
                // Another process may have watched since.
                let later = known.get(&key).filter(|(known, _)| *known == uid).map(|(_, later)| *later);
                known.insert(key, (uid, version.max(later.unwrap_or_default())));
            }
        }
        known
    }

    async fn take_listed(
        &self,
        out: &Emitter,
        text: &str,
        relist: bool,
        listed: &mut Listed<'_>,
    ) -> Result<(), Stopped> {
        let head = match object::head::<M::Status>(self.mapping.named(), text) {
            Ok(head) => head.in_era(self.era.now()),
            Err(Unreadable { part, key, .. }) => {
                malformed(out, part);
                match key {
                    Some(key) => listed.shows(&key),
                    None => listed.nameless = true,
                }
                return Ok(());
            }
        };
        if !self.is_ours(&head.key) {
            return Ok(());
        }
        if let Some((uid, version)) = listed.known.get(&head.key)
            && *uid == head.uid
        {
            self.compare(head.version, *version)?;
        }
        listed.objects += 1;
        listed.shows(&head.key);
        if let Some(resumed) = listed.resumed.as_mut().filter(|resumed| resumed.shows(head.version)) {
            resumed.changed(&head.key, &head.uid, head.version);
            return Ok(());
        }
        let known = head.version != Version(0)
            && self.seen.get(&head.key).is_some_and(|(uid, at)| uid == head.uid && at == head.version);
        self.seen.note(&head.key, &head.uid, head.version);
        // What this run has listed before has been handed over in this very state.
        if relist && known { Ok(()) } else { self.emit(out, head, false, false).await }
    }

    /// Hands over the deletion of everything that was known and is not in a complete list at `version`.
    async fn take_vanished(
        &self,
        out: &Emitter,
        version: Version,
        listed: &mut Listed<'_>,
    ) -> Result<(), Stopped> {
        let (ours, others): (Vec<_>, Vec<_>) = listed.known.iter().partition(|(key, _)| out.wants(key));
        let all = ours.len();
        let is_missing = |key: &Key| !listed.present.contains(key);
        let missing: Vec<_> = ours.into_iter().filter(|(key, _)| is_missing(key)).collect();
        let most = all >= FEW && missing.len() > all / 2;
        if let Some(resumed) = &mut listed.resumed {
            missing.into_iter().for_each(|(key, (uid, _))| resumed.lacks(key, uid));
            return Ok(());
        }
        if most {
            let lacks = missing.len();
            warn!(known = all, lacks, "the list lacks most objects: each is asked for by name");
        }
        if most || listed.nameless {
            self.ask_for_vanished(out, version, &missing, listed.nameless).await?;
        } else {
            for (key, (uid, _)) in missing {
                self.vanished(out, version, key, uid).await?;
            }
        }
        if most {
            info!("the objects that the list lacked are gone");
        }
        // Nothing is reported of what others own.
        for (key, _) in others.into_iter().filter(|(key, _)| is_missing(key)) {
            self.seen.forget(key);
        }
        Ok(())
    }

    /// Asks for each by name, and hands over the deletion of those that are not found. One that is there fails the
    /// list, unless it may be in it under a name that cannot be read.
    async fn ask_for_vanished(
        &self,
        out: &Emitter,
        version: Version,
        missing: &[(&Key, &(Uid, Version))],
        nameless: bool,
    ) -> Result<(), Stopped> {
        for some in missing.chunks(AT_ONCE) {
            let paced = Instant::now() + PACE;
            let found = join_all(some.iter().map(|(key, (uid, _))| self.by_name(key, uid, version))).await;
            for ((key, (uid, _)), found) in some.iter().zip(found) {
                match found {
                    ByName::Gone => self.vanished(out, version, key, uid).await?,
                    _ if nameless => self.seen.note(key, uid, Version(0)),
                    ByName::There => {
                        return Err(pages::malformed(
                            self.kind,
                            "objects that are there are not in the list",
                        )
                        .into());
                    }
                    ByName::Unknown(failure) => return Err(failure.into()),
                }
            }
            out.note(SourceNote::Alive);
            tokio::time::sleep_until(paced).await;
        }
        Ok(())
    }

    async fn by_name(&self, key: &Key, uid: &Uid, listed: Version) -> ByName {
        let body = match self.api.object(key, Version(0)).await {
            Ok(Some(body)) => body,
            Ok(None) => return ByName::Gone,
            Err(failure) => return ByName::Unknown(failure),
        };
        match object::head::<IgnoredAny>(self.mapping.named(), &String::from_utf8_lossy(&body)) {
            // Created after the list, whose watch will say so.
            Ok(head) if head.key == *key && head.uid != *uid && self.era.of(head.version) > listed => {
                ByName::Gone
            }
            _ => ByName::There,
        }
    }

    async fn vanished(&self, out: &Emitter, version: Version, key: &Key, uid: &Uid) -> Result<(), Stopped> {
        // A read may have shown a later life since the list began: the next list must miss that one.
        self.seen.ended(key, uid);
        if out.emit(object::vanished(key.clone(), uid.clone(), version, (Timestamp::now(), trace()))).await {
            Ok(())
        } else {
            Err(Stopped::NobodyListens)
        }
    }
}
