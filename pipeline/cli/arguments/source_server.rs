//! The role `source-server`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::given;
use crate::cli::assignment;
use crate::config::Given;

const SOURCE_SERVER: &str = "\
Examples:
  On this machine, of a repository in a directory, for whoever has the token in a file:
    gitops-runtime source-server --listen 127.0.0.1:8090 --token-file token \\
      --repository https://git.example.com/mono.git=/repositories/mono
    curl -H \"authorization: Bearer $(cat token)\" \\
      'http://127.0.0.1:8090/v1/manifests?repoURL=https://git.example.com/mono.git&path=apps/shop'
  Of whatever is below an address, fetched when it is asked about:
    gitops-runtime source-server --token-file token --fetch https://git.example.com/team
  Which version an application packages:
    kubectl get application shop -o json | curl -H \"authorization: Bearer $(cat token)\" \\
      -H 'content-type: application/json' --data-binary @- http://127.0.0.1:8090/getAppVersion
  In a cluster, for the event reporter's ServiceAccount:
    gitops-runtime source-server --config settings.yaml --set sourceServer.callers.accounts=argocd/event-reporter
  Over the bus as well, for whoever its credentials let in:
    gitops-runtime source-server --config settings.yaml --set sourceServer.callers.bus=true --set bus.url=nats://nats:4222
    nats request gitops-runtime.ask.source '{\"commit\": {\"repoURL\": \"https://git.example.com/mono.git\"}}'
  What it answers, as an OpenAPI document:
    gitops-runtime source-server schema > openapi.json";

/// Say which file makes each manifest of an application, which versions it packages, and what its commits are.
#[derive(Args)]
#[command(after_help = SOURCE_SERVER)]
pub(crate) struct SourceServerArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SourceServerCommand>,
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as sourceServer.concurrency=8; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Where questions are taken, such as 127.0.0.1:8090
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// A file with the token of whoever may ask
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// A repository and the directory that it is kept in; several with commas between them
    #[arg(long, value_name = "URL=DIRECTORY")]
    repository: Option<String>,
    /// How the addresses begin of repositories that are fetched when they are asked about; several with commas between them
    #[arg(long, value_name = "URL")]
    fetch: Option<String>,
}

/// What is done instead of answering.
#[derive(Subcommand)]
pub(crate) enum SourceServerCommand {
    /// Print what it answers, as an OpenAPI document.
    Schema,
}

impl SourceServerArgs {
    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        let own = [
            ("sourceServer.listen", "--listen", &self.listen),
            ("sourceServer.callers.tokenFile", "--token-file", &self.token_file),
            ("sourceServer.repositories", "--repository", &self.repository),
            ("sourceServer.git.allowed", "--fetch", &self.fetch),
        ];
        given(&self.config, &[], &self.set, &own)
    }
}
