//! What an object's name becomes on its way through prefixes, suffixes and hashes.

/// Characters of the hash that Kustomize puts at the end of a generated object's name.
const HASH: usize = 10;

/// The name of an object that a file makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// This one.
    Exact(String),
    /// This one and a hash of its content.
    Hashed(String),
    /// The cluster makes it, beginning with this.
    Generated(String),
}

impl Name {
    /// Puts something before and behind it. The hash comes last.
    pub(crate) fn wrap(&mut self, prefix: &str, suffix: &str) {
        match self {
            Self::Exact(name) | Self::Hashed(name) => *name = format!("{prefix}{name}{suffix}"),
            // Kustomize knows no name here, and leaves it.
            Self::Generated(_) => {}
        }
    }

    /// As far as it is known.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Hashed(name) | Self::Generated(name) => name,
        }
    }

    /// Whether it is this compiled name.
    pub(crate) fn is(&self, name: &str, generate_name: &str) -> bool {
        match self {
            Self::Exact(own) => own == name,
            Self::Hashed(own) => {
                let hash = name.strip_prefix(own.as_str()).and_then(|rest| rest.strip_prefix('-'));
                hash.is_some_and(|hash| {
                    hash.len() == HASH
                        && hash.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                })
            }
            Self::Generated(own) => name.is_empty() && own == generate_name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn a_hash_is_ten_letters_and_digits_at_the_end() {
        let mut name = Name::Hashed("conf".to_owned());
        name.wrap("prod-", "-v2");
        assert!(name.is("prod-conf-v2-7k5g9b2t6m", ""));
        for other in ["prod-conf-v2", "prod-conf-v2-7k5g9b2t6", "prod-conf-v2-7k5g9b2t6M", "conf-7k5g9b2t6m"]
        {
            assert!(!name.is(other, ""), "{other}");
        }
    }

    #[test]
    fn a_name_that_the_cluster_makes_is_told_by_what_it_begins_with() {
        let mut name = Name::Generated("migrate-".to_owned());
        name.wrap("prod-", "");
        assert!(name.is("", "migrate-"));
        assert!(!name.is("migrate-", ""));
    }
}
