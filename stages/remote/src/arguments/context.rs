//! The arguments of `login` and `context`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::OutputArgs;
use crate::names;

const LOGIN: &str = "\
Examples:
  The key is asked for, and is not shown while you type it:
    gitops-runtime login https://platform.example.com
  From a file, or from a program that keeps it:
    gitops-runtime login https://platform.example.com --token-file key
    pass show platform | gitops-runtime login https://platform.example.com
  Another platform, under a name of its own:
    gitops-runtime login https://staging.example.com --name staging
  A new key for the platform that is the current one:
    gitops-runtime login

A key is made on the platform's page Settings, API keys. It is kept in gitops-runtime/contexts.yaml below $XDG_CONFIG_HOME,
or ~/.config, which you alone may read. `gitops-runtime context remove` forgets it.";

/// Sign in to a platform with an API key.
#[derive(Args)]
#[command(after_help = LOGIN)]
pub(crate) struct Login {
    /// The address of the platform; without it that of the context
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// What the platform is called here; without it by its host
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A file that holds the API key; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A PEM file with the authorities that sign the platform's certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept any certificate of the platform
    #[arg(long, conflicts_with = "ca_file")]
    pub(crate) insecure: bool,
    /// A key that somebody typed here, which is refused without being repeated
    #[arg(hide = true)]
    pub(crate) rest: Vec<String>,
}

/// What is to be done with contexts.
#[derive(Subcommand)]
pub(crate) enum ContextCommand {
    /// List the platforms that you are signed in to.
    List {
        #[command(flatten)]
        shown: OutputArgs,
    },
    /// Make one the current one.
    Use {
        /// Which
        #[arg(value_name = "NAME", add = ArgValueCompleter::new(names::contexts))]
        name: String,
    },
    /// Forget one, and its key.
    Remove {
        /// Which
        #[arg(value_name = "NAME", add = ArgValueCompleter::new(names::contexts))]
        name: String,
    },
    /// Print the name of the one that is meant.
    Current,
}
