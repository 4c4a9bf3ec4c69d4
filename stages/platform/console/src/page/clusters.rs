//! Clusters that applications are deployed to: how these are, and the way to them.

use maud::{Markup, html};
use stages_platform_store::{FleetCluster, Term};

use super::link::with;
use super::pieces::{number, share};
use crate::filter::Filter;
use crate::view::cluster::ClusterRow;

pub(crate) fn table(clusters: &[ClusterRow]) -> Markup {
    html! {
        table.clusters data-rows {
            thead { tr {
                th scope="col" { "cluster" } th scope="col" { "runtime" } th.narrow-away scope="col" { "health" }
                th.number.narrow-away scope="col" { "healthy" } th.number scope="col" { "unwell" } th.number scope="col" { "out of sync" }
            } }
            tbody { @for one in clusters { (line(one)) } }
        }
    }
}

fn line(ClusterRow { cluster: one, silent }: &ClusterRow) -> Markup {
    let (here, all) = (of(one, None), number(one.applications));
    html! {
        tr data-key={"cluster/" (one.runtime) "/" (one.name)} data-row {
            td.what { a href=(here) { (one.name) } }
            td.mute { (one.runtime) }
            td.share.narrow-away { (share(one.healthy, one.applications, *silent)) }
            td.number.narrow-away { (number(one.healthy)) " of " (all) }
            td.number { (count(one.unwell, "bad", &of(one, Some("health:degraded,missing")))) }
            td.number { (count(one.out_of_sync, "warn", &of(one, Some("sync:outofsync")))) }
        }
    }
}

/// A number that leads to those whom it counts.
fn count(count: u64, class: &str, to: &str) -> Markup {
    html! { @if count > 0 { a class=(class) href=(to) { (number(count)) } } @else { span.mute { "0" } } }
}

/// The applications that go there, and of them those of which more holds.
fn of(one: &FleetCluster, more: Option<&str>) -> String {
    let mut filter = Filter::parse(&more.map(|chip| format!("q={chip}")).unwrap_or_default());
    filter.terms.insert(0, Term::Cluster(vec![one.name.clone()]));
    filter.terms.insert(1, Term::Runtime(vec![one.runtime.clone()]));
    with("/applications", &filter.query())
}
