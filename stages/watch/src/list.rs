//! Lists all applications, and finds those that vanished while nobody watched.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use pipeline_core::{Emitter, Key, Note, Timestamp, Uid, Version};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ApplicationWatch;
use crate::api::Failure;
use crate::application::{Position, Stopped, malformed, trace};
use crate::object::{self, Unreadable};

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    metadata: PageMetadata<'a>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct PageMetadata<'a> {
    #[serde(borrow, rename = "resourceVersion")]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "continue")]
    token: Option<Cow<'a, str>>,
}

/// What a list has shown so far.
#[derive(Debug, Default)]
struct Listed {
    present: HashSet<Key>,
    objects: usize,
    /// There was an object whose name could not be read.
    nameless: bool,
}

impl ApplicationWatch {
    /// Reads all pages, hands over what is there, then what is not there any more.
    pub(crate) async fn list(&self, out: &Emitter, position: &mut Position) -> Result<(), Stopped> {
        const ACT: &str = "list applications";
        out.note(Note::Listing);
        let mut listed = Listed::default();
        let mut limit = self.config.page_size;
        let mut token: Option<String> = None;
        let resource_version = loop {
            let body = match self.api.page(limit, token.as_deref()).await {
                Err(Failure::TooLarge { .. }) if limit > 1 => {
                    limit /= 2;
                    continue;
                }
                answer => answer?,
            };
            let text = String::from_utf8_lossy(&body);
            let malformed = |what| Failure::Malformed { act: ACT, what };
            let page: Page<'_> =
                serde_json::from_str(&text).map_err(|_| malformed("the answer is not a list in json"))?;
            let items = page.items.unwrap_or_default();
            for item in &items {
                self.take_listed(out, item.get(), position.listed, &mut listed).await?;
            }
            out.note(Note::Page { objects: items.len() });
            match page.metadata.token.filter(|next| !next.is_empty()) {
                Some(next) if token.as_deref() == Some(&*next) => {
                    return Err(malformed("the continue token came back").into());
                }
                Some(next) => token = Some(next.into_owned()),
                None => {
                    let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                    break version.ok_or(malformed("the list has no version"))?.into_owned();
                }
            }
        };
        self.take_vanished(out, object::version(&resource_version), position.listed, &listed).await?;
        out.note(Note::Listed { objects: listed.objects });
        position.listed = true;
        position.at = Some(resource_version);
        Ok(())
    }

    async fn take_listed(
        &self,
        out: &Emitter,
        text: &str,
        relist: bool,
        listed: &mut Listed,
    ) -> Result<(), Stopped> {
        let head = match object::head(text) {
            Ok(head) => head,
            Err(Unreadable { part, key, .. }) => {
                malformed(out, part);
                match key {
                    Some(key) => {
                        listed.present.insert(key);
                    }
                    None => listed.nameless = true,
                }
                return Ok(());
            }
        };
        if !self.namespaces.contains(head.key.namespace()) {
            return Ok(());
        }
        listed.objects += 1;
        listed.present.insert(head.key.clone());
        let known = head.version != Version(0)
            && self.seen.get(&head.key).is_some_and(|(uid, at)| uid == head.uid && at == head.version);
        self.seen.note(&head.key, &head.uid, head.version);
        // What this run has listed before has been handed over in this very state.
        if relist && known { Ok(()) } else { self.emit(out, &head, false).await }
    }

    /// Hands over the deletion of everything that was known and is not in a complete list at `version`.
    async fn take_vanished(
        &self,
        out: &Emitter,
        version: Version,
        relist: bool,
        listed: &Listed,
    ) -> Result<(), Stopped> {
        let mut missing: BTreeMap<Key, Uid> = BTreeMap::new();
        if !relist {
            let ours = |key: &Key| self.namespaces.contains(key.namespace()) && out.wants(key);
            missing.extend(out.known().iter().filter(|(key, _)| ours(key)).cloned());
        }
        for key in self.seen.keys() {
            if let Some((uid, _)) = self.seen.get(&key) {
                missing.insert(key, uid);
            }
        }
        missing.retain(|key, _| !listed.present.contains(key));
        for (key, uid) in missing {
            // An object without a readable name may be this one: ask for it by name.
            if listed.nameless && !matches!(self.api.object(&key, version).await, Ok(None)) {
                self.seen.note(&key, &uid, Version(0));
                continue;
            }
            self.seen.forget(&key);
            if out.wants(&key)
                && !out.emit(object::vanished(key, uid, version, Timestamp::now(), trace())).await
            {
                return Err(Stopped::NobodyListens);
            }
        }
        Ok(())
    }
}
