//! What is written as a condition of a query and is none: it is looked for as it stands, which is told.

use std::fmt;

use crate::fleet::term::Term;

/// A word of a query whose key is not known, or whose value is none of that key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mistyped<'t> {
    /// Its key.
    pub key: &'t str,
    /// All of it.
    pub word: &'t str,
    /// Another one of that key; `None`: the key is not known.
    pub example: Option<&'static str>,
}

impl<'t> Mistyped<'t> {
    /// Those of a query.
    pub fn of(terms: &'t [Term]) -> impl Iterator<Item = Self> {
        terms.iter().filter_map(|term| match term {
            Term::Text(word) => {
                let (key, value) = word.split_once(':')?;
                // Addresses are looked for as well.
                let is_one = key.len() > 1
                    && key.bytes().all(|byte| byte.is_ascii_lowercase())
                    && !value.is_empty()
                    && !value.starts_with("//");
                let example = Term::KEYS.iter().find(|(known, _)| *known == key).map(|(_, example)| *example);
                is_one.then_some(Self { key, word, example })
            }
            _ => None,
        })
    }
}

impl fmt::Display for Mistyped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, word, example } = self;
        match example {
            Some(example) => {
                write!(f, "'{word}' is no value of {key}:, and is searched for as text; one is {example}")
            }
            None => {
                let keys: Vec<&str> = Term::KEYS.iter().map(|(known, _)| *known).collect();
                let keys = keys.join(", ");
                write!(f, "there is no key {key}:, and '{word}' is searched for as text; keys are {keys}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_a_condition_and_is_none_is_told_with_what_is_one() {
        let terms = Term::read("chnaged:1d health:bad https://git.example.com env: 12:30 by:ada pay");
        let told: Vec<String> = Mistyped::of(&terms).map(|one| one.to_string()).collect();
        let keys = "there is no key chnaged:, and 'chnaged:1d' is searched for as text; keys are env, runtime, project, cluster, \
                    product, health, sync, label, image, resource, commit, by, deployed";
        let value =
            "'health:bad' is no value of health:, and is searched for as text; one is health:degraded";
        assert_eq!(told, [keys, value]);
    }
}
