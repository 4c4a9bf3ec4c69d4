//! A fleet that is made up: applications of many runtimes with their resources, and what they reported of the last days.
//!
//! The same shape gives the same fleet each time; its times count back from when it is made.

use std::io::Write as _;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bodies::Body;

pub(super) const NAMESPACE: &str = "argocd";
const SERVICES: [&str; 20] = [
    "payments", "checkout", "cart", "catalog", "search", "orders", "invoices", "shipping", "stock", "prices",
    "reviews", "accounts", "sessions", "mail", "images", "reports", "billing", "audit", "gateway",
    "frontend",
];
const ENVIRONMENTS: [&str; 4] = ["production", "staging", "test", "development"];
const PEOPLE: [&str; 5] = ["Ada Byron", "Lin Chen", "Mia Novak", "Omar Haddad", "Sven Berg"];
/// Teams, by the label `team`.
const TEAMS: usize = 50;
/// What an application is made of, in this order: the version of the API, the kind, and whether it has a health.
const KINDS: [(&str, &str, bool); 10] = [
    ("apps/v1", "Deployment", true),
    ("v1", "ConfigMap", false),
    ("v1", "Service", true),
    ("v1", "ServiceAccount", false),
    ("networking.k8s.io/v1", "Ingress", true),
    ("autoscaling/v2", "HorizontalPodAutoscaler", true),
    ("policy/v1", "PodDisruptionBudget", false),
    ("networking.k8s.io/v1", "NetworkPolicy", false),
    ("v1", "Secret", false),
    ("batch/v1", "CronJob", true),
];
/// Which of them is rolled out, and which drifts.
const ROLLED: usize = 0;
const DRIFTS: usize = 1;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// Applications whose first reports are made together.
const TOGETHER: usize = 500;
/// Every so many releases of an application fail.
const FAILS: usize = 10;
/// An application drifts once in so many days.
const DRIFT: usize = 3;

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) runtimes: usize,
    pub(super) applications: usize,
    /// Of each application, at most ten.
    pub(super) resources: usize,
    /// So many of the applications have a history,
    pub(super) lived: usize,
    /// of so many days, with a release in each.
    pub(super) days: usize,
}

/// A report, and the number of the runtime that sends it.
pub(super) struct Sent {
    pub(super) runtime: usize,
    pub(super) body: Body,
}

/// What an application is in.
#[derive(Debug, Clone, Copy)]
struct State {
    release: u32,
    sync: &'static str,
    health: &'static str,
    phase: &'static str,
    started: i64,
    finished: Option<i64>,
}

/// What happens to an application on a day.
#[derive(Debug, Clone, Copy)]
enum Step {
    Noticed,
    Begun,
    RollsOut,
    Ended,
    RolledOut,
    Settled,
    ResourceDrifts,
    Drifts,
    ResourceMended,
    Mended,
}

/// In their order, each with how long after the day's begin.
const STEPS: [(Step, i64); 10] = [
    (Step::Noticed, 0),
    (Step::Begun, 20 * SECOND),
    (Step::RollsOut, 25 * SECOND),
    (Step::Ended, 60 * SECOND),
    (Step::RolledOut, 90 * SECOND),
    (Step::Settled, 95 * SECOND),
    (Step::ResourceDrifts, 6 * HOUR),
    (Step::Drifts, 6 * HOUR + SECOND),
    (Step::ResourceMended, 7 * HOUR),
    (Step::Mended, 7 * HOUR + SECOND),
];

/// The fleet, and what it reports next.
pub(super) struct Fleet {
    shape: Shape,
    now: i64,
    states: Vec<State>,
    /// Of the last object: each is newer than all before it.
    version: u64,
    /// How many applications have reported first, and how many steps of the days were made since.
    at: (usize, usize),
}

impl Fleet {
    /// Nothing of it is reported yet.
    pub(super) fn new(shape: Shape) -> Self {
        let now = Timestamp::now().as_millisecond();
        let mut random = fastrand::Rng::with_seed(1);
        let states = (0..shape.applications).map(|index| {
            // Those that live through days begin well; of the others some are not.
            let (sync, health) = match random.u32(0..100) {
                _ if index < shape.lived => ("Synced", "Healthy"),
                0..3 => ("Synced", "Degraded"),
                3..5 => ("OutOfSync", "Missing"),
                5..8 => ("Synced", "Progressing"),
                8..12 => ("OutOfSync", "Healthy"),
                _ => ("Synced", "Healthy"),
            };
            let ago = if index < shape.lived { 0 } else { random.i64(HOUR..20 * DAY) };
            let started = if ago > 0 { now - ago } else { now - shape.days as i64 * DAY - 12 * HOUR };
            State {
                release: 1,
                sync,
                health,
                phase: "Succeeded",
                started,
                finished: Some(started + 40 * SECOND),
            }
        });
        Self { shape, now, states: states.collect(), version: 0, at: (0, 0) }
    }

