//! All objects of a collection of the API server, read page by page.

use serde_json::Value;
use stages_kube::Reader;

use crate::error::ActError;

/// Objects of a page; so many whole objects stay far below the most bytes that are read of an answer.
const PAGE: u32 = 200;
/// The most pages that are read of a collection.
const MAX_PAGES: u32 = 100;

/// A collection, and what is read of it.
pub(crate) struct Collection<'a> {
    /// Completes "the API server did not ...", such as `list workflows`.
    pub(crate) act: &'static str,
    /// Its path.
    pub(crate) path: &'a str,
    /// Further parameters, each with a `&` before it; empty: none.
    pub(crate) query: &'a str,
    /// Whether whole objects are read, or their metadata alone.
    pub(crate) is_whole: bool,
}

impl Collection<'_> {
    /// Reads page after page, and gives the objects of each to `take`.
    pub(crate) async fn read(
        &self,
        cluster: &Reader,
        mut take: impl FnMut(Vec<Value>),
    ) -> Result<(), ActError> {
        let Self { act, path, query, is_whole } = *self;
        let mut behind = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{path}?limit={PAGE}{query}{behind}");
            let list = match is_whole {
                true => cluster.get(&path).await,
                false => cluster.metadata(&path).await,
            };
            let mut list = list.map_err(|source| ActError::Cluster { act, source })?.unwrap_or_default();
            if let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) {
                take(items);
            }
            let next = list.pointer("/metadata/continue").and_then(Value::as_str);
            match next.filter(|next| !next.is_empty()) {
                Some(next) => behind = format!("&continue={next}"),
                None => return Ok(()),
            }
        }
        Err(ActError::Busy(
            "there are more than 20000 of them in the namespace, which are not looked through",
        ))
    }
}
