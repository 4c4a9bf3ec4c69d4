//! Stores for tests, and reports to put into them.

use std::time::Duration;

use pipeline_core::ExposeSecret as _;
use stages_platform_store::{
    ApplicationName, Delivery, EntityName, KnownApplication, Limits, Listing, Operation, Outcome, Place,
    Report, ResourceName, Retention, Runtime, Store, StoreConfig, Text, Transition, View, Writing,
    create_token,
};

/// Nothing is too old.
pub(crate) const KEEP_ALL: Retention = Retention {
    history: Duration::from_secs(365_000 * 86_400),
    keys: Duration::from_secs(365_000 * 86_400),
    interval: Duration::from_secs(3_600),
};

/// A store that is open, with a runtime.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) writing: Writing,
    pub(crate) runtime: Runtime,
    pub(crate) place: Place,
    /// What it counts.
    pub(crate) registry: prometheus::Registry,
}

pub(crate) async fn open(place: &Place) -> Opened {
    open_with(place, KEEP_ALL).await
}

pub(crate) async fn open_with(place: &Place, retention: Retention) -> Opened {
    open_within(place, retention, Limits::default()).await
}

/// The same, where Postgres is waited for so long.
pub(crate) async fn open_within(place: &Place, retention: Retention, limits: Limits) -> Opened {
    let token = create_token(place, "prod").await.unwrap();
    let config = StoreConfig { place: place.clone(), retention };
    let registry = prometheus::Registry::new();
    let (store, writing) = config.build_within(&registry, limits).await.unwrap();
    let runtime = store.runtime(&token).await.unwrap().expect("the token is known");
    assert!(token.expose_secret().starts_with("gort_"));
    Opened { store, writing, runtime, place: place.clone(), registry }
}

/// Runs a part of the contract on a store of its own, apart from the others: what all of them need at once is more than the stack
/// of a thread.
pub(crate) async fn on(place: &mut impl AsyncFnMut() -> Place, part: impl AsyncFnOnce(Opened)) {
    let place = Box::pin(place()).await;
    let opened = Box::pin(open(&place)).await;
    Box::pin(part(opened)).await;
}

/// The application of that name, of those that tests report.
pub(crate) fn name(name: &str) -> ApplicationName {
    ApplicationName { runtime: "prod".to_owned(), namespace: "argocd".to_owned(), name: name.to_owned() }
}

impl Opened {
    pub(crate) async fn close(self) {
        drop(self.store);
        self.writing.finished().await;
    }

    /// What is known of the application `shop`.
    pub(crate) async fn shop(&self) -> KnownApplication {
        self.store.known(&View::ALL, &name("shop")).await.unwrap().unwrap()
    }

    /// Keeps one report under a key that nobody else has.
    pub(crate) async fn keep(&self, report: Report) -> Outcome {
        let key = fastrand::u128(..);
        self.deliver(report, &format!("{key:032x}"), None).await
    }

    /// Keeps one report of another runtime.
    pub(crate) async fn deliver_of(&self, runtime: i64, report: Report) {
        let key = digest(&fastrand::u128(..).to_string());
        let delivery = Delivery { runtime, key, keyed: true, epoch: None, era: 0, report };
        self.store.keep(vec![delivery]).await.unwrap();
    }

    /// Keeps one report of an object whose cluster's versions went back so often, under a key that nobody else has.
    pub(crate) async fn keep_in(&self, era: i64, report: Report) -> Outcome {
        let key = digest(&fastrand::u128(..).to_string());
        let delivery = Delivery { runtime: self.runtime.id, key, keyed: true, epoch: None, era, report };
        self.store.keep(vec![delivery]).await.unwrap()[0]
    }

    pub(crate) async fn deliver(&self, report: Report, key: &str, epoch: Option<i64>) -> Outcome {
        let runtime = self.runtime.id;
        let delivery = Delivery { runtime, key: digest(key), keyed: true, epoch, era: 0, report };
        let outcomes = self.store.keep(vec![delivery]).await.unwrap();
        assert_eq!(outcomes.len(), 1);
        outcomes[0]
    }

    /// The timeline of the application `shop`, the oldest first.
    pub(crate) async fn timeline(&self) -> Vec<Transition> {
        let application = ("argocd", "shop");
        let mut found = self.store.timeline(self.runtime.id, application, i64::MAX, 1_000).await.unwrap();
        found.reverse();
        found
    }

    /// The versions in the timeline, the oldest first, and which is the state.
    pub(crate) async fn versions(&self) -> (Vec<i64>, i64) {
        let all = self.timeline().await;
        let current = all.iter().find(|one| one.current).expect("one is current").version.unwrap_or_default();
        (all.iter().map(|one| one.version.unwrap_or_default()).collect(), current)
    }
}

pub(crate) fn digest(key: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(key.as_bytes()).into()
}

/// A report of the application `shop`.
pub(crate) fn report(uid: &str, version: i64, at: i64) -> Report {
    let object = format!(r#"{{"metadata":{{"uid":"{uid}","resourceVersion":"{version}"}}}}"#);
    Report {
        entity: EntityName {
            app_namespace: "argocd".to_owned(),
            app_name: "shop".to_owned(),
            resource: None,
        },
        uid: uid.to_owned(),
        version: Some(version),
        at,
        timed: true,
        listed: vec![Listing::new("apps", "Deployment", "shop", "web")],
        sync: Some("Synced".to_owned()),
        health: Some("Healthy".to_owned()),
        images: "[]".to_owned(),
        has_source: true,
        from_reporter: true,
        object: Some(Text::new(object.clone())),
        actual: Some(Text::new(object)),
        git: Some(Text::new("kind: Deployment\n".to_owned())),
        details: Some(Text::new(r#"{"source":{"repoURL":"http://git"}}"#.to_owned())),
        ..Report::default()
    }
}

/// A report of the application's Deployment.
pub(crate) fn resource(uid: &str, version: i64, at: i64) -> Report {
    let mut report = report(uid, version, at);
    report.entity.resource = Some(ResourceName {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
    });
    report.listed.clear();
    report
}

pub(crate) fn operation(started_at: i64, finished_at: Option<i64>, phase: &str) -> Option<Operation> {
    let (phase, revision, initiated_by) = (phase.to_owned(), "abc".to_owned(), "ada".to_owned());
    Some(Operation { started_at, finished_at, phase, revision, initiated_by, ..Operation::default() })
}
