//! What is asked of it: the made-up fleet as pages read it.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use stages_platform_console::{
    Activity, Added, Application, ApplicationRow, BroughtCommit, Cause, Changes, ClusterRow, Day, Deployment,
    Drift, Filter, Fleet, Group, Health, Home, Listing, Matrix, Need, Problem, ResourceKey, ResourceRow,
    RuntimeRow, Said, Shipping, Side, Steps, Subject, Transition, Trend, Unavailable, Window,
};
use stages_platform_store::{ApplicationName, Figures, FleetCluster, Position, RefusedReports};

use super::Sample;

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

    async fn neighbours(&self, filter: &Filter, id: &ApplicationName) -> Result<Position, Unavailable> {
        let rows = self.rows(filter);
        let matching = rows.len() as u64;
        let Some(at) = rows.iter().position(|row| row.id == *id) else {
            return Ok(Position { matching, ..Position::default() });
        };
        let one = |index: Option<usize>| index.and_then(|index| rows.get(index)).map(|row| row.id.clone());
        let (previous, next) = (one(at.checked_sub(1)), one(Some(at + 1)));
        Ok(Position { position: Some(at as u64 + 1), matching, previous, next })
    }

    async fn application(
        &self,
        id: &ApplicationName,
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
            resource: None,
            health: Some((Some(pair[0].state), pair[1].state)),
            sync: None,
            message: self.text(""),
        });
        let drifts = life.drift.iter().map(|span| Drift {
            from: span.from,
            to: Some(span.to),
            resources: vec![self.drifted(id, span)],
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
            moment: None,
            silent_since: None,
            deleted: false,
            is_syncing: false,
            sources: vec![self.source()],
            destination: self.text("shop"),
            transitions: transitions.rev().collect(),
            is_cut: broken,
            resources: self.resources(&row, window),
            drifts: drifts.collect(),
            problems: if broken || self.hostile.is_some() { vec![problem] } else { Vec::new() },
            life,
            row,
        }))
    }

    async fn deployed(
        &self,
        id: &ApplicationName,
        since: Timestamp,
    ) -> Result<Option<Vec<Deployment>>, Unavailable> {
        let end = Timestamp::now();
        let window = Window { begin: since, end, from: None, to: None, steps: Steps::None, drifts: false };
        let is_known = self.rows(&Filter::default()).iter().any(|row| row.id == *id);
        Ok(is_known.then(|| self.deployments(id, window)))
    }

    async fn commit(
        &self,
        id: &ApplicationName,
        _: i64,
        revision: &str,
    ) -> Result<Option<BroughtCommit>, Unavailable> {
        let is_known = self.rows(&Filter::default()).iter().any(|row| row.id == *id) && revision != "gone";
        Ok(is_known.then(|| self.brought_commit()))
    }

    async fn manifest(
        &self,
        id: &ApplicationName,
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
            // What stands between backquotes may be copied.
            reason: (0..)
                .zip(self.text(reason).split('`'))
                .map(|(place, part)| match place % 2 {
                    0 => Said::text(part),
                    _ => Said::Code(part.to_owned()),
                })
                .collect(),
            since: now - SignedDuration::from_mins(minutes),
        };
        let place = self.text("production · eu-1");
        let needs = vec![
            need(
                Subject::Unhealthy(id("payments"), place.clone(), Health::Degraded),
                "Degraded for 14 min, after `3f9c1e2` by Ada Byron: 2 of 6 pods are not ready",
                14,
            ),
            need(
                Subject::OutOfSync(id("checkout"), place.clone()),
                "Drifted 3 times this week: `Deployment/checkout spec.replicas` 6 → 9, by `kubectl`",
                120,
            ),
            need(
                Subject::SyncFailed(id("search-index"), place.clone()),
                "Sync failed: hook `Job/migrate` ended with exit code 1",
                31,
            ),
            need(Subject::Troubled(self.text("us-1")), "The runtime's Git token: github.com refuses it", 180),
            need(
                Subject::Silent(self.text("us-2")),
                "Its reporter was not heard of for 22 min; 214 applications are shown as they were then",
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
        Ok(Trend { days, now, before: Some(Figures { succeeded: now.succeeded * 9 / 10, lead_time, ..now }) })
    }

    async fn shipping(&self, _: &Filter, days: u32) -> Result<Shipping, Unavailable> {
        Ok(Shipping { trend: self.trend(days).await?, deployments: self.shipped() })
    }

    async fn clusters(&self) -> Result<Vec<ClusterRow>, Unavailable> {
        let of = |(runtime, name, unwell, out_of_sync, silent): (&str, &str, u64, u64, bool)| {
            let (runtime, name, healthy) = (self.text(runtime), self.text(name), 214 - unwell);
            let cluster = FleetCluster { runtime, name, applications: 214, healthy, unwell, out_of_sync };
            ClusterRow { cluster, silent }
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
            heard: Some(Timestamp::now() - SignedDuration::from_secs(if silent { 1_320 } else { 3 })),
            last_report: Some(Timestamp::now() - SignedDuration::from_secs(if silent { 1_320 } else { 190 })),
            lag: Some(420),
            silent,
            roles: Vec::new(),
            refused: if name == "ap-1" { vec![self.refused("too_large", 3)] } else { Vec::new() },
            problems: if name == "us-1" { self.problems() } else { Vec::new() },
        };
        Ok([("eu-1", 4_215, false), ("us-1", 3_893, false), ("us-2", 214, true), ("ap-1", 1_645, false)]
            .map(of)
            .into())
    }

    async fn refused_of_nobody(&self) -> Result<Vec<RefusedReports>, Unavailable> {
        Ok(if self.empty { Vec::new() } else { vec![self.refused("unauthorized", 1_204)] })
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

    async fn deployments(&self, filter: &Filter) -> Result<(Vec<Deployment>, bool), Unavailable> {
        let end = Timestamp::now();
        let window = Window {
            begin: end - SignedDuration::from_hours(24 * 7),
            end,
            from: None,
            to: None,
            steps: Steps::OfPhases,
            drifts: false,
        };
        let rows = self.rows(filter);
        Ok((rows.iter().flat_map(|row| self.deployments(&row.id, window)).collect(), false))
    }

    async fn resources(&self, text: &str) -> Result<Vec<ResourceRow>, Unavailable> {
        let end = Timestamp::now();
        let window = Window { begin: end, end, from: None, to: None, steps: Steps::OfPhases, drifts: false };
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
        let basket = (now > after).then(|| "eu-1/argocd-production/basket".to_owned());
        Ok(Changes::Some(now, basket.into_iter().collect()))
    }
}