    /// How many reports there are in all.
    pub(super) fn reports(&self) -> usize {
        let Shape { applications, resources, lived, days, .. } = self.shape;
        let drifts =
            (0..lived).map(|index| (0..days).filter(|day| drifts(index, *day)).count()).sum::<usize>();
        applications * (1 + resources) + lived * days * 6 + drifts * 4
    }

    /// The reports that come next, none of which is of the same object as another; none when all were made.
    pub(super) fn batch(&mut self) -> anyhow::Result<Vec<Sent>> {
        let Shape { applications, resources, lived, days, .. } = self.shape;
        let (first, step) = self.at;
        let mut made = Vec::new();
        if first < applications {
            let until = applications.min(first + TOGETHER);
            for index in first..until {
                let at = self.state(index)?.finished.unwrap_or(self.now);
                made.push(self.of_application(index, at)?);
                for part in 0..resources {
                    made.push(self.of_resource(index, part, ("Synced", "Healthy"), at)?);
                }
            }
            self.at.0 = until;
        } else if let Some((happens, after)) =
            STEPS.get(step % STEPS.len()).copied().filter(|_| step / STEPS.len() < days)
        {
            let day = days - 1 - step / STEPS.len();
            for index in 0..lived {
                made.extend(self.live(index, day, happens, after)?);
            }
            self.at.1 = step + 1;
            if made.is_empty() {
                // Nobody drifts on that day.
                return self.batch();
            }
        }
        Ok(made)
    }

    fn live(&mut self, index: usize, day: usize, step: Step, after: i64) -> anyhow::Result<Option<Sent>> {
        let at = self.begin(index, day) + after;
        let fails = (index + day).is_multiple_of(FAILS);
        let is_drift =
            matches!(step, Step::ResourceDrifts | Step::Drifts | Step::ResourceMended | Step::Mended);
        if is_drift && !drifts(index, day) {
            return Ok(None);
        }
        let state = self.states.get_mut(index).context("an application")?;
        match step {
            Step::Noticed => (state.release, state.sync) = (state.release + 1, "OutOfSync"),
            Step::Begun => {
                (state.phase, state.health) = ("Running", "Progressing");
                (state.started, state.finished) = (at, None);
            }
            Step::Ended => {
                state.finished = Some(at);
                (state.phase, state.sync) =
                    if fails { ("Failed", "OutOfSync") } else { ("Succeeded", "Synced") };
            }
            Step::Settled => state.health = if fails { "Degraded" } else { "Healthy" },
            Step::Drifts => state.sync = "OutOfSync",
            Step::Mended => state.sync = "Synced",
            Step::RollsOut | Step::RolledOut | Step::ResourceDrifts | Step::ResourceMended => {}
        }
        let health = if fails { "Degraded" } else { "Healthy" };
        match step {
            Step::RollsOut => self.of_resource(index, ROLLED, ("Synced", "Progressing"), at),
            Step::RolledOut => self.of_resource(index, ROLLED, ("Synced", health), at),
            Step::ResourceDrifts => self.of_resource(index, DRIFTS, ("OutOfSync", health), at),
            Step::ResourceMended => self.of_resource(index, DRIFTS, ("Synced", health), at),
            _ => self.of_application(index, at),
        }
        .map(Some)
    }

    /// Another release of an application, now: its report, and the version that its row shows then.
    pub(super) fn release(&mut self, index: usize) -> anyhow::Result<(Sent, String)> {
        let now = Timestamp::now().as_millisecond();
        let state = self.states.get_mut(index).context("an application")?;
        state.release += 1;
        (state.started, state.finished) = (now - SECOND, Some(now));
        let version = version(state.release);
        Ok((self.of_application(index, now)?, version))
    }

    /// The numbers of its applications.
    pub(super) fn numbers(&self) -> std::ops::Range<usize> {
        0..self.shape.applications
    }

    /// When an application's day begins, so many days ago.
    fn begin(&self, index: usize, day: usize) -> i64 {
        self.now - (day as i64 + 1) * DAY + (index as i64 * 7_919 % 36_000) * SECOND
    }

    /// Two moments, in milliseconds, between which an application had a release, so many days ago.
    pub(super) fn around(&self, index: usize, day: usize) -> (i64, i64) {
        let begin = self.begin(index, day);
        (begin - 60 * SECOND, begin + 180 * SECOND)
    }

