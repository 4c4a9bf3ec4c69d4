//! The one layer of the image: its files in order, as nobody's in particular, at one time.

use anyhow::{Context as _, anyhow};
use libdeflater::{CompressionLvl, Compressor};
use tar::{Builder, EntryType, Header};

/// The user that the image runs as: nobody of the host.
pub(crate) const USER: u64 = 65_532;

/// What stands at a path of the image.
pub(crate) enum Entry {
    /// A folder with these rights, of this user.
    Folder(u32, u64),
    /// A file with these rights.
    File(u32, Vec<u8>),
    /// What leads there.
    Link(String),
}

/// A layer: as it is, and as it is stored.
pub(crate) struct Layer {
    /// The archive.
    pub(crate) tar: Vec<u8>,
    /// The same, zipped.
    pub(crate) zipped: Vec<u8>,
}

/// Packs entries, which are named without a slash in front and sorted.
///
/// The layer is of gzip, which every registry and every program that reads one knows: there is no time and no name in it.
pub(crate) fn pack(entries: &[(String, Entry)], time: u64, level: i32) -> anyhow::Result<Layer> {
    let tar = archive(entries, time)?;
    let level = CompressionLvl::new(level)
        .map_err(|_| anyhow!("a layer is compressed by 0 to 12, and not {level}"))?;
    let mut zip = Compressor::new(level);
    let mut zipped = vec![0; zip.gzip_compress_bound(tar.len())];
    let size = zip.gzip_compress(&tar, &mut zipped).map_err(|error| anyhow!("zip the layer: {error:?}"))?;
    zipped.truncate(size);
    Ok(Layer { tar, zipped })
}

/// An archive with these entries in their order.
pub(crate) fn archive(entries: &[(String, Entry)], time: u64) -> anyhow::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, entry) in entries {
        let mut header = Header::new_ustar();
        let (kind, mode, user, bytes): (_, _, _, &[u8]) = match entry {
            Entry::Folder(mode, user) => (EntryType::Directory, *mode, *user, &[]),
            Entry::File(mode, bytes) => (EntryType::Regular, *mode, 0, bytes),
            Entry::Link(to) => {
                header.set_link_name(to).with_context(|| format!("pack {path}"))?;
                (EntryType::Symlink, 0o777, 0, &[])
            }
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(user);
        header.set_gid(user);
        header.set_mtime(time);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes).with_context(|| format!("pack {path}"))?;
    }
    archive.into_inner().context("pack the archive")
}
