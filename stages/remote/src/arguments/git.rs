//! The arguments of `git integration` and `git token`.

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::OutputArgs;
use super::act::{AppProxyArgs, ConfirmArgs};
use crate::names;

const INTEGRATION: &str = "\
Examples:
  gitops-runtime git integration list                  the Git providers of a runtime, and who is registered
  gitops-runtime git integration add github            GitHub's own cloud, called default
  gitops-runtime git integration add gitlab --name lab --api-url https://git.example.com
  gitops-runtime git integration register < token      your token there; commits are made with it, as you
  gitops-runtime git integration register --browser    one that you consent to at GitHub, and need not make
  gitops-runtime git integration register --name cloud --username ada@example.com < token
  gitops-runtime git integration deregister --name lab

Tokens are kept in the runtime, sealed. The provider is asked first whether one may enough.";

const TOKEN: &str = "\
Examples:
  gitops-runtime git token check                       whether the provider still takes the token that you registered,
                                                       and when it ends, where the provider says so
  gitops-runtime git token check --name lab";

/// Git providers of a runtime, and people's tokens there: subcommands of whoever has them among its own.
pub struct RemoteGit(pub(crate) GitCommand);

impl Subcommand for RemoteGit {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        GitCommand::augment_subcommands(command)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        GitCommand::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        GitCommand::has_subcommand(name)
    }
}

impl FromArgMatches for RemoteGit {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        GitCommand::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The same, as these commands know it.
#[derive(Subcommand)]
pub(crate) enum GitCommand {
    /// See the Git providers of a runtime, change them, and register your token.
    #[command(subcommand, after_help = INTEGRATION)]
    Integration(IntegrationCommand),
    /// See whether the token that you registered is still taken.
    #[command(subcommand, after_help = TOKEN)]
    Token(TokenCommand),
}

/// Which runtime.
#[derive(Debug, Clone, Args)]
pub(crate) struct RuntimeArgs {
    /// The runtime; may be left out where you see one alone
    #[arg(long, value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) runtime: Option<String>,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}

/// Which integration of which runtime.
#[derive(Debug, Clone, Args)]
pub(crate) struct IntegrationArgs {
    /// What the integration is called
    #[arg(long, value_name = "NAME", default_value = "default", add = ArgValueCompleter::new(names::integrations))]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) of: RuntimeArgs,
}

/// A provider that a runtime works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Bitbucket Cloud
    Bitbucket,
    /// Bitbucket Server, now Data Center
    BitbucketServer,
    /// Gitea, or Forgejo
    Gitea,
    /// GitHub, or a GitHub Enterprise server
    Github,
    /// GitLab, or a server of one's own
    Gitlab,
}

/// Who may register a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sharing {
    /// Everybody whom a rule lets
    Everybody,
    /// Admins
    Admins,
}

/// What is to be done with integrations.
#[derive(Subcommand)]
pub(crate) enum IntegrationCommand {
    /// List the integrations of a runtime.
    List {
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        of: RuntimeArgs,
    },
    /// Add one; for admins.
    Add {
        /// The provider
        #[arg(value_enum, value_name = "PROVIDER")]
        provider: Provider,
        /// The address of its API; without it that of its own cloud, which Bitbucket Server and Gitea have not
        #[arg(long, value_name = "URL")]
        api_url: Option<String>,
        /// Who may register a token
        #[arg(long, value_enum, value_name = "WHO", default_value = "everybody")]
        sharing: Sharing,
        #[command(flatten)]
        careful: ConfirmArgs,
        #[command(flatten)]
        named: IntegrationArgs,
    },
    /// Change one; for admins. Tokens that were registered for another address are forgotten.
    Edit {
        /// The address of its API; without it as it is
        #[arg(long, value_name = "URL")]
        api_url: Option<String>,
        /// Who may register a token
        #[arg(long, value_enum, value_name = "WHO")]
        sharing: Sharing,
        #[command(flatten)]
        careful: ConfirmArgs,
        #[command(flatten)]
        named: IntegrationArgs,
    },
    /// Remove one, with every token that is registered; for admins.
    Remove {
        #[command(flatten)]
        careful: ConfirmArgs,
        #[command(flatten)]
        named: IntegrationArgs,
    },
    /// Register your token: it is asked for, or read from standard input.
    Register {
        /// Register a token of the runtime's OAuth application at GitHub, which you consent to in a browser
        #[arg(long, conflicts_with_all = ["token_file", "username"])]
        browser: bool,
        /// A file that holds the token; - is standard input
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// Whose the token is, which Bitbucket Cloud wants to be told: your address with an API token
        #[arg(long, value_name = "NAME")]
        username: Option<String>,
        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        named: IntegrationArgs,
    },
    /// Have your token forgotten.
    Deregister {
        #[command(flatten)]
        careful: ConfirmArgs,
        #[command(flatten)]
        named: IntegrationArgs,
    },
}

/// What is to be done with tokens.
#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Ask the provider with the token that you registered.
    Check {
        #[command(flatten)]
        named: IntegrationArgs,
    },
}
