//! The command line.

pub(crate) mod access;
mod arguments;
pub(crate) mod ask;
mod block_on;
pub(crate) mod bus;

pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod crds;
pub(crate) mod git;
mod help;
pub(crate) mod man;
mod print;
pub(crate) mod redact;
pub(crate) mod remote;
pub(crate) mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use stages_remote::RemoteCommand;

pub(crate) use self::arguments::app_proxy::AppProxyRoleArgs;
pub(crate) use self::arguments::ask::{
    DistributionArgs, ParkedCommand, ReplayArgs, ReporterArgs, ReporterCommand, RouteArgs,
};
pub(crate) use self::arguments::bus::{BusArgs, BusCommand, BusCommands, BusRole, TapArgs};
pub(crate) use self::arguments::git::{
    ApplicationsArgs, ChangedArgs, CommitsArgs, GitArgs, GitCommand, GitOutput, ManifestsArgs, RepositoryArgs,
};
pub(crate) use self::arguments::platform::{PlatformArgs, PlatformCommand, TokenCommand};
pub(crate) use self::arguments::router::RouterArgs;
pub(crate) use self::arguments::secrets::SecretsCommand;
pub(crate) use self::arguments::source_server::{SourceServerArgs, SourceServerCommand};
pub(crate) use self::arguments::tunnel::{TunnelClientArgs, TunnelServerArgs};
pub(crate) use self::arguments::values::{
    AccessShape, Adopt, Check, CheckAccess, CheckCommand, CrdsCommand, Hook, Shape, Tier, Validate,
    ValuesCommand,
};
pub(crate) use self::block_on::{block_on, single_thread, until_interrupted};
pub(crate) use self::print::print;
use crate::config::{Given, Variables, role, set};

const ABOUT: &str = "An open, self-hosted GitOps runtime: everything that happens to Argo CD applications, \
                     reported completely and in order";

const EXAMPLES: &str = "\
Examples:
  Watch a cluster with nothing but a kubeconfig and an Argo CD token, reports on standard output:
    gitops-runtime reporter --argocd-url https://argocd.example.com --argocd-token-file token --sink stdout
  See every setting, its value, and where that comes from:
    gitops-runtime config print
  Check a file of settings:
    gitops-runtime config check settings.yaml
  Ask a running reporter why an application was reported or not, and how it stands as a whole:
    gitops-runtime explain shop
    gitops-runtime status
  Let replicas come and go, on a bus that they share, and see what is on it:
    gitops-runtime reporter --config settings.yaml --bus nats://nats:4222
    gitops-runtime bus show --config settings.yaml --bus nats://nats:4222
  See what would leave the process of a manifest, and why:
    gitops-runtime redact -f deployment.yaml --explain
  Grant a ServiceAccount what the reporter needs, and nothing else:
    gitops-runtime rbac print --role reporter | kubectl apply -f -
  Receive and keep what reporters report, and make a token for one of them:
    gitops-runtime platform
    gitops-runtime platform token create --runtime prod
  See which applications a pull request changes:
    gitops-runtime git changed --base origin/main -f apps.yaml
  Take requests from outside, and pass each to the service that it is for:
    gitops-runtime router --app-proxy-url http://127.0.0.1:3017
  Do in the cluster what people of the platform ask for, as far as they may:
    gitops-runtime app-proxy --platform-url https://platform.example --platform-token-file runtime-token \\
      --argocd-url https://argocd.example.com --argocd-token-file argocd-token
  Say what Git says of applications, of a repository that is kept in a directory:
    gitops-runtime source-server --token-file token --repository https://git.example.com/mono.git=/repositories/mono
  Say after each sync which commits changed an application:
    gitops-runtime change-revision --sink stdout
  Sign in to a platform, and see the applications of all runtimes that it knows:
    gitops-runtime login https://platform.example.com
    gitops-runtime app list
  Show what listens on this machine to others, through a server that they reach:
    gitops-runtime tunnel-client --to https://tunnels.example.com --name shop-web --token-file token \\
      --forward http://localhost:3000
  See what is wrong with values of the chart before they are installed:
    gitops-runtime validate -f values.yaml --namespace runtime

