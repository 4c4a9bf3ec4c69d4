//! A fleet and accounts that are made up and kept in memory: what pages are looked at and tested with.

mod fleet;

use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use stages_platform_console::{
    Activity, ApplicationRow, BroughtCommit, Change, CommitFiles, Deployment, DriftedResource, Filter, Fleet,
    Fleets, Health, ImageChange, Life, ManifestSource, Outcome, Resource, ResourceKey, RuntimeProblem, Said,
    Span, SyncStatus, Window,
};
use stages_platform_store::{
    ApplicationName, CommitOf, FileDiff, FleetMover, GroupBy, Pods, RefusedReports, Shipped, SourceChange,
    Term, View,
};
use tokio::sync::watch;

const NAMES: [&str; 24] = [
    "basket",
    "basket-worker",
    "catalog",
    "checkout",
    "checkout-edge",
    "fraud",
    "invoices",
    "ledger",
    "mailer",
    "payments",
    "payments-batch",
    "pricing",
    "recommend",
    "search",
    "search-index",
    "sessions",
    "shipping",
    "stock",
    "tax",
    "returns",
    "loyalty",
    "gift-cards",
    "reviews",
    "wishlist",
];
const PEOPLE: [&str; 5] = ["Ada Byron", "Lin Zhao", "Sam Okafor", "Mia Novak", "Jon Reyes"];
const MESSAGES: [&str; 7] = [
    "raise memory of the api to 512Mi",
    "bump to 2.14.1",
    "enable retries for the ledger client",
    "feature flag: new basket",
    "rotate certificates",
    "fix: readiness path",
    "scale out before the sale",
];

