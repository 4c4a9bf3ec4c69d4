//! The words in which people ask for applications, in the console and on the command line.

use crate::fleet::condition::{Condition, Field};
use crate::fleet::within::Within;
use crate::report::Millis;

/// Every health that an application may have, as Argo CD says it.
const HEALTH: [&str; 6] = ["Degraded", "Missing", "Progressing", "Unknown", "Suspended", "Healthy"];
/// Every status of its sync, as Argo CD says it.
const SYNC: [&str; 3] = ["OutOfSync", "Unknown", "Synced"];

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
    /// `health:`, by the words that Argo CD has
    Health(Vec<&'static str>),
    /// `sync:`, by these too
    Sync(Vec<&'static str>),
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

/// The environment of applications that have none, as it is written.
const NOWHERE: &str = "-";

impl Term {
    /// The keys of chips, as help and completion show them.
    pub const KEYS: &[(&str, &str)] = &[
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

    /// Characters that are read of a text.
    pub const MOST: usize = 1_000;
    /// Words of a text that a program may ask by: each is looked for in each application.
    pub const WORDS: usize = 32;

    /// The words of a text, which stand between blanks; quotes keep blanks within one. What is no condition is looked for as it stands.
    #[must_use]
    pub fn read(text: &str) -> Vec<Self> {
        words(text).iter().map(|word| Self::parse(word)).collect()
    }

    /// What it asks of an application at this moment.
    #[must_use]
    pub fn condition(&self, now: Millis) -> Condition {
        let states = |all: &[&'static str]| all.iter().map(|one| (*one).to_owned()).collect();
        match self {
            Self::Text(text) => Condition::Text(text.clone()),
            Self::Environment(all) => Condition::AnyOf(Field::Environment, all.clone()),
            Self::Runtime(all) => Condition::AnyOf(Field::Runtime, all.clone()),
            Self::Project(all) => Condition::AnyOf(Field::Project, all.clone()),
            Self::Cluster(all) => Condition::AnyOf(Field::Cluster, all.clone()),
            Self::Product(all) => Condition::AnyOf(Field::Product, all.clone()),
            Self::Health(all) => Condition::AnyOf(Field::Health, states(all)),
            Self::Sync(all) => Condition::AnyOf(Field::Sync, states(all)),
            Self::Label(key, value) => Condition::Label(key.clone(), value.clone()),
            Self::Image(text) => Condition::Image(text.clone()),
            Self::Resource(text) => Condition::Resource(text.clone()),
            Self::Commit(text) => Condition::Commit(text.clone()),
            Self::By(text) => Condition::Author(text.clone()),
            Self::Deployed(within) => Condition::DeployedSince(now.saturating_sub(within.span())),
        }
    }

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
            "health" => Self::Health(states(value, &HEALTH)?),
            "sync" => Self::Sync(states(value, &SYNC)?),
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
    #[must_use]
    pub fn parts(&self) -> Option<(&'static str, String)> {
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
            Self::Health(all) => ("health", all.join(",").to_lowercase()),
            Self::Sync(all) => ("sync", all.join(",").to_lowercase()),
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
    #[must_use]
    pub fn word(&self) -> String {
        let word = match (self, self.parts()) {
            (Self::Text(text), _) => text.clone(),
            (_, Some((key, value))) => format!("{key}:{value}"),
            (_, None) => String::new(),
        };
        if word.contains(char::is_whitespace) { format!("\"{word}\"") } else { word }
    }
}

/// States of a list, whose letters are small or not; `None`: one of them is none of all.
fn states(value: &str, all: &[&'static str]) -> Option<Vec<&'static str>> {
    let state = |text: &str| all.iter().copied().find(|state| state.eq_ignore_ascii_case(text));
    value.split(',').map(state).collect()
}

/// Words between blanks; quotes keep blanks within one.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars().take(Term::MOST) {
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
