//! The certificate that a role which listens has of its own.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use stages_client::CertificateFiles;

use super::problem::Problems;
use super::units::As;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Tls {
    certificate_file: As<Option<PathBuf>>,
    key_file: As<Option<PathBuf>>,
}

impl Tls {
    pub(super) fn check(&self, at: &str, problems: &mut Problems) {
        if self.certificate_file.is_some() != self.key_file.is_some() {
            problems.add(at, "needs both certificateFile and keyFile, or neither of them");
        }
    }

    /// `None`: it speaks without TLS.
    pub(super) fn files(&self) -> Option<CertificateFiles> {
        let (certificate, key) = (self.certificate_file.clone()?, self.key_file.clone()?);
        Some(CertificateFiles { certificate, key })
    }
}
