//! Writes the runtime's image as a folder, and as an archive beside it.
//!
//! takes: the program, certificates of authorities, a bill of materials, a licence - gives: the image's digest and the
//! bytes of its layer, on standard output
//! calls: nothing - fails: when a file cannot be read or written, or the image is larger than it may be

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Parser;
use loadtest_image::Image;

/// What the image is made of, and where it goes.
#[derive(Parser)]
struct Arguments {
    /// The program; what it is linked with goes into the image beside it
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
    /// How hard it is compressed, from 0 to 12
    #[arg(long, default_value = "12")]
    level: i32,
    /// The most that the layer may take when it is compressed, in MiB: with all roles of today it takes 26
    #[arg(long, default_value = "28")]
    most: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let image = Image {
        program: arguments.program,
        entrypoint: "gitops-runtime".to_owned(),
        further: Vec::new(),
        links: Vec::new(),
        state: Some("var/lib/gitops-runtime".to_owned()),
        authorities: Some(arguments.authorities),
        license: Some(arguments.license),
        materials: arguments.materials,
        name: arguments.name,
        architecture: arguments.architecture,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: arguments.revision,
        time: arguments.time,
        level: arguments.level,
    };
    let layout = image.build()?;
    let (size, most) = (layout.size(), arguments.most << 20);
    if size > most {
        bail!("the image takes {size} bytes, and {most} are the most");
    }
    layout.write(&arguments.out)?;
    let mut archive = arguments.out.into_os_string();
    archive.push(".tar");
    layout.write_archive(Path::new(&archive))?;
    writeln!(std::io::stdout(), "{} {size}", layout.digest()).context("write to standard output")
}
