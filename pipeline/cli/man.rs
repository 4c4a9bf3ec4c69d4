//! `gitops-runtime man`: manual pages of every command, written to a directory.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::{Cli, print};

/// Writes a page for each command.
///
/// # Errors
/// When the directory cannot be written to.
pub(crate) fn run(directory: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("make the directory {}", directory.display()))?;
    let written = clap_mangen::generate_to(Cli::command(), directory);
    written.with_context(|| format!("write manual pages to {}", directory.display()))?;
    let pages = std::fs::read_dir(directory).context("count the pages")?.filter_map(Result::ok);
    let pages = pages.filter(|page| page.file_name().to_string_lossy().starts_with("gitops-runtime")).count();
    print(&format!("{pages} manual pages are in {}: `man -l` shows one\n", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
