//! Reads files of results, and refuses what is none.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::measured::{FORMAT, Results};

/// No file of results is larger, whatever a path names.
const LIMIT: u64 = 64 << 20;

/// What every format has.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// Reads one file. What stands in a file that is of another kind is never told, only where it stands.
pub(super) fn results(file: &Path) -> anyhow::Result<Results> {
    let name = file.display();
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).with_context(|| format!("open {name}"))?;
    opened.take(LIMIT + 1).read_to_end(&mut text).with_context(|| format!("read {name}"))?;
    ensure!(text.len() as u64 <= LIMIT, "read {name}: larger than 64 MiB, which no file of results is");
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&text) {
        bail!("read {name}: not JSON (line {}, column {})", error.line(), error.column());
    }
    let Ok(Form { format }) = serde_json::from_slice(&text) else {
        bail!("read {name}: no results of `loadtest bench --json`: they begin with a number called `format`");
    };
    ensure!(
        format == FORMAT,
        "read {name}: results of format {format}, and this program reads format {FORMAT}: measure again, or \
         compare with the program that wrote them"
    );
    let mut json = serde_json::Deserializer::from_slice(&text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, inner) = (error.path(), error.inner());
        let place = if path.iter().next().is_none() { "the top".to_owned() } else { path.to_string() };
        anyhow::anyhow!(
            "read {name}: no results of `loadtest bench --json`: something is missing or of another kind at {place} \
             (line {}, column {})",
            inner.line(),
            inner.column()
        )
    })
}
