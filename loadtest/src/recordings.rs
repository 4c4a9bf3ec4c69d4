//! `loadtest recordings`: packs and unpacks the recordings that the simulators carry.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use loadtest_judge::screen::say;
pub use loadtest_sim::recordings::packed;
use loadtest_sim::recordings::{pack, unpack};

/// Arguments of `loadtest recordings`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Packs a folder of cases into one file
    Pack {
        /// The folder of case folders
        dir: PathBuf,
        /// The file to write, e.g. `loadtest/sim/recordings/argocd-3.2.tar.zst`
        out: PathBuf,
    },
    /// Unpacks a set of this program into a folder
    Unpack {
        /// The set's name
        set: String,
        /// The folder to write into
        out: PathBuf,
    },
}

/// Runs `loadtest recordings`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.act {
        Act::Pack { dir, out } => {
            let bytes = pack(dir)?;
            std::fs::write(out, &bytes).with_context(|| format!("write {}", out.display()))?;
            say(&format!("{}: {} bytes", out.display(), bytes.len()));
        }
        Act::Unpack { set, out } => unpack(set, out)?,
    }
    Ok(ExitCode::SUCCESS)
}
