//! What is kept in one delivery is kept as if each report of it had come alone.

use stages_platform_store::{Delivery, Outcome, Report, Retention, create_token};
use tokio::task::JoinSet;

use crate::contract::retained;
use crate::support::{KEEP_ALL, Opened, digest, report, resource};

impl Opened {
    async fn together(&self, reports: Vec<(Report, String, Option<i64>)>) -> Vec<Outcome> {
        let runtime = self.runtime.id;
        let delivery = |(report, key, epoch): (Report, String, Option<i64>)| Delivery {
            runtime,
            key: digest(&key),
            keyed: true,
            epoch,
            era: 0,
            report,
        };
        self.store.keep(reports.into_iter().map(delivery).collect()).await.unwrap()
    }
}

pub(crate) async fn a_key_that_stands_twice_in_a_delivery_is_taken_once(opened: Opened) {
    let one = |version, key: &str, epoch| (report("u", version, version), key.to_owned(), epoch);
    let kept = opened
        .together(vec![
            one(1, "a", Some(7)),
            one(2, "a", Some(7)),
            one(3, "b", Some(6)),
            one(4, "b", Some(7)),
            one(5, "c", Some(6)),
        ])
        .await;
    let expected = [Outcome::Kept, Outcome::Repeated, Outcome::Outdated, Outcome::Kept, Outcome::Outdated];
    assert_eq!(kept, expected);
    assert_eq!(opened.deliver(report("u", 5, 5), "c", Some(7)).await, Outcome::Kept, "its key was not taken");
    assert_eq!(opened.versions().await, (vec![1, 4, 5], 5));
    opened.close().await;
}

pub(crate) async fn a_runtime_that_sends_much_keeps_no_other_waiting(opened: Opened) {
    let token = create_token(&opened.place, "other").await.unwrap();
    let other = opened.store.runtime(&token).await.unwrap().unwrap().id;
    let delivery = |runtime, version: i64| {
        let key = digest(&format!("{runtime}/{version}"));
        Delivery { runtime, key, keyed: true, epoch: None, era: 0, report: report("u", version, version) }
    };
    // On the one thread of a test all of them wait before the first is written: ten times as many as one commit holds, and then one of
    // another.
    let flood = (0..10).map(|batch| {
        (1..=300).map(|number| delivery(opened.runtime.id, batch * 300 + number)).collect::<Vec<_>>()
    });
    let mut asked = JoinSet::new();
    for deliveries in flood.chain([vec![delivery(other, 1)]]) {
        let store = opened.store.clone();
        asked.spawn(async move { store.keep(deliveries).await });
    }
    while let Some(kept) = asked.join_next().await {
        assert!(kept.unwrap().unwrap().iter().all(|outcome| *outcome == Outcome::Kept));
    }
    let shop = ("argocd", "shop");
    let own = opened.store.timeline(other, shop, i64::MAX, 10).await.unwrap();
    let before = opened.store.timeline(opened.runtime.id, shop, own[0].id, 10_000).await.unwrap().len();
    assert!((1..=300).contains(&before), "{before} of 3000 reports of another were written before it");
    opened.close().await;
}

pub(crate) async fn texts_that_many_reports_of_a_delivery_name_stay_for_as_long_as_one_does(opened: Opened) {
    let all = (1..=150).map(|version| (report("u", version, version), version.to_string(), None));
    let kept = opened.together(all.collect()).await;
    assert!(kept.len() == 150 && kept.iter().all(|outcome| *outcome == Outcome::Kept));
    let payload = async |state| opened.store.payload(opened.runtime.id, state).await.unwrap().unwrap();
    let states = opened.timeline().await;
    assert_eq!(states.len(), 150);
    for (state, version) in states.iter().zip(1..) {
        let told = payload(state.id).await;
        assert_eq!(told["source"]["gitManifest"], "kind: Deployment\n");
        let actual = told["source"]["actualManifest"].as_str().unwrap().to_owned();
        assert!(actual.contains(&format!(r#""resourceVersion":"{version}""#)), "{actual}");
    }
    let retention = Retention { history: std::time::Duration::ZERO, ..KEEP_ALL };
    retained(&opened, retention, async || opened.timeline().await.len() == 1).await;
    let state = opened.timeline().await[0].id;
    assert_eq!(payload(state).await["source"]["gitManifest"], "kind: Deployment\n");
    opened.close().await;
}

pub(crate) async fn whose_an_object_alone_is_follows_what_the_reports_before_it_changed(opened: Opened) {
    let named = |application: &str, at| {
        let mut one = resource("d", 1, at);
        one.entity.app_name = application.to_owned();
        one
    };
    let alone = |version, at| {
        let mut alone = resource("d", version, at);
        (alone.entity.app_namespace, alone.entity.app_name) = (String::new(), String::new());
        (alone.has_source, alone.sync, alone.health) = (false, None, None);
        (alone.actual, alone.desired, alone.git, alone.details) = (None, None, None, None);
        (alone, format!("of version {version}"), None)
    };
    opened.keep(named("cart", 10)).await;
    opened.keep(named("shop", 7)).await;
    // That of `cart` was reported of last, and stays so whatever the times of its newer versions are.
    let kept = opened.together(vec![alone(2, 5), alone(3, 6)]).await;
    assert_eq!(kept, [Outcome::Kept, Outcome::Kept]);
    assert_eq!(opened.versions().await, (vec![1], 1));
    // Until the other one is reported of.
    let kept = opened.together(vec![(named("shop", 11), "named".to_owned(), None), alone(4, 6)]).await;
    assert_eq!(kept, [Outcome::Kept, Outcome::Kept]);
    assert_eq!(opened.versions().await, (vec![1, 4], 4));
    opened.close().await;
}

pub(crate) async fn an_object_alone_is_of_the_application_that_it_names(opened: Opened) {
    let named = |application: &str, version, at| {
        let mut one = resource(application, version, at);
        one.entity.app_name = application.to_owned();
        one
    };
    let alone = |application: &str, version, at| {
        let mut alone = named(application, version, at);
        (alone.has_source, alone.sync, alone.health) = (false, None, None);
        (alone.actual, alone.desired, alone.git, alone.details) = (None, None, None, None);
        alone
    };
    // One set of manifests on two clusters: that of the other one was reported of last.
    opened.keep(named("shop", 1, 1)).await;
    opened.keep(named("shop-east", 9, 9)).await;
    opened.keep(alone("shop", 2, 10)).await;
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    let last = opened.timeline().await.pop().unwrap();
    assert_eq!(last.sync.as_deref(), Some("Synced"), "what the application said of it stays");
    // Also where its application was not heard of yet.
    opened.keep(alone("shop-west", 3, 11)).await;
    let of = async |application: &str| {
        let own = ("argocd", application);
        let all = opened.store.timeline(opened.runtime.id, own, i64::MAX, 10).await.unwrap();
        all.iter().map(|one| one.version.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((of("shop-east").await, of("shop-west").await), (vec![9], vec![3]));
    opened.close().await;
}
