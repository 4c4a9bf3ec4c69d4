//! Reports to decide about in tests.

use crate::placement::Placement;
use crate::report::{Commit, Delivery, EntityName, Report, ResourceName, Text};

/// A report of an application, or of a Deployment of its.
pub(crate) fn report(application: &str, resource: Option<&str>) -> Report {
    let resource = resource.map(|name| ResourceName {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    });
    Report {
        entity: EntityName { app_namespace: "argocd".to_owned(), app_name: application.to_owned(), resource },
        uid: "u".to_owned(),
        version: None,
        created_at: None,
        at: 1,
        timed: true,
        deleted: false,
        owner: String::new(),
        listed: Vec::new(),
        sync: Some("Synced".to_owned()),
        health: Some("Healthy".to_owned()),
        health_message: None,
        revision: None,
        pods: None,
        operation: None,
        commit: Commit::default(),
        changes: Vec::new(),
        images: "[]".to_owned(),
        placement: Placement::default(),
        has_source: true,
        from_reporter: true,
        object: Some(Text::new("{}".to_owned())),
        object_is_json: false,
        actual: None,
        desired: None,
        git: Some(Text::new("kind: Deployment\n".to_owned())),
        details: None,
    }
}

/// A delivery under a key of its own.
pub(crate) fn delivery(number: u8, report: Report) -> Delivery {
    Delivery { runtime: 1, key: [number; 32], keyed: true, epoch: None, era: 0, report }
}
