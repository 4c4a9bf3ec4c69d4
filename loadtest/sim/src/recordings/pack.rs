//! The copies of recordings inside this program: `recordings/{set}.tar.zst`, made by `loadtest recordings pack`.
//!
//! A packed set is a tar of `{case}/{file}`, sorted and without times or owners, so that the same recordings
//! give the same bytes; a long compression window makes the repetitive traffic small.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::{Case, case};

/// Log2 of the compression window: 128 MiB, more than any set.
const WINDOW: u32 = 27;

/// The packed sets: name and bytes.
pub const SETS: [(&str, &[u8]); 2] = [
    ("incumbent-2.12", include_bytes!("../../recordings/incumbent-2.12.tar.zst")),
    ("argocd-3.2", include_bytes!("../../recordings/argocd-3.2.tar.zst")),
];

/// Packs the case folders of `dir`; the same files always give the same bytes.
pub fn pack(dir: &Path) -> anyhow::Result<Vec<u8>> {
    let mut files = BTreeMap::new();
    for case in read_names(dir)?.iter().filter(|path| path.join("case.json").is_file()) {
        for file in read_names(case)? {
            let short = file.strip_prefix(dir).context("name a file inside its folder")?;
            let bytes = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
            files.insert(short.to_path_buf(), bytes);
        }
    }
    if files.is_empty() {
        bail!("no case in {}: a case is a folder with a case.json", dir.display());
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 19).context("start compression")?;
    encoder.long_distance_matching(true).context("set the compression window")?;
    encoder.window_log(WINDOW).context("set the compression window")?;
    let mut tar = tar::Builder::new(encoder);
    for (name, bytes) in &files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        tar.append_data(&mut header, name, bytes.as_slice()).context("pack a file")?;
    }
    tar.into_inner().and_then(zstd::Encoder::finish).context("finish compression")
}

fn read_names(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .with_context(|| format!("read folder {}", dir.display()))
}

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

/// Writes the case folders of a packed set into `dir`, which is made if it is not there.
pub fn unpack(set: &str, dir: &Path) -> anyhow::Result<()> {
    each_file(set, |name, bytes| {
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).with_context(|| format!("make folder {}", folder.display()))?;
        let mut file = fs::File::create(&path).with_context(|| format!("write {}", path.display()))?;
        file.write_all(&bytes).with_context(|| format!("write {}", path.display()))
    })
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
