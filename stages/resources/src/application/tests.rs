use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::*;
use crate::known;

/// Objects by path, and what was asked for.
#[derive(Default)]
struct StoredObjects {
    objects: BTreeMap<String, Value>,
    /// Paths that cannot be read.
    away: BTreeSet<String>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl ObjectReader for StoredObjects {
    async fn read(&self, path: &str, wanted: ObjectPart) -> Result<Option<Value>, LookupError> {
        self.asked.lock().unwrap().push(format!("{wanted:?} {path}"));
        match self.away.contains(path) {
            true => Err(LookupError(Reason::Forbidden)),
            false => Ok(self.objects.get(path).cloned()),
        }
    }
}

const SHOP: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/shop";
const ROLLOUT: &str = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web";

fn cluster() -> Arc<StoredObjects> {
    let application = json!({"spec": {"project": "retail"}, "status": {"sync": {"revision": "abc"}}});
    let tracked = json!({"metadata": {
        "uid": "r1", "annotations": {"argocd.argoproj.io/tracking-id": "shop:argoproj.io/Rollout:shop/web"},
    }});
    let other = "/apis/argoproj.io/v1alpha1/namespaces/team/applications/web";
    let objects = [(SHOP, application.clone()), (ROLLOUT, tracked), (other, application)];
    let objects = objects.map(|(path, object)| (path.to_owned(), object)).into();
    Arc::new(StoredObjects { objects, ..StoredObjects::default() })
}

fn applications(kept: &Arc<StoredObjects>) -> Applications {
    tracked_by(kept, Some("app.kubernetes.io/instance"))
}

fn tracked_by(kept: &Arc<StoredObjects>, label: Option<&str>) -> Applications {
    let tracking = Tracking { label: label.map(str::to_owned), namespace: "argocd".to_owned() };
    Applications::new(kept.clone(), tracking)
}

async fn found(applications: &Applications, resource: &str, metadata: Value) -> Option<String> {
    let object = json!({"spec": {"a": [1]}, "metadata": metadata});
    let marks = TrackingMarks::of(&object).unwrap();
    assert_eq!(
        format!("{marks:?}"),
        format!("{:?}", TrackingMarks::read(object.to_string().as_bytes()).unwrap())
    );
    let application = applications.of(&known(resource), "shop", marks).await.unwrap()?;
    Some(format!(
        "{} {} {} {}",
        application.namespace, application.name, application.project, application.revision
    ))
}

#[tokio::test]
async fn the_annotation_and_the_label_name_the_application_and_its_namespace() {
    let kept = cluster();
    let applications = applications(&kept);
    let shop = Some("argocd shop retail abc".to_owned());
    let by_annotation =
        json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:argoproj.io/Rollout:shop/web"}});
    assert_eq!(found(&applications, "rollouts.argoproj.io", by_annotation).await, shop);
    let by_label = json!({"labels": {"app.kubernetes.io/instance": "shop"}});
    assert_eq!(found(&applications, "services", by_label).await, shop);
    let elsewhere =
        json!({"annotations": {"argocd.argoproj.io/tracking-id": "team_web:apps/Deployment:a/b"}});
    let team = Some("team web retail abc".to_owned());
    assert_eq!(found(&applications, "deployments.apps", elsewhere).await, team);
    let of_a_chart = json!({"labels": {"app.kubernetes.io/instance": "redis"}});
    assert_eq!(found(&applications, "services", of_a_chart).await, None);
    assert_eq!(found(&applications, "services", json!({})).await, None);
}

#[tokio::test]
async fn what_has_an_owner_belongs_where_its_owner_does_and_both_are_asked_for_once() {
    let kept = cluster();
    let applications = applications(&kept);
    let owned = |kind: &str, version: &str, name: &str, uid: &str| json!({"ownerReferences": [{"apiVersion": version, "kind": kind, "name": name, "uid": uid}]});
    let shop = Some("argocd shop retail abc".to_owned());
    for resource in ["replicasets.apps", "analysisruns.argoproj.io"] {
        let metadata = owned("Rollout", "argoproj.io/v1alpha1", "web", "r1");
        assert_eq!(found(&applications, resource, metadata).await, shop, "{resource}");
    }
    let asked = kept.asked.lock().unwrap().clone();
    assert_eq!(asked, [format!("Metadata {ROLLOUT}"), format!("Whole {SHOP}")]);
    let refused = [
        owned("Rollout", "argoproj.io/v1alpha1", "web", "an earlier life"),
        owned("Rollout", "argoproj.io/v1alpha1", "../../secrets/a", "r1"),
        owned("Node", "v1", "web", "r1"),
    ];
    for metadata in refused {
        assert_eq!(found(&applications, "replicasets.apps", metadata.clone()).await, None, "{metadata}");
    }
    assert!(
        !kept.asked.lock().unwrap().iter().any(|path| path.contains("secrets") || path.contains("nodes"))
    );
}

/// As OpenKruise has a StatefulSet of its own, which nobody may be allowed to read.
#[tokio::test]
async fn a_kind_of_the_same_name_in_another_group_is_no_owner_and_is_not_asked_for() {
    let kept = cluster();
    let applications = applications(&kept);
    let owner =
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "s1"});
    let owned = json!({"labels": {"app.kubernetes.io/instance": "shop"}, "ownerReferences": [owner]});
    assert_eq!(found(&applications, "pods", owned).await.as_deref(), Some("argocd shop retail abc"));
    assert_eq!(*kept.asked.lock().unwrap(), [format!("Whole {SHOP}")]);
}

