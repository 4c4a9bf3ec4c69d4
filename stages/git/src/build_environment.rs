//! The variables that Argo CD replaces in the paths of files of values.

use crate::application::{Application, Source};

/// What they stand for while the manifests of one source are made.
pub(crate) struct BuildEnvironment<'a> {
    application: &'a Application,
    source: &'a Source,
}

impl<'a> BuildEnvironment<'a> {
    pub(crate) const fn new(application: &'a Application, source: &'a Source) -> Self {
        Self { application, source }
    }

    /// What a path may be.
    pub(crate) fn replace(&self, path: &str) -> Vec<String> {
        let called = self.application.called();
        called.map(|name| expand(path, |variable| self.value(variable, &name).to_owned())).collect()
    }

    fn value<'v>(&'v self, variable: &str, name: &'v str) -> &'v str {
        match variable {
            "$" => "$",
            "ARGOCD_APP_NAME" => name,
            "ARGOCD_APP_NAMESPACE" => &self.application.destination,
            "ARGOCD_APP_PROJECT_NAME" => &self.application.project,
            // No commit can hold a file that is called by its own id: it is one of any.
            "ARGOCD_APP_REVISION" | "ARGOCD_APP_REVISION_SHORT" | "ARGOCD_APP_REVISION_SHORT_8" => "*",
            "ARGOCD_APP_SOURCE_PATH" => &self.source.path,
            "ARGOCD_APP_SOURCE_REPO_URL" => &self.source.repo_url,
            "ARGOCD_APP_SOURCE_TARGET_REVISION" => &self.source.target_revision,
            _ => "",
        }
    }
}

/// Replaces `$name` and `${name}` as Go's `os.Expand` does: what is not well formed is left out, and a `$` before what no name begins
/// with stays.
fn expand(text: &str, value: impl Fn(&str) -> String) -> String {
    const SPECIAL: &str = "*#$@!?-0123456789";
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, behind) = if let Some(braced) = after.strip_prefix('{') {
            // A name may hold what it likes between braces.
            braced.split_once('}').unwrap_or(("", braced))
        } else if after.starts_with(|c: char| SPECIAL.contains(c)) {
            after.split_at(1)
        } else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            after.split_at(end)
        };
        rest = behind;
        if behind.len() == after.len() {
            expanded.push('$');
        } else if !name.is_empty() {
            expanded.push_str(&value(name));
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn variables_are_replaced_as_go_replaces_them() {
        let value = |name: &str| match name {
            "$" => "$".to_owned(),
            "NAME" => "shop".to_owned(),
            "a-b" => "odd".to_owned(),
            _ => String::new(),
        };
        for (text, expected) in [
            ("", ""),
            ("plain.yaml", "plain.yaml"),
            ("$NAME.yaml", "shop.yaml"),
            ("env/${NAME}/$NAME-values.yaml", "env/shop/shop-values.yaml"),
            ("$NAME_.yaml", ".yaml"),
            ("$none/x", "/x"),
            ("$$NAME", "$NAME"),
            ("${$}NAME", "$NAME"),
            ("${a-b}", "odd"),
            ("$1x", "x"),
            ("a$", "a$"),
            ("a$/b", "a$/b"),
            ("a${}b", "ab"),
            ("a${NAME", "aNAME"),
            ("é$NAMEé", "éshopé"),
        ] {
            assert_eq!(expand(text, value), expected, "{text:?}");
        }
    }
}
