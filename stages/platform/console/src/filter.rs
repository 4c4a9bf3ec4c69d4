//! What a list shows: the text and chips of its field, grouping, order and page. All of it stands in the address.

use std::time::Duration;

use url::form_urlencoded;

use crate::view::state::{Health, SyncStatus};

/// How long ago something was at most, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// How many.
    pub count: u32,
    /// Of which unit: `m`, `h` or `d`.
    pub unit: char,
}

impl Within {
    /// The time it spans.
    #[must_use]
    pub fn span(self) -> Duration {
        let unit = match self.unit {
            'm' => 60,
            'h' => 3_600,
            _ => 86_400,
        };
        Duration::from_secs(u64::from(self.count) * unit)
    }

    fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().last().filter(|unit| "mhd".contains(*unit))?;
        Some(Self { count: text.strip_suffix(unit)?.parse().ok().filter(|count| *count <= 3_650)?, unit })
    }
}

/// One condition; all of them hold. Values of one are alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// Somewhere in name, project, commit, message, author, image, label.
    Text(String),
    /// `env:`; an empty one is written as `-`, and means those that have none
    Environment(Vec<String>),
    /// `runtime:`
    Runtime(Vec<String>),
    /// `project:`
    Project(Vec<String>),
    /// `cluster:`
    Cluster(Vec<String>),
    /// `product:`
    Product(Vec<String>),
    /// `health:`
    Health(Vec<Health>),
    /// `sync:`
    Sync(Vec<SyncStatus>),
    /// `label:key=value`, or `label:key`
    Label(String, Option<String>),
    /// `image:`, part of an image's name or version
    Image(String),
    /// `resource:`, part of the name of a resource, or of `Kind/name`
    Resource(String),
    /// `commit:`, the beginning of a revision
    Commit(String),
    /// `by:`, part of an author's name
    By(String),
    /// `deployed:7d`; `changed:7d` is its name of before
    Deployed(Within),
}

/// The keys of chips, as help and completion show them.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("env", "env:production,staging"),
    ("runtime", "runtime:eu-1"),
    ("project", "project:shop"),
    ("cluster", "cluster:in-cluster"),
    ("product", "product:shop"),
    ("health", "health:degraded"),
    ("sync", "sync:outofsync"),
    ("label", "label:team=shop"),
    ("image", "image:envoy"),
    ("resource", "resource:service/web"),
    ("commit", "commit:3f9c1e2"),
    ("by", "by:ada"),
    ("deployed", "deployed:7d"),
];

/// The environment of applications that have none, as it is written.
const NOWHERE: &str = "-";

impl Term {
    fn parse(word: &str) -> Self {
        let chip = word.split_once(':').filter(|(_, value)| !value.is_empty());
        chip.and_then(|(key, value)| Self::chip(key, value)).unwrap_or_else(|| Self::Text(word.to_owned()))
    }

    fn chip(key: &str, value: &str) -> Option<Self> {
        // No label's value and no namespace is called so.
        let place = |one: &str| if one == NOWHERE { String::new() } else { one.to_owned() };
        let list = || value.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        Some(match key {
            "env" => Self::Environment(list().iter().map(|one| place(one)).collect()),
            "runtime" => Self::Runtime(list()),
            "project" => Self::Project(list()),
            "cluster" => Self::Cluster(list()),
            "product" => Self::Product(list()),
            "health" => Self::Health(value.split(',').map(str::parse).collect::<Result<_, _>>().ok()?),
            "sync" => Self::Sync(value.split(',').map(str::parse).collect::<Result<_, _>>().ok()?),
            "label" => match value.split_once('=') {
                Some((key, value)) => Self::Label(key.to_owned(), Some(value.to_owned())),
                None => Self::Label(value.to_owned(), None),
            },
            "image" => Self::Image(value.to_owned()),
            "resource" => Self::Resource(value.to_owned()),
            "commit" => Self::Commit(value.to_owned()),
            "by" => Self::By(value.to_owned()),
            "deployed" | "changed" => Self::Deployed(Within::parse(value)?),
            _ => return None,
        })
    }

