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
    globs: GlobSet,
    regexes: RegexSet,
    everywhere: bool,
}

impl Namespaces {
    /// `own` is always watched; `patterns` add to it. Without patterns nothing but `own` is.
    ///
    /// # Errors
    /// [`PatternError`] names the pattern that cannot be used.
    pub fn new(own: &str, patterns: &[String]) -> Result<Self, PatternError> {
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
            own: own.to_owned(),
            globs: globs.build().map_err(|source| PatternError::TooLarge(source.into()))?,
            regexes: RegexSet::new(regexes).map_err(|source| PatternError::TooLarge(source.into()))?,
            everywhere: !patterns.is_empty(),
        })
    }

    /// Splits a list of patterns at its commas, also those inside braces. Spaces around a pattern and empty patterns are dropped.
    #[must_use]
    pub fn split(list: &str) -> Vec<String> {
        list.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
    }

    /// Whether `namespace` is watched.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        namespace == self.own || self.globs.is_match(namespace) || self.regexes.is_match(namespace)
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
