//! The applications that change all the time: what each is made of, and what can be changed about it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::argocd::ArgoCd;
use crate::git::BRANCH;
use crate::objects::Reference;

/// The finalizer by which an application takes its resources with it.
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// An application that is a resource of another.
const CHILDREN: &str = "faults-children";

/// New texts by path; no text deletes the file.
pub(super) type Files = BTreeMap<String, Option<String>>;

/// One application, with a repository and a namespace of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    /// Its name, and that of its repository and its namespace.
    pub(super) name: &'static str,
    /// The folder of its repository.
    path: &'static str,
    /// What a commit changes.
    commit: fn(u64) -> Files,
    /// What of it drifts.
    drifts: Drifts,
    /// A file that comes and goes, where folders are read as they are.
    extra: Option<&'static str>,
    /// Whether Argo CD syncs it by itself.
    automated: bool,
}

/// An object of an application that is changed by hand, where the repository says otherwise: what it does not speak of
/// would not be seen.
#[derive(Debug, Clone, Copy)]
enum Drifts {
    /// The replicas of the Deployment of this name.
    Replicas(&'static str),
    /// The ConfigMap of this name, and which of its entries.
    Entry(&'static str, &'static str),
}

/// Those that change by themselves, all the time.
pub(super) const SUBJECTS: [Subject; 7] = [
    Subject {
        name: "faults-plain",
        path: "plain",
        commit: |n| file("plain/config.yaml", config("web", "greeting", n)),
        drifts: Drifts::Replicas("web"),
        extra: Some("plain/extra.yaml"),
        automated: false,
    },
    Subject {
        name: "faults-chart",
        path: "chart",
        commit: |n| {
            let replicas = 1 + n % 3;
            let text = format!(
                "replicas: {replicas}\nimage: registry.example.com/api\nsettings:\n  level: level-{n}\n"
            );
            file("chart/values.yaml", text)
        },
        drifts: Drifts::Replicas("faults-chart"),
        extra: Some("chart/templates/extra.yaml"),
        automated: false,
    },
    Subject {
        name: "faults-kustomize",
        path: "kustomize/production",
        commit: |n| {
            let text = format!(
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n\
                 namePrefix: production-\nimages:\n  - name: registry.example.com/shop\n    newTag: 1.1.{n}\n\
                 configMapGenerator:\n  - name: settings\n    literals:\n      - mode=production-{}\n",
                n / 2
            );
            file("kustomize/production/kustomization.yaml", text)
        },
        drifts: Drifts::Replicas("production-shop"),
        extra: None,
        automated: false,
    },
    Subject {
        name: "faults-secrets",
        path: "secrets",
        commit: |n| {
            let text = format!(
                "apiVersion: v1\nkind: Secret\nmetadata:\n  name: database\ntype: Opaque\nstringData:\n  \
                 user: canary-user-{n}\n  password: canary-password-{n}\n"
            );
            file("secrets/secret.yaml", text)
        },
        drifts: Drifts::Entry("settings", "host"),
        extra: Some("secrets/extra.yaml"),
        automated: false,
    },
    Subject {
        name: "faults-hooks",
        path: "hooks",
        commit: |n| file("hooks/config.yaml", config("hooked", "step", n)),
        drifts: Drifts::Entry("hooked", "step"),
        extra: None,
        automated: false,
    },
    Subject {
        name: "faults-many",
        path: "sixty",
        // Fewer than before are pruned.
        commit: |n| file("sixty/values.yaml", format!("count: {}\nround: round-{n}\n", 12 + n * 5 % 9)),
        drifts: Drifts::Entry("item-00", "item"),
        extra: None,
        automated: false,
    },
    Subject {
        name: CHILDREN,
        path: "children",
        commit: |n| file("plain/config.yaml", config("web", "greeting", n)),
        drifts: Drifts::Entry("web", "greeting"),
        extra: Some("children/extra.yaml"),
        automated: true,
    },
];

/// The one that is deleted and made anew while something is away. Nobody syncs it, so that nothing but what was away
/// is waited for.
pub(super) const MORTAL: Subject = Subject {
    name: "faults-mortal",
    path: "plain",
    commit: |n| file("plain/config.yaml", config("web", "greeting", n)),
    drifts: Drifts::Replicas("web"),
    extra: None,
    automated: false,
};

/// Every application that there will be.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<String> = SUBJECTS.iter().chain([&MORTAL]).map(|own| own.name.to_owned()).collect();
    names.extend(["one", "two"].map(|child| format!("{CHILDREN}-{child}")));
    names
}

