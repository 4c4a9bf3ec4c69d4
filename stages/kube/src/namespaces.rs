//! Which namespaces are watched: the runtime's own, and those that match patterns.
//!
//! Patterns are globs, or regular expressions between slashes. A regular expression matches anywhere in the name unless it
//! is anchored.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::RegexSet;

/// A pattern that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Not a glob.
    #[error("namespace pattern `{pattern}` is not a glob")]
    Glob {
        /// The pattern as given.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
    /// Not a regular expression.
    #[error("namespace pattern `{pattern}` is not a regular expression")]
    Regex {
        /// The pattern as given, slashes included.
        pattern: String,
        /// What is wrong with it.
        source: regex::Error,
    },
    /// The patterns are too large together.
    #[error("namespace patterns are too large together")]
    TooLarge(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Decides whether a namespace is watched.
#[derive(Debug, Clone)]
pub struct Namespaces {
    own: String,
    patterns: Patterns,
    everywhere: bool,
    /// Of what is watched by the above, only what matches; `None` for all of it.
    only: Option<Patterns>,
    /// What matches is never watched.
    except: Patterns,
}

/// Globs, and regular expressions between slashes; of no pattern at all none matches.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    globs: GlobSet,
    regexes: RegexSet,
}

impl Patterns {
    /// Reads them.
    ///
    /// # Errors
    /// [`PatternError`] names the pattern that cannot be used.
    pub fn new(patterns: &[String]) -> Result<Self, PatternError> {
        let mut globs = GlobSetBuilder::new();
        let mut regexes = Vec::new();
        for pattern in patterns {
            match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
                Some(expression) => {
                    regex::Regex::new(expression)
                        .map_err(|source| PatternError::Regex { pattern: pattern.clone(), source })?;
                    regexes.push(expression);
                }
                None => {
                    let glob = GlobBuilder::new(pattern)
                        .build()
                        .map_err(|source| PatternError::Glob { pattern: pattern.clone(), source })?;
                    globs.add(glob);
                }
            }
        }
        Ok(Self {
            globs: globs.build().map_err(|source| PatternError::TooLarge(source.into()))?,
            regexes: RegexSet::new(regexes).map_err(|source| PatternError::TooLarge(source.into()))?,
        })
    }

    /// Whether one of them matches a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.globs.is_match(name) || self.regexes.is_match(name)
    }
}

impl Namespaces {
    /// `own` is always watched; `patterns` add to it. Without patterns nothing but `own` is.
    ///
    /// # Errors
    /// [`PatternError`] names the pattern that cannot be used.
    pub fn new(own: &str, patterns: &[String]) -> Result<Self, PatternError> {
        Ok(Self {
            own: own.to_owned(),
            patterns: Patterns::new(patterns)?,
            everywhere: !patterns.is_empty(),
            only: None,
            except: Patterns::default(),
        })
    }

    /// Of these only those that match a pattern of `only`, where there is one, and none of `except`; the own one too.
    ///
    /// # Errors
    /// [`PatternError`] names the pattern that cannot be used.
    pub fn narrowed(&self, only: &[String], except: &[String]) -> Result<Self, PatternError> {
        let only = if only.is_empty() { None } else { Some(Patterns::new(only)?) };
        Ok(Self { only, except: Patterns::new(except)?, ..self.clone() })
    }

    /// Splits a list of patterns at its commas, also those inside braces. Spaces around a pattern and empty patterns are dropped.
    #[must_use]
    pub fn split(list: &str) -> Vec<String> {
        list.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
    }

    /// Whether `namespace` is watched.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        (namespace == self.own || self.patterns.matches(namespace))
            && self.only.as_ref().is_none_or(|only| only.matches(namespace))
            && !self.except.matches(namespace)
    }

    /// Whether the whole cluster has to be listed and watched, because patterns can match any namespace.
    #[must_use]
    pub fn everywhere(&self) -> bool {
        self.everywhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &str, namespace: &str) -> bool {
        Namespaces::new("home", &Namespaces::split(patterns)).unwrap().contains(namespace)
    }

    #[test]
    fn the_own_namespace_is_always_watched() {
        assert!(check("", "home"));
        assert!(check("team-*", "home"));
        assert!(!check("", "team-a"));
        assert!(!check("team-*", "home-2"));
    }

    #[test]
    fn globs_match_whole_names_and_regular_expressions_parts_of_them() {
        for (patterns, namespace, expected) in [
            ("*", "anything", true),
            ("team-*", "team-a", true),
            ("team-*", "my-team-a", false),
            ("team-?", "team-ab", false),
            ("a, team-[ab] ,", "team-b", true),
            ("team-[!a]", "team-a", false),
            ("/^team-(a|b)$/", "team-b", true),
            ("/^team-(a|b)$/", "team-c", false),
            ("/team/", "my-team-a", true),
            (r"/^team-\d+$/", "team-17", true),
            (r"/^team-\d+$/", "team-x", false),
        ] {
            assert_eq!(check(patterns, namespace), expected, "{patterns} {namespace}");
        }
    }

    #[test]
    fn what_is_narrowed_leaves_out_all_that_is_not_asked_for() {
        let of = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
        let all = Namespaces::new("home", &of(&["*"])).unwrap();
        let narrowed = |only: &[&str], except: &[&str]| all.narrowed(&of(only), &of(except)).unwrap();
        let some = narrowed(&["team-*", "home"], &["team-x", "/-old$/"]);
        for (namespace, expected) in
            [("team-a", true), ("home", true), ("team-x", false), ("team-a-old", false), ("other", false)]
        {
            assert_eq!(some.contains(namespace), expected, "{namespace}");
        }
        assert!(narrowed(&[], &["x"]).contains("home") && !narrowed(&["x"], &[]).contains("home"));
        assert!(!Namespaces::new("home", &[]).unwrap().narrowed(&of(&["*"]), &[]).unwrap().contains("other"));
    }

    #[test]
    fn only_patterns_make_it_watch_the_cluster() {
        assert!(!Namespaces::new("home", &[]).unwrap().everywhere());
        assert!(Namespaces::new("home", &["a".to_owned()]).unwrap().everywhere());
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_named() {
        let refusal = |pattern: &str| Namespaces::new("home", &[pattern.to_owned()]).unwrap_err().to_string();
        assert_eq!(refusal("team-[a"), "namespace pattern `team-[a` is not a glob");
        assert_eq!(refusal("/team-(a/"), "namespace pattern `/team-(a/` is not a regular expression");
        assert_eq!(refusal("/(?!x)/"), "namespace pattern `/(?!x)/` is not a regular expression");
    }
}
