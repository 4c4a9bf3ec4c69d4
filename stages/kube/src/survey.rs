//! Says what is there, from one complete list, for whoever compares it with what was reported.
//!
//! Nothing is emitted and nothing is noted: the watch goes on beside it.

use std::collections::HashMap;

use pipeline_core::{Key, Remembered, Surveyed, Uid, Version};
use tracing::warn;

use crate::failure::Failure;
use crate::kind::Mapping;
use crate::object::{self, Unreadable};
use crate::pages::{self, Page, Pages};
use crate::watch::Watch;

/// What stands for the uid of an object that is there and does not show it.
const NO_UID: &str = "";

impl<M: Mapping> Watch<M> {
    /// All objects in the namespaces that are watched, sorted by key. One whose uid or version cannot be read is
    /// there with an empty uid and version 0, which mean unknown.
    ///
    /// A list that fails half way is an error, and so is one with an object whose name cannot be read: whoever takes
    /// what is not in the answer for deleted must not be misled by either. A list whose continue token expired is
    /// begun anew, once.
    ///
    /// What is older than what was `known`, or seen, is of a restored store. What is known of a later era than this
    /// process is in, another one has noticed: then, too, everything has to be listed by whoever watches.
    pub(crate) async fn there(&self, mut known: Vec<Remembered>) -> Result<Vec<Surveyed>, Failure> {
        let seen = |key| self.seen.get(&key).map(|(uid, version)| (key, uid, version));
        known.extend(self.seen.keys().into_iter().filter_map(seen));
        let newest = known.iter().map(|(.., version)| *version).max().unwrap_or_default();
        if self.era.knows(newest) {
            self.era.tell();
        }
        match self.all_pages(&known, newest).await {
            Err(failure) if failure.is_gone() => self.all_pages(&known, newest).await,
            answer => answer,
        }
    }

    async fn all_pages(&self, known: &[Remembered], newest: Version) -> Result<Vec<Surveyed>, Failure> {
        let mut there = Vec::new();
        let mut at = Version(0);
        let (mut nameless, mut unknown) = (0_usize, 0_usize);
        let mut pages = Pages::new(self.kind, self.config.page_size);
        loop {
            let body = pages.next(&self.api).await?;
            let text = String::from_utf8_lossy(&body);
            let page = Page::read(self.kind, &text)?;
            at = page.version().unwrap_or(at);
            for item in page.items() {
                let surveyed = match object::head::<M::Status>(self.mapping.named(), item.get()) {
                    Ok(head) => Surveyed {
                        may_drift: self.mapping.may_drift(head.status.as_ref()),
                        key: head.key,
                        uid: head.uid,
                        version: head.version,
                    },
                    Err(Unreadable { key: Some(key), .. }) => {
                        Surveyed { key, uid: NO_UID.into(), version: Version(0), may_drift: false }
                    }
                    Err(_) => {
                        nameless += 1;
                        continue;
                    }
                };
                if self.namespaces.contains(surveyed.key.namespace()) {
                    unknown += usize::from(surveyed.uid.is_empty());
                    there.push(surveyed);
                }
            }
            if pages.turn(page)?.is_some() {
                break;
            }
        }
        if nameless + unknown > 0 {
            warn!(nameless, unknown, "objects were listed whose identity cannot be read");
        }
        if nameless > 0 {
            return Err(pages::malformed(self.kind, "there are objects whose name cannot be read"));
        }
        let listed: HashMap<&Key, &Surveyed> = there.iter().map(|listed| (&listed.key, listed)).collect();
        let of = |key: &Key, uid: &Uid| Some(listed.get(key).filter(|listed| listed.uid == *uid)?.version);
        let both = known.iter().filter_map(|(key, uid, before)| Some((of(key, uid)?, *before)));
        if let Some((now, before)) =
            both.chain([(at, newest)]).find(|(now, before)| self.era.is_over(*now, *before))
        {
            self.era.next(now, before);
            self.era.tell();
        }
        for surveyed in &mut there {
            surveyed.version = self.era.of(surveyed.version);
        }
        there.sort_unstable();
        Ok(there)
    }
}
