//! What `gitops-runtime secrets` takes.

use std::path::PathBuf;

use clap::Subcommand;

const ENSURE: &str = "\
Examples:
  Make what the Secret of a release lacks:
    gitops-runtime secrets ensure --namespace runtime --name prod-generated --key nats-token --key redaction-key
  As an init container of the chart does, which writes what stands there for the other containers of its pod:
    gitops-runtime secrets ensure --namespace runtime --name prod-generated --key redaction-key --into /run/generated

The Secret must be there: an empty one is enough. What stands in it is never replaced. The rights that this needs:
    gitops-runtime rbac print --role secrets --secret prod-generated --service-account runtime/event-reporter";

/// What is to be done about Secrets that nobody gives.
#[derive(Subcommand)]
pub(crate) enum SecretsCommand {
    /// Make once what a Secret lacks: 32 random bytes under each key, as hexadecimal digits.
    #[command(after_help = ENSURE)]
    Ensure(Ensure),
}

/// Which Secret, and what is to stand in it.
#[derive(clap::Args)]
pub(crate) struct Ensure {
    /// Its namespace
    #[arg(long)]
    pub(crate) namespace: String,
    /// Its name
    #[arg(long)]
    pub(crate) name: String,
    /// A key that must hold something; may be repeated
    #[arg(long = "key", value_name = "KEY", required = true, value_parser = key)]
    pub(crate) keys: Vec<String>,
    /// A folder that is given a file for each key
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// The kubeconfig of the cluster; in a pod its service account is taken
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A key of a Secret that a file can have as its name.
fn key(text: &str) -> Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(is_fit) {
        return Err("must be letters, digits, -, _ and ., such as nats-token".to_owned());
    }
    Ok(text.to_owned())
}