    /// The address of an application's page.
    pub(super) fn path(&self, index: usize) -> String {
        format!("/applications/{}", self.key(index))
    }

    /// What the row of an application is known by.
    pub(super) fn key(&self, index: usize) -> String {
        format!("{}/{NAMESPACE}/{}", runtime(self.runtime_of(index)), name(index))
    }

    /// What the resource that is rolled out is known by in an address.
    pub(super) fn rolled(index: usize) -> String {
        let (_, kind, _) = KINDS[ROLLED];
        format!("apps%2F{kind}%2F{}%2F{}", namespace(index), resource_name(index, ROLLED))
    }

    /// How many applications are of a team.
    pub(super) fn of_team(&self, team: &str) -> usize {
        (0..self.shape.applications).filter(|index| self::team(*index) == team).count()
    }

    const fn runtime_of(&self, index: usize) -> usize {
        index % self.shape.runtimes
    }

    fn state(&self, index: usize) -> anyhow::Result<State> {
        self.states.get(index).copied().context("an application")
    }

    fn of_application(&mut self, index: usize, at: i64) -> anyhow::Result<Sent> {
        self.version += 1;
        let (name, namespace) = (name(index), namespace(index));
        let State { release, sync, health, phase, started, finished } = self.state(index)?;
        let revision = revision(index, release);
        let author = PEOPLE[(index + release as usize) % PEOPLE.len()];
        let source = json!({
            "repoURL": format!("https://git.example.com/shop/{}.git", SERVICES[index % SERVICES.len()]),
            "path": format!("deploy/{}", environment(index)), "targetRevision": "main",
        });
        let listed = (0..self.shape.resources).map(|part| {
            let (api_version, kind, _) = KINDS[part % KINDS.len()];
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            json!({
                "group": group, "version": version, "kind": kind, "namespace": namespace,
                "name": resource_name(index, part), "status": "Synced", "health": {"status": "Healthy"},
            })
        });
        let listed: Vec<Value> = listed.collect();
        let mut operation = json!({
            "phase": phase, "startedAt": time(started)?, "message": format!("release {}", version(release)),
            "operation": {"initiatedBy": {"username": "release-bot"}, "sync": {"revision": revision}},
            "syncResult": {"revision": revision, "source": source},
        });
        if let Some(finished) = finished {
            operation["finishedAt"] = time(finished)?.into();
        }
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "uid": uid(index, 99), "resourceVersion": self.version.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "team": team(index), "env": environment(index), "app.meta.commit-author": author,
                    "app.meta.commit-message": format!("{name}: release {} with what was asked for", version(release)),
                },
            },
            "spec": {
                "project": SERVICES[index % SERVICES.len()], "source": source,
                "destination": {"name": format!("cluster-{}", self.runtime_of(index)), "namespace": namespace},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": false}},
            },
            "status": {
                "sync": {"status": sync, "revision": revision}, "health": {"status": health}, "resources": listed,
                "operationState": operation, "summary": {"images": [image(index, release)]}, "sourceType": "Directory",
                "reconciledAt": time(at)?,
            },
        });
        let data = json!({
            "object": STANDARD.encode(object.to_string()), "timestamp": time(at)?,
            "source": {"appName": name, "appNamespace": NAMESPACE},
        });
        self.sent(index, &data)
    }

    fn of_resource(
        &mut self,
        index: usize,
        part: usize,
        (sync, health): (&str, &str),
        at: i64,
    ) -> anyhow::Result<Sent> {
        self.version += 1;
        let release = self.state(index)?.release;
        let (_, _, has_health) = KINDS[part % KINDS.len()];
        let desired = manifest(index, part, release);
        let mut live = desired.clone();
        live["metadata"]["uid"] = uid(index, part).into();
        live["metadata"]["resourceVersion"] = self.version.to_string().into();
        live["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        if has_health {
            live["status"] = json!({"observedGeneration": release, "phase": health});
        }
        if sync == "OutOfSync" {
            live["metadata"]["annotations"]["example.com/by-hand"] = time(at)?.into();
        }
        let text = live.to_string();
        let mut source = json!({
            "appName": name(index), "appNamespace": NAMESPACE, "syncStatus": sync,
            "desiredManifest": desired.to_string(),
        });
        source["actualManifest"] = text.clone().into();
        if has_health {
            source["healthStatus"] = health.into();
        }
        let data = json!({"object": STANDARD.encode(&text), "timestamp": time(at)?, "source": source});
        self.sent(index, &data)
    }

    fn sent(&self, index: usize, data: &Value) -> anyhow::Result<Sent> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json!({"data": data}).to_string().as_bytes())?;
        let body = Body { key: format!("{:032x}", self.version), gzip: encoder.finish()? };
        Ok(Sent { runtime: self.runtime_of(index), body })
    }
}

