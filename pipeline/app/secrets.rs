//! `gitops-runtime secrets ensure`: makes once what nobody gives, for all replicas.
//!
//! takes: a Secret that is there, and keys - gives: random values under those that hold nothing, and files of all of them
//! calls: see `stages_kube::Generated` - fails: with what to do next

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use pipeline_core::{ExposeSecret as _, SecretString};
use pipeline_redact::RedactionKey;
use stages_kube::{Cluster, Generated};

use crate::cli::{SecretsCommand, print, single_thread};

/// Runs one of the commands.
///
/// # Errors
/// When the Secret cannot be read or written, or a file cannot be.
pub(crate) fn run(command: SecretsCommand) -> anyhow::Result<()> {
    let SecretsCommand::Ensure(given) = command;
    let cluster = match (given.kubeconfig, given.context) {
        (None, None) => Cluster::Infer,
        (path, context) => Cluster::Kubeconfig { path, context },
    };
    let generated = Generated { namespace: given.namespace, name: given.name, keys: given.keys };
    let values = single_thread()?.block_on(generated.ensure(&cluster, random))?;
    if let Some(folder) = given.into {
        for (key, value) in &values {
            write(&folder, key, value).with_context(|| format!("write {}", folder.join(key).display()))?;
        }
    }
    let keys: Vec<&str> = values.keys().map(String::as_str).collect();
    print(&format!("the secret {} holds {}\n", generated.name, keys.join(", ")))
}

/// 32 random bytes as hexadecimal digits.
fn random() -> io::Result<SecretString> {
    Ok(SecretString::from(hex::encode(RedactionKey::generate()?.as_bytes())))
}

/// Writes a file that its owner alone may read, whole or not at all: a container that is restarted writes it again.
fn write(folder: &Path, key: &str, value: &SecretString) -> io::Result<()> {
    let new = folder.join(format!(".{key}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&new)?;
    file.write_all(value.expose_secret().as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, folder.join(key))
}
