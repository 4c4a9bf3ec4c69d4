//! The role `router`.

use std::path::PathBuf;

use clap::Args;

use super::given;
use crate::cli::assignment;
use crate::config::Given;

const ROUTER: &str = "\
Examples:
  In a pod: to the App Proxy, Argo Workflows and the webhooks of its own namespace:
    gitops-runtime router
  On this machine, to an App Proxy that listens here:
    gitops-runtime router --listen 127.0.0.1:8080 --app-proxy-url http://127.0.0.1:3017
    curl http://127.0.0.1:8080/app-proxy/api
  Behind a load balancer that says who asked, and with webhooks of another namespace:
    gitops-runtime router --set router.trustedProxies=10.0.0.0/8 --set 'router.webhooks.allow=runtime/*,ci/push'
  With TLS of its own:
    gitops-runtime router --set router.tls.certificateFile=tls.crt --set router.tls.keyFile=tls.key";

/// Take requests from outside, and pass each to the service that it is for.
#[derive(Args)]
#[command(after_help = ROUTER)]
pub(crate) struct RouterArgs {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as router.connections=4096; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Where requests are taken, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The address of the App Proxy
    #[arg(long, value_name = "URL")]
    app_proxy_url: Option<String>,
    /// The address of the server of Argo Workflows
    #[arg(long, value_name = "URL")]
    workflows_url: Option<String>,
}

impl RouterArgs {
    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        let own = [
            ("router.listen", "--listen", &self.listen),
            ("router.appProxy.url", "--app-proxy-url", &self.app_proxy_url),
            ("router.workflows.url", "--workflows-url", &self.workflows_url),
        ];
        given(&self.config, &[], &self.set, &own)
    }
}
