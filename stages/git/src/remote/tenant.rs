//! For whom a repository is read, and whether Argo CD would read it for them.
//!
//! An Application says itself which project it is of: what counts is what the AppProject says of the namespace that it stands in,
//! and of the repository. It is judged as Argo CD does: `spec.sourceNamespaces`, `spec.sourceRepos`, those of the
//! `globalProjects` that count for the project, and the repositories that have a Secret of the project.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexSet};
use serde_json::Value;

use super::prefix::comparable;
use super::{FetchError, RepositoryUrl, global_projects};

/// The project of an Application that names none.
const DEFAULT: &str = "default";

/// An application, as far as it counts who may read a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    project: String,
    namespace: String,
}

impl Tenant {
    /// An application of a project that stands in a namespace; both as the Application says, empty where it says nothing.
    #[must_use]
    pub fn new(project: &str, namespace: &str) -> Self {
        let project = if project.is_empty() { DEFAULT } else { project };
        Self { project: project.to_owned(), namespace: namespace.to_owned() }
    }

    /// The project of an application.
    #[must_use]
    pub fn project(&self) -> &str {
        &self.project
    }
}

/// What AppProjects say, of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Projects {
    namespace: String,
    all: BTreeMap<String, Project>,
}

/// What one says of applications and repositories.
#[derive(Debug, Clone)]
struct Project {
    namespaces: (GlobSet, RegexSet),
    repositories: Vec<Rule>,
}

/// One of `spec.sourceRepos`.
#[derive(Debug, Clone)]
struct Rule {
    denies: bool,
    /// `None`: a pattern that cannot be read is that of nothing, and where it denies that of everything.
    pattern: Option<Regex>,
}

impl Projects {
    /// Reads the AppProjects of Argo CD's namespace, with `globalProjects` of its ConfigMap `argocd-cm`, which may be empty.
    #[must_use]
    pub fn read(namespace: &str, objects: &[impl Borrow<Value>], global: &str) -> Self {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        let objects = || objects.iter().map(<_ as Borrow<Value>>::borrow);
        let own: BTreeMap<String, Project> =
            objects().filter_map(|object| Some((name(object)?, Project::read(object)))).collect();
        let (global, mut all) = (global_projects::read(global), own.clone());
        for object in objects() {
            let Some(name) = name(object) else { continue };
            let Some(project) = all.get_mut(&name) else { continue };
            for one in global.iter().filter(|one| one.project != name) {
                match (one.takes(&object["metadata"]["labels"]), own.get(&one.project)) {
                    (Some(false), _) => {}
                    (Some(true), Some(found)) => project.repositories.extend_from_slice(&found.repositories),
                    _ => break,
                }
            }
        }
        Self { namespace: namespace.to_owned(), all }
    }

    /// Whether an application may have a repository. One that `has_secret` of its project is permitted by that, unless the project
    /// denies it.
    pub(super) fn permit(
        &self,
        url: &RepositoryUrl,
        of: &Tenant,
        has_secret: bool,
    ) -> Result<(), FetchError> {
        let Tenant { project, namespace } = of;
        let Some(found) = self.all.get(project) else {
            let (project, namespace) = (project.clone(), self.namespace.clone());
            return Err(FetchError::NoProject { project, namespace });
        };
        if !namespace.is_empty() && *namespace != self.namespace && !found.takes(namespace) {
            return Err(FetchError::NotOfProject { project: project.clone(), namespace: namespace.clone() });
        }
        if !found.permits(url, has_secret) {
            return Err(FetchError::NotPermitted { url: url.to_string(), project: project.clone() });
        }
        Ok(())
    }
}

impl Project {
    fn read(object: &Value) -> Self {
        let texts =
            |name: &str| object["spec"][name].as_array().into_iter().flatten().filter_map(Value::as_str);
        let (mut globs, mut regexes) = (GlobSetBuilder::new(), Vec::new());
        for pattern in texts("sourceNamespaces") {
            match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
                // What cannot be read matches nothing.
                Some(expression) => regexes.extend(Regex::new(expression).is_ok().then_some(expression)),
                None => {
                    if let Ok(glob) = Glob::new(pattern) {
                        globs.add(glob);
                    }
                }
            }
        }
        let namespaces = (globs.build().unwrap_or_default(), RegexSet::new(regexes).unwrap_or_default());
        Self { namespaces, repositories: texts("sourceRepos").map(Rule::read).collect() }
    }

    fn takes(&self, namespace: &str) -> bool {
        let (globs, regexes) = &self.namespaces;
        globs.is_match(namespace) || regexes.is_match(namespace)
    }

    /// Whatever a rule with `!` does not deny it permits, as it does for Argo CD.
    fn permits(&self, url: &RepositoryUrl, has_secret: bool) -> bool {
        let url = comparable(url.as_str());
        let mut permitted = has_secret;
        for rule in &self.repositories {
            let is_it = rule.pattern.as_ref().map_or(rule.denies, |pattern| pattern.is_match(&url));
            match (rule.denies, is_it) {
                (true, true) => return false,
                (true, false) | (false, true) => permitted = true,
                (false, false) => {}
            }
        }
        permitted
    }
}

impl Rule {
    fn read(text: &str) -> Self {
        let (denies, url) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        // Sets, alternatives and escapes are not read: such a rule denies all, or permits nothing.
        let is_read = !url.contains(['{', '[', '\\']);
        Self { denies, pattern: is_read.then(|| Regex::new(&expression(url)).ok()).flatten() }
    }
}

