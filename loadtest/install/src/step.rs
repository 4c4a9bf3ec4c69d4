//! The steps that an installation is judged by.

use clap::ValueEnum;

/// A step. The first one brings everything up, so that each other one can follow it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// The chart in a restricted namespace, on a real node
    Install,
    /// A commit in Git comes to the platform, by a pod of the chart
    Change,
    /// Another release, by the cluster's own Argo CD and from a Git repository: no difference is ever shown
    Argocd,
    /// Another release, by Flux' helm-controller: nothing is done that nobody asked for, and what differs is put right
    Flux,
    /// `helm test`
    Test,
    /// Other values, while applications change
    Upgrade,
    /// The pod is killed, while applications change
    Kill,
    /// The node's kubelet is killed, and then every process of the node, while applications change
    Power,
    /// Pulled from a registry that asks for a login: refused without the Secret, and pulled with it
    Registry,
    /// Three replicas and three NATS servers, one of each killed, while applications change
    Replicas,
    /// An upgrade to an image that is not there is rolled back
    Rollback,
    /// The doctor as a hook: it warns, refuses and says why where Helm shows it, and leaves nothing
    Hook,
    /// Each right that the chart grants was used, and no request refused, by the API server's audit log
    Rights,
    /// Two runtimes in one cluster, each with its own platform; that of the second stands behind TLS of a private authority
    Neighbour,
    /// A new Argo CD beside the runtime, by the chart's dependency: the reporter finds it, logs in, and reports what it does
    NewArgocd,
    /// Each version of the chart before, in a namespace of its own, upgraded to this one while applications change
    Before,
    /// The platform of the chart is restored from a backup that its job made: it holds what it held, and the reporter finds what was lost
    Backup,
    /// All components: a visitor comes through tunnel, router and app proxy to Argo CD, a command of a person through the platform as well, and both are told when the tunnel is away; then through Traefik, by an Ingress and by an HTTPRoute
    Access,
    /// Every connection of the pods is allowed by a NetworkPolicy of the chart, and every rule is used by one
    Connections,
    /// Nothing stays but what Helm says, also while the platform is away
    Uninstall,
}

impl Step {
    /// Those of the short form.
    pub(crate) const SHORT: [Self; 4] = [Self::Install, Self::Change, Self::Argocd, Self::Uninstall];

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What it is, for a list of all.
    pub(crate) fn about(self) -> String {
        let help = self.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// These steps in the order they are taken, all where none is named; what is installed first belongs to them.
    pub(crate) fn chosen(named: &[Self], is_short: bool) -> Vec<Self> {
        let wanted = |step: &Self| match (named, is_short) {
            ([], false) => true,
            ([], true) => Self::SHORT.contains(step),
            (named, _) => *step == Self::Install || named.contains(step),
        };
        Self::value_variants().iter().copied().filter(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_in_their_order_after_the_installation() {
        assert_eq!(
            Step::chosen(&[Step::Kill, Step::Change], false),
            [Step::Install, Step::Change, Step::Kill]
        );
        assert_eq!(Step::chosen(&[], true), Step::SHORT);
        assert_eq!(Step::chosen(&[], false), Step::value_variants());
    }

    #[test]
    fn every_step_says_what_it_is() {
        assert!(Step::value_variants().iter().all(|step| !step.about().is_empty()));
        assert_eq!(Step::Registry.name(), "registry");
    }
}
