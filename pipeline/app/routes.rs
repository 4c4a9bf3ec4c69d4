//! Further routes of the resource reporter: what each takes, its sink, its ledger, and what it tells of itself. The first route
//! is every role's, and stands in [`mod@super::reporter`].

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pipeline_core::{Labels, Meter, Shutdown};
use pipeline_engine::run::{Engine, Match, Route};
use pipeline_http::admin::RouteAnswering;
use pipeline_http::serve::{ServedRoute, WorkingRoute};
use pipeline_ledger::Ledger;
use pipeline_observe::health::{Health, HealthLimits};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use stages_kube::Patterns;
use stages_resources::{ResourceEnrichment, TakesApplication};

use super::dry_run::DryRun;
use super::{VERSION, build};
use crate::config::{Config, Matching, RouteRules, SinkKind};

/// A further route, from before the engine is there.
pub(super) struct Further<'a> {
    rules: &'a RouteRules,
    health: Health,
    metrics: Metrics,
    works: Arc<OnceLock<WorkingRoute>>,
    /// What was acknowledged, once it is open.
    ledger: Option<Ledger>,
}

/// Whether ledgers of further routes are kept in files.
pub(super) fn are_kept(config: &Config) -> bool {
    config.resources.routes().iter().any(|route| is_kept(config, route))
}

fn is_kept(config: &Config, route: &RouteRules) -> bool {
    config.reporter.ledger.of_routes && route.kind() != SinkKind::Stdout
}

/// How often a sink is told, in short, what was acknowledged of objects. What a platform is asked about are applications.
pub(super) fn digest(config: &Config, kind: SinkKind) -> Option<Duration> {
    config.reporter.digest(kind).filter(|_| kind != SinkKind::Platform)
}

/// Which events a route takes, of what an event alone tells.
pub(super) fn takes(matching: &Matching) -> anyhow::Result<Match> {
    let mut takes = Match::default();
    let kinds = matching.kinds();
    if !kinds.is_empty() {
        takes = takes.of_kinds(kinds);
    }
    if let Some(patterns) = patterns(&matching.namespaces())? {
        takes = takes.in_namespaces(move |namespace| patterns.matches(namespace));
    }
    let selector = matching.selector();
    if !selector.is_all() {
        takes = takes.labelled(move |labels| selector.selects(labels));
    }
    Ok(takes)
}

/// And of what is to be found out: whose an object is.
pub(super) fn takes_application(matching: &Matching) -> anyhow::Result<Option<TakesApplication>> {
    let (names, projects) = matching.applications();
    let (names, projects) = (patterns(&names)?, patterns(&projects)?);
    if names.is_none() && projects.is_none() {
        return Ok(None);
    }
    Ok(Some(Arc::new(move |application| {
        names.as_ref().is_none_or(|names| names.matches(&application.name))
            && projects.as_ref().is_none_or(|projects| projects.matches(&application.project))
    })))
}

fn patterns(all: &[String]) -> anyhow::Result<Option<Patterns>> {
    if all.is_empty() {
        return Ok(None);
    }
    Patterns::new(all).map(Some).context("read the patterns of a route (settings under `resources`)")
}

impl<'a> Further<'a> {
    /// All of the settings, for shards that are this process's.
    pub(super) fn all(config: &'a Config, owned: &[u32], limits: &HealthLimits, labels: Labels) -> Vec<Self> {
        let of = |rules: &'a RouteRules| Self {
            rules,
            health: Health::new(limits.clone(), owned.iter().copied(), Instant::now()),
            metrics: Metrics::new(&MetricsConfig {
                stages: vec![labels, stages_report::labels::LABELS],
                ..MetricsConfig::new(owned.iter().copied(), VERSION)
            }),
            works: Arc::default(),
            ledger: None,
        };
        config.resources.routes().iter().map(of).collect()
    }

    /// Which events it takes, of what an event alone tells.
    pub(super) fn takes(&self) -> anyhow::Result<Match> {
        takes(&self.rules.matching)
    }

    /// How it is served.
    pub(super) fn served(&self) -> ServedRoute {
        ServedRoute {
            name: self.rules.name.as_str().into(),
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            works: self.works.clone(),
        }
    }

    /// What the engine runs, of the cluster at `server`; so many routes share what may be worked on at a time.
    pub(super) async fn build(
        &mut self,
        config: &Config,
        server: &str,
        (enrich, routes): (&ResourceEnrichment, u32),
        (dry, stop): (Option<&DryRun>, &Shutdown),
    ) -> anyhow::Result<Route> {
        let rules = self.rules;
        let name = rules.name.clone();
        let at = || format!("route {name} (settings under `resources.routes`)");
        let target = rules.target(config);
        let file = if is_kept(config, rules) {
            let (state, name) = (config.state.clone(), rules.name.clone());
            let found = tokio::task::spawn_blocking(move || state.open_route(&name)).await;
            Some(found.context("find the state directory")?.with_context(at)?)
        } else {
            None
        };
        let acknowledged_by = build::acknowledged_by(&target, server);
        let ledger = build::ledger(acknowledged_by, file).await.with_context(at)?;
        self.ledger = Some(ledger.clone());
        let meter: Arc<dyn Meter> = Arc::new(self.metrics.clone());
        let (concurrency, kind) = (build::concurrency(&target), target.kind());
        let sink = match dry {
            Some(dry) => dry.sink(Some(&rules.name), stop)?,
            None => build::sink(target, meter, stop).await.with_context(at)?,
        };
        Ok(Route {
            name: rules.name.clone(),
            takes: takes(&rules.matching)?,
            enrich: Some(Arc::new(enrich.for_route(routes, takes_application(&rules.matching)?))),
            sink,
            ledger,
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            tap: None,
            reports: false,
            concurrency,
            unreported: dry.map(|dry| dry.unreported(Some(&rules.name), None)),
            digest: digest(config, kind),
        })
    }

    /// What answers of it in an engine that has it, and is served from now on; and what is to be closed in the end.
    pub(super) fn works(self, engine: &Engine, pipeline: &str) -> anyhow::Result<(RouteAnswering, Ledger)> {
        let name = &self.rules.name;
        let handle =
            engine.handle(pipeline, name).with_context(|| format!("find route {name} in the engine"))?;
        let ledger = self.ledger.with_context(|| format!("open the ledger of route {name}"))?;
        let looked = handle.clone();
        let engine = Arc::new(move || looked.status());
        // Nobody else sets it.
        let _ = self.works.set(WorkingRoute { ledger: ledger.clone(), engine });
        let name = name.as_str().into();
        Ok((RouteAnswering { name, handle, ledger: ledger.clone(), health: self.health }, ledger))
    }
}
