//! The incumbent's recorded traffic, posted as it was.

use std::collections::BTreeMap;

use loadtest_sim::platform::{EntityName, parse};
use loadtest_sim::recordings;
use serde_json::{Value, json};
use stages_platform_store::{Selection, View};

use crate::support::{config, start, taken};

/// Everything but the time.
fn without_time(data: &Value) -> Value {
    let mut data = data.clone();
    data.as_object_mut().unwrap().remove("timestamp");
    data
}

#[tokio::test]
async fn each_entity_ends_as_its_last_report_and_has_an_entry_for_each_that_differed() {
    let cases = recordings::packed("incumbent-2.12").unwrap();
    let mut entities = 0;
    for case in &cases {
        let platform = start(config()).await;
        // Entity: its last report, and how many differed from the one before.
        let mut expected: BTreeMap<EntityName, (Value, usize)> = BTreeMap::new();
        for line in &case.reports {
            assert_eq!(
                platform.report(&json!({"data": line.data})).await,
                taken(),
                "{} {}",
                case.name,
                line.n
            );
            let entity = parse(&line.data.to_string()).expect("a report").entity;
            let (last, entries) = expected.entry(entity).or_insert((Value::Null, 0));
            if last.is_null() || without_time(last) != without_time(&line.data) {
                *entries += 1;
            }
            last.clone_from(&line.data);
        }
        let kept = platform.store.entities(platform.runtime.id).await.unwrap();
        assert_eq!(kept.len(), expected.len(), "{}", case.name);
        let mut counted: BTreeMap<i64, usize> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (name, current) in kept {
            let found = expected.iter().find(|(other, _)| {
                let resource =
                    other.resource.as_ref().map(|r| (&r.api_version, &r.kind, &r.namespace, &r.name));
                (&name.app_namespace, &name.app_name) == (&other.app_namespace, &other.app_name)
                    && name.resource.as_ref().map(|r| (&r.api_version, &r.kind, &r.namespace, &r.name))
                        == resource
            });
            let (_, (last, entries)) =
                found.unwrap_or_else(|| panic!("{}: {name:?} was never reported", case.name));
            let state = platform.store.payload(platform.runtime.id, current).await.unwrap().unwrap();
            assert_eq!(&state, last, "{}: {name:?}", case.name);
            counted.insert(current, *entries);
            names.insert(current, name);
        }
        for (current, entries) in counted {
            let name = &names[&current];
            let timeline = platform.timeline((&name.app_namespace, &name.app_name)).await;
            let resource = timeline.iter().find(|one| one.id == current).unwrap().resource.clone();
            let own = timeline.iter().filter(|one| one.resource == resource);
            assert_eq!(own.count(), entries, "{}: {name:?}", case.name);
            entities += 1;
        }
    }
    assert_eq!((cases.len(), entities), (11, 99), "as many as were recorded");
}

/// When an operation ends, what ran before it is what its application still shows.
#[tokio::test]
async fn a_deployment_has_the_images_that_it_brought_and_not_those_that_it_took_away() {
    let cases = recordings::packed("incumbent-2.12").unwrap();
    let case = cases.iter().find(|case| case.name == "secret-commit-prune").expect("it was recorded");
    let platform = start(config()).await;
    for line in &case.reports {
        assert_eq!(platform.report(&json!({"data": line.data})).await, taken(), "{}", line.n);
    }
    let all = platform.store.deployments_of(&View::ALL, &Selection::default(), 0, 100).await.unwrap();
    let own = all.iter().rev().filter(|one| one.application.name == "alpha");
    let images: Vec<_> = own.map(|one| &*one.images).collect();
    let expected = ["1.0.0", "1.1.0", "1.2.0", "1.2.0"];
    let expected = expected.map(|version| format!(r#"["registry.example.com/alpha:{version}"]"#));
    assert_eq!(images, expected);
}
