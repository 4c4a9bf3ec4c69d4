//! Says what is there, from one complete list, for whoever compares it with what was reported.
//!
//! Nothing is emitted and nothing is noted: the watch goes on beside it.

use pipeline_core::{Key, Uid, Version};
use tracing::warn;

use crate::ApplicationWatch;
use crate::api::Failure;
use crate::object::{self, Unreadable};
use crate::pages::{self, Page, Pages};

/// What stands for the uid of an application that is there and does not show it.
const NO_UID: &str = "";

impl ApplicationWatch {
    /// All applications in the namespaces that are watched, sorted by key. One whose uid or version cannot be read is
    /// there with an empty uid and version 0, which mean unknown.
    ///
    /// A list that fails half way is an error, and so is one with an object whose name cannot be read: whoever takes
    /// what is not in the answer for deleted must not be misled by either. A list whose continue token expired is
    /// begun anew, once.
    pub(crate) async fn there(&self) -> Result<Vec<(Key, Uid, Version)>, Failure> {
        match self.all_pages().await {
            Err(failure) if failure.is_gone() => self.all_pages().await,
            answer => answer,
        }
    }

    async fn all_pages(&self) -> Result<Vec<(Key, Uid, Version)>, Failure> {
        let mut there = Vec::new();
        let (mut nameless, mut unknown) = (0_usize, 0_usize);
        let mut pages = Pages::new(self.config.page_size);
        loop {
            let body = pages.next(&self.api).await?;
            let text = String::from_utf8_lossy(&body);
            let page = Page::read(&text)?;
            for item in page.items() {
                let (key, uid, version) = match object::head(item.get()) {
                    Ok(head) => (head.key, head.uid, head.version),
                    Err(Unreadable { key: Some(key), .. }) => (key, NO_UID.into(), Version(0)),
                    Err(_) => {
                        nameless += 1;
                        continue;
                    }
                };
                if self.namespaces.contains(key.namespace()) {
                    unknown += usize::from(uid.is_empty());
                    there.push((key, uid, version));
                }
            }
            if pages.turn(page)?.is_some() {
                break;
            }
        }
        if nameless + unknown > 0 {
            warn!(nameless, unknown, "applications were listed whose identity cannot be read");
        }
        if nameless > 0 {
            return Err(pages::malformed("there are objects whose name cannot be read"));
        }
        there.sort_unstable();
        Ok(there)
    }
}
