//! `gitops-runtime ledger copy`: the ledger of one process goes into the bucket of the bus, where replicas share it.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_bus::jetstream::{Expect, LEDGER, PutError};
use pipeline_ledger::{Copied, Ledger, LedgerOptions, Origin};
use pipeline_redact::RedactionKey;
use serde::Serialize;

use super::{Reached, say_json};
use crate::app;
use crate::app::join::KEY;
use crate::cli::ask::say;
use crate::cli::ask::show::count;

/// What every file of a ledger begins with.
const MAGIC: &[u8] = b"redb";

/// What is shown as JSON.
#[derive(Serialize)]
struct Shown {
    shards: u32,
    records: usize,
    journal: usize,
    parked: usize,
}

/// Copies what the file remembers of the configured cluster and sink. It may be said again when it was interrupted.
pub(super) async fn run(reached: &Reached, from: &Path, json: bool) -> anyhow::Result<ExitCode> {
    if !reached.config.bus.as_ref().is_some_and(|bus| bus.bucket) {
        bail!(
            "with these settings the ledger is kept in no bucket: set reporter.sharding.shard to leases, or \
             reporter.ledger.storage to bucket"
        );
    }
    let options = app::bus::ledger(&reached.config).await?;
    let ledger = opened(from, &options.sink).await?;
    let copied = copy(reached, &ledger, from, options).await;
    let closed = ledger.close().await.with_context(|| format!("close {}", from.display()));
    let Copied { shards, records, journal, parked } = copied.and_then(|copied| closed.map(|()| copied))?;
    if reached.config.state.key_file.is_none() {
        copy_key(reached, &from.with_file_name("redaction.key")).await?;
    }
    if json {
        say_json(&Shown { shards, records, journal, parked })?;
    } else {
        let applications = count(records as u64, "application");
        say(&format!("copied: {applications}, {journal} journaled, {parked} parked, in {shards} shards\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn copy(
    reached: &Reached,
    ledger: &Ledger,
    from: &Path,
    options: pipeline_ledger::BucketOptions,
) -> anyhow::Result<Copied> {
    if ledger.known().is_empty() {
        bail!(
            "{} remembers nothing of this cluster and receiver: give the settings that it was written with",
            from.display()
        );
    }
    let bucket = reached.bus.bucket(LEDGER);
    ledger.copy_to(&bucket, &options).await.with_context(|| format!("copy {}", from.display()))
}

/// Copies the redaction key that was made beside the file, if one was: under another one each secret would look changed.
async fn copy_key(reached: &Reached, beside: &Path) -> anyhow::Result<()> {
    let path = beside.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        path.is_file().then(|| RedactionKey::load_or_create(&path)).transpose()
    });
    let Some(key) = read.await.context("read the redaction key")?? else { return Ok(()) };
    let bucket = reached.bus.bucket(LEDGER);
    match bucket.put(KEY, key.as_bytes().to_vec().into(), Expect::Last(0)).await {
        Ok(_) => return Ok(()),
        Err(PutError::Conflict) => {}
        Err(error) => return Err(error).context("copy the redaction key"),
    }
    let found = bucket.get(KEY).await.context("read the redaction key in the bucket")?;
    if found.is_none_or(|(found, _)| *found != *key.as_bytes()) {
        bail!(
            "the ledger was copied, and the bucket holds another redaction key: set redaction.keyFile of all replicas to {}, \
             or what has secrets is reported again",
            beside.display()
        );
    }
    Ok(())
}

/// Opens the file, which must be a ledger: none is made here, and no other file touched.
async fn opened(from: &Path, sink: &str) -> anyhow::Result<Ledger> {
    let (path, options) = (from.to_owned(), LedgerOptions::new(sink));
    let opened = tokio::task::spawn_blocking(move || {
        if !is_ledger(&path).with_context(|| format!("read {}", path.display()))? {
            bail!("{} is not the file of a ledger", path.display());
        }
        Ok(Ledger::open(&path, options)?)
    });
    let ledger = opened.await.context("open the ledger")??;
    if let Origin::SetAside(aside) = ledger.origin() {
        let aside = aside.display();
        bail!("{} is damaged: it was set aside as {aside}, and nothing was copied", from.display());
    }
    Ok(ledger)
}

fn is_ledger(path: &Path) -> std::io::Result<bool> {
    let mut begins = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut begins) {
        Ok(()) => Ok(begins == MAGIC),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
