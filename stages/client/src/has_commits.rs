//! Which sources of an Argo CD Application come from Git.
//!
//! takes: the repository's address and the chart's name, as the Application has them - gives: whether the source has commits -
//! fails: never

/// How Argo CD, from 3.1 on, tells an artifact of an OCI registry from a repository of Git; it minds the case.
const REGISTRY: &str = "oci://";

/// Whether the revisions of a source are commits of Git. Those of a chart of a Helm repository are versions, and those of an
/// artifact of an OCI registry are digests, whether it is a chart or not and whether the chart is named or not: neither is asked
/// of Git, nor is Argo CD asked who committed them.
#[must_use]
pub fn has_commits(repo_url: &str, chart: &str) -> bool {
    chart.is_empty() && !repo_url.starts_with(REGISTRY)
}

#[cfg(test)]
mod tests {
    use super::has_commits;

    #[test]
    fn neither_a_chart_of_a_repository_nor_what_a_registry_holds_has_commits() {
        for repo_url in [
            "https://git.example.com/team/mono.git",
            "git@git.example.com:team/mono.git",
            "ssh://git@git.example.com/oci://mono",
            "/srv/mono",
            "",
        ] {
            assert!(has_commits(repo_url, ""), "{repo_url}");
            assert!(!has_commits(repo_url, "web"), "{repo_url}");
        }
        for repo_url in ["oci://registry.example.com/team/web", "oci://registry.example.com", "oci://"] {
            assert!(!has_commits(repo_url, ""), "{repo_url}");
            assert!(!has_commits(repo_url, "web"), "{repo_url}");
        }
    }
}