/// A chart writes the release's name into the label that Argo CD may go by, and there may be an application of that name.
#[tokio::test]
async fn a_label_of_a_chart_says_nothing_where_an_owner_bears_argo_cds_annotation_or_another_label() {
    let mut kept = Arc::into_inner(cluster()).unwrap();
    let project = json!({"spec": {"project": "caches"}, "status": {"sync": {"revision": "def"}}});
    kept.objects.insert(SHOP.replace("shop", "redis"), project);
    let labelled = |uid: &str, application: &str| json!({"metadata": {"uid": uid, "labels": {"app.kubernetes.io/instance": application}}});
    kept.objects.insert(ROLLOUT.replace("web", "by-label"), labelled("r2", "shop"));
    let kept = Arc::new(kept);
    let owned = |name: &str, uid: &str| {
        let owner =
            json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": name, "uid": uid}]);
        json!({"labels": {"app.kubernetes.io/instance": "redis"}, "ownerReferences": owner})
    };
    let (shop, redis) =
        (Some("argocd shop retail abc".to_owned()), Some("argocd redis caches def".to_owned()));
    let by_either = applications(&kept);
    assert_eq!(found(&by_either, "replicasets.apps", owned("web", "r1")).await, shop);
    assert_eq!(found(&by_either, "replicasets.apps", owned("by-label", "r2")).await, shop);
    assert_eq!(found(&by_either, "replicasets.apps", owned("gone", "r3")).await, redis);
    let by_annotation = tracked_by(&kept, None);
    assert_eq!(found(&by_annotation, "replicasets.apps", owned("web", "r1")).await, shop);
    assert_eq!(found(&by_annotation, "replicasets.apps", owned("by-label", "r2")).await, None);
}

/// As a canary of Argo Rollouts has them that runs an Experiment at one of its steps.
#[tokio::test]
async fn what_an_experiment_of_a_rollout_owns_belongs_where_the_rollout_does() {
    let owned = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "name": name, "uid": uid}]);
    let mut kept = Arc::into_inner(cluster()).unwrap();
    let experiment = "/apis/argoproj.io/v1alpha1/namespaces/shop/experiments/web-1";
    let metadata = json!({"uid": "e1", "ownerReferences": owned("Rollout", "web", "r1")});
    kept.objects.insert(experiment.to_owned(), json!({"metadata": metadata}));
    let applications = applications(&Arc::new(kept));
    let shop = Some("argocd shop retail abc".to_owned());
    for resource in ["replicasets.apps", "analysisruns.argoproj.io"] {
        let metadata = json!({"ownerReferences": owned("Experiment", "web-1", "e1")});
        assert_eq!(found(&applications, resource, metadata).await, shop, "{resource}");
    }
    let metadata = json!({"ownerReferences": owned("Rollout", "web", "r1")});
    assert_eq!(found(&applications, "experiments.argoproj.io", metadata).await, shop);
}

/// Whether it has an application is not known of what cannot be read, and each is asked for once in a while.
#[tokio::test]
async fn what_cannot_be_read_is_no_answer() {
    let kept = Arc::new(StoredObjects {
        away: [SHOP.to_owned(), ROLLOUT.to_owned()].into(),
        ..Arc::into_inner(cluster()).unwrap()
    });
    let applications = applications(&kept);
    let labelled = json!({"metadata": {"labels": {"app.kubernetes.io/instance": "shop"}}}).to_string();
    let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "r1"});
    let owned = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
    for body in [&labelled, &labelled, &owned] {
        let marks = TrackingMarks::read(body.as_bytes()).unwrap();
        let found = applications.of(&known("replicasets.apps"), "shop", marks).await;
        assert_eq!(found, Err(LookupError(Reason::Forbidden)), "{body}");
    }
    assert_eq!(*kept.asked.lock().unwrap(), [format!("Whole {SHOP}"), format!("Metadata {ROLLOUT}")]);
}