impl Subject {
    /// Itself, as it is made.
    pub(super) fn object(&self, repository: &str) -> Value {
        let Self { name, path, .. } = *self;
        // Where its own resources go; those of a parent are applications.
        let namespace = if name == CHILDREN { ArgoCd::NAMESPACE } else { name };
        let mut policy = json!({"syncOptions": ["CreateNamespace=true"]});
        if self.automated {
            policy["automated"] = json!({"prune": true});
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": ArgoCd::NAMESPACE, "finalizers": [FINALIZER]},
            "spec": {
                "project": "default",
                "source": {"repoURL": repository, "path": path, "targetRevision": BRANCH},
                "destination": {"server": ArgoCd::DESTINATION, "namespace": namespace},
                "syncPolicy": policy,
            },
        })
    }

    /// Its name in the API server.
    pub(super) fn reference(&self) -> Reference {
        application(self.name)
    }

    /// Applications that a commit to its repository concerns.
    pub(super) fn concerned(&self) -> Vec<String> {
        let own = self.name.to_owned();
        if self.name == CHILDREN { vec![own, format!("{CHILDREN}-one")] } else { vec![own] }
    }

    /// Whether Argo CD syncs it by itself.
    pub(super) fn is_automated(&self) -> bool {
        self.automated
    }

    /// The `n`-th commit.
    pub(super) fn commit(&self, n: u64) -> Files {
        (self.commit)(n)
    }

    /// A commit that adds an object or takes it away; `None` where there is no place for one.
    pub(super) fn extra(&self, there: bool, n: u64) -> Option<Files> {
        let text = there.then(|| config("extra", "number", n));
        Some(Files::from([(self.extra?.to_owned(), text)]))
    }

    /// The object that drifts, and how.
    pub(super) fn drift(&self, n: u64) -> (Reference, Value) {
        let object = |version, kind, name| Reference::new(version, kind, Some(self.name), name);
        match self.drifts {
            Drifts::Replicas(name) => {
                (object("apps/v1", "Deployment", name), json!({"spec": {"replicas": 4 + n % 3}}))
            }
            Drifts::Entry(name, entry) => {
                (object("v1", "ConfigMap", name), json!({"data": {entry: format!("drifted-{n}")}}))
            }
        }
    }

    /// Whether others depend on it: it is not deleted.
    pub(super) fn is_parent(&self) -> bool {
        self.name == CHILDREN
    }
}

/// An Application's name in the API server.
pub(super) fn application(name: &str) -> Reference {
    Reference::new("argoproj.io/v1alpha1", "Application", Some(ArgoCd::NAMESPACE), name)
}

/// What makes its deletion take its resources with it, or leave them.
pub(super) fn finalizers(cascade: bool) -> Value {
    let finalizers = if cascade { json!([FINALIZER]) } else { Value::Null };
    json!({"metadata": {"finalizers": finalizers}})
}

fn file(path: &str, text: String) -> Files {
    Files::from([(path.to_owned(), Some(text))])
}

fn config(name: &str, entry: &str, n: u64) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  {entry}: {entry}-{n}\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_a_commit_replaces_stands_in_the_template() {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("repo");
        for subject in SUBJECTS.iter().chain([&MORTAL]) {
            assert!(template.join(subject.path).is_dir(), "{}", subject.name);
            for (path, text) in subject.commit(3) {
                assert!(template.join(&path).is_file(), "{path}");
                let text = text.unwrap();
                serde_saphyr::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
                assert_ne!(Some(text), subject.commit(4)[&path], "{path} changes with each commit");
            }
            for (path, _) in subject.extra(true, 1).unwrap_or_default() {
                assert!(!template.join(&path).exists(), "{path} is there from the start");
            }
        }
    }

    #[test]
    fn names_are_distinct_and_those_of_the_children_too() {
        let names = names();
        assert_eq!(names.len(), 10);
        assert!(names.iter().all(|name| name.starts_with("faults-")));
        assert!(names.contains(&"faults-children-one".to_owned()));
    }

    #[test]
    fn a_parent_goes_where_applications_live() {
        let parent = SUBJECTS.iter().find(|subject| subject.is_parent()).unwrap();
        assert_eq!(parent.object("http://git")["spec"]["destination"]["namespace"], "argocd");
        assert_eq!(MORTAL.object("http://git")["spec"]["destination"]["namespace"], "faults-mortal");
        assert_eq!(parent.concerned(), ["faults-children", "faults-children-one"]);
    }
}
