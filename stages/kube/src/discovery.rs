//! Finds out whether a kind is served, and in which version.
//!
//! takes: a group and a resource, and perhaps a version - gives: the version to ask for, or that there is no such kind
//! calls: `GET /apis/{group}`, `GET /apis/{group}/{version}`; of the core group `GET /api/v1` - fails: as any request to
//! the API server; a group or a version that it does not know is no failure

use std::time::Duration;

use serde::Deserialize;

use crate::api::segment;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::kind::{Act, Kind};

/// Bytes of an answer: a group lists its versions, a version its resources.
const LARGEST: usize = 4 << 20;
/// One answer has to be there within this time.
const WITHIN: Duration = Duration::from_secs(30);
/// Versions of a group that are looked at.
const VERSIONS: usize = 16;

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    #[serde(default, rename = "preferredVersion")]
    preferred: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// The version in which `kind` is served: the `pinned` one, else the server's preferred one, else any; `None` when there is
/// none.
pub(crate) async fn served(
    connection: &Connection,
    kind: Kind,
    pinned: Option<&str>,
) -> Result<Option<String>, Failure> {
    let act = Act { verb: "discover", what: kind.plural };
    let versions = match pinned {
        Some(version) => vec![version.to_owned()],
        None if kind.group.is_empty() => vec!["v1".to_owned()],
        None => match ask::<Group>(connection, act, &format!("/apis/{}", segment(kind.group))).await? {
            Some(group) => group.versions(),
            None => return Ok(None),
        },
    };
    for version in versions {
        let path = if kind.group.is_empty() {
            format!("/api/{}", segment(&version))
        } else {
            format!("/apis/{}/{}", segment(kind.group), segment(&version))
        };
        let resources = ask::<Resources>(connection, act, &path).await?;
        let resources = resources.map(|answer| answer.resources).unwrap_or_default();
        let watched = |resource: &Resource| {
            resource.name == kind.plural && resource.verbs.iter().any(|verb| verb == "watch")
        };
        if resources.iter().any(watched) {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

impl Group {
    /// Those that may be one, the preferred first.
    fn versions(self) -> Vec<String> {
        let mut versions: Vec<String> = Vec::new();
        for GroupVersion { version } in self.preferred.into_iter().chain(self.versions) {
            if is_version(&version) && !versions.contains(&version) && versions.len() < VERSIONS {
                versions.push(version);
            }
        }
        versions
    }
}

/// Whether a text has the form of a version: `v1`, `v1alpha1`, `v2beta3`.
#[must_use]
pub fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let is_number =
        |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    match split {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

/// What stands at a path; `None` where the server knows no such path.
async fn ask<T: for<'a> Deserialize<'a>>(
    connection: &Connection,
    act: Act,
    path: &str,
) -> Result<Option<T>, Failure> {
    let malformed = || Failure::Malformed { act, what: "the answer is not what a discovery tells" };
    let request = http::Request::get(path).body(Vec::new()).map_err(|_| malformed())?;
    let answer = tokio::time::timeout(WITHIN, connection.exchange(act, request, LARGEST)).await;
    match answer.unwrap_or(Err(Failure::Timeout { act })) {
        Ok(body) => serde_json::from_slice(&body).map(Some).map_err(|_| malformed()),
        Err(Failure::Status { code: 404, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_the_form_of_one() {
        for version in ["v1", "v1alpha1", "v2beta12", "v10"] {
            assert!(is_version(version), "{version}");
        }
        for text in ["", "v", "1", "v1/..", "v1alpha", "valpha1", "v12345", "v1gamma1"] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn the_preferred_version_is_looked_at_first_and_each_once() {
        let of = |version: &str| GroupVersion { version: version.to_owned() };
        let group = Group { versions: vec![of("v2"), of("v1"), of("../x")], preferred: Some(of("v1")) };
        assert_eq!(group.versions(), ["v1", "v2"]);
    }
}
