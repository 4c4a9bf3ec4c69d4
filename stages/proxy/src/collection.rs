//! All objects of a collection of the API server, read page by page.

use serde_json::Value;
use stages_kube::Reader;

use crate::error::ActError;

/// Objects of a page: whole ones of this number are far from what is read of an answer.
const PAGE: u32 = 200;
/// No collection is read further.
const PAGES: u32 = 100;

/// A collection, and what is read of it.
pub(crate) struct Collection<'a> {
    /// Such as `list workflows`, for whoever is told that it cannot be read.
    pub(crate) act: &'static str,
    /// Its path.
    pub(crate) path: &'a str,
    /// What is behind the path's `?`, and begins with `&`.
    pub(crate) query: &'a str,
    /// Whether objects are read with what they hold.
    pub(crate) is_whole: bool,
}

impl Collection<'_> {
    /// Gives each page to `take`.
    pub(crate) async fn read(
        &self,
        cluster: &Reader,
        mut take: impl FnMut(Vec<Value>),
    ) -> Result<(), ActError> {
        let Self { act, path, query, is_whole } = *self;
        let mut behind = String::new();
        for _ in 0..PAGES {
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
