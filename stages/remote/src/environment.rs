//! What the environment says to these commands.

use std::path::{Path, PathBuf};

/// What the environment says: read once, where the process begins.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The context that is meant.
    pub(crate) context: Option<String>,
    /// Where people keep settings.
    config: Option<PathBuf>,
    /// Nobody wants colours.
    pub(crate) no_color: bool,
    /// The terminal knows no escapes.
    pub(crate) dumb: bool,
    /// A shell asks for names: nothing is said beside them.
    pub(crate) completes: bool,
}

impl Environment {
    /// Asks for each variable by its name; an empty one is none.
    #[must_use]
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        // The standard has a relative one ignored.
        let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let own = get("XDG_CONFIG_HOME").and_then(absolute);
        let config = own.or_else(|| get("HOME").and_then(absolute).map(|home| home.join(".config")));
        Self {
            context: get("GITOPS_RUNTIME_CONTEXT"),
            config: config.map(|folder| folder.join("gitops-runtime")),
            no_color: get("NO_COLOR").is_some(),
            dumb: get("TERM").is_some_and(|name| name == "dumb"),
            completes: false,
        }
    }

    /// Where contexts are kept.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_where_the_standard_says() {
        let of = |all: &[(&str, &str)]| {
            let get =
                |name: &str| all.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
            Environment::of(get).folder().map(Path::to_path_buf)
        };
        let expected = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/home/a")]), expected("/x/gitops-runtime"));
        assert_eq!(of(&[("HOME", "/home/a")]), expected("/home/a/.config/gitops-runtime"));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "x"), ("HOME", "/a")]), expected("/a/.config/gitops-runtime"));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "")]), None);
    }
}
