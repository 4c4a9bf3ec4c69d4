//! Where an application comes from and where it goes: what lists and searches tell it by.

/// What a report says of an application beside its state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// Its Argo CD project.
    pub project: String,
    /// The cluster that it is deployed to, by name or else by address.
    pub cluster: String,
    /// The namespace in that cluster.
    pub namespace: String,
    /// The repository that it comes from.
    pub repository: String,
    /// The path or chart in that repository.
    pub path: String,
    /// The product that it belongs to, where it says one.
    pub product: String,
    /// Its labels, by name.
    pub labels: Vec<(String, String)>,
}

/// Labels that name an environment, the first that is there.
const ENVIRONMENT: [&str; 4] =
    ["environment", "env", "app.kubernetes.io/environment", "codefresh.io/environment"];

impl Placement {
    /// Where it runs, as people say it: a label of its, or the namespace that it is deployed to.
    #[must_use]
    pub fn environment(&self) -> &str {
        let labelled = |name: &&str| self.labels.iter().find(|(key, _)| key == name);
        ENVIRONMENT.iter().find_map(labelled).map_or(&self.namespace, |(_, value)| value)
    }
}

/// The version of an image: its tag, or the beginning of its digest.
#[must_use]
pub fn version(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let tag = name.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
    tag.or_else(|| digest.map(|digest| digest.get(..19).unwrap_or(digest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_tag_or_the_beginning_of_a_digest_and_no_port() {
        let digest = "sha256:0123456789abcdef0123";
        for (image, expected) in [
            ("registry.example.com:5000/shop/web:1.2.3", Some("1.2.3")),
            ("registry.example.com:5000/shop/web", None),
            ("web:1@sha256:00", Some("1")),
            (&format!("web@{digest}"), Some("sha256:0123456789ab")),
            ("", None),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
    }

    #[test]
    fn an_environment_is_a_label_or_the_namespace_that_is_deployed_to() {
        let mut placement = Placement { namespace: "shop".to_owned(), ..Placement::default() };
        assert_eq!(placement.environment(), "shop");
        placement.labels = vec![("env".to_owned(), "staging".to_owned())];
        assert_eq!(placement.environment(), "staging");
    }
}
