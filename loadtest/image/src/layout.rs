//! The OCI image layout: three blobs, an index, and a word of its version.
//!
//! The formats: <https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md>

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::layer::{Entry, Layer, USER, archive};

/// What is said of an image.
pub(crate) struct About {
    /// The program that it runs, by its path.
    pub(crate) entrypoint: String,
    /// The machine it is for, as OCI calls it.
    pub(crate) architecture: String,
    /// The name and tag in the index.
    pub(crate) name: String,
    /// The version of the program.
    pub(crate) version: String,
    /// The commit it was built from.
    pub(crate) revision: String,
    /// When, as RFC 3339.
    pub(crate) created: String,
}

/// An image as a layout: its files, sorted.
#[derive(Debug)]
pub struct Layout {
    files: Vec<(String, Vec<u8>)>,
    digest: String,
    size: u64,
}

impl Layout {
    /// Makes the layout of an image of one layer.
    pub(crate) fn new(layer: Layer, about: &About) -> anyhow::Result<Self> {
        let title = about.entrypoint.trim_start_matches('/');
        let labels = json!({
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.revision": about.revision,
            "org.opencontainers.image.title": title,
            "org.opencontainers.image.version": about.version,
        });
        let config = bytes(&json!({
            "architecture": about.architecture,
            "os": "linux",
            "created": about.created,
            "config": {
                "Entrypoint": [about.entrypoint],
                "Env": ["PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "Labels": labels,
                "User": format!("{USER}:{USER}"),
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer.tar)]},
            "history": [{"created": about.created, "created_by": "gitops-runtime .ci/image"}],
        }))?;
        let manifest = bytes(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer.zipped)],
            "annotations": labels,
        }))?;
        let mut named = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
        named["platform"] = json!({"architecture": about.architecture, "os": "linux"});
        named["annotations"] = json!({
            "io.containerd.image.name": about.name,
            "org.opencontainers.image.ref.name": about.name.rsplit_once(':').map_or("latest", |(_, tag)| tag),
        });
        let index = bytes(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [named],
        }))?;
        let (name, size) = (digest(&manifest), layer.zipped.len() as u64);
        let mut files = vec![
            ("index.json".to_owned(), index),
            ("oci-layout".to_owned(), bytes(&json!({"imageLayoutVersion": "1.0.0"}))?),
        ];
        for blob in [config, manifest, layer.zipped] {
            files.push((format!("blobs/{}", digest(&blob).replace(':', "/")), blob));
        }
        files.sort();
        Ok(Self { files, digest: name, size })
    }

    /// The digest of the manifest, which names the image.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bytes of the layer as it is stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Writes it as a folder.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
            std::fs::write(&path, bytes).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }

    /// Writes it as one archive, which containerd imports.
    pub fn write_archive(&self, file: &Path) -> anyhow::Result<()> {
        let entries: Vec<_> = self
            .files
            .iter()
            .map(|(path, bytes)| (path.clone(), Entry::File(0o644, bytes.clone())))
            .collect();
        std::fs::write(file, archive(&entries, 0)?).with_context(|| format!("write {}", file.display()))
    }
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()})
}

fn bytes(value: &Value) -> anyhow::Result<Vec<u8>> {
    serde_json::to_vec(value).context("write JSON")
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{text}")
}
