//! The arguments of `app`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::act::{AppProxyArgs, ChangeArgs, ConfirmArgs, LogArgs};
use super::number::number;
use super::{ListArgs, OutputArgs, PlatformArgs};
use crate::names;

const LIST: &str = "\
Examples:
  gitops-runtime app list
  gitops-runtime app list store health:degraded,missing    those with store in a name, commit, label or image
  gitops-runtime app list env:production sync:outofsync deployed:7d
  gitops-runtime app list 'by:Ada Lovelace' image:envoy resource:service/web --watch
  gitops-runtime app list --runtime prod -l team=shop,tier=web -o wide
  gitops-runtime app list --namespace argocd --watch
  gitops-runtime app list -o name | wc -l
  gitops-runtime app list -o json | jq '.[] | select(.healthStatus == \"DEGRADED\").metadata.name'

Words are those of the console's list: text, or KEY:VALUE with a key of env, runtime, project, cluster, product, health, sync,
label, image, resource, commit, by and deployed; of values with commas between them one is enough. All words hold. What is none of
these is searched for as text, and said.";

const GET: &str = "\
Examples:
  gitops-runtime app get shop
  gitops-runtime app get prod/argocd/shop -o yaml
  gitops-runtime app get shop --watch                  whenever it changed";

const TREE: &str = "\
Examples:
  gitops-runtime app tree shop
  gitops-runtime app tree shop --live                  with what its resources made, as they are now
  gitops-runtime app tree shop -o json | jq -r '.[] | select(.healthStatus == \"DEGRADED\") | .resource.name'";

const DIFF: &str = "\
Examples:
  gitops-runtime app diff shop
  gitops-runtime app diff shop --exit-code             3 when something differs
  gitops-runtime app diff shop --resource Deployment/web
  gitops-runtime app diff shop --live                  as its runtime compares it now
  gitops-runtime app diff shop --live --revision v1.4.2

Manifests are compared as they were last reported, with secrets taken out where they run.
Exit codes: 0 it could be told; with --exit-code 0 nothing differs, 3 something does; 1 it could not be told.";

const HISTORY: &str = "\
Examples:
  gitops-runtime app history shop
  gitops-runtime app history shop --limit 5 -o wide
  gitops-runtime app history shop --live               with the numbers that `app rollback` takes";

const EVENTS: &str = "\
Examples:
  gitops-runtime app events shop
  gitops-runtime app events shop --limit 200 -o json
  gitops-runtime app events shop --live --resource Deployment/web   those of the cluster";

const SYNC: &str = "\
Examples:
  See what it would change, and do it:
    gitops-runtime app sync shop --dry-run
    gitops-runtime app sync shop --wait
  To a revision, of two resources alone:
    gitops-runtime app sync shop --revision v1.4.2 --resource Deployment/web --resource ConfigMap/web
  With what Git does not have any more deleted:
    gitops-runtime app sync shop --prune --yes

Exit codes: 0 it was asked for, with --wait it succeeded and the application is healthy; 1 it was refused, or nobody answers;
3 with --wait it failed, or took too long.";

const ROLLBACK: &str = "\
Examples:
  gitops-runtime app history shop --live               the numbers of deployments
  gitops-runtime app rollback shop                     to the deployment before
  gitops-runtime app rollback shop 12 --yes --wait";

const TERMINATE: &str = "\
Examples:
  gitops-runtime app terminate shop --wait";

const REFRESH: &str = "\
Examples:
  gitops-runtime app refresh shop
  gitops-runtime app refresh shop --hard               manifests are made anew as well";

const RESTART: &str = "\
Examples:
  gitops-runtime app restart shop Deployment/web --wait";

const LOGS: &str = "\
Examples:
  gitops-runtime app logs shop Deployment/web --follow
  gitops-runtime app logs shop Pod/web-7d4b9c-x2x7k --container sidecar --tail 50
  gitops-runtime app logs shop Deployment/web --since 10m --filter error | less";

const DELETE: &str = "\
Examples:
  gitops-runtime app delete-resource shop Pod/web-7d4b9c-x2x7k --yes --wait
  gitops-runtime app delete-resource shop Job/migrate --orphan --dry-run";

const ACTION: &str = "\
Examples:
  gitops-runtime app action shop Deployment/web        what can be done to it
  gitops-runtime app action shop Deployment/web restart";

