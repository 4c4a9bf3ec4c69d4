//! The cluster that an Argo CD runs in: applications name it by its name or by its address, and it is one.

/// What Argo CD calls it.
pub const OWN_CLUSTER: &str = "in-cluster";
/// Its address, from there.
pub const OWN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";

/// What applications may say that go to one of these clusters.
pub(crate) fn spellings(clusters: &[String]) -> Vec<String> {
    let mut all = clusters.to_vec();
    for (one, other) in [(OWN_CLUSTER, OWN_CLUSTER_SERVER), (OWN_CLUSTER_SERVER, OWN_CLUSTER)] {
        let has = |name: &str| clusters.iter().any(|cluster| cluster == name);
        if has(one) && !has(other) {
            all.push(other.to_owned());
        }
    }
    all
}
