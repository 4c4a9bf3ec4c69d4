//! The files that the control plane is started with: certificates, tokens, kubeconfigs, the audit policy.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;
use tokio::fs;
use tokio::io::AsyncWriteExt as _;

use super::{AUDITED, AUDITED_GROUP, flags};
use crate::network::Network;
use loadtest_sim::certificate::Authority;

/// Where everything stands.
pub(super) struct Files {
    directory: PathBuf,
    authority: PathBuf,
    admin_kubeconfig: PathBuf,
    audit_log: PathBuf,
    authority_pem: String,
    admin_token: String,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Files {
    /// Makes all of them for an API server at `url`; `stages` is the folder of kwok's.
    pub(super) async fn write(
        directory: &Path,
        url: &str,
        network: Option<Network>,
        stages: &Path,
    ) -> anyhow::Result<Self> {
        let authority = Authority::new()?;
        let mut names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned).to_vec();
        if let Some(network) = network {
            names.extend(
                ["kubernetes", "kubernetes.default", "kubernetes.default.svc.cluster.local"]
                    .map(str::to_owned),
            );
            names.extend([network.host(), network.api()].map(|address| address.to_string()));
        }
        let (certificate, key) = authority.signed(names)?;
        let accounts = rcgen::KeyPair::generate().context("make the key of ServiceAccount tokens")?;
        let (admin, parts) = (token()?, token()?);
        let files = Self {
            authority: directory.join("authority.crt"),
            admin_kubeconfig: directory.join("admin.kubeconfig"),
            audit_log: directory.join("audit.log"),
            authority_pem: authority.pem(),
            admin_token: admin.clone(),
            directory: directory.to_path_buf(),
        };
        private(files.authority(), &files.authority_pem).await?;
        private(&files.server_certificate(), &certificate).await?;
        private(&files.server_key(), &key).await?;
        private(&files.accounts_key(), &accounts.serialize_pem()).await?;
        private(&files.accounts_public_key(), &accounts.public_key_pem()).await?;
        private(&files.tokens(), &flags::tokens(&admin, &parts)).await?;
        private(&files.audit_policy(), &flags::audit_policy(&AUDITED, AUDITED_GROUP).to_string()).await?;
        private(files.audit_log(), "").await?;
        files.kubeconfig(url, "admin", &admin, files.admin_kubeconfig()).await?;
        files.kubeconfig(url, "control-plane", &parts, &files.parts_kubeconfig()).await?;
        let mut all = String::new();
        for stage in flags::stage_files(stages) {
            let text =
                fs::read_to_string(&stage).await.with_context(|| format!("read {}", stage.display()))?;
            all.push_str("---\n");
            all.push_str(&text);
        }
        private(&files.stages(), &all).await?;
        Ok(files)
    }

    pub(super) async fn kubeconfig(
        &self,
        url: &str,
        user: &str,
        token: &str,
        to: &Path,
    ) -> anyhow::Result<()> {
        let authority = STANDARD.encode(&self.authority_pem);
        private(to, &yaml(&flags::kubeconfig(url, &authority, user, token))?).await
    }

    pub(super) fn authority(&self) -> &Path {
        &self.authority
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    pub(super) fn admin_kubeconfig(&self) -> &Path {
        &self.admin_kubeconfig
    }

    pub(super) fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    pub(super) fn server_certificate(&self) -> PathBuf {
        self.directory.join("server.crt")
    }

    pub(super) fn server_key(&self) -> PathBuf {
        self.directory.join("server.key")
    }

    pub(super) fn accounts_key(&self) -> PathBuf {
        self.directory.join("accounts.key")
    }

    pub(super) fn accounts_public_key(&self) -> PathBuf {
        self.directory.join("accounts.pub")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.directory.join("tokens.csv")
    }

    pub(super) fn audit_policy(&self) -> PathBuf {
        self.directory.join("audit-policy.json")
    }

    pub(super) fn parts_kubeconfig(&self) -> PathBuf {
        self.directory.join("control-plane.kubeconfig")
    }

    pub(super) fn stages(&self) -> PathBuf {
        self.directory.join("stages.yaml")
    }
}

fn yaml(value: &Value) -> anyhow::Result<String> {
    serde_saphyr::to_string(value).context("write YAML")
}

/// 256 bits that nobody can guess: other users of the machine reach loopback as well.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 32];
    let provider = rustls::crypto::ring::default_provider();
    // The error says nothing but that there is no randomness.
    provider.secure_random.fill(&mut bytes).ok().context("make a token")?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Writes a file that its owner alone can read.
async fn private(path: &Path, text: &str) -> anyhow::Result<()> {
    let act = || format!("write {}", path.display());
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(path).await.with_context(act)?;
    file.write_all(text.as_bytes()).await.with_context(act)?;
    file.flush().await.with_context(act)
}
