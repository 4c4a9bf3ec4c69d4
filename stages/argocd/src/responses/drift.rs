//! What of a manifest makes it differ from another one of the same resource: all of it, but for what the cluster counts
//! and tells by itself (`status`, versions, who manages which field).

use pipeline_core::Hasher;

use crate::members::{self, Take};

/// Adds the text of a manifest, in one pass; all of a text that is no JSON object.
pub(super) fn write(manifest: &str, hasher: &mut Hasher) {
    match members::digest(manifest, counts) {
        Some(counted) => hasher.write(&counted.0.to_be_bytes()),
        None => hasher.write(manifest.as_bytes()),
    }
}

fn counts(of: Option<&str>, name: &str) -> Take {
    match (of, name) {
        (Some(_), "resourceVersion" | "generation" | "managedFields") | (None, "status") => Take::Nothing,
        (None, "metadata") => Take::Members,
        _ => Take::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline_core::Digest;

    fn of(manifest: &str) -> Digest {
        let mut hasher = Hasher::default();
        write(manifest, &mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_the_cluster_counts_and_tells_is_no_drift() {
        let live = |version: u32, ready: u32, replicas: u32| {
            of(&format!(
                r#"{{"kind":"Deployment","metadata":{{"name":"web","resourceVersion":"{version}","generation":{version},
                "managedFields":[{version}]}},"spec":{{"replicas":{replicas}}},"status":{{"ready":{ready}}}}}"#
            ))
        };
        assert_eq!(live(1, 1, 3), live(2, 3, 3));
        assert_ne!(live(1, 1, 3), live(1, 1, 4));
    }

    #[test]
    fn all_else_counts_where_it_stands() {
        let different = [
            "{}",
            r#"{"metadata":{"status":1}}"#,
            r#"{"metadata":{},"generation":1}"#,
            r#"{"metadata":{"labels":{"status":"1"}}}"#,
            r#"{"metadata":{"labels":{"status":"2"}}}"#,
            r#"{"metadata":null}"#,
            "not json",
            "null",
            "",
        ];
        for (at, one) in different.iter().enumerate() {
            assert!(different.iter().skip(at + 1).all(|other| of(one) != of(other)), "{one}");
        }
        assert_eq!(of(r#"{"status":1}"#), of("{}"));
    }
}
