//! A running installation, part by part: what is well, what is not, and what to do about it.
//!
//! takes: a namespace, and the release where it holds several - gives: each part, and the one to begin with
//! calls: a cluster through [`Cluster`], to read - fails: never; what nobody could look at is said to be not measured

mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;

use self::pods::Pods;
use crate::access::Verdict;
use crate::access::hop::{add_row, list, shown, text};
use crate::rules::Cluster;

/// What every object of the chart is labelled with, and where it says of which release it is.
const LABEL: &str = "app.kubernetes.io%2Fpart-of%3Dcodefresh-gitops-runtime";
const RELEASE: &str = "/metadata/labels/app.kubernetes.io~1instance";

/// What is looked at.
pub struct Looked<'a> {
    /// The cluster, or why none is asked.
    pub cluster: Result<&'a dyn Cluster, &'a str>,
    /// Where the chart is installed.
    pub namespace: &'a str,
    /// Which release of it; `None`: all that are there.
    pub release: Option<&'a str>,
    /// The version of whoever asks.
    pub version: &'a str,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What it is.
    pub part: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do next; empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub todo: String,
    /// Whether it is being updated.
    #[serde(skip)]
    pub is_updating: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Installation {
    /// Each part, in the order in which one depends on another.
    pub parts: Vec<Part>,
    /// How many workloads were looked at.
    workloads: usize,
}

/// Looks at all of it.
#[must_use]
pub fn installation(looked: &Looked<'_>) -> Installation {
    let mut found = Installation::default();
    let cluster = match looked.cluster {
        Ok(cluster) => cluster,
        Err(why) => {
            found.fails("cluster", why, "give a kubeconfig with --kubeconfig");
            return found;
        }
    };
    match cluster.get("/version") {
        Ok(version) => {
            let version = version.unwrap_or_default();
            found.works("Kubernetes", shown(text(&version, "/gitVersion")));
        }
        Err(why) => {
            found.fails("Kubernetes", why, "see whether the kubeconfig leads to a cluster: kubectl version");
            return found;
        }
    }
    let workloads = found.workloads(cluster, looked);
    let releases: BTreeSet<&str> =
        workloads.iter().map(|(_, one)| text(one, RELEASE)).filter(|name| !name.is_empty()).collect();
    found.releases(cluster, looked.namespace, &releases);
    found.version(cluster, looked);
    let pods = match Pods::read(cluster, looked.namespace) {
        Ok(pods) => pods,
        Err(why) => {
            found.unmeasured("pods", why, "ask as somebody who may list pods and persistentvolumeclaims");
            return found;
        }
    };
    for (kind, workload) in &workloads {
        pods.judge(kind, workload, &mut found);
    }
    found.workloads = workloads.len();
    found
}

impl Installation {
    fn add(
        &mut self,
        part: impl Into<String>,
        verdict: Verdict,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) {
        let (part, found, todo) = (part.into(), found.into(), todo.into());
        self.parts.push(Part { part, verdict, found, todo, is_updating: false });
    }

    fn works(&mut self, part: impl Into<String>, found: impl Into<String>) {
        self.add(part, Verdict::Works, found, "");
    }

    fn doubts(&mut self, part: impl Into<String>, found: impl Into<String>, todo: impl Into<String>) {
        self.add(part, Verdict::Doubtful, found, todo);
    }

    fn updates(&mut self, part: impl Into<String>, found: impl Into<String>, todo: impl Into<String>) {
        self.doubts(part, found, todo);
        if let Some(part) = self.parts.last_mut() {
            part.is_updating = true;
        }
    }

    fn fails(&mut self, part: impl Into<String>, found: impl Into<String>, todo: impl Into<String>) {
        self.add(part, Verdict::Fails, found, todo);
    }

    fn unmeasured(&mut self, part: impl Into<String>, why: impl Into<String>, todo: impl Into<String>) {
        self.add(part, Verdict::Unmeasured, why, todo);
    }

