//! Which of the sources that an Argo CD Application names its manifests come from.
//!
//! takes: what stands in `spec.sources`, `spec.sourceHydrator.drySource` and `spec.source`, in any form - gives: those that count, in
//! their order - fails: never

/// The sources of an Application, as Argo CD reads them: what another branch is made from goes before several, and those before a
/// single one.
#[must_use]
pub fn manifest_sources<T>(several: Vec<T>, dry: Option<T>, single: Option<T>) -> Vec<T> {
    match dry {
        Some(dry) => vec![dry],
        None if several.is_empty() => single.into_iter().collect(),
        None => several,
    }
}

#[cfg(test)]
mod tests {
    use super::manifest_sources;

    #[test]
    fn what_another_branch_is_made_from_goes_before_several_and_those_before_a_single_one() {
        for (several, dry, single, expected) in [
            (vec!["a", "b"], Some("dry"), Some("single"), vec!["dry"]),
            (vec![], Some("dry"), Some("single"), vec!["dry"]),
            (vec!["a", "b"], None, Some("single"), vec!["a", "b"]),
            (vec![], None, Some("single"), vec!["single"]),
            (vec![], None, None, vec![]),
        ] {
            assert_eq!(
                manifest_sources(several.clone(), dry, single),
                expected,
                "{several:?}, {dry:?}, {single:?}"
            );
        }
    }
}
