//! Subjects that say whose report they carry.

use std::fmt::Write as _;

use pipeline_core::{Digest, Key};

/// Bytes of a pattern; with all placeholders a subject stays below 2 KiB, and a server takes 4 KiB.
const LONGEST: usize = 256;

/// What takes the place of what is longer than a token may be, and of no text else: a digest follows.
const CUT: &str = "==";

/// Subjects with places for what an object is called: `{kind}`, `{namespace}`, `{name}`.
///
/// What stands in such a place is one part of the subject: other bytes than letters, digits, `-` and `_` are `=` and two hex
/// digits, so that no dot or wildcard comes in by a name; nothing (the namespace of what is of the whole cluster) is `=` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Kind,
    Namespace,
    Name,
}

/// A text that is no pattern of subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a subject is letters, digits, - and _ in parts between dots, with {{kind}}, {{namespace}} and {{name}} at most once each, \
     such as gitops.{{kind}}.{{namespace}}.{{name}}"
)]
pub struct SubjectPatternError;

impl SubjectPattern {
    /// Reads one.
    ///
    /// # Errors
    /// [`SubjectPatternError`].
    pub fn new(text: &str) -> Result<Self, SubjectPatternError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((plain, placeholder)) = rest.split_once('{') {
            let (name, after) = placeholder.split_once('}').ok_or(SubjectPatternError)?;
            let part = match name {
                "kind" => Part::Kind,
                "namespace" => Part::Namespace,
                "name" => Part::Name,
                _ => return Err(SubjectPatternError),
            };
            if parts.contains(&part) {
                return Err(SubjectPatternError);
            }
            parts.extend([Part::Text(plain.to_owned()), part]);
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        let pattern = Self { text: text.to_owned(), parts };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let with = pattern.filled(|_| "x".to_owned());
        let is_subject = with.split('.').all(|token| !token.is_empty() && token.bytes().all(plain));
        if is_subject && text.len() <= LONGEST { Ok(pattern) } else { Err(SubjectPatternError) }
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// All of its subjects, as a stream names what it takes.
    #[must_use]
    pub fn filter(&self) -> String {
        // A wildcard is a whole part of a subject.
        let marked = self.filled(|_| "*".to_owned());
        let token = |token: &str| if token.contains('*') { "*".to_owned() } else { token.to_owned() };
        marked.split('.').map(token).collect::<Vec<_>>().join(".")
    }

    /// The subject of an object's reports.
    #[must_use]
    pub fn of(&self, key: &Key) -> String {
        self.filled(|part| {
            token(match part {
                Part::Kind => key.kind(),
                Part::Namespace => key.namespace(),
                Part::Name | Part::Text(_) => key.name(),
            })
        })
    }

    fn filled(&self, of: impl Fn(&Part) -> String) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            placeholder => of(placeholder),
        };
        self.parts.iter().map(text).collect()
    }
}

/// One part of a subject: as short as it must be, and another one for each text.
fn token(text: &str) -> String {
    pipeline_bus::token(text).unwrap_or_else(|_too_long| {
        let mut cut = CUT.to_owned();
        // Writing to a `String` cannot fail.
        let _ = write!(cut, "{:016x}", Digest::of(text.as_bytes()).0);
        cut
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_filled_with_one_part_each() {
        let pattern = SubjectPattern::new("gitops.prod.{kind}.{namespace}.{name}").unwrap();
        let of = |kind, namespace, name| pattern.of(&Key::of_kind(kind, namespace, name).unwrap());
        assert_eq!(of("rollout", "shop", "web"), "gitops.prod.rollout.shop.web");
        assert_eq!(of("rollout", "shop", "web.v2"), "gitops.prod.rollout.shop.web=2Ev2");
        assert_eq!(of("widgets.example.com", "", "a"), "gitops.prod.widgets=2Eexample=2Ecom.=.a");
        assert_eq!(pattern.filter(), "gitops.prod.*.*.*");
        let key = Key::of_kind("rollout", "shop", "web").unwrap();
        let mixed = SubjectPattern::new("of-{namespace}.{name}-{kind}.end").unwrap();
        assert_eq!(
            (mixed.of(&key), mixed.filter()),
            ("of-shop.web-rollout.end".to_owned(), "*.*.end".to_owned())
        );
        let plain = SubjectPattern::new("gitops").unwrap();
        assert_eq!((plain.of(&key), plain.filter()), ("gitops".to_owned(), "gitops".to_owned()));
        assert_eq!(mixed.as_str(), "of-{namespace}.{name}-{kind}.end");
    }

    #[test]
    fn what_is_no_subject_is_refused() {
        let long = "a".repeat(257);
        for text in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a.*",
            "a.>",
            "a b",
            "$JS.API",
            "a.{uid}",
            "{kind",
            "kind}",
            "{kind}.{kind}",
            "{{kind}}",
            "ä",
            &long,
        ] {
            let refused = SubjectPattern::new(text).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "a subject is letters, digits, - and _ in parts between dots, with {kind}, {namespace} and {name} at most \
                 once each, such as gitops.{kind}.{namespace}.{name}",
                "{text}"
            );
        }
        assert!(SubjectPattern::new(&"a".repeat(256)).is_ok());
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_place_whatever_it_holds(namespace in "\\PC{0,80}", name in "\\PC{1,300}") {
            // What stands between the parts of a key is in none of them.
            let (namespace, name) = (namespace.replace('/', "-"), name.replace('/', "-"));
            let Ok(key) = Key::of_kind("rollout", &namespace, &name) else { return Ok(()) };
            let subject = SubjectPattern::new("gitops.{kind}.{namespace}.{name}").unwrap().of(&key);
            prop_assert!(subject.len() < 2_048);
            let tokens: Vec<&str> = subject.split('.').collect();
            prop_assert_eq!(tokens.len(), 4);
            for token in tokens {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte);
                prop_assert!(!token.is_empty() && token.bytes().all(plain), "{}", token);
            }
        }
    }
}