    /// What makes pods, each with its kind.
    fn workloads(&mut self, cluster: &dyn Cluster, looked: &Looked<'_>) -> Vec<(&'static str, Json)> {
        let of = looked.release.map(|name| format!(",app.kubernetes.io%2Finstance%3D{name}"));
        let selector = format!("{LABEL}{}", of.unwrap_or_default());
        let (mut all, mut unread) = (Vec::new(), false);
        for (kind, plural) in [("StatefulSet", "statefulsets"), ("Deployment", "deployments")] {
            let at =
                format!("/apis/apps/v1/namespaces/{}/{plural}?labelSelector={selector}", looked.namespace);
            match cluster.get(&at) {
                Ok(found) => {
                    let found = found.unwrap_or_default();
                    all.extend(list(&found, "/items").iter().map(|one| (kind, one.clone())));
                }
                Err(why) => {
                    unread = true;
                    self.unmeasured(plural, why, format!("ask as somebody who may list {plural}"));
                }
            }
        }
        if all.is_empty() && !unread {
            let of = looked.release.map(|name| format!(" of the release {name}")).unwrap_or_default();
            let todo =
                "see helm list --all-namespaces, and give --namespace and --release as they stand there";
            self.fails("installation", format!("nothing{of} is in namespace {}", looked.namespace), todo);
        }
        all
    }

    /// What Helm keeps of the releases; one that another program has rendered has nothing there.
    fn releases(&mut self, cluster: &dyn Cluster, namespace: &str, names: &BTreeSet<&str>) {
        let at = format!("/api/v1/namespaces/{namespace}/secrets?labelSelector=owner%3Dhelm");
        let all = match cluster.metadata(&at) {
            Ok(all) => all.unwrap_or_default(),
            Err(why) => {
                let todo = "ask as somebody who may list secrets, of which their labels alone are read";
                return self.unmeasured("release", why, todo);
            }
        };
        let mut newest: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        for one in list(&all, "/items") {
            let label = |name: &str| text(one, &format!("/metadata/labels/{name}"));
            let (name, version) = (label("name"), label("version").parse().unwrap_or(0));
            let is_newer = newest.get(name).is_none_or(|(known, _)| *known < version);
            if names.contains(name) && is_newer {
                newest.insert(name, (version, label("status")));
            }
        }
        for (name, (version, status)) in newest {
            let part = format!("release {}", shown(name));
            let found = format!("revision {version} is {}", shown(status));
            match status {
                "deployed" => self.works(part, found),
                "failed" => {
                    self.fails(
                        part,
                        found,
                        format!("see helm history {name}, and upgrade again or helm rollback {name}"),
                    );
                }
                _ => {
                    let todo = format!("wait for Helm; where none is at it any more, helm rollback {name}");
                    self.doubts(part, found, todo);
                }
            }
        }
    }

    /// The version that the chart has said is installed.
    fn version(&mut self, cluster: &dyn Cluster, looked: &Looked<'_>) {
        let at = format!("/api/v1/namespaces/{}/configmaps/codefresh-cm", looked.namespace);
        // Not every release has it, and nothing depends on it.
        let Ok(Some(map)) = cluster.get(&at) else { return };
        let installed = shown(text(&map, "/data/version"));
        if installed == looked.version {
            self.works("version", format!("{installed}, as this program"));
        } else if !installed.is_empty() {
            let found = format!("{installed} is installed, and this program is {}", looked.version);
            self.doubts(
                "version",
                found,
                "ask with a program of the version that is installed, or upgrade the release",
            );
        }
    }

    /// The part to begin with.
    #[must_use]
    pub fn failing(&self) -> Option<&Part> {
        self.parts.iter().find(|part| part.verdict == Verdict::Fails)
    }

    /// The part to wait for: one that fails, one that is being updated, or, where no workload was looked at, one that nobody could
    /// read.
    #[must_use]
    pub fn unsettled(&self) -> Option<&Part> {
        let is_unread = |part: &&Part| !self.is_seen() && part.verdict == Verdict::Unmeasured;
        let parts = || self.parts.iter();
        self.failing().or_else(|| parts().find(|part| part.is_updating)).or_else(|| parts().find(is_unread))
    }

    /// Whether a workload was looked at: else nobody knows whether anything runs.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.workloads > 0
    }

    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            add_row(&mut out, (part.part.as_str(), part.verdict), &part.found, &part.todo);
        }
        let is = |verdict: Verdict| self.parts.iter().any(|part| part.verdict == verdict);
        // Writing to a text cannot fail.
        let _ = match self.failing() {
            Some(part) => writeln!(out, "Begin with {}.", part.part),
            None if !self.is_seen() => {
                writeln!(out, "No workload could be looked at: nobody knows whether they run.")
            }
            None if is(Verdict::Unmeasured) => writeln!(out, "Nothing that was looked at fails."),
            None if is(Verdict::Doubtful) => {
                writeln!(out, "Everything runs, and not all is as it should be.")
            }
            None => writeln!(out, "Everything is well."),
        };
        out
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> String {
        let failing = self.failing().map(|part| &part.part);
        let whole = serde_json::json!({"failing": failing, "parts": self.parts});
        format!("{whole:#}\n")
    }
}
