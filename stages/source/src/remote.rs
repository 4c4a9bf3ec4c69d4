//! Whether something that a Kustomization names is in another repository.

/// Whether it is an address and no path of this repository.
pub(crate) fn is_remote(place: &str) -> bool {
    let host = place.split('/').next().unwrap_or_default();
    place.contains("://")
        || place.contains("?ref=")
        || place.starts_with("git@")
        || place.starts_with("git::")
        || matches!(host, "github.com" | "gitlab.com" | "bitbucket.org")
        || host.contains(':')
}

#[cfg(test)]
mod tests {
    use super::is_remote;

    #[test]
    fn addresses_are_told_from_paths() {
        for remote in [
            "https://github.com/a/b//c?ref=v1",
            "github.com/a/b",
            "git@host:a/b.git",
            "ssh://git@host/a",
            "host:a/b",
            "x/y?ref=main",
        ] {
            assert!(is_remote(remote), "{remote}");
        }
        for here in ["../base", "base.yaml", "a/github.com", "./x"] {
            assert!(!is_remote(here), "{here}");
        }
    }
}