/// Made up; `text` is put into every field that a runtime reports, where it is given.
pub(crate) struct Sample {
    pub(crate) sequence: watch::Sender<u64>,
    pub(crate) hostile: Option<String>,
    pub(crate) empty: bool,
    pub(crate) degraded: Mutex<Vec<String>>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let degraded = Mutex::new(vec!["payments".to_owned()]);
        Self { sequence: watch::Sender::new(1), hostile: None, empty: false, degraded }
    }

    fn text(&self, own: impl Into<String>) -> String {
        self.hostile.clone().unwrap_or_else(|| own.into())
    }

    fn source(&self) -> ManifestSource {
        ManifestSource {
            repository: self.text("https://git.example.com/team/shop.git"),
            path: self.text("payments"),
            revision: self.text("main"),
        }
    }

    fn change(&self, seed: usize) -> Change {
        let revision = format!("{:07x}{:033x}", (seed + 1) * 0x09f_3b21 % 0xfff_ffff, seed);
        Change {
            revision: self.text(revision),
            message: self.text(MESSAGES[seed % MESSAGES.len()]),
            author: self.text(PEOPLE[seed % PEOPLE.len()]),
        }
    }

    /// One deployment an application: each seventh failed, and half of those are not over.
    fn shipped(&self) -> Vec<Shipped> {
        let now = Timestamp::now().as_millisecond();
        let one = |(index, row): (i64, ApplicationRow)| {
            let finished_at = now - index * 3_600_000;
            let failed_at = (index % 7 == 3).then_some(finished_at + 60_000);
            Shipped {
                application: ApplicationName {
                    runtime: row.id.runtime,
                    namespace: row.id.namespace,
                    name: row.id.name,
                },
                started_at: finished_at - 90_000,
                finished_at,
                succeeded: index % 14 != 3,
                revision: self.text("3f9c1e2a"),
                committed_at: Some(finished_at - (20 + index) * 60_000),
                failed_at,
                restored_at: failed_at.filter(|_| index % 2 == 1).map(|at| at + 1_080_000),
            }
        };
        (0..).zip(self.rows(&Filter::default())).map(one).collect()
    }

    fn rows(&self, filter: &Filter) -> Vec<ApplicationRow> {
        if self.empty {
            return Vec::new();
        }
        let mut rows: Vec<_> = (0..48).map(|index| self.row(index, filter.grouping)).collect();
        rows.retain(|row| filter.terms.iter().all(|term| keeps(term, row)));
        rows.sort_by_key(|row| {
            (row.group != "production", row.group.clone(), row.health, row.sync, row.id.name.clone())
        });
        rows
    }

    fn row(&self, index: usize, grouping: GroupBy) -> ApplicationRow {
        let name = NAMES[index % NAMES.len()];
        let environment = if index < NAMES.len() { "production" } else { "staging" };
        let runtime = ["eu-1", "us-1", "ap-1"][index % 3];
        let degraded = index < NAMES.len() && self.degraded.lock().unwrap().iter().any(|one| one == name);
        let health = if degraded {
            Health::Degraded
        } else if index == 15 {
            Health::Progressing
        } else {
            Health::Healthy
        };
        let sync = if index % 7 == 3 { SyncStatus::OutOfSync } else { SyncStatus::Synced };
        let group = match grouping {
            GroupBy::Environment => environment,
            GroupBy::Runtime => runtime,
            GroupBy::Health => health.word(),
            GroupBy::Application => name,
            _ => "shop",
        };
        let minutes = [4, 12, 60, 180, 1_500, 2_900, 8_700][index % 7];
        ApplicationRow {
            id: ApplicationName {
                runtime: self.text(runtime),
                namespace: self.text(format!("argocd-{environment}")),
                name: self.text(name),
            },
            health,
            sync,
            environment: self.text(environment),
            project: self.text("shop"),
            version: Some(self.text(format!("2.{}.{}", 11 + index % 4, index % 5))),
            change: Some(self.change(index)),
            deployed: Some(Timestamp::now() - SignedDuration::from_mins(minutes)),
            group: self.text(group),
        }
    }

    fn deployments(&self, id: &ApplicationName, window: Window) -> Vec<Deployment> {
        let deployment = |(index, minutes): (usize, i64)| {
            let at = window.end - SignedDuration::from_mins(minutes);
            Deployment {
                application: id.clone(),
                at,
                finished: Some(at + SignedDuration::from_mins(2)),
                change: self.change(index),
                by: Some(self.text("ada@example.com")),
                images: vec![
                    ImageChange {
                        name: self.text("registry.example.com/payments-api"),
                        before: Some(self.text(format!("2.14.{index}"))),
                        after: self.text(format!("2.14.{}", index + 1)),
                    },
                    ImageChange {
                        name: self.text("envoy"),
                        before: Some("1.31.2".to_owned()),
                        after: "1.31.2".to_owned(),
                    },
                ],
                outcome: if index == 3 { Outcome::Failed } else { Outcome::Succeeded },
                message: self.text(if index == 3 { "2 of 6 pods fail their readiness probe" } else { "" }),
                brought: self.brought(index),
            }
        };
        let all = [9_500, 7_400, 4_200, 580].into_iter().enumerate().map(deployment);
        all.filter(|one| one.at >= window.begin).collect()
    }

    /// Of the newest deployment two sources, of the one before a return, of the first nothing.
    fn brought(&self, index: usize) -> Vec<SourceChange> {
        let commit = |seed: usize| {
            let Change { revision, message, author } = self.change(seed);
            let path = |file: usize| self.text(format!("apps/payments/{file}/values.yaml"));
            let (paths, more_paths) = ((0..seed % 4).map(path).collect(), if seed == 7 { 40 } else { 0 });
            CommitOf { revision, message, author, paths, more_paths, ..CommitOf::default() }
        };
        let source = |commits: Vec<CommitOf>| SourceChange {
            repository: self.text("https://github.com/example/shop.git"),
            commits,
            ..SourceChange::default()
        };
        match index {
            0 => Vec::new(),
            1 => vec![source(vec![commit(1)])],
            2 => vec![SourceChange { none_is_new: true, ..source(vec![commit(0)]) }],
            _ => vec![
                SourceChange { more: true, ..source((3..10).map(commit).collect()) },
                SourceChange {
                    error: self.text("git.example.com does not answer as a Git server does"),
                    repository: self.text("https://git.example.com/values"),
                    ..SourceChange::default()
                },
            ],
        }
    }

    fn brought_commit(&self) -> BroughtCommit {
        let text = |own: &str| self.text(own);
        let file =
            |path: &str, diff: String| FileDiff { path: text(path), text: diff, ..FileDiff::default() };
        let long = format!("a line that is {} long", "very ".repeat(60));
        let values = format!(
            "@@ -10,7 +10,8 @@\n resources:\n   limits:\n     cpu: 500m\n-    memory: {}\n+    memory: {}\n+    ephemeral-storage: 1Gi\n   \
             requests:\n     cpu: 100m\n     memory: 128Mi\n@@ -40,2 +41,2 @@\n env:\n-  NOTE: {}\n+  NOTE: {long}\n",
            text("256Mi"),
            text("512Mi"),
            text("before"),
        );
        let secret = "@@ -1,4 +1,4 @@\n kind: Secret\n stringData:\n-  word: redacted:hmac-sha256:00112233445566778899aabbccddeeff\n\
                      +  word: redacted:hmac-sha256:ffeeddccbbaa99887766554433221100\n type: Opaque\n";
        let untold = |path: &str, why: &str| FileDiff { untold: text(why), ..file(path, String::new()) };
        let cut =
            FileDiff { cut: true, ..file("apps/payments/new.yaml", "@@ -0,0 +1,1 @@\n+a: 1\n".to_owned()) };
        let change = self.change(3);
        BroughtCommit {
            change: Change {
                message: text("raise memory of the api to 512Mi\n\nIt was killed twice.\n"),
                ..change
            },
            made_from: None,
            sources: vec![
                CommitFiles {
                    repository: text("https://github.com/example/shop.git"),
                    diffs: vec![
                        file("apps/payments/values.yaml", values),
                        file("apps/payments/secret.yaml", secret.to_owned()),
                        untold("apps/payments/logo.png", "binary"),
                        cut,
                    ],
                    paths: vec![text("apps/payments/README.md")],
                    more_paths: 40,
                },
                CommitFiles {
                    repository: text("https://git.example.com/values"),
                    diffs: vec![untold("notes.txt", "unreadable")],
                    ..CommitFiles::default()
                },
            ],
            newer: Some(self.change(4).revision),
            older: Some(self.change(2).revision),
        }
    }

    fn life(&self, row: &ApplicationRow, window: Window) -> Life {
        let deployments = self.deployments(&row.id, window);
        let (mut health, mut at) = (Vec::new(), window.begin);
        for one in &deployments {
            let up = one.finished.unwrap() + SignedDuration::from_mins(60);
            health.push(Span { from: at, to: one.at, state: Health::Healthy });
            health.push(Span { from: one.at, to: up, state: Health::Progressing });
            at = up;
        }
        health.push(Span { from: at, to: window.end, state: row.health });
        let drifted = window.end - SignedDuration::from_mins(8_000);
        let back = drifted + SignedDuration::from_mins(500);
        let sync = vec![
            Span { from: window.begin, to: drifted, state: SyncStatus::Synced },
            Span { from: drifted, to: back, state: SyncStatus::OutOfSync },
            Span { from: back, to: window.end, state: row.sync },
        ];
        let drift = vec![Span { from: drifted, to: back, state: () }];
        let first = Some(window.begin);
        Life { from: window.begin, to: window.end, first, health, sync, drift, deployments }
    }

    fn drifted(&self, id: &ApplicationName, span: &Span<()>) -> DriftedResource {
        let what = [
            Said::Code(self.text("spec.replicas")),
            Said::Text(format!(" {} → {}, by ", self.text("6"), self.text("9"))),
            Said::Code(self.text("kubectl")),
        ];
        DriftedResource {
            key: ResourceKey {
                group: "apps".to_owned(),
                kind: self.text("Deployment"),
                namespace: self.text("shop"),
                name: self.text(format!("{}-api", id.name)),
            },
            from: span.from,
            to: Some(span.to),
            what: what.into(),
        }
    }

    fn activity(&self, rows: &[ApplicationRow]) -> Activity {
        let one = |(row, deployments): (&ApplicationRow, u64)| FleetMover {
            application: row.id.clone(),
            deployments,
            failed: deployments / 9,
            before: 20,
        };
        Activity {
            deployments: 1_310,
            before: Some(1_204),
            movers: rows.iter().zip([61, 33, 20, 8]).map(one).collect(),
        }
    }

    fn refused(&self, reason: &str, number: u64) -> RefusedReports {
        let at = (Timestamp::now() - SignedDuration::from_mins(4)).as_millisecond();
        RefusedReports { reason: self.text(reason), number, at }
    }

    fn problems(&self) -> Vec<RuntimeProblem> {
        let now = Timestamp::now();
        let one = |error, title: &str, message: &str, suggestion: &str| RuntimeProblem {
            error,
            title: self.text(title),
            message: self.text(message),
            suggestion: self.text(suggestion),
            since: error.then(|| now - SignedDuration::from_hours(3)),
            seen: Some(now - SignedDuration::from_secs(40)),
        };
        let quota = "the namespace has used 92 % of its memory quota";
        vec![
            one(
                true,
                "The runtime's Git token",
                "github.com refuses it",
                "register another: gitops-runtime git token",
            ),
            one(false, "Resources", quota, "raise the quota, or give the reporter less"),
        ]
    }

    fn resources(&self, row: &ApplicationRow, window: Window) -> Vec<Resource> {
        let name = &row.id.name;
        let moved = window.from.is_some();
        let key = |group: &str, kind: &str, name: String| ResourceKey {
            group: group.to_owned(),
            kind: self.text(kind),
            namespace: self.text("shop"),
            name: self.text(name),
        };
        let deployment = key("apps", "Deployment", format!("{name}-api"));
        let one = |key: ResourceKey, health: Option<Health>, parent: Option<&ResourceKey>, changed: bool| {
            let pods = |ready, wanted, revision| Some(Pods { ready, wanted, revision: Some(revision) });
            let pods = match key.name.rsplit('-').next() {
                Some("7d9f8c6b54") => pods(4, 6, 10),
                Some("5c41d9aa07") => pods(2, 2, 9),
                _ => None,
            };
            let message = match (pods, health) {
                (Some(pods), _) => pods.to_string(),
                (None, Some(Health::Degraded)) => "2 of 6 pods fail their readiness probe".to_owned(),
                (None, _) => String::new(),
            };
            Resource {
                key,
                health,
                sync: SyncStatus::Synced,
                message: self.text(&message),
                pods,
                parent: parent.cloned(),
                since: window.end - SignedDuration::from_mins(14),
                changed: changed && moved,
            }
        };
        vec![
            one(key("", "ConfigMap", "settings".to_owned()), None, None, true),
            one(key("", "Service", format!("{name}-api")), Some(Health::Healthy), None, false),
            one(deployment.clone(), Some(row.health), None, true),
            one(
                key("apps", "ReplicaSet", format!("{name}-api-7d9f8c6b54")),
                Some(row.health),
                Some(&deployment),
                true,
            ),
            one(
                key("apps", "ReplicaSet", format!("{name}-api-5c41d9aa07")),
                Some(Health::Healthy),
                Some(&deployment),
                false,
            ),
            one(key("batch", "CronJob", "reconcile".to_owned()), Some(Health::Healthy), None, false),
        ]
    }
}

