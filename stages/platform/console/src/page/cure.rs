//! What to do about an error of an application: told by what Kubernetes, Git and Argo CD say where it happens, word for word.

/// Words that a message has, in lower case, and what to do then; the first that fits counts.
const BY_WORDS: &[(&[&str], &str)] = &[
    (
        &["unable to resolve", "to a commit sha"],
        "The branch, tag or commit of `targetRevision` is not in the repository: push it, or name one that is.",
    ),
    (
        &["authentication required"],
        "Argo CD may not read the repository: see its credentials there with `argocd repo list`, or add them with `argocd repo add`.",
    ),
    (
        &["repository not found"],
        "There is no such repository, or Argo CD's credentials do not see it: `argocd repo list` says which it has.",
    ),
    (
        &["app path does not exist"],
        "The folder of `path` is not in the repository at that revision: push it, or name the one that is.",
    ),
    (
        &["is not permitted in project"],
        "The AppProject does not let it in: add the kind, the destination or the repository to the project, or move the application to another one.",
    ),
    (
        &["namespaces", "not found"],
        "Its namespace is not there: make it, or sync with the option `CreateNamespace=true`.",
    ),
    (
        &["field is immutable"],
        "A field changed that cannot: delete the resource and sync again, or let it be replaced by the sync option `Replace=true`. Both interrupt what it serves.",
    ),
    (&["exceeded quota"], "The namespace's ResourceQuota is used up: ask for less, or raise it."),
    (
        &["could not find", "requested resource"],
        "The cluster does not know this kind: install its definition (CRD) first, in an earlier sync wave or by another application.",
    ),
    (
        &["no matches for kind"],
        "The cluster does not know this kind: install its definition (CRD) first, in an earlier sync wave or by another application.",
    ),
    (
        &["admission webhook", "denied"],
        "A policy of the cluster refuses it: the message names the webhook, whose owner says what it asks for.",
    ),
    (
        &["failed calling webhook"],
        "A webhook of the cluster does not answer: look whether the pods behind it run.",
    ),
    (
        &["is forbidden"],
        "The account that Argo CD syncs with lacks a right in the cluster: grant what the message names.",
    ),
    (
        &["connection refused"],
        "What it names does not answer: look whether it runs, and whether the network lets Argo CD through.",
    ),
    (
        &["i/o timeout"],
        "What it names does not answer in time: look whether it runs, and whether the network lets Argo CD through.",
    ),
    (
        &["context deadline exceeded"],
        "It took too long: look whether what it names runs and has enough processor time and memory; Argo CD tries again by itself.",
    ),
    (
        &["error unmarshaling", "yaml"],
        "A manifest in Git is no valid YAML: `gitops-runtime git manifests` names file and line.",
    ),
];

/// What to do about what Argo CD calls so, where the message alone does not tell.
const BY_TYPE: &[(&str, &str)] = &[
    (
        "RepeatedResourceWarning",
        "The same resource stands more than once in what Git gives: take all but one away, or name them apart.",
    ),
    (
        "SharedResourceWarning",
        "Another application has this resource as well, and each sync of one undoes the other's: leave it to one of them.",
    ),
    (
        "OrphanedResourceWarning",
        "Resources of the namespace belong to no application: add them to Git, delete them, or let the AppProject pass over them.",
    ),
    (
        "ExcludedResourceWarning",
        "Argo CD is set to pass over this kind (`resource.exclusions`): take it out of Git, or out of that setting.",
    ),
    (
        "InvalidSpecError",
        "The Application itself is wrong: mend what the message names in its manifest, where that is kept.",
    ),
    (
        "ComparisonError",
        "Argo CD cannot make manifests of what stands in Git: mend what the message names, then Refresh.",
    ),
    (
        "DeletionError",
        "Something keeps a resource from going: look at its finalizers, and at whoever is to take them away.",
    ),
    ("SyncError", "Mend what the message names in Git, or in the cluster; then Sync once more."),
    ("Sync", "The resources below say which of them failed; mend them, then Sync once more."),
];

/// What to do, of what an error is of, and what is said.
pub(super) fn of(what: Option<&str>, message: &str) -> Option<&'static str> {
    let message = message.to_lowercase();
    let fits = |(words, _): &&(&[&str], &str)| words.iter().all(|word| message.contains(word));
    let by_type = || BY_TYPE.iter().find(|(name, _)| Some(*name) == what).map(|(_, cure)| *cure);
    BY_WORDS.iter().find(fits).map(|(_, cure)| *cure).or_else(by_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the controllers say it, word for word, where they say it.
    #[test]
    fn what_argo_cd_says_is_told_with_what_to_do() {
        let cases = [
            (
                "ComparisonError",
                "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = \
                 unable to resolve 'v9' to a commit SHA",
                "The branch, tag or commit",
            ),
            (
                "ComparisonError",
                "rpc error: code = Unknown desc = failed to list refs: authentication required: Repository not found.",
                "Argo CD may not read the repository",
            ),
            (
                "ComparisonError",
                "rpc error: code = Unknown desc = shop: app path does not exist",
                "The folder of `path`",
            ),
            (
                "InvalidSpecError",
                "application destination server 'https://kubernetes.default.svc' and namespace 'kube-system' do not match any of \
                 the allowed destinations in project 'shop'",
                "The Application itself is wrong",
            ),
            ("Deployment/web", "resource apps:Deployment is not permitted in project shop", "The AppProject"),
            ("Service/web", "namespaces \"shop\" not found", "Its namespace is not there"),
            (
                "Deployment/web",
                "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: {}: field is immutable",
                "A field changed that cannot",
            ),
            (
                "Certificate/web",
                "The Kubernetes API could not find cert-manager.io/Certificate for requested resource shop/web. Make sure the \
                 \"Certificate\" CRD is installed on the destination cluster.",
                "The cluster does not know this kind",
            ),
            (
                "Pod/web",
                "admission webhook \"validate.kyverno.svc-fail\" denied the request: no latest tag",
                "A policy of the cluster",
            ),
            (
                "RepeatedResourceWarning",
                "Resource apps/Deployment/failing/bad appeared 2 times among application resources.",
                "The same resource stands more than once",
            ),
            ("Sync", "one or more objects failed to apply (retried 5 times).", "The resources below"),
        ];
        for (what, message, begins) in cases {
            let cure = of(Some(what), message);
            assert!(cure.is_some_and(|cure| cure.starts_with(begins)), "{message}: {cure:?}");
        }
        assert_eq!(of(Some("Job/migrate"), "Job has reached the specified backoff limit"), None);
        assert_eq!(of(None, ""), None);
    }
}
