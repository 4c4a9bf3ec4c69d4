//! Writes the runtime's image as an OCI layout: no daemon, no base image, the same digest from the same files.
//!
//! takes: the program, certificates of authorities, a bill of materials, a licence - gives: a folder and an archive
//! calls: nothing - fails: when a file cannot be read or written, or the image is larger than it may be

mod layer;
mod layout;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use jiff::Timestamp;

use crate::layer::{Entry, USER, pack};
use crate::layout::{About, Layout};

/// What the image is made of, and where it goes.
#[derive(Parser)]
struct Arguments {
    /// The program; statically linked, as there is nothing else in the image
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// The certificates of authorities, in PEM
    #[arg(long, value_name = "FILE")]
    authorities: PathBuf,
    /// The licence
    #[arg(long, value_name = "FILE")]
    license: PathBuf,
    /// A bill of materials, in CycloneDX
    #[arg(long, value_name = "FILE")]
    materials: Option<PathBuf>,
    /// The folder that the layout is written to; beside it stands FOLDER.tar, for containerd
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// The name and tag that it is imported under
    #[arg(long, value_name = "NAME:TAG")]
    name: String,
    /// The machine it is for
    #[arg(long, default_value = "amd64")]
    architecture: String,
    /// The commit
    #[arg(long, default_value = "")]
    revision: String,
    /// The second that everything in it is of
    #[arg(long, env = "SOURCE_DATE_EPOCH", default_value = "0")]
    time: u64,
    /// The most that the layer may take when it is zipped, in MiB
    #[arg(long, default_value = "25")]
    most: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let layer = pack(&entries(&arguments)?, arguments.time)?;
    let (size, most) = (layer.zipped.len() as u64, arguments.most << 20);
    if size > most {
        bail!("the image takes {size} bytes, and {most} are the most");
    }
    let second = i64::try_from(arguments.time).context("the time")?;
    let about = About {
        architecture: arguments.architecture,
        name: arguments.name,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: arguments.revision,
        created: Timestamp::from_second(second).context("the time")?.to_string(),
    };
    let layout = Layout::new(layer, &about)?;
    layout.write(&arguments.out)?;
    let mut archive = arguments.out.into_os_string();
    archive.push(".tar");
    layout.write_archive(Path::new(&archive))?;
    writeln!(std::io::stdout(), "{} {size}", layout.digest).context("write to standard output")
}

/// Everything in the image, in the order of its path.
fn entries(arguments: &Arguments) -> anyhow::Result<Vec<(String, Entry)>> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("read {}", path.display()));
    let text = |text: String| Entry::File(0o644, text.into_bytes());
    let mut entries = vec![
        ("etc/".to_owned(), Entry::Folder(0o755, 0)),
        ("etc/group".to_owned(), text(format!("root:x:0:\nruntime:x:{USER}:\n"))),
        // The resolver of the C library: the hosts file first, then the name server of the pod.
        ("etc/nsswitch.conf".to_owned(), text("hosts: files dns\n".to_owned())),
        (
            "etc/passwd".to_owned(),
            text(format!("root:x:0:0:root:/:/nologin\nruntime:x:{USER}:{USER}:runtime:/:/nologin\n")),
        ),
        ("etc/ssl/".to_owned(), Entry::Folder(0o755, 0)),
        ("etc/ssl/certs/".to_owned(), Entry::Folder(0o755, 0)),
        ("etc/ssl/certs/ca-certificates.crt".to_owned(), Entry::File(0o644, read(&arguments.authorities)?)),
        ("gitops-runtime".to_owned(), Entry::File(0o755, read(&arguments.program)?)),
        ("licenses/".to_owned(), Entry::Folder(0o755, 0)),
        ("licenses/LICENSE".to_owned(), Entry::File(0o644, read(&arguments.license)?)),
        ("tmp/".to_owned(), Entry::Folder(0o1777, 0)),
        ("var/".to_owned(), Entry::Folder(0o755, 0)),
        ("var/lib/".to_owned(), Entry::Folder(0o755, 0)),
        ("var/lib/gitops-runtime/".to_owned(), Entry::Folder(0o700, USER)),
    ];
    if let Some(materials) = &arguments.materials {
        entries.push(("sbom.cdx.json".to_owned(), Entry::File(0o644, read(materials)?)));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}
