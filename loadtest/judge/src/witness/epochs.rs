//! By which rights reports came that the platform took.

use std::collections::HashMap;

use axum::http::HeaderMap;

use loadtest_sim::platform::EntityName;

/// Counted here, and not asked of the platform that is to refuse them.
#[derive(Debug, Default)]
pub struct Epochs {
    highest: HashMap<String, u64>,
    /// Reports of an owner after one of its successor, of the same application.
    pub outdated: u64,
    /// Reports that name no epoch.
    pub without: u64,
}

impl Epochs {
    pub(super) fn came(&mut self, entity: &EntityName, headers: &HeaderMap) {
        let Some(epoch) = named(headers) else {
            self.without += 1;
            return;
        };
        let highest = self.highest.entry(entity.app_name.clone()).or_default();
        self.outdated += u64::from(epoch < *highest);
        *highest = epoch.max(*highest);
    }
}

/// The epoch that a report names.
pub(super) fn named(headers: &HeaderMap) -> Option<u64> {
    headers.get("fencing-epoch")?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_epoch_after_a_higher_one_is_outdated() {
        let mut epochs = Epochs::default();
        let mut came = |name: &str, epoch: Option<&'static str>| {
            let entity = EntityName { app_namespace: "argocd".into(), app_name: name.into(), resource: None };
            let headers = epoch.map(|epoch| ("fencing-epoch".parse().unwrap(), epoch.parse().unwrap()));
            epochs.came(&entity, &headers.into_iter().collect());
            (epochs.outdated, epochs.without)
        };
        assert_eq!(came("a", Some("5")), (0, 0));
        assert_eq!(came("a", Some("5")), (0, 0));
        assert_eq!(came("b", Some("4")), (0, 0));
        assert_eq!(came("a", Some("4")), (1, 0));
        assert_eq!(came("a", Some("6")), (1, 0));
        assert_eq!(came("a", None), (1, 1));
        assert_eq!(came("b", Some("none")), (1, 2));
    }
}