Exit codes: 0 done, 1 not done or something is wrong, 2 usage; others stand in the help of the commands that have them.";

const REPORTER: &str = "\
Examples:
  Reports of the current kubeconfig's cluster on standard output:
    gitops-runtime reporter --argocd-url https://argocd.example.com --argocd-token-file token --sink stdout
  Appended to a file, remembering what was written over restarts:
    gitops-runtime reporter --argocd-url https://argocd.example.com --argocd-token-file token --output reports.ndjson
  To a platform, with everything in a file of settings but one:
    gitops-runtime reporter --config settings.yaml --set reporter.lanes.concurrency=32

Every setting can be given in a file, as a variable, or with --set: gitops-runtime config print lists them.";

const RESOURCE_REPORTER: &str = "\
Examples:
  What would be reported of the cluster of the kubeconfig, a line each:
    gitops-runtime resource-reporter --dry-run
  To a platform, of all namespaces and the kinds that are usual:
    gitops-runtime resource-reporter --platform-url https://platform.example --platform-token-file token
  Other kinds, of some namespaces:
    gitops-runtime resource-reporter --set 'resources.kinds=rollouts.argoproj.io,deployments.apps@v1' \\
      --set 'resources.namespaces=team-*'
  Kinds with selectors, a filter and a rate limit each, as CloudEvents (config/examples/resource-events.yaml):
    gitops-runtime resource-reporter --config resource-events.yaml";

const CHANGE_REVISION: &str = "\
Examples:
  Of the applications of the cluster of the kubeconfig, a line of JSON for each sync:
    gitops-runtime change-revision --sink stdout
  Logged, and written to the applications as annotations, with the credentials that Argo CD has:
    gitops-runtime change-revision --set changeRevision.annotations=true --set changeRevision.repositories.argocdSecrets=true
  The rights that this takes:
    gitops-runtime rbac print --role change-revision --service-account change-revision --set changeRevision.annotations=true";

const CONFIG: &str = "\
Examples:
  gitops-runtime config print                          every setting, its value, and where that comes from
  gitops-runtime config check                          what this environment would start with
  gitops-runtime config check settings.yaml            one file alone
  gitops-runtime config schema > schema.json           for editors that complete and check YAML";

const SCHEMA: &str = "\
Examples:
  gitops-runtime schema                                the GraphQL schema of the platform's API
  gitops-runtime schema --of resources                 what stands under data in a report of an object
  gitops-runtime schema --of cloudevents > event.json  the same as a CloudEvent, for who takes them";

const RBAC: &str = "\
Examples:
  Look at the rights the event reporter needs:
    gitops-runtime rbac print --role reporter
  Grant them, to a ServiceAccount in the namespace Argo CD is installed in:
    gitops-runtime rbac print --role reporter --namespace argocd | kubectl apply -f -
  With the settings the reporter runs with, and a ServiceAccount elsewhere:
    gitops-runtime rbac print --role reporter --config settings.yaml --service-account gitops/reporter
  Applications in other namespaces as well:
    gitops-runtime rbac print --role reporter --application-namespaces 'team-*'";

const REDACT: &str = "\
Examples:
  What would be reported of an object of the cluster:
    kubectl get deployment shop -o yaml | gitops-runtime redact
  Of a file of values, and which rule touched what:
    gitops-runtime redact -f values.yaml
    gitops-runtime redact -f values.yaml --explain
  Of a line of a log, or a commit's message:
    git log -1 --format=%B | gitops-runtime redact

Digests are made with a key that is thrown away, so they differ from run to run; with --key-file they are those that a
reporter with that key sends.";

const COMPLETION: &str = "\
Examples:
  For this shell alone:
    source <(gitops-runtime completion bash)
  For every one of Bash, of zsh (behind compinit), of fish:
    echo 'source <(gitops-runtime completion bash)' >> ~/.bashrc
    echo 'source <(gitops-runtime completion zsh)' >> ~/.zshrc
    echo 'gitops-runtime completion fish | source' >> ~/.config/fish/config.fish

Names come from the platform that you are signed in to; one that does not answer within a moment has none.";

