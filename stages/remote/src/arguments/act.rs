//! What every command has that changes something.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pipeline_core::read_duration;

use super::PlatformArgs;
use super::number::number;

/// Which way an act goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct AppProxyArgs {
    #[command(flatten)]
    pub(crate) place: PlatformArgs,
    /// Go to the app proxy of the runtime at this address, instead of through the platform
    #[arg(long, value_name = "URL", help_heading = "Platform")]
    pub(crate) app_proxy: Option<String>,
    /// A PEM file with the authorities that sign the app proxy's certificate
    #[arg(long, value_name = "FILE", help_heading = "Platform", requires = "app_proxy")]
    pub(crate) app_proxy_ca_file: Option<PathBuf>,
}

/// How something is changed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfirmArgs {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask whether it is meant
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Whether it is waited for.
#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    /// Wait until it has taken effect; exit with 3 when it does not
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// How long it is waited for
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = read_duration)]
    pub(crate) timeout: Duration,
}

/// How something is changed that takes a while.
#[derive(Debug, Clone, Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) careful: ConfirmArgs,
    #[command(flatten)]
    pub(crate) waiting: WaitArgs,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}

/// Which lines of a log, and how they are shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogArgs {
    /// Go on as lines come, until there can be no more, or Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// So many of the last lines of each pod
    #[arg(long, value_name = "NUMBER", value_parser = number::<NonZeroU32>)]
    pub(crate) tail: Option<NonZeroU32>,
    /// Lines of the last, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = read_duration)]
    pub(crate) since: Option<Duration>,
    /// Show when each was written
    #[arg(long)]
    pub(crate) timestamps: bool,
}
