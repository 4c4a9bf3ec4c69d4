//! Pages of a list: rows with their places, and whether there are more.

use async_graphql::{InputObject, SimpleObject};

/// Rows of a page, unless fewer are asked for.
const FIRST: i32 = 50;
/// The most that may be asked for.
const MOST: i32 = 500;

/// Which rows of a list.
#[derive(InputObject, Default)]
pub(crate) struct SlicePaginationArgs {
    /// Behind this place.
    after: Option<String>,
    /// So many; 500 at most.
    first: Option<i32>,
}

/// Where a page stands in its list.
#[derive(SimpleObject)]
pub(crate) struct SliceInfo {
    start_cursor: Option<String>,
    end_cursor: Option<String>,
    has_next_page: bool,
    has_prev_page: bool,
}

impl SliceInfo {
    /// Of a list that is told at once, from the first to the last of its places.
    pub(crate) fn whole(start: Option<String>, end: Option<String>) -> Self {
        Self { start_cursor: start, end_cursor: end, has_next_page: false, has_prev_page: false }
    }
}

/// So many rows, whatever is asked for.
pub(crate) fn rows(first: Option<i32>) -> usize {
    usize::try_from(first.unwrap_or(FIRST).clamp(1, MOST)).unwrap_or(1)
}

/// For the complexity of a list.
pub(crate) fn of(pagination: Option<&SlicePaginationArgs>) -> usize {
    rows(pagination.and_then(|pagination| pagination.first))
}

impl SlicePaginationArgs {
    /// The place behind which the page begins; clients send an empty one for the first.
    pub(crate) fn after(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }

    pub(crate) fn first(&self) -> usize {
        rows(self.first)
    }

    /// Of rows of which one more than asked for was read.
    pub(crate) fn info<T>(&self, all: &mut Vec<T>, cursor: impl Fn(&T) -> String) -> SliceInfo {
        let has_next_page = all.len() > self.first();
        all.truncate(self.first());
        SliceInfo {
            start_cursor: all.first().map(&cursor),
            end_cursor: all.last().map(&cursor),
            has_next_page,
            has_prev_page: !self.after().is_empty(),
        }
    }
}
