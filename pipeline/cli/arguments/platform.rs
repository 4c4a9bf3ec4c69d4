//! The role `platform`, and what is done to its store.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::given;
use crate::cli::assignment;
use crate::config::Given;

const PLATFORM: &str = "\
Examples:
  Receive reports on port 8088, and keep them in the state directory:
    gitops-runtime platform
  Make a token for the reporters of a runtime, and point one at this platform:
    gitops-runtime platform token create --runtime prod > token
    gitops-runtime reporter --platform-url http://platform:8088 --platform-token-file token
  See what was reported:
    curl -H \"Authorization: Bearer $(cat token)\" http://platform:8088/api/v1/applications
  Keep it in Postgres instead, and for half a year:
    GITOPS_RUNTIME_PLATFORM_SERVER__STORE__POSTGRES_URL=postgres://user:password@host/name \\
      gitops-runtime platform --set platformServer.retention.history=180d
  Back a SQLite store up while it is used, and put a backup back when it is not:
    gitops-runtime platform backup /backups/monday.db
    gitops-runtime platform backup /backups --keep 7
    gitops-runtime platform restore /backups/monday.db";

const TOKEN: &str = "\
Examples:
  gitops-runtime platform token create --runtime prod > token
  gitops-runtime platform token create --runtime prod-eu --adopted > token

The token is shown this once: what is kept is a digest. A platform that runs knows it at once. The id of an adopted runtime, which
its tunnel is named by, is told beside on standard error, and by the list of tokens.";

const TOKENS: &str = "\
Examples:
  Make a token for the reporters of a runtime:
    gitops-runtime platform token create --runtime prod > token
  See which there are, and take one away:
    gitops-runtime platform token list
    gitops-runtime platform token revoke gort_0123abcd";

/// Receive what reporters report, keep it with its history, and show it.
#[derive(Args)]
#[command(after_help = PLATFORM, args_conflicts_with_subcommands = true)]
pub(crate) struct PlatformArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PlatformCommand>,
    #[command(flatten)]
    place: SettingsArgs,
    /// Where everything is served, such as 127.0.0.1:8088
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

/// What is done to the store.
#[derive(Subcommand)]
pub(crate) enum PlatformCommand {
    /// Make the tokens that reporters send, list them, and take them away.
    #[command(subcommand, after_help = TOKENS)]
    Token(TokenCommand),
    /// Copy a SQLite store to a new file, also while the platform runs.
    Backup {
        /// The file that is made; or a directory, in which it is named after the moment
        file: PathBuf,
        /// Of the backups that were named so in that directory, keep this many, the newest
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        keep: Option<u32>,
        #[command(flatten)]
        place: SettingsArgs,
    },
    /// Put a backup in the place of a SQLite store whose platform is stopped; what was there is set aside.
    Restore {
        /// The backup; or a directory, whose newest one is taken of those that are named after their moment
        file: PathBuf,
        #[command(flatten)]
        place: SettingsArgs,
    },
}

/// What is done about tokens.
#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; the runtime is made where there is none of that name.
    #[command(after_help = TOKEN)]
    Create {
        /// The runtime's name: lower-case letters and digits, a letter first, at most 38
        #[arg(long, value_name = "NAME")]
        runtime: String,
        /// It is called so already, perhaps with '-', '_', '.' or capitals: it keeps its name and gets an id beside
        #[arg(long)]
        adopted: bool,
        #[command(flatten)]
        place: SettingsArgs,
    },
    /// List the tokens, each by what it begins with, by runtime and age.
    #[command(after_help = TOKENS)]
    List {
        #[command(flatten)]
        place: SettingsArgs,
    },
    /// Take a token away; a platform that runs refuses it within 10 seconds.
    #[command(after_help = TOKENS)]
    Revoke {
        /// What it begins with, as the list shows it
        #[arg(value_name = "TOKEN")]
        name: String,
        #[command(flatten)]
        place: SettingsArgs,
    },
}

/// Where the settings are.
#[derive(Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as platformServer.retention.history=30d; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The directory of the store
    #[arg(long, value_name = "DIR")]
    state: Option<String>,
}

impl SettingsArgs {
    pub(crate) fn given(&self) -> Given {
        given(&self.config, &[], &self.set, &[("state.directory", "--state", &self.state)])
    }
}

impl PlatformArgs {
    /// Of the role.
    pub(crate) fn given(&self) -> Given {
        let mut given = self.place.given();
        if let Some(address) = &self.listen {
            given.flags.push(("serve.address".to_owned(), "--listen".to_owned(), address.clone()));
        }
        given
    }
}
