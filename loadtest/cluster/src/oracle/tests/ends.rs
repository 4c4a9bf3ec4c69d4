//! Lives that are over, and what must have been told of that.

use super::*;

/// A state while it is being deleted.
fn on_the_way(mut draft: Draft) -> Draft {
    draft.object["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:10Z");
    draft.source["actualManifest"] = json!("");
    draft
}

/// The last one.
pub(super) fn gone(draft: Draft) -> Draft {
    let mut draft = on_the_way(draft);
    draft.object["metadata"]["resourceVersion"] = json!("71");
    draft
}

#[test]
fn a_missing_deletion_is_found() {
    let is = Application { object: None, lives: vec![life(app(), true)], ..is() };
    let mut drafts = told();
    assert_eq!(
        found(&is, &drafts),
        [
            "argocd/web: deleted is false, expected true".to_owned(),
            "argocd/web: live manifest is true, expected false".to_owned(),
            format!("argocd/web: no report says that {UID} was deleted"),
        ]
    );
    drafts.push(on_the_way(drafts[0].clone()));
    let unended = format!("argocd/web: no report says that {UID} was deleted");
    assert_eq!(found(&is, &drafts), [unended], "it was being deleted then");
    drafts.push(gone(drafts[0].clone()));
    assert_eq!(found(&is, &drafts), Vec::<String>::new());
    let mut nameless = gone(drafts[0].clone());
    nameless.object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    drafts.splice(1.., [nameless]);
    assert_eq!(found(&is, &drafts), Vec::<String>::new(), "that it is gone was all that was noticed");
    // The witness does not know yet, or knows more.
    let unseen = Application { lives: vec![life(app(), false)], ..is };
    assert_eq!(found(&unseen, &drafts), ["argocd/web: it is gone, and the watch has not told"]);
}

#[test]
fn the_end_of_a_life_is_missed_although_another_began() {
    let mut before = app();
    before["metadata"]["uid"] = json!("u0");
    before["metadata"]["resourceVersion"] = json!("50");
    let is = Application { lives: vec![life(before, true), life(app(), false)], ..is() };
    let mut first = told()[0].clone();
    first.object["metadata"]["uid"] = json!("u0");
    first.object["metadata"]["resourceVersion"] = json!("50");
    let mut drafts = vec![first.clone()];
    drafts.extend(told());
    assert_eq!(found(&is, &drafts), ["argocd/web: no report says that u0 was deleted"]);
    drafts.insert(1, gone(first));
    assert_eq!(found(&is, &drafts), Vec::<String>::new());
    // Resources that were told of the old life alone.
    drafts[3].source["appUID"] = json!("u0");
    assert_eq!(
        found(&is, &drafts),
        [format!("argocd/web Deployment web/web: reported for the application \"u0\", expected \"{UID}\"")]
    );
}
