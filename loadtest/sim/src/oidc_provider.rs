//! A real provider of OpenID Connect: npm's `oidc-provider`, run by Node.
//!
//! takes: where people are sent back to - gives: its issuer; what it answers is set by `POST ISSUER/test`, as
//! `oidc_provider.mjs` says - calls: `node` - fails: when it is not installed, or does not listen

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::installed;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/oidc_provider.mjs");
/// As `.ci/setup` installs it.
const PACKAGE: &str = "oidc-provider-9.13.3";

/// A provider that listens on a free port until this is dropped.
#[derive(Debug)]
pub struct OidcProvider {
    issuer: String,
    process: Child,
}

impl OidcProvider {
    /// For a platform that is come back to at `callback`. With a certificate for localhost and its key, files in PEM, it speaks
    /// TLS.
    ///
    /// # Errors
    /// It is not installed, or ends before it listens.
    pub async fn start(callback: &str, tls: Option<(&Path, &Path)>) -> anyhow::Result<Self> {
        let package = installed::folder().context("this user has no folder for caches")?.join(PACKAGE);
        if !package.join("node_modules").is_dir() {
            bail!("there is no {}: run .ci/setup", package.display());
        }
        let mut command = Command::new("node");
        command.arg(SCRIPT).arg(package).arg("0").arg(callback);
        if let Some((certificate, key)) = tls {
            command.arg(certificate).arg(key);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().context("start node, which .ci/setup installs")?;
        let output = process.stdout.take().context("read what the provider prints")?;
        let mut lines = BufReader::new(output).lines();
        let issuer = loop {
            let line = lines.next_line().await.context("read what the provider prints")?;
            let line = line.context("the provider ended before it listened")?;
            if let Some(issuer) = line.strip_prefix("issuer ") {
                break issuer.to_owned();
            }
        };
        // What else it prints nobody wants, and it must not wait for that.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { issuer, process })
    }

    /// Its address.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Ends it, and waits until it has ended.
    ///
    /// # Errors
    /// The system does not end it.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("end the provider")
    }
}
