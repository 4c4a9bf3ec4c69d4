//! Replays recorded rounds through the product's own decision and payload code.

/// Arguments of `loadtest replay`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// When it cannot be run.
pub fn run(_args: &Args) -> anyhow::Result<std::process::ExitCode> {
    Ok(std::process::ExitCode::SUCCESS)
}
