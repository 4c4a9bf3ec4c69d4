//! The figures of several routes in one scrape: what is a route's own stands there for each, under the label `route`; what is
//! told of the process stands there once.

use prometheus::proto::{LabelPair, MetricFamily};

/// The label.
const ROUTE: &str = "route";

/// Families that tell of the process, or of what all its routes share: the watch, and the shards that it has.
const OF_THE_PROCESS: [&str; 13] = [
    "gitops_runtime_build_info",
    "gitops_runtime_shards",
    "gitops_runtime_shards_owned",
    "gitops_runtime_malformed_objects_total",
    "gitops_runtime_watch_restarts_total",
    "gitops_runtime_watch_silent_seconds",
    "gitops_runtime_lists_total",
    "gitops_runtime_listed_objects",
    "gitops_runtime_kind_state",
    "gitops_runtime_kind_objects",
    "gitops_runtime_watch_gaps_total",
    "gitops_runtime_ready",
    "gitops_runtime_uptime_seconds",
];

fn is_of_the_process(name: &str) -> bool {
    name.starts_with("process_") || name.starts_with("codefresh_") || OF_THE_PROCESS.contains(&name)
}

/// The families of the first route and of those that come further.
pub(super) fn merge<'a>(
    (name, mut all): (&str, Vec<MetricFamily>),
    further: impl IntoIterator<Item = (&'a str, Vec<MetricFamily>)>,
) -> Vec<MetricFamily> {
    all.iter_mut().filter(|family| !is_of_the_process(family.name())).for_each(|family| label(family, name));
    for (name, families) in further {
        for mut family in families.into_iter().filter(|family| !is_of_the_process(family.name())) {
            label(&mut family, name);
            match all.iter_mut().find(|known| known.name() == family.name()) {
                Some(known) => known.mut_metric().append(family.mut_metric()),
                None => all.push(family),
            }
        }
    }
    all
}

fn label(family: &mut MetricFamily, route: &str) {
    for metric in family.mut_metric() {
        let mut labels = metric.take_label();
        let mut pair = LabelPair::default();
        pair.set_name(ROUTE.to_owned());
        pair.set_value(route.to_owned());
        labels.push(pair);
        metric.set_label(labels);
    }
}
