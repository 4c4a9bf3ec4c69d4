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
    /// Of rows that were looked for up to a place, behind which there may be more.
    pub(crate) fn or_behind(self, place: Option<String>) -> Self {
        match place {
            Some(place) => Self { end_cursor: Some(place), has_next_page: true, ..self },
            None => self,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_behind_what_is_left_or_behind_what_was_looked_through() {
        let told = |rows: &[&str], place: Option<&str>| {
            let asked = SlicePaginationArgs { after: None, first: Some(2) };
            let mut rows = rows.to_vec();
            let info = asked.info(&mut rows, |row| (*row).to_owned()).or_behind(place.map(str::to_owned));
            (rows.len(), info.end_cursor.unwrap_or_default(), info.has_next_page)
        };
        assert_eq!(told(&[], None), (0, String::new(), false));
        assert_eq!(told(&["a", "b"], None), (2, "b".to_owned(), false), "just as many as a page has");
        assert_eq!(told(&["a", "b", "c"], None), (2, "b".to_owned(), true));
        assert_eq!(told(&["a"], Some("x")), (1, "x".to_owned(), true));
        assert_eq!(told(&[], Some("x")), (0, "x".to_owned(), true));
    }
}