/// The name of a runtime by its number.
pub(super) fn runtime(number: usize) -> String {
    format!("runtime{number:02}")
}

/// The team of an application.
pub(super) fn team(index: usize) -> String {
    format!("team-{}", index / 3 % TEAMS)
}

/// The name of an application.
pub(super) fn name(index: usize) -> String {
    format!("{}-{index:05}", SERVICES[index % SERVICES.len()])
}

fn environment(index: usize) -> &'static str {
    ENVIRONMENTS[index / SERVICES.len() % ENVIRONMENTS.len()]
}

fn namespace(index: usize) -> String {
    format!("{}-{}", SERVICES[index % SERVICES.len()], environment(index))
}

fn resource_name(index: usize, part: usize) -> String {
    // Those of a kind are told by their application.
    if part < KINDS.len() { name(index) } else { format!("{}-{part}", name(index)) }
}

fn version(release: u32) -> String {
    format!("1.{release}.0")
}

fn image(index: usize, release: u32) -> String {
    format!("registry.example.com/shop/{}:{}", SERVICES[index % SERVICES.len()], version(release))
}

fn revision(index: usize, release: u32) -> String {
    let text = format!("{index} {release}");
    let [high, low] = [0, 1].map(|seed| seahash::hash_seeded(text.as_bytes(), seed, 2, 3, 4));
    format!("{high:016x}{low:016x}{release:08x}")
}

fn uid(index: usize, part: usize) -> String {
    format!("{index:08x}-{part:04x}-4000-8000-000000000000")
}

fn drifts(index: usize, day: usize) -> bool {
    // What failed to be deployed is out of sync as it is.
    (index + day).is_multiple_of(DRIFT) && !(index + day).is_multiple_of(FAILS)
}

fn time(at: i64) -> anyhow::Result<String> {
    Ok(Timestamp::from_millisecond(at).context("a time")?.to_string())
}

fn manifest(index: usize, part: usize, release: u32) -> Value {
    let (api_version, kind, _) = KINDS[part % KINDS.len()];
    let (name, labels) = (resource_name(index, part), json!({"app": name(index), "team": team(index)}));
    let spec = match kind {
        "Deployment" => json!({"spec": {
            "replicas": 3, "revisionHistoryLimit": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": name,
                "containers": [{
                    "name": "app", "image": image(index, release), "ports": [{"containerPort": 8080, "name": "http"}],
                    "env": [{"name": "RELEASE", "value": version(release)}, {"name": "LOG_LEVEL", "value": "info"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                    "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 10},
                    "volumeMounts": [{"name": "settings", "mountPath": "/etc/app"}],
                }],
                "volumes": [{"name": "settings", "configMap": {"name": name}}],
            }},
        }}),
        "ConfigMap" => {
            json!({"data": {"log.level": "info", "release": version(release), "app.yaml": "cache: 60s\nretries: 3\n"}})
        }
        "Service" => json!({"spec": {"selector": labels, "ports": [{"port": 80, "targetPort": "http"}]}}),
        "Ingress" => json!({"spec": {"rules": [{"host": format!("{name}.example.com")}]}}),
        "HorizontalPodAutoscaler" => json!({"spec": {"minReplicas": 3, "maxReplicas": 9}}),
        "CronJob" => json!({"spec": {"schedule": "17 3 * * *", "concurrencyPolicy": "Forbid"}}),
        _ => json!({}),
    };
    let mut manifest = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": namespace(index), "labels": labels, "annotations": {"example.com/owner": team(index)}},
    });
    if let (Some(manifest), Some(spec)) = (manifest.as_object_mut(), spec.as_object()) {
        manifest.extend(spec.clone());
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_reports_are_made_as_are_told_and_each_under_a_key_of_its_own() {
        let mut fleet = Fleet::new(Shape { runtimes: 3, applications: 12, resources: 4, lived: 5, days: 4 });
        let mut keys = std::collections::BTreeSet::new();
        loop {
            let made = fleet.batch().unwrap();
            if made.is_empty() {
                break;
            }
            assert!(made.iter().all(|sent| sent.runtime < 3));
            for sent in made {
                assert!(keys.insert(sent.body.key), "a key comes again");
            }
        }
        assert_eq!(keys.len(), fleet.reports());
        assert!(fleet.reports() > 12 * 5 + 5 * 4 * 6, "somebody drifts");
    }
}
