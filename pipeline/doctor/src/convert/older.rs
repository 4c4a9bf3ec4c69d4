//! Keys of earlier versions of the other chart: where a later one says the same, they have no effect any more.

use super::{Converted, Leaf};

/// Leaves out what later versions call otherwise, where it stands under that name as well: whoever kept the older one beside it has
/// a version that reads the later one alone.
pub(super) fn leave_out(converted: &mut Converted, leaves: &mut Vec<Leaf<'_>>) {
    let newer: Vec<(String, String)> = leaves
        .iter()
        .filter(|leaf| !is_older(&leaf.path))
        .map(|leaf| (leaf.to.clone(), format!("{}{}", leaf.under, leaf.path.join("."))))
        .collect();
    let under = std::mem::take(&mut converted.under);
    leaves.retain(|leaf| {
        let newer = newer.iter().find(|(to, _)| is_older(&leaf.path) && *to == leaf.to);
        if let Some((_, newer)) = newer {
            converted.under.clone_from(&leaf.under);
            converted.note(
                &leaf.path,
                leaf.node,
                format!("later versions call it {newer}, which stands here as well: that is taken"),
            );
        }
        newer.is_none()
    });
    converted.under = under;
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
