//! The role `app-proxy`.

use std::path::PathBuf;

use clap::Args;

use super::given;
use crate::cli::assignment;
use crate::config::Given;

const APP_PROXY: &str = "\
Examples:
  Of the current kubeconfig's cluster, for the people of a platform:
    gitops-runtime app-proxy --platform-url https://platform.example --platform-token-file runtime-token \\
      --argocd-url https://argocd.example.com --argocd-token-file argocd-token --listen 127.0.0.1:3017
  What it is asked, and how:
    gitops-runtime schema --of app-proxy
    curl -H \"Authorization: $KEY\" -H 'Content-Type: application/json' http://127.0.0.1:3017/app-proxy/api/graphql \\
      -d '{\"query\": \"{ versionInfo { version } }\"}'
  Logs as they come:
    curl -N -H \"Authorization: $KEY\" -H 'Accept: text/event-stream' http://127.0.0.1:3017/api/graphql -d @logs.json
  Rollouts and Workflows of every namespace, and what that has to be allowed:
    gitops-runtime app-proxy --set 'appProxy.namespaces=*'
    gitops-runtime rbac print --role app-proxy --set 'appProxy.namespaces=*' | kubectl apply -f -";

/// Do in the cluster what people ask for of Argo CD, Rollouts and Workflows, as far as they may.
#[derive(Args)]
#[command(after_help = APP_PROXY)]
pub(crate) struct AppProxyRoleArgs {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as appProxy.logStreams=50; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Where requests are taken, such as 127.0.0.1:3017
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The address of the platform, which says who may do what
    #[arg(long, value_name = "URL")]
    platform_url: Option<String>,
    /// A file that holds the runtime's own token of the platform
    #[arg(long, value_name = "FILE")]
    platform_token_file: Option<String>,
    /// The address of Argo CD
    #[arg(long, value_name = "URL")]
    argocd_url: Option<String>,
    /// A file that holds a token of Argo CD
    #[arg(long, value_name = "FILE")]
    argocd_token_file: Option<String>,
    /// The kubeconfig of the cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
}

impl AppProxyRoleArgs {
    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        let own = [
            ("appProxy.listen", "--listen", &self.listen),
            ("platform.url", "--platform-url", &self.platform_url),
            ("platform.tokenFile", "--platform-token-file", &self.platform_token_file),
            ("argocd.url", "--argocd-url", &self.argocd_url),
            ("argocd.tokenFile", "--argocd-token-file", &self.argocd_token_file),
            ("kubernetes.kubeconfig", "--kubeconfig", &self.kubeconfig),
        ];
        given(&self.config, &[], &self.set, &own)
    }
}