fn keeps(term: &Term, row: &ApplicationRow) -> bool {
    let change = row.change.clone().unwrap_or_default();
    match term {
        Term::Text(text) => {
            let all = [&row.id.name, &row.id.runtime, &change.message, &change.author, &change.revision];
            all.into_iter().any(|one| one.to_lowercase().contains(&text.to_lowercase()))
        }
        Term::Environment(all) => all.contains(&row.environment),
        Term::Runtime(all) => all.contains(&row.id.runtime),
        Term::Project(all) => all.contains(&row.project),
        Term::Health(all) => all.contains(&row.health.word()),
        Term::Sync(all) => all.contains(&row.sync.word()),
        Term::Commit(text) => change.revision.starts_with(text),
        Term::By(text) => change.author.to_lowercase().contains(text),
        Term::Deployed(within) => row.deployed.is_some_and(|at| {
            Timestamp::now().duration_since(at) <= SignedDuration::from_millis(within.span())
        }),
        Term::Label(key, _) => key == "team",
        Term::Image(_) | Term::Cluster(_) | Term::Product(_) | Term::Resource(_) => true,
    }
}

/// Everybody sees all of it.
pub(crate) struct ForEverybody(pub(crate) Arc<Sample>);

impl Fleets for ForEverybody {
    fn seen_by(&self, _: View) -> Arc<dyn Fleet> {
        self.0.clone()
    }

    fn sequence(&self) -> watch::Receiver<u64> {
        self.0.sequence.subscribe()
    }
}
