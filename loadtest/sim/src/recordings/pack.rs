//! The copies of recordings inside this program: `recordings/{set}.tar.zst`.
//!
//! A packed set is a tar of `{case}/{file}`; a long compression window (`zstd --long=27`) makes the repetitive traffic
//! small.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::{Context as _, bail};

use super::{Case, case};

/// The bundle of the repository that the applications were deployed from.
pub fn repository() -> &'static [u8] {
    include_bytes!("../../recordings/repo.bundle")
}

/// Log2 of the compression window: 128 MiB, more than any set.
const WINDOW: u32 = 27;

/// The packed sets: name and bytes.
pub const SETS: [(&str, &[u8]); 2] = [
    ("incumbent-2.12", include_bytes!("../../recordings/incumbent-2.12.tar.zst")),
    ("argocd-3.2", include_bytes!("../../recordings/argocd-3.2.tar.zst")),
];

/// The cases of a packed set, sorted by name.
pub fn packed(set: &str) -> anyhow::Result<Vec<Case>> {
    let mut cases: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    each_file(set, |name, bytes| {
        let (case, file) = name.split_once('/').with_context(|| format!("place {name} in a case"))?;
        cases.entry(case.to_owned()).or_default().insert(file.to_owned(), bytes);
        Ok(())
    })?;
    cases
        .into_iter()
        .map(|(name, mut files)| {
            let place = format!("{set}/{name}");
            case(name, |file| Ok((format!("{place}/{file}"), files.remove(file))))
        })
        .collect()
}

fn each_file(set: &str, mut take: impl FnMut(&str, Vec<u8>) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let Some((_, bytes)) = SETS.iter().find(|(name, _)| *name == set) else {
        let names: Vec<_> = SETS.iter().map(|(name, _)| *name).collect();
        bail!("no packed recordings named {set}: there are {}", names.join(", "));
    };
    let mut decoder = zstd::Decoder::new(*bytes).with_context(|| format!("unpack {set}"))?;
    decoder.window_log_max(WINDOW).with_context(|| format!("unpack {set}"))?;
    let mut archive = tar::Archive::new(decoder);
    for entry in archive.entries().with_context(|| format!("unpack {set}"))? {
        let mut entry = entry.with_context(|| format!("unpack {set}"))?;
        let name = entry.path().with_context(|| format!("unpack {set}"))?.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).with_context(|| format!("unpack {set}/{name}"))?;
        take(&name, bytes)?;
    }
    Ok(())
}