const MAN: &str = "\
Examples:
  gitops-runtime man ~/.local/share/man/man1
  gitops-runtime man man1 && man -l man1/gitops-runtime-app-list.1";

/// The command line as it was given. Not to be printed: somebody may have put a secret there.
#[derive(Parser)]
#[command(name = "gitops-runtime", version, about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What is to be done.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Report every change of Argo CD applications and their resources.
    #[command(after_help = REPORTER, alias = "/usr/local/bin/event-reporter-server")]
    Reporter(Box<Settings>),
    /// Report the live state of other objects: Rollouts, ReplicaSets, Workflows and whatever else is asked for.
    #[command(after_help = RESOURCE_REPORTER)]
    ResourceReporter(Box<ResourceSettings>),
    Platform(Box<PlatformArgs>),
    Router(Box<RouterArgs>),
    AppProxy(Box<AppProxyRoleArgs>),
    SourceServer(Box<SourceServerArgs>),
    /// Say after each sync which commits changed an application.
    #[command(after_help = CHANGE_REVISION)]
    ChangeRevision(Box<Settings>),
    TunnelServer(Box<TunnelServerArgs>),
    TunnelClient(Box<TunnelClientArgs>),
    #[command(flatten)]
    ReporterCommand(ReporterCommand),
    #[command(flatten)]
    BusCommands(BusCommands),
    #[command(flatten)]
    Remote(RemoteCommand),
    /// Print, check or describe the settings.
    #[command(subcommand, after_help = CONFIG)]
    Config(ConfigCommand),
    /// Print the rights a role needs in the cluster.
    #[command(subcommand, after_help = RBAC)]
    Rbac(RbacCommand),
    #[command(after_help = SCHEMA)]
    Schema(SchemaOf),
    /// Make once what nobody gives: the bus's token, the redaction key.
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Print what would leave the process of a manifest, an Application, or any text.
    #[command(after_help = REDACT)]
    Redact(Redact),
    Git(GitArgs),
    /// Say everything that is wrong with values of the chart, before they are installed.
    Validate(Validate),
    /// Make values of the chart of another chart's.
    #[command(subcommand)]
    Values(ValuesCommand),
    /// Hand definitions in the cluster over to a release of the chart.
    #[command(subcommand)]
    Crds(CrdsCommand),
    /// Print what makes a shell complete commands, flags, and the names of runtimes and applications.
    #[command(after_help = COMPLETION)]
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: completion::Shell,
    },
    /// Write a manual page of every command.
    #[command(after_help = MAN)]
    Man {
        /// Where; it is made where it is not there
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
    /// Ask whether every part of an installation is well, whether a reporter is ready, or which hop on the way to a runtime fails.
    Check(Check),
}

/// Print the GraphQL schema of an API, or the JSON schema of what reporters send.
#[derive(Args)]
pub(crate) struct SchemaOf {
    /// Whose
    #[arg(long, value_enum, default_value = "platform")]
    pub(crate) of: Api,
}

/// An API that is asked in GraphQL, or what else has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// The platform's
    Platform,
    /// That of the app proxy of a runtime
    AppProxy,
    /// No API, but what stands under `data` in a report of the resource event reporter, as a JSON schema
    Resources,
    /// Such a report as a CloudEvent, as a JSON schema
    Cloudevents,
}

/// What is to be redacted, and how it is shown.
#[derive(Args)]
pub(crate) struct Redact {
    /// A manifest or Application in YAML or JSON, of one document or many; anything else is free text. - is standard input
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Print where something was replaced and which row of the table or which rule did it, never a value
    #[arg(long)]
    pub(crate) explain: bool,
    /// The key of the digests; without it one is made and thrown away
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// What is to be done about rights.
#[derive(Subcommand)]
pub(crate) enum RbacCommand {
    /// Print a ServiceAccount, the rights the role needs with these settings, and their binding, for kubectl.
    #[command(after_help = RBAC)]
    Print {
        /// Whose rights
        #[arg(long, value_enum)]
        role: Role,
        /// The ServiceAccount that gets them; it is in the namespace Argo CD is installed in, unless another is given
        #[arg(long, value_name = "[NAMESPACE/]NAME", default_value = "event-reporter", value_parser = account)]
        service_account: Account,
        /// The Secret that the role secrets makes what is missing in
        #[arg(long, value_name = "NAME", required_if_eq("role", "secrets"))]
        secret: Option<String>,
        #[command(flatten)]
        given: Box<Settings>,
    },
}

/// What this binary can run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The application event reporter
    Reporter,
    /// The resource event reporter
    ResourceReporter,
    /// The app proxy
    AppProxy,
    /// Who makes once what nobody gives: `gitops-runtime secrets ensure`
    Secrets,
    /// The source server
    SourceServer,
    /// Who says which commits changed which application
    ChangeRevision,
}

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// `None`: the namespace Argo CD is installed in.
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

