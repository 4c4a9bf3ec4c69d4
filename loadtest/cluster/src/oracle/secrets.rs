//! Whether a value of a Secret is in something that was sent, as it is or in base64.

use std::collections::HashMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};

use loadtest_sim::platform::EntityName;

/// Shorter texts are found by chance.
const LEAST: usize = 8;

/// Texts that must be nowhere.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    /// What is looked for, and what it is part of; never shown itself.
    needles: Vec<(Vec<u8>, String)>,
    /// Which of them begin with these bytes.
    by_start: HashMap<u64, Vec<usize>>,
}

/// The values of all Secrets of the cluster, and `given`.
pub(super) async fn canaries(kubernetes: kube::Client, given: &[String]) -> anyhow::Result<Canaries> {
    let secrets: Api<Secret> = Api::all(kubernetes);
    let secrets = secrets.list(&ListParams::default()).await.context("list secrets")?;
    let mut canaries = Canaries::default();
    for text in given {
        canaries.add(text, "a text that must not leave the cluster");
    }
    for secret in secrets {
        let name = secret.metadata.name.unwrap_or_default();
        let namespace = secret.metadata.namespace.unwrap_or_default();
        for (key, value) in secret.data.unwrap_or_default() {
            if let Ok(text) = String::from_utf8(value.0) {
                canaries.add(&text, &format!("{key} of the Secret {namespace}/{name}"));
            }
        }
    }
    Ok(canaries)
}

/// Certificates, times, and addresses without a password stand in many other places.
fn is_public(text: &str) -> bool {
    text.starts_with("-----BEGIN CERTIFICATE")
        || text.parse::<jiff::Timestamp>().is_ok()
        || text.contains("://") && !text.contains('@')
}

impl Canaries {
    /// Adds a text, if there is enough of it and it can be one that nobody else knows.
    pub(super) fn add(&mut self, text: &str, what: &str) {
        if is_public(text) {
            return;
        }
        // A piece that stands in JSON and YAML as it is, however often that is quoted.
        let pieces = text.split(|c: char| c.is_control() || "\"'\\<>& ".contains(c));
        let Some(piece) = pieces.max_by_key(|piece| piece.len()).filter(|piece| piece.len() >= LEAST) else {
            return;
        };
        self.look_for(piece.as_bytes().to_vec(), what);
        // In base64 it reads in three ways, by where in the whole it begins; what it shares with its neighbours is
        // cut off.
        for before in 0..3 {
            let mut whole = vec![0; before];
            whole.extend(piece.as_bytes());
            let encoded = STANDARD.encode(&whole);
            let (start, end) = ((before * 8).div_ceil(6), whole.len() * 8 / 6);
            let inner = encoded.as_bytes().get(start..end).unwrap_or_default();
            if inner.len() >= LEAST {
                self.look_for(inner.to_vec(), what);
            }
        }
    }

    fn look_for(&mut self, needle: Vec<u8>, what: &str) {
        if let Some(start) = needle.first_chunk::<LEAST>() {
            self.by_start.entry(u64::from_be_bytes(*start)).or_default().push(self.needles.len());
            self.needles.push((needle, what.to_owned()));
        }
    }

    /// What is found in `bytes`, if anything is.
    pub(super) fn leak(&self, bytes: &[u8]) -> Option<&str> {
        // All texts are looked for in one pass: the last eight bytes are one number.
        let mut window = 0_u64;
        for (at, byte) in bytes.iter().enumerate() {
            window = window << 8 | u64::from(*byte);
            let Some(candidates) = self.by_start.get(&window).filter(|_| at + 1 >= LEAST) else { continue };
            let rest = bytes.get(at + 1 - LEAST..).unwrap_or_default();
            for (needle, what) in candidates.iter().filter_map(|index| self.needles.get(*index)) {
                if rest.starts_with(needle) {
                    return Some(what);
                }
            }
        }
        None
    }

    /// What is found in a report: in its bytes, and in the object that it holds in base64.
    pub(super) fn leak_of(&self, entity: &EntityName, payload: &[u8]) -> Option<String> {
        let data: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
        let object =
            data["object"].as_str().and_then(|object| STANDARD.decode(object).ok()).unwrap_or_default();
        let what = self.leak(payload).or_else(|| self.leak(&object))?;
        let EntityName { app_namespace, app_name, resource } = entity;
        let resource = resource.as_ref();
        let of =
            resource.map(|one| format!(" {} {}/{}", one.kind, one.namespace, one.name)).unwrap_or_default();
        Some(format!("{app_namespace}/{app_name}{of}: {what} is in a report in clear"))
    }
}