/// The expression of a pattern of addresses: `*` and `?` stand for what holds no slash, `**` for anything, and `*` alone as well.
fn expression(pattern: &str) -> String {
    let pattern = comparable(pattern);
    if pattern == "*" {
        return String::new();
    }
    let mut expression = String::from(r"\A");
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' => {
                let mut stars = 1;
                while rest.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                expression.push_str(if stars > 1 { "(?s:.*)" } else { "[^/]*" });
            }
            '?' => expression.push_str("[^/]"),
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    expression.push_str(r"\z");
    expression
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Projects, Tenant};
    use crate::RepositoryUrl;

    fn projects() -> Projects {
        let project = |name: &str, repositories: &[&str], namespaces: &[&str]| {
            let spec = json!({"sourceRepos": repositories, "sourceNamespaces": namespaces});
            json!({"metadata": {"name": name}, "spec": spec})
        };
        let all = [
            project("default", &["*"], &[]),
            project(
                "shop",
                &["https://Git.example/shop/*", "git@git.example:shop/web.git"],
                &["shop-*", "/^web$/"],
            ),
            project("deep", &["https://git.example/**"], &[]),
            project("but", &["*", "!https://git.example/secret/*"], &[]),
            project("only-denies", &["!https://git.example/secret"], &[]),
            project("alternatives", &["https://git.example/{open,shop}/*"], &[]),
            project("but-alternatives", &["*", "!https://git.example/{secret,private}/*"], &[]),
            project("none", &[], &["[", "/(/"]),
            project("base", &["https://git.example/base/*"], &["base-*"]),
            labelled("base", project("heir", &["https://git.example/own"], &[])),
            labelled("shut", project("heir-of-all", &["*"], &[])),
            json!({"metadata": {}}),
        ];
        let global = "
- {projectName: base, labelSelector: {matchLabels: {inherits: base}}}
- {projectName: but, labelSelector: {matchLabels: {inherits: shut}}}
- {labelSelector: {matchLabels: {inherits: base}}}
- {projectName: default, labelSelector: {matchLabels: {inherits: base}}}
";
        Projects::read("argocd", &all, global)
    }

    fn labelled(inherits: &str, mut project: serde_json::Value) -> serde_json::Value {
        project["metadata"]["labels"] = json!({"inherits": inherits});
        project
    }

    fn judged(project: &str, namespace: &str, url: &str) -> String {
        let url = RepositoryUrl::read(url).unwrap();
        match projects().permit(&url, &Tenant::new(project, namespace), false) {
            Ok(()) => "permitted".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_repository_is_permitted_as_the_project_says() {
        for (project, url, permitted) in [
            ("", "https://git.example/any/where", true),
            ("default", "ssh://git@git.example/any", true),
            ("shop", "https://git.example/shop/web.git", true),
            ("shop", "https://git.example/SHOP/web/", true),
            ("shop", "https://git.example/shop/web/deep", false),
            ("shop", "https://git.example/shop", false),
            ("shop", "https://git.example.evil.example/shop/web", false),
            ("shop", "http://git.example/shop/web", false),
            ("shop", "ssh://git@git.example/shop/web", true),
            ("shop", "ssh://git@git.example/shop/other", false),
            ("deep", "https://git.example/a/b/c", true),
            ("deep", "https://git2example/a", false),
            ("but", "https://git.example/open/a", true),
            ("but", "https://git.example/secret/a", false),
            ("only-denies", "https://git.example/open", true),
            ("only-denies", "https://git.example/secret.git", false),
            ("alternatives", "https://git.example/open/a", false),
            ("but-alternatives", "https://git.example/private/a", false),
            ("but-alternatives", "https://git.example/open/a", false),
            ("none", "https://git.example/open", false),
            ("base", "https://git.example/own", false),
            ("heir", "https://git.example/own", true),
            ("heir", "https://git.example/base/a", true),
            ("heir", "https://git.example/other", false),
            ("heir-of-all", "https://git.example/other", true),
            ("heir-of-all", "https://git.example/secret/a", false),
        ] {
            let found = judged(project, "argocd", url);
            let refused = format!(
                "{url} is no repository of AppProject {project}: add it to spec.sourceRepos there",
                url = RepositoryUrl::read(url).unwrap()
            );
            assert_eq!(
                found,
                if permitted { "permitted".to_owned() } else { refused },
                "{project} and {url}"
            );
        }
    }

    #[test]
    fn an_application_is_of_a_project_only_where_the_project_takes_its_namespace() {
        let url = "https://git.example/shop/web";
        for (project, namespace) in
            [("shop", "argocd"), ("shop", ""), ("shop", "shop-a"), ("shop", "web"), ("default", "")]
        {
            assert_eq!(judged(project, namespace, url), "permitted", "{project} and {namespace}");
        }
        for (project, namespace) in
            [("shop", "webs"), ("shop", "other"), ("default", "shop-a"), ("none", "[")]
        {
            let refused = format!(
                "an application of namespace {namespace} is none of AppProject {project}: add the namespace to spec.sourceNamespaces there"
            );
            assert_eq!(judged(project, namespace, url), refused);
        }
        assert_eq!(judged("gone", "argocd", url), "there is no AppProject gone in namespace argocd");
    }

    #[test]
    fn a_secret_of_the_project_permits_its_repository_unless_that_is_denied() {
        let judged = |project: &str, url: &str| {
            let url = RepositoryUrl::read(url).unwrap();
            projects().permit(&url, &Tenant::new(project, "argocd"), true).is_ok()
        };
        assert!(judged("none", "https://git.example/open"));
        assert!(!judged("but", "https://git.example/secret/a"));
    }
}