/// What is to be done with the settings.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting as YAML, with the origin of what is not the default; secrets are masked.
    Print {
        #[command(flatten)]
        given: Box<Settings>,
    },
    /// Check the settings; exit 1 and tell every problem when something is wrong.
    Check {
        /// Check this file alone, without the environment and without missing what that may give.
        #[arg(conflicts_with = "Settings")]
        file: Option<PathBuf>,
        #[command(flatten)]
        given: Box<Settings>,
    },
    /// Print the JSON schema of a file of settings.
    Schema,
}

/// How resources are reported.
#[derive(Args)]
pub(crate) struct ResourceSettings {
    /// Write to standard output what would be sent and why all else is not, a line each, and at the end how much of each; send
    /// and remember nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Settings,
}

impl ResourceSettings {
    /// Whether nothing is to be sent.
    pub(crate) fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// What the flags say; a dry run stands above all others.
    pub(crate) fn given(&self) -> Given {
        let mut given = self.settings.given();
        if self.dry_run {
            let mut add = |path: &str, text: &str| {
                given.flags.push((path.to_owned(), "--dry-run".to_owned(), text.to_owned()));
            };
            // It may run beside the one that reports, in its pod and with its settings: files and ports are left to that one.
            add("reporter.ledger.storage", "memory");
            add("admin.socket", "");
            add("admin.address", "");
            if self.settings.listen.is_none() {
                add("serve.address", "");
                add("serve.metricsAddress", "");
            }
        }
        given
    }
}

/// The flags of the most used settings, and a way to give any other.
#[derive(Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Settings {
    /// A YAML file of settings [env: GITOPS_RUNTIME_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting, such as reporter.queue.events=500; may be repeated
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Where reports go: platform, cloudevents, stdout or file
    #[arg(long, value_name = "KIND")]
    sink: Option<String>,
    /// The file reports are appended to; chooses the sink file
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    /// The kubeconfig of the cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace Argo CD is installed in
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Patterns of further namespaces with Applications, such as team-*,apps
    #[arg(long, value_name = "PATTERNS")]
    application_namespaces: Option<String>,
    /// The address of Argo CD
    #[arg(long, value_name = "URL")]
    argocd_url: Option<String>,
    /// A file that holds a token of Argo CD
    #[arg(long, value_name = "FILE")]
    argocd_token_file: Option<String>,
    /// A PEM file with the authorities that sign Argo CD's certificate
    #[arg(long, value_name = "FILE")]
    argocd_ca_file: Option<String>,
    /// Accept any certificate of Argo CD
    #[arg(long)]
    argocd_insecure: bool,
    /// The address of the platform
    #[arg(long, value_name = "URL")]
    platform_url: Option<String>,
    /// A file that holds the token of the platform
    #[arg(long, value_name = "FILE")]
    platform_token_file: Option<String>,
    /// The servers of the bus, such as nats://nats:4222; replicas come and go on it
    #[arg(long, value_name = "URL")]
    bus: Option<String>,
    /// What remembers the acknowledged: memory, or a file
    #[arg(long, value_name = "memory|FILE")]
    ledger: Option<String>,
    /// The directory of the ledger and the redaction key
    #[arg(long, value_name = "DIR")]
    state: Option<String>,
    /// Where health and metrics are served, such as 127.0.0.1:8088; nothing is served elsewhere
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The least severe level that is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How lines are logged: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

