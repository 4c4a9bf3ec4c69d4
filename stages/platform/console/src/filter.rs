//! What a list shows: the text and chips of its field, grouping, order and page. All of it stands in the address.

use jiff::Timestamp;
use stages_platform_store::{GroupBy, Selection, SortBy, Term};
use url::form_urlencoded;

/// What a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The conditions.
    pub terms: Vec<Term>,
    /// The grouping.
    pub grouping: GroupBy,
    /// The order.
    pub order: SortBy,
    /// The page, from zero.
    pub page: u64,
}

impl Filter {
    /// Rows of a page.
    pub const PAGE: u64 = 200;
    /// Names of a page of the matrix.
    pub const NAMES: u64 = 50;

    /// From an address's query; what it does not know it leaves out. Several `q` are one text.
    #[must_use]
    pub fn parse(query: &str) -> Self {
        let mut filter = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "q" => filter.terms.extend(Term::read(&value)),
                "group" => {
                    filter.grouping =
                        GroupBy::ALL.into_iter().find(|one| one.word() == value).unwrap_or_default();
                }
                "sort" => {
                    filter.order =
                        SortBy::ALL.into_iter().find(|one| one.word() == value).unwrap_or_default();
                }
                "page" => filter.page = value.parse().unwrap_or(0).min(100_000),
                _ => {}
            }
        }
        filter
    }

    /// As the store is asked at this moment.
    pub(crate) fn selection(&self, now: Timestamp) -> Selection {
        let now = now.as_millisecond();
        Selection {
            conditions: self.terms.iter().map(|term| term.condition(now)).collect(),
            group_by: self.grouping,
            sort_by: self.order,
        }
    }

    /// The text that its field holds beside the chips.
    pub(crate) fn text(&self) -> String {
        let text = self.terms.iter().filter(|term| term.parts().is_none()).map(Term::word);
        text.collect::<Vec<_>>().join(" ")
    }

    /// As a query, without `?`; empty where nothing differs from the defaults.
    #[must_use]
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !self.terms.is_empty() {
            query.append_pair("q", &self.terms.iter().map(Term::word).collect::<Vec<_>>().join(" "));
        }
        if self.grouping != GroupBy::default() {
            query.append_pair("group", self.grouping.word());
        }
        if self.order != SortBy::default() {
            query.append_pair("sort", self.order.word());
        }
        if self.page > 0 {
            query.append_pair("page", &self.page.to_string());
        }
        query.finish()
    }

    /// The same without one of its terms, on the first page.
    pub(crate) fn without(&self, index: usize) -> Self {
        let mut other = Self { page: 0, ..self.clone() };
        other.terms.remove(index);
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_the_whole_filter_and_comes_back_as_it_was() {
        let cases = [
            "q=env%3Aproduction%2Cstaging+label%3Ateam%3Dshop+deployed%3A7d+pay",
            "q=product%3Ashop&group=matrix",
            "q=resource%3Aservice%2Fweb",
            "q=env%3A-+env%3Aproduction%2C-",
            "group=product",
            "q=cluster%3Ahttps%3A%2F%2F10.0.0.1%3A6443+runtime%3Aeu-1",
            "q=health%3Adegraded+%22two+words%22&group=runtime&sort=name&page=3",
            "q=sync%3Aoutofsync+image%3Aenvoy+commit%3A3f9c+by%3Aada+runtime%3Aeu-1+project%3Ashop&group=none",
        ];
        for case in cases {
            let filter = Filter::parse(case);
            assert_eq!(filter.query(), case);
            assert_eq!(Filter::parse(&filter.query()), filter);
        }
    }

    #[test]
    fn having_no_environment_is_written_as_a_dash() {
        let none = Term::Environment(vec![String::new()]);
        assert_eq!(Filter::parse("q=env:-").terms, [none]);
    }

    #[test]
    fn what_changed_is_what_was_deployed() {
        let (now, before) = (Filter::parse("q=deployed:7d"), Filter::parse("q=changed:7d"));
        assert_eq!(now, before);
        assert_eq!(before.query(), "q=deployed%3A7d");
    }

    #[test]
    fn what_is_no_chip_is_searched_as_it_stands() {
        for text in ["health:sideways", "owner:ada", "changed:soon", "env:", "changed:99999999999d"] {
            assert_eq!(Filter::parse(&format!("q={text}")).terms, [Term::Text(text.to_owned())], "{text}");
        }
    }

    #[test]
    fn a_page_or_an_order_that_there_is_not_is_the_first() {
        let filter = Filter::parse("page=-1&sort=luck&group=colour&nothing=1");
        assert_eq!(filter, Filter::default());
    }
}
