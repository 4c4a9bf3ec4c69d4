//! The arguments of the commands on repositories.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use stages_remote::RemoteGit;

const GIT: &str = "\
Examples:
  Which of all applications does this pull request change?
    kubectl get applications -A -o yaml > apps.yaml
    gitops-runtime git changed --base origin/main --head HEAD -f apps.yaml
  The same as a comment, failing nothing:
    gitops-runtime git changed --base origin/main -f apps.yaml -o markdown > comment.md
  Which commits changed an application since it was last synced?
    gitops-runtime git commits --since 4f2a91c --path apps/shop --path charts/web
  Which file and lines make each object of a directory?
    gitops-runtime git manifests --revision v1.4.0 --path apps/shop --recurse
  The same of a repository elsewhere, without a clone of one's own:
    GIT_PASSWORD=... gitops-runtime git commits --repo https://git.example.com/team/mono.git --path apps/shop
    gitops-runtime git commits --repo git@git.example.com:team/mono.git --ssh-key-file ~/.ssh/id_ed25519 --path apps/shop
  Which Git providers does a runtime work with, and is my token there still taken?
    gitops-runtime git integration list
    gitops-runtime git token check";

const CHANGED: &str = "\
Examples:
  In the pipeline of a monorepo, with its history (fetch-depth: 0):
    gitops-runtime git changed --base origin/main --head HEAD -f apps.yaml
  Go on only when something is changed:
    gitops-runtime git changed --base origin/main -f apps.yaml --exit-code; test $? -eq 3
  A comment on the pull request:
    gitops-runtime git changed --base origin/main -f apps.yaml -o markdown | gh pr comment --body-file -

What counts is what differs in the end between the head and the newest commit that it has in common with the base: a commit
that is undone by another changes nothing. The paths of an application are those of its annotation
argocd.argoproj.io/manifest-generate-paths, else what its sources are made of. Of an application whose manifests Argo CD writes
to a branch they are those that these manifests are made from, but for what is merged into that branch.
Exit codes: 0 it could be told; with --exit-code 0 nothing is changed, 3 something is; 1 it could not be told; 2 wrong use.";

const COMMITS: &str = "\
Examples:
  The commits that changed a directory or a chart, the newest first:
    gitops-runtime git commits --path apps/shop --path charts/web
  The commits of each application since a revision:
    gitops-runtime git commits --since v1.3.0 -f apps.yaml -o json

A commit changed an application when its paths differ from those of every parent: a merge that only brings together what
others did has not, nor have commits that a merge throws away. A pattern such as 'apps/*/values.yaml' is one of files.";

const MANIFESTS: &str = "\
Examples:
  gitops-runtime git manifests --path apps/shop
  gitops-runtime git manifests --revision v1.4.0 --path clusters --recurse -o json

Nothing is rendered: templates of Helm are told as files that could not be read.";

/// What the arguments stand under that say how a repository elsewhere is fetched.
const ELSEWHERE: &str = "Repositories elsewhere";

/// What is to be asked of a repository.
#[derive(Subcommand)]
pub(crate) enum GitCommand {
    /// Say which applications a pull request changes.
    #[command(after_help = CHANGED)]
    Changed(ChangedArgs),
    /// List the commits that changed paths or applications.
    #[command(after_help = COMMITS)]
    Commits(CommitsArgs),
    /// List the Kubernetes objects of a directory, each with its file and lines.
    #[command(after_help = MANIFESTS)]
    Manifests(ManifestsArgs),
    #[command(flatten)]
    Remote(RemoteGit),
}

