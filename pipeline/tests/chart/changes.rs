//! The role change-revision beside a reporter.

use serde_json::{Value, json};

use crate::helm::{object, rendered, settings};

#[test]
fn one_that_tells_of_changes_is_on_the_bus_beside_a_reporter_and_keeps_its_volume() {
    let values = |more: &Value| {
        let mut values = json!({
            "global": {
                "codefresh": {"userToken": {"secretKeyRef": {"name": "user-token", "key": "token"}}},
                "runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"},
            },
            "changeRevision": {"enabled": true},
        });
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        values
    };
    let of = |more: &Value| {
        let objects = rendered(&values(more));
        let url = settings(&objects, "change-revision")["bus"]["url"].clone();
        let policy = object(&objects, "NetworkPolicy", "-change-revision").unwrap();
        let egress = policy["spec"]["egress"].as_array().unwrap();
        let deployment = &object(&objects, "Deployment", "-change-revision").unwrap()["spec"];
        assert_eq!(deployment["strategy"]["type"], "Recreate");
        assert!(object(&objects, "PersistentVolumeClaim", "-change-revision").is_some());
        (url.is_string(), egress.iter().any(|rule| rule["ports"][0]["port"] == 4222))
    };
    let embedded = json!({"mode": "embedded"});
    let existing = json!({"mode": "existing", "url": "nats://nats.nats:4222"});
    assert_eq!(of(&json!({"nats": embedded})), (true, true));
    assert_eq!(of(&json!({"nats": existing})), (true, true));
    assert_eq!(of(&json!({})), (false, false), "there is no bus");
    let alone = json!({"nats": existing, "reporter": {"enabled": false}});
    assert_eq!(of(&alone), (false, false), "there is nobody to follow");
}
