//! What the host says of the process: its name, the namespace of its pod, where state may be kept.

use std::path::{Path, PathBuf};

use super::environment::{Variables, set};

const NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// The place for state in a container: a volume is mounted there.
const STATE: &str = "/var/lib/gitops-runtime";

/// Facts that some defaults depend on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Host {
    /// The name of the host; in a pod, of the pod.
    pub(crate) name: Option<String>,
    /// The namespace of the pod, in a pod.
    pub(crate) namespace: Option<String>,
    /// Directories that state may be kept in, the best first.
    pub(crate) state: Vec<PathBuf>,
}

impl Host {
    /// Asks the host.
    pub(crate) fn read(variables: &Variables) -> Self {
        let file = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let name = set(variables, "HOSTNAME").map(str::to_owned).or_else(|| file(HOSTNAME));
        let namespace = file(NAMESPACE).filter(|namespace| !namespace.is_empty());
        let volume = Path::new(STATE);
        let volume = volume.is_dir().then(|| volume.to_owned());
        let home = set(variables, "XDG_STATE_HOME")
            .map(PathBuf::from)
            .or_else(|| set(variables, "HOME").map(|home| Path::new(home).join(".local/state")))
            .filter(|home| home.is_absolute() && home.parent().is_some_and(|above| above != Path::new("/")))
            .map(|home| home.join("gitops-runtime"));
        let temporary = std::env::temp_dir().join("gitops-runtime");
        Self { name, namespace, state: volume.into_iter().chain(home).chain([temporary]).collect() }
    }
}