/// Ask a Git repository which commits and pull requests change which applications; see the Git providers of a runtime.
#[derive(Args)]
#[command(after_help = GIT, arg_required_else_help = true)]
pub(crate) struct GitArgs {
    #[command(subcommand)]
    pub(crate) command: GitCommand,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GitOutput {
    /// Columns, for people
    Table,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// For a comment on a pull request
    Markdown,
}

/// Which repository, and how what is found is shown.
#[derive(Args)]
pub(crate) struct RepositoryArgs {
    /// The repository: a directory in it, or the address of one elsewhere (https, http, ssh, file)
    #[arg(long, value_name = "DIRECTORY|URL", default_value = ".")]
    pub(crate) repo: String,
    /// How it is shown
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: GitOutput,
    #[command(flatten)]
    pub(crate) remote: FetchArgs,
}

/// How a repository elsewhere is fetched. A password is given in a file or in GIT_PASSWORD, never as an argument.
#[derive(Args)]
pub(crate) struct FetchArgs {
    /// Where clones are kept; ~/.cache/gitops-runtime/git if none is given
    #[arg(long, help_heading = ELSEWHERE, value_name = "DIRECTORY")]
    pub(crate) cache: Option<PathBuf>,
    /// The user of HTTP; GIT_USERNAME if none is given
    #[arg(long, help_heading = ELSEWHERE, value_name = "NAME")]
    pub(crate) username: Option<String>,
    /// A file with the password or token of HTTP; GIT_PASSWORD if none is given
    #[arg(long, help_heading = ELSEWHERE, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// A file with the private key of SSH, without a passphrase
    #[arg(long, help_heading = ELSEWHERE, value_name = "FILE")]
    pub(crate) ssh_key_file: Option<PathBuf>,
    /// A file with the keys of SSH hosts; ~/.ssh/known_hosts if none is given
    #[arg(long, help_heading = ELSEWHERE, value_name = "FILE")]
    pub(crate) known_hosts_file: Option<PathBuf>,
    /// A PEM file with authorities that are trusted beside those of the system
    #[arg(long, help_heading = ELSEWHERE, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Bytes that one fetch may take; 2 GiB if none is given
    #[arg(long, help_heading = ELSEWHERE, value_name = "BYTES")]
    pub(crate) max_bytes: Option<u64>,
}

/// Which applications.
#[derive(Args)]
pub(crate) struct ApplicationsArgs {
    /// Applications in YAML or JSON, of one document or many; may be repeated. - is standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How applications call the repository; its remote origin if none is given
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

/// A pull request, and the applications it may change.
#[derive(Args)]
pub(crate) struct ChangedArgs {
    #[command(flatten)]
    pub(crate) repository: RepositoryArgs,
    #[command(flatten)]
    pub(crate) applications: ApplicationsArgs,
    /// What is merged into
    #[arg(long, value_name = "REVISION")]
    pub(crate) base: String,
    /// What is merged
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub(crate) head: String,
    /// The branch that is merged into: applications that follow another one are left out
    #[arg(long, value_name = "BRANCH")]
    pub(crate) into: Option<String>,
    /// Exit with 3 when an application is changed
    #[arg(long)]
    pub(crate) exit_code: bool,
}

/// A path within a repository.
fn within(path: &str) -> Result<String, String> {
    match path.split('/').any(|part| part == "..") {
        true => Err("it is to begin at the root of the repository, such as apps/shop".to_owned()),
        false => Ok(path.to_owned()),
    }
}

/// A span of history, and what is looked for in it.
#[derive(Args)]
pub(crate) struct CommitsArgs {
    #[command(flatten)]
    pub(crate) repository: RepositoryArgs,
    #[command(flatten)]
    pub(crate) applications: ApplicationsArgs,
    /// The revision whose history is looked at
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub(crate) revision: String,
    /// Leave out what this revision has as well; where nothing is left, the newest change is shown all the same
    #[arg(long, value_name = "REVISION")]
    pub(crate) since: Option<String>,
    /// A file, a directory or a pattern of files, from the root of the repository; may be repeated
    #[arg(
        long = "path",
        value_name = "PATH",
        value_parser = within,
        conflicts_with = "files",
        required_unless_present = "files"
    )]
    pub(crate) paths: Vec<String>,
    /// How many commits are listed of each application
    #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) limit: u16,
}

/// A directory of a revision.
#[derive(Args)]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    pub(crate) repository: RepositoryArgs,
    /// The revision whose files are read
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub(crate) revision: String,
    /// A directory or file, from the root of the repository
    #[arg(long, value_name = "PATH", value_parser = within, default_value = "")]
    pub(crate) path: String,
    /// Also what is in the directories below
    #[arg(long)]
    pub(crate) recurse: bool,
}
