//! A fleet and accounts that are made up and kept in memory: what pages are looked at and tested with.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use stages_platform_console::{
    Activity, Added, Application, ApplicationId, ApplicationRow, Brought, BroughtCommit, Cause, Change,
    Changes, ClusterRow, Commit, CommitFiles, Day, Deployment, Drift, FileDiff, Filter, Fleet, Fleets, Group,
    Grouping, Health, Home, ImageChange, Life, Listing, Matrix, Mover, Need, Neighbours, Outcome, Problem,
    Resource, ResourceKey, ResourceRow, RuntimeProblem, RuntimeRow, Shipping, Side, Span, Subject,
    SyncStatus, Term, Transition, Trend, Unavailable, Window,
};
use stages_platform_store::{ApplicationName, Figures, Shipped, View};
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

    fn row(&self, index: usize, grouping: Grouping) -> ApplicationRow {
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
            Grouping::Environment => environment,
            Grouping::Runtime => runtime,
            Grouping::Health => health.word(),
            Grouping::Matrix => name,
            _ => "shop",
        };
        let minutes = [4, 12, 60, 180, 1_500, 2_900, 8_700][index % 7];
        ApplicationRow {
            id: ApplicationId {
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

    fn deployments(&self, id: &ApplicationId, window: Window) -> Vec<Deployment> {
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
    fn brought(&self, index: usize) -> Vec<Brought> {
        let commit = |seed: usize| Commit {
            change: self.change(seed),
            paths: (0..seed % 4).map(|file| self.text(format!("apps/payments/{file}/values.yaml"))).collect(),
            more_paths: if seed == 7 { 40 } else { 0 },
        };
        let source = |commits: Vec<Commit>| Brought {
            repository: self.text("https://github.com/example/shop.git"),
            commits,
            ..Brought::default()
        };
        match index {
            0 => Vec::new(),
            1 => vec![source(vec![commit(1)])],
            2 => vec![Brought { none_is_new: true, ..source(vec![commit(0)]) }],
            _ => vec![
                Brought { more: true, ..source((3..10).map(commit).collect()) },
                Brought {
                    unknown: self.text("git.example.com does not answer as a Git server does"),
                    repository: self.text("https://git.example.com/values"),
                    ..Brought::default()
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
        Life { from: window.begin, to: window.end, health, sync, drift, deployments }
    }

    fn activity(&self, rows: &[ApplicationRow]) -> Activity {
        let one = |(row, deployments): (&ApplicationRow, u64)| Mover {
            application: row.id.clone(),
            deployments,
            failed: deployments / 9,
            before: 20,
        };
        Activity { before: 1_204, movers: rows.iter().zip([61, 33, 20, 8]).map(one).collect() }
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
            Resource {
                key,
                health,
                sync: SyncStatus::Synced,
                message: self.text(if health == Some(Health::Degraded) {
                    "2 of 6 pods fail their readiness probe"
                } else {
                    ""
                }),
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
        Term::Health(all) => all.contains(&row.health),
        Term::Sync(all) => all.contains(&row.sync),
        Term::Commit(text) => change.revision.starts_with(text),
        Term::By(text) => change.author.to_lowercase().contains(text),
        Term::Changed(changed) => row.deployed.is_some_and(|at| {
            Timestamp::now().duration_since(at) <= SignedDuration::try_from(changed.span()).unwrap()
        }),
        Term::Label(key, _) => key == "team",
        Term::Image(_) | Term::Cluster(_) | Term::Product(_) => true,
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

#[async_trait]
impl Fleet for Sample {
    async fn applications(&self, filter: &Filter) -> Result<Listing, Unavailable> {
        let rows = self.rows(filter);
        let mut groups: Vec<Group> = Vec::new();
        for row in &rows {
            match groups.iter_mut().find(|group| group.name == row.group) {
                Some(group) => group.count += 1,
                None => groups.push(Group { name: row.group.clone(), count: 1 }),
            }
        }
        let (total, runtimes) = if self.empty { (0, 0) } else { (48, 3) };
        Ok(Listing { groups, matching: rows.len() as u64, total, runtimes, rows })
    }

    async fn matrix(&self, filter: &Filter) -> Result<Matrix, Unavailable> {
        let mut rows = self.rows(filter);
        rows.sort_by_key(|row| row.id.name.clone());
        let (total, runtimes) = if self.empty { (0, 0) } else { (48, 3) };
        let matching = rows.len() as u64;
        let matrix = Matrix::of(rows);
        Ok(Matrix { names: matrix.rows.len() as u64, matching, total, runtimes, ..matrix })
    }

    async fn neighbours(&self, filter: &Filter, id: &ApplicationId) -> Result<Neighbours, Unavailable> {
        let rows = self.rows(filter);
        let matching = rows.len() as u64;
        let Some(at) = rows.iter().position(|row| row.id == *id) else {
            return Ok(Neighbours { matching, ..Neighbours::default() });
        };
        let one = |index: Option<usize>| index.and_then(|index| rows.get(index)).map(|row| row.id.clone());
        let (previous, next) = (one(at.checked_sub(1)), one(Some(at + 1)));
        Ok(Neighbours { position: Some(at as u64 + 1), matching, previous, next })
    }

    async fn application(
        &self,
        id: &ApplicationId,
        window: Window,
    ) -> Result<Option<Application>, Unavailable> {
        let Some(row) = self.rows(&Filter::default()).into_iter().find(|row| row.id == *id) else {
            return Ok(None);
        };
        let life = self.life(&row, window);
        let broken = row.health == Health::Degraded;
        let cause = broken.then(|| Cause {
            message: self.text("2 of 6 pods of payments-api fail their readiness probe"),
            since: window.end - SignedDuration::from_mins(14),
            after: Some((self.change(3), window.end - SignedDuration::from_mins(16))),
        });
        let transitions = life.health.windows(2).map(|pair| Transition {
            at: pair[1].from,
            health: Some((Some(pair[0].state), pair[1].state)),
            sync: None,
            message: self.text(""),
        });
        let drifts = life.drift.iter().map(|span| Drift {
            from: span.from,
            to: Some(span.to),
            resources: vec![self.text("Deployment/payments-api")],
        });
        let problem = Problem {
            at: window.end,
            error: true,
            message: self.text("hook Job/migrate ended with exit code 1"),
            resource: Some(self.text("Job/migrate")),
        };
        Ok(Some(Application {
            cause,
            as_of: window.end - SignedDuration::from_secs(2),
            silent_since: None,
            deleted: false,
            source: self.text("https://git.example.com/shop.git"),
            destination: self.text("shop"),
            transitions: transitions.rev().collect(),
            resources: self.resources(&row, window),
            drifts: drifts.collect(),
            problems: if broken || self.hostile.is_some() { vec![problem] } else { Vec::new() },
            life,
            row,
        }))
    }

    async fn commit(
        &self,
        id: &ApplicationId,
        _: i64,
        revision: &str,
    ) -> Result<Option<BroughtCommit>, Unavailable> {
        let is_known = self.rows(&Filter::default()).iter().any(|row| row.id == *id) && revision != "gone";
        Ok(is_known.then(|| self.brought_commit()))
    }

    async fn manifest(
        &self,
        id: &ApplicationId,
        resource: &ResourceKey,
        _: Side,
        at: Timestamp,
    ) -> Result<Option<String>, Unavailable> {
        let new = Timestamp::now().duration_since(at) < SignedDuration::from_mins(570);
        let pick = |before: &'static str, after: &'static str| if new { after } else { before };
        let text = |own: &str| self.text(own);
        Ok(Some(
            serde_json::json!({
                "apiVersion": "apps/v1", "kind": resource.kind,
                "metadata": {"name": resource.name, "namespace": resource.namespace, "labels": {"app": id.name}},
                "spec": {"replicas": 6, "template": {"spec": {"containers": [{
                    "name": "api",
                    "image": format!("registry.example.com/payments-api:{}", pick("2.14.0", "2.14.1")),
                    "readinessProbe": {"httpGet": {"path": pick("/ready", "/health/ready"), "port": 8080}},
                    "resources": {"limits": {"memory": pick("256Mi", "512Mi")}},
                    "envFrom": [{"configMapRef": {"name": "settings"}}],
                    "env": [{"name": "NOTE", "value": text(pick("before", "after"))}],
                }]}}},
            })
            .to_string(),
        ))
    }

    async fn home(&self) -> Result<Home, Unavailable> {
        let now = Timestamp::now();
        if self.empty {
            return Ok(Home {
                needs: Vec::new(),
                needs_total: 0,
                applications: 0,
                runtimes: Vec::new(),
                days: Vec::new(),
                activity: Activity::default(),
                clusters: Vec::new(),
                clusters_total: 0,
            });
        }
        let rows = self.rows(&Filter::default());
        let id = |name: &str| rows.iter().find(|row| row.id.name == name).unwrap_or(&rows[0]).id.clone();
        let need = |subject, reason: &str, minutes| Need {
            subject,
            reason: self.text(reason),
            since: now - SignedDuration::from_mins(minutes),
        };
        let place = self.text("production · eu-1");
        let needs = vec![
            need(
                Subject::Unhealthy(id("payments"), place.clone(), Health::Degraded),
                "Degraded for 14 min: 2 of 6 pods of payments-api fail their readiness probe since 3f9c1e2",
                14,
            ),
            need(
                Subject::OutOfSync(id("checkout"), place.clone()),
                "Drifted 3 times this week: Deployment/checkout",
                120,
            ),
            need(
                Subject::SyncFailed(id("search-index"), place.clone()),
                "Sync failed: hook Job/migrate ended with exit code 1",
                31,
            ),
            need(Subject::Troubled(self.text("us-1")), "The runtime's Git token: github.com refuses it", 180),
            need(
                Subject::Silent(self.text("us-2")),
                "No report for 22 min; 214 applications shown as of 08:31",
                22,
            ),
            need(
                Subject::OutOfSync(id("ledger"), place),
                "Out of sync with Git for 5 days; automatic sync is off",
                7_200,
            ),
        ];
        let days = (0..28).map(|day| Day {
            from: now - SignedDuration::from_hours(24 * (27 - day)),
            succeeded: 30 + (day as u64 * 37) % 41,
            failed: (day as u64 * 13) % 9,
        });
        Ok(Home {
            needs_total: needs.len() as u64,
            needs,
            applications: 9_967,
            runtimes: self.runtimes().await?,
            days: days.collect(),
            activity: self.activity(&rows),
            clusters: self.clusters().await?.into_iter().take(2).collect(),
            clusters_total: 3,
        })
    }

    async fn trend(&self, days: u32) -> Result<Trend, Unavailable> {
        let now = Figures::of(&self.shipped());
        let lead_time = now.lead_time.map(|lead| lead + 540_000);
        Ok(Trend { days, now, before: Figures { succeeded: now.succeeded * 9 / 10, lead_time, ..now } })
    }

    async fn shipping(&self, _: &Filter, days: u32) -> Result<Shipping, Unavailable> {
        Ok(Shipping { trend: self.trend(days).await?, deployments: self.shipped() })
    }

    async fn clusters(&self) -> Result<Vec<ClusterRow>, Unavailable> {
        let of = |(runtime, name, unwell, out_of_sync, silent): (&str, &str, u64, u64, bool)| ClusterRow {
            runtime: self.text(runtime),
            name: self.text(name),
            applications: 214,
            healthy: 214 - unwell,
            unwell,
            out_of_sync,
            silent,
        };
        let all = [
            ("eu-1", "https://10.0.0.1:6443", 3, 1, false),
            ("eu-1", "in-cluster", 0, 12, false),
            ("us-2", "in-cluster", 0, 0, true),
        ];
        Ok(if self.empty { Vec::new() } else { all.map(of).into() })
    }

    async fn runtimes(&self) -> Result<Vec<RuntimeRow>, Unavailable> {
        if self.empty {
            return Ok(Vec::new());
        }
        let of = |(name, applications, silent): (&str, u64, bool)| RuntimeRow {
            name: self.text(name),
            version: Some(self.text("3.2.0")),
            applications,
            healthy: applications - applications / 120,
            last_report: Some(Timestamp::now() - SignedDuration::from_secs(if silent { 1_320 } else { 3 })),
            lag: Some(420),
            silent,
            rejected: 0,
            problems: if name == "us-1" { self.problems() } else { Vec::new() },
        };
        Ok([("eu-1", 4_215, false), ("us-1", 3_893, false), ("us-2", 214, true), ("ap-1", 1_645, false)]
            .map(of)
            .into())
    }

    async fn add_runtime(&self, name: &str, _: &str) -> Result<Added, Unavailable> {
        let well =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        Ok(if well {
            Added::Token("gort_made-up".to_owned())
        } else {
            Added::Refused("That is no name.".to_owned())
        })
    }

    async fn deployments(&self, filter: &Filter) -> Result<Vec<Deployment>, Unavailable> {
        let end = Timestamp::now();
        let window = Window { begin: end - SignedDuration::from_hours(24 * 7), end, from: None, to: None };
        let rows = self.rows(filter);
        Ok(rows.iter().flat_map(|row| self.deployments(&row.id, window)).collect())
    }

    async fn resources(&self, text: &str) -> Result<Vec<ResourceRow>, Unavailable> {
        let end = Timestamp::now();
        let window = Window { begin: end, end, from: None, to: None };
        let rows = self.rows(&Filter::default());
        let of = |row: &ApplicationRow| {
            let of = |resource| ResourceRow { application: row.id.clone(), resource, gone: None };
            self.resources(row, window).into_iter().map(of).collect::<Vec<_>>()
        };
        Ok(rows.iter().flat_map(of).filter(|one| one.resource.key.name.contains(text)).take(200).collect())
    }

    async fn changes(&self, after: u64) -> Result<Changes, Unavailable> {
        let now = *self.sequence.borrow();
        if now < after || now - after > 100 {
            return Ok(Changes::Resync(now));
        }
        Ok(Changes::Some(now, vec!["eu-1/argocd-production/basket".to_owned()]))
    }
}
