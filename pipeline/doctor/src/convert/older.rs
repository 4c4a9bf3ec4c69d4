//! Keys of earlier versions of the other chart: where a later one says the same, they have no effect any more.

use super::{Converted, Leaf};

const UNUSED: &str = "has no effect in the other chart beside an Argo CD of its own, which argo-cd.enabled: false alone switches off";

/// Leaves out what later versions call otherwise, where it stands under that name as well: whoever kept the older one beside it has
/// a version that reads the later one alone.
pub(super) fn leave_out(converted: &mut Converted, leaves: &mut Vec<Leaf<'_>>) {
    let newer: Vec<(String, String)> = leaves
        .iter()
        .filter(|leaf| !is_older(&leaf.path) && !has_one_name(&leaf.path))
        .map(|leaf| (leaf.to.clone(), format!("{}{}", leaf.under, leaf.path.join("."))))
        .collect();
    let has_own = !converted.argocd.is_off;
    let under = std::mem::take(&mut converted.under);
    leaves.retain(|leaf| {
        let newer = newer.iter().find(|(to, _)| is_older(&leaf.path) && *to == leaf.to);
        let why = match newer {
            Some((_, newer)) => {
                format!("later versions call it {newer}, which stands here as well: that is taken")
            }
            None if has_own && is_of_another(&leaf.path) => UNUSED.to_owned(),
            None => return true,
        };
        converted.under.clone_from(&leaf.under);
        converted.note(&leaf.path, leaf.node, why);
        false
    });
    converted.under = under;
}

/// Whether a key is of a component that every version calls alike.
fn has_one_name(path: &[&str]) -> bool {
    matches!(path, ["app-proxy" | "internal-router" | "tunnel-client", ..])
}

/// Whether a key says where an Argo CD is that the other chart did not make.
fn is_of_another(path: &[&str]) -> bool {
    matches!(path, ["global", "external-argo-cd", "server" | "repoServer", ..])
}

/// Whether a key is called otherwise by later versions.
fn is_older(path: &[&str]) -> bool {
    matches!(
        path,
        ["cf-argocd-extras", ..]
            | ["global", "external-argo-cd", ..]
            | ["argo-cd", "eventReporter", ..]
            | ["app-proxy", "config", "argoCdUsername"]
    )
}