    /// Key and value of a chip; `None` for text.
    pub(crate) fn parts(&self) -> Option<(&'static str, String)> {
        let words = |all: Vec<&str>| all.join(",").to_lowercase();
        Some(match self {
            Self::Text(_) => return None,
            Self::Environment(all) => {
                let word = |one: &String| if one.is_empty() { NOWHERE.to_owned() } else { one.clone() };
                ("env", all.iter().map(word).collect::<Vec<_>>().join(","))
            }
            Self::Runtime(all) => ("runtime", all.join(",")),
            Self::Project(all) => ("project", all.join(",")),
            Self::Cluster(all) => ("cluster", all.join(",")),
            Self::Product(all) => ("product", all.join(",")),
            Self::Health(all) => ("health", words(all.iter().map(|one| one.word()).collect())),
            Self::Sync(all) => ("sync", words(all.iter().map(|one| one.word()).collect())),
            Self::Label(key, Some(value)) => ("label", format!("{key}={value}")),
            Self::Label(key, None) => ("label", key.clone()),
            Self::Image(value) => ("image", value.clone()),
            Self::Resource(value) => ("resource", value.clone()),
            Self::Commit(value) => ("commit", value.clone()),
            Self::By(value) => ("by", value.clone()),
            Self::Deployed(value) => ("deployed", format!("{}{}", value.count, value.unit)),
        })
    }

    /// As it is typed.
    pub(crate) fn word(&self) -> String {
        let word = match (self, self.parts()) {
            (Self::Text(text), _) => text.clone(),
            (_, Some((key, value))) => format!("{key}:{value}"),
            (_, None) => String::new(),
        };
        if word.contains(char::is_whitespace) { format!("\"{word}\"") } else { word }
    }
}

/// What rows are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grouping {
    /// Where they run.
    #[default]
    Environment,
    /// Who reports them.
    Runtime,
    /// Their Argo CD project.
    Project,
    /// The product that they belong to.
    Product,
    /// Their health.
    Health,
    /// The same application in each environment.
    Matrix,
    /// Nothing.
    None,
}

impl Grouping {
    pub(crate) const ALL: [Self; 7] = [
        Self::Environment,
        Self::Matrix,
        Self::Product,
        Self::Runtime,
        Self::Project,
        Self::Health,
        Self::None,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Runtime => "runtime",
            Self::Project => "project",
            Self::Product => "product",
            Self::Health => "health",
            Self::Matrix => "matrix",
            Self::None => "none",
        }
    }
}

/// What rows are ordered by within their group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// What needs attention first.
    #[default]
    Attention,
    /// By name.
    Name,
    /// The last deployed first.
    Deployed,
}

impl Order {
    pub(crate) const ALL: [Self; 3] = [Self::Attention, Self::Name, Self::Deployed];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Name => "name",
            Self::Deployed => "deployed",
        }
    }
}

/// What a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The conditions.
    pub terms: Vec<Term>,
    /// The grouping.
    pub grouping: Grouping,
    /// The order.
    pub order: Order,
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
                "q" => filter.terms.extend(words(&value).iter().map(|word| Term::parse(word))),
                "group" => {
                    filter.grouping =
                        Grouping::ALL.into_iter().find(|one| one.word() == value).unwrap_or_default();
                }
                "sort" => {
                    filter.order = Order::ALL.into_iter().find(|one| one.word() == value).unwrap_or_default();
                }
                "page" => filter.page = value.parse().unwrap_or(0).min(100_000),
                _ => {}
            }
        }
        filter
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
        if self.grouping != Grouping::default() {
            query.append_pair("group", self.grouping.word());
        }
        if self.order != Order::default() {
            query.append_pair("sort", self.order.word());
        }
        if self.page > 0 {
            query.append_pair("page", &self.page.to_string());
        }
        query.finish()
    }

    /// Keys and words of what is written as conditions are and is none: its key is not known, or its value is none of that key.
    pub(crate) fn mistyped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.terms.iter().filter_map(|term| match term {
            Term::Text(word) => {
                let (key, value) = word.split_once(':')?;
                // Addresses are looked for as well.
                let is_one = key.len() > 1
                    && key.bytes().all(|byte| byte.is_ascii_lowercase())
                    && !value.is_empty()
                    && !value.starts_with("//");
                is_one.then_some((key, &**word))
            }
            _ => None,
        })
    }

    /// The same without one of its terms, on the first page.
    pub(crate) fn without(&self, index: usize) -> Self {
        let mut other = Self { page: 0, ..self.clone() };
        other.terms.remove(index);
        other
    }
}

/// Words between blanks; quotes keep blanks within one.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars().take(1_000) {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => all.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
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
    fn what_is_written_as_a_condition_and_is_none_is_told() {
        let filter = Filter::parse("q=chnaged:1d+health:bad+https://git.example.com+env:+12:30+by:ada+pay");
        assert_eq!(
            filter.mistyped().collect::<Vec<_>>(),
            [("chnaged", "chnaged:1d"), ("health", "health:bad")]
        );
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