/// Which application.
#[derive(Debug, Clone, Args)]
pub(crate) struct AppNameArgs {
    /// Its name, also as NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME
    #[arg(value_name = "APPLICATION", add = ArgValueCompleter::new(names::applications))]
    pub(crate) name: String,
    /// The runtime that it is of
    #[arg(long, value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) runtime: Option<String>,
}

/// Which applications.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArgs {
    /// Those that all of these words hold of, such as store, health:degraded or deployed:7d
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Those of this runtime
    #[arg(long, value_name = "RUNTIME", add = ArgValueCompleter::new(names::runtimes))]
    pub(crate) runtime: Option<String>,
    /// Those in this namespace
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCompleter::new(names::namespaces))]
    pub(crate) namespace: Option<String>,
    /// Those that have these labels, such as team=shop,tier=web; may be repeated
    #[arg(short = 'l', long = "selector", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub(crate) labels: Vec<String>,
    /// Those that are gone as well, as long as the platform remembers them
    #[arg(long)]
    pub(crate) deleted: bool,
}

/// A sync, and how it is done.
#[derive(Debug, Clone, Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// The revision that is synced to; without it the one that the application follows
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,
    /// Delete what Git does not have
    #[arg(long)]
    pub(crate) prune: bool,
    /// Replace what cannot be changed
    #[arg(long)]
    pub(crate) force: bool,
    /// Apply alone, without hooks
    #[arg(long)]
    pub(crate) apply_only: bool,
    /// This resource alone: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME; may be repeated
    #[arg(long = "resource", value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
    pub(crate) resources: Vec<String>,
    /// An option of Argo CD, such as CreateNamespace=true; may be repeated
    #[arg(long = "sync-option", value_name = "OPTION=VALUE")]
    pub(crate) options: Vec<String>,
    /// How often it is tried again when it fails
    #[arg(long, value_name = "NUMBER", value_parser = number::<u16>)]
    pub(crate) retry: Option<u16>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// A rollback, and how it is done.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// The number of the deployment, as `app history --live` shows it; without it the one before
    #[arg(value_name = "ID", add = ArgValueCompleter::new(names::deployments), value_parser = number::<i64>)]
    pub(crate) id: Option<i64>,
    /// Delete what the deployment does not have
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Which lines of which logs.
#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// Whose: Pod/NAME, or KIND/NAME of what has pods; without it those of all pods of the application
    #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
    pub(crate) resource: Option<String>,
    /// The container, where there are several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    #[command(flatten)]
    pub(crate) lines: LogArgs,
    /// Lines that hold this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}

/// What is to be deleted, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeleteResource {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// Which: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME
    #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
    pub(crate) resource: String,
    /// At once, without a time to end in
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave what it owns
    #[arg(long)]
    pub(crate) orphan: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What is to be done to a resource.
#[derive(Debug, Clone, Args)]
pub(crate) struct Action {
    #[command(flatten)]
    pub(crate) named: AppNameArgs,
    /// Which: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME
    #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
    pub(crate) resource: String,
    /// What; without it those that there are are listed
    #[arg(value_name = "ACTION", add = ArgValueCompleter::new(names::of_resource))]
    pub(crate) action: Option<String>,
    #[command(flatten)]
    pub(crate) shown: OutputArgs,
    #[command(flatten)]
    pub(crate) careful: ConfirmArgs,
    #[command(flatten)]
    pub(crate) way: AppProxyArgs,
}

/// One label of a selector, as `kubectl` takes it: with spaces about its parts, and with `==` for `=`.
pub(super) fn label(text: &str) -> Result<String, String> {
    let parts = text.split_once('=').map(|(key, value)| (key, value.strip_prefix('=').unwrap_or(value)));
    match parts.map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !key.ends_with('!') && !value.starts_with('=') => {
            Ok(format!("{key}={value}"))
        }
        _ => Err("a label is KEY=VALUE".to_owned()),
    }
}

