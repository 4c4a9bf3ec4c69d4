//! The drifts of an application, each with what of its resources differed, and who had changed that.

use std::sync::Arc;

use stages_platform_store::{DRIFT_TOGETHER, DriftOf, Store, StoreError};

use super::drifted::{Comparison, Comparisons};
use super::{drifted, rows};
use crate::view::application::{Drift, DriftedResource};
use crate::view::resource::Resource;

/// Drifts of resources whose manifests are compared, the newest: of the others names are told alone.
const COMPARED: usize = 50;

/// As [`drifts`], with what differed.
pub(super) async fn compared(
    store: &Store,
    (drifted, resources): (&[DriftOf], &[Resource]),
    comparisons: &Comparisons,
) -> Result<Vec<Drift>, StoreError> {
    let mut known = Vec::new();
    for one in drifted.iter().filter(|one| one.resource.is_some()).take(COMPARED) {
        let made = comparisons.of(&one.manifests, async |manifests| store.drift_manifests(manifests).await);
        known.push(made.await?);
    }
    Ok(drifts(drifted, resources, &known))
}

/// Those of the application, each with those of its resources that began within it, and any other of a resource that is over, or is
/// of one of `resources`; the newest first. `known` is what is known of the first that are a resource's.
pub(super) fn drifts(drifted: &[DriftOf], resources: &[Resource], known: &[Arc<Comparison>]) -> Vec<Drift> {
    let own = drifted.iter().filter(|one| one.resource.is_none());
    let mut own: Vec<(&DriftOf, Vec<DriftedResource>)> = own.map(|own| (own, Vec::new())).collect();
    let mut others = Vec::new();
    let of_resources = drifted.iter().filter_map(|one| Some((one, one.resource.as_ref()?)));
    for (index, (one, name)) in of_resources.enumerate() {
        let resource = |ended: Option<i64>| DriftedResource {
            key: rows::key(name),
            from: rows::moment(one.onset),
            to: ended.map(rows::moment),
            what: known.get(index).map_or_else(Vec::new, |known| drifted::what(known, one.onset)),
        };
        match own.iter_mut().rev().find(|(own, _)| is_within(one, own)) {
            // Once an application is in sync all that it has is.
            Some((own, all)) => all.push(resource(match (one.ended, own.ended) {
                (Some(ended), Some(own)) => Some(ended.min(own)),
                (ended, own) => ended.or(own),
            })),
            None => {
                let one = (one, vec![resource(one.ended)]);
                if one.0.ended.is_some() || resources.iter().any(|there| there.key == one.1[0].key) {
                    others.push(one);
                }
            }
        }
    }
    own.append(&mut others);
    own.sort_by_key(|(one, _)| std::cmp::Reverse(one.onset));
    let drift = |(one, mut resources): (&DriftOf, Vec<DriftedResource>)| {
        resources.sort_by(|one, other| (one.from, &one.key).cmp(&(other.from, &other.key)));
        Drift { from: rows::moment(one.onset), to: one.ended.map(rows::moment), resources }
    };
    own.into_iter().map(drift).collect()
}

/// Whether a resource's drift began within one of its application: what ends as another begins is not of its time.
fn is_within(one: &DriftOf, own: &DriftOf) -> bool {
    let end = |of: &DriftOf| of.ended.unwrap_or(i64::MAX).max(of.onset.saturating_add(1));
    own.onset < end(one) && one.onset < end(own) && own.onset.saturating_sub(one.onset) <= DRIFT_TOGETHER
}

#[cfg(test)]
mod tests {
    use stages_platform_store::{DriftManifests, ResourceName};

    use super::*;

    fn drift(resource: &str, onset: i64, ended: Option<i64>) -> DriftOf {
        let resource = (!resource.is_empty()).then(|| ResourceName {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: resource.to_owned(),
        });
        DriftOf { resource, onset, ended, manifests: DriftManifests::default() }
    }

    /// When each began, and of its resources name and beginning.
    fn told(all: &[DriftOf]) -> Vec<(i64, Vec<(String, i64)>)> {
        let resource = |one: &DriftedResource| (one.key.name.clone(), one.from.as_millisecond());
        let one = |one: &Drift| (one.from.as_millisecond(), one.resources.iter().map(resource).collect());
        drifts(all, &[], &[]).iter().map(one).collect()
    }

    fn named(name: &str, from: i64) -> (String, i64) {
        (name.to_owned(), from)
    }

    #[test]
    fn a_resource_that_drifts_twice_within_one_drift_stands_there_twice() {
        let all = [drift("", 10, Some(30)), drift("web", 25, Some(30)), drift("web", 10, Some(20))];
        assert_eq!(told(&all), [(10, vec![named("web", 10), named("web", 25)])]);
    }

    #[test]
    fn what_ended_as_another_drift_began_is_not_of_that_one() {
        let all = [
            drift("", 20, None),
            drift("", 10, Some(20)),
            drift("", 5, Some(5)),
            drift("web", 20, None),
            drift("api", 10, Some(20)),
            drift("at once", 5, Some(5)),
        ];
        let expected =
            [(20, vec![named("web", 20)]), (10, vec![named("api", 10)]), (5, vec![named("at once", 5)])];
        assert_eq!(told(&all), expected);
    }

    #[test]
    fn a_resource_that_drifted_while_its_application_did_not_is_told_all_the_same() {
        let all = [drift("", 10, Some(20)), drift("late", 20, Some(21)), drift("web", 11, Some(12))];
        assert_eq!(told(&all), [(20, vec![named("late", 20)]), (10, vec![named("web", 11)])]);
        assert_eq!(told(&[]), []);
    }

    #[test]
    fn a_resource_that_was_pruned_differs_no_longer_than_its_application_did() {
        // Nobody reports that it is gone.
        let pruned = || drift("old", 1_000, None);
        let (first, later) = (drift("", 1_010, Some(200_000)), || drift("", 900_000, None));
        let all = drifts(&[later(), first, pruned()], &[], &[]);
        let told: Vec<Vec<_>> =
            all.iter().map(|one| one.resources.iter().map(|one| one.to).collect()).collect();
        let expected: [Vec<_>; 2] = [vec![], vec![Some(rows::moment(200_000))]];
        assert_eq!(told, expected);
        // Before all that is shown; and one that is there, which its application does not mind.
        assert_eq!(told_of(&[later(), pruned()], &[]), [(900_000, 0)]);
        let there = Resource {
            key: rows::key(pruned().resource.as_ref().unwrap()),
            health: None,
            sync: crate::view::state::SyncStatus::OutOfSync,
            message: String::new(),
            pods: None,
            parent: None,
            since: rows::moment(1_000),
            changed: false,
        };
        assert_eq!(told_of(&[later(), pruned()], &[there]), [(900_000, 0), (1_000, 1)]);
    }

    fn told_of(all: &[DriftOf], resources: &[Resource]) -> Vec<(i64, usize)> {
        let all = drifts(all, resources, &[]);
        all.iter().map(|one| (one.from.as_millisecond(), one.resources.len())).collect()
    }
}
