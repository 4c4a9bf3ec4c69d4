//! The roles `tunnel-server` and `tunnel-client`.

use std::path::PathBuf;

use clap::Args;

use super::given;
use crate::cli::assignment;
use crate::config::Given;

const SERVER: &str = "\
Examples:
  On this machine, for whoever is on it: no tokens, and tunnels are visited at NAME.localhost:8080:
    gitops-runtime tunnel-server --single
    gitops-runtime tunnel-client --to http://localhost:8080 --forward http://localhost:3000
  For others, with TLS of its own; each line of the file of tokens is a name and its token:
    echo \"shop-web $(openssl rand -hex 32)\" > tokens
    gitops-runtime tunnel-server --listen 0.0.0.0:443 --domain tunnels.example.com --tokens-file tokens \\
      --set tunnelServer.tls.certificateFile=tls.crt --set tunnelServer.tls.keyFile=tls.key
  Behind an ingress that has TLS and says who asked, for the runtimes of a platform: each has ACCOUNT-RUNTIME with its token:
    gitops-runtime tunnel-server --domain tunnels.example.com --platform-url https://platform.example.com \\
      --set tunnelServer.trustedProxies=10.0.0.0/8
  Several behind one name, each of which passes visitors on to the one that has their tunnel:
    gitops-runtime tunnel-server --domain tunnels.example.com --tokens-file tokens --bus nats://nats:4222 \\
      --set tunnelServer.peers.address=10.1.2.3

Clients of the frp 0.44 family are served as well, over the protocol websocket or wss: a proxy of type http whose name and
subdomain are ACCOUNT-RUNTIME, with the token as its metadata Authorization. That protocol is weaker: TLS alone protects the
token, and nothing says whether the service behind a client is reached.";

const CLIENT: &str = "\
Examples:
  Show what listens on port 3000 of this machine, through a server that runs beside it (tunnel-server --single):
    gitops-runtime tunnel-client --to http://localhost:8080 --forward http://localhost:3000
  Through one that others reach, to those of one network alone:
    gitops-runtime tunnel-client --to https://tunnels.example.com --name shop-web --token-file token \\
      --forward http://localhost:3000 --set tunnelClient.allow=198.51.100.0/24
  To a server of the frp 0.44 family, whose protocol is weaker: TLS alone protects the token:
    gitops-runtime tunnel-client --to https://tunnels.example.com --name shop-web --token-file token \\
      --forward http://localhost:3000 --set tunnelClient.protocol=frp
  In a pod, with a file of settings:
    gitops-runtime tunnel-client --config settings.yaml";

/// Take visitors for what is behind tunnels, and the clients that open those.
#[derive(Args)]
#[command(after_help = SERVER)]
pub(crate) struct TunnelServerArgs {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as tunnelServer.requests=500; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// For this machine alone: listens on 127.0.0.1:8080, without tokens unless --tokens-file names some
    #[arg(long)]
    pub(crate) single: bool,
    /// Where clients and visitors come, such as 0.0.0.0:8080
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Tunnels are visited at NAME.DOMAIN
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// A file with a line for each tunnel: its name and its token
    #[arg(long, value_name = "FILE")]
    tokens_file: Option<String>,
    /// The platform that is asked which runtime a token is of
    #[arg(long, value_name = "URL")]
    platform_url: Option<String>,
    /// The NATS servers by which several servers behind one name know of each other's tunnels
    #[arg(long, value_name = "URL")]
    bus: Option<String>,
    /// Where health and metrics are served, such as 127.0.0.1:8088; with --single nowhere, unless it is given
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<String>,
}

/// Lead visitors of a tunnel server to one service.
#[derive(Args)]
#[command(after_help = CLIENT)]
pub(crate) struct TunnelClientArgs {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as tunnelClient.connections=4; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The address of the server; it ends when a newer client with the same id takes the tunnel over
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// What visitors are led to
    #[arg(long, value_name = "URL")]
    forward: Option<String>,
    /// The tunnel, as account-runtime; without, a name is made of the host's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A file that holds the token of the tunnel
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// A PEM file with the authorities that sign the server's certificate
    #[arg(long, value_name = "FILE")]
    ca_file: Option<String>,
    /// Where health and metrics are served, such as 127.0.0.1:8088; with --to nowhere, unless it is given
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<String>,
}

impl TunnelServerArgs {
    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        let single = [
            ("tunnelServer.listen", "127.0.0.1:8080"),
            ("tunnelServer.domain", "localhost"),
            ("tunnelServer.drainDelay", "0s"),
            ("serve.address", ""),
        ];
        let ask = self.platform_url.as_ref().map(|_| "true".to_owned());
        let own = [
            ("platform.url", "--platform-url", &self.platform_url),
            ("tunnelServer.askPlatform", "--platform-url", &ask),
            ("tunnelServer.listen", "--listen", &self.listen),
            ("tunnelServer.domain", "--domain", &self.domain),
            ("tunnelServer.tokensFile", "--tokens-file", &self.tokens_file),
            ("bus.url", "--bus", &self.bus),
            ("serve.address", "--serve", &self.serve),
        ];
        given(&self.config, if self.single { &single } else { &[] }, &self.set, &own)
    }
}

impl TunnelClientArgs {
    /// Whether somebody tries it: the server is named on the command line.
    pub(crate) fn is_tool(&self) -> bool {
        self.to.is_some()
    }

    /// What the flags say.
    pub(crate) fn given(&self) -> Given {
        let tool = [("serve.address", "")];
        let own = [
            ("tunnelClient.to", "--to", &self.to),
            ("tunnelClient.forward", "--forward", &self.forward),
            ("tunnelClient.name", "--name", &self.name),
            ("tunnelClient.tokenFile", "--token-file", &self.token_file),
            ("tunnelClient.caFile", "--ca-file", &self.ca_file),
            ("serve.address", "--serve", &self.serve),
        ];
        given(&self.config, if self.is_tool() { &tool } else { &[] }, &self.set, &own)
    }
}