impl Cli {
    /// Reads the command line; with `--help`, or when it is wrong, says so and ends the process. Without any
    /// argument `BINARY_NAME` names the role, as it does for the incumbent's image.
    pub(crate) fn read(variables: &Variables) -> Command {
        let mut arguments: Vec<OsString> = std::env::args_os().collect();
        if arguments.len() == 1 {
            match set(variables, "BINARY_NAME").map(|binary| (binary, role(binary, variables))) {
                Some((_, Some(role))) => arguments.push(role.into()),
                Some((other, None)) => {
                    let text = format!(
                        "BINARY_NAME={other} names no role of this binary: event-reporter and argo-gateway do"
                    );
                    Self::command().error(ErrorKind::InvalidValue, text).exit()
                }
                None => {}
            }
        }
        let given = help::read(Self::command, &arguments, variables);
        match Self::from_arg_matches(&given) {
            Ok(given) => given.command,
            Err(error) => error.format(&mut Self::command()).exit(),
        }
    }
}

impl Settings {
    /// What the flags say, the general ones first: a flag of its own stands above `--set`.
    pub(crate) fn given(&self) -> Given {
        let mut flags: Vec<(String, String, String)> = Vec::new();
        let mut add = |path: &str, flag: &str, text: &str| {
            flags.push((path.to_owned(), flag.to_owned(), text.to_owned()));
        };
        for (path, text) in &self.set {
            add(path, "--set", text);
        }
        let texts = [
            ("reporter.sink.kind", "--sink", &self.sink),
            ("reporter.sink.file.path", "--output", &self.output),
            ("kubernetes.kubeconfig", "--kubeconfig", &self.kubeconfig),
            ("kubernetes.context", "--context", &self.context),
            ("kubernetes.namespace", "--namespace", &self.namespace),
            ("kubernetes.applicationNamespaces", "--application-namespaces", &self.application_namespaces),
            ("argocd.url", "--argocd-url", &self.argocd_url),
            ("argocd.tokenFile", "--argocd-token-file", &self.argocd_token_file),
            ("argocd.caFile", "--argocd-ca-file", &self.argocd_ca_file),
            ("platform.url", "--platform-url", &self.platform_url),
            ("platform.tokenFile", "--platform-token-file", &self.platform_token_file),
            ("bus.url", "--bus", &self.bus),
            ("state.directory", "--state", &self.state),
            ("serve.address", "--listen", &self.listen),
            ("log.level", "--log-level", &self.log_level),
            ("log.format", "--log-format", &self.log_format),
        ];
        for (path, flag, text) in texts {
            if let Some(text) = text {
                add(path, flag, text);
            }
        }
        if self.output.is_some() {
            add("reporter.sink.kind", "--output", "file");
        }
        if self.argocd_insecure {
            add("argocd.insecure", "--argocd-insecure", "true");
        }
        if self.listen.is_some() {
            add("serve.metricsAddress", "--listen", "");
        }
        match self.ledger.as_deref() {
            Some("memory") => add("reporter.ledger.storage", "--ledger", "memory"),
            Some(path) => {
                add("reporter.ledger.storage", "--ledger", "file");
                add("reporter.ledger.path", "--ledger", path);
            }
            None => {}
        }
        Given { file: self.config.clone(), flags }
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.is_empty() => Ok((path.to_owned(), value.to_owned())),
        _ => Err("must be a setting and its value, such as reporter.queue.events=500".to_owned()),
    }
}

fn account(text: &str) -> Result<Account, String> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if !namespace.is_none_or(is_label) {
        return Err("the part before / must be the name of a namespace, such as argocd".to_owned());
    }
    // Names of ServiceAccounts may hold dots.
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err("must be lower-case letters, digits, - and ., such as event-reporter".to_owned());
    }
    Ok(Account { namespace: namespace.map(str::to_owned), name: name.to_owned() })
}

/// Whether Kubernetes takes the text as the name of a namespace.
pub(crate) fn is_label(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.chars().all(|c| alphanumeric(c) || c == '-')
        && text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
}

#[cfg(test)]
mod tests;
