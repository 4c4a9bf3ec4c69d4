//! The arguments of `seal`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::act::AppProxyArgs;
use crate::names;

const SEAL: &str = "\
Examples:
  With the certificate of the runtime's controller of sealed-secrets:
    gitops-runtime seal -f secret.yaml > sealed.yaml
    kubectl create secret generic db --from-file=password --dry-run=client -o yaml | gitops-runtime seal --namespace shop
  With one that was fetched before, or lies elsewhere; nobody is signed in to:
    gitops-runtime seal -f secret.yaml --cert cert.pem
    gitops-runtime seal -f secret.yaml --cert https://seals.example.com/v1/cert.pem --scope namespace

The Secret is sealed here: only the certificate is fetched. Its values cannot be read of what is printed, which may be committed.
Exit codes: 0 it is sealed; 1 there is no certificate; 2 the Secret, or what was typed, cannot be meant.";

/// Where a SealedSecret may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Under its name in its namespace alone
    Strict,
    /// Under any name in its namespace
    Namespace,
    /// Anywhere in the cluster
    Cluster,
}

/// Seal a Secret, so that it may stand in Git.
#[derive(Debug, Args)]
#[command(after_help = SEAL)]
pub(crate) struct Seal {
    /// A file of the Secret, as YAML or JSON; `-`, or none, is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The controller's certificate: a file, or an address; without it the runtime is asked
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) cert: Option<String>,
    /// Where it may be opened; without it what the Secret's annotations say, and else strict
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub(crate) scope: Option<Scope>,
    /// The namespace that it is for, where the Secret says none
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCompleter::new(names::destinations))]
    pub(crate) namespace: Option<String>,
    /// The runtime; may be left out where you see one alone
    #[arg(long, value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) runtime: Option<String>,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}
