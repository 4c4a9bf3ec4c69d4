//! The chart where somebody else than Helm's command line applies it: Argo CD, which compares what it rendered with what is there.

use serde_json::{Value, json};

use crate::helm::{object, rendered};

#[test]
fn what_helm_keeps_argo_cd_neither_deletes_nor_prunes_nor_calls_out_of_sync() {
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}},
        "platform": {"enabled": true},
        "resourceReporter": {"enabled": true},
        "changeRevision": {"enabled": true},
    }));
    let is_kept = |object: &&Value| object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
    let kept: Vec<&Value> = objects.iter().filter(is_kept).collect();
    // Five claims, and the Secret with what nobody gives.
    assert_eq!(kept.len(), 6);
    for object in kept {
        let annotations = &object["metadata"]["annotations"];
        // It prunes what is not rendered any more, as the file of a platform that has a database now.
        assert_eq!(annotations["argocd.argoproj.io/sync-options"], "Delete=false,Prune=false", "{object}");
        assert_eq!(annotations["argocd.argoproj.io/compare-options"], "IgnoreExtraneous", "{object}");
    }
}
