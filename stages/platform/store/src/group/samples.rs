//! Reports to decide about in tests.

use crate::report::{Delivery, EntityName, Report, ResourceName, Text};

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
        at: 1,
        timed: true,
        sync: Some("Synced".to_owned()),
        health: Some("Healthy".to_owned()),
        images: "[]".to_owned(),
        has_source: true,
        from_reporter: true,
        object: Some(Text::new("{}".to_owned())),
        git: Some(Text::new("kind: Deployment\n".to_owned())),
        ..Report::default()
    }
}

/// A delivery under a key of its own.
pub(crate) fn delivery(number: u8, report: Report) -> Delivery {
    Delivery { runtime: 1, key: [number; 32], keyed: true, epoch: None, era: 0, report }
}
