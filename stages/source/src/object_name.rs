//! What an object's name becomes on its way through prefixes, suffixes and hashes.

/// Characters of the hash that Kustomize puts at the end of a generated object's name.
const HASH: usize = 10;

/// The name of an object that a file makes, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectName {
    /// Exactly this name.
    Exact(String),
    /// This name, and a hash of the content behind it.
    Hashed(String),
    /// A name that the cluster generates, which begins with this.
    Generated(String),
}

impl ObjectName {
    /// Puts a prefix before it, and a suffix behind it. The hash stays last.
    pub(crate) fn wrap(&mut self, prefix: &str, suffix: &str) {
        match self {
            Self::Exact(name) | Self::Hashed(name) => *name = format!("{prefix}{name}{suffix}"),
            // Kustomize does not change `generateName`.
            Self::Generated(_) => {}
        }
    }

    /// The part of it that is known.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Hashed(name) | Self::Generated(name) => name,
        }
    }

    /// Whether a compiled object of this `name` and `generateName` may have it.
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
    use super::ObjectName;

    #[test]
    fn a_hash_is_ten_letters_and_digits_at_the_end() {
        let mut name = ObjectName::Hashed("conf".to_owned());
        name.wrap("prod-", "-v2");
        assert!(name.is("prod-conf-v2-7k5g9b2t6m", ""));
        for other in ["prod-conf-v2", "prod-conf-v2-7k5g9b2t6", "prod-conf-v2-7k5g9b2t6M", "conf-7k5g9b2t6m"]
        {
            assert!(!name.is(other, ""), "{other}");
        }
    }

    #[test]
    fn a_name_that_the_cluster_makes_is_told_by_what_it_begins_with() {
        let mut name = ObjectName::Generated("migrate-".to_owned());
        name.wrap("prod-", "");
        assert!(name.is("", "migrate-"));
        assert!(!name.is("migrate-", ""));
    }
}
