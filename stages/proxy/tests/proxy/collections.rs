//! Namespaces that have more objects than a page of the API server's lists.

use serde_json::{Value, json};

use crate::support::Running;

#[tokio::test]
async fn the_newest_of_many_workflows_are_listed_and_those_that_have_labels() {
    let running = Running::start().await;
    {
        let mut objects = running.cluster.objects.lock().unwrap();
        for number in 0..450 {
            // Their names stand in another order than the times at which they were made.
            let (name, minute, second) = (format!("w{:03}", (number * 7) % 450), number / 60, number % 60);
            let labels = json!({"team": if number % 2 == 0 { "shop" } else { "store" }});
            let made = json!({
                "metadata": {"name": name, "namespace": "many", "labels": labels, "creationTimestamp": format!("2026-01-01T00:{minute:02}:{second:02}Z")},
                "status": {"phase": "Succeeded"},
            });
            objects.insert(format!("/apis/argoproj.io/v1alpha1/namespaces/many/workflows/{name}"), made);
        }
    }
    let listed = async |arguments: &str| {
        let query =
            format!("{{ workflows(namespace: \"many\"{arguments}) {{ metadata {{ name }} phase }} }}");
        let answer = running.data(&running.admin, &query).await;
        let name = |one: &Value| {
            assert_eq!(one["phase"], "Succeeded");
            one["metadata"]["name"].as_str().unwrap().to_owned()
        };
        answer["workflows"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    let newest = |wanted: &dyn Fn(i32) -> bool, most: usize| -> Vec<String> {
        (0..450)
            .rev()
            .filter(|number| wanted(*number))
            .take(most)
            .map(|number| format!("w{:03}", (number * 7) % 450))
            .collect()
    };
    assert_eq!(listed("").await, newest(&|_| true, 100));
    assert_eq!(listed(", first: 3").await, newest(&|_| true, 3));
    assert_eq!(listed(", first: 5000").await, newest(&|_| true, 450));
    assert_eq!(listed(r#", first: 4, labels: ["team=shop"]"#).await, newest(&|number| number % 2 == 0, 4));
    assert_eq!(listed(r#", labels: ["team=shop", "none=1"]"#).await, [""; 0]);
    for wrong in ["team", "=a", "a=b&c", "a=b,c"] {
        let query = format!("{{ workflows(namespace: \"many\", labels: [\"{wrong}\"]) {{ phase }} }}");
        running.wrong(&query, "a label is KEY=VALUE").await;
    }
}

#[tokio::test]
async fn a_rollout_is_rolled_back_to_the_revision_before_however_many_replica_sets_its_namespace_has() {
    let running = Running::start().await;
    running.cluster.fill();
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    {
        let mut objects = running.cluster.objects.lock().unwrap();
        for number in 0..450 {
            let name = format!("m{number}");
            objects.insert(
                format!("{sets}/{name}"),
                json!({"metadata": {"name": name, "ownerReferences": [{"uid": "another"}]}}),
            );
        }
        // The newest ones stand behind all others, by their names.
        for name in ["a", "b"] {
            let set = objects.remove(&format!("{sets}/{name}")).unwrap();
            objects.insert(format!("{sets}/z{name}"), set);
        }
    }
    let query = crate::operations::asked(
        "mutation { rollbackRollout(application: APP, rollout: WEB) { newRevision } }",
    );
    assert_eq!(running.data(&running.admin, &query).await["rollbackRollout"]["newRevision"], 3);
    let web = running.cluster.object("/apis/argoproj.io/v1alpha1/namespaces/default/rollouts/web");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "web:1");
}
