//! Images as OCI layouts: no daemon, no base image, the same digest from the same files.
//!
//! takes: a program, certificates of authorities, a bill of materials, a licence - gives: a layout, as a folder or an
//! archive
//! calls: `ldd`, which tells what a program is linked with - fails: when a file cannot be read, or a library is not there
//!
//! The program is the very one that is built for people and for tests, with the loader and the libraries that it names
//! beside it, at the paths where the loader looks for them. A static build works as well: one that was tried resolved a
//! Service's short name, the pod's own and those of the hosts file, with and without `nsswitch.conf`. But it is a second
//! build, as libraries of macros cannot be linked so: minutes more, and a program that no test ran, to save one
//! megabyte of the eleven that the image takes.

mod layer;
mod layout;
mod libraries;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;

use crate::layer::{Entry, USER, pack};
use crate::layout::About;
pub use crate::layout::Layout;

/// What an image is made of.
#[derive(Debug, Clone)]
pub struct Image {
    /// The program that it runs.
    pub program: PathBuf,
    /// What the program is called; it stands at the top of the image.
    pub entrypoint: String,
    /// Other programs that it runs, by their path in the image.
    pub further: Vec<(String, PathBuf)>,
    /// Links, by their path in the image: what each leads to.
    pub links: Vec<(String, String)>,
    /// Where the program may write; of the user that it runs as.
    pub state: Option<String>,
    /// The certificates of authorities, in PEM.
    pub authorities: Option<PathBuf>,
    /// The licence of the program.
    pub license: Option<PathBuf>,
    /// A bill of materials, in CycloneDX.
    pub materials: Option<PathBuf>,
    /// The name and tag that it is imported under.
    pub name: String,
    /// The machine it is for, as OCI calls it.
    pub architecture: String,
    /// The version of the program.
    pub version: String,
    /// The commit that it was built from.
    pub revision: String,
    /// The second that everything in it is of.
    pub time: u64,
    /// How hard it is compressed, from 0 to 12.
    pub level: i32,
}

impl Image {
    /// Makes its layout.
    pub fn build(&self) -> anyhow::Result<Layout> {
        let layer = pack(&self.entries()?, self.time, self.level)?;
        let second = i64::try_from(self.time).context("the time of an image")?;
        let about = About {
            entrypoint: format!("/{}", self.entrypoint),
            architecture: self.architecture.clone(),
            name: self.name.clone(),
            version: self.version.clone(),
            revision: self.revision.clone(),
            created: Timestamp::from_second(second).context("the time of an image")?.to_string(),
        };
        Layout::new(layer, &about)
    }

    /// Everything in the image, in the order of its path, each folder before what is in it.
    fn entries(&self) -> anyhow::Result<Vec<(String, Entry)>> {
        let text = |text: String| Entry::File(0o644, text.into_bytes());
        let mut files = vec![
            ("etc/group".to_owned(), text(format!("root:x:0:\nruntime:x:{USER}:\n"))),
            // The resolver of the C library: the hosts file first, then the name server of the pod.
            ("etc/nsswitch.conf".to_owned(), text("hosts: files dns\n".to_owned())),
            (
                "etc/passwd".to_owned(),
                text(format!("root:x:0:0:root:/:/nologin\nruntime:x:{USER}:{USER}:runtime:/:/nologin\n")),
            ),
            (self.entrypoint.clone(), Entry::File(0o755, read(&self.program)?)),
        ];
        for (path, program) in &self.further {
            files.push((path.clone(), Entry::File(0o755, read(program)?)));
        }
        for (path, to) in &self.links {
            files.push((path.clone(), Entry::Link(to.clone())));
        }
        for program in [&self.program].into_iter().chain(self.further.iter().map(|(_, program)| program)) {
            for library in libraries::of(program)? {
                files.push((inside(&library)?, Entry::File(0o755, read(&library)?)));
            }
        }
        let others = [
            (&self.authorities, "etc/ssl/certs/ca-certificates.crt"),
            (&self.license, "licenses/LICENSE"),
            (&self.materials, "sbom.cdx.json"),
        ];
        for (file, path) in others {
            if let Some(file) = file {
                files.push((path.to_owned(), Entry::File(0o644, read(file)?)));
            }
        }
        let mut entries = vec![("tmp/".to_owned(), Entry::Folder(0o1777, 0))];
        if let Some(state) = &self.state {
            entries.push((format!("{}/", state.trim_matches('/')), Entry::Folder(0o700, USER)));
        }
        entries.extend(files);
        let parents: Vec<String> = entries.iter().flat_map(|(path, _)| parents(path)).collect();
        entries.extend(parents.into_iter().map(|parent| (parent, Entry::Folder(0o755, 0))));
        // Stable: of a folder that stands there twice, the one with rights of its own stays.
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Ok(entries)
    }
}

/// The folders that a path is in, from the top.
fn parents(path: &str) -> Vec<String> {
    let path = path.trim_end_matches('/');
    path.match_indices('/')
        .filter_map(|(at, slash)| path.get(..at + slash.len()))
        .map(str::to_owned)
        .collect()
}

/// A path of this machine as one of the image.
fn inside(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("write the path {} as text", path.display()))?;
    Ok(text.trim_start_matches('/').to_owned())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}
