//! From the settings to how a server of NATS is reached: the bus, or one that a route leads to.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pipeline_bus::jetstream::{self, Credentials, Secret};
use pipeline_core::{ExposeSecret as _, SecretString};

use crate::config::NatsAccess;

/// How servers are reached, by settings below `at`. Reads the files that these name, which must be there; they are followed
/// afterwards.
///
/// # Errors
/// When one of them cannot be read, or does not hold what it should; it names the setting and the file.
pub(super) async fn access(
    at: &str,
    of: &NatsAccess<'_>,
    urls: &[String],
    timeout: Duration,
) -> anyhow::Result<jetstream::Access> {
    let setting = |name: &str| format!("{at}.{name}");
    let tls = of.tls();
    for (name, path) in
        [("caFile", of.ca_file), ("certificateFile", of.certificate_file), ("keyFile", of.key_file)]
    {
        if let Some(path) = path {
            text(&setting(name), path).await?;
        }
    }
    let credentials = of.credentials().with_context(|| format!("{}: is not set", setting("passwordFile")))?;
    match &credentials {
        Credentials::Password { password: Secret::File(path), .. } => {
            line(&setting("passwordFile"), path).await?;
        }
        Credentials::Token(Secret::File(path)) => {
            line(&setting("tokenFile"), path).await?;
        }
        Credentials::File(path) => {
            text(&setting("credentialsFile"), path).await?;
        }
        Credentials::Nkey(Secret::File(path)) => {
            let at = setting("nkeyFile");
            let seed = line(&at, path).await?;
            // The letters that the seed of a user begins with; another key would be refused by the server, for ever.
            if !seed.expose_secret().lines().any(|line| line.trim().starts_with("SU")) {
                bail!("{at}: {} holds no seed of a user, which begins with SU", path.display());
            }
        }
        Credentials::None | Credentials::Password { .. } | Credentials::Token(_) | Credentials::Nkey(_) => {}
    }
    let inbox_prefix = of.inbox_prefix.map(str::to_owned);
    Ok(jetstream::Access { urls: urls.to_vec(), timeout, credentials, tls, inbox_prefix })
}

/// What stands in a file, without what is around it.
async fn line(at: &str, path: &Path) -> anyhow::Result<SecretString> {
    let text = text(at, path).await?;
    let line = text.expose_secret().trim();
    if line.is_empty() {
        bail!("{at}: {} is empty", path.display());
    }
    Ok(line.into())
}

async fn text(at: &str, path: &Path) -> anyhow::Result<SecretString> {
    let read = tokio::fs::read_to_string(path).await;
    Ok(read.with_context(|| format!("{at}: read {}", path.display()))?.into())
}