/// What is to be done with applications.
#[derive(Subcommand)]
pub(crate) enum AppCommand {
    /// List applications.
    #[command(after_help = LIST)]
    List {
        #[command(flatten)]
        chosen: FilterArgs,
        #[command(flatten)]
        listed: ListArgs,
        #[command(flatten)]
        place: PlatformArgs,
    },
    /// Show one application, and what is wrong with it.
    #[command(after_help = GET)]
    Get {
        #[command(flatten)]
        named: AppNameArgs,
        /// Look again every two seconds, and show it whenever it changed, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        shown: OutputArgs,
        #[command(flatten)]
        place: PlatformArgs,
    },
    /// Show the resources of an application.
    #[command(after_help = TREE)]
    Tree {
        #[command(flatten)]
        named: AppNameArgs,
        #[command(flatten)]
        shown: OutputArgs,
        /// As its runtime knows it now, which is asked through its app proxy
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Show how what runs differs from what should.
    #[command(after_help = DIFF)]
    Diff {
        #[command(flatten)]
        named: AppNameArgs,
        /// This resource alone: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME; may be repeated
        #[arg(long = "resource", value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
        resources: Vec<String>,
        /// Exit with 3 when something differs
        #[arg(long)]
        exit_code: bool,
        /// As its runtime knows it now, which is asked through its app proxy
        #[arg(long)]
        live: bool,
        /// With --live: with what Git says at this revision, instead of the one that the application follows; of several sources
        /// one for each, in their order
        #[arg(long = "revision", value_name = "REVISION", requires = "live")]
        revisions: Vec<String>,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Show what was deployed, the newest first.
    #[command(after_help = HISTORY)]
    History {
        #[command(flatten)]
        named: AppNameArgs,
        /// Show at most so many; the platform tells the last hundred
        #[arg(long, value_name = "NUMBER", default_value = "20", value_parser = number::<NonZeroU32>)]
        limit: NonZeroU32,
        #[command(flatten)]
        shown: OutputArgs,
        /// As its runtime knows it now, which is asked through its app proxy
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Show what happened to an application and its resources, the newest first.
    #[command(after_help = EVENTS)]
    Events {
        #[command(flatten)]
        named: AppNameArgs,
        /// With --live: of this resource, KIND/NAME, instead of the application itself
        #[arg(long, value_name = "KIND/NAME", requires = "live", add = ArgValueCompleter::new(names::resources))]
        resource: Option<String>,
        /// Show at most so many
        #[arg(long, value_name = "NUMBER", default_value = "50", value_parser = number::<NonZeroU32>)]
        limit: NonZeroU32,
        #[command(flatten)]
        shown: OutputArgs,
        /// As its runtime knows it now, which is asked through its app proxy
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Make what runs as Git says, or see what that would change.
    #[command(after_help = SYNC)]
    Sync(Box<Sync>),
    /// Go back to what was deployed before.
    #[command(after_help = ROLLBACK)]
    Rollback(Box<Rollback>),
    /// End the operation that is under way.
    #[command(after_help = TERMINATE)]
    Terminate {
        #[command(flatten)]
        named: AppNameArgs,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Compare with Git anew; it is done once that is answered.
    #[command(after_help = REFRESH)]
    Refresh {
        #[command(flatten)]
        named: AppNameArgs,
        /// Make manifests anew as well
        #[arg(long)]
        hard: bool,
        #[command(flatten)]
        careful: ConfirmArgs,
        #[command(flatten)]
        way: AppProxyArgs,
    },
    /// Restart a Deployment, StatefulSet or DaemonSet.
    #[command(after_help = RESTART)]
    Restart {
        #[command(flatten)]
        named: AppNameArgs,
        /// Which: KIND/NAME, KIND.GROUP/NAME or NAMESPACE/KIND/NAME
        #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(names::resources))]
        resource: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Show the logs of pods.
    #[command(after_help = LOGS)]
    Logs(Box<Logs>),
    /// Delete a resource from the cluster.
    #[command(after_help = DELETE)]
    DeleteResource(Box<DeleteResource>),
    /// Do to a resource what Argo CD knows can be done to its kind, or list that.
    #[command(after_help = ACTION)]
    Action(Box<Action>),
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_taken_as_kubectl_takes_it_and_whatever_else_a_selector_may_say_is_refused() {
        for (text, expected) in [
            ("team=shop", "team=shop"),
            ("team==shop", "team=shop"),
            (" team = shop ", "team=shop"),
            ("team =", "team="),
            ("example.com/team=shop", "example.com/team=shop"),
        ] {
            assert_eq!(label(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", " ", "team", "!team", "=shop", " =shop", "team!=shop", "team != shop", "team===shop"]
        {
            assert_eq!(label(text).unwrap_err(), "a label is KEY=VALUE", "{text}");
        }
    }
}
